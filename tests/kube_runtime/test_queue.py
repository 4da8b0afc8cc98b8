from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube_runtime.virtual import VirtualClock, settle
from podium.kube.backoff import Backoff
from podium.kube.metrics import Metrics
from podium.kube.queue import Priority, ShutDown, WorkQueue


def queue_on(clock: VirtualClock, **options: object) -> WorkQueue[str]:
    return WorkQueue("test", clock=clock, chance=lambda: 0.0, **options)  # type: ignore[arg-type]


async def drain(queue: WorkQueue[str]) -> list[str]:
    taken = []
    while len(queue):
        key = await queue.get()
        taken.append(key)
        queue.done(key)
    return taken


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue = queue_on(VirtualClock())
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert await drain(queue) == ["a", "b"]


async def test_a_key_added_while_it_is_held_comes_again_after_it_is_done() -> None:
    queue = queue_on(VirtualClock())
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await drain(queue) == ["a"]


async def test_changes_go_ahead_of_background_work_and_raise_a_key_that_waits_there() -> None:
    queue = queue_on(VirtualClock())
    for key in ("a", "b", "c"):
        queue.add(key, priority=Priority.BACKGROUND)
    queue.add("d")
    queue.add("c")
    queue.add("d", priority=Priority.BACKGROUND)
    assert await drain(queue) == ["d", "c", "a", "b"]


async def test_a_held_key_comes_again_with_the_highest_priority_it_was_added_with() -> None:
    queue = queue_on(VirtualClock())
    queue.add("a")
    key = await queue.get()
    queue.add("a", priority=Priority.BACKGROUND)
    queue.add("a", priority=5)
    queue.add("a", priority=Priority.NORMAL)
    queue.add("b")
    queue.done(key)
    assert await queue.get() == "a"
    assert queue.priority("a") == 5


async def test_a_delayed_key_appears_when_its_time_has_come_and_the_earliest_time_wins() -> None:
    clock = VirtualClock()
    queue = queue_on(clock)
    queue.add("a", after=10)
    queue.add("a", after=5)
    queue.add("a", after=20)
    await clock.advance(4.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert await drain(queue) == ["a"]
    await clock.advance(60)
    assert len(queue) == 0


async def test_a_delayed_add_survives_an_earlier_one_for_another_reason() -> None:
    clock = VirtualClock()
    queue = queue_on(clock)
    queue.add("a", after=10)
    queue.add("a")
    assert await drain(queue) == ["a"]
    await clock.advance(10)
    assert await drain(queue) == ["a"]


async def test_retries_wait_longer_each_time_up_to_a_limit_until_the_key_is_forgotten() -> None:
    queue = queue_on(VirtualClock(), backoff=Backoff(1.0, 10.0))
    assert [queue.retry("a") for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert queue.failures("a") == 6
    queue.forget("a")
    assert queue.retry("a") == 1


async def test_back_off_is_spread_by_chance() -> None:
    policy = Backoff(1.0, 100.0, jitter=0.5)
    assert policy.delay(1, lambda: 0.0) == 1.0
    assert policy.delay(3, lambda: 0.5) == 5.0
    assert policy.delay(10_000, lambda: 1.0) == 100.0


async def test_a_waiting_worker_is_woken_by_an_add() -> None:
    queue = queue_on(VirtualClock())
    worker = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    assert await worker == "a"


async def test_a_worker_cancelled_after_its_wake_up_passes_it_on() -> None:
    queue = queue_on(VirtualClock())
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    assert second.result() == "a"


async def test_shutting_down_drops_what_waits_and_sends_workers_home() -> None:
    clock = VirtualClock()
    queue = queue_on(clock)
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("held")
    await settle()
    queue.add("ready")
    queue.add("later", after=1)
    queue.add("held")
    queue.shut_down()
    queue.done(waiting.result())
    queue.add("too late")
    await clock.advance(10)
    assert len(queue) == 0
    assert clock.next_timer is None
    with pytest.raises(ShutDown):
        await queue.get()


async def test_draining_still_hands_out_what_was_added_before() -> None:
    queue = queue_on(VirtualClock())
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("b")
    queue.shut_down(drain=True)
    queue.add("c")
    idle = asyncio.create_task(queue.idle())
    await settle()
    assert not idle.done()
    queue.done(key)
    assert sorted(await drain(queue)) == ["a", "b"]
    await idle
    with pytest.raises(ShutDown):
        await queue.get()


async def test_the_queue_counts_depth_adds_retries_and_times() -> None:
    clock, metrics = VirtualClock(), Metrics()
    queue = queue_on(clock, metrics=metrics)
    labels = ("test", "test")
    queue.add("a")
    queue.add("b")
    assert metrics.queue_depth.value(*labels) == 2
    await clock.advance(3)
    key = await queue.get()
    await clock.advance(4)
    assert metrics.queue_longest.value(*labels) == 4
    assert metrics.queue_unfinished.value(*labels) == 4
    queue.retry(key)
    queue.done(key)
    assert metrics.queue_adds.value(*labels) == 2
    assert metrics.queue_retries.value(*labels) == 1
    assert metrics.queue_seconds.at(*labels).total == 3
    assert metrics.work_seconds.at(*labels).total == 4


class AnyInterleaving(RuleBasedStateMachine):
    """Adds, delays, workers and time in any order, beside a model that knows what is owed to each key."""

    keys = st.sampled_from("abcd")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.queue = queue_on(self.clock, backoff=Backoff(1.0, 8.0))
        self.held: set[str] = set()
        # Per key the moments from which on a processing is still owed.
        self.owed: dict[str, list[float]] = {}

    def run(self, step: object) -> object:
        return self.loop.run_until_complete(step)  # type: ignore[arg-type]

    def owe(self, key: str, when: float) -> None:
        self.owed.setdefault(key, []).append(when)

    @rule(key=keys, priority=st.sampled_from([*Priority]))
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, priority=priority)
        self.owe(key, self.clock.now)

    @rule(key=keys, seconds=st.integers(1, 20))
    def add_after(self, key: str, seconds: int) -> None:
        async def add() -> None:
            self.queue.add(key, after=seconds)

        self.run(add())
        # Of several delayed adds the earliest stands for all.
        later = [when for when in self.owed.get(key, []) if when > self.clock.now]
        self.owed[key] = [when for when in self.owed.get(key, []) if when <= self.clock.now]
        self.owe(key, min([*later, self.clock.now + seconds]))

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds: int) -> None:
        self.run(self.clock.advance(seconds))

    @precondition(lambda self: len(self.queue) > 0)
    @rule()
    def take(self) -> None:
        key = self.run(self.queue.get())
        assert isinstance(key, str)
        assert key not in self.held, "two workers hold the same key"
        due = [when for when in self.owed.get(key, []) if when <= self.clock.now]
        assert due, "a key that nobody asked for"
        self.held.add(key)
        self.owed[key] = [when for when in self.owed[key] if when > self.clock.now]

    @precondition(lambda self: bool(self.held))
    @rule(data=st.data(), retry=st.booleans())
    def finish(self, data: st.DataObject, retry: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))

        async def done() -> None:
            if retry:
                self.queue.forget(key)
                self.queue.retry(key)
            self.queue.done(key)

        self.run(done())
        self.held.remove(key)
        if retry:
            later = [when for when in self.owed.get(key, []) if when > self.clock.now]
            self.owed[key] = [when for when in self.owed.get(key, []) if when <= self.clock.now]
            self.owe(key, min([*later, self.clock.now + 1]))

    @invariant()
    def nothing_owed_is_forgotten(self) -> None:
        due = {key for key, whens in self.owed.items() if any(when <= self.clock.now for when in whens)}
        assert len(self.queue) == len(due - self.held)
        later = {key for key, whens in self.owed.items() if any(when > self.clock.now for when in whens)}
        assert self.queue.delayed == len(later)

    def teardown(self) -> None:
        self.loop.close()


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=40, deadline=None)
@given(
    adds=st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 6)), max_size=30),
    workers=st.integers(1, 4),
    durations=st.lists(st.integers(0, 3), min_size=1, max_size=5),
)
def test_workers_process_every_key_after_its_last_add_and_never_together(
    adds: list[tuple[str, int]], workers: int, durations: list[int]
) -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        queue = queue_on(clock)
        running: set[str] = set()
        started: dict[str, float] = {}
        added: dict[str, float] = {}

        async def work(number: int) -> None:
            with suppress(ShutDown):
                while True:
                    key = await queue.get()
                    assert key not in running
                    running.add(key)
                    started[key] = clock.now
                    await clock.sleep(durations[(number + len(started)) % len(durations)])
                    running.remove(key)
                    queue.done(key)

        tasks = [asyncio.create_task(work(number)) for number in range(workers)]
        for key, gap in adds:
            await clock.advance(gap)
            queue.add(key)
            added[key] = clock.now
        await clock.advance(1000)
        queue.shut_down()
        await asyncio.gather(*tasks)
        assert started.keys() == added.keys()
        assert all(started[key] >= added[key] for key in added)

    asyncio.run(scenario())
