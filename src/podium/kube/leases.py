"""Leader election on a Lease: at most one process believes that it leads, whatever clocks and pauses do.

Two rules make it safe. A candidate never compares a time in the record with its own clock: it waits until the
record has not changed for a whole lease duration of its own monotonic time. And a leader counts from the
moment *before* it sent the renewal that succeeded: after `renew_deadline` seconds, which is less than the
lease duration, it leads no longer, even if it spent them frozen. `is_leader` reads the clock, so a process
that wakes from a pause sees at once that its time is over; timers only make it stop what it was doing.

The margin between the two numbers covers different clock rates and the time that the work takes to stop.
What it cannot cover: two candidates of the same identity, and people who edit or delete the Lease by hand
(the leader notices at its next renewal).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from podium.api.kinds import GVK, Object
from podium.api.times import micro_timestamp
from podium.kube.backoff import CHANCE
from podium.kube.clock import Clock, SystemClock, sleep_until, timeout_after
from podium.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from podium.kube.metrics import Metrics

logger = logging.getLogger(__name__)

LEASE = GVK("coordination.k8s.io", "v1", "Lease")
# Retries come this much later at most, so that candidates do not move in step.
_JITTER = 1.2


class LeadershipLost(Exception):
    """This process leads no longer: stop, or stand for election again."""


class LeaseClient(Protocol):
    """The calls of the client that are used here."""

    async def get(self, gvk: GVK, name: str, namespace: str = "") -> Object: ...

    async def create(self, obj: Object, *, namespace: str = "") -> Object: ...

    async def update(self, obj: Object) -> Object: ...


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The three numbers of an election, in seconds."""

    # How long candidates wait after the last sign of life. Longer means a longer gap when a leader dies.
    lease_duration: float = 15.0
    # When a leader that cannot renew gives up. The difference to the duration is its time to stop working.
    renew_deadline: float = 10.0
    # Between two tries to acquire or renew.
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration < 1:
            raise ValueError("lease_duration must be at least one second")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("lease_duration must be greater than renew_deadline")
        if self.renew_deadline <= self.retry_period * _JITTER:
            raise ValueError(f"renew_deadline must be greater than {_JITTER} times retry_period")


class LeaderElection:
    """One candidate for one Lease."""

    def __init__(
        self,
        client: LeaseClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        if not identity:
            raise ValueError("a candidate needs an identity")
        self.namespace, self.name, self.identity = namespace, name, identity
        self._client = client
        self._times = times or LeaseTimes()
        self._clock = clock or SystemClock()
        self._on_new_leader = on_new_leader
        self._chance = chance
        self._leads_until = float("-inf")
        self._lease: Object | None = None
        self._observed_at = 0.0
        self._observed: Object | None = None
        self._written_at: datetime | None = None
        (metrics or Metrics()).leader_status.read_by(lambda: float(self.is_leader()), name)

    @property
    def holder(self) -> str:
        """Who leads as far as this process knows; empty if nobody does."""
        return _holder(self._observed or {})

    def is_leader(self) -> bool:
        """Whether this process may act as the leader at this very moment."""
        return self._clock.monotonic() < self._leads_until

    def check(self) -> None:
        """Raise LeadershipLost unless this process leads; call it before what only a leader may do."""
        if not self.is_leader():
            raise LeadershipLost(f"{self.identity} does not hold the lease {self.namespace}/{self.name}")

    async def acquire(self) -> None:
        """Wait until this process leads."""
        logger.info("%s stands for election to %s/%s", self.identity, self.namespace, self.name)
        while True:
            if await self._attempt(self._try_to_acquire, self._times.renew_deadline) and self.is_leader():
                logger.info("%s leads %s/%s", self.identity, self.namespace, self.name)
                return
            await self._pause()

    async def hold(self) -> None:
        """Keep renewing; returns when this process leads no longer."""
        while self.is_leader():
            await self._pause()
            left = self._leads_until - self._clock.monotonic()
            if left > 0:
                await self._attempt(self._try_to_renew, left)
        logger.warning("%s leads %s/%s no longer", self.identity, self.namespace, self.name)

    async def release(self) -> None:
        """Give the lease up so that another candidate need not wait; call it when the work has stopped."""
        leads, self._leads_until = self.is_leader(), float("-inf")
        if leads:
            await self._attempt(self._give_up, self._times.renew_deadline)

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Acquire, do the leader's work, release. On loss the work is cancelled and LeadershipLost raised."""
        await self.acquire()
        work = asyncio.ensure_future(lead())
        holding = asyncio.ensure_future(self.hold())
        deadline = asyncio.ensure_future(self._until_deadline())
        try:
            await asyncio.wait([work, holding, deadline], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not work.done():
                work.cancel()
                # The lease is renewed while the work winds down: another must not start before that is over.
                await asyncio.wait([work])
            for task in (holding, deadline):
                task.cancel()
            await asyncio.wait([holding, deadline])
            lost = not self.is_leader()
            await self.release()
        if not work.cancelled():
            work.result()
        if lost:
            raise LeadershipLost(f"{self.identity} lost the lease {self.namespace}/{self.name}")

    async def _until_deadline(self) -> None:
        """Returns as soon as the time of the last renewal is over, even while a renewal is stuck."""
        while self.is_leader():
            await sleep_until(self._clock, self._leads_until)

    async def _pause(self) -> None:
        await self._clock.sleep(self._times.retry_period * (1.0 + (_JITTER - 1.0) * self._chance()))

    async def _attempt(self, attempt: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        try:
            async with timeout_after(self._clock, seconds):
                return await attempt()
        except (Conflict, AlreadyExists):
            # Somebody was faster; the next try reads what they wrote.
            self._lease = None
        except (KubeError, TimeoutError) as error:
            self._lease = None
            what = str(error) or "no answer in time"
            logger.warning("lease %s/%s: %s", self.namespace, self.name, what)
        return False

    async def _try_to_acquire(self) -> bool:
        lease = await self._read()
        if lease is None:
            sent = self._clock.monotonic()
            self._won(await self._client.create(self._new_lease()), sent)
            return True
        spec = lease.get("spec") or {}
        mine = _holder(spec) == self.identity
        if _holder(spec) and not mine and not self._expired(spec):
            return False
        await self._take(lease, again=mine)
        return True

    async def _try_to_renew(self) -> bool:
        # The answer to the last write is as good as a reading; a conflict will tell if it is not.
        lease = self._lease or await self._read()
        if lease is None or _holder(lease.get("spec") or {}) != self.identity:
            # Taken, cleared or deleted: another may lead already.
            self._leads_until = float("-inf")
            return False
        await self._take(lease, again=True)
        return True

    async def _give_up(self) -> bool:
        lease = self._lease or await self._read()
        if lease is None or _holder(lease.get("spec") or {}) != self.identity:
            return False
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, **self._now("renewTime")}
        # The resourceVersion guards this: if somebody wrote since, there is nothing to give up.
        await self._client.update({**lease, "spec": spec})
        return True

    async def _take(self, lease: Object, *, again: bool) -> None:
        spec = dict(lease.get("spec") or {})
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": self._whole_duration()}
        spec |= self._now("renewTime")
        if not again:
            spec |= {"acquireTime": spec["renewTime"]}
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        sent = self._clock.monotonic()
        self._won(await self._client.update({**lease, "spec": spec}), sent)

    async def _read(self) -> Object | None:
        try:
            lease = await self._client.get(LEASE, self.name, self.namespace)
        except NotFound:
            return None
        self._observe(lease)
        return lease

    def _observe(self, lease: Object) -> None:
        spec = lease.get("spec") or {}
        if spec == self._observed:
            return
        before = self.holder
        self._observed, self._observed_at = spec, self._clock.monotonic()
        if self._on_new_leader is not None and self.holder and self.holder != before:
            self._on_new_leader(self.holder)

    def _expired(self, spec: Object) -> bool:
        # The holder's own promise counts: it may have been configured with other times than we were.
        seconds = spec.get("leaseDurationSeconds") or self._whole_duration()
        return self._clock.monotonic() >= self._observed_at + seconds

    def _won(self, lease: Object, sent: float) -> None:
        self._lease = lease
        self._leads_until = sent + self._times.renew_deadline
        self._observe(lease)

    def _new_lease(self) -> Object:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self._whole_duration(),
                "leaseTransitions": 0,
                **self._now("acquireTime", "renewTime"),
            },
        }

    def _whole_duration(self) -> int:
        # The field is an integer; rounding up keeps the promise.
        return -int(-self._times.lease_duration // 1)

    def _now(self, *fields: str) -> Object:
        moment = self._clock.wall()
        # Others see a renewal by a time that differs from the last; a clock that stands must not hide it.
        if self._written_at is not None:
            moment = max(moment, self._written_at + timedelta(microseconds=1))
        self._written_at = moment
        return dict.fromkeys(fields, micro_timestamp(moment))


def _holder(spec: Object) -> str:
    return spec.get("holderIdentity") or ""
