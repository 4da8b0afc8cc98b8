"""Validation of custom resources: the real server's words, its forgiveness, and another validator."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import structural

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def errors(field: Schema, value: Any, old: Any = None, name: str = "x") -> list[str]:
    tree = structural.parse(obj(spec=obj(**{name: field})))
    was = None if old is None else {"spec": {name: old}}
    return [str(e) for e in structural.validate({"spec": {name: value}}, tree, was)]


# Each text was read off kube-apiserver 1.36.
WORDS: list[tuple[Schema, Any, list[str]]] = [
    (INTEGER, "a", ['spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"']),
    (STRING, None, ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"']),
    (
        INTEGER,
        1.5,
        [
            'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x',
        ],
    ),
    (
        {"type": "array", "items": STRING},
        {},
        ['spec.x: Invalid value: "object": spec.x in body must be of type array: "object"'],
    ),
    (
        {"type": "array", "items": INTEGER},
        [1, "a"],
        ['spec.x[1]: Invalid value: "string": spec.x[1] in body must be of type integer: "string"'],
    ),
    (
        {"type": "object", "additionalProperties": INTEGER},
        {"k": "a"},
        ['spec.x.k: Invalid value: "string": spec.x.k in body must be of type integer: "string"'],
    ),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
    ),
    ({**STRING, "enum": ["b", "a"]}, "x", ['spec.x: Unsupported value: "x": supported values: "b", "a"']),
    ({**INTEGER, "enum": [1, 2]}, 3, ['spec.x: Unsupported value: 3: supported values: "1", "2"']),
    (
        {**INTEGER, "minimum": 1},
        0,
        ["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
    ),
    (
        {**INTEGER, "minimum": 1, "exclusiveMinimum": True},
        1,
        ["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
    ),
    (
        {**INTEGER, "maximum": 9},
        10,
        ["spec.x: Invalid value: 10: spec.x in body should be less than or equal to 9"],
    ),
    (
        {"type": "number", "maximum": 10000000},
        10000000.5,
        ["spec.x: Invalid value: 1.00000005e+07: spec.x in body should be less than or equal to 1e+07"],
    ),
    ({**INTEGER, "multipleOf": 3}, 4, ["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"]),
    (
        {**INTEGER, "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x'],
    ),
    ({**STRING, "maxLength": 1}, "ab", ["spec.x: Too long: may not be more than 1 byte"]),
    ({**STRING, "maxLength": 2}, "abc", ["spec.x: Too long: may not be more than 2 bytes"]),
    (
        {**STRING, "minLength": 2},
        "a",
        ['spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long'],
    ),
    (
        {**STRING, "pattern": "^a+$"},
        "b",
        ["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
    ),
    (
        {**STRING, "format": "date-time"},
        "x",
        ['spec.x: Invalid value: "x": spec.x in body must be of type date-time: "x"'],
    ),
    (
        {**STRING, "format": "date"},
        5,
        ['spec.x: Invalid value: "int64": spec.x in body must be of type date: "int64"'],
    ),
    ({**STRING, "format": "no such format"}, "x", []),
    (
        {"type": "array", "items": INTEGER, "maxItems": 1},
        [1, 2],
        ["spec.x: Too many: 2: must have at most 1 item"],
    ),
    (
        {"type": "array", "items": INTEGER, "minItems": 1},
        [],
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
    ),
    (
        {"type": "object", "additionalProperties": STRING, "maxProperties": 1},
        {"a": "", "b": ""},
        ["spec.x: Too many: 2: must have at most 1 item"],
    ),
    (
        {"type": "object", "additionalProperties": STRING, "minProperties": 1},
        {},
        ["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
    ),
    ({**obj(a=STRING), "required": ["a"]}, {}, ["spec.x.a: Required value"]),
    (
        {"type": "object", "additionalProperties": False},
        {"a": 1},
        ['spec.x: Invalid value: "a": spec.x.a in body is a forbidden property'],
    ),
    (
        {**obj(a=STRING, b=STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
            "spec.x.a: Required value",
        ],
    ),
    (
        {**obj(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": "", "b": ""},
        [
            (
                '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 '
                "valid alternatives"
            )
        ],
    ),
    (
        {**INTEGER, "allOf": [{"minimum": 5}, {"maximum": 3}]},
        4,
        [
            "spec.x: Invalid value: 4: spec.x in body should be greater than or equal to 5",
            "spec.x: Invalid value: 4: spec.x in body should be less than or equal to 3",
            '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf). None validated',
        ],
    ),
    (
        {**STRING, "not": {"enum": ["bad"]}},
        "bad",
        ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
    ),
    (
        {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        ["a", "b", "a", "a"],
        ['spec.x[2]: Duplicate value: "a"'],
    ),
    (
        {"type": "array", "items": obj(k=STRING), **KEYED},
        [{"k": "a"}, {"k": "a"}],
        ['spec.x[1]: Duplicate value: {"k":"a"}'],
    ),
    (
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"kind": "A_b"},
        [
            "spec.x.apiVersion: Required value",
            (
                'spec.x.kind: Invalid value: "A_b": may have mixed case, but should otherwise match: a '
                "DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
                "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ),
        ],
    ),
    ({**INTEGER}, 1.0, []),
    ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, "a", None]}, []),
]


@pytest.mark.parametrize(("field", "value", "expected"), WORDS)
def test_a_fault_is_told_in_the_words_of_the_real_server(
    field: Schema, value: Any, expected: list[str]
) -> None:
    assert errors(field, value) == expected


def test_a_part_of_an_object_is_named_by_where_it_stands() -> None:
    tree = structural.parse(obj(phase={**STRING, "enum": ["A"]}))
    found = structural.validate({"phase": 1}, tree, prefix="status")
    assert [e.path for e in found] == ["status.phase", "status.phase"]
    assert "phase in body must be of type string" in str(found[0])


RATCHETING: list[tuple[str, Schema, Any, Any, bool]] = [
    ("an unchanged value is forgiven", {**STRING, "maxLength": 1}, "long", "long", True),
    ("a changed value is not", {**STRING, "maxLength": 1}, "long", "longer", False),
    ("true is not what 1 was", {**INTEGER, "maximum": 0}, 1, True, False),
    (
        "an unchanged field beside a changed one is",
        obj(a={**STRING, "maxLength": 1}, b=STRING),
        {"a": "long", "b": "x"},
        {"a": "long", "b": "y"},
        True,
    ),
    (
        "what is wrong with the object as a whole is not, if it changed",
        {**obj(a=STRING, b=STRING), "minProperties": 3},
        {"a": "x"},
        {"a": "y"},
        False,
    ),
    (
        "an unchanged item of a keyed list is",
        {"type": "array", "items": obj(k=STRING, v={**INTEGER, "minimum": 5}), **KEYED},
        [{"k": "a", "v": 1}],
        [{"k": "b", "v": 9}, {"k": "a", "v": 1}],
        True,
    ),
    (
        "an unchanged item of another list is not",
        {"type": "array", "items": {**STRING, "maxLength": 1}},
        ["long"],
        ["long", "x"],
        False,
    ),
    (
        "a list that only changed its order is not",
        {"type": "array", "items": {**STRING, "maxLength": 1}},
        ["long", "x"],
        ["x", "long"],
        False,
    ),
    (
        "a value with data that no schema describes never counts as unchanged",
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "maxProperties": 0},
        {"a": 1},
        {"a": 1},
        False,
    ),
]


@pytest.mark.parametrize(
    ("field", "old", "new", "forgiven"), [c[1:] for c in RATCHETING], ids=[c[0] for c in RATCHETING]
)
def test_on_an_update(field: Schema, old: Any, new: Any, forgiven: bool) -> None:
    assert errors(field, new)
    assert (errors(field, new, old) == []) is forgiven


scalars = (
    st.none() | st.booleans() | st.integers(-4, 12) | st.sampled_from([0.5, 1.5]) | st.text("ab", max_size=4)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
small = st.integers(0, 4)
string_schemas = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": small,
        "maxLength": small,
        "pattern": st.sampled_from(["^a", "b$", "^[ab]{2}$"]),
        "enum": st.lists(st.text("ab", max_size=2), min_size=1, max_size=3, unique=True),
    },
)
number_schemas = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={"minimum": small, "maximum": small, "multipleOf": st.integers(1, 3)},
)
simple_schemas: st.SearchStrategy[Schema] = string_schemas | number_schemas | st.just({"type": "boolean"})


def containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner}, optional={"minItems": small, "maxItems": small}
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True),
            "minProperties": small,
        },
    )
    maps = st.fixed_dictionaries(
        {"type": st.just("object"), "additionalProperties": inner}, optional={"maxProperties": small}
    )
    quantified = st.builds(
        lambda base, key, subs: {**base, key: subs},
        inner,
        st.sampled_from(["allOf", "anyOf", "oneOf"]),
        st.lists(
            st.sampled_from([{"minLength": 1}, {"maximum": 3}, {"required": ["a"]}, {"maxItems": 1}]),
            min_size=1,
            max_size=2,
        ),
    )
    return arrays | objects | maps | quantified


schemas = st.recursive(simple_schemas, containers, max_leaves=5)


@given(schemas, json_values)
def test_an_independent_validator_accepts_and_rejects_the_same_values(schema: Schema, value: Any) -> None:
    ours = not structural.validate({"x": value}, structural.parse(obj(x=schema)))
    assert ours == jsonschema_rs.Draft4Validator(schema).is_valid(value)
