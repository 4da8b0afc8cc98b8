from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kube_runtime.fake_server import FakeServer, config_map, error
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import Object
from podium.kube.errors import ConnectionFailed
from podium.kube.events import EVENT, EventLimits, EventRecorder, EventSource, Severity
from podium.kube.metrics import Metrics


class Stage:
    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.about = config_map("a")
        self.about["metadata"]["uid"] = "u1"
        self.recorder = self.make()

    def make(self, limits: EventLimits | None = None) -> EventRecorder:
        return EventRecorder(
            self.server,
            "podium",
            instance="podium-0",
            limits=limits,
            clock=self.clock,
            metrics=self.metrics,
        )

    def events(self) -> list[Object]:
        return [obj for (gvk, _), obj in self.server.objects.items() if gvk == EVENT]

    def told(self) -> list[tuple[str, int]]:
        return [(event["message"], event["count"]) for event in self.events()]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.recorder.start()
    yield stage
    await stage.recorder.stop()


async def test_an_event_names_its_object_its_reason_and_who_tells_it(stage: Stage) -> None:
    stage.recorder.warning(stage.about, "PullFailed", "no such image")
    await settle()
    (event,) = stage.events()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "a",
        "uid": "u1",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "PullFailed", "no such image")
    assert (event["source"], event["reportingInstance"]) == ({"component": "podium"}, "podium-0")
    assert event["metadata"]["namespace"] == "default"


async def test_the_same_event_again_raises_the_count_of_the_first(stage: Stage) -> None:
    for _ in range(3):
        stage.recorder.normal(stage.about, "Synced", "done")
        await stage.clock.advance(60)
    (event,) = stage.events()
    assert event["count"] == 3
    assert event["lastTimestamp"] > event["firstTimestamp"]
    assert [request.split()[0] for request in stage.server.requests] == ["create", "patch", "patch"]


async def test_events_that_come_faster_than_they_are_sent_are_sent_once(stage: Stage) -> None:
    for _ in range(20):
        stage.recorder.normal(stage.about, "Synced", "done")
    await settle()
    assert stage.told() == [("done", 20)]
    assert len(stage.server.requests) == 1


async def test_different_objects_reasons_types_and_messages_are_kept_apart(stage: Stage) -> None:
    other = config_map("b", "elsewhere")
    stage.recorder.normal(stage.about, "Synced", "done")
    stage.recorder.normal(other, "Synced", "done")
    stage.recorder.normal(stage.about, "Pulled", "done")
    stage.recorder.warning(stage.about, "Synced", "done")
    stage.recorder.normal(stage.about, "Synced", "done again")
    await settle()
    assert [event["count"] for event in stage.events()] == [1] * 5
    assert {event["metadata"]["namespace"] for event in stage.events()} == {"default", "elsewhere"}


async def test_many_similar_events_are_combined(stage: Stage) -> None:
    for number in range(14):
        stage.recorder.warning(stage.about, "Failed", f"try {number}")
        await settle()
    told = stage.told()
    assert told[:10] == [(f"try {number}", 1) for number in range(10)]
    assert told[10:] == [("(combined from similar events): try 13", 4)]


async def test_similar_events_are_told_one_by_one_again_after_a_quiet_time(stage: Stage) -> None:
    for number in range(10):
        stage.recorder.warning(stage.about, "Failed", f"try {number}")
    await stage.clock.advance(601)
    stage.recorder.warning(stage.about, "Failed", "try 99")
    await settle()
    assert stage.told()[-1] == ("try 99", 1)


async def test_an_object_that_is_too_talkative_is_cut_off_and_slowly_forgiven(stage: Stage) -> None:
    for _ in range(30):
        stage.recorder.normal(stage.about, "Synced", "done")
    await settle()
    assert stage.told() == [("done", 25)]
    assert stage.metrics.events_dropped.value("budget") == 5
    stage.recorder.normal(config_map("quiet"), "Synced", "done")
    await stage.clock.advance(300)
    stage.recorder.normal(stage.about, "Synced", "done")
    stage.recorder.normal(stage.about, "Synced", "done")
    await settle()
    assert stage.told() == [("done", 26), ("done", 1)]


async def test_an_event_that_the_server_forgot_is_made_anew(stage: Stage) -> None:
    stage.recorder.normal(stage.about, "Synced", "done")
    await settle()
    stage.server.objects.clear()
    stage.recorder.normal(stage.about, "Synced", "done")
    await settle()
    assert stage.told() == [("done", 2)]


async def test_a_server_that_is_away_is_waited_for(stage: Stage) -> None:
    stage.server.failures = [
        ConnectionFailed("refused", sent=False),
        error(503, "ServiceUnavailable"),
        error(429, "TooManyRequests"),
    ]
    stage.recorder.normal(stage.about, "Synced", "done")
    await stage.clock.advance(60)
    assert stage.told() == [("done", 1)]


@pytest.mark.parametrize(
    ("failures", "cause"),
    [
        (lambda: [error(403, "Forbidden", "the namespace is being terminated")], "refused"),
        (lambda: [ConnectionFailed("refused", sent=False) for _ in range(12)], "refused"),
        (lambda: [RuntimeError("a bug")], "failed"),
    ],
)
async def test_what_cannot_be_sent_is_dropped_and_does_not_hold_up_the_rest(
    stage: Stage, failures: Callable[[], list[Exception]], cause: str
) -> None:
    stage.server.failures = failures()
    stage.recorder.normal(stage.about, "First", "one")
    stage.recorder.normal(stage.about, "Second", "two")
    await stage.clock.advance(600)
    assert stage.told() == [("two", 1)]
    assert stage.metrics.events_dropped.value(cause) == 1


async def test_too_many_waiting_events_are_dropped() -> None:
    stage = Stage()
    recorder = stage.make(EventLimits(waiting=3))
    for number in range(5):
        recorder.normal(config_map(f"object-{number}"), "Synced", "done")
    assert stage.metrics.events_dropped.value("full") == 2
    recorder.start()
    await recorder.stop()
    assert len(stage.events()) == 3


async def test_stopping_does_not_wait_for_ever(stage: Stage) -> None:
    stage.server.failures = [ConnectionFailed("refused", sent=False) for _ in range(100)]
    stage.recorder.normal(stage.about, "Synced", "done")
    await settle()

    stopping = asyncio.create_task(stage.recorder.stop(flush_seconds=5))
    await stage.clock.advance(6)
    await stopping
    assert stage.metrics.events_dropped.value("stopped") == 1


async def test_long_messages_and_names_are_cut_to_what_servers_take(stage: Stage) -> None:
    stage.recorder.event(config_map("n" * 253), Severity.NORMAL, "Long", "ä" * 2000)
    await settle()
    (event,) = stage.events()
    assert len(event["message"].encode()) <= 1024
    assert event["message"].endswith("ä…")
    assert len(event["metadata"]["name"]) == 253


async def test_events_about_cluster_wide_objects_lie_in_the_default_namespace(stage: Stage) -> None:
    stage.recorder.normal({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "Seen", "hello")
    await settle()
    assert stage.events()[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in stage.events()[0]["involvedObject"]


async def test_one_recorder_can_speak_for_several_components_and_of_parts_of_an_object(stage: Stage) -> None:
    kubelet, place = EventSource("kubelet", host="node-1"), "spec.containers{a}"
    stage.recorder.event(stage.about, Severity.NORMAL, "Started", "up", source=kubelet, field_path=place)
    stage.recorder.normal(stage.about, "Started", "up")
    await settle()
    first, second = stage.events()
    assert first["source"] == {"component": "kubelet", "host": "node-1"}
    assert first["reportingComponent"] == "kubelet"
    assert first["involvedObject"]["fieldPath"] == place
    assert second["source"] == {"component": "podium"}
    assert "fieldPath" not in second["involvedObject"]


async def test_what_is_sent_at_once_is_still_counted_and_named_in_order() -> None:
    stage = Stage()
    recorder = stage.make(EventLimits(at_once=4))
    for number in range(8):
        recorder.normal(stage.about, "Said", f"{number % 4}")
    recorder.start()
    was_busy = recorder.is_busy
    await settle()
    recorder.normal(stage.about, "Said", "0")
    recorder.normal(stage.about, "Said", "0")
    await settle()
    assert was_busy
    assert not recorder.is_busy
    assert sorted(stage.told()) == [("0", 4), ("1", 2), ("2", 2), ("3", 2)]
    by_name = sorted(stage.events(), key=lambda event: str(event["metadata"]["name"]))
    assert [event["message"] for event in by_name] == ["0", "1", "2", "3"]
    await recorder.stop()


async def test_a_refusal_in_a_namespace_that_is_going_is_nothing_to_talk_about(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace default is being terminated"}
    stage.server.failures = [error(403, "Forbidden", "unable to create new content", causes=[cause])]
    stage.recorder.normal(stage.about, "Stopped", "gone")
    await settle()
    assert stage.events() == []
    assert stage.metrics.events_dropped.value("refused") == 1
    assert caplog.text == ""
