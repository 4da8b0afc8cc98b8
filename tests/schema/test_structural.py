"""Structural schemas: which are, what they prune and default, and how they merge."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import structural
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def root(**spec: Schema) -> Schema:
    return obj(spec=obj(**spec))


def pruned(schema: Schema, spec: Any) -> tuple[Any, list[str]]:
    value = {"spec": copy.deepcopy(spec)}
    dropped = structural.prune(value, structural.parse(schema))
    return value["spec"], dropped


def defaulted(schema: Schema, spec: Any) -> Any:
    value = {"spec": copy.deepcopy(spec)}
    tree = structural.parse(schema)
    structural.prune(value, tree)
    structural.default(value, tree)
    return value["spec"]


NOT_STRUCTURAL: list[tuple[str, Schema, list[str]]] = [
    (
        "a field without a type",
        root(a={}),
        [
            (
                "x.properties[spec].properties[a].type: Required value: must not be empty for specified "
                "object fields"
            )
        ],
    ),
    (
        "items without a type",
        root(a={"type": "array", "items": {}}),
        [
            (
                "x.properties[spec].properties[a].items.type: Required value: must not be empty for "
                "specified array items"
            )
        ],
    ),
    (
        "an array without items",
        root(a={"type": "array"}),
        ["x.properties[spec].properties[a].items: Required value: must be specified"],
    ),
    ("a root that is no object", STRING, ['x.type: Invalid value: "string": must be object at the root']),
    ("a root without a type", {"properties": {}}, ["x.type: Required value: must not be empty at the root"]),
    (
        "additional properties at the root",
        {"type": "object", "additionalProperties": STRING},
        ["x.additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        "a type inside a quantifier",
        {**root(), "anyOf": [{"type": "object"}]},
        ["x.anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        "a default inside a quantifier",
        {**obj(a=STRING), "allOf": [{"properties": {"a": {"default": "x"}}}]},
        ["x.allOf[0].properties[a].default: Forbidden: must be undefined to be structural"],
    ),
    (
        "a field only inside a quantifier",
        {**obj(a=STRING), "oneOf": [{"properties": {"b": {"minLength": 1}}}]},
        ["x.properties[b]: Required value: because it is defined in x.oneOf[0].properties[b]"],
    ),
    (
        "metadata inside a quantifier",
        {**obj(metadata={"type": "object"}), "not": {"properties": {"metadata": {}}}},
        ["x.not.properties[metadata]: Forbidden: must not be specified in a nested context"],
    ),
    (
        "metadata with labels",
        obj(metadata=obj(labels={"type": "object"})),
        [
            (
                "x.properties[metadata]: Forbidden: must not specify anything other than name and "
                "generateName, but metadata is implicitly specified"
            )
        ],
    ),
    (
        "a kind that is no string",
        obj(kind=INTEGER),
        ['x.properties[kind].type: Invalid value: "integer": must be string'],
    ),
    (
        "an embedded resource without a type",
        root(a={"x-kubernetes-embedded-resource": True, PRESERVE: True}),
        [
            (
                "x.properties[spec].properties[a].type: Required value: must be object if "
                "x-kubernetes-embedded-resource is true"
            )
        ],
    ),
    (
        "an int-or-string that preserves",
        root(a={"x-kubernetes-int-or-string": True, PRESERVE: True}),
        [
            (
                f"x.properties[spec].properties[a].{PRESERVE}: Invalid value: true: must be false if "
                "x-kubernetes-int-or-string is true"
            )
        ],
    ),
    (
        "a pattern that RE2 refuses",
        root(a={"type": "string", "pattern": "(?!x)"}),
        [
            (
                'x.properties[spec].properties[a].pattern: Invalid value: "(?!x)": must be a valid regular '
                "expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"
            )
        ],
    ),
]


@pytest.mark.parametrize(
    ("schema", "expected"), [c[1:] for c in NOT_STRUCTURAL], ids=[c[0] for c in NOT_STRUCTURAL]
)
def test_a_schema_that_is_not_structural_is_told_why(schema: Schema, expected: list[str]) -> None:
    assert [str(e) for e in structural.check(schema, "x")] == expected


@pytest.mark.parametrize(
    "schema",
    [
        root(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        root(
            a={
                "x-kubernetes-int-or-string": True,
                "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}],
            }
        ),
        obj(metadata=obj(name={"type": "string", "pattern": "x"})),
        root(a={PRESERVE: True}),
        {**obj(a=STRING), "oneOf": [{"required": ["a"]}, {"properties": {"a": {"enum": ["x"]}}}]},
    ],
    ids=["int-or-string by anyOf", "int-or-string by allOf", "a name restriction", "no type at all", "oneOf"],
)
def test_the_exceptions_of_structural_schemas_are_known(schema: Schema) -> None:
    assert structural.check(schema, "x") == []


PRUNING: list[tuple[str, Schema, Any, Any, list[str]]] = [
    ("an unknown field goes", root(a=STRING), {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"]),
    (
        "an unknown field of a list item goes",
        root(l={"type": "array", "items": obj(a=STRING)}),
        {"l": [{"bar": 1}]},
        {"l": [{}]},
        ["spec.l[0].bar"],
    ),
    (
        "an unknown field of a map value goes",
        root(m={"type": "object", "additionalProperties": obj(a=STRING)}),
        {"m": {"k": {"b": 1}}},
        {"m": {"k": {}}},
        ["spec.m.k.b"],
    ),
    (
        "a preserving object keeps all",
        root(o={"type": "object", PRESERVE: True}),
        {"o": {"x": {"y": [1]}}},
        {"o": {"x": {"y": [1]}}},
        [],
    ),
    (
        "a preserving object prunes what it declares",
        root(o={**obj(a=obj(x=STRING)), PRESERVE: True}),
        {"o": {"a": {"y": 1}, "b": 1}},
        {"o": {"a": {}, "b": 1}},
        ["spec.o.a.y"],
    ),
    (
        "the items of a preserving list are kept",
        root(l={"type": "array", "items": obj(a=STRING), PRESERVE: True}),
        {"l": [{"b": 1}]},
        {"l": [{"b": 1}]},
        [],
    ),
    (
        "additionalProperties without a schema keeps keys, not what is in them",
        root(m={"type": "object", "additionalProperties": True}),
        {"m": {"k": {"b": 1}, "j": 2}},
        {"m": {"k": {}, "j": 2}},
        ["spec.m.k.b"],
    ),
    ("a null that is not allowed goes unreported", root(a=STRING), {"a": None}, {}, []),
    ("a null that is allowed stays", root(a={**STRING, "nullable": True}), {"a": None}, {"a": None}, []),
]


@pytest.mark.parametrize(
    ("schema", "value", "kept", "dropped"), [c[1:] for c in PRUNING], ids=[c[0] for c in PRUNING]
)
def test_pruning(schema: Schema, value: Any, kept: Any, dropped: list[str]) -> None:
    assert pruned(schema, value) == (kept, dropped)


def test_type_and_metadata_of_an_object_are_not_pruned() -> None:
    value = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "other": 1}
    assert structural.prune(value, structural.parse(root())) == ["other"]
    assert value == {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}}


def test_the_metadata_of_an_embedded_resource_is_read_as_object_meta() -> None:
    schema = root(t={"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True})
    template = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": None, "x": 1},
        "q": 1,
    }
    value, dropped = pruned(schema, {"t": template})
    assert value == {"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "q": 1}}
    assert dropped == ["spec.t.metadata.x"]


DEFAULTS: list[tuple[str, Schema, Any, Any]] = [
    ("of a missing field", root(a={**STRING, "default": "x"}), {}, {"a": "x"}),
    ("not over a given field", root(a={**STRING, "default": "x"}), {"a": "y"}, {"a": "y"}),
    ("over a null that is not allowed", root(a={**STRING, "default": "x"}), {"a": None}, {"a": "x"}),
    (
        "not over a null that is allowed",
        root(a={**STRING, "default": "x", "nullable": True}),
        {"a": None},
        {"a": None},
    ),
    ("inside a default", root(o={**obj(a={**STRING, "default": "x"}), "default": {}}), {}, {"o": {"a": "x"}}),
    ("not inside a missing object", root(o=obj(a={**STRING, "default": "x"})), {}, {}),
    (
        "inside list items",
        root(l={"type": "array", "items": obj(a={**STRING, "default": "x"})}),
        {"l": [{}, {"a": "y"}]},
        {"l": [{"a": "x"}, {"a": "y"}]},
    ),
    (
        "inside map values",
        root(m={"type": "object", "additionalProperties": obj(a={**STRING, "default": "x"})}),
        {"m": {"k": {}}},
        {"m": {"k": {"a": "x"}}},
    ),
    (
        "of null list items",
        root(l={"type": "array", "items": {**STRING, "default": "x"}}),
        {"l": [None, "y"]},
        {"l": ["x", "y"]},
    ),
    ("of false", root(a={"type": "boolean", "default": False}), {}, {"a": False}),
]


@pytest.mark.parametrize(
    ("schema", "value", "expected"), [c[1:] for c in DEFAULTS], ids=[c[0] for c in DEFAULTS]
)
def test_a_default(schema: Schema, value: Any, expected: Any) -> None:
    assert defaulted(schema, value) == expected


def test_a_default_is_not_shared_between_objects() -> None:
    tree = structural.parse(root(l={"type": "array", "items": STRING, "default": []}))
    first: dict[str, Any] = {"spec": {}}
    second: dict[str, Any] = {"spec": {}}
    structural.default(first, tree)
    first["spec"]["l"].append("x")
    structural.default(second, tree)
    assert second == {"spec": {"l": []}}


names = st.sampled_from("abcd")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
schemas: st.SearchStrategy[Schema] = st.recursive(
    st.sampled_from(
        [STRING, INTEGER, {**STRING, "default": "d"}, {**STRING, "nullable": True}, {PRESERVE: True}]
    ),
    lambda inner: (
        st.dictionaries(names, inner, max_size=3).map(lambda p: {"type": "object", "properties": p})
        | inner.map(lambda i: {"type": "array", "items": i})
        | inner.map(lambda a: {"type": "object", "additionalProperties": a})
    ),
    max_leaves=6,
)


@given(schemas, json_values)
def test_pruning_and_defaulting_twice_changes_nothing_more(schema: Schema, value: Any) -> None:
    tree = structural.parse(root(a=schema))
    once = {"spec": {"a": value}}
    structural.prune(once, tree)
    structural.default(once, tree)
    twice = copy.deepcopy(once)
    assert structural.prune(twice, tree) == []
    structural.default(twice, tree)
    assert twice == once


@given(schemas)
def test_equal_schemas_are_one_tree(schema: Schema) -> None:
    assert structural.parse(copy.deepcopy(schema)) is structural.parse(schema)


def at(shape: Shape, *path: str) -> Shape:
    for step in path:
        below = shape.items() if step == "*" else shape.field(step)
        assert below is not None, step
        shape = below
    return shape


def test_server_side_apply_sees_sets_keyed_lists_and_atomic_values() -> None:
    ports = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": obj(port=INTEGER, protocol={**STRING, "default": "TCP"}),
    }
    metadata = Shape(Merge.OBJECT)
    shape = structural.shape_for(
        structural.parse(
            root(
                ports=ports,
                names={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                args={"type": "array", "items": STRING},
                selector={
                    "type": "object",
                    "additionalProperties": STRING,
                    "x-kubernetes-map-type": "atomic",
                },
                labels={"type": "object", "additionalProperties": STRING},
                free={"type": "object", PRESERVE: True},
                template={"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
                either={"x-kubernetes-int-or-string": True},
            )
        ),
        metadata,
    )
    assert at(shape, "spec", "ports").merge is Merge.KEYED
    assert at(shape, "spec", "ports").keys == ("port", "protocol")
    assert at(shape, "spec", "ports").key_defaults == {"protocol": "TCP"}
    assert at(shape, "spec", "ports", "*", "port") is SCALAR
    assert at(shape, "spec", "names").merge is Merge.SET
    assert at(shape, "spec", "args").merge is Merge.ATOMIC
    assert at(shape, "spec", "selector").merge is Merge.ATOMIC
    assert at(shape, "spec", "labels").merge is Merge.OBJECT
    assert at(shape, "spec", "labels", "any") is SCALAR
    assert at(shape, "spec", "free") is UNTYPED
    assert at(shape, "spec", "template", "metadata") is metadata
    assert at(shape, "spec", "template", "other") is UNTYPED
    assert at(shape, "spec", "either") is SCALAR
    assert at(shape, "metadata") is metadata
    assert at(shape, "spec").field("unknown") is None
