"""Options of writes: dry run, and how strictly unknown and duplicate fields are taken."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.collection import (
    APPLY,
    JSON,
    MERGE,
    STRATEGIC,
    Collection,
    Object,
    config_map,
    deployment,
    done,
    pod,
)
from behaviour.support import causes, refusal
from behaviour.widgets import Widgets
from harness.plain import Answer, Plain


def warnings(answer: Answer) -> list[str]:
    """The texts of the Warning headers."""
    return [str(text) for text in answer.headers.get_all("Warning") or []]


def unknown(*paths: str) -> list[str]:
    return [f'299 - "unknown field \\"{path}\\""' for path in paths]


ODD: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "nah": 1}, "nope": 1}
TWICE = b'{"metadata":{"name":"one"},"data":{"a":"1","a":"2"},"immutable":false,"immutable":false}'


# Dry run


def test_a_dry_create_shows_the_object_and_stores_nothing(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", {"a": "1"}), "dryRun=All&fieldManager=me")
    assert answer.status == 201
    metadata = answer.json()["metadata"]
    assert metadata.keys() >= {"uid", "creationTimestamp", "managedFields"}
    assert "resourceVersion" not in metadata
    assert config_maps.get("one").status == 404


def test_a_dry_create_still_sees_conflicts_and_mistakes(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    assert refusal(config_maps.create(config_map("one"), "dryRun=All"))[:2] == (409, "AlreadyExists")
    assert refusal(config_maps.create(config_map("Bad"), "dryRun=All"))[:2] == (422, "Invalid")


def test_a_dry_create_generates_a_name(config_maps: Collection) -> None:
    made = done(config_maps.create({"metadata": {"generateName": "made-"}}, "dryRun=All"))
    assert made["metadata"]["name"].startswith("made-")
    assert config_maps.get(made["metadata"]["name"]).status == 404


def test_a_dry_create_shows_defaults_and_admission(pods: Collection) -> None:
    made = done(pods.create(pod("one"), "dryRun=All"))
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["spec"]["serviceAccountName"] == "default"
    assert pods.get("one").status == 404


@pytest.mark.parametrize("kind", ["update", "merge", "apply", "json"])
def test_a_dry_change_is_shown_and_not_stored(config_maps: Collection, kind: str) -> None:
    made = done(config_maps.create(config_map("one", {"a": "1"})))
    changed = config_map("one", {"a": "2"})
    query = "dryRun=All&fieldManager=me"
    operation = [{"op": "replace", "path": "/data/a", "value": "2"}]
    answers = {
        "update": lambda: config_maps.update(changed, query),
        "merge": lambda: config_maps.patch("one", {"data": {"a": "2"}}, query=query),
        "apply": lambda: config_maps.apply(changed, "me", "dryRun=All&force=true"),
        "json": lambda: config_maps.patch("one", operation, JSON, query=query),
    }
    shown = done(answers[kind]())
    assert shown["data"] == {"a": "2"}
    assert shown["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert done(config_maps.get("one")) == made


def test_a_dry_apply_creates_nothing(config_maps: Collection) -> None:
    answer = config_maps.apply(config_map("one", {"a": "1"}), "me", "dryRun=All")
    assert answer.status == 201
    assert config_maps.get("one").status == 404


def test_a_dry_update_still_guards_versions(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.update(config_map("one", resourceVersion="1"), "dryRun=All")
    assert refusal(answer)[:2] == (409, "Conflict")


def test_a_dry_change_of_status_is_not_stored(deployments: Collection) -> None:
    done(deployments.create(deployment("one")))
    shown = done(
        deployments.patch("one", {"status": {"collisionCount": 3}}, query="dryRun=All", sub="status")
    )
    assert shown["status"]["collisionCount"] == 3
    assert "collisionCount" not in done(deployments.get("one"))["status"]


@pytest.mark.parametrize("options", [None, {"dryRun": ["All"]}], ids=["query", "body"])
def test_a_dry_delete_deletes_nothing(config_maps: Collection, options: Object | None) -> None:
    made = done(config_maps.create(config_map("one")))
    answer = config_maps.delete("one", options, "" if options else "dryRun=All")
    assert answer.json()["status"] == "Success"
    assert done(config_maps.get("one")) == made


def test_a_dry_delete_of_a_held_object_shows_it_marked(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=["podium.dev/held"])))
    shown = done(config_maps.delete("one", query="dryRun=All"))
    assert "deletionTimestamp" in shown["metadata"]
    assert "deletionTimestamp" not in done(config_maps.get("one"))["metadata"]
    done(config_maps.patch("one", {"metadata": {"finalizers": None}}))


def test_removing_the_last_finalizer_can_be_tried_out(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=["podium.dev/held"])))
    done(config_maps.delete("one"))
    done(config_maps.patch("one", {"metadata": {"finalizers": None}}, query="dryRun=All"))
    assert config_maps.get("one").status == 200
    done(config_maps.patch("one", {"metadata": {"finalizers": None}}))
    assert config_maps.get("one").status == 404


def test_a_dry_delete_of_a_collection_deletes_nothing(config_maps: Collection, plain: Plain) -> None:
    done(config_maps.create(config_map("one", labels={"a": "b"})))
    deleted = done(plain.request("DELETE", f"{config_maps.path}?labelSelector=a&dryRun=All"))
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["one"]
    assert config_maps.get("one").status == 200


@pytest.mark.parametrize("value", ["all", "", "None"])
def test_dry_run_is_all_or_nothing(config_maps: Collection, value: str) -> None:
    answer = config_maps.create(config_map("one"), f"dryRun={value}")
    assert refusal(answer)[:2] == (422, "Invalid")
    why = f'Unsupported value: ["{value}"]: supported values: "All"'
    assert causes(answer) == [("dryRun", "FieldValueNotSupported", why)]
    assert config_maps.get("one").status == 404


# Unknown fields


@pytest.mark.parametrize("query", ["", "fieldValidation=Warn"])
def test_unknown_fields_are_dropped_with_a_warning(config_maps: Collection, query: str) -> None:
    answer = config_maps.create(ODD, query)
    made = done(answer)
    assert warnings(answer) == unknown("metadata.nah", "nope")
    assert not made.keys() & {"nope"}
    assert "nah" not in made["metadata"]


def test_unknown_fields_can_be_dropped_silently(config_maps: Collection) -> None:
    answer = config_maps.create(ODD, "fieldValidation=Ignore")
    assert "nope" not in done(answer)
    assert warnings(answer) == []


def test_strict_validation_refuses_unknown_fields(config_maps: Collection) -> None:
    answer = config_maps.create(ODD, "fieldValidation=Strict")
    why = 'strict decoding error: unknown field "metadata.nah", unknown field "nope"'
    message = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'
    assert refusal(answer) == (400, "BadRequest", message)
    assert warnings(answer) == []


def test_strict_validation_looks_into_lists(pods: Collection) -> None:
    container = {"name": "c", "image": "i", "foo": 1, "ports": [{"containerPort": 1, "bar": 2}]}
    answer = pods.create(pod("one", bogus=1, containers=[container]), "fieldValidation=Strict")
    fields = ["spec.containers[0].foo", "spec.containers[0].ports[0].bar", "spec.bogus"]
    listed = ", ".join(f'unknown field "{field}"' for field in fields)
    assert refusal(answer)[2].endswith(f"strict decoding error: {listed}")


def test_an_update_is_validated_like_a_create(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    assert warnings(config_maps.update(ODD)) == unknown("metadata.nah", "nope")
    assert refusal(config_maps.update(ODD, "fieldValidation=Strict"))[:2] == (400, "BadRequest")


PATCHES: list[tuple[str, Any]] = [
    (MERGE, {"nope": 1}),
    (STRATEGIC, {"nope": 1}),
    (JSON, [{"op": "add", "path": "/nope", "value": 1}]),
]


@pytest.mark.parametrize(("kind", "patch"), PATCHES)
def test_a_patch_to_an_unknown_field_warns_or_is_refused(
    config_maps: Collection, kind: str, patch: Any
) -> None:
    made = done(config_maps.create(config_map("one")))
    answer = config_maps.patch("one", patch, kind)
    assert warnings(answer) == unknown("nope")
    assert done(answer) == made
    assert warnings(config_maps.patch("one", patch, kind, query="fieldValidation=Ignore")) == []
    answer = config_maps.patch("one", patch, kind, query="fieldValidation=Strict")
    assert refusal(answer)[:2] == (422, "Invalid")
    [(field, _, message)] = causes(answer)
    assert field == "patch"
    assert message.endswith('strict decoding error: unknown field "nope"')


def test_unknown_keys_of_a_json_patch_warn_too(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "1"})))
    operation = {"op": "add", "path": "/data/b", "value": "2", "why": "because"}
    answer = config_maps.patch("one", [operation], JSON)
    assert warnings(answer) == ['299 - "json patch unknown field \\"[0].why\\""']
    twice = b'[{"op":"add","op":"add","path":"/data/b","value":"3"}]'
    assert warnings(config_maps.patch("one", twice, JSON)) == [
        '299 - "json patch duplicate field \\"[0].op\\""'
    ]


def test_an_unsupported_validation_is_refused(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one"), "fieldValidation=Sometimes")
    why = 'Unsupported value: "Sometimes": supported values: "", "Ignore", "Strict", "Warn"'
    assert refusal(answer)[:2] == (422, "Invalid")
    assert causes(answer) == [("fieldValidation", "FieldValueNotSupported", why)]


# Duplicate fields


def test_duplicate_fields_warn_and_the_last_one_counts(config_maps: Collection) -> None:
    answer = config_maps.create(TWICE)
    assert done(answer)["data"] == {"a": "2"}
    assert warnings(answer) == [
        '299 - "duplicate field \\"data.a\\""',
        '299 - "duplicate field \\"immutable\\""',
    ]


def test_duplicate_fields_are_refused_or_ignored_if_asked(config_maps: Collection) -> None:
    answer = config_maps.create(TWICE, "fieldValidation=Strict")
    why = 'strict decoding error: duplicate field "data.a", duplicate field "immutable"'
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].endswith(why)
    assert warnings(config_maps.create(TWICE, "fieldValidation=Ignore")) == []


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_duplicate_fields_of_a_patch_warn_or_are_refused(config_maps: Collection, kind: str) -> None:
    done(config_maps.create(config_map("one")))
    twice = b'{"data":{"a":"1","a":"2"}}'
    answer = config_maps.patch("one", twice, kind)
    assert warnings(answer) == ['299 - "duplicate field \\"data.a\\""']
    assert done(answer)["data"] == {"a": "2"}
    answer = config_maps.patch("one", twice, kind, query="fieldValidation=Strict")
    assert refusal(answer)[:2] == (422, "Invalid")
    assert refusal(answer)[2].endswith('strict decoding error: duplicate field "data.a"')


def test_duplicate_keys_of_yaml_are_reported_by_line(config_maps: Collection) -> None:
    text = b"metadata:\n  name: one\ndata:\n  a: '1'\n  a: '2'\n"
    answer = config_maps.create(text, content_type="application/yaml")
    assert done(answer)["data"] == {"a": "2"}
    assert warnings(answer) == ['299 - "line 5: key \\"a\\" already set in map"']
    answer = config_maps.create(text, "fieldValidation=Strict", "application/yaml")
    why = 'strict decoding error: yaml: unmarshal errors:\n  line 5: key "a" already set in map'
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].endswith(why)


def test_duplicate_keys_of_an_apply_are_reported_by_line(config_maps: Collection) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n  a: '2'\n"
    answer = config_maps.patch("one", text, APPLY, query="fieldManager=me")
    assert warnings(answer) == ['299 - "line 7: key \\"a\\" already set in map"']
    answer = config_maps.patch("one", text, APPLY, query="fieldManager=me&fieldValidation=Strict")
    why = 'error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key "a" already set in map'
    assert refusal(answer) == (400, "BadRequest", f"error strict decoding YAML: {why}")


# Custom resources


def test_unknown_fields_of_a_custom_resource_are_pruned_with_a_warning(
    widgets: Collection, widget_kind: Widgets
) -> None:
    odd = widget_kind.widget("one", spec={"size": 1, "weight": 2}, nope=1)
    answer = widgets.create(odd)
    made = done(answer)
    assert warnings(answer) == unknown("nope", "spec.weight")
    assert (made["spec"], "nope" in made) == ({"size": 1}, False)
    assert warnings(widgets.patch("one", {"spec": {"weight": 3}})) == unknown("spec.weight")


def test_strict_validation_refuses_unknown_fields_of_a_custom_resource(
    widgets: Collection, widget_kind: Widgets
) -> None:
    odd = widget_kind.widget("one", spec={"weight": 2})
    answer = widgets.create(odd, "fieldValidation=Strict")
    why = 'Widget in version "v1" cannot be handled as a Widget: strict decoding error:'
    assert refusal(answer) == (400, "BadRequest", f'{why} unknown field "spec.weight"')
    made = done(widgets.create(widget_kind.widget("one")))
    answer = widgets.patch("one", {"spec": {"weight": 3}}, query="fieldValidation=Strict")
    assert refusal(answer)[:2] == (422, "Invalid")
    assert refusal(answer)[2].endswith('strict decoding error: unknown field "spec.weight"')
    assert done(widgets.get("one")) == made


def test_unknown_metadata_of_a_custom_resource_is_found_as_well(
    widgets: Collection, widget_kind: Widgets
) -> None:
    odd = widget_kind.widget("one")
    odd["metadata"]["nah"] = 1
    assert refusal(widgets.create(odd, "fieldValidation=Strict"))[2].endswith('unknown field "metadata.nah"')
    answer = widgets.create(odd)
    assert warnings(answer) == unknown("metadata.nah")
    assert "nah" not in done(answer)["metadata"]


def test_duplicate_fields_of_a_custom_resource_warn(widgets: Collection, widget_kind: Widgets) -> None:
    api_version = widget_kind.api_version.encode()
    body = b'{"apiVersion":"%s","kind":"Widget","metadata":{"name":"one"},"spec":{"size":1,"size":2}}'
    answer = widgets.create(body % api_version)
    assert warnings(answer) == ['299 - "duplicate field \\"spec.size\\""']
    assert done(answer)["spec"] == {"size": 2}
