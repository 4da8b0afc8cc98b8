"""A controller: sources fill its queue with keys, workers call its reconcile function with one key at a time.

A request is a key and nothing else; what happened does not matter, only what is. A reconcile ends in one of
four ways: done, again after some time, failed (retried with growing delays), failed for good (TerminalError).
Workers start when every source has told of what exists, so the first reconcile sees the whole picture.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podium.api.kinds import Key
from podium.kube.backoff import CHANCE, RETRY, Backoff
from podium.kube.cache import Caches
from podium.kube.clock import Clock, SystemClock, Timer, timeout_after
from podium.kube.errors import KubeError
from podium.kube.metrics import Metrics
from podium.kube.queue import ShutDown, WorkQueue
from podium.kube.source import Source

logger = logging.getLogger(__name__)

# Reconciles that never wait for anything would keep the event loop to themselves.
_YIELD_EVERY = 32


@dataclass(frozen=True, slots=True)
class Result:
    """A reconcile that went well and wants to be called again."""

    requeue_after: float


class TerminalError(Exception):
    """A failure that waiting cannot heal: not retried until something changes."""


Reconcile = Callable[[Key], Awaitable[Result | None]]


class Controller:
    """Calls `reconcile` for every key that its sources give, never twice at once for the same key."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        sources: Sequence[Source],
        *,
        workers: int = 1,
        backoff: Backoff = RETRY,
        reconcile_timeout: float | None = None,
        resync_every: float | None = None,
        sync_timeout: float | None = 120.0,
        drain_seconds: float = 30.0,
        needs_leader: bool = True,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        if workers < 1:
            raise ValueError(f"controller {name!r} needs at least one worker")
        self.name = name
        # Whether only the elected process may run it; whoever assembles the process sees to that.
        self.needs_leader = needs_leader
        self._reconcile = reconcile
        self._sources = tuple(sources)
        self._workers = workers
        self._backoff = backoff
        self._reconcile_timeout = reconcile_timeout
        self._resync_every = resync_every
        self._sync_timeout = sync_timeout
        self._drain_seconds = drain_seconds
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._chance = chance
        self._tasks: list[asyncio.Task[None]] = []
        self._resync_timer: Timer | None = None
        self._new_queue()

    @property
    def running(self) -> bool:
        """Whether the workers are at work."""
        return any(not task.done() for task in self._tasks)

    async def start(self, caches: Caches) -> None:
        """Subscribe to the sources, wait for what exists, put the workers to work."""
        if self.queue.closed:
            self._new_queue()
        try:
            for source in self._sources:
                source.start(caches, self.queue)
            for source in self._sources:
                await source.synced(self._sync_timeout)
        except BaseException:
            await self.stop()
            raise
        loop = asyncio.get_running_loop()
        for number in range(self._workers):
            self._tasks.append(loop.create_task(self._work(), name=f"{self.name} worker {number}"))
        self._metrics.max_workers.set(self._workers, self.name)
        self._plan_resync()

    async def stop(self, drain_seconds: float | None = None) -> None:
        """Take no more keys, let running reconciles finish within the drain time, cancel the rest."""
        patience = self._drain_seconds if drain_seconds is None else drain_seconds
        if self._resync_timer is not None:
            self._resync_timer.cancel()
            self._resync_timer = None
        self.queue.shut_down()
        tasks, self._tasks = self._tasks, []
        try:
            async with timeout_after(self._clock, patience):
                await self.queue.idle()
        except TimeoutError:
            stuck = ", ".join(str(key) for key in self.queue.held)
            logger.warning("controller %s: cancelling what did not finish in time: %s", self.name, stuck)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            for source in self._sources:
                await source.stop()

    def _new_queue(self) -> None:
        self.queue: WorkQueue[Key] = WorkQueue(
            self.name, backoff=self._backoff, clock=self._clock, metrics=self._metrics, chance=self._chance
        )
        self._seconds = self._metrics.reconcile_seconds.at(self.name)
        self._metrics.active_workers.read_by(lambda: float(len(list(self.queue.held))), self.name)

    def _plan_resync(self) -> None:
        if self._resync_every is None:
            return
        # Spread by a tenth, so that the controllers of a process do not all wake in the same moment.
        due = self._clock.monotonic() + self._resync_every * (1.0 + 0.1 * self._chance())
        self._resync_timer = self._clock.call_at(due, self._resync)

    def _resync(self) -> None:
        for source in self._sources:
            source.resync()
        self._plan_resync()

    async def _work(self) -> None:
        since_yield = 0
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                await self._process(key)
            finally:
                # Also when cancelled: the queue must not believe for ever that somebody holds the key.
                self.queue.done(key)
            since_yield += 1
            if since_yield == _YIELD_EVERY:
                since_yield = 0
                await asyncio.sleep(0)

    async def _process(self, key: Key) -> None:
        started = self._clock.monotonic()
        try:
            result = await self._call(key)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Something that the reconcile awaited was cancelled, not this worker: a failure like any other.
            self._failed(key, error)
        except Exception as error:  # noqa: BLE001 - logged with the key by _failed
            self._failed(key, error)
        else:
            self.queue.forget(key)
            if result is None:
                self._metrics.reconciles.inc(self.name, "success")
            else:
                self._metrics.reconciles.inc(self.name, "requeue_after")
                self.queue.add(key, priority=self.queue.priority(key), after=result.requeue_after)
        finally:
            self._seconds.observe(self._clock.monotonic() - started)

    async def _call(self, key: Key) -> Result | None:
        if self._reconcile_timeout is None:
            return await self._reconcile(key)
        async with timeout_after(self._clock, self._reconcile_timeout):
            return await self._reconcile(key)

    def _failed(self, key: Key, error: BaseException) -> None:
        metrics = self._metrics
        metrics.reconciles.inc(self.name, "error")
        metrics.reconcile_errors.inc(self.name)
        if isinstance(error, TerminalError):
            metrics.terminal_errors.inc(self.name)
            self.queue.forget(key)
            logger.error("controller %s: %s: %s (not retried)", self.name, key, error)
            return
        delay = self.queue.retry(key)
        if isinstance(error, TimeoutError):
            metrics.reconcile_timeouts.inc(self.name)
            logger.warning("controller %s: %s: timed out, again in %.3g s", self.name, key, delay)
        elif isinstance(error, KubeError):
            logger.warning("controller %s: %s: %s, again in %.3g s", self.name, key, error, delay)
        else:
            # Not foreseen by whoever wrote the reconcile: the trace is what they will ask for.
            metrics.panics.inc(self.name)
            logger.error("controller %s: %s: again in %.3g s after", self.name, key, delay, exc_info=error)
