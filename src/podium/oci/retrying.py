"""When to try again: after a reset, a 429 or a 5xx, a few times, within a budget of waiting.

The work itself raises TryAgain; everything else it raises is final. What is tried again must be safe to
repeat: reads, and uploads, which a registry takes only under the digest that we name.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from podium.oci.errors import OCIError
from podium.oci.settings import Retries
from podium.oci.transport import Interrupted

Result = TypeVar("Result")

# A generator of our own: processes that a program has seeded alike would come back in step.
_CHANCE = random.Random().random


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as retries and tokens see it; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class TryAgain(Exception):
    """Work failed in a way that may pass; `wait` is what the registry asked for, if it did."""

    def __init__(self, error: OCIError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class Attempts:
    """The attempts at one piece of work."""

    def __init__(self, retries: Retries, clock: Clock) -> None:
        self._retries = retries
        self._clock = clock
        self._failures = 0
        self._waited = 0.0

    def progressed(self) -> None:
        """Something was achieved: a transfer that moves on may break more often than one that does not."""
        self._failures = 0

    async def after(self, failure: TryAgain | Interrupted) -> None:
        """Wait before the next attempt; raises the failure's own error if there must be none."""
        error = failure.error if isinstance(failure, TryAgain) else failure
        asked = failure.wait if isinstance(failure, TryAgain) else None
        self._failures += 1
        retries = self._retries
        if self._failures >= retries.attempts:
            raise error
        spread = retries.first_delay * 2 ** (self._failures - 1) * (1 + 0.5 * _CHANCE())
        delay = min(spread, retries.longest_delay) if asked is None else asked
        if self._waited + delay > retries.budget:
            raise error
        self._waited += delay
        await self._clock.sleep(delay)

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of the work, tried as often as is allowed."""
        while True:
            try:
                return await work()
            except (TryAgain, Interrupted) as failure:
                await self.after(failure)


def retry_after(text: str, now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or as a date."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
