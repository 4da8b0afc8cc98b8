from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from kube_runtime.fake_server import CONFIG_MAP, FakeServer, config_map, error
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import GVK, Key, Object
from podium.kube.backoff import Backoff
from podium.kube.cache import Caches, NotSynced
from podium.kube.controller import Controller, Reconcile, Result, TerminalError
from podium.kube.errors import ConnectionFailed
from podium.kube.metrics import Metrics
from podium.kube.queue import Priority
from podium.kube.source import (
    Channel,
    Predicate,
    Source,
    all_of,
    annotations_changed,
    any_of,
    for_kind,
    generation_changed,
    labels_changed,
    none_of,
    on_objects,
    owns,
    watches,
)
from podium.kube.store import Change, Held, hold

SECRET = GVK("", "v1", "Secret")
A, B = Key("default", "a"), Key("default", "b")


class Stage:
    """A fake cluster and controllers on virtual time."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.caches = Caches(self.server, clock=self.clock, metrics=self.metrics)
        self.calls: list[Key] = []
        self.running: list[Controller] = []

    async def record(self, key: Key) -> Result | None:
        self.calls.append(key)
        return None

    def controller(self, *sources: Source, reconcile: Reconcile | None = None, **options: Any) -> Controller:
        options = {"backoff": Backoff(1.0, 60.0, jitter=0.0), **options}
        return Controller(
            "test", reconcile or self.record, sources, clock=self.clock, metrics=self.metrics, **options
        )

    async def start(self, *sources: Source, **options: Any) -> Controller:
        controller = self.controller(*sources, **options)
        await controller.start(self.caches)
        self.running.append(controller)
        await settle()
        return controller

    def outcomes(self) -> dict[str, float]:
        return {labels[1]: count for labels, count in self.metrics.reconciles.values.items()}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    for controller in stage.running:
        await controller.stop()
    assert stage.server.open_watches == 0


def secret(name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", **metadata},
    }


async def test_what_exists_and_what_changes_is_reconciled(stage: Stage) -> None:
    stage.server.put(config_map("a"))
    await stage.start(for_kind(CONFIG_MAP))
    stage.server.put(config_map("b"))
    await settle()
    stage.server.remove(CONFIG_MAP, A)
    await settle()
    assert stage.calls == [A, B, A]
    assert stage.outcomes() == {"success": 3}


async def test_a_change_of_an_owned_object_reconciles_its_controlling_owner(stage: Stage) -> None:
    await stage.start(owns(SECRET, CONFIG_MAP))
    refs = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": True},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "2"},
        {"apiVersion": "other.dev/v1", "kind": "ConfigMap", "name": "c", "uid": "3", "controller": True},
    ]
    stage.server.put(secret("s", ownerReferences=refs))
    stage.server.put(secret("orphan"))
    await settle()
    assert stage.calls == [A]


async def test_owners_may_be_cluster_wide_and_need_not_be_the_controller(stage: Stage) -> None:
    owner = GVK("x.dev", "v2", "Stack")
    await stage.start(owns(SECRET, owner, owner_namespaced=False, only_controller=False))
    stage.server.put(
        secret("s", ownerReferences=[{"apiVersion": "x.dev/v1", "kind": "Stack", "name": "st", "uid": "1"}])
    )
    await settle()
    assert stage.calls == [Key("", "st")]


async def test_an_object_that_moves_reconciles_what_it_left_and_what_it_joined(stage: Stage) -> None:
    def target(held: Held) -> list[Key]:
        return [Key("default", held.metadata.labels["for"])]

    await stage.start(watches(SECRET, target))
    stage.server.put(secret("s", labels={"for": "a"}))
    await settle()
    stage.calls.clear()
    stage.server.put(secret("s", labels={"for": "b"}))
    await settle()
    assert stage.calls == [B, A]


async def test_a_channel_brings_keys_from_code_even_before_the_start(stage: Stage) -> None:
    channel = Channel()
    channel.send(A)
    await stage.start(channel)
    channel.send(B, after=5)
    await settle()
    assert stage.calls == [A]
    await stage.clock.advance(5)
    assert stage.calls == [A, B]


async def test_changes_are_handled_before_what_merely_exists(stage: Stage) -> None:
    gate = asyncio.Event()

    async def slow(key: Key) -> None:
        stage.calls.append(key)
        await gate.wait()

    for number in range(5):
        stage.server.put(config_map(f"old-{number}"))
    await stage.start(for_kind(CONFIG_MAP), reconcile=slow)
    stage.server.put(config_map("new"))
    await settle()
    gate.set()
    await settle()
    assert [key.name for key in stage.calls] == ["old-0", "new", "old-1", "old-2", "old-3", "old-4"]


async def test_no_reconcile_begins_before_every_source_has_told_what_exists(stage: Stage) -> None:
    stage.server.put(config_map("a"))
    controller = stage.controller(for_kind(CONFIG_MAP), owns(SECRET, CONFIG_MAP))
    starting = asyncio.create_task(controller.start(stage.caches))
    stage.running.append(controller)
    stage.server.failures = [ConnectionFailed("refused", sent=False)]
    await settle()
    assert not starting.done()
    assert stage.calls == []
    await stage.clock.advance(5)
    assert starting.done()
    assert stage.calls == [A]


async def test_a_source_that_cannot_be_listed_fails_the_start_and_leaves_nothing_behind(stage: Stage) -> None:
    stage.server.failures = [error(403, "Forbidden", "no access") for _ in range(50)]
    controller = stage.controller(for_kind(CONFIG_MAP), sync_timeout=60)
    starting = asyncio.create_task(controller.start(stage.caches))
    await stage.clock.advance(61)
    with pytest.raises(NotSynced, match="no access"):
        await starting
    assert not controller.running
    assert stage.clock.next_timer is None


async def test_a_reconcile_can_ask_to_be_called_again(stage: Stage) -> None:
    async def twice(key: Key) -> Result | None:
        stage.calls.append(key)
        return Result(requeue_after=30) if len(stage.calls) < 2 else None

    channel = Channel()
    await stage.start(channel, reconcile=twice)
    channel.send(A)
    await stage.clock.advance(29)
    assert len(stage.calls) == 1
    await stage.clock.advance(120)
    assert len(stage.calls) == 2
    assert stage.outcomes() == {"requeue_after": 1, "success": 1}


async def test_failures_are_retried_with_growing_delays_until_one_succeeds(stage: Stage) -> None:
    moments: list[float] = []

    async def failing(key: Key) -> None:
        moments.append(stage.clock.now)
        if len(moments) < 5:
            raise error(409, "Conflict")

    channel = Channel()
    controller = await stage.start(channel, reconcile=failing)
    channel.send(A)
    await stage.clock.advance(600)
    assert [later - sooner for sooner, later in pairwise(moments)] == [1, 2, 4, 8]
    assert controller.queue.failures(A) == 0
    assert stage.metrics.reconcile_errors.value("test") == 4
    assert stage.metrics.panics.value("test") == 0


async def test_a_terminal_error_is_not_retried_until_something_changes(stage: Stage) -> None:
    async def hopeless(key: Key) -> None:
        stage.calls.append(key)
        raise TerminalError("bad spec")

    channel = Channel()
    await stage.start(channel, reconcile=hopeless)
    channel.send(A)
    await stage.clock.advance(3600)
    assert len(stage.calls) == 1
    assert stage.metrics.terminal_errors.value("test") == 1
    channel.send(A)
    await settle()
    assert len(stage.calls) == 2


async def test_a_bug_is_logged_with_key_and_trace_and_retried(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async def buggy(key: Key) -> None:
        stage.calls.append(key)
        if len(stage.calls) == 1:
            raise ZeroDivisionError("oops")

    channel = Channel()
    await stage.start(channel, reconcile=buggy)
    channel.send(A)
    with caplog.at_level(logging.ERROR, "podium.kube.controller"):
        await stage.clock.advance(10)
    assert len(stage.calls) == 2
    assert stage.metrics.panics.value("test") == 1
    (record,) = caplog.records
    assert "test: default/a" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


async def test_a_reconcile_whose_own_task_was_cancelled_is_a_failure_like_any_other(stage: Stage) -> None:
    async def awaits_a_cancelled_task(key: Key) -> None:
        stage.calls.append(key)
        if len(stage.calls) == 1:
            inner = asyncio.create_task(asyncio.Event().wait())
            inner.cancel()
            await inner

    channel = Channel()
    controller = await stage.start(channel, reconcile=awaits_a_cancelled_task)
    channel.send(A)
    await stage.clock.advance(10)
    assert len(stage.calls) == 2
    assert controller.running


async def test_a_reconcile_that_takes_too_long_is_cut_and_retried(stage: Stage) -> None:
    async def stuck(key: Key) -> None:
        stage.calls.append(key)
        await asyncio.Event().wait()

    channel = Channel()
    await stage.start(channel, reconcile=stuck, reconcile_timeout=10.0, drain_seconds=0.0)
    channel.send(A)
    await stage.clock.advance(12)
    assert len(stage.calls) == 2
    assert stage.metrics.reconcile_timeouts.value("test") == 1
    stopping = asyncio.create_task(stage.running.pop().stop())
    await stage.clock.advance(1)
    await stopping


async def test_the_same_key_is_never_reconciled_twice_at_once(stage: Stage) -> None:
    active: list[Key] = []
    most = 0

    async def reconcile(key: Key) -> None:
        nonlocal most
        assert key not in active
        active.append(key)
        most = max(most, len(active))
        stage.calls.append(key)
        await stage.clock.sleep(1)
        active.remove(key)

    channel = Channel()
    await stage.start(channel, reconcile=reconcile, workers=3)
    for number in range(30):
        channel.send(Key("default", f"{number % 5}"))
        await stage.clock.advance(0.3)
    await stage.clock.advance(60)
    assert most == 3
    assert stage.outcomes() == {"success": len(stage.calls)}


async def test_a_resync_repeats_everything_behind_other_work(stage: Stage) -> None:
    stage.server.put(config_map("a"))
    stage.server.put(secret("s", ownerReferences=[]))
    controller = await stage.start(for_kind(CONFIG_MAP), owns(SECRET, CONFIG_MAP), resync_every=600.0)
    added: list[tuple[Key, int]] = []
    add = controller.queue.add

    def noted(key: Key, *, priority: int = Priority.NORMAL, after: float = 0.0) -> None:
        added.append((key, priority))
        add(key, priority=priority, after=after)

    controller.queue.add = noted  # type: ignore[method-assign]
    await stage.clock.advance(1400)
    assert added == [(A, Priority.BACKGROUND)] * 2


async def test_stopping_waits_for_running_reconciles(stage: Stage) -> None:
    finished: list[Key] = []

    async def slow(key: Key) -> None:
        await stage.clock.sleep(10)
        finished.append(key)

    channel = Channel()
    controller = await stage.start(channel, reconcile=slow)
    channel.send(A)
    channel.send(B)
    await settle()
    stopping = asyncio.create_task(stage.running.pop().stop())
    await stage.clock.advance(11)
    await stopping
    assert finished == [A]
    assert len(controller.queue) == 0


async def test_a_reconcile_that_does_not_end_in_time_is_cancelled_and_leaves_the_queue_clean(
    stage: Stage,
) -> None:
    cleaned: list[Key] = []

    async def stuck(key: Key) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(key)

    channel = Channel()
    controller = await stage.start(channel, reconcile=stuck, drain_seconds=5.0)
    channel.send(A)
    await settle()
    channel.send(A)
    stopping = asyncio.create_task(stage.running.pop().stop())
    await stage.clock.advance(6)
    await stopping
    assert cleaned == [A]
    assert (len(controller.queue), list(controller.queue.held), controller.queue.delayed) == (0, [], 0)
    assert stage.clock.next_timer is None


async def test_a_stopped_controller_can_be_started_again(stage: Stage) -> None:
    stage.server.put(config_map("a"))
    controller = await stage.start(for_kind(CONFIG_MAP))
    await controller.stop()
    stage.server.put(config_map("b"))
    await controller.start(stage.caches)
    await settle()
    assert sorted(stage.calls) == [A, A, B]


def change(old: Object | None, new: Object | None) -> Change:
    def held(obj: Object | None) -> Held | None:
        return None if obj is None else hold(CONFIG_MAP, msgspec.json.encode({"metadata": obj}))

    return Change(held(old), held(new))


PLAIN: Object = {"name": "a", "generation": 1, "labels": {"a": "1"}, "annotations": {"n": "1"}}


@pytest.mark.parametrize(
    ("predicate", "old", "new", "passes"),
    [
        (generation_changed, PLAIN, {**PLAIN, "resourceVersion": "2"}, False),
        (generation_changed, PLAIN, {**PLAIN, "generation": 2}, True),
        (generation_changed, PLAIN, {**PLAIN, "deletionTimestamp": "2030-01-01T00:00:00Z"}, True),
        (generation_changed, None, PLAIN, True),
        (generation_changed, PLAIN, None, True),
        (labels_changed, PLAIN, {**PLAIN, "generation": 2}, False),
        (labels_changed, PLAIN, {**PLAIN, "labels": {}}, True),
        (annotations_changed, PLAIN, {**PLAIN, "labels": {}}, False),
        (annotations_changed, PLAIN, {**PLAIN, "annotations": {"n": "2"}}, True),
        (any_of(labels_changed, generation_changed), PLAIN, {**PLAIN, "generation": 2}, True),
        (all_of(labels_changed, generation_changed), PLAIN, {**PLAIN, "generation": 2}, False),
        (none_of(labels_changed), PLAIN, {**PLAIN, "generation": 2}, True),
        (on_objects(lambda held: held.metadata.labels.get("a") == "1"), PLAIN, {**PLAIN, "labels": {}}, True),
        (
            on_objects(lambda held: held.metadata.labels.get("a") == "2"),
            PLAIN,
            {**PLAIN, "labels": {}},
            False,
        ),
    ],
)
def test_predicates_keep_out_what_cannot_matter(
    predicate: Predicate, old: Object | None, new: Object | None, passes: bool
) -> None:
    assert predicate(change(old, new)) is passes


async def test_predicates_guard_a_source(stage: Stage) -> None:
    stage.server.put({**config_map("a"), "spec": 1})
    await stage.start(for_kind(CONFIG_MAP, predicates=[generation_changed]))
    stage.server.put({**config_map("a"), "spec": 1, "status": 1})
    await settle()
    assert stage.calls == [A]
    stage.server.put({**config_map("a"), "spec": 2})
    await settle()
    assert stage.calls == [A, A]


async def test_ten_thousand_reconciles_that_do_nothing_cost_little() -> None:
    done = asyncio.Event()
    left = 10_000

    async def nothing(key: Key) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    channel = Channel()
    controller = Controller("load", nothing, [channel], workers=4)
    keys = [Key("default", f"object-{number}") for number in range(left)]
    started = time.process_time()
    for key in keys:
        channel.send(key)
    await controller.start(Caches(FakeServer()))
    await done.wait()
    await controller.stop()
    # About 0.15 s when measured; the promise is a second, and this machine may be busy.
    assert time.process_time() - started < 1.0


async def test_a_controller_without_workers_is_refused(stage: Stage) -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        stage.controller(workers=0)
