"""The simulator's view of the cluster, and the only place where it writes.

Reads come from shared caches. A plan counts as carried out when the caches have seen its writes, so the next
decision about the same key starts from their result: no replica is made twice because a watch was slow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from podium.api.kinds import GVK, Key, Object
from podium.kube import Client
from podium.kube.cache import Cache, Caches
from podium.kube.clock import Clock, SystemClock
from podium.kube.controller import Controller, Reconcile, Result
from podium.kube.errors import Conflict, Forbidden, NotFound
from podium.kube.events import EventLimits, EventRecorder, EventSource, Severity
from podium.kube.source import Source
from podium.kube.store import Change, by_controller
from podium.simulator.objects import name, namespace, spec, uid
from podium.simulator.plan import Bind, Create, Delete, Note, Plan, Update, UpdateStatus, Write

log = logging.getLogger(__name__)

FIELD_MANAGER = "podium-simulator"
# Somebody else changed an object that a plan was about; the caches will know in a moment.
_RETRY_CONFLICT = 0.02
# Longer than any healthy watch takes; after it, decisions go on with what the caches have.
_SEEN_TIMEOUT = 5.0
_AT_ONCE = 32
_DRAIN_SECONDS = 5.0
# Many components speak here, four times about each Pod, so Events come in bursts.
_EVENTS = EventLimits(waiting=20_000, at_once=16, remembered=512)


class _Stop(Exception):
    """The rest of a plan no longer makes sense."""

    def __init__(self, again: float | None) -> None:
        self.again = again


class World:
    """Caches of the kinds that somebody asked for, and the means to carry out plans."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.caches = Caches(client, clock=self.clock)
        self.events = EventRecorder(client, "simulator", limits=_EVENTS, clock=self.clock)
        self._client = client
        self._held: dict[GVK, Cache] = {}
        self._marks: dict[GVK, int] = {}
        self._waiting: dict[GVK, list[asyncio.Future[None]]] = {}

    def tell(self, note: Note) -> None:
        """Have an Event written soon."""
        # Of the components that speak here, only a kubelet is on some host.
        host = spec(note.regarding).get("nodeName") if "kubelet" in note.component else None
        self.events.event(
            note.regarding,
            Severity.WARNING if note.warning else Severity.NORMAL,
            note.reason,
            note.message,
            source=EventSource(note.component, host=host or ""),
            field_path=note.field_path,
        )

    def now(self) -> datetime:
        """The time of day."""
        return self.clock.wall()

    def controller(
        self, title: str, reconcile: Reconcile, sources: Sequence[Source], *, workers: int = 1
    ) -> Controller:
        """A controller on this world's time, which does not keep its process waiting for long."""
        return Controller(
            title, reconcile, sources, workers=workers, drain_seconds=_DRAIN_SECONDS, clock=self.clock
        )

    # --- reading ------------------------------------------------------------------------------------------

    def follow(self, gvk: GVK, *, metadata_only: bool = False) -> Cache:
        """Begin to hold a kind, if nobody did; the answer is empty until it is synced."""
        cache = self._held.get(gvk)
        if cache is None:
            cache = self._held[gvk] = self.caches.acquire(gvk, metadata_only=metadata_only)
            cache.add_index("controller", by_controller)
            cache.on_change(self._mark(gvk))
        return cache

    async def synced(self) -> None:
        """Wait until every kind that is followed has been listed."""
        for cache in list(self._held.values()):
            await self.caches.wait_synced(cache, 120.0)

    def get(self, gvk: GVK, key: Key) -> Object | None:
        """One object of a kind that is followed."""
        return self._held[gvk].get(key)

    def list(self, gvk: GVK, place: str = "") -> list[Object]:
        """The objects of a kind, in one namespace or in all."""
        return self._held[gvk].list(place)

    def controlled(self, gvk: GVK, owner: Object) -> Iterator[Object]:
        """The objects of a kind whose controller this is."""
        for held in self._held[gvk].select(namespace(owner), index=("controller", uid(owner))):
            yield held.object()

    def candidates(self, gvk: GVK, owner: Object) -> Iterable[Object]:
        """The objects of a kind that `owner` controls, and those in its namespace that nobody controls."""
        for held in self._held[gvk].select(namespace(owner)):
            reference = held.metadata.controller
            if reference is None or reference.uid == uid(owner):
                yield held.object()

    # --- writing ------------------------------------------------------------------------------------------

    async def carry_out(self, plan: Plan) -> Result | None:
        """Make a plan's writes in order and wait until the caches know of them; when to decide again."""
        again, seen = plan.again, _Seen()
        try:
            # Creations and deletions that follow each other do not depend on each other.
            for independent, group in groupby(plan.writes, lambda write: isinstance(write, Create | Delete)):
                if independent:
                    await self._write_together(list(group), seen)
                else:
                    for write in group:
                        await self._write(write, seen)
        except _Stop as stop:
            again = stop.again
        except Exception:
            await self._wait_seen(seen)
            raise
        await self._wait_seen(seen)
        return None if again is None else Result(again)

    async def _write_together(self, writes: Sequence[Write], seen: _Seen) -> None:
        for start in range(0, len(writes), _AT_ONCE):
            outcomes = await asyncio.gather(
                *(self._write(write, seen) for write in writes[start : start + _AT_ONCE]),
                return_exceptions=True,
            )
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome

    async def _write(self, write: Write, seen: _Seen) -> None:
        match write:
            case Note():
                self.tell(write)
            case Create():
                await self._create(write, seen)
            case Update(obj) | UpdateStatus(obj):
                await self._update(obj, "status" if isinstance(write, UpdateStatus) else "", seen)
            case Delete():
                await self._delete(write, seen)
            case Bind(pod, node):
                await self._bind(pod, node)

    async def _create(self, write: Create, seen: _Seen) -> None:
        try:
            made = await self._client.create(write.object, field_manager=FIELD_MANAGER)
        except Forbidden as error:
            if any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes):
                raise _Stop(None) from None
            raise
        except NotFound:
            raise _Stop(None) from None  # the namespace is gone
        seen.version(made)
        if write.note is not None:
            message = write.note.message.replace("{}", name(made))
            regarding = made if write.note.regarding is write.object else write.note.regarding
            self.tell(replace(write.note, message=message, regarding=regarding))

    async def _update(self, obj: Object, subresource: str, seen: _Seen) -> None:
        # A plan may change an object and its status: the second write builds on the first. A status update
        # writes annotations too, so it must start from those that were just written.
        newer = seen.written.get(uid(obj))
        if newer is not None and subresource:
            obj = {**newer, "status": obj["status"]}
        elif newer is not None:
            version = newer["metadata"]["resourceVersion"]
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
        try:
            written = await self._client.update(obj, subresource=subresource, field_manager=FIELD_MANAGER)
        except Conflict:
            raise _Stop(_RETRY_CONFLICT) from None
        except NotFound:
            return
        seen.version(written)

    async def _delete(self, write: Delete, seen: _Seen) -> None:
        obj = write.object
        try:
            await self._client.delete(
                GVK.of(obj),
                name(obj),
                namespace(obj),
                uid=uid(obj),
                grace_seconds=write.grace_seconds,
                propagation=write.propagation,
            )
        except (NotFound, Conflict):
            return
        seen.deleted.append(obj)

    async def _bind(self, pod: Object, node: str) -> None:
        key = Key(namespace(pod), name(pod))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        gvk, version = GVK.of(pod), pod["metadata"].get("resourceVersion")
        try:
            await self._client.create_subresource(gvk, key.name, "binding", binding, key.namespace)
        except (NotFound, Conflict):
            raise _Stop(_RETRY_CONFLICT) from None
        await self._until(gvk, lambda: self._version(gvk, key) != version)

    # --- seeing one's own writes --------------------------------------------------------------------------

    async def _wait_seen(self, seen: _Seen) -> None:
        for gvk, version in seen.marks.items():
            if gvk in self._held:
                await self._until(gvk, lambda gvk=gvk, version=version: self._marks.get(gvk, 0) >= version)  # type: ignore[misc]
        for obj in seen.deleted:
            if GVK.of(obj) in self._held:
                await self._until(GVK.of(obj), lambda obj=obj: self._saw_deletion(obj))  # type: ignore[misc]

    def _saw_deletion(self, obj: Object) -> bool:
        held = self._held[GVK.of(obj)].metadata(Key(namespace(obj), name(obj)))
        if held is None or held.uid != uid(obj):
            return True
        changed = held.resource_version != obj["metadata"].get("resourceVersion")
        return held.deletion_timestamp is not None and changed

    def _version(self, gvk: GVK, key: Key) -> str | None:
        held = self._held[gvk].metadata(key)
        return held.resource_version if held else None

    async def _until(self, gvk: GVK, test: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(_SEEN_TIMEOUT):
                while not test():
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.setdefault(gvk, []).append(waiter)
                    await waiter
        except TimeoutError:
            log.warning("the watch of %s is slow: going on without having seen a write", gvk)

    def _mark(self, gvk: GVK) -> Callable[[Change], None]:
        # Every change of one kind arrives in order, so one number says how far the cache is.
        def mark(change: Change) -> None:
            self._marks[gvk] = max(self._marks.get(gvk, 0), _number(change.subject.metadata.resource_version))
            for waiter in self._waiting.pop(gvk, ()):
                if not waiter.done():
                    waiter.set_result(None)

        return mark

    # --- life ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write Events while the context lasts; end every watch with it."""
        self.events.start()
        try:
            yield
        finally:
            await self.events.stop(flush_seconds=1.0)
            await self.caches.stop()
            self._held.clear()


class _Seen:
    """What the caches must have seen before a plan counts as carried out."""

    def __init__(self) -> None:
        self.marks: dict[GVK, int] = {}
        self.written: dict[str, Object] = {}
        self.deleted: list[Object] = []

    def version(self, obj: Object) -> None:
        gvk, version = GVK.of(obj), obj["metadata"].get("resourceVersion") or ""
        self.written[uid(obj)] = obj
        self.marks[gvk] = max(self.marks.get(gvk, 0), _number(version))


def _number(version: str) -> int:
    # Kubernetes promises by now that resource versions of one kind can be compared as numbers.
    return int(version) if version.isascii() and version.isdigit() else 0
