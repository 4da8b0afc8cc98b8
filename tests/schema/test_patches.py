from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema.patches import (
    MalformedPatchError,
    PatchError,
    TooManyOperationsError,
    create_merge_patch,
    json_patch,
    merge_patch,
)

Object = dict[str, Any]

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
documents = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3)
    ),
    max_size=4,
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def op(kind: str, path: str, **rest: Any) -> Object:
    return {"op": kind, "path": path, **rest}


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": [1, 2]}, [op("add", "/a/1", value=9)], {"a": [1, 9, 2]}),
        ({"a": [1]}, [op("add", "/a/-", value=2)], {"a": [1, 2]}),
        ({"a": [1, 2]}, [op("add", "/a/-1", value=3)], {"a": [1, 2, 3]}),
        ({"a": 1, "b": 2}, [op("remove", "/a")], {"b": 2}),
        ({"a": [1, 2, 3]}, [op("remove", "/a/-1")], {"a": [1, 2]}),
        ({"a": 1}, [op("replace", "/a", value={"x": None})], {"a": {"x": None}}),
        ({}, [op("replace", "/new", value=1)], {"new": 1}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": {"b": 1}}, [op("move", "/c", **{"from": "/a/b"})], {"a": {}, "c": 1}),
        ({"a": [1, 2]}, [op("move", "/a/0", **{"from": "/a/1"})], {"a": [2, 1]}),
        ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"})], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, [op("test", "/a~1b", value=1), op("test", "/m~0n", value=2)], None),
        ({"~1": 5}, [op("test", "/~01", value=5)], None),
        ({"a": {"x": 1, "y": [1]}}, [op("test", "/a", value={"y": [1], "x": 1})], None),
        ({}, [op("test", "/missing", value=None)], None),
        ({"a": 1}, [op("test", "", value={"a": 1})], None),
    ],
)
def test_json_patch_operations(document: Object, operations: list[Object], result: Object | None) -> None:
    assert json_patch(document, operations) == (document if result is None else result)


@pytest.mark.parametrize(
    ("document", "operation", "message"),
    [
        ({"a": 1}, op("test", "/a", value=2), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a", value=True), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a", value=1.0), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a"), "testing value /a failed: test failed"),
        (
            {},
            op("test", "/a/b", value=1),
            "test operation does not apply: is missing path: /a/b: missing value",
        ),
        (
            {},
            op("add", "/x/y", value=1),
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {},
            op("remove", "/x/y"),
            'remove operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {},
            op("remove", "/x"),
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"a": []},
            op("remove", "/a/0"),
            "error in remove for path: '/a/0': Unable to access invalid index: 0: invalid index referenced",
        ),
        (
            {"a": []},
            op("add", "/a/2", value=1),
            "error in add for path: '/a/2': Unable to access invalid index: 2: invalid index referenced",
        ),
        (
            {"a": []},
            op("add", "/a/x", value=1),
            (
                "error in add for path: '/a/x': value was not a proper array index: 'x': "
                'strconv.Atoi: parsing "x": invalid syntax'
            ),
        ),
        (
            {"a": []},
            op("replace", "/a/0", value=1),
            "replace operation does not apply: doc is missing key: /a/0: missing value",
        ),
        (
            {},
            op("replace", "/a/b", value=1),
            "replace operation does not apply: doc is missing path: /a/b: missing value",
        ),
        (
            {},
            op("move", "/a", **{"from": "/x/y"}),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            {},
            op("copy", "/a", **{"from": "/x/y"}),
            "copy operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        ({}, {"op": "add"}, "add operation failed to decode path: missing value"),
        ({}, {"op": "jump", "path": "/a"}, "Unexpected kind: jump"),
        ({}, {"path": "/a"}, "Unexpected kind: unknown"),
    ],
)
def test_json_patch_refusals_are_worded_as_upstream(
    document: Object, operation: Object, message: str
) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(document, [operation])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({"op": "add"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (["add"], "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
    ],
)
def test_what_is_no_list_of_operations_is_no_json_patch(operations: Any, message: str) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        json_patch({}, operations)
    assert str(caught.value) == f"error decoding patch: json: {message}"


def test_more_operations_than_the_server_allows_are_refused() -> None:
    with pytest.raises(TooManyOperationsError) as caught:
        json_patch({}, [op("test", "/a", value=None)] * 10_001)
    assert str(caught.value) == "The allowed maximum operations in a JSON patch is 10000, got 10001"


def test_copies_may_not_grow_the_object_without_bound() -> None:
    doubling = [op("copy", "/a/-", **{"from": "/a"})] * 40
    with pytest.raises(PatchError, match="the accumulated size increase of copy is"):
        json_patch({"a": ["x" * 100]}, doubling)


def test_a_copy_is_independent_of_its_source() -> None:
    operations = [op("copy", "/b", **{"from": "/a"}), op("add", "/b/x", value=2), op("add", "/a/y", value=3)]
    assert json_patch({"a": {"x": 1}}, operations) == {"a": {"x": 1, "y": 3}, "b": {"x": 2}}


@given(
    documents, st.lists(st.tuples(st.sampled_from(["add", "remove", "replace"]), st.text("/ab0", max_size=5)))
)
def test_json_patch_never_changes_its_inputs(document: Object, edits: list[tuple[str, str]]) -> None:
    operations = [op(kind, f"/{path}", value={"v": 1}) for kind, path in edits]
    before = copy.deepcopy((document, operations))
    with contextlib.suppress(PatchError):
        json_patch(document, operations)
    assert (document, operations) == before


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [  # the examples of RFC 7386 that are about objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": None}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_merge_patch_examples_of_the_rfc(document: Any, patch: Any, result: Any) -> None:
    assert merge_patch(document, patch) == result


@pytest.mark.parametrize(
    ("patch", "kind"), [([], "array"), (1, "number"), ("text", "string"), (True, "bool")]
)
def test_only_an_object_is_a_merge_patch(patch: Any, kind: str) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        merge_patch({}, patch)
    assert str(caught.value) == (
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )


def test_null_is_no_merge_patch() -> None:
    with pytest.raises(MalformedPatchError, match="Invalid JSON Patch"):
        merge_patch({}, None)


@given(documents.map(without_nulls), documents.map(without_nulls))
def test_the_created_merge_patch_leads_from_old_to_new(old: Object, new: Object) -> None:
    before = copy.deepcopy((old, new))
    assert merge_patch(old, create_merge_patch(old, new)) == new
    assert (old, new) == before
    assert create_merge_patch(old, old) == {}


def test_a_merge_patch_leaves_untouched_parts_shared() -> None:
    document = {"a": {"deep": [1]}, "b": 1}
    assert merge_patch(document, {"b": 2})["a"] is document["a"]
