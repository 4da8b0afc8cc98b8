"""Watching with initial events: a list and a watch in one stream, with a bookmark between them."""

from __future__ import annotations

import pytest

from behaviour.collection import Collection, Object, config_map, done
from behaviour.streams import Event, watching
from behaviour.support import causes, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain

INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
WITH_BOOKMARKS = f"{INITIAL}&allowWatchBookmarks=true"
END = {"k8s.io/initial-events-end": "true"}


def without_root_certificate(events: list[Event]) -> list[Event]:
    """The events, without those about what every namespace has."""
    return [event for event in events if event.name != "kube-root-ca.crt"]


def newest(plain: Plain, path: str) -> int:
    """The version of a list made now."""
    listed: Object = done(plain.request("GET", path))
    return int(listed["metadata"]["resourceVersion"])


@pytest.mark.parametrize("version", ["", "&resourceVersion=", "&resourceVersion=0"])
def test_initial_events_show_what_is_there_and_end_with_a_bookmark(
    config_maps: Collection, version: str
) -> None:
    made = [done(config_maps.create(config_map(name))) for name in ("one", "two")]
    # Version 0 allows a state that is not the newest; a list at the newest one makes that state known first.
    at_least = newest(config_maps.plain, config_maps.path)
    done(config_maps.plain.request("GET", f"{config_maps.path}?resourceVersion={at_least}"))
    with watching(config_maps.plain, config_maps.path, f"{WITH_BOOKMARKS}{version}") as stream:
        *initial, bookmark = stream.until_bookmark()
    assert [event.object for event in without_root_certificate(initial)] == made
    assert {event.type for event in initial} == {"ADDED"}
    assert bookmark.object["metadata"]["annotations"] == END
    assert bookmark.version >= at_least


def test_the_bookmark_carries_nothing_but_its_kind_and_version(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, WITH_BOOKMARKS) as stream:
        bookmark = stream.until_bookmark()[-1]
    assert (bookmark.object["kind"], bookmark.object["apiVersion"]) == ("ConfigMap", "v1")
    assert bookmark.object["metadata"].keys() == {"resourceVersion", "annotations"}


def test_changes_follow_the_bookmark(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, WITH_BOOKMARKS) as stream:
        bookmark = stream.until_bookmark()[-1]
        done(config_maps.create(config_map("one")))
        done(config_maps.delete("one"))
        events = [stream.next(), stream.next()]
    assert [event.brief for event in events] == [("ADDED", "one"), ("DELETED", "one")]
    assert bookmark.version < events[0].version < events[1].version


def test_an_empty_collection_is_a_bookmark_alone(plain: Plain, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    with watching(plain, path, WITH_BOOKMARKS) as stream:
        bookmark = stream.next()
    assert bookmark.type == "BOOKMARK"
    assert bookmark.object["metadata"]["annotations"] == END
    assert bookmark.version > 0


def test_a_watch_can_go_on_from_the_bookmark(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, WITH_BOOKMARKS) as stream:
        bookmark = stream.until_bookmark()[-1]
    done(config_maps.create(config_map("one")))
    with watching(config_maps.plain, config_maps.path, f"resourceVersion={bookmark.version}") as stream:
        assert stream.next().brief == ("ADDED", "one")


def test_initial_events_are_at_least_as_new_as_the_version_asked_for(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one")))
    version = made["metadata"]["resourceVersion"]
    query = f"{WITH_BOOKMARKS}&resourceVersion={version}"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        *initial, bookmark = stream.until_bookmark()
    assert [event.object for event in without_root_certificate(initial)] == [made]
    assert bookmark.version >= int(version)


def test_selectors_apply_to_initial_events(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", labels={"app": "web"})))
    done(config_maps.create(config_map("two")))
    with watching(config_maps.plain, config_maps.path, f"{WITH_BOOKMARKS}&labelSelector=app") as stream:
        assert [event.brief for event in stream.until_bookmark()] == [("ADDED", "one"), ("BOOKMARK", "")]


def test_initial_events_without_bookmarks_have_no_end_mark(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    with watching(config_maps.plain, config_maps.path, f"{INITIAL}&timeoutSeconds=1") as stream:
        assert {event.type for event in stream.rest()} == {"ADDED"}


def test_custom_resources_send_initial_events(widgets: Collection, widget_kind: Widgets) -> None:
    made = done(widgets.create(widget_kind.widget("one")))
    with watching(widgets.plain, widgets.path, WITH_BOOKMARKS) as stream:
        first, bookmark = stream.until_bookmark()
    assert (first.type, first.object) == ("ADDED", made)
    assert (bookmark.object["kind"], bookmark.object["apiVersion"]) == ("Widget", widget_kind.api_version)


def test_metadata_alone_can_be_sent_as_initial_events(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "b"})))
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    with watching(config_maps.plain, config_maps.path, WITH_BOOKMARKS, accept=accept) as stream:
        events = without_root_certificate(stream.until_bookmark())
    assert [event.brief for event in events] == [("ADDED", "one"), ("BOOKMARK", "")]
    for event in events:
        assert event.object["kind"] == "PartialObjectMetadata"
        assert "data" not in event.object
    assert events[-1].object["metadata"]["annotations"] == END


def test_a_plain_watch_from_scratch_with_bookmarks_has_the_same_end_mark(config_maps: Collection) -> None:
    with watching(config_maps.plain, config_maps.path, "allowWatchBookmarks=true") as stream:
        assert stream.until_bookmark()[-1].object["metadata"]["annotations"] == END


def test_declining_initial_events_gives_only_what_comes_next(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        done(config_maps.create(config_map("two")))
        assert stream.next().brief == ("ADDED", "two")


def test_initial_events_of_a_version_that_is_still_to_come_are_an_error_event(
    config_maps: Collection,
) -> None:
    query = f"{WITH_BOOKMARKS}&resourceVersion=999999999"
    with watching(config_maps.plain, config_maps.path, query) as stream:
        assert stream.status == 200
        events = stream.rest()
    assert [event.type for event in events] == ["ERROR"]
    status = events[0].object
    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


MATCH_NEEDED = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
EVENTS_NEEDED = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
NO_CONTINUE = "Forbidden: resourceVersionMatch is forbidden when continue is provided"


def unsupported(value: str) -> str:
    """How a match other than NotOlderThan is refused."""
    return f'Unsupported value: "{value}": supported values: "NotOlderThan"'


@pytest.mark.parametrize(
    ("query", "problems"),
    [
        ("sendInitialEvents=true", [MATCH_NEEDED]),
        ("sendInitialEvents=false", [MATCH_NEEDED]),
        ("resourceVersionMatch=NotOlderThan", [EVENTS_NEEDED]),
        ("resourceVersionMatch=Exact", [EVENTS_NEEDED, unsupported("Exact")]),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", [MATCH_NEEDED, unsupported("Exact")]),
        (f"{INITIAL}&continue=abc", [NO_CONTINUE]),
        ("continue=abc", [NO_CONTINUE]),
    ],
)
def test_a_combination_that_makes_no_sense_is_invalid(plain: Plain, query: str, problems: list[str]) -> None:
    answer = plain.request("GET", f"/api/v1/configmaps?watch=true&{query}")
    texts = [f"resourceVersionMatch: {problem}" for problem in problems]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert refusal(answer) == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {joined}')
    assert [cause[2] for cause in causes(answer)] == sorted(problems)
    assert answer.json()["details"]["kind"] == "ListOptions"
