"""The work queue: each key at most once, never held by two workers, urgent keys first.

A key is in at most one of these places: ready (waiting for a worker) or held (by a worker); a held key that
is added again is remembered and becomes ready when it is done. Beside that a key may have one delayed add,
which does not vanish when the key is processed earlier for another reason: a promised wake-up always comes.
Everything happens in one event loop between two awaits, so there is nothing to lock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Generic, TypeVar

from podium.kube.backoff import CHANCE, RETRY, Backoff
from podium.kube.clock import Clock, SystemClock, Timer
from podium.kube.metrics import Metrics

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """Which keys go first; strictly, so background work may have to wait for a quiet moment."""

    BACKGROUND = -100  # first lists and resyncs: nobody is waiting
    NORMAL = 0  # something changed


class ShutDown(Exception):
    """The queue is shut down and holds nothing more for the worker that asked."""


class WorkQueue(Generic[K]):
    """De-duplicating queue of keys with priorities, delays and per-key back-off."""

    def __init__(
        self,
        name: str = "",
        *,
        backoff: Backoff = RETRY,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        self.name = name
        self._backoff = backoff
        self._clock = clock or SystemClock()
        self._chance = chance
        # Levels in descending order; each maps a key to when it became ready, oldest first.
        self._levels: list[tuple[int, OrderedDict[K, float]]] = []
        self._ready: dict[K, int] = {}
        self._held: dict[K, tuple[float, int]] = {}
        self._again: dict[K, int] = {}
        self._delayed: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._heap_entries = 0
        self._timer: tuple[float, Timer] | None = None
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._closed = False
        self._count(metrics or Metrics())

    def __len__(self) -> int:
        """How many keys wait for a worker; held and delayed ones do not count."""
        return len(self._ready)

    @property
    def held(self) -> Iterator[K]:
        """The keys that workers hold."""
        return iter(self._held)

    @property
    def delayed(self) -> int:
        """How many keys have an add that is not due yet."""
        return len(self._delayed)

    @property
    def closed(self) -> bool:
        """Whether the queue takes no more keys."""
        return self._closed

    def add(self, key: K, *, priority: int = Priority.NORMAL, after: float = 0.0) -> None:
        """Have the key processed, now or after some seconds; the most urgent of its pending adds counts."""
        if self._closed:
            return
        if after > 0:
            self._delay(key, priority, self._clock.monotonic() + after)
            return
        self._adds.inc(*self._labels)
        self._admit(key, priority)

    def retry(self, key: K, *, priority: int | None = None) -> float:
        """Add the key after its back-off, which grows with each retry until `forget`; answers the delay."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        self._retries.inc(*self._labels)
        delay = self._backoff.delay(failures, self._chance)
        if priority is None:
            priority = self._held[key][1] if key in self._held else Priority.NORMAL
        self.add(key, priority=priority, after=delay)
        return delay

    def failures(self, key: K) -> int:
        """How often the key was retried since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the key's back-off."""
        self._failures.pop(key, None)

    def priority(self, key: K) -> int:
        """The priority with which a worker holds this key."""
        return self._held[key][1]

    async def get(self) -> K:
        """Wait for a key and hold it until `done`; raises ShutDown when there will be no more."""
        while not self._ready:
            if self._closed:
                raise ShutDown
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # A wake-up that this worker can no longer use belongs to the next one.
                if getter.done() and not getter.cancelled():
                    self._wake()
                elif getter in self._getters:
                    self._getters.remove(getter)
                raise
        return self._take()

    def done(self, key: K) -> None:
        """Let go of a key; if it was added meanwhile, it is ready again at once."""
        started, _ = self._held.pop(key)
        self._work_seconds.observe(self._clock.monotonic() - started)
        again = self._again.pop(key, None)
        if again is not None:
            self._admit(key, again)
        if not self._held:
            self._settle(self._idle_waiters)

    def shut_down(self, *, drain: bool = False) -> None:
        """Take no more keys. With `drain` those added so far are still handed out, else dropped."""
        self._closed = True
        self._delayed.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        if not drain:
            self._levels.clear()
            self._ready.clear()
            self._again.clear()
        self._settle(self._getters)

    async def idle(self) -> None:
        """Wait until no worker holds a key."""
        while self._held:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    def _admit(self, key: K, priority: int) -> None:
        if key in self._held:
            self._again[key] = max(priority, self._again.get(key, priority))
            return
        present = self._ready.get(key)
        if present is not None and present >= priority:
            return
        # A key that rises keeps the moment since which it waits, for the metric's sake.
        since = self._clock.monotonic() if present is None else self._level(present).pop(key)
        self._ready[key] = priority
        self._level(priority)[key] = since
        if present is None:
            self._wake()

    def _take(self) -> K:
        keys = next(keys for _, keys in self._levels if keys)
        key, since = keys.popitem(last=False)
        now = self._clock.monotonic()
        self._queue_seconds.observe(now - since)
        self._held[key] = (now, self._ready.pop(key))
        if self._ready:
            self._wake()
        return key

    def _level(self, priority: int) -> OrderedDict[K, float]:
        for level, keys in self._levels:
            if level == priority:
                return keys
        keys = OrderedDict()
        self._levels.append((priority, keys))
        self._levels.sort(key=lambda entry: -entry[0])
        return keys

    def _delay(self, key: K, priority: int, due: float) -> None:
        present = self._delayed.get(key)
        if present is not None:
            priority = max(priority, present[1])
            if present[0] <= due:
                self._delayed[key] = (present[0], priority)
                return
        self._delayed[key] = (due, priority)
        # The count keeps keys of equal time apart: they need not be comparable.
        self._heap_entries += 1
        heappush(self._heap, (due, self._heap_entries, key))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer[0] <= due:
                return
            self._timer[1].cancel()
        self._timer = (due, self._clock.call_at(due, self._add_due))

    def _add_due(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heappop(self._heap)
            delayed = self._delayed.get(key)
            # An entry that was overtaken by an earlier one for the same key is only litter.
            if delayed is not None and delayed[0] == due:
                del self._delayed[key]
                self.add(key, priority=delayed[1])
        self._set_timer()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    @staticmethod
    def _settle(waiters: list[asyncio.Future[None]] | deque[asyncio.Future[None]]) -> None:
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        waiters.clear()

    def _count(self, metrics: Metrics) -> None:
        # controller-runtime repeats the name as a second label; dashboards use either.
        self._labels = labels = (self.name, self.name)
        self._adds, self._retries = metrics.queue_adds, metrics.queue_retries
        self._queue_seconds = metrics.queue_seconds.at(*labels)
        self._work_seconds = metrics.work_seconds.at(*labels)
        metrics.queue_depth.read_by(lambda: float(len(self._ready)), *labels)
        metrics.queue_unfinished.read_by(lambda: sum(self._ages()), *labels)
        metrics.queue_longest.read_by(lambda: max(self._ages(), default=0.0), *labels)

    def _ages(self) -> Iterator[float]:
        now = self._clock.monotonic()
        return (now - started for started, _ in self._held.values())
