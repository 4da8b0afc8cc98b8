"""A keyed work loop: each key is looked at once at a time, and again after a failure, later each time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podium.apiserver import errors
from podium.apiserver.store import StoreFailed

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

_FIRST_RETRY, _LONGEST_RETRY = 0.05, 30.0


class Loop(Generic[K]):
    """Runs `work(key)` for every key added; `work` answers seconds to look again, or None."""

    def __init__(self, name: str, work: Callable[[K], Awaitable[float | None]]) -> None:
        self._name = name
        self._work = work
        self._waiting: dict[K, None] = {}
        self._wake = asyncio.Event()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def add(self, key: K, after: float = 0) -> None:
        """Look at a key, now or after some seconds; adding it again changes nothing."""
        if after > 0:
            if key not in self._timers:
                self._timers[key] = asyncio.get_running_loop().call_later(after, self._due, key)
            return
        self._waiting[key] = None
        self._wake.set()

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    @property
    def idle(self) -> bool:
        return not self._waiting

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                await self._wake.wait()
                while self._waiting:
                    key = next(iter(self._waiting))
                    del self._waiting[key]
                    await self._one(key)
                self._wake.clear()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _one(self, key: K) -> None:
        try:
            again = await self._work(key)
        except errors.StatusError as error:
            # Somebody else was faster or the object is gone; both heal by looking again.
            self._retry(key, error)
        except StoreFailed as error:
            log.warning("%s: %s: %s", self._name, key, error)
            self._retry(key, error)
        except Exception as error:
            log.exception("%s: %s failed", self._name, key)
            self._retry(key, error)
        else:
            self._failures.pop(key, None)
            if again is not None:
                self.add(key, again)

    def _retry(self, key: K, error: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(_LONGEST_RETRY, _FIRST_RETRY * 2 ** min(count, 12))
        log.debug("%s: %s: %s; again in %.2f s", self._name, key, error, delay)
        self.add(key, delay)
