"""One process of controllers: caches, controllers, leader election, events and health under one roof.

    runtime = Runtime(client, "podium")
    runtime.controller("pods", reconcile, [for_kind(POD)], workers=4)
    await runtime.run()

Things stop in the reverse of the order in which they depend on each other: first the work, then the lease (so
that nobody else begins before the work has ended), then events, watches and health.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

from podium.kube.cache import Caches
from podium.kube.clock import Clock, SystemClock
from podium.kube.controller import Controller, Reconcile
from podium.kube.events import EventClient, EventRecorder
from podium.kube.health import HealthServer
from podium.kube.leases import LeaderElection, LeaseClient, LeaseTimes
from podium.kube.metrics import Metrics
from podium.kube.reflector import ListWatch
from podium.kube.source import Source


class RuntimeClient(ListWatch, LeaseClient, EventClient, Protocol):
    """The calls of the client that a runtime uses for itself."""


class Runtime:
    """What the controllers of one process share, and their life from start to stop."""

    def __init__(
        self,
        client: RuntimeClient,
        component: str,
        *,
        instance: str = "",
        clock: Clock | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.clock = clock or SystemClock()
        self.caches = Caches(client, clock=self.clock, metrics=self.metrics)
        self.events = EventRecorder(
            client, component, instance=instance, clock=self.clock, metrics=self.metrics
        )
        self.election: LeaderElection | None = None
        self.health: HealthServer | None = None
        self._client = client
        self._controllers: list[Controller] = []
        self._working: set[str] = set()
        self._stop = asyncio.Event()

    def controller(
        self, name: str, reconcile: Reconcile, sources: Sequence[Source], **options: Any
    ) -> Controller:
        """Add a controller; the options are those of `Controller`."""
        controller = Controller(name, reconcile, sources, clock=self.clock, metrics=self.metrics, **options)
        self._controllers.append(controller)
        return controller

    def elect(
        self, namespace: str, name: str, identity: str, *, times: LeaseTimes | None = None
    ) -> LeaderElection:
        """Run the controllers that need a leader only while this process holds the lease."""
        self.election = LeaderElection(
            self._client, namespace, name, identity, times=times, clock=self.clock, metrics=self.metrics
        )
        return self.election

    def serve_health(self, *, host: str = "127.0.0.1", port: int = 0) -> HealthServer:
        """Answer health checks and scrapes while running."""
        self.health = HealthServer(self.metrics, host=host, port=port)
        self.health.add_alive_check("workers", self._dead_workers)
        self.health.add_ready_check("caches", self._missing_caches)
        self.health.add_ready_check("controllers", self._missing_controllers)
        return self.health

    def stop(self) -> None:
        """Have `run` come to an end; may be called by a signal handler."""
        self._stop.set()

    async def run(self) -> None:
        """Run until `stop`; LeadershipLost is raised if the lease is lost: better end the process then."""
        async with AsyncExitStack() as stack:
            if self.health is not None:
                stack.push_async_callback(self.health.stop)
                await self.health.start()
            stack.push_async_callback(self.caches.stop)
            stack.push_async_callback(self.events.stop)
            self.events.start()
            bound = [c for c in self._controllers if c.needs_leader and self.election is not None]
            free = [c for c in self._controllers if c not in bound]
            await self._until_stopped(self._work(free, None), self._lead(bound))

    async def _until_stopped(self, *parts: Any) -> None:
        tasks = [asyncio.ensure_future(part) for part in parts]
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (stopping, *tasks):
                task.cancel()
            await asyncio.wait([stopping, *tasks])
        for task in tasks:
            with suppress(asyncio.CancelledError):
                task.result()

    async def _lead(self, controllers: list[Controller]) -> None:
        if self.election is None:
            await self._stop.wait()
        else:
            await self.election.run(lambda: self._work(controllers, self.election))

    async def _work(self, controllers: list[Controller], election: LeaderElection | None) -> None:
        async with self._running(controllers, election):
            await self._stop.wait()

    @asynccontextmanager
    async def _running(
        self, controllers: list[Controller], election: LeaderElection | None
    ) -> AsyncIterator[None]:
        try:
            try:
                async with asyncio.TaskGroup() as starting:
                    for controller in controllers:
                        starting.create_task(controller.start(self.caches))
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
            self._working.update(controller.name for controller in controllers)
            yield
        finally:
            self._working.difference_update(controller.name for controller in controllers)
            # Who has lost the lease has no time left to finish in peace.
            drain = 0.0 if election is not None and not election.is_leader() else None
            await asyncio.gather(*(controller.stop(drain) for controller in controllers))

    def _dead_workers(self) -> str | None:
        dead = [c.name for c in self._controllers if c.name in self._working and not c.running]
        return f"no worker is left in {', '.join(dead)}" if dead else None

    def _missing_caches(self) -> str | None:
        return None if self.caches.all_synced() else "not everything has been listed"

    def _missing_controllers(self) -> str | None:
        standby = self.election is not None and not self.election.is_leader()
        missing = [
            controller.name
            for controller in self._controllers
            if controller.name not in self._working and not (standby and controller.needs_leader)
        ]
        return f"not started: {', '.join(missing)}" if missing else None
