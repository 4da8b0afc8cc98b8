"""Tables and metadata: answers in the forms that kubectl and informers ask for."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.collection import Collection, Object, config_map, deployment, done, pod
from behaviour.streams import watching
from behaviour.support import refusal
from behaviour.widgets import Widgets
from harness.plain import Answer

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def asked(collection: Collection, accept: str, name: str = "", query: str = "") -> Answer:
    """The answer in an accepted form."""
    path = collection.at(name) if name else collection.path
    return collection.plain.request("GET", f"{path}?{query}", headers={"Accept": accept})


def columns(table: Object) -> list[tuple[str, str, int]]:
    """Name, type and priority of the columns."""
    return [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]


def row(table: Object, name: str) -> dict[str, Any]:
    """The row whose first cell is the name."""
    found: dict[str, Any] = next(row for row in table["rows"] if row["cells"][0] == name)
    return found


def test_a_list_as_a_table_has_columns_and_a_row_for_each_object(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "1", "b": "2"})))
    table = done(asked(config_maps, TABLE))
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == [("Name", "string", 0), ("Data", "string", 0), ("Age", "string", 0)]
    assert table["columnDefinitions"][0]["format"] == "name"
    cells = row(table, "one")["cells"]
    assert cells[:2] == ["one", 2]
    assert cells[2].endswith("s")
    assert int(table["metadata"]["resourceVersion"]) > 0


def test_one_object_as_a_table_is_one_row(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one")))
    table = done(asked(config_maps, TABLE, "one"))
    assert [r["cells"][0] for r in table["rows"]] == ["one"]
    assert table["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_an_empty_table_still_has_its_columns(deployments: Collection) -> None:
    table = done(asked(deployments, TABLE))
    names = [name for name, _, priority in columns(table) if priority == 0]
    assert names == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert table["rows"] == []


def test_a_deployment_row_tells_its_replicas(deployments: Collection) -> None:
    done(deployments.create(deployment("web")))
    table = done(asked(deployments, TABLE))
    assert row(table, "web")["cells"][:4] == ["web", "0/0", 0, 0]
    wide = [name for name, _, priority in columns(table) if priority > 0]
    assert wide == ["Containers", "Images", "Selector"]
    assert row(table, "web")["cells"][5:] == ["main", "example.com/web:1", "app=web"]


def test_a_pod_row_tells_its_phase(pods: Collection) -> None:
    done(pods.create(pod("web", schedulerName="nobody")))
    cells = row(done(asked(pods, TABLE)), "web")["cells"]
    assert cells[:4] == ["web", "0/1", "Pending", "0"]


def test_a_custom_resource_has_the_columns_of_its_definition(
    widgets: Collection, widget_kind: Widgets
) -> None:
    done(widgets.create(widget_kind.widget("one", spec={"color": "red", "size": 3})))
    done(widgets.create(widget_kind.widget("two")))
    table = done(asked(widgets, TABLE))
    assert columns(table) == [("Name", "string", 0), ("Color", "string", 0), ("Size", "integer", 1)]
    assert [r["cells"] for r in table["rows"]] == [["one", "red", 3], ["two", None, None]]


@pytest.mark.parametrize("query", ["", "includeObject=Metadata"])
def test_a_row_carries_the_metadata_of_its_object(config_maps: Collection, query: str) -> None:
    made = done(config_maps.create(config_map("one", {"a": "b"})))
    carried = row(done(asked(config_maps, TABLE, query=query)), "one")["object"]
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    assert carried == {**head, "metadata": made["metadata"]}


def test_a_row_can_carry_the_whole_object(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"a": "b"})))
    assert row(done(asked(config_maps, TABLE, query="includeObject=Object")), "one")["object"] == made


def test_a_row_can_carry_nothing(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    assert row(done(asked(config_maps, TABLE, query="includeObject=None")), "one")["object"] is None


def test_what_a_row_cannot_carry_is_refused(config_maps: Collection) -> None:
    answer = asked(config_maps, TABLE, query="includeObject=Everything")
    allowed = "must be 'Metadata', 'Object', 'None', or empty"
    why = f'includeObject: Invalid value: "Everything": {allowed}'
    message = f"Unable to convert to Table as requested: {why}"
    assert refusal(answer) == (400, "BadRequest", message)


def test_tables_come_in_pages(config_maps: Collection) -> None:
    for name in ("a", "b", "c"):
        done(config_maps.create(config_map(name)))
    first = done(asked(config_maps, TABLE, query="limit=2"))
    assert [r["cells"][0] for r in first["rows"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 2
    rest = done(asked(config_maps, TABLE, query=f"limit=2&continue={first['metadata']['continue']}"))
    assert [r["cells"][0] for r in rest["rows"]] == ["c", "kube-root-ca.crt"]


def test_a_failure_is_a_status_whatever_form_was_asked_for(config_maps: Collection) -> None:
    for accept in (TABLE, METADATA):
        assert refusal(asked(config_maps, accept, "nothing"))[:2] == (404, "NotFound")


def test_a_created_object_can_be_answered_as_a_table(config_maps: Collection) -> None:
    answer = config_maps.plain.request("POST", config_maps.path, config_map("one"), headers={"Accept": TABLE})
    assert (answer.status, answer.json()["kind"]) == (201, "Table")
    assert answer.json()["rows"][0]["cells"][0] == "one"


def test_a_watch_can_send_tables_with_the_columns_once(config_maps: Collection) -> None:
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    done(config_maps.create(config_map("one")))
    with watching(config_maps.plain, config_maps.path, query, accept=TABLE) as stream:
        events = [stream.next() for _ in range(3)]
        done(config_maps.create(config_map("two")))
        events.append(stream.next())
    assert [event.type for event in events] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    assert {event.object["kind"] for event in events} == {"Table"}
    assert [len(event.object["columnDefinitions"] or ()) for event in events] == [3, 0, 0, 0]
    assert [len(event.object["rows"]) for event in events] == [1, 1, 1, 1]
    marked = events[2].object["rows"][0]["object"]["metadata"]["annotations"]
    assert marked == {"k8s.io/initial-events-end": "true"}


def test_metadata_alone_can_be_read(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"a": "b"}, labels={"app": "web"})))
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    assert done(asked(config_maps, METADATA, "one")) == {**head, "metadata": made["metadata"]}


def test_metadata_alone_can_be_listed(widgets: Collection, widget_kind: Widgets) -> None:
    made = done(widgets.create(widget_kind.widget("one", spec={"size": 1})))
    found = done(asked(widgets, METADATA_LIST))
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    item = found["items"][0]
    assert item["metadata"] == made["metadata"]
    assert "spec" not in item
    assert (item["kind"], item["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")


def test_metadata_alone_can_be_watched(config_maps: Collection) -> None:
    listed = done(asked(config_maps, METADATA_LIST))
    query = f"resourceVersion={listed['metadata']['resourceVersion']}"
    with watching(config_maps.plain, config_maps.path, query, accept=METADATA) as stream:
        made = done(config_maps.create(config_map("one", {"a": "b"})))
        done(config_maps.delete("one"))
        added, deleted = stream.next(), stream.next()
    assert (added.type, deleted.type) == ("ADDED", "DELETED")
    assert added.object["metadata"] == made["metadata"]
    for event in (added, deleted):
        assert event.object.keys() == {"kind", "apiVersion", "metadata"}


def test_metadata_of_one_and_of_many_are_not_the_same_form(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    wrong = (
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    )
    assert refusal(asked(config_maps, METADATA_LIST, "one")) == (406, "NotAcceptable", wrong)
    wrong = "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    assert refusal(asked(config_maps, METADATA)) == (406, "NotAcceptable", wrong)
