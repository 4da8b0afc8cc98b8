"""Custom resources beside their content: status, scale, columns, selectors, apply, patches."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.definitions import APPLY, CRDS, MERGE, Definitions, Objects, properties, version
from behaviour.streams import watching
from behaviour.support import causes, eventually, refusal
from harness.kubectl import Kubectl
from harness.plain import Plain

Object = dict[str, Any]

STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
COLUMNS = [
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "What it looks like."},
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Born", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def keyed(**fields: Any) -> Object:
    """A list whose items are told apart by `name`."""
    return {
        "type": "array",
        "items": {**properties(name=STRING, **fields), "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


@pytest.fixture(scope="module")
def kinds(definitions: Definitions) -> dict[str, Objects]:
    """The kinds of this module, made together."""
    condition = {"type": "array", "items": properties(type=STRING, status=STRING)}
    widget = properties(
        spec=properties(color=STRING, size=INTEGER, replicas=INTEGER, flag={"type": "boolean"}),
        status=properties(
            replicas=INTEGER, selector=STRING, conditions=condition, low={**INTEGER, "minimum": 1}
        ),
    )
    applied = properties(
        spec=properties(
            ports=keyed(port=INTEGER),
            tags={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
            args={"type": "array", "items": STRING},
            whole={**properties(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"},
            labels={"type": "object", "additionalProperties": STRING},
        )
    )
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.flag"}]
    one = version(
        "v1",
        widget,
        subresources={"status": {}, "scale": SCALE},
        additionalPrinterColumns=COLUMNS,
        selectableFields=fields,
    )
    return {
        "Widget": definitions.add("Widget", one, shortNames=["wdg"], categories=["gadgets"]),
        "Bare": definitions.add("Bare"),
        "Applied": definitions.add("Applied", version("v1", applied)),
        "Global": definitions.add("Global", scope="Cluster"),
    }


@pytest.fixture
def widgets(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects with a status, a scale, columns and selectable fields."""
    return kinds["Widget"].within(namespace)


@pytest.fixture
def bare(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects without any subresource."""
    return kinds["Bare"].within(namespace)


@pytest.fixture
def applied(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects with lists and maps of every kind."""
    return kinds["Applied"].within(namespace)


def test_a_new_object_has_no_status(widgets: Objects) -> None:
    created = widgets.create("one", spec={"color": "red"}, status={"replicas": 1})
    assert "status" not in created
    assert created["metadata"]["generation"] == 1


def test_an_update_leaves_the_status_alone(widgets: Objects) -> None:
    widgets.create("one")
    widgets.patch("one", {"status": {"replicas": 1}}, "status")
    updated = widgets.patch("one", {"spec": {"color": "red"}, "status": {"replicas": 5}}).json()
    assert updated["status"] == {"replicas": 1}
    assert updated["metadata"]["generation"] == 2


def test_a_status_update_leaves_everything_else_alone(widgets: Objects) -> None:
    created = widgets.create("one", spec={"color": "red"})
    created["spec"]["color"] = "blue"
    created["metadata"]["labels"] = {"a": "b"}
    created["status"] = {"replicas": 3}
    updated = widgets.replace(created, "status").json()
    assert (updated["spec"], updated["status"]) == ({"color": "red"}, {"replicas": 3})
    assert "labels" not in updated["metadata"]
    assert updated["metadata"]["generation"] == 1


def test_a_status_is_validated(widgets: Objects) -> None:
    widgets.create("one")
    answer = widgets.patch("one", {"status": {"low": 0}}, "status")
    text = "Invalid value: 0: low in body should be greater than or equal to 1"
    assert causes(answer) == [("status.low", "FieldValueInvalid", text)]


def test_labels_do_not_raise_the_generation(widgets: Objects) -> None:
    widgets.create("one")
    assert widgets.patch("one", {"metadata": {"labels": {"a": "b"}}}).json()["metadata"]["generation"] == 1


def test_without_a_status_subresource_the_status_is_content(bare: Objects) -> None:
    created = bare.create("one", status={"a": 1})
    assert created["status"] == {"a": 1}
    assert bare.patch("one", {"status": {"a": 2}}).json()["metadata"]["generation"] == 2
    answer = bare.plain.request("GET", bare.path("one", "status"))
    assert refusal(answer) == (404, "NotFound", f'{bare.crd_name} "one" not found')


def test_the_scale_is_read_from_its_paths(widgets: Objects) -> None:
    created = widgets.create("one", spec={"replicas": 2})
    widgets.patch("one", {"status": {"replicas": 1, "selector": "a=b"}}, "status")
    scale = widgets.plain.request("GET", widgets.path("one", "scale")).json()
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 1, "selector": "a=b"}
    assert scale["metadata"]["uid"] == created["metadata"]["uid"]


def test_scaling_changes_the_object(widgets: Objects) -> None:
    widgets.create("one", spec={"replicas": 2})
    answer = widgets.patch("one", {"spec": {"replicas": 5}}, "scale")
    assert (answer.status, answer.json()["spec"]) == (200, {"replicas": 5})
    after = widgets.read("one")
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (5, 2)


def test_a_scale_can_be_replaced(widgets: Objects) -> None:
    widgets.create("one", spec={"replicas": 2})
    scale = widgets.plain.request("GET", widgets.path("one", "scale")).json()
    scale["spec"]["replicas"] = 7
    assert widgets.plain.request("PUT", widgets.path("one", "scale"), scale).status == 200
    assert widgets.read("one")["spec"]["replicas"] == 7
    stale = widgets.plain.request("PUT", widgets.path("one", "scale"), scale)
    assert (stale.status, stale.json()["reason"]) == (409, "Conflict")


def test_a_scale_without_replicas_is_an_error(widgets: Objects) -> None:
    widgets.create("one", spec={})
    answer = widgets.plain.request("GET", widgets.path("one", "scale"))
    text = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    assert refusal(answer) == (500, "InternalError", text)


def test_scale_refuses_less_than_nothing(widgets: Objects) -> None:
    widgets.create("one", spec={"replicas": 1})
    assert widgets.patch("one", {"spec": {"replicas": -1}}, "scale").status == 422
    answer = widgets.attempt("two", spec={"replicas": -1})
    text = "Invalid value: -1: should be a non-negative integer"
    assert causes(answer) == [(".spec.replicas", "FieldValueInvalid", text)]


@pytest.mark.kubectl
def test_kubectl_scales_a_custom_resource(widgets: Objects, kubectl: Kubectl) -> None:
    widgets.create("one", spec={"replicas": 1})
    kubectl.run("scale", f"{widgets.crd_name}/one", "--replicas=4")
    assert widgets.read("one")["spec"]["replicas"] == 4


@pytest.mark.kubectl
def test_kubectl_finds_short_names_and_categories(widgets: Objects, kubectl: Kubectl) -> None:
    widgets.create("one", spec={"color": "red"})
    assert kubectl.run("get", f"wdg.{widgets.group}", "-o", "name").stdout == f"widget.{widgets.group}/one\n"
    assert f"widget.{widgets.group}/one" in kubectl.run("get", "gadgets", "-o", "name").stdout


@pytest.mark.kubectl
def test_kubectl_prints_the_columns(widgets: Objects, kubectl: Kubectl) -> None:
    widgets.create("one", spec={"color": "red", "size": 3})
    head, row = kubectl.run("get", widgets.crd_name, "--sort-by=.metadata.name").stdout.splitlines()
    assert head.split() == ["NAME", "COLOR", "READY", "BORN"]
    assert row.split()[:2] == ["one", "red"]
    wide = kubectl.run("get", widgets.crd_name, "-o", "wide").stdout.splitlines()[0]
    assert wide.split() == ["NAME", "COLOR", "SIZE", "READY", "BORN"]


@pytest.mark.kubectl
def test_kubectl_explains_a_custom_resource(widgets: Objects, kubectl: Kubectl) -> None:
    def explained() -> str | None:
        done = kubectl.run("explain", "widgets.spec", f"--api-version={widgets.group}/v1", expect=None)
        return done.stdout if done.code == 0 else None

    assert "replicas\t<integer>" in eventually(explained)


def test_a_table_has_the_columns_of_the_definition(widgets: Objects) -> None:
    created = widgets.create("one", spec={"color": "red", "size": 3})
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    widgets.patch("one", {"status": {"conditions": conditions}}, "status")
    table = widgets.plain.request("GET", widgets.path(), headers=TABLE).json()
    columns = [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Color", "string", 0),
        ("Size", "integer", 1),
        ("Ready", "string", 0),
        ("Born", "date", 0),
    ]
    assert table["columnDefinitions"][1]["description"] == "What it looks like."
    cells = table["rows"][0]["cells"]
    assert cells[:4] == ["one", "red", 3, "True"]
    assert cells[4].endswith("s")
    assert table["rows"][0]["object"]["metadata"]["uid"] == created["metadata"]["uid"]


def test_a_table_without_columns_shows_the_age(bare: Objects) -> None:
    bare.create("one")
    table = bare.plain.request("GET", bare.path("one"), headers=TABLE).json()
    assert [(c["name"], c["type"]) for c in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]


def test_a_missing_value_is_an_empty_cell(widgets: Objects) -> None:
    widgets.create("one")
    table = widgets.plain.request("GET", widgets.path("one"), headers=TABLE).json()
    assert table["rows"][0]["cells"][1:4] == [None, None, None]


def test_only_the_metadata_can_be_asked_for(widgets: Objects) -> None:
    created = widgets.create("one", spec={"color": "red"}, metadata={"labels": {"a": "b"}})
    one = widgets.plain.request("GET", widgets.path("one"), headers=PARTIAL).json()
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one["metadata"] == created["metadata"]
    assert "spec" not in one
    listed = widgets.plain.request("GET", widgets.path(), headers=PARTIAL_LIST).json()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["labels"] for item in listed["items"]] == [{"a": "b"}]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.color=red", ["one"]),
        ("spec.color!=red", ["three", "two"]),
        ("spec.size=3", ["two"]),
        ("spec.flag=true", ["one"]),
        ("spec.color=red,spec.size=3", []),
        ("spec.color=", ["three"]),
        ("metadata.name=two", ["two"]),
    ],
)
def test_objects_are_found_by_selectable_fields(widgets: Objects, selector: str, found: list[str]) -> None:
    widgets.create("one", spec={"color": "red", "size": 1, "flag": True})
    widgets.create("two", spec={"color": "blue", "size": 3})
    widgets.create("three")
    assert widgets.names(f"?fieldSelector={selector}") == found


def test_other_fields_cannot_be_selected(widgets: Objects) -> None:
    answer = widgets.plain.request("GET", f"{widgets.path()}?fieldSelector=spec.replicas=1")
    text = "field label not supported: spec.replicas"
    assert refusal(answer) == (400, "BadRequest", text)


def test_a_watch_by_a_selectable_field_sees_objects_come_and_go(widgets: Objects) -> None:
    widgets.create("one", spec={"color": "blue"})
    start = widgets.plain.request("GET", widgets.path()).json()["metadata"]["resourceVersion"]
    query = f"fieldSelector=spec.color=red&resourceVersion={start}"
    with watching(widgets.plain, widgets.path(), query) as stream:
        widgets.patch("one", {"spec": {"color": "red"}})
        widgets.patch("one", {"spec": {"size": 1}})
        widgets.patch("one", {"spec": {"color": "blue"}})
        assert stream.take(3) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


def test_a_collection_can_be_deleted_by_a_selectable_field(widgets: Objects) -> None:
    widgets.create("one", spec={"color": "red"})
    widgets.create("two", spec={"color": "blue"})
    answer = widgets.plain.request("DELETE", f"{widgets.path()}?fieldSelector=spec.color=red")
    assert answer.status == 200
    assert widgets.names() == ["two"]


def test_cluster_wide_objects_have_no_namespace(kinds: dict[str, Objects], namespace: str) -> None:
    everywhere = kinds["Global"].within("default")
    created = everywhere.create(namespace, spec={"a": 1})
    assert "namespace" not in created["metadata"]
    assert everywhere.read(namespace)["spec"] == {"a": 1}
    path = f"/apis/{everywhere.group}/v1/namespaces/default/{everywhere.plural}"
    assert everywhere.plain.request("GET", path).status == 404
    assert everywhere.delete(namespace).json()["status"] == "Success"


def test_objects_of_all_namespaces_are_listed_together(widgets: Objects, plain: Plain) -> None:
    widgets.create("one")
    listed = plain.request("GET", f"/apis/{widgets.group}/v1/{widgets.plural}").json()
    assert (widgets.namespace, "one") in {
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]
    }


def test_appliers_share_a_keyed_list(applied: Objects) -> None:
    applied.apply("one", "first", spec={"ports": [{"name": "a", "port": 1}]})
    answer = applied.apply("one", "second", spec={"ports": [{"name": "b", "port": 2}]})
    assert answer.json()["spec"]["ports"] == [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    gone = applied.apply("one", "first", spec={}).json()
    assert gone["spec"]["ports"] == [{"name": "b", "port": 2}]


def test_appliers_conflict_over_an_item_of_a_keyed_list(applied: Objects) -> None:
    applied.apply("one", "first", spec={"ports": [{"name": "a", "port": 1}]})
    answer = applied.apply("one", "second", spec={"ports": [{"name": "a", "port": 2}]})
    text = 'Apply failed with 1 conflict: conflict with "first": .spec.ports[name="a"].port'
    assert refusal(answer) == (409, "Conflict", text)
    forced = applied.apply("one", "second", force=True, spec={"ports": [{"name": "a", "port": 2}]})
    assert forced.json()["spec"]["ports"] == [{"name": "a", "port": 2}]


def test_appliers_share_a_set(applied: Objects) -> None:
    applied.apply("one", "first", spec={"tags": ["a", "b"]})
    assert applied.apply("one", "second", spec={"tags": ["b", "c"]}).json()["spec"]["tags"] == ["a", "b", "c"]
    assert applied.apply("one", "first", spec={}).json()["spec"]["tags"] == ["b", "c"]


@pytest.mark.parametrize(
    ("field", "ours", "theirs"), [("args", ["a"], ["b"]), ("whole", {"a": "x"}, {"b": "y"})]
)
def test_appliers_own_what_is_atomic_as_a_whole(applied: Objects, field: str, ours: Any, theirs: Any) -> None:
    applied.apply("one", "first", spec={field: ours})
    answer = applied.apply("one", "second", spec={field: theirs})
    text = f'Apply failed with 1 conflict: conflict with "first": .spec.{field}'
    assert refusal(answer) == (409, "Conflict", text)
    assert applied.apply("one", "second", force=True, spec={field: theirs}).json()["spec"] == {field: theirs}


def test_appliers_share_a_map(applied: Objects) -> None:
    applied.apply("one", "first", spec={"labels": {"a": "x"}})
    answer = applied.apply("one", "second", spec={"labels": {"b": "y"}})
    assert answer.json()["spec"]["labels"] == {"a": "x", "b": "y"}


def test_an_unknown_field_cannot_be_applied(applied: Objects) -> None:
    answer = applied.apply("one", "first", spec={"odd": 1})
    assert answer.status == 500
    text = "failed to create typed patch object"
    assert text in answer.json()["message"]
    assert ".spec.odd: field not declared in schema" in answer.json()["message"]


def test_duplicate_items_cannot_be_applied(applied: Objects) -> None:
    ports = [{"name": "a", "port": 1}, {"name": "a", "port": 2}]
    answer = applied.apply("one", "first", spec={"ports": ports})
    assert answer.status == 500
    assert 'duplicate entries for key [name="a"]' in answer.json()["message"]


def test_status_and_spec_have_different_managers(widgets: Objects) -> None:
    widgets.apply("one", "author", spec={"color": "red"})
    body = widgets.new("one", status={"replicas": 1})
    path = f"{widgets.path('one', 'status')}?fieldManager=controller"
    assert widgets.plain.request("PATCH", path, body, headers=APPLY).status == 200
    entries = widgets.read("one")["metadata"]["managedFields"]
    found = {entry["manager"]: (entry.get("subresource"), entry["fieldsV1"]) for entry in entries}
    assert found == {
        "author": (None, {"f:spec": {"f:color": {}}}),
        "controller": ("status", {"f:status": {"f:replicas": {}}}),
    }


def test_a_strategic_merge_patch_is_not_understood(widgets: Objects) -> None:
    widgets.create("one")
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    answer = widgets.plain.request("PATCH", widgets.path("one"), {"spec": {}}, headers=headers)
    text = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert refusal(answer) == (415, "UnsupportedMediaType", text)


def test_a_merge_patch_replaces_lists_and_removes_nulls(applied: Objects) -> None:
    applied.create("one", spec={"tags": ["a", "b"], "labels": {"a": "x", "b": "y"}})
    answer = applied.patch("one", {"spec": {"tags": ["c"], "labels": {"a": None, "c": "z"}}})
    assert answer.json()["spec"] == {"tags": ["c"], "labels": {"b": "y", "c": "z"}}


def test_a_patch_that_changes_nothing_keeps_the_version(widgets: Objects) -> None:
    created = widgets.create("one", spec={"color": "red"})
    answer = widgets.patch("one", {"spec": {"color": "red"}})
    assert answer.json()["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_an_update_must_name_the_version_that_it_changes(widgets: Objects) -> None:
    created = widgets.create("one")
    del created["metadata"]["resourceVersion"]
    answer = widgets.replace(created)
    text = "Invalid value: 0: must be specified for an update"
    assert causes(answer) == [("metadata.resourceVersion", "FieldValueInvalid", text)]


def test_the_status_of_a_definition_is_apart_from_its_spec(
    definitions: Definitions, kinds: dict[str, Objects]
) -> None:
    name = kinds["Bare"].crd_name
    before = definitions.read(name)
    change = {"spec": {"names": {"shortNames": ["odd"]}}}
    answer = definitions.plain.request("PATCH", f"{CRDS}/{name}/status", change, headers=MERGE)
    assert answer.status == 200
    assert answer.json()["spec"] == before["spec"]
