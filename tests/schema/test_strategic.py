from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import facts
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape
from podium.schema.strategic import StrategicPatchError, strategic_merge
from podium.schema.strategicdiff import PatchConflictError, create_three_way, create_two_way

Object = dict[str, Any]


def fields(**shapes: Shape) -> Shape:
    return Shape(Merge.OBJECT, field=shapes.get)


ITEM = Shape(Merge.OBJECT, field=lambda _: SCALAR)
SHAPE = fields(
    name=SCALAR,
    count=SCALAR,
    items=Shape(
        Merge.KEYED,
        items=lambda: ITEM,
        patch_merge_key="name",
        patch_strategies=frozenset({"merge"}),
    ),
    numbers=Shape(Merge.SET, items=lambda: SCALAR, patch_strategies=frozenset({"merge"})),
    plain=Shape(Merge.ATOMIC),
    labels=Shape(Merge.OBJECT, field=lambda _: SCALAR),
    strategy=Shape(Merge.OBJECT, field=lambda _: UNTYPED, patch_strategies=frozenset({"retainKeys"})),
    swap=Shape(Merge.OBJECT, field=lambda _: SCALAR, patch_strategies=frozenset({"replace"})),
)


def named(*names: str, **more: Any) -> list[Object]:
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        (
            {"labels": {"a": "1", "b": "2"}},
            {"labels": {"a": None, "c": "3"}},
            {"labels": {"b": "2", "c": "3"}},
        ),
        (
            {"items": named("a", "b")},
            {"items": [{"name": "b", "count": 1}]},
            {"items": [{"name": "a"}, {"name": "b", "count": 1}]},
        ),
        ({"items": named("a")}, {"items": named("b")}, {"items": named("b", "a")}),
        ({"items": named("a", "b")}, {"items": [{"$patch": "delete", "name": "a"}]}, {"items": named("b")}),
        ({"items": named("a")}, {"items": [{"$patch": "replace"}, {"name": "z"}]}, {"items": named("z")}),
        ({"items": named("a")}, {"items": None}, {}),
        ({"numbers": [1, 2, 3]}, {"numbers": [3, 1, 4]}, {"numbers": [2, 3, 1, 4]}),
        ({"numbers": [1, 2]}, {"$deleteFromPrimitiveList/numbers": [1]}, {"numbers": [2]}),
        ({"numbers": [1, 2, 3]}, {"$setElementOrder/numbers": [3, 1, 2]}, {"numbers": [3, 1, 2]}),
        ({"items": named("a", "b")}, {"$setElementOrder/items": named("b", "a")}, {"items": named("b", "a")}),
        ({"plain": [1, 2]}, {"plain": [3]}, {"plain": [3]}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}, "count": 1}, {"labels": {"$patch": "delete"}}, {"labels": {}, "count": 1}),
        ({"count": 1}, {"labels": {"$patch": "delete"}}, {"count": 1}),
        (
            {"strategy": {"type": "A", "rolling": {"x": 1}}},
            {"strategy": {"$retainKeys": ["type"], "type": "B"}},
            {"strategy": {"type": "B"}},
        ),
        ({"swap": {"a": 1}}, {"swap": {"b": 2}}, {"swap": {"b": 2}}),
        ({}, {"labels": {"a": None, "b": "1"}}, {"labels": {"b": "1"}}),
        ({"count": 1}, {"count": {"now": "a map"}}, {"count": {"now": "a map"}}),
        ({"count": 1}, {"count": 1.5}, {"count": 1.5}),
    ],
)
def test_patches_apply(live: Object, patch: Object, result: Object) -> None:
    before = copy.deepcopy((live, patch))
    assert strategic_merge(live, patch, SHAPE) == result
    assert (live, patch) == before


@pytest.mark.parametrize(
    ("live", "patch", "message", "status"),
    [
        (
            {"items": named("a")},
            {"items": [{"value": "b"}]},
            "map: map[value:b] does not contain declared merge key: name",
            500,
        ),
        (
            {"labels": {}},
            {"labels": {"$patch": "x", "a": 1}},
            "unknown patch type: x in map: map[$patch:x a:1]",
            500,
        ),
        (
            {"items": named("a")},
            {"items": [{"$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
            500,
        ),
        (
            {"strategy": {"a": 1}},
            {"strategy": {"$retainKeys": ["a"], "b": 1}},
            "invalid patch format of retainKeys",
            400,
        ),
        ({}, {"$deleteFromPrimitiveList": [1]}, "invalid patch format of primitive list", 400),
        ({}, {"$setElementOrder": []}, "invalid patch format of setElementOrder list", 400),
        ({}, {"$setElementOrder/items": 1}, "expected a []interface {}, but received a int64", 500),
        ({"numbers": [[1]]}, {"numbers": [[2]]}, "lists of lists are not supported", 422),
        ({"numbers": [1]}, {"numbers": ["a"]}, "list element types are not identical: [[1] [a]]", 500),
        ({"odd": {"a": 1}}, {"odd": {"b": 1}}, 'unable to find api field "odd"', 500),
        (
            {"items": named("a", "b")},
            {"$setElementOrder/items": named("a", "b"), "items": named("b", "a")},
            (
                "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
                "[map[name:a] map[name:b]]\n"
            ),
            500,
        ),
    ],
)
def test_refusals_are_worded_as_upstream(live: Object, patch: Object, message: str, status: int) -> None:
    with pytest.raises(StrategicPatchError) as caught:
        strategic_merge(live, patch, SHAPE)
    assert (str(caught.value), caught.value.status) == (message, status)


def test_without_a_type_maps_merge_and_lists_are_replaced() -> None:
    live = {"a": {"b": 1, "list": [1]}, "kept": True}
    assert strategic_merge(live, {"a": {"list": [2], "c": None}}, UNTYPED) == {
        "a": {"b": 1, "list": [2]},
        "kept": True,
    }


def test_a_pod_template_is_patched_by_container_name() -> None:
    fact = facts.load().type_for("apps", "v1", "Deployment")
    assert fact
    shape = facts.shape_for(fact)
    live = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:1", "args": ["x"]}]}}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}}
    merged = strategic_merge(live, patch, shape)
    assert merged["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "a:2", "args": ["x"]}]


values = st.integers(0, 3) | st.text("xy", max_size=1)
objects = st.fixed_dictionaries(
    {},
    optional={
        "name": values,
        "count": values,
        "labels": st.dictionaries(st.sampled_from("abc"), values, max_size=3),
        "numbers": st.lists(st.integers(0, 9), unique=True, max_size=5),
        "plain": st.lists(values, max_size=3),
        "items": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("abcde")}, optional={"count": values}),
            unique_by=lambda item: item["name"],
            max_size=5,
        ),
    },
)


def sorted_numbers(obj: Object) -> Object:
    """Upstream takes a list of scalars that only needs sorting for an unchanged one."""
    return {**obj, "numbers": sorted(obj["numbers"])} if "numbers" in obj else obj


def unordered(obj: Object) -> Object:
    """The object with merging lists in one order: an emptied list, too, may be there or not."""
    out = {key: value for key, value in obj.items() if value != []}
    return {**sorted_numbers(out), "items": sorted(out.get("items", []), key=lambda item: str(item["name"]))}


@given(objects, objects)
def test_a_two_way_patch_leads_from_the_original_to_the_modified(original: Object, modified: Object) -> None:
    before = copy.deepcopy((original, modified))
    patch = create_two_way(original, modified, SHAPE)
    assert unordered(strategic_merge(original, patch, SHAPE)) == unordered(modified)
    assert (original, modified) == before
    assert create_two_way(original, original, SHAPE) in (
        {},
        {"$setElementOrder/numbers": original.get("numbers")},
    )


@given(objects, objects, objects)
def test_a_three_way_patch_brings_the_live_object_what_is_modified(
    original: Object, modified: Object, current: Object
) -> None:
    before = copy.deepcopy((original, modified, current))
    result = strategic_merge(current, create_three_way(original, modified, current, SHAPE), SHAPE)
    assert (original, modified, current) == before
    for key in ("name", "count"):
        if key in modified:
            assert result[key] == modified[key]
        elif key in original:
            assert key not in result
    live_names = {item["name"] for item in result.get("items", [])}
    assert live_names >= {item["name"] for item in modified.get("items", [])}


def test_a_three_way_patch_reports_what_was_changed_on_both_sides() -> None:
    with pytest.raises(PatchConflictError, match="conflicts with changes made from original to current"):
        create_three_way({"count": 1}, {"count": 2}, {"count": 3}, SHAPE, overwrite=False)
    assert create_three_way({"count": 1}, {"count": 2}, {"count": 3}, SHAPE) == {"count": 2}
