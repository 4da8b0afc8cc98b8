from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kube_runtime.fake_server import FakeServer
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import GVK, Key, Object
from podium.kube.apply import Ref
from podium.kube.cache import Caches
from podium.kube.wait import Readiness, wait_gone, wait_ready

CLAIM = GVK("", "v1", "PersistentVolumeClaim")


class Cluster:
    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = VirtualClock()
        self.caches = Caches(self.server, clock=self.clock)

    def claim(self, name: str, phase: str, **spec: str) -> Object:
        return self.server.put(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
                "status": {"phase": phase},
            }
        )

    async def waiting(self, *targets: Object | Ref, timeout: float = 60) -> asyncio.Task[Readiness]:
        task = asyncio.create_task(wait_ready(self.caches, targets, timeout=timeout, clock=self.clock))
        await settle()
        return task


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    yield cluster
    assert cluster.server.open_watches == 0


async def test_waiting_ends_when_the_last_object_is_ready(cluster: Cluster) -> None:
    refs = [Ref(CLAIM, "default", "a"), Ref(CLAIM, "default", "b")]
    waiting = await cluster.waiting(*refs)
    cluster.claim("a", "Bound")
    cluster.claim("b", "Pending")
    await settle()
    assert not waiting.done()
    cluster.claim("b", "Bound")
    await settle()
    assert (await waiting).ready
    assert cluster.server.requests == ["watch PersistentVolumeClaim - initial"]


async def test_waiting_ends_at_once_when_something_failed(cluster: Cluster) -> None:
    cluster.claim("a", "Lost")
    found = await (await cluster.waiting(Ref(CLAIM, "default", "a")))
    assert found.failed
    assert str(found) == "PersistentVolumeClaim default/a: the volume it was bound to is lost"


async def test_waiting_ends_with_the_time_and_says_what_is_missing(cluster: Cluster) -> None:
    cluster.claim("a", "Pending")
    waiting = await cluster.waiting(Ref(CLAIM, "default", "a"), Ref(CLAIM, "default", "b"), timeout=30)
    await cluster.clock.advance(31)
    found = await waiting
    assert not found.ready
    assert [v.message for v in found.verdicts.values()] == [
        "it is not bound but Pending",
        "it does not exist",
    ]


async def test_the_state_before_the_apply_does_not_count(cluster: Cluster) -> None:
    cluster.claim("a", "Bound", size="1")
    applied = {**cluster.server.objects[CLAIM, Key("default", "a")]}
    applied["metadata"] = {**applied["metadata"], "generation": 2}
    waiting = await cluster.waiting(applied)
    assert not waiting.done()
    cluster.claim("a", "Bound", size="2")
    await settle()
    assert (await waiting).ready


async def test_another_object_of_the_same_name_does_not_count(cluster: Cluster) -> None:
    applied = cluster.claim("a", "Bound")
    cluster.server.remove(CLAIM, Key("default", "a"))
    cluster.claim("a", "Bound")
    waiting = await cluster.waiting(applied, timeout=5)
    await cluster.clock.advance(6)
    assert "another object" in str(await waiting)


async def test_waiting_for_objects_to_go(cluster: Cluster) -> None:
    cluster.claim("a", "Bound")
    cluster.claim("b", "Bound")
    refs = [Ref(CLAIM, "default", "a"), Ref(CLAIM, "default", "b")]
    waiting = asyncio.create_task(wait_gone(cluster.caches, refs, timeout=10, clock=cluster.clock))
    await settle()
    cluster.server.remove(CLAIM, Key("default", "a"))
    await cluster.clock.advance(11)
    assert await waiting == [refs[1]]
