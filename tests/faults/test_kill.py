"""kill -9 at any moment: what was acknowledged is there after a restart, and nothing else has changed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podium.kube import GVK, Client, load_config
from podium.kube.errors import KubeError

CONFIG_MAP = GVK("", "v1", "ConfigMap")
# Four shards that xdist can spread; together 200 rounds.
ROUNDS, SHARDS = 50, 4
WRITERS = 6


@asynccontextmanager
async def process(data: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A control plane in a process of its own, ready; killed when the context ends."""
    (data / "instance.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "podium", "up", "--no-simulate", "--data", str(data)]
    started = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert started.stderr is not None
        line = await asyncio.wait_for(started.stderr.readline(), 30)
        assert b"ready at" in line, line
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.wait()


class Ledger:
    """What the server has acknowledged, and what may or may not have happened when it died."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int | None] = {}
        self.uncertain: dict[str, int | None] = {}

    def check(self, found: dict[str, int]) -> None:
        for name, value in self.acknowledged.items():
            allowed = {value}
            if name in self.uncertain:
                allowed.add(self.uncertain[name])
            assert found.get(name) in allowed, f"{name}: {found.get(name)} is not one of {allowed}"
        unexpected = set(found) - set(self.acknowledged) - set(self.uncertain)
        assert not unexpected, f"nobody wrote {unexpected}"

    def settle(self, found: dict[str, int]) -> None:
        self.acknowledged = dict(found)
        self.uncertain = {}


async def write_until_dead(client: Client, ledger: Ledger, writer: int, rng: random.Random) -> None:
    """Create, change and delete objects of this writer until the server stops answering."""
    for step in range(10_000):
        name = f"w{writer}-{rng.randrange(20)}"
        exists = ledger.acknowledged.get(name) is not None
        value: int | None = None if exists and rng.random() < 0.2 else step
        ledger.uncertain[name] = value
        try:
            if value is None:
                await client.delete(CONFIG_MAP, name, "default")
            elif exists:
                await client.patch(CONFIG_MAP, name, {"data": {"value": str(value)}}, "default")
            else:
                metadata = {"name": name, "namespace": "default", "labels": {"ledger": "yes"}}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
                await client.create({**body, "data": {"value": str(value)}})
        except KubeError:
            return
        ledger.acknowledged[name] = value
        del ledger.uncertain[name]


async def read_all(client: Client) -> dict[str, int]:
    listed = await client.list(CONFIG_MAP, "default", labels="ledger=yes")
    return {item["metadata"]["name"]: int(item["data"]["value"]) for item in listed.items}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shard", range(SHARDS))
async def test_nothing_acknowledged_is_lost_when_the_server_is_killed_under_load(
    tmp_path: Path, shard: int
) -> None:
    rng = random.Random(shard)
    ledger = Ledger()
    last_revision = 0
    for _ in range(ROUNDS):
        async with process(tmp_path) as server, Client(load_config(tmp_path / "kubeconfig")) as client:
            found = await read_all(client)
            ledger.check(found)
            ledger.settle(found)
            revision = int((await client.list(CONFIG_MAP, "default")).resource_version)
            assert revision >= last_revision
            last_revision = revision
            writers = [
                asyncio.create_task(write_until_dead(client, ledger, number, rng))
                for number in range(WRITERS)
            ]
            await asyncio.sleep(rng.uniform(0.005, 0.15))
            os.kill(server.pid, signal.SIGKILL)
            await asyncio.gather(*writers)
    assert last_revision > ROUNDS
