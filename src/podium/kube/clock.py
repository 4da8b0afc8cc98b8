"""Where the runtime gets its time, so that tests can move it by hand.

The monotonic time counts seconds in which the machine was suspended, where the platform can tell: a lease
goes on expiring while a laptop sleeps. Timers are the event loop's own and may fire late after a suspension,
so whoever must not be late (a lease holder) compares `monotonic()` with a deadline and trusts no timer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol


class Timer(Protocol):
    """A pending call that can be taken back."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Monotonic seconds, the wall clock, and waiting."""

    def monotonic(self) -> float: ...

    def wall(self) -> datetime: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer: ...

    async def sleep(self, seconds: float) -> None: ...


_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class SystemClock:
    """The time of this machine and the timers of the running event loop."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment, suspension included where the platform knows it."""
        return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)

    def wall(self) -> datetime:
        """The time of day in UTC; never compared with a remote one."""
        return datetime.now(UTC)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call once `monotonic()` has reached `when`."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self.monotonic()), callback)

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def timeout_after(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Like `asyncio.timeout`, on the given clock: the body ends in TimeoutError after so many seconds."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        # Rescheduling to the loop's present makes asyncio's own timeout expire at once, with its exact rules
        # for telling our cancellation from a stranger's.
        timer = clock.call_at(clock.monotonic() + seconds, lambda: limit.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


async def sleep_until(clock: Clock, when: float) -> None:
    """Suspend the calling task until `monotonic()` has reached `when`."""
    # Timers may be a little early, so one may not be enough.
    while clock.monotonic() < when:
        woken = asyncio.Event()
        timer = clock.call_at(when, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()


class QuietLimit:
    """`async with` body that ends in TimeoutError when `touch` is not called for some seconds.

    Touching only notes the time: one timer is set per limit, not one per touch.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._last = clock.monotonic()
        self._timeout = asyncio.timeout(None)
        self._timer: Timer | None = None

    def touch(self, seconds: float | None = None) -> None:
        """There was a sign of life; from now on the limit may be another."""
        self._last = self._clock.monotonic()
        if seconds is not None and seconds != self._seconds:
            self._seconds = seconds
            self._arm()

    async def __aenter__(self) -> QuietLimit:
        await self._timeout.__aenter__()
        self._arm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_at(self._last + self._seconds, self._check)

    def _check(self) -> None:
        if self._clock.monotonic() < self._last + self._seconds:
            self._arm()
        else:
            self._timeout.reschedule(asyncio.get_running_loop().time())
