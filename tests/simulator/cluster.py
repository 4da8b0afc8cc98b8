"""A small cluster for tests: an embedded server and a simulator in one event loop, and a user beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from podium.api.kinds import GVK, Object
from podium.apiserver.server import Server, Settings
from podium.kube import Client, Config, RequestDone
from podium.run.inprocess import InProcessTransport
from podium.simulator import Simulator
from podium.simulator.objects import POD

TIMEOUT = 20.0
Test = Callable[[Object], Any]


class Cluster:
    """A server, a user's client, and a simulator that can be stopped and started."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.user = self._client()
        # Every write that a simulator made: verb and resource.
        self.writes: list[tuple[str, str]] = []
        self._awaited = 0
        self._written = asyncio.Event()
        self.simulator: Simulator | None = None
        self._task: asyncio.Task[None] | None = None
        self._simulated: Client | None = None

    def _client(self, observer: Callable[[RequestDone], None] | None = None) -> Client:
        config = Config(self._server.url, token=self._server.admin_token)
        return Client(config, transport=InProcessTransport(self._server.gateway), observer=observer)

    def _observe(self, request: RequestDone) -> None:
        if request.verb not in ("get", "list", "watch"):
            self.writes.append((request.verb, request.resource))
            if len(self.writes) >= self._awaited:
                self._written.set()

    async def start(self, *, settle: bool = True, **options: Any) -> None:
        """Start a simulator and, unless told otherwise, wait until it has nothing to do."""
        self._simulated = self._client(self._observe)
        self.simulator = Simulator(self._simulated, **options)
        self._task = asyncio.create_task(self.simulator.run())
        if settle:
            await self.settled()

    async def stop(self) -> None:
        """End the simulator as a process that is told to stop would."""
        if self._task is not None and self._simulated is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self._simulated.close()
            self._task = None

    async def written(self, count: int) -> None:
        """Wait until the simulator has made so many more writes."""
        self._awaited = len(self.writes) + count
        self._written.clear()
        async with asyncio.timeout(TIMEOUT):
            await self._written.wait()

    async def settled(self) -> None:
        """Wait until the simulator has nothing to do."""
        assert self.simulator is not None
        assert self._task is not None
        waiting = asyncio.create_task(self.simulator.settled())
        async with asyncio.timeout(TIMEOUT):
            await asyncio.wait([waiting, self._task], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            waiting.cancel()
            self._task.result()

    async def close(self) -> None:
        await self.stop()
        await self.user.close()

    async def until(self, gvk: GVK, name: str, test: Test, namespace: str = "default") -> Object:
        """The object as soon as it passes a test."""
        return await until(self.user, gvk, name, test, namespace)

    async def until_gone(self, gvk: GVK, name: str, namespace: str = "default") -> None:
        """Wait until there is no such object."""
        await until_gone(self.user, gvk, name, namespace)

    async def pods(self, labels: str = "", namespace: str = "default") -> list[Object]:
        """The Pods that match, by name."""
        found = (await self.user.list(POD, namespace, labels=labels)).items
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Cluster]:
    """A cluster whose simulator has not been started."""
    async with Server(Settings(data=directory)) as server:
        cluster = Cluster(server)
        try:
            yield cluster
        finally:
            await cluster.close()


async def until(client: Client, gvk: GVK, name: str, test: Test, namespace: str = "default") -> Object:
    """The object as soon as it passes a test; the failure shows its last state."""
    last: Object = {}
    try:
        async with asyncio.timeout(TIMEOUT):
            events = client.watch(gvk, namespace, fields=f"metadata.name={name}", send_initial_events=True)
            async with aclosing(events):
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED"):
                        last = msgspec.json.decode(event.object)
                        if test(last):
                            return last
    except TimeoutError:
        pass
    raise AssertionError(f"{gvk.kind} {name} did not get there: {msgspec.json.encode(last).decode()}")


async def until_gone(client: Client, gvk: GVK, name: str, namespace: str = "default") -> None:
    """Wait until there is no such object."""
    there = False
    async with asyncio.timeout(TIMEOUT):
        events = client.watch(gvk, namespace, fields=f"metadata.name={name}", send_initial_events=True)
        async with aclosing(events):
            async for event in events:
                there = event.type in ("ADDED", "MODIFIED") if event.type != "BOOKMARK" else there
                if event.type in ("BOOKMARK", "DELETED") and not there:
                    return
    raise AssertionError(f"{gvk.kind} {name} is still there")


def template(app: str, image: str = "app:1", **more: Any) -> Object:
    """A Pod template with one container."""
    annotations = more.pop("annotations", None)
    metadata: Object = {"labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}], **more}}


def workload(kind: str, name: str, **spec: Any) -> Object:
    """A workload of the apps group in `default`, named as its Pods are labelled."""
    given = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": given}


def job(
    name: str, *, annotations: dict[str, str] | None = None, restart: str = "Never", **spec: Any
) -> Object:
    """A Job in `default`."""
    made = {"metadata": {"annotations": annotations or {}}}
    pod = {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": restart}
    metadata = {"name": name, "namespace": "default"}
    given = {"template": {**made, "spec": pod}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": given}


def is_true(obj: Object, kind: str) -> bool:
    """Whether a condition is True."""
    return condition(obj, kind).get("status") == "True"


def condition(obj: Object, kind: str) -> Object:
    """A condition, empty if absent."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((found for found in conditions if found["type"] == kind), {})
