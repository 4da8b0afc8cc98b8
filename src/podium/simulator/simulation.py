"""The simulator as one thing to run: its controllers, their caches, and their end."""

from __future__ import annotations

import asyncio

from podium.kube import Client
from podium.kube.clock import Clock
from podium.kube.controller import Controller
from podium.simulator import nodes
from podium.simulator.nodehalf import NodeHalf
from podium.simulator.world import World


class Simulator:
    """Simulated nodes, and simulated workload controllers where the control plane has none of its own."""

    def __init__(
        self, client: Client, *, workloads: bool = True, nodes: int = 1, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._workloads = workloads
        self._nodes = nodes
        self._clock = clock
        self._controllers: list[Controller] = []
        self._world: World | None = None
        self._started = asyncio.Event()

    async def run(self) -> None:
        """Simulate until cancelled; what was begun is finished, what was not will be by the next run."""
        seats = nodes.seats(self._nodes)
        world = self._world = World(self._client, self._clock)
        async with world.running():
            controllers = NodeHalf(world, seats).controllers()
            if self._workloads:
                from podium.simulator.workloadhalf import WorkloadHalf

                half = WorkloadHalf(world)
                controllers += half.controllers()
            await world.synced()
            if self._workloads:
                await half.prepare()
            try:
                await self._run(controllers, world)
            finally:
                self._started.clear()
                await asyncio.gather(*(controller.stop() for controller in controllers))

    async def _run(self, controllers: list[Controller], world: World) -> None:
        self._controllers = controllers
        for controller in controllers:
            await controller.start(world.caches)
        self._started.set()
        await asyncio.Event().wait()

    async def settled(self) -> None:
        """Wait until nothing is left to do but what waits for its time."""
        await self._started.wait()
        quiet = 0
        # Changes travel through a few callbacks before they reach a queue.
        while quiet < 50:
            quiet = 0 if self._is_busy() else quiet + 1
            await asyncio.sleep(0.001)

    def _is_busy(self) -> bool:
        queues = (controller.queue for controller in self._controllers)
        return any(len(queue) or next(queue.held, None) is not None for queue in queues) or (
            self._world is not None and self._world.events.is_busy
        )
