"""The client and the caches under a storm of faults, on a real embedded server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium.kube import GVK, Client, Config, Key
from podium.kube.backoff import Backoff
from podium.kube.cache import Caches
from podium.kube.clock import SystemClock
from podium.kube.errors import APIError, ConnectionFailed
from podium.kube.faults import Answer, AnswerLost, CutAt, Fault, FaultyTransport, InPieces, Refused
from podium.kube.store import Change
from podium.kube.transport import Request
from podium.run.controlplane import Options, started
from podium.run.inprocess import InProcessTransport

CONFIG_MAP = GVK("", "v1", "ConfigMap")
FAST = Backoff(initial=0.001, maximum=0.01)


class HurriedClock(SystemClock):
    """Waits a hundredth of what is asked, so that a storm of retries is over soon."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


class Storm:
    """Every third request meets a fault of a random kind; watches are cut at any byte."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.over = False
        self.met: Counter[str] = Counter()

    def __call__(self, request: Request) -> Fault | None:
        if self.over or self._rng.random() > 0.35:
            return None
        watching = "watch=" in request.target
        choices: list[Fault] = [
            Refused(),
            Answer(500, "InternalError"),
            Answer(429, "TooManyRequests", retry_after=0),
        ]
        choices.append(CutAt(self._rng.randrange(2000)) if watching else AnswerLost())
        choices.append(InPieces(self._rng.randrange(1, 64)))
        if request.method in ("PUT", "PATCH"):
            choices.append(Answer(409, "Conflict"))
        if watching:
            choices.append(Answer(410, "Expired"))
        fault = self._rng.choice(choices)
        self.met[type(fault).__name__] += 1
        return fault


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[tuple[Config, InProcessTransport]]:
    async with started(Options(data=tmp_path, simulate=False)) as server:
        yield Config(server.url, token=server.admin_token), InProcessTransport(server.gateway)


class Follower:
    """Rebuilds the state from what a cache tells its handlers, and notes what does not fit."""

    def __init__(self) -> None:
        self.state: dict[Key, str] = {}
        self.wrong: list[str] = []
        self._moved = asyncio.Event()

    async def reaches(self, truth: dict[Key, str]) -> None:
        """Return when the followed state is the true one."""
        while self.state != truth:
            self._moved.clear()
            await self._moved.wait()

    def __call__(self, change: Change) -> None:
        self._moved.set()
        held = change.new or change.old
        assert held is not None
        key = Key(held.metadata.namespace, held.metadata.name)
        if (change.old is None) != (key not in self.state):
            self.wrong.append(f"{key}: told as {'new' if change.old is None else 'known'}, but it was not")
        if change.new is None:
            self.state.pop(key, None)
        elif self.state.get(key) == change.new.metadata.resource_version:
            self.wrong.append(f"{key}: told twice")
        else:
            self.state[key] = change.new.metadata.resource_version


async def write_randomly(client: Client, rng: random.Random, steps: int) -> None:
    for step in range(steps):
        name = f"c{rng.randrange(12)}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        try:
            match rng.randrange(3):
                case 0:
                    await client.apply({**body, "data": {"step": str(step)}}, force=True)
                case 1:
                    await client.patch(CONFIG_MAP, name, {"data": {"patched": str(step)}}, "default")
                case _:
                    await client.delete(CONFIG_MAP, name, "default")
        except (APIError, ConnectionFailed):
            pass  # the storm; what matters is that the caches agree with whatever happened


@pytest.mark.parametrize("seed", range(12))
async def test_caches_agree_with_the_server_after_a_storm_and_tell_each_change_once(
    plane: tuple[Config, InProcessTransport], seed: int
) -> None:
    config, transport = plane
    storm = Storm(seed)
    follower = Follower()
    async with Client(config, transport=FaultyTransport(transport, storm), clock=HurriedClock()) as client:
        caches = Caches(client, backoff=FAST)
        cache = caches.acquire(CONFIG_MAP, "default")
        cache.on_change(follower)
        await write_randomly(client, random.Random(seed), 150)
        storm.over = True
        truth = {
            Key.of(item): item["metadata"]["resourceVersion"]
            for item in (await client.list(CONFIG_MAP, "default")).items
        }
        await asyncio.wait_for(follower.reaches(truth), 10)
        await caches.release(cache)
    assert follower.wrong == []
    assert storm.met.total() > 20


async def test_a_write_whose_answer_was_lost_is_reported_and_happened_once(
    plane: tuple[Config, InProcessTransport],
) -> None:
    config, transport = plane
    plan = iter([AnswerLost()])
    faulty = FaultyTransport(
        transport, lambda request: next(plan, None) if request.method == "POST" else None
    )
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "once-", "namespace": "default"},
    }
    async with Client(config, transport=faulty) as client:
        with pytest.raises(ConnectionFailed):
            await client.create(body)
        names = [item["metadata"]["name"] for item in (await client.list(CONFIG_MAP, "default")).items]
    assert len([name for name in names if name.startswith("once-")]) == 1
