"""Watching: every change once and in order, from any version that is still known."""

from __future__ import annotations

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from behaviour.collection import Collection, Object, config_map, done, pod
from behaviour.expiry import expire_history
from behaviour.streams import Event, Stream, watching
from behaviour.support import eventually, refusal
from behaviour.widgets import Widgets, installed
from harness.plain import Plain
from harness.plane import ControlPlane, create_namespace


def version_of(obj: Object) -> str:
    """The resourceVersion of an object or a list."""
    version: str = obj["metadata"]["resourceVersion"]
    return version


def now(collection: Collection) -> str:
    """The version from which a watch gives only what comes next."""
    return version_of(done(collection.plain.request("GET", collection.path)))


def from_now(collection: Collection) -> str:
    """The query for a watch of what comes next."""
    return f"resourceVersion={now(collection)}"


def test_a_watch_gives_each_change_as_it_happens(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, from_now(config_maps)) as stream:
        assert (stream.status, stream.headers["Content-Type"]) == (200, "application/json")
        made = done(config_maps.create(config_map("one")))
        changed = done(config_maps.patch("one", {"data": {"a": "b"}}))
        done(config_maps.delete("one"))
        events = [stream.next() for _ in range(3)]
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object for event in events[:2]] == [made, changed]


def test_a_deleted_object_is_shown_as_it_last_was_at_the_version_of_its_deletion(
    config_maps: Collection,
) -> None:
    made = done(config_maps.create(config_map("one", {"a": "b"})))
    with watching(config_maps.plain, config_maps.path, from_now(config_maps)) as stream:
        done(config_maps.delete("one"))
        event = stream.next()
    assert event.type == "DELETED"
    assert event.version > int(version_of(made))
    assert (event.object["data"], event.object["metadata"]["uid"]) == (made["data"], made["metadata"]["uid"])
    assert event.version <= int(now(config_maps))


def test_a_change_that_changes_nothing_is_no_event(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"a": "b"})))
    with watching(config_maps.plain, config_maps.path, from_now(config_maps)) as stream:
        assert version_of(done(config_maps.patch("one", {"data": {"a": "b"}}))) == version_of(made)
        done(config_maps.create(config_map("two")))
        assert stream.next().brief == ("ADDED", "two")


def test_a_watch_from_a_version_gives_exactly_what_came_after_it(config_maps: Collection) -> None:
    first = done(config_maps.create(config_map("one")))
    done(config_maps.create(config_map("two")))
    done(config_maps.patch("one", {"data": {"a": "b"}}))
    done(config_maps.delete("two"))
    with watching(config_maps.plain, config_maps.path, f"resourceVersion={version_of(first)}") as stream:
        assert stream.take(3) == [("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")]
        done(config_maps.create(config_map("three")))
        assert stream.take(1) == [("ADDED", "three")]


def test_a_watch_that_resumes_where_another_ended_misses_nothing(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, from_now(config_maps)) as stream:
        done(config_maps.create(config_map("one")))
        last = stream.next()
    for number in range(5):
        done(config_maps.patch("one", {"data": {"n": str(number)}}))
    with watching(config_maps.plain, config_maps.path, f"resourceVersion={last.version}") as stream:
        events = [stream.next() for _ in range(5)]
    assert [event.object["data"]["n"] for event in events] == list("01234")
    assert all(a.version < b.version for a, b in zip([last, *events], events, strict=False))


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
def test_a_watch_from_scratch_begins_with_what_is_there(config_maps: Collection, query: str) -> None:
    made = done(config_maps.create(config_map("one")))
    eventually(
        lambda: "one" in json.dumps(done(config_maps.plain.request("GET", f"{config_maps.path}?{query}")))
    )
    with watching(config_maps.plain, config_maps.path, query) as stream:
        found = {event.name: event for event in (stream.next(), stream.next())}
        assert {event.type for event in found.values()} == {"ADDED"}
        assert found["one"].object == made
        done(config_maps.delete("one"))
        assert stream.next().brief == ("DELETED", "one")


def test_a_watch_of_one_name_sees_only_that_object(config_maps: Collection) -> None:
    query = f"{from_now(config_maps)}&fieldSelector=metadata.name%3Done"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        for name in ("other", "one", "another"):
            done(config_maps.create(config_map(name)))
        done(config_maps.delete("one"))
        assert stream.take(2) == [("ADDED", "one"), ("DELETED", "one")]


def test_asking_to_watch_one_object_by_its_path_just_gets_it(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one")))
    assert done(config_maps.plain.request("GET", config_maps.at("one", query="watch=true"))) == made


def test_a_watch_across_namespaces_sees_each_of_them(config_maps: Collection, plain: Plain) -> None:
    other = Collection(plain, f"/api/v1/namespaces/{create_namespace(plain, 'other')}/configmaps")
    query = f"{from_now(config_maps)}&labelSelector=mark%3D{secrets.token_hex(4)}"
    mark = query.rpartition("%3D")[2]
    with watching(plain, "/api/v1/configmaps", query) as stream:
        done(config_maps.create(config_map("one", labels={"mark": mark})))
        done(other.create(config_map("two", labels={"mark": mark})))
        events = [stream.next(), stream.next()]
    namespaces = [event.object["metadata"]["namespace"] for event in events]
    assert namespaces == [config_maps.path.split("/")[4], other.path.split("/")[4]]
    plain.request("DELETE", other.path.removesuffix("/configmaps"))


def test_objects_enter_and_leave_a_label_selection(config_maps: Collection) -> None:
    query = f"{from_now(config_maps)}&labelSelector={quote('app in (web,db)')}"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        done(config_maps.create(config_map("one")))
        for value in ("web", "db", None, "web"):
            changed = done(config_maps.patch("one", {"metadata": {"labels": {"app": value}}}))
        done(config_maps.delete("one"))
        events = [stream.next() for _ in range(5)]
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    left, entered = events[2], events[3]
    assert left.object["metadata"]["labels"] == {"app": "db"}
    assert events[1].version < left.version < entered.version == int(version_of(changed))


def test_objects_enter_and_leave_a_field_selection(pods: Collection) -> None:
    query = f"{from_now(pods)}&fieldSelector={quote('status.phase=Running')}"
    done(pods.create(pod("web", schedulerName="nobody", nodeName="there")))
    with watching(pods.plain, pods.path, query) as stream:
        for phase in ("Running", "Succeeded"):
            done(pods.patch("web", {"status": {"phase": phase}}, sub="status"))
        events = [stream.next(), stream.next()]
    assert [event.type for event in events] == ["ADDED", "DELETED"]
    assert events[1].object["status"]["phase"] == "Running"


def test_custom_resources_enter_and_leave_a_field_selection(
    widgets: Collection, widget_kind: Widgets
) -> None:
    query = f"{from_now(widgets)}&fieldSelector={quote('spec.color=red')}"
    with watching(widgets.plain, widgets.path, query) as stream:
        done(widgets.create(widget_kind.widget("one", spec={"color": "blue"})))
        for color in ("red", "blue"):
            done(widgets.patch("one", {"spec": {"color": color}}))
        assert stream.take(2) == [("ADDED", "one"), ("DELETED", "one")]


def test_a_watch_ends_when_its_time_is_up(config_maps: Collection) -> None:
    started = time.monotonic()
    with watching(config_maps.plain, config_maps.path, f"{from_now(config_maps)}&timeoutSeconds=1") as stream:
        assert [event for event in stream.rest() if event.type != "BOOKMARK"] == []
    assert 0.5 < time.monotonic() - started < 5


def test_a_watch_without_bookmarks_gets_none(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, "timeoutSeconds=1") as stream:
        assert {event.type for event in stream.rest()} == {"ADDED"}


def test_bookmarks_say_how_far_the_watch_has_come(config_maps: Collection) -> None:
    query = f"{from_now(config_maps)}&allowWatchBookmarks=true&timeoutSeconds=3"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        made = done(config_maps.create(config_map("one")))
        events = stream.rest()
    assert events[0].brief == ("ADDED", "one")
    bookmarks = [event for event in events if event.type == "BOOKMARK"]
    assert bookmarks
    for bookmark in bookmarks:
        assert (bookmark.object["kind"], bookmark.object["apiVersion"]) == ("ConfigMap", "v1")
        assert bookmark.object.keys() == {"kind", "apiVersion", "metadata"}
        assert bookmark.object["metadata"].keys() == {"resourceVersion"}
        assert bookmark.version >= int(version_of(made))


def test_a_version_that_is_forgotten_ends_the_watch_with_an_expired_event(
    control_plane: ControlPlane, widgets: Collection
) -> None:
    expire_history(control_plane, widgets.plain)
    with watching(widgets.plain, widgets.path, "resourceVersion=1") as stream:
        assert stream.status == 200
        events = stream.rest()
    assert [event.type for event in events] == ["ERROR"]
    status = events[0].object
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


def test_a_version_that_is_still_to_come_is_waited_for(config_maps: Collection) -> None:
    query = "resourceVersion=999999999&timeoutSeconds=1"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        assert stream.status == 200
        done(config_maps.create(config_map("one")))
        assert stream.rest() == []


def test_a_version_that_is_no_number_fails_a_watch_without_a_reason(config_maps: Collection) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?watch=true&resourceVersion=abc")
    parsing = 'strconv.ParseUint: parsing "abc": invalid syntax'
    assert refusal(answer) == (500, "", f'resourceVersion: Invalid value: "abc": {parsing}')


def test_a_watch_of_a_resource_that_cannot_be_watched_is_refused(plain: Plain) -> None:
    answer = plain.request("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?watch=true")
    assert refusal(answer)[:2] == (405, "MethodNotAllowed")


def test_a_watch_selects_before_it_starts(config_maps: Collection) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?watch=true&labelSelector=-")
    assert refusal(answer)[:2] == (400, "BadRequest")


def test_the_end_of_a_definition_deletes_its_objects_and_ends_their_watch(
    plain: Plain, namespace: str
) -> None:
    with installed(plain) as kind:
        widgets = kind.collection(plain, namespace)
        done(widgets.create(kind.widget("one")))
        with watching(plain, widgets.path, from_now(widgets)) as stream:
            definition = f"widgets.{kind.group}"
            definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            done(plain.request("DELETE", f"{definitions}/{definition}"))
            assert stream.next().brief == ("DELETED", "one")
            assert stream.rest() == []
        eventually(lambda: plain.request("GET", widgets.path).status == 404)


def test_one_change_reaches_a_hundred_watchers(config_maps: Collection) -> None:
    query = from_now(config_maps)
    with ExitStack() as open_watches:
        streams = [
            open_watches.enter_context(watching(config_maps.plain, config_maps.path, query))
            for _ in range(100)
        ]
        made = done(config_maps.create(config_map("one")))
        for stream in streams:
            event = stream.next()
            assert (event.type, event.object) == ("ADDED", made)


def test_concurrent_writes_reach_a_watch_in_the_order_of_their_versions(config_maps: Collection) -> None:
    def write(writer: int) -> list[int]:
        made = [done(config_maps.create(config_map(f"w{writer}-{number}"))) for number in range(8)]
        return [int(version_of(obj)) for obj in made]

    with watching(config_maps.plain, config_maps.path, from_now(config_maps)) as stream:
        with ThreadPoolExecutor(6) as writers:
            written = [version for versions in writers.map(write, range(6)) for version in versions]
        seen = [stream.next().version for _ in written]
    assert seen == sorted(written)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["write", "delete"])), max_size=12))
def test_a_watch_replays_to_the_list_with_rising_versions(
    config_maps: Collection, steps: list[tuple[str, str]]
) -> None:
    start = done(config_maps.plain.request("GET", config_maps.path))
    state = {item["metadata"]["name"]: version_of(item) for item in start["items"]}
    for number, (name, step) in enumerate(steps):
        if step == "delete":
            config_maps.delete(name)
        elif config_maps.create(config_map(name)).status == 409:
            done(config_maps.patch(name, {"data": {"step": f"{number}-{secrets.token_hex(2)}"}}))
    end = done(config_maps.create(config_map(f"end-{secrets.token_hex(4)}")))
    query = f"resourceVersion={version_of(start)}"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        seen = replayed(state, until(stream, end["metadata"]["name"]))
    final = done(config_maps.plain.request("GET", config_maps.path))
    assert seen == {item["metadata"]["name"]: version_of(item) for item in final["items"]}


def until(stream: Stream, name: str) -> list[Event]:
    """Events up to the one about this name; their versions must rise."""
    events = [stream.next()]
    while events[-1].name != name:
        events.append(stream.next())
    versions = [event.version for event in events]
    assert versions == sorted(set(versions))
    return events


def replayed(state: dict[str, str], events: list[Event]) -> dict[str, str]:
    """Names and versions after the events; an event that does not fit the state fails."""
    for event in events:
        assert (event.type == "ADDED") is (event.name not in state)
        if event.type == "DELETED":
            del state[event.name]
        else:
            state[event.name] = str(event.version)
    return state
