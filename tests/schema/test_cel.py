"""Rules of custom resources: where they stand, what they see, what they say, and when they run."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from podium.schema import cel, structural

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def ruled(schema: Schema, *rules: str | dict[str, Any]) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": r} if isinstance(r, str) else r for r in rules]}


def errors(spec_schema: Schema, spec: Any, old: Any = None) -> list[str]:
    tree = structural.parse(obj(spec=spec_schema))
    was = None if old is None else {"spec": old}
    return [str(e) for e in cel.validate({"spec": spec}, tree, was)]


def test_a_broken_rule_is_reported_with_its_message() -> None:
    schema = ruled(obj(a=INTEGER), {"rule": "self.a > 1", "message": " too small "})
    assert errors(schema, {"a": 1}) == ["spec: Invalid value: too small"]
    assert errors(schema, {"a": 2}) == []


def test_a_rule_without_a_message_is_its_own_message() -> None:
    assert errors(ruled(obj(a=INTEGER), "self.a > 1"), {"a": 1}) == [
        "spec: Invalid value: failed rule: self.a > 1"
    ]


def test_a_broken_rule_of_a_scalar_shows_the_value() -> None:
    assert errors(obj(a=ruled(INTEGER, "self > 1")), {"a": 1}) == [
        "spec.a: Invalid value: 1: failed rule: self > 1"
    ]


REASONS = [
    ("FieldValueForbidden", "spec.a: Forbidden: no"),
    ("FieldValueRequired", "spec.a: Required value: no"),
    ("FieldValueInvalid", "spec.a: Invalid value: 1: no"),
    ("FieldValueDuplicate", "spec.a: Duplicate value: 1"),
]


@pytest.mark.parametrize(("reason", "expected"), REASONS)
def test_a_rule_chooses_the_reason_of_its_error(reason: str, expected: str) -> None:
    schema = obj(a=ruled(INTEGER, {"rule": "self > 1", "message": "no", "reason": reason}))
    assert errors(schema, {"a": 1}) == [expected]


def test_a_rule_chooses_the_field_of_its_error() -> None:
    schema = ruled(
        obj(a=INTEGER, m={"type": "object", "additionalProperties": STRING}),
        {"rule": "self.a > 1", "message": "x", "fieldPath": ".a"},
        {"rule": "self.a > 1", "message": "y", "fieldPath": ".m['k.j']"},
    )
    assert errors(schema, {"a": 1}) == ["spec.a: Invalid value: x", "spec.m[k.j]: Invalid value: y"]


def test_a_message_expression_is_evaluated_and_the_message_is_what_remains_if_that_fails() -> None:
    good = {"rule": "self.a > 1", "messageExpression": "'a is ' + string(self.a)", "message": "x"}
    bad = {"rule": "self.a > 1", "messageExpression": "string(self.a / 0)", "message": "x"}
    lines = {"rule": "self.a > 1", "messageExpression": "'a\\nb'", "message": "x"}
    found = errors(ruled(obj(a=INTEGER), good, bad, lines), {"a": 1})
    assert found == ["spec: Invalid value: a is 1", "spec: Invalid value: x", "spec: Invalid value: x"]


def test_rules_stand_in_list_items_and_map_values() -> None:
    schema = obj(
        l={"type": "array", "items": ruled(obj(v=INTEGER), "self.v > 1")},
        m={"type": "object", "additionalProperties": ruled(INTEGER, "self > 1")},
    )
    assert errors(schema, {"l": [{"v": 2}, {"v": 1}], "m": {"k": 1}}) == [
        "spec.l[1]: Invalid value: failed rule: self.v > 1",
        "spec.m[k]: Invalid value: 1: failed rule: self > 1",
    ]


FIELDS: dict[str, Schema] = {
    "n": {"type": "number"},
    "t": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "d": {"type": "string", "format": "duration"},
    "b": {"type": "string", "format": "byte"},
    "either": {"x-kubernetes-int-or-string": True},
    "nul": {**STRING, "nullable": True},
    "a-b": INTEGER,
    "x.y": INTEGER,
    "u__v": INTEGER,
    "namespace": STRING,
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "er": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
}
TYPED = obj(**FIELDS)
SPEC = {
    "n": 3,
    "t": "2024-05-01T10:00:00+02:00",
    "day": "2024-05-01",
    "d": "90s",
    "b": "eA==",
    "either": 5,
    "nul": None,
    "a-b": 1,
    "x.y": 2,
    "u__v": 3,
    "namespace": "q",
    "free": {"k": 1},
    "times": ["2024-05-01T10:00:00Z"],
    "er": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
}
HOLDS = [
    "self.n / 2.0 == 1.5",
    "self.n == 3.0",
    "self.t == timestamp('2024-05-01T08:00:00Z')",
    "self.day < self.t",
    "self.d == duration('1m30s')",
    "self.b == b'x'",
    "self.either == 5 && type(self.either) == int",
    "!has(self.nul)",
    "self.a__dash__b == 1 && self.x__dot__y == 2 && self.u__underscores__v == 3 && self.__namespace__ == 'q'",
    "has(self.free)",
    "self.er.kind == 'Pod' && self.er.metadata.name == 'p'",
    "self.times.max() > self.day",
    "self == self",
    "self.?nul.orValue('none') == 'none'",
]


@pytest.mark.parametrize("rule", HOLDS)
def test_values_have_the_types_of_their_schema(rule: str) -> None:
    assert errors(ruled(TYPED, rule), SPEC) == []


UNSEEN = [
    ("self.free.k == 1", "undefined field 'k'"),
    ("self.er.spec == 1", "undefined field 'spec'"),
    ("self.er.metadata.labels == {}", "undefined field 'labels'"),
    ("self.n == 3", "found no matching overload for '_==_' applied to '(double, int)'"),
    ("self.t == '2024'", "found no matching overload for '_==_' applied to '(timestamp, string)'"),
    ("self.n", "cel expression must evaluate to a bool"),
]


@pytest.mark.parametrize(("rule", "message"), UNSEEN)
def test_a_rule_that_does_not_fit_its_schema_does_not_compile(rule: str, message: str) -> None:
    compiled = cel.compile_at(structural.parse(ruled(TYPED, rule)), is_resource=False)
    assert compiled is not None
    assert message in compiled[0].error


def test_the_name_and_kind_of_an_object_are_visible_at_its_root() -> None:
    tree = structural.parse(ruled(obj(spec=obj()), "self.metadata.name == 'x' && self.kind == 'K'"))
    thing = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "y"}, "spec": {}}
    assert [e.path for e in cel.validate(thing, tree)] == ["<nil>"]
    assert cel.validate({**thing, "metadata": {"name": "x"}}, tree) == []


EVALUATION = [
    ("self.?a.value() > 0", 'spec: Invalid value: "object": optional.none() dereference evaluating rule: R'),
    ("self.a > 0", 'spec: Invalid value: "object": no such key: a evaluating rule: R'),
    (
        "self.e > 1",
        (
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported "
            "operator, function or macro signature for rule: R"
        ),
    ),
]


@pytest.mark.parametrize(("rule", "expected"), EVALUATION)
def test_a_rule_that_fails_to_evaluate_is_an_error(rule: str, expected: str) -> None:
    schema = ruled(obj(a=INTEGER, e={"x-kubernetes-int-or-string": True}), {"rule": rule, "message": "R"})
    assert errors(schema, {"e": "text"}) == [expected]


def test_rules_wait_until_the_schema_has_no_complaint_that_would_trip_them() -> None:
    found = errors(ruled(obj(a=INTEGER), "self.a > 1"), {"a": "x"})
    assert len(found) == 2
    assert found[1].startswith("<nil>: Invalid value: null: some validation rules were not checked")


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
GROWS = {"rule": "self.v >= oldSelf.v", "message": "shrank"}
TRANSITIONS: list[tuple[str, Schema, Any, Any, list[str]]] = [
    ("a transition rule holds", obj(a=ruled(INTEGER, "self >= oldSelf")), {"a": 1}, {"a": 2}, []),
    (
        "a transition rule is broken",
        obj(a=ruled(INTEGER, {"rule": "self >= oldSelf", "message": "m"})),
        {"a": 2},
        {"a": 1},
        ["spec.a: Invalid value: 1: m"],
    ),
    ("there was no old value", obj(a=ruled(INTEGER, "self == oldSelf")), {}, {"a": 1}, []),
    (
        "the item with the same key shrank",
        obj(l={"type": "array", "items": ruled(obj(k=STRING, v=INTEGER), GROWS), **KEYED}),
        {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]},
        {"l": [{"k": "b", "v": 4}, {"k": "a", "v": 1}, {"k": "new", "v": 0}]},
        ["spec.l[0]: Invalid value: shrank"],
    ),
    (
        "items of a plain list have no old value",
        obj(l={"type": "array", "items": ruled(obj(k=STRING, v=INTEGER), GROWS)}),
        {"l": [{"v": 5}]},
        {"l": [{"v": 4}]},
        [],
    ),
    (
        "the map entry shrank",
        obj(
            m={
                "type": "object",
                "additionalProperties": ruled(INTEGER, {"rule": "self >= oldSelf", "message": "m"}),
            }
        ),
        {"m": {"a": 2}},
        {"m": {"a": 1, "b": 0}},
        ["spec.m[a]: Invalid value: 1: m"],
    ),
    (
        "a set keeps its value in any order",
        obj(s=ruled({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, "self == oldSelf")),
        {"s": ["a", "b"]},
        {"s": ["b", "a"]},
        [],
    ),
    (
        "a keyed list keeps its value in any order",
        ruled(obj(l={"type": "array", "items": obj(k=STRING), **KEYED}), "self == oldSelf"),
        {"l": [{"k": "a"}, {"k": "b"}]},
        {"l": [{"k": "b"}, {"k": "a"}]},
        [],
    ),
    (
        "a plain list does not",
        obj(l=ruled({"type": "array", "items": STRING}, {"rule": "self == oldSelf", "message": "m"})),
        {"l": ["a", "b"]},
        {"l": ["b", "a"]},
        ["spec.l: Invalid value: m"],
    ),
    (
        "an optional old value is there",
        obj(
            a=ruled(
                INTEGER,
                {
                    "rule": "!oldSelf.hasValue() || oldSelf.value() < self",
                    "message": "m",
                    "optionalOldSelf": True,
                },
            )
        ),
        {"a": 1},
        {"a": 1},
        ["spec.a: Invalid value: 1: m"],
    ),
    (
        "an optional old value is not there",
        obj(
            a=ruled(
                INTEGER, {"rule": "oldSelf.hasValue() || self > 5", "message": "m", "optionalOldSelf": True}
            )
        ),
        {},
        {"a": 1},
        ["spec.a: Invalid value: 1: m"],
    ),
    (
        "an unchanged value that breaks a new rule is forgiven",
        obj(a=ruled(INTEGER, "self > 5"), b=INTEGER),
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
        [],
    ),
    (
        "a changed object that breaks a new rule is not",
        ruled(obj(a=INTEGER, b=INTEGER), {"rule": "self.a > 5", "message": "m"}),
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
        ["spec: Invalid value: m"],
    ),
    (
        "a broken rule in an unchanged plain list is forgiven",
        obj(l={"type": "array", "items": ruled(STRING, "self.size() > 5")}, b=INTEGER),
        {"l": ["a"], "b": 1},
        {"l": ["a"], "b": 2},
        [],
    ),
]


@pytest.mark.parametrize(
    ("schema", "old", "new", "expected"), [c[1:] for c in TRANSITIONS], ids=[c[0] for c in TRANSITIONS]
)
def test_on_an_update(schema: Schema, old: Any, new: Any, expected: list[str]) -> None:
    assert errors(schema, new, old) == expected


def test_the_rules_of_one_object_share_a_budget() -> None:
    costly = ruled(
        {"type": "array", "items": INTEGER}, {"rule": "self.all(x, self.exists(y, y == x))", "message": "R"}
    )
    schema = obj(m={"type": "object", "additionalProperties": costly})
    numbers = list(range(500))
    assert errors(schema, {"m": {"a": numbers}}) == []
    found = errors(schema, {"m": {str(i): numbers for i in range(20)}})
    assert len(found) == 1
    assert found[0].endswith(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


def test_nothing_of_cel_is_loaded_until_a_schema_has_rules() -> None:
    program = (
        "import sys\n"
        "from podium.schema import cel, structural\n"
        "tree = structural.parse({'type': 'object', 'properties': {'spec': {'type': 'object'}}})\n"
        "assert cel.validate({'spec': {}}, tree) == []\n"
        "assert not [m for m in sys.modules if 'cel_' in m], 'loaded too early'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
