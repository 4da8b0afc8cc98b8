from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import managedfields, merging, patches, typedvalues
from podium.schema.fieldset import parse, paths, show_path
from podium.schema.managedfields import ApplyConflictError, ApplyError, keep_times
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape
from schema.apply_cases import (
    CASES,
    CONFIG_MAP,
    Case,
    Object,
    Step,
    arguments_for,
    assert_outcome,
    shape_and_zero,
)

NOW, LATER = "2030-01-01T00:00:00Z", "2030-01-01T00:01:00Z"


def run(case: Case, step: Step, live: Object | None, now: str) -> Object:
    """What a server without defaults would store after one step."""
    body = {
        "apiVersion": case.resource.api_version,
        "kind": case.resource.kind,
        **step.body,
        "metadata": {"name": "x", **step.body.get("metadata", {})},
    }
    arguments = arguments_for(case, step, now)
    if step.verb == "apply":
        obj = managedfields.apply(live, body, force=step.force, **arguments).obj
        entries = obj["metadata"].get("managedFields", [])
    else:
        obj = body if live is None else patches.merge_patch(live, step.body)
        entries = managedfields.update(live, obj, **arguments)
    # Each endpoint writes its own part: status belongs to its subresource, all else to the main one.
    kept = live or arguments["zero"] or {}
    if step.subresource:
        obj = {**kept, "status": obj["status"]}
    elif arguments["reset_fields"]:
        obj = {key: value for key, value in obj.items() if key != "status"}
        obj |= {"status": kept["status"]} if "status" in kept else {}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stories_end_as_told(case: Case) -> None:
    live: Object | None = None
    for number, step in enumerate(case.steps):
        now = f"2030-01-01T00:00:{number:02}Z"
        if step.conflict:
            with pytest.raises(ApplyConflictError) as caught:
                run(case, step, live, now)
            assert str(caught.value) == step.conflict
            continue
        before = copy.deepcopy((live, step))
        live_after = run(case, step, live, now)
        assert (live, step) == before
        live = live_after
    assert live is not None
    assert_outcome(case, live)


CONFIG_SHAPE, CONFIG_ZERO = shape_and_zero(CONFIG_MAP)


def config(data: dict[str, str] | None = None, **metadata: Any) -> Object:
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return obj if data is None else {**obj, "data": data}


def update(live: Object | None, new: Object, manager: str = "m", **more: Any) -> list[Object]:
    arguments = {"api_version": "v1", "shape": CONFIG_SHAPE, "now": NOW, "zero": CONFIG_ZERO, **more}
    return managedfields.update(live, new, manager=manager, **arguments)


def apply(live: Object | None, applied: Object, manager: str = "m", **more: Any) -> managedfields.Applied:
    arguments = {"api_version": "v1", "shape": CONFIG_SHAPE, "now": NOW, "zero": CONFIG_ZERO, **more}
    return managedfields.apply(live, applied, manager=manager, **arguments)


def stored(obj: Object, entries: list[Object]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def test_an_entry_is_written_as_kubernetes_writes_it() -> None:
    assert json.dumps(
        update(None, config({"a": "1"}, labels={"x": "y"}, uid="u", generation=1))
    ) == json.dumps(
        [
            {
                "manager": "m",
                "operation": "Update",
                "apiVersion": "v1",
                "time": NOW,
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:data": {".": {}, "f:a": {}},
                    "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
                },
            }
        ]
    )


def test_a_write_without_a_manager_is_by_unknown() -> None:
    assert update(None, config({"a": "1"}), manager="")[0]["manager"] == "unknown"


def test_entries_are_ordered_by_operation_time_and_name() -> None:
    live = apply(None, config({"a": "1"}), "z").obj
    live = stored(
        {**live, "data": {"a": "1", "b": "2"}}, update(live, {**live, "data": {"a": "1", "b": "2"}}, "b")
    )
    both = {**live, "data": {"a": "1", "b": "2", "c": "3"}}
    entries = update(live, both, "a", now=NOW)
    assert [(entry["operation"], entry["manager"]) for entry in entries] == [
        ("Apply", "z"),
        ("Update", "a"),
        ("Update", "b"),
    ]
    later = update(live, both, "a", now=LATER)
    assert [entry["manager"] for entry in later] == ["z", "b", "a"]


def test_time_moves_only_when_a_writer_changes_something() -> None:
    live = stored(config({"a": "1", "b": "2"}), update(None, config({"a": "1", "b": "2"})))
    assert update(live, live, now=LATER) == live["metadata"]["managedFields"]
    removed = update(live, config({"a": "1"}), now=LATER)
    assert [entry["time"] for entry in removed] == [NOW]
    changed = update(live, config({"a": "9", "b": "2"}), now=LATER)
    assert [entry["time"] for entry in changed] == [LATER]


@pytest.mark.parametrize("sent", [[], [{}]])
def test_managed_fields_are_reset_on_request(sent: list[Object]) -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"})))
    assert update(live, config({"a": "2"}, managedFields=sent)) == []


def test_a_client_that_leaves_managed_fields_out_does_not_delete_them() -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"})))
    assert update(live, config({"a": "1"})) == live["metadata"]["managedFields"]


def test_a_client_may_edit_managed_fields_but_not_through_a_subresource() -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"})))
    edited = copy.deepcopy(live)
    edited["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert [entry["manager"] for entry in update(live, edited)] == ["renamed"]
    assert [entry["manager"] for entry in update(live, edited, subresource="status")] == ["m"]


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Change"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsType": None},
        {"fieldsV1": {"broken": {}}},
    ],
)
def test_managed_fields_that_make_no_sense_are_ignored(broken: Object) -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"})))
    entry = {**live["metadata"]["managedFields"][0], "manager": "other", **broken}
    assert update(live, stored(live, [entry])) == live["metadata"]["managedFields"]


def test_an_object_that_does_not_fit_its_type_is_not_tracked() -> None:
    assert update(None, config({"a": "1"}, finalizers=[{"not": "a string"}])) == []


def test_entries_of_versions_that_are_gone_are_dropped() -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"})))
    old = {**live["metadata"]["managedFields"][0], "apiVersion": "v1beta1", "manager": "old"}
    live["metadata"]["managedFields"].append(old)
    entries = update(live, config({"a": "1", "b": "2"}), versions={"v1"})
    assert {entry["apiVersion"] for entry in entries} == {"v1"}


# -- apply ----------------------------------------


def test_an_apply_that_changes_nothing_returns_the_live_object() -> None:
    live = apply(None, config({"a": "1"})).obj
    again = apply(live, config({"a": "1"}), now=LATER)
    assert again.obj is live
    assert again.managed_fields == live["metadata"]["managedFields"]


def test_a_new_owner_of_unchanged_values_has_no_time() -> None:
    live = apply(None, config({"a": "1"}), "one").obj
    applied = apply(live, config({"a": "1"}), "two", now=LATER)
    assert [(entry["manager"], entry.get("time")) for entry in applied.managed_fields] == [
        ("two", None),
        ("one", NOW),
    ]


def test_conflicts_become_causes() -> None:
    live = stored(config({"a": "1"}), update(None, config({"a": "1"}), "editor", subresource="status"))
    with pytest.raises(ApplyConflictError) as caught:
        apply(live, config({"a": "2"}))
    assert caught.value.status == 409
    assert [conflict.cause for conflict in caught.value.conflicts] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "editor" with subresource "status" using v1',
            "field": ".data.a",
        }
    ]


@pytest.mark.parametrize(
    ("applied", "message", "status"),
    [
        (config({}, managedFields=[]), "metadata.managedFields must be nil", 400),
        ({**config(), "apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap", 400),
        (
            {**config(namespace="ns"), "datum": {}},
            (
                "failed to create typed patch object (ns/c; /v1, Kind=ConfigMap): "
                ".datum: field not declared in schema"
            ),
            500,
        ),
        (
            config({"a": "1"}, finalizers=["x", "x"]),
            (
                "failed to create typed patch object (/c; /v1, Kind=ConfigMap): "
                '.metadata.finalizers: duplicate entries for key [="x"]'
            ),
            500,
        ),
        (
            {**config(finalizers="x"), "data": ["y"]},
            (
                "failed to create typed patch object (/c; /v1, Kind=ConfigMap): errors:\n"
                "  .metadata.finalizers: expected list, got &{x}\n  .data: expected map, got &{[y]}"
            ),
            500,
        ),
    ],
)
def test_requests_that_cannot_be_applied(applied: Object, message: str, status: int) -> None:
    with pytest.raises(ApplyError) as caught:
        apply(None, applied)
    assert (str(caught.value), caught.value.status) == (message, status)


def test_an_untracked_object_gets_an_owner_for_what_it_had() -> None:
    applied = apply(config({"a": "1"}, uid="u"), config({"b": "2"}))
    assert [(entry["manager"], entry["operation"]) for entry in applied.managed_fields] == [
        ("m", "Apply"),
        ("before-first-apply", "Update"),
    ]
    assert applied.obj["data"] == {"a": "1", "b": "2"}


ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(data: dict[str, str], last: Object) -> Object:
    obj = config(data, annotations={ANNOTATION: json.dumps(last)})
    return stored(obj, update(None, obj, "kubectl-client-side-apply"))


def test_kubectl_takes_over_from_itself_and_keeps_the_annotation_up_to_date() -> None:
    applied = config({"a": "2"}, annotations={"x": "<&>"})
    obj = apply(client_side({"a": "1"}, config({"a": "1"})), applied, "kubectl").obj
    assert obj["data"] == {"a": "2"}
    assert obj["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap",'
        '"metadata":{"annotations":{"x":"\\u003c\\u0026\\u003e"},"name":"c"}}\n'
    )


@pytest.mark.parametrize(
    "last",
    [
        config({"a": "something else"}),  # someone changed the field since
        {**config({"a": "1"}), "apiVersion": "v2"},
        {**config({"a": "1"}), "datum": 1},
        [],
    ],
)
def test_kubectl_does_not_take_over_what_it_did_not_apply(last: Any) -> None:
    with pytest.raises(ApplyConflictError):
        apply(client_side({"a": "1"}, last), config({"a": "2"}), "kubectl")


def test_an_annotation_that_grew_too_large_is_dropped() -> None:
    live = client_side({"a": "1"}, config({"a": "1"}))
    obj = apply(live, config({"a": "x" * 300_000}), "kubectl").obj
    assert ANNOTATION not in obj["metadata"]["annotations"]


def test_times_alone_are_no_reason_to_write() -> None:
    old = apply(None, config({"a": "1"})).obj
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = LATER
    assert keep_times(old, new) is old
    new["data"]["a"] = "2"
    assert keep_times(old, new) is new
    assert keep_times(old, stored(old, [])) is not old


# -- properties ----------------------------------------

ITEM = Shape(Merge.OBJECT, field={"name": SCALAR, "count": SCALAR, "deep": UNTYPED}.get)
SPEC = Shape(
    Merge.OBJECT,
    field={
        "size": SCALAR,
        "items": Shape(Merge.KEYED, items=lambda: ITEM, keys=("name",)),
        "tags": Shape(Merge.SET, items=lambda: SCALAR),
        "whole": Shape(Merge.ATOMIC),
        "map": Shape(Merge.OBJECT, field=lambda _: ITEM),
        "free": UNTYPED,
    }.get,
)
SHAPE = Shape(
    Merge.OBJECT,
    field={"apiVersion": SCALAR, "kind": SCALAR, "metadata": UNTYPED, "spec": SPEC}.get,
)

numbers = st.integers(0, 2)
free = st.recursive(
    numbers | st.none(), lambda x: st.dictionaries(st.sampled_from("ab"), x) | st.lists(x, max_size=2)
)
items = st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"count": numbers, "deep": free})
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": numbers,
        "items": st.lists(items, max_size=3, unique_by=lambda item: str(item["name"])),
        "tags": st.lists(st.sampled_from("abc"), max_size=3, unique=True),
        "whole": st.dictionaries(st.sampled_from("ab"), numbers),
        "map": st.dictionaries(st.sampled_from("ab"), items),
        "free": free,
    },
)
objects = specs.map(lambda spec: {"apiVersion": "v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec})


def apply_any(
    live: Object | None, applied: Object, manager: str, force: bool = True
) -> managedfields.Applied:
    return managedfields.apply(
        live, applied, manager=manager, api_version="v1", shape=SHAPE, now=NOW, force=force
    )


def update_any(live: Object | None, new: Object, manager: str) -> Object:
    entries = managedfields.update(live, new, manager=manager, api_version="v1", shape=SHAPE, now=NOW)
    return stored(new, entries)


@given(objects, objects, objects)
def test_applying_twice_is_applying_once(first: Object, second: Object, third: Object) -> None:
    live = apply_any(update_any(None, first, "updater"), second, "one").obj
    once = apply_any(live, third, "two")
    twice = apply_any(once.obj, third, "two")
    assert twice.obj is once.obj
    assert apply_any(once.obj, third, "two", force=False).obj is once.obj


@given(objects, objects)
def test_applying_what_one_owns_changes_nothing(first: Object, second: Object) -> None:
    live = apply_any(apply_any(None, first, "one").obj, second, "two").obj
    assert apply_any(live, second, "two", force=False).obj is live


@given(objects, objects, objects)
def test_what_is_applied_is_there_and_owned(first: Object, second: Object, applied: Object) -> None:
    live = apply_any(update_any(None, first, "updater"), second, "one").obj
    result = apply_any(live, applied, "two")
    assert merging.merge(result.obj, applied, SHAPE) is result.obj
    owned = {path for path in paths(typedvalues.owned(applied, SHAPE)) if path[0] == "f:spec"}
    mine = [entry["fieldsV1"] for entry in result.managed_fields if entry["manager"] == "two"]
    assert (set(paths(mine[0])) if mine else set()) == owned


@given(objects, objects, objects)
def test_entries_are_canonical_and_name_only_what_exists(
    first: Object, second: Object, third: Object
) -> None:
    live = apply_any(update_any(None, first, "updater"), second, "one").obj
    new = {**third, "metadata": live["metadata"]}
    live = update_any(live, new, "other")
    present = set(paths(typedvalues.whole(live, SHAPE)))
    for entry in live["metadata"]["managedFields"]:
        assert json.dumps(parse(entry["fieldsV1"])) == json.dumps(entry["fieldsV1"])
        gone = set(paths(entry["fieldsV1"])) - present
        assert not gone, [show_path(path) for path in gone]


@given(objects, objects)
def test_a_comparison_explains_the_difference(old: Object, new: Object) -> None:
    difference = typedvalues.compare(old, new, SHAPE)
    back = typedvalues.compare(new, old, SHAPE)
    assert (difference.removed, difference.added) == (back.added, back.removed)
    assert difference.modified == back.modified
    changed = difference.removed or difference.modified or difference.added
    assert bool(changed) != (sorted_lists(old["spec"]) == sorted_lists(new["spec"]))


def sorted_lists(spec: Object) -> Object:
    """A spec in which lists that merge stand in one order, which is not part of their meaning."""
    out = dict(spec)
    if "tags" in out:
        out["tags"] = sorted(out["tags"])
    if "items" in out:
        out["items"] = sorted(out["items"], key=lambda item: item["name"])
    return out
