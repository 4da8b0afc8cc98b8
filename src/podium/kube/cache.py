"""What the cluster holds, as far as this process has heard: read without asking the server.

A cache follows one target and is shared by everybody who wants the same; the first user starts its watch, the
last one to leave ends it. Reads may be a moment behind the server and never go back in time. Handlers are
called in the event loop, in the order in which the server made the changes, and each change exactly once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from podium.api.kinds import GVK, Key, Object
from podium.api.selectors import LabelSelector
from podium.kube.backoff import CHANCE, RECONNECT, Backoff
from podium.kube.clock import Clock, SystemClock, timeout_after
from podium.kube.errors import KubeError
from podium.kube.metrics import Metrics
from podium.kube.reflector import ListWatch, Reflector, ServerAbilities, Target
from podium.kube.store import Change, Held, IndexFunction, Listing, Metadata, Store

logger = logging.getLogger(__name__)

Handler = Callable[[Change], None]


class CacheStopped(KubeError):
    """The cache follows its resource no longer."""


class NotSynced(KubeError):
    """The first list did not arrive in time; the message says why."""


class Cache:
    """The objects of one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._store = Store()
        self._handlers: list[Handler] = []
        self._listed = False
        self._synced = asyncio.Event()
        self._stopped = False
        self._task: asyncio.Task[None] | None = None
        self._reflector: Reflector | None = None

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, key: Key) -> bool:
        return self._store.get(key.namespace, key.name) is not None

    @property
    def is_synced(self) -> bool:
        """Whether the first list has arrived."""
        return self._synced.is_set() and not self._stopped

    @property
    def last_error(self) -> Exception | None:
        """Why the resource cannot be followed at the moment; None while it can."""
        return self._reflector.last_error if self._reflector else None

    async def synced(self) -> None:
        """Wait until the first list has arrived and every handler has heard of it."""
        await self._synced.wait()
        if self._stopped:
            raise CacheStopped(f"the cache of {self.target} was stopped")

    def get(self, key: Key) -> Object | None:
        """The object of this name, as the caller's own copy."""
        held = self._store.get(key.namespace, key.name)
        return None if held is None else held.object()

    def held(self, key: Key) -> Held | None:
        """The object of this name, not decoded."""
        return self._store.get(key.namespace, key.name)

    def metadata(self, key: Key) -> Metadata | None:
        """The metadata of the object of this name."""
        held = self._store.get(key.namespace, key.name)
        return None if held is None else held.metadata

    def list(
        self,
        namespace: str = "",
        labels: LabelSelector | str = "",
        *,
        index: tuple[str, str] | None = None,
    ) -> list[Object]:
        """The objects that match; `index` is the name of an index and the value to find in it."""
        return [held.object() for held in self._store.select(namespace, labels, index)]

    def select(
        self,
        namespace: str = "",
        labels: LabelSelector | str = "",
        *,
        index: tuple[str, str] | None = None,
    ) -> Iterator[Held]:
        """Like `list`, not decoded."""
        return self._store.select(namespace, labels, index)

    def keys(self) -> Iterator[Key]:
        """The keys of all objects."""
        return (held.key for held in list(self._store))

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep objects findable by the values that a function gives for each."""
        self._store.add_index(name, function)

    def index_values(self, name: str) -> list[str]:  # type: ignore[valid-type]
        """Every value that some object has in an index."""
        return self._store.index_values(name)

    def on_change(self, handler: Handler) -> Callable[[], None]:
        """Call the handler for all that is held, then for every change; answers a function that ends it."""
        if self._listed:
            for held in list(self._store):
                _call(handler, Change(None, held, initial=True))
        self._handlers.append(handler)

        def remove() -> None:
            with suppress(ValueError):
                self._handlers.remove(handler)

        return remove

    def start(self, reflector: Reflector) -> None:
        """Begin to follow the resource; done by `Caches`."""
        self._reflector = reflector
        self._task = asyncio.get_running_loop().create_task(reflector.run(), name=f"watch {self.target}")

    async def stop(self) -> None:
        """End the watch; whoever still waits for the first list gets CacheStopped."""
        self._stopped = True
        self._handlers.clear()
        self._synced.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def replace(self, listing: Listing) -> None:
        """Take in a list; called by the reflector."""
        initial, self._listed = not self._listed, True
        self._tell(self._store.replace(listing, initial=initial))
        self._synced.set()

    def put(self, held: Held) -> None:
        """Take in a new state of an object; called by the reflector."""
        self._tell(self._store.put(held))

    def remove(self, last: Held) -> None:
        """Take out an object; called by the reflector."""
        self._tell(self._store.remove(last))

    def _tell(self, changes: Sequence[Change]) -> None:
        # A handler that joins during these calls has been shown the store, which holds the changes already.
        handlers = tuple(self._handlers)
        for change in changes:
            for handler in handlers:
                _call(handler, change)


def _call(handler: Handler, change: Change) -> None:
    try:
        handler(change)
    except Exception:
        # The other handlers and later changes must not suffer.
        logger.exception("handler failed on %s %s", change.subject.gvk, change.subject.key)


@dataclass(slots=True)
class _Shared:
    cache: Cache
    users: int = 0


class Caches:
    """The caches of one client, each shared by all who ask for the same target."""

    def __init__(
        self,
        client: ListWatch,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        backoff: Backoff = RECONNECT,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._backoff = backoff
        self._chance = chance
        self._abilities = ServerAbilities()
        self._shared: dict[Target, _Shared] = {}

    def acquire(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Cache:
        """The cache of this target, started if nobody used it yet; give it back with `release`."""
        target = Target(gvk, namespace, labels, fields, metadata_only)
        shared = self._shared.get(target)
        if shared is None:
            shared = self._shared[target] = _Shared(self._start(target))
        shared.users += 1
        return shared.cache

    async def release(self, cache: Cache) -> None:
        """Give a cache back; the last user to do so ends its watch."""
        shared = self._shared.get(cache.target)
        if shared is None or shared.cache is not cache:
            return
        shared.users -= 1
        if shared.users == 0:
            del self._shared[cache.target]
            await cache.stop()

    @asynccontextmanager
    async def open(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[Cache]:
        """A synced cache for the duration of a block."""
        cache = self.acquire(gvk, namespace, labels=labels, fields=fields, metadata_only=metadata_only)
        try:
            await self.wait_synced(cache, timeout)
            yield cache
        finally:
            await self.release(cache)

    async def wait_synced(self, cache: Cache, timeout: float | None = None) -> None:
        """Wait for the first list; NotSynced says what stood in the way after `timeout` seconds."""
        if timeout is None:
            await cache.synced()
            return
        try:
            async with timeout_after(self._clock, timeout):
                await cache.synced()
        except TimeoutError:
            why = cache.last_error or "no answer"
            raise NotSynced(f"{cache.target} could not be listed within {timeout:g} s: {why}") from None

    def all_synced(self) -> bool:
        """Whether every cache in use has its first list."""
        return all(shared.cache.is_synced for shared in self._shared.values())

    async def stop(self) -> None:
        """End every watch, whoever uses it."""
        shared, self._shared = list(self._shared.values()), {}
        for entry in shared:
            await entry.cache.stop()

    def _start(self, target: Target) -> Cache:
        cache = Cache(target)
        self._metrics.cached_objects.read_by(lambda: self._objects_of(target.kind), target.kind)
        cache.start(
            Reflector(
                self._client,
                target,
                cache,
                clock=self._clock,
                metrics=self._metrics,
                backoff=self._backoff,
                abilities=self._abilities,
                chance=self._chance,
            )
        )
        return cache

    def _objects_of(self, kind: str) -> float:
        return float(sum(len(s.cache) for target, s in self._shared.items() if target.kind == kind))
