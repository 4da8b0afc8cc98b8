"""Rules in the schemas of custom resources (CEL)."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from behaviour.definitions import Definitions, Objects, definition, properties, version
from behaviour.support import causes, eventually

Object = dict[str, Any]

STRING: Object = {"type": "string", "maxLength": 64}
INTEGER: Object = {"type": "integer"}
STRINGS: Object = {"type": "array", "items": STRING, "maxItems": 8}
INVALID = "FieldValueInvalid"


def ruled(schema: Object, rule: str, **more: Any) -> Object:
    """A schema with one rule."""
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


# Each field has one rule; an object that leaves the field out does not meet it.
SPEC: dict[str, Object] = {
    "positive": ruled(INTEGER, "self > 0"),
    "told": ruled(INTEGER, "self > 0", message="must be more than nothing"),
    "worked": ruled(STRING, "self != 'x'", messageExpression="'not ' + self"),
    "fallback": ruled(STRING, "self != 'x'", message="so it is", messageExpression="[''][1 / 0]"),
    "range": ruled(properties(low=INTEGER, high=INTEGER), "self.low <= self.high"),
    "at": ruled(properties(low=INTEGER, high=INTEGER), "self.low <= self.high", fieldPath=".high"),
    "forbidden": ruled(STRING, "self != 'x'", reason="FieldValueForbidden", message="not x"),
    "needed": ruled(properties(a=STRING), "has(self.a)", reason="FieldValueRequired", fieldPath=".a"),
    "repeated": ruled(STRING, "self != 'x'", reason="FieldValueDuplicate"),
    "items": {"type": "array", "items": ruled(STRING, "self.startsWith('a')"), "maxItems": 8},
    "map": {"type": "object", "additionalProperties": ruled(INTEGER, "self > 0"), "maxProperties": 8},
    "keys": ruled(
        {"type": "object", "additionalProperties": STRING, "maxProperties": 8},
        "self.all(key, key.startsWith('a'))",
    ),
    "all": ruled(STRINGS, "self.all(x, x.size() > 1)"),
    "exists": ruled(STRINGS, "self.exists(x, x == 'must')"),
    "unique": ruled(STRINGS, "self.exists_one(x, x == 'a')"),
    "mapped": ruled(STRINGS, "self.map(x, x.size()).sum() < 5"),
    "filtered": ruled(STRINGS, "self.filter(x, x == 'a').size() < 2"),
    "sorted": ruled(STRINGS, "self.isSorted()"),
    "fixed": ruled(STRING, "self == oldSelf", message="cannot be changed"),
    "growing": ruled(INTEGER, "self >= oldSelf.orValue(1)", optionalOldSelf=True),
    "quantity": ruled(STRING, "quantity(self).isGreaterThan(quantity('1Gi'))"),
    "url": ruled(STRING, "isURL(self) && url(self).getScheme() == 'https'"),
    "ip": ruled(STRING, "isIP(self) && ip(self).family() == 4"),
    "cidr": ruled(STRING, "isCIDR(self) && cidr(self).containsIP('10.0.0.1')"),
    "regex": ruled(STRING, "self.find('[0-9]+') == '12'"),
    "matches": ruled(STRING, "self.matches('^a+$')"),
    "format": ruled(STRING, "!format.dns1123Label().validate(self).hasValue()"),
    "semver": ruled(STRING, "isSemver(self) && semver(self).isLessThan(semver('2.0.0'))"),
    "split": ruled(STRING, "self.split(',').size() == 2"),
    "lower": ruled(STRING, "self.lowerAscii() == self"),
    "time": ruled({"type": "string", "format": "date-time"}, "self > timestamp('2020-01-01T00:00:00Z')"),
    "span": ruled({"type": "string", "format": "duration"}, "self < duration('1h')"),
    "either": ruled({"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 0 : self == 'all'"),
    "optional": ruled(properties(a=INTEGER), "self.?a.orValue(5) > 3"),
    "escaped": ruled(
        properties(**{"a-b": INTEGER, "namespace": INTEGER, "a.b": INTEGER}),
        "self.a__dash__b > 0 && self.__namespace__ > 0 && self.a__dot__b > 0",
    ),
    "ternary": ruled(INTEGER, "(self > 5 ? 'big' : 'small') == 'big'"),
    "sets": ruled(STRINGS, "sets.contains(['a', 'b'], self)"),
    "double": ruled({"type": "number"}, "self < 1.5"),
    "error": ruled(INTEGER, "1 / self > 0"),
    "costly": ruled(
        {"type": "array", "items": INTEGER, "maxItems": 800}, "self.all(x, self.all(y, x + y >= 0))"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kinds(definitions: Definitions) -> dict[str, Objects]:
    """The kinds of this module, made together."""
    whole = ruled(
        properties(spec=properties(n=INTEGER), status=properties(n=INTEGER)),
        "!has(self.status) || self.status.n <= self.spec.n",
        message="status is ahead of spec",
    )
    named = ruled(properties(spec=properties(n=INTEGER)), "self.metadata.name.startsWith('x')")
    keyed = {
        "type": "array",
        "maxItems": 8,
        "items": {
            **properties(name=STRING, size=ruled(INTEGER, "self >= oldSelf", message="cannot shrink")),
            "required": ["name"],
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    loose = properties(spec=properties(a=INTEGER, b=INTEGER))
    return {
        "Ruled": definitions.add("Ruled", version("v1", properties(spec=properties(**SPEC)))),
        "Whole": definitions.add("Whole", version("v1", whole, subresources={"status": {}})),
        "Titled": definitions.add("Titled", version("v1", named)),
        "Keyed": definitions.add("Keyed", version("v1", properties(spec=properties(list=keyed)))),
        "Later": definitions.add("Later", version("v1", loose)),
    }


@pytest.fixture
def ruleds(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects of the kind that has a field for every rule."""
    return kinds["Ruled"].within(namespace)


FAULTS: list[tuple[str, Any, str, str, str]] = [
    ("positive", 0, "", INVALID, "Invalid value: 0: failed rule: self > 0"),
    ("told", 0, "", INVALID, "Invalid value: 0: must be more than nothing"),
    ("worked", "x", "", INVALID, 'Invalid value: "x": not x'),
    ("fallback", "x", "", INVALID, 'Invalid value: "x": so it is'),
    ("range", {"low": 2, "high": 1}, "", INVALID, "Invalid value: failed rule: self.low <= self.high"),
    ("at", {"low": 2, "high": 1}, ".high", INVALID, "Invalid value: failed rule: self.low <= self.high"),
    ("forbidden", "x", "", "FieldValueForbidden", "Forbidden: not x"),
    ("needed", {}, ".a", "FieldValueRequired", "Required value: failed rule: has(self.a)"),
    ("repeated", "x", "", "FieldValueDuplicate", 'Duplicate value: "x"'),
    ("items", ["a", "b"], "[1]", INVALID, "Invalid value: \"b\": failed rule: self.startsWith('a')"),
    ("map", {"a": 1, "b": 0}, "[b]", INVALID, "Invalid value: 0: failed rule: self > 0"),
    ("keys", {"b": ""}, "", INVALID, "Invalid value: failed rule: self.all(key, key.startsWith('a'))"),
    ("all", ["a"], "", INVALID, "Invalid value: failed rule: self.all(x, x.size() > 1)"),
    ("exists", [], "", INVALID, "Invalid value: failed rule: self.exists(x, x == 'must')"),
    ("unique", ["a", "a"], "", INVALID, "Invalid value: failed rule: self.exists_one(x, x == 'a')"),
    ("mapped", ["abc", "de"], "", INVALID, "Invalid value: failed rule: self.map(x, x.size()).sum() < 5"),
    ("filtered", ["a", "a"], "", INVALID, "Invalid value: failed rule: self.filter(x, x == 'a').size() < 2"),
    ("sorted", ["b", "a"], "", INVALID, "Invalid value: failed rule: self.isSorted()"),
    ("error", 0, "", INVALID, 'Invalid value: "integer": division by zero evaluating rule: 1 / self > 0'),
    (
        "range",
        {"low": 2},
        "",
        INVALID,
        'Invalid value: "object": no such key: high evaluating rule: self.low <= self.high',
    ),
]


@pytest.mark.parametrize(
    ("field", "value", "where", "reason", "message"), FAULTS, ids=[f"{f[0]}-{f[1]}" for f in FAULTS]
)
def test_a_rule_that_fails_says_why(
    ruleds: Objects, field: str, value: Any, where: str, reason: str, message: str
) -> None:
    answer = ruleds.attempt("wrong", spec={field: value})
    assert answer.status == 422, answer.body.decode()
    assert causes(answer) == [(f"spec.{field}{where}", reason, message)]


EXAMPLES: list[tuple[str, Any, Any]] = [
    ("quantity", "2Gi", "500Mi"),
    ("url", "https://example.com/a", "http://example.com"),
    ("ip", "10.0.0.1", "fe80::1"),
    ("cidr", "10.0.0.0/8", "11.0.0.0/8"),
    ("regex", "a12b", "a1b2"),
    ("matches", "aaa", "aab"),
    ("format", "a-label", "Not a label"),
    ("semver", "1.2.3", "2.0.1"),
    ("split", "a,b", "a,b,c"),
    ("lower", "abc", "aBc"),
    ("time", "2024-01-01T00:00:00Z", "2019-01-01T00:00:00Z"),
    ("span", "59m", "61m"),
    ("either", 1, 0),
    ("either", "all", "none"),
    ("optional", {}, {"a": 3}),
    (
        "escaped",
        {"a-b": 1, "namespace": 1, "a.b": 1},
        {"a-b": 1, "namespace": 1, "a.b": 0},
    ),
    ("ternary", 6, 5),
    ("sets", ["b", "a", "b"], ["c"]),
    ("double", 1, 2),
]


@pytest.mark.parametrize(("field", "good", "bad"), EXAMPLES, ids=[f"{e[0]}-{e[1]}" for e in EXAMPLES])
def test_a_rule_lets_the_good_pass_and_not_the_bad(ruleds: Objects, field: str, good: Any, bad: Any) -> None:
    accepted = ruleds.attempt("good", "?dryRun=All", spec={field: good})
    assert accepted.status == 201, accepted.body.decode()
    answer = ruleds.attempt("bad", "?dryRun=All", spec={field: bad})
    assert answer.status == 422, answer.body.decode()
    assert [cause[0] for cause in causes(answer)] == [f"spec.{field}"]


def test_rules_wait_until_the_schema_is_satisfied(ruleds: Objects) -> None:
    answer = ruleds.attempt("wrong", spec={"positive": 0, "url": 5})
    skipped = (
        "Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    )
    assert causes(answer) == [
        ("<nil>", INVALID, skipped),
        (
            "spec.url",
            "FieldValueTypeInvalid",
            'Invalid value: "integer": spec.url in body must be of type string: "integer"',
        ),
    ]


def test_a_field_can_be_made_immutable(ruleds: Objects) -> None:
    ruleds.create("one", spec={"fixed": "a"})
    assert ruleds.patch("one", {"spec": {"positive": 1}}).status == 200
    answer = ruleds.patch("one", {"spec": {"fixed": "b"}})
    assert causes(answer) == [("spec.fixed", INVALID, 'Invalid value: "b": cannot be changed')]


def test_an_immutable_field_can_still_be_removed_and_set_anew(ruleds: Objects) -> None:
    ruleds.create("one", spec={"fixed": "a"})
    assert ruleds.patch("one", {"spec": {"fixed": None}}).status == 200
    assert ruleds.patch("one", {"spec": {"fixed": "b"}}).status == 200


def test_a_rule_may_ask_whether_there_was_an_old_value(ruleds: Objects) -> None:
    assert ruleds.attempt("one", spec={"growing": 0}).status == 422
    ruleds.create("one", spec={"growing": 1})
    assert ruleds.patch("one", {"spec": {"growing": 3}}).status == 200
    assert ruleds.patch("one", {"spec": {"growing": 2}}).status == 422


def test_items_of_a_keyed_list_are_compared_by_key(kinds: dict[str, Objects], namespace: str) -> None:
    keyed = kinds["Keyed"].within(namespace)
    keyed.create("one", spec={"list": [{"name": "a", "size": 2}, {"name": "b", "size": 5}]})
    swapped = {"list": [{"name": "b", "size": 5}, {"name": "a", "size": 3}, {"name": "c", "size": 1}]}
    assert keyed.patch("one", {"spec": swapped}).status == 200
    shrunk = {"list": [{"name": "a", "size": 3}, {"name": "b", "size": 4}]}
    answer = keyed.patch("one", {"spec": shrunk})
    assert causes(answer) == [("spec.list[1].size", INVALID, "Invalid value: 4: cannot shrink")]


def test_a_rule_of_the_whole_object_sees_spec_and_status(kinds: dict[str, Objects], namespace: str) -> None:
    whole = kinds["Whole"].within(namespace)
    whole.create("one", spec={"n": 3})
    assert whole.patch("one", {"status": {"n": 3}}, "status").status == 200
    text = "Invalid value: status is ahead of spec"
    assert causes(whole.patch("one", {"status": {"n": 4}}, "status")) == [("<nil>", INVALID, text)]
    assert causes(whole.patch("one", {"spec": {"n": 2}})) == [("<nil>", INVALID, text)]


def test_a_rule_of_the_whole_object_may_look_at_the_name(kinds: dict[str, Objects], namespace: str) -> None:
    titled = kinds["Titled"].within(namespace)
    assert titled.attempt("xylophone").status == 201
    text = "Invalid value: failed rule: self.metadata.name.startsWith('x')"
    assert causes(titled.attempt("piano")) == [("<nil>", INVALID, text)]


def test_a_rule_that_comes_later_spares_what_does_not_change(
    kinds: dict[str, Objects], definitions: Definitions, namespace: str
) -> None:
    later = kinds["Later"].within(namespace)
    later.create("old", spec={"a": -1})
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/x-kubernetes-validations"
    change = {"op": "add", "path": path, "value": [{"rule": "self > 0"}]}
    assert definitions.change(later.crd_name, [change]).status == 200
    eventually(lambda: later.attempt("new", "?dryRun=All", spec={"a": -1}).status == 422)
    assert later.patch("old", {"spec": {"b": 1}}).status == 200
    text = "Invalid value: -2: failed rule: self > 0"
    assert causes(later.patch("old", {"spec": {"a": -2}})) == [("spec.a", INVALID, text)]


BAD_RULES: dict[str, tuple[Object, str, str]] = {
    "a syntax error": (
        ruled(INTEGER, "self >"),
        "rule",
        "compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting",
    ),
    "an unknown field": (
        ruled(properties(a=INTEGER), "self.b > 0"),
        "rule",
        "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 0\n | ....^",
    ),
    "an unknown function": (
        ruled(INTEGER, "odd(self)"),
        "rule",
        "ERROR: <input>:1:4: undeclared reference to 'odd' (in container '')\n | odd(self)\n | ...^",
    ),
    "types that do not fit": (
        ruled(INTEGER, "self == 'a'"),
        "rule",
        "ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    "a result that is no truth": (ruled(INTEGER, "self + 1"), "rule", "must evaluate to a bool"),
    "a message that is no text": (
        ruled(INTEGER, "self > 0", messageExpression="self"),
        "messageExpression",
        "must evaluate to a string",
    ),
    "an unknown reason": (ruled(INTEGER, "self > 0", reason="Odd"), "reason", 'Unsupported value: "Odd"'),
    "a path that leads nowhere": (
        ruled(properties(a=INTEGER), "self.a > 0", fieldPath=".b"),
        "fieldPath",
        "must be a valid path",
    ),
    "an empty rule": (ruled(INTEGER, " "), "rule", "rule is not specified"),
    "a message of two lines": (
        ruled(INTEGER, "self > 0", message="a\nb"),
        "message",
        "must not contain line breaks",
    ),
    "an old value in a list": (
        {"type": "array", "maxItems": 8, "items": ruled(INTEGER, "self == oldSelf")},
        "rule",
        "oldSelf cannot be used on the uncorrelatable portion of the schema",
    ),
    "an optional old value that is not used": (
        ruled(INTEGER, "self > 0", optionalOldSelf=True),
        "optionalOldSelf",
        "may not be set if oldSelf is not used in rule",
    ),
    "a rule that may cost too much": (
        ruled(
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "self.all(x, x.all(y, self.all(z, z.all(w, w == y))))",
        ),
        "rule",
        "estimated rule cost exceeds budget by factor of more than 100x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_RULES)
def test_a_definition_is_refused_for(definitions: Definitions, case: str) -> None:
    schema, field, message = BAD_RULES[case]
    group = f"g{secrets.token_hex(4)}.example.com"
    crd = definition(group, "Widget", version("v1", properties(spec=schema)))
    answer = definitions.attempt(crd, "?dryRun=All")
    assert answer.status == 422, answer.body.decode()
    found = [
        text for where, _, text in causes(answer) if where.endswith(f"x-kubernetes-validations[0].{field}")
    ]
    assert any(message in text for text in found), causes(answer)


def test_the_sum_of_all_rules_may_cost_too_much(definitions: Definitions) -> None:
    group = f"g{secrets.token_hex(4)}.example.com"
    text = {"type": "string", "maxLength": 100_000}
    item = properties(**{f"f{n}": ruled(text, "self.contains('a')") for n in range(40)})
    schema = properties(spec={"type": "array", "items": item, "maxItems": 200})
    answer = definitions.attempt(definition(group, "Widget", version("v1", schema)), "?dryRun=All")
    total = [text for where, _, text in causes(answer) if where == "spec.validation.openAPIV3Schema"]
    assert len(total) == 1
    assert "estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor" in total[0]


def test_a_rule_that_costs_too_much_on_an_object_is_stopped(ruleds: Objects) -> None:
    assert ruleds.attempt("small", "?dryRun=All", spec={"costly": list(range(100))}).status == 201
    answer = ruleds.attempt("big", spec={"costly": list(range(800))})
    assert answer.status == 422
    ((field, reason, text),) = causes(answer)
    assert (field, reason) == ("spec.costly", INVALID)
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in text


def test_a_default_must_satisfy_the_rules(definitions: Definitions) -> None:
    group = f"g{secrets.token_hex(4)}.example.com"
    schema = properties(spec={**ruled(INTEGER, "self > 0"), "default": 0})
    answer = definitions.attempt(definition(group, "Widget", version("v1", schema)), "?dryRun=All")
    where = "spec.validation.openAPIV3Schema.properties[spec].default"
    assert causes(answer) == [(where, INVALID, "Invalid value: 0: failed rule: self > 0")]
