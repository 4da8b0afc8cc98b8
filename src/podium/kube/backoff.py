"""How long to wait after the nth failure: exponential, bounded, and spread by chance.

Without the spread, clients that failed together would come back together.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

# A generator of our own: a program may seed the shared one, and processes seeded alike would move in step.
CHANCE = random.Random().random


@dataclass(frozen=True, slots=True)
class Backoff:
    """A policy; it holds no state, so one instance serves every key and every task."""

    initial: float
    maximum: float
    factor: float = 2.0
    # A delay d becomes something in [d, d * (1 + jitter)), and never more than the maximum.
    jitter: float = 0.2

    def delay(self, failures: int, chance: Callable[[], float] = CHANCE) -> float:
        """Seconds to wait after this many failures in a row; the first failure is number 1."""
        # The exponent is bounded: a key that has failed for a week must not overflow a float.
        delay = self.initial * self.factor ** min(max(failures - 1, 0), 64)
        return min(delay * (1.0 + self.jitter * chance()), self.maximum)


# A failed reconcile: quick at first (most failures are conflicts that heal by themselves), then rare.
RETRY = Backoff(initial=0.005, maximum=1000.0)
# A broken list or watch: what client-go waits, so that a restarting API server is not overrun.
RECONNECT = Backoff(initial=0.8, maximum=30.0, jitter=1.0)
