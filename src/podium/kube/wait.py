"""Waiting for objects to become ready or to go away, by watching them.

Several objects of one kind in one namespace share a watch. A state counts only if it is at least as new as
what the caller applied: a cache may still hold the old object, which was ready, when the wait begins.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podium.api.kinds import GVK, Object
from podium.kube.apply import Ref
from podium.kube.cache import Cache, Caches
from podium.kube.clock import Clock, SystemClock, timeout_after
from podium.kube.probes import Phase, Probe, Verdict, probe
from podium.kube.store import Held


@dataclass(frozen=True, slots=True)
class Readiness:
    """What was found about each object when the wait ended."""

    verdicts: dict[Ref, Verdict]

    @property
    def ready(self) -> bool:
        """Whether everything is ready."""
        return all(verdict.ready for verdict in self.verdicts.values())

    @property
    def failed(self) -> bool:
        """Whether something cannot become ready by itself."""
        return any(verdict.phase is Phase.FAILED for verdict in self.verdicts.values())

    def __str__(self) -> str:
        open_points = [f"{ref}: {v.message}" for ref, v in self.verdicts.items() if not v.ready]
        return "; ".join(open_points) or "ready"


async def wait_ready(
    caches: Caches,
    targets: Iterable[Object | Ref],
    *,
    timeout: float,
    judge: Probe = probe,
    clock: Clock | None = None,
) -> Readiness:
    """Wait until all are ready, one has failed, or time is over. Give objects as `apply` answered them."""
    expected = {_ref(target): target for target in targets}

    def verdict(ref: Ref, held: Held | None) -> Verdict:
        if held is None:
            return Verdict(Phase.PROGRESSING, "it does not exist")
        doubt = _doubt(held, expected[ref])
        if doubt:
            return Verdict(Phase.PROGRESSING, doubt)
        return judge(held.object())

    async with _observed(caches, expected) as observed:
        found = Readiness({})

        def over() -> bool:
            nonlocal found
            found = Readiness({ref: verdict(ref, observed.held(ref)) for ref in expected})
            return found.ready or found.failed

        await observed.until(over, timeout, clock or SystemClock())
        return found


async def wait_gone(
    caches: Caches, refs: Iterable[Ref], *, timeout: float, clock: Clock | None = None
) -> list[Ref]:
    """Wait until none of these exists or the time is over; answers those that still do."""
    expected = list(refs)
    async with _observed(caches, expected) as observed:
        there: list[Ref] = []

        def over() -> bool:
            nonlocal there
            there = [ref for ref in expected if observed.held(ref) is not None]
            return not there

        await observed.until(over, timeout, clock or SystemClock())
        return there


class _Observed:
    def __init__(self, caches: dict[tuple[GVK, str], Cache]) -> None:
        self._caches = caches
        self._changed = asyncio.Event()
        self._stops = [cache.on_change(lambda _: self._changed.set()) for cache in caches.values()]

    def held(self, ref: Ref) -> Held | None:
        return self._caches[ref.gvk, ref.namespace].held(ref.key)

    async def until(self, over: Callable[[], bool], timeout: float, clock: Clock) -> None:
        try:
            async with timeout_after(clock, timeout):
                for cache in self._caches.values():
                    await cache.synced()
                while not over():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            over()

    def stop(self) -> None:
        for stop in self._stops:
            stop()


@asynccontextmanager
async def _observed(caches: Caches, refs: Iterable[Ref]) -> AsyncIterator[_Observed]:
    groups: dict[tuple[GVK, str], list[Ref]] = defaultdict(list)
    for ref in refs:
        groups[ref.gvk, ref.namespace].append(ref)
    acquired: dict[tuple[GVK, str], Cache] = {}
    try:
        for (gvk, namespace), members in groups.items():
            # Field selectors know no "or", so several objects are found by watching all of their kind.
            fields = f"metadata.name={members[0].name}" if len(members) == 1 else ""
            acquired[gvk, namespace] = caches.acquire(gvk, namespace, fields=fields)
        observed = _Observed(acquired)
        try:
            yield observed
        finally:
            observed.stop()
    finally:
        for cache in acquired.values():
            await caches.release(cache)


def _ref(target: Object | Ref) -> Ref:
    return target if isinstance(target, Ref) else Ref.of(target)


def _doubt(held: Held, target: Object | Ref) -> str:
    """Why the state that was seen says nothing about what was applied; empty if it does."""
    if isinstance(target, Ref):
        return ""
    metadata = target["metadata"]
    if metadata.get("uid") not in (None, held.metadata.uid):
        return "another object of this name is in its place"
    if held.metadata.generation < (metadata.get("generation") or 0):
        return "its newest state has not been seen"
    return ""
