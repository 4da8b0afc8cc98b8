from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import aiohttp
import pytest

from kube_runtime.fake_server import CONFIG_MAP, FakeServer, config_map
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import Key
from podium.kube.apply import Applier
from podium.kube.calls import RequestDone
from podium.kube.client import Client
from podium.kube.clock import SystemClock, timeout_after
from podium.kube.health import HealthServer
from podium.kube.leases import LEASE, LeadershipLost
from podium.kube.metrics import Metrics
from podium.kube.runtime import Runtime
from podium.kube.source import Channel, for_kind

LEASE_KEY = Key("default", "podium")


class Process:
    """A runtime with one controller on a given cluster."""

    def __init__(self, server: FakeServer, clock: VirtualClock, name: str, *, elect: bool = True) -> None:
        self.calls: list[Key] = []
        self.runtime = Runtime(server, "podium", clock=clock)
        self.runtime.controller("maps", self.reconcile, [for_kind(CONFIG_MAP)])
        self.everywhere = Channel()
        self.runtime.controller("everywhere", self.reconcile, [self.everywhere], needs_leader=False)
        if elect:
            self.runtime.elect("default", "podium", name)
        self.task = asyncio.create_task(self.runtime.run())

    async def reconcile(self, key: Key) -> None:
        self.calls.append(key)

    async def stop(self) -> None:
        self.runtime.stop()
        await self.task


def test_importing_the_runtime_loads_neither_the_http_nor_the_metrics_library() -> None:
    code = "import sys, podium.kube.runtime; print(*{'aiohttp', 'prometheus_client'} & sys.modules.keys())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "\n"


def real_client_fits(client: Client) -> Runtime:
    """Checked by mypy: the client offers what the runtime, the applier and the caches ask for."""
    Applier(client, field_manager="podium")
    return Runtime(client, "podium")


async def test_controllers_run_until_stopped_and_leave_nothing_behind() -> None:
    server, clock = FakeServer(), VirtualClock()
    server.put(config_map("a"))
    process = Process(server, clock, "one", elect=False)
    await settle()
    assert process.calls == [Key("default", "a")]
    await process.stop()
    assert server.open_watches == 0
    assert clock.next_timer is None


async def test_a_second_process_stands_by_until_the_first_has_stopped() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Process(server, clock, "first")
    await settle()
    second = Process(server, clock, "second")
    await settle()
    server.put(config_map("a"))
    second.everywhere.send(Key("", "anywhere"))
    await clock.advance(30)
    assert first.calls == [Key("default", "a")]
    assert second.calls == [Key("", "anywhere")]
    await first.stop()
    await clock.advance(5)
    assert second.calls[1:] == [Key("default", "a")]
    await second.stop()
    assert server.objects[LEASE, LEASE_KEY]["spec"]["holderIdentity"] == ""
    assert server.open_watches == 0


async def test_a_process_that_loses_its_lease_ends_with_an_error_and_without_delay() -> None:
    server, clock = FakeServer(), VirtualClock()
    process = Process(server, clock, "first")
    cancelled = asyncio.Event()

    async def stuck(key: Key) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    process.runtime._controllers[0]._reconcile = stuck
    server.put(config_map("a"))
    await settle()
    lease = server.objects[LEASE, LEASE_KEY]
    server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await clock.advance(6)
    assert cancelled.is_set()
    with pytest.raises(LeadershipLost):
        await process.task
    assert server.open_watches == 0


async def test_stopping_a_standby_does_not_wait_for_the_lease() -> None:
    server, clock = FakeServer(), VirtualClock()
    first, second = Process(server, clock, "first"), Process(server, clock, "second")
    await settle()
    await second.stop()
    assert server.objects[LEASE, LEASE_KEY]["spec"]["holderIdentity"] == "first"
    await first.stop()


async def test_a_controller_that_cannot_start_ends_the_process() -> None:
    server, clock = FakeServer(), VirtualClock()
    runtime = Runtime(server, "podium", clock=clock)

    async def reconcile(key: Key) -> None: ...

    class Broken(Channel):
        async def synced(self, timeout: float | None) -> None:
            raise RuntimeError("no such kind")

    runtime.controller("broken", reconcile, [Broken()])
    with pytest.raises(RuntimeError, match="no such kind"):
        await runtime.run()


@asynccontextmanager
async def served(health: HealthServer) -> AsyncIterator[aiohttp.ClientSession]:
    await health.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{health.port}") as session:
            yield session
    finally:
        await health.stop()


async def text(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_health_answers_as_kubernetes_components_do() -> None:
    health = HealthServer(Metrics())
    wrong: list[str] = []
    health.add_ready_check("caches", lambda: wrong[0] if wrong else None)
    async with served(health) as session:
        assert await text(session, "/healthz") == (200, "ok")
        assert await text(session, "/livez") == (200, "ok")
        assert await text(session, "/readyz") == (200, "ok")
        assert await text(session, "/readyz?verbose") == (
            200,
            "[+]ping ok\n[+]caches ok\nreadyz check passed\n",
        )
        wrong.append("not listed")
        assert await text(session, "/readyz") == (
            500,
            "[+]ping ok\n[-]caches failed: not listed\nreadyz check failed\n",
        )
        assert await text(session, "/healthz") == (200, "ok")
        assert await text(session, "/readyz?exclude=caches") == (200, "ok")
        assert await text(session, "/readyz/caches") == (500, "failed: not listed\n")
        assert await text(session, "/readyz/ping") == (200, "ok")
        assert (await text(session, "/readyz/nothing"))[0] == 404


async def test_a_check_that_breaks_counts_as_failed() -> None:
    health = HealthServer(Metrics())
    health.add_alive_check("broken", lambda: dict[str, str]()["x"])
    async with served(health) as session:
        assert "KeyError" in (await text(session, "/healthz"))[1]


async def test_a_running_process_is_ready_and_a_standby_too() -> None:
    server, clock = FakeServer(), VirtualClock()
    first, second = Process(server, clock, "first"), Process(server, clock, "second")
    for process in (first, second):
        health = process.runtime.serve_health()
        ready = health._ready
        assert ready["controllers"]() is not None
    await settle()
    assert [check() for check in ready.values()] == [None] * 3
    assert [check() for check in (first.runtime.health or health)._ready.values()] == [None] * 3
    first.runtime._controllers[0]._tasks[0].cancel()
    await settle()
    assert (first.runtime.health or health)._alive["workers"]() == "no worker is left in maps"
    await first.stop()
    await second.stop()


async def test_metrics_carry_the_names_that_dashboards_know() -> None:
    server, clock = FakeServer(), VirtualClock()
    server.put(config_map("a"))
    process = Process(server, clock, "first")
    await settle()
    observe = process.runtime.metrics.client_observer("example:6443")
    observe(RequestDone("list", "pods", 200, 0.01))
    observe(RequestDone("create", "pods", 0, 0.02))
    body, content_type = process.runtime.metrics.render()
    lines = body.decode().splitlines()
    assert content_type.startswith("text/plain")
    for line in (
        'workqueue_depth{controller="maps",name="maps"} 0.0',
        'workqueue_adds_total{controller="maps",name="maps"} 1.0',
        'workqueue_queue_duration_seconds_count{controller="maps",name="maps"} 1.0',
        'workqueue_longest_running_processor_seconds{controller="maps",name="maps"} 0.0',
        'controller_runtime_reconcile_total{controller="maps",result="success"} 1.0',
        'controller_runtime_reconcile_time_seconds_bucket{controller="maps",le="0.005"} 1.0',
        'controller_runtime_max_concurrent_reconciles{controller="maps"} 1.0',
        'rest_client_requests_total{code="200",host="example:6443",method="GET"} 1.0',
        'rest_client_requests_total{code="<error>",host="example:6443",method="POST"} 1.0',
        'leader_election_master_status{name="podium"} 1.0',
        'reflector_lists_total{name="ConfigMap"} 1.0',
        'podium_cached_objects{name="ConfigMap"} 1.0',
    ):
        assert line in lines
    await process.stop()


async def test_metrics_are_served() -> None:
    metrics = Metrics()
    metrics.counter("podium_tests_total", "Tests.", ("result",)).inc("passed")
    async with served(HealthServer(metrics)) as session:
        status, body = await text(session, "/metrics")
        assert status == 200
        assert 'podium_tests_total{result="passed"} 1.0' in body


async def test_events_of_a_process_are_sent_before_it_ends() -> None:
    server, clock = FakeServer(), VirtualClock()
    process = Process(server, clock, "first")
    await settle()
    process.runtime.events.normal(config_map("a"), "Installed", "all there")
    await process.stop()
    assert [obj["reason"] for (gvk, _), obj in server.objects.items() if gvk.kind == "Event"] == ["Installed"]


async def test_the_system_clock_counts_seconds_and_ends_what_takes_too_long() -> None:
    clock = SystemClock()
    before, day = clock.monotonic(), clock.wall()
    with pytest.raises(TimeoutError):
        async with timeout_after(clock, 0.01):
            await clock.sleep(30)
    assert 0.009 < clock.monotonic() - before < 10
    assert clock.wall() - day < timedelta(seconds=10)
