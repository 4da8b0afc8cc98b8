"""Patching objects: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.collection import JSON, MERGE, STRATEGIC, Collection, Object, config_map, deployment, done, pod
from behaviour.support import causes, refusal
from behaviour.widgets import Widgets


def test_a_merge_patch_sets_and_removes_fields(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "1", "b": "2"})))
    patched = done(config_maps.patch("one", {"data": {"a": None, "c": "3"}}))
    assert patched["data"] == {"b": "2", "c": "3"}
    assert "data" not in done(config_maps.patch("one", {"data": None}))


def test_a_merge_patch_replaces_lists_as_a_whole(deployments: Collection) -> None:
    done(deployments.create(deployment("one")))
    only = [{"name": "other", "image": "example.com/other:1"}]
    patched = done(deployments.patch("one", {"spec": {"template": {"spec": {"containers": only}}}}))
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["other"]


def test_a_json_patch_applies_its_operations_in_order(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "1"}, labels={"x": "y"})))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "copy", "from": "/data/b", "path": "/data/c"},
        {"op": "move", "from": "/data/a", "path": "/data/d"},
        {"op": "replace", "path": "/data/b", "value": "3"},
        {"op": "remove", "path": "/metadata/labels/x"},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "z"},
    ]
    patched = done(config_maps.patch("one", operations, JSON))
    assert patched["data"] == {"b": "3", "c": "2", "d": "1"}
    assert patched["metadata"]["labels"] == {"a/b": "z"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "add", "path": "/metadata/labels/x", "value": "no labels there"},
        {"op": "add", "path": "data", "value": "no pointer"},
        {"op": "bogus", "path": "/data/a"},
    ],
    ids=lambda operation: operation["op"],
)
def test_a_json_patch_that_does_not_apply_changes_nothing(config_maps: Collection, operation: Object) -> None:
    made = done(config_maps.create(config_map("one", {"a": "1"})))
    first = {"op": "add", "path": "/data/b", "value": "2"}
    answer = config_maps.patch("one", [first, operation], JSON)
    why = "the server rejected our request due to an error in our request"
    assert refusal(answer) == (422, "Invalid", why)
    assert done(config_maps.get("one")) == made


def test_a_json_patch_has_a_limited_number_of_operations(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", [{"op": "test", "path": "/kind", "value": "x"}] * 10_001, JSON)
    why = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert refusal(answer) == (413, "RequestEntityTooLarge", f"Request entity too large: {why}")


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (JSON, b"{", "error decoding patch: unexpected end of JSON input"),
        (JSON, b"{}", "error decoding patch: json: cannot unmarshal object into Go value of type"),
        (MERGE, b"{", "error decoding patch: unexpected end of JSON input"),
        (MERGE, b"", "error decoding patch: unexpected end of JSON input"),
        (MERGE, b"[]", "error decoding patch: json: cannot unmarshal array into Go value of type"),
        (MERGE, b"null", "Invalid JSON Patch"),
        (STRATEGIC, b"{", "unexpected end of JSON input"),
        (STRATEGIC, b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_what_is_no_patch_is_refused(config_maps: Collection, kind: str, body: bytes, message: str) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", body, kind)
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].startswith(message)


@pytest.mark.parametrize(("kind", "patch"), [(JSON, []), (MERGE, {}), (STRATEGIC, {})])
def test_a_missing_object_cannot_be_patched(config_maps: Collection, kind: str, patch: Any) -> None:
    answer = config_maps.patch("missing", patch, kind)
    assert refusal(answer) == (404, "NotFound", 'configmaps "missing" not found')


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_patch_of_an_unknown_type_is_refused(config_maps: Collection, kind: str) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {}, kind)
    assert refusal(answer) == (415, "UnsupportedMediaType", "415: Unsupported Media Type")


def test_custom_resources_take_no_strategic_merge_patch(widgets: Collection, widget_kind: Widgets) -> None:
    done(widgets.create(widget_kind.widget("one")))
    answer = widgets.patch("one", {"spec": {"size": 1}}, STRATEGIC)
    assert refusal(answer)[:2] == (415, "UnsupportedMediaType")
    start = "the body of the request was in an unknown format - accepted media types include: "
    assert refusal(answer)[2].startswith(f"{start}application/json-patch+json")


def test_a_patch_that_names_a_stale_version_is_refused(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {"metadata": {"resourceVersion": "1"}})
    assert refusal(answer)[:2] == (409, "Conflict")
    assert "the object has been modified" in refusal(answer)[2]


def test_a_patch_cannot_rename_or_move_an_object(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {"metadata": {"name": "two"}})
    why = "the name of the object (two) does not match the name on the URL (one)"
    assert refusal(answer) == (400, "BadRequest", why)
    answer = config_maps.patch("one", {"metadata": {"namespace": "elsewhere"}})
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert refusal(answer) == (400, "BadRequest", why)


def test_a_patch_cannot_change_a_uid(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {"metadata": {"uid": "other"}})
    why = 'metadata.uid: Invalid value: "other": field is immutable'
    assert refusal(answer) == (422, "Invalid", f'ConfigMap "one" is invalid: {why}')


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"data": {"a": 1}}),
        (STRATEGIC, {"data": {"a": 1}}),
        (JSON, [{"op": "add", "path": "/data", "value": {"a": 1}}]),
        (MERGE, {"apiVersion": "v2"}),
    ],
)
def test_a_result_that_is_no_object_of_the_kind_is_refused(
    config_maps: Collection, kind: str, patch: Any
) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", patch, kind)
    assert refusal(answer)[:2] == (422, "Invalid")
    assert refusal(answer)[2].startswith(' "" is invalid: patch: Invalid value: ')
    assert [field for field, _, _ in causes(answer)] == ["patch"]


def test_the_result_of_a_patch_is_validated(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {"data": {"no spaces": ""}})
    assert refusal(answer)[:2] == (422, "Invalid")
    [(field, reason, _)] = causes(answer)
    assert (field, reason) == ("data[no spaces]", "FieldValueInvalid")


def test_a_patch_that_changes_nothing_keeps_the_version(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"a": "1"})))
    assert done(config_maps.patch("one", {"data": {"a": "1", "b": None}})) == made


def test_force_is_for_apply_alone(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", {}, query="force=true")
    why = "force: Forbidden: may not be specified for non-apply patch"
    assert refusal(answer) == (422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {why}')


def containers(*items: Object) -> Object:
    return {"spec": {"template": {"spec": {"containers": list(items)}}}}


def env_of(obj: Object) -> dict[str, str]:
    [container] = obj["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container.get("env", [])}


def test_a_strategic_patch_merges_lists_by_key(deployments: Collection) -> None:
    made = deployment("one")
    made["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
    ]
    done(deployments.create(made))
    change = {"name": "main", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]}
    patched = done(deployments.patch("one", containers(change), STRATEGIC))
    assert env_of(patched) == {"A": "1", "B": "9", "C": "3"}
    remove = {"name": "main", "env": [{"name": "A", "$patch": "delete"}]}
    patched = done(deployments.patch("one", containers(remove), STRATEGIC))
    assert env_of(patched) == {"B": "9", "C": "3"}


def test_a_strategic_patch_can_replace_a_list(deployments: Collection) -> None:
    done(deployments.create(deployment("one")))
    only = {"name": "only", "image": "example.com/only:1"}
    patched = done(deployments.patch("one", containers({"$patch": "replace"}, only), STRATEGIC))
    assert [c["name"] for c in patched["spec"]["template"]["spec"]["containers"]] == ["only"]


def test_a_strategic_patch_can_replace_a_map(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", labels={"a": "1", "b": "2"})))
    patch = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
    assert done(config_maps.patch("one", patch, STRATEGIC))["metadata"]["labels"] == {"c": "3"}


def test_a_strategic_patch_keeps_only_the_keys_it_retains(deployments: Collection) -> None:
    done(deployments.create(deployment("one")))
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert done(deployments.patch("one", patch, STRATEGIC))["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"finalizers": ["podium.dev/c"]}, ["podium.dev/c", "podium.dev/a", "podium.dev/b"]),
        ({"$deleteFromPrimitiveList/finalizers": ["podium.dev/a"]}, ["podium.dev/b"]),
        (
            {"$setElementOrder/finalizers": ["podium.dev/b", "podium.dev/a"], "finalizers": []},
            ["podium.dev/b", "podium.dev/a"],
        ),
        ({"finalizers": None}, None),
    ],
    ids=["add", "delete", "order", "null"],
)
def test_a_strategic_patch_treats_finalizers_as_a_set(
    config_maps: Collection, patch: Object, result: list[str] | None
) -> None:
    done(config_maps.create(config_map("one", finalizers=["podium.dev/a", "podium.dev/b"])))
    patched = done(config_maps.patch("one", {"metadata": patch}, STRATEGIC))
    assert patched["metadata"].get("finalizers") == result
    done(config_maps.patch("one", {"metadata": {"finalizers": None}}))


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (containers({"image": "example.com/x:1"}), "does not contain declared merge key: name"),
        (containers({"$patch": "delete"}), "does not contain declared merge key: name"),
        ({"$patch": "bogus"}, "unknown patch type: bogus in map: map[$patch:bogus]"),
    ],
    ids=["no key", "nothing to delete", "unknown directive"],
)
def test_a_strategic_patch_that_cannot_be_merged_is_refused(
    deployments: Collection, patch: Object, message: str
) -> None:
    done(deployments.create(deployment("one")))
    code, reason, text = refusal(deployments.patch("one", patch, STRATEGIC))
    assert (code, reason) == (500, "")
    assert message in text


def test_a_strategic_patch_merges_conditions_by_type(pods: Collection) -> None:
    done(pods.create(pod("one")))
    for kind in ("X", "Y"):
        condition = {"type": f"podium.dev/{kind}", "status": "True"}
        patched = done(pods.patch("one", {"status": {"conditions": [condition]}}, STRATEGIC, sub="status"))
    types = [c["type"] for c in patched["status"]["conditions"]]
    assert sorted(types) == ["podium.dev/X", "podium.dev/Y"]


def test_a_running_pods_image_may_change_and_its_command_may_not(pods: Collection) -> None:
    done(pods.create(pod("one")))
    change = {"spec": {"containers": [{"name": "main", "image": "example.com/web:2"}]}}
    patched = done(pods.patch("one", change, STRATEGIC))
    assert patched["spec"]["containers"][0]["image"] == "example.com/web:2"
    answer = pods.patch("one", {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}, STRATEGIC)
    assert refusal(answer)[:2] == (422, "Invalid")
    [(field, reason, message)] = causes(answer)
    assert (field, reason) == ("spec", "FieldValueForbidden")
    assert message.startswith("Forbidden: pod updates may not change fields other than")
