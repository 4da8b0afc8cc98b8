from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_runtime.fake_server import FakeServer
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import GVK, Key, Object
from podium.kube.errors import ConnectionFailed
from podium.kube.leases import LEASE, LeaderElection, LeadershipLost, LeaseTimes
from podium.kube.metrics import Metrics

KEY = Key("kube-system", "podium")


class Machine:
    """A process with its own clock and its own way to the server, which can be slow, cut or frozen."""

    def __init__(self, server: FakeServer, clock: VirtualClock, name: str) -> None:
        self.server, self.clock = server, clock
        self.reachable = True
        # Called between the server's doing and this machine's hearing of it.
        self.on_answer: Callable[[], Awaitable[None]] | None = None
        self.metrics = Metrics()
        self.election = LeaderElection(
            self, KEY.namespace, KEY.name, name, clock=clock, metrics=self.metrics, chance=lambda: 0.0
        )

    async def get(self, gvk: GVK, name: str, namespace: str = "") -> Object:
        return await self._answer(self.server.get, gvk, name, namespace)

    async def create(self, obj: Object, *, namespace: str = "") -> Object:
        return await self._answer(self.server.create, obj)

    async def update(self, obj: Object) -> Object:
        return await self._answer(self.server.update, obj)

    async def _answer(self, call: Callable[..., Awaitable[Object]], *arguments: object) -> Object:
        if not self.reachable:
            raise ConnectionFailed("unreachable", sent=False)
        answer = await call(*arguments)
        if self.on_answer is not None:
            await self.on_answer()
        return answer


def spec(server: FakeServer) -> Object:
    found: Object = server.objects[LEASE, KEY]["spec"]
    return found


async def lead_for_ever(machine: Machine) -> asyncio.Task[None]:
    async def lead() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(machine.election.run(lead))
    await settle()
    return task


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_first_candidate_leads_and_renews_and_the_second_waits() -> None:
    server, clock = FakeServer(), VirtualClock()
    first, second = Machine(server, clock, "first"), Machine(server, clock, "second")
    tasks = [await lead_for_ever(first), await lead_for_ever(second)]
    await clock.advance(120)
    assert first.election.is_leader()
    assert not second.election.is_leader()
    assert second.election.holder == "first"
    assert spec(server)["leaseTransitions"] == 0
    assert spec(server)["renewTime"] > spec(server)["acquireTime"]
    assert first.metrics.leader_status.value("podium") == 1
    assert second.metrics.leader_status.value("podium") == 0
    await end(*tasks)


async def test_a_leader_that_stops_gives_the_lease_up_and_the_next_one_need_not_wait() -> None:
    server, clock = FakeServer(), VirtualClock()
    first, second = Machine(server, clock, "first"), Machine(server, clock, "second")
    leading, waiting = await lead_for_ever(first), await lead_for_ever(second)
    await clock.advance(5)
    await end(leading)
    assert spec(server)["holderIdentity"] == ""
    await clock.advance(2.5)
    assert second.election.is_leader()
    assert spec(server)["leaseTransitions"] == 1
    await end(waiting)


async def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    server, clock = FakeServer(), VirtualClock()
    first, second = Machine(server, clock, "first"), Machine(server, clock, "second")
    leading, waiting = await lead_for_ever(first), await lead_for_ever(second)
    await clock.advance(5)
    first.reachable = False
    lost_at = taken_at = 0.0
    while not taken_at:
        assert not (first.election.is_leader() and second.election.is_leader())
        lost_at = lost_at or (clock.now if not first.election.is_leader() else 0.0)
        taken_at = clock.now if second.election.is_leader() else 0.0
        await clock.advance(0.1)
    assert lost_at + 4 < taken_at
    with pytest.raises(LeadershipLost):
        await leading
    await end(waiting)


async def test_a_wrong_time_of_day_changes_nothing() -> None:
    for offset in (-86_400.0, 86_400.0):
        server, clock = FakeServer(), VirtualClock()
        skewed = VirtualClock(wall_offset=offset)
        first, second = Machine(server, clock, "first"), Machine(server, skewed, "second")
        tasks = [await lead_for_ever(first), await lead_for_ever(second)]
        for _ in range(300):
            await clock.advance(0.2)
            await skewed.advance(0.2)
            assert first.election.is_leader()
            assert not second.election.is_leader()
        await end(*tasks)


async def test_a_frozen_process_sees_at_once_that_it_leads_no_longer() -> None:
    server = FakeServer()
    frozen, other = VirtualClock(), VirtualClock()
    first, second = Machine(server, frozen, "first"), Machine(server, other, "second")
    leading, waiting = await lead_for_ever(first), await lead_for_ever(second)
    await frozen.advance(1)
    await other.advance(60)
    assert second.election.is_leader()
    await frozen.pause(60)
    # Not one timer has fired and not one task has run on the first machine since it was frozen.
    assert not first.election.is_leader()
    with pytest.raises(LeadershipLost):
        first.election.check()
    await frozen.advance(0.1)
    with pytest.raises(LeadershipLost):
        await leading
    await end(waiting)


async def test_a_process_frozen_while_its_renewal_is_on_the_way_does_not_believe_the_late_answer() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Machine(server, clock, "first")
    leading = await lead_for_ever(first)
    before = spec(server)["renewTime"]

    async def freeze() -> None:
        await clock.pause(60)

    first.on_answer = freeze
    await clock.advance(2)
    assert spec(server)["renewTime"] != before
    assert not first.election.is_leader()
    first.on_answer = None
    await clock.advance(0.1)
    with pytest.raises(LeadershipLost):
        await leading


async def test_a_renewal_that_hangs_ends_leadership_on_time() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Machine(server, clock, "first")
    cancelled: list[float] = []

    async def lead() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(clock.now)

    leading = asyncio.create_task(first.election.run(lead))
    await settle()

    async def hang() -> None:
        await asyncio.Event().wait()

    first.on_answer = hang
    start = clock.now
    await clock.advance(20)
    assert cancelled == [start + 10]
    with pytest.raises(LeadershipLost):
        await leading


async def test_a_lease_that_was_taken_or_deleted_ends_leadership_at_the_next_renewal() -> None:
    for interference in ("taken", "deleted"):
        server, clock = FakeServer(), VirtualClock()
        first = Machine(server, clock, "first")
        leading = await lead_for_ever(first)
        if interference == "deleted":
            server.remove(LEASE, KEY)
        else:
            lease = server.objects[LEASE, KEY]
            server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
        await clock.advance(6)
        with pytest.raises(LeadershipLost):
            await leading


async def test_a_stranger_who_only_labels_the_lease_disturbs_nobody() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Machine(server, clock, "first")
    leading = await lead_for_ever(first)
    for _ in range(10):
        lease = server.objects[LEASE, KEY]
        server.put({**lease, "metadata": {**lease["metadata"], "labels": {"at": str(clock.now)}}})
        await clock.advance(4)
        assert first.election.is_leader()
    await end(leading)


async def test_renewals_differ_even_if_the_time_of_day_stands_still() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Machine(server, clock, "first")
    leading = await lead_for_ever(first)
    stopped = clock.wall()
    clock.wall = lambda: stopped  # type: ignore[method-assign]
    seen = set()
    for _ in range(5):
        await clock.advance(2)
        seen.add(spec(server)["renewTime"])
    assert len(seen) == 5
    await end(leading)


async def test_the_work_of_a_leader_ends_the_term_and_its_error_is_passed_on() -> None:
    server, clock = FakeServer(), VirtualClock()
    first = Machine(server, clock, "first")

    async def lead() -> None:
        first.election.check()
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await first.election.run(lead)
    assert spec(server)["holderIdentity"] == ""


async def test_new_leaders_are_announced() -> None:
    server, clock = FakeServer(), VirtualClock()
    seen: list[str] = []
    watcher = LeaderElection(
        server, KEY.namespace, KEY.name, "watcher", clock=clock, on_new_leader=seen.append, chance=lambda: 0.0
    )
    first = await lead_for_ever(Machine(server, clock, "first"))
    waiting = asyncio.create_task(watcher.acquire())
    await clock.advance(3)
    await end(first)
    await clock.advance(3)
    assert seen == ["first", "watcher"]
    await waiting


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"lease_duration": 10.0, "renew_deadline": 10.0}, "greater than renew_deadline"),
        ({"renew_deadline": 2.0}, "retry_period"),
        ({"lease_duration": 0.5}, "at least one second"),
    ],
)
def test_times_that_would_be_unsafe_are_refused(times: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaseTimes(**times)


events = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["cut", "mend", "freeze", "slow", "nothing"]),
        st.floats(0.5, 25.0),
    ),
    max_size=25,
)


@settings(max_examples=80, deadline=None)
@given(events=events)
def test_two_never_lead_at_the_same_moment_whatever_is_frozen_cut_or_slow(
    events: list[tuple[int, str, float]],
) -> None:
    async def scenario() -> None:
        server = FakeServer()
        # True time; each machine's clock is set to it except while the machine is frozen.
        now = 1000.0
        frozen_until = [0.0, 0.0, 0.0]
        machines = [
            Machine(server, VirtualClock(wall_offset=offset), name)
            for name, offset in (("a", 0.0), ("b", 500.0), ("c", -500.0))
        ]
        tasks = [asyncio.create_task(campaign(machine)) for machine in machines]
        for number, fault, seconds in events:
            machine = machines[number]
            if fault == "cut":
                machine.reachable = False
            elif fault == "mend":
                machine.reachable, machine.on_answer = True, None
            elif fault == "freeze":
                frozen_until[number] = now + seconds
            elif fault == "slow":
                clock = machine.clock

                async def late(clock: VirtualClock = clock, seconds: float = seconds) -> None:
                    await clock.sleep(seconds / 3)

                machine.on_answer = late
            for _ in range(20):
                now += 0.5
                for index, other in enumerate(machines):
                    if now >= frozen_until[index]:
                        if now - other.clock.now > 0.5:
                            await other.clock.pause(now - other.clock.now)
                        await other.clock.advance(now - other.clock.now)
                assert sum(_leads(machine, now) for machine in machines) <= 1
        for machine, task in zip(machines, tasks, strict=True):
            task.cancel()
            # Giving the lease up over a slow line takes time too.
            await machine.clock.advance(60)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _leads(machine: Machine, now: float) -> bool:
        # A frozen machine does nothing; the moment it wakes, its clock tells the truth.
        saved, machine.clock.now = machine.clock.now, now
        try:
            return machine.election.is_leader()
        finally:
            machine.clock.now = saved

    logging.disable(logging.ERROR)
    try:
        asyncio.run(scenario())
    finally:
        logging.disable(logging.NOTSET)


async def campaign(machine: Machine) -> None:
    async def lead() -> None:
        await asyncio.Event().wait()

    while True:
        try:
            await machine.election.run(lead)
        except LeadershipLost:
            await machine.clock.sleep(1)
