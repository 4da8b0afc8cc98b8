"""A clock that moves only when a test says so, and a way to let every task run until nothing is left to do.

Deterministic: timers fire in the order of their time, then of their making, and between two timers the event
loop is run until it is idle. Nothing here waits for the real clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

START = datetime(2030, 1, 1, tzinfo=UTC)


class VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """Implements `podium.kube.clock.Clock`; `wall_offset` makes a machine whose time of day is wrong."""

    def __init__(self, wall_offset: float = 0.0) -> None:
        self.now = 1000.0
        self.wall_offset = wall_offset
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._order = count()

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.now + self.wall_offset)

    def call_at(self, when: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heappush(self._timers, (when, next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.call_at(self.now + max(seconds, 0.0), wake)
        try:
            await woken
        finally:
            timer.cancel()

    async def advance(self, seconds: float) -> None:
        """Let time pass: every timer that falls due is called at its own moment."""
        end = self.now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heappop(self._timers)
            if timer.cancelled:
                continue
            self.now = max(self.now, when)
            timer.callback()
            await settle()
        self.now = end

    async def pause(self, seconds: float) -> None:
        """Time passes while the process stands still: timers fire late, all at the end."""
        self.now += seconds

    @property
    def next_timer(self) -> float | None:
        """Seconds until something would happen by itself."""
        live = [when for when, _, timer in self._timers if not timer.cancelled]
        return min(live) - self.now if live else None


async def settle() -> None:
    """Run the event loop until no task can go on without time passing."""
    loop = asyncio.get_running_loop()
    for _ in range(100_000):
        if not loop._ready:  # type: ignore[attr-defined]
            return
        await asyncio.sleep(0)
    raise AssertionError("the tasks never come to rest")
