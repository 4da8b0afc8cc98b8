"""Where a controller's keys come from: changes of any watched kind, mapped to the objects they concern.

A source knows what to watch and which keys a change means; predicates keep out changes that cannot matter.
What was there before the controller started is enqueued behind everything that changes now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from podium.api.kinds import GVK, Key
from podium.kube.cache import Cache, Caches
from podium.kube.queue import Priority, WorkQueue
from podium.kube.store import Change, Held

Predicate = Callable[[Change], bool]
Mapper = Callable[[Held], Iterable[Key]]


class Source(Protocol):
    """Something that puts keys into a queue."""

    def start(self, caches: Caches, queue: WorkQueue[Key]) -> None: ...

    async def synced(self, timeout: float | None) -> None: ...

    def resync(self) -> None: ...

    async def stop(self) -> None: ...


class Watched:
    """A source fed by the cache of one target."""

    def __init__(
        self,
        gvk: GVK,
        mapper: Mapper,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        predicates: Iterable[Predicate] = (),
        resynced: bool = False,
    ) -> None:
        self.gvk = gvk
        self._mapper = mapper
        self._target = {"namespace": namespace, "labels": labels, "fields": fields}
        self._metadata_only = metadata_only
        self._predicates = tuple(predicates)
        self._resynced = resynced
        self._caches: Caches | None = None
        self._cache: Cache | None = None
        self._queue: WorkQueue[Key] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        """Begin to enqueue."""
        self._caches, self._queue = caches, queue
        self._cache = caches.acquire(self.gvk, **self._target, metadata_only=self._metadata_only)
        self._unsubscribe = self._cache.on_change(self._enqueue)

    async def synced(self, timeout: float | None) -> None:
        """Wait until all that existed has been enqueued."""
        if self._caches is not None and self._cache is not None:
            await self._caches.wait_synced(self._cache, timeout)

    def resync(self) -> None:
        """Enqueue everything again, behind all that changes."""
        if self._resynced and self._cache is not None and self._queue is not None:
            for held in self._cache.select():
                for key in self._mapper(held):
                    self._queue.add(key, priority=Priority.BACKGROUND)

    async def stop(self) -> None:
        """Enqueue no more and let go of the cache."""
        self._unsubscribe()
        if self._caches is not None and self._cache is not None:
            cache, self._cache = self._cache, None
            await self._caches.release(cache)

    def _enqueue(self, change: Change) -> None:
        if self._queue is None or not all(predicate(change) for predicate in self._predicates):
            return
        priority = Priority.BACKGROUND if change.initial else Priority.NORMAL
        for key in self._keys(change):
            self._queue.add(key, priority=priority)

    def _keys(self, change: Change) -> Iterable[Key]:
        if change.old is None or change.new is None:
            return self._mapper(change.subject)
        # Both sides of a change count: an object that moved from one owner to another concerns both.
        new = list(self._mapper(change.new))
        return [*new, *(key for key in self._mapper(change.old) if key not in new)]


def for_kind(
    gvk: GVK,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    metadata_only: bool = False,
    predicates: Iterable[Predicate] = (),
) -> Watched:
    """The objects that the controller is about; they are what a resync repeats."""
    return Watched(
        gvk,
        lambda held: (held.key,),
        namespace=namespace,
        labels=labels,
        fields=fields,
        metadata_only=metadata_only,
        predicates=predicates,
        resynced=True,
    )


def owns(
    gvk: GVK,
    owner: GVK,
    *,
    owner_namespaced: bool = True,
    only_controller: bool = True,
    namespace: str = "",
    labels: str = "",
    metadata_only: bool = False,
    predicates: Iterable[Predicate] = (),
) -> Watched:
    """Objects made by the controller: a change enqueues the owner that their owner reference names."""

    def owners(held: Held) -> Iterator[Key]:
        for reference in held.metadata.owners:
            # The version may differ: an owner keeps its identity when its API grows up.
            if reference.kind != owner.kind or reference.group != owner.group:
                continue
            if reference.controller or not only_controller:
                yield Key(held.metadata.namespace if owner_namespaced else "", reference.name)

    return Watched(
        gvk,
        owners,
        namespace=namespace,
        labels=labels,
        metadata_only=metadata_only,
        predicates=predicates,
    )


def watches(
    gvk: GVK,
    mapper: Mapper,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    metadata_only: bool = False,
    predicates: Iterable[Predicate] = (),
) -> Watched:
    """Any other kind, with a function that says which keys a changed object concerns."""
    return Watched(
        gvk,
        mapper,
        namespace=namespace,
        labels=labels,
        fields=fields,
        metadata_only=metadata_only,
        predicates=predicates,
    )


class Channel:
    """A source fed by code: call `send` with a key from the event loop."""

    def __init__(self) -> None:
        self._queue: WorkQueue[Key] | None = None
        self._early: list[tuple[Key, int, float]] = []

    def send(self, key: Key, *, priority: int = Priority.NORMAL, after: float = 0.0) -> None:
        """Enqueue a key; what is sent before the controller starts is kept for it."""
        if self._queue is None:
            self._early.append((key, priority, after))
        else:
            self._queue.add(key, priority=priority, after=after)

    def start(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        """Begin to enqueue."""
        self._queue = queue
        early, self._early = self._early, []
        for key, priority, after in early:
            queue.add(key, priority=priority, after=after)

    async def synced(self, timeout: float | None) -> None:
        """There is nothing to wait for."""

    def resync(self) -> None:
        """There is nothing to repeat."""

    async def stop(self) -> None:
        """Keep what is sent from now on for the next start."""
        self._queue = None


def generation_changed(change: Change) -> bool:
    """Keep out updates that left the spec alone, such as those of the status."""
    return _differs(change, lambda held: (held.metadata.generation, held.metadata.deletion_timestamp))


def labels_changed(change: Change) -> bool:
    """Keep out updates that left the labels alone."""
    return _differs(change, lambda held: held.metadata.label_map or {})


def annotations_changed(change: Change) -> bool:
    """Keep out updates that left the annotations alone."""
    return _differs(change, lambda held: held.metadata.annotation_map or {})


def any_of(*predicates: Predicate) -> Predicate:
    """Let through what one of these lets through."""
    return lambda change: any(predicate(change) for predicate in predicates)


def all_of(*predicates: Predicate) -> Predicate:
    """Let through what all of these let through."""
    return lambda change: all(predicate(change) for predicate in predicates)


def none_of(*predicates: Predicate) -> Predicate:
    """Let through what none of these lets through."""
    return lambda change: not any(predicate(change) for predicate in predicates)


def on_objects(test: Callable[[Held], bool]) -> Predicate:
    """Let through changes where the object passes a test before or after."""
    return lambda change: any(held is not None and test(held) for held in (change.old, change.new))


def _differs(change: Change, aspect: Callable[[Held], object]) -> bool:
    # Objects that come and go always matter.
    return change.old is None or change.new is None or aspect(change.old) != aspect(change.new)
