"""What rules may cost at worst; the figures are the real server's (see the differential test)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.schema import cel, crd
from podium.schema.crdschema import parse

Object = dict[str, Any]

TEXT: Object = {"type": "string", "maxLength": 40}
NUMBER: Object = {"type": "integer"}
TEXTS: Object = {"type": "array", "items": TEXT, "maxItems": 30}
MAP: Object = {"type": "object", "additionalProperties": TEXT, "maxProperties": 20}
OBJECT: Object = {"type": "object", "properties": {"a": TEXT, "n": NUMBER, "list": TEXTS}, "required": ["a"]}
OBJECTS: Object = {"type": "array", "items": OBJECT, "maxItems": 10}


@pytest.mark.parametrize(
    ("schema", "rule", "cost"),
    [
        (NUMBER, "self > 0", 2),
        (NUMBER, "self in [1, 2, 3]", 14),
        (NUMBER, "{'a': 1, 'b': 2}['a'] == self", 32),
        (TEXT, "self == 'abc'", 2),
        (TEXT, "self == oldSelf", 18),
        (TEXT, "self.contains('abc') && self.contains(self)", 275),
        (TEXT, "self.matches('^[a-z]+[0-9]*$')", 69),
        (TEXT, "self + 'abc' == 'x'", 19),
        (TEXT, "self.replace('abc', 'de') == self", 50),
        (TEXT, "self.split(',').all(x, x == 'a')", 834),
        (TEXT, "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))", 36),
        (TEXT, "!format.dns1123Label().validate(self).hasValue()", 516),
        (TEXTS, "self.all(x, x == 'a')", 152),
        (TEXTS, "self.exists_one(x, x == 'a')", 123),
        (TEXTS, "self.map(x, x.size()).sum() < 5", 463),
        (TEXTS, "self.filter(x, x == 'a').size() < 2", 464),
        (TEXTS, "self.all(x, self.exists(y, x == y))", 19952),
        (TEXTS, "self.join(',') == 'a,b' && self.join().size() > 1", 968),
        (MAP, "self.all(key, self[key] == 'a')", 142),
        (OBJECT, "has(self.a) && !has(self.n)", 3),
        (OBJECT, "self.?n.optMap(x, x + 1).orValue(0) > 2", 21),
        (OBJECTS, "self.all(x, self.all(y, x.n != y.n || x == y))", 952),
    ],
)
def test_a_rule_has_the_cost_that_the_real_server_sees(schema: Object, rule: str, cost: int) -> None:
    node = parse({**schema, "x-kubernetes-validations": [{"rule": rule}]})
    (compiled,) = cel.compile_at(node, is_resource=False) or ()
    assert cel.worst_costs(compiled, node, is_resource=False) == (cost, 0)


def errors_of(schema: Object, old: Object | None = None) -> list[str]:
    made = _definition(schema)
    found = crd.validate_crd(made) if old is None else crd.validate_crd_update(made, _definition(old))
    return [f"{error.path.rpartition('.')[2]}: {error.body.partition(' (try')[0]}" for error in found]


def _definition(schema: Object) -> Object:
    content = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
    made: Object = {
        "metadata": {"name": "costs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "costs", "kind": "Cost"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": content}],
        },
    }
    crd.default_crd(made)
    return made


def _list(length: int | None) -> Object:
    rule = {"rule": "self.all(x, self.exists(y, x == y))"}
    limit = {} if length is None else {"maxItems": length}
    return {"type": "array", "items": {**TEXTS, "x-kubernetes-validations": [rule]}, **limit}


def test_the_length_of_lists_above_counts() -> None:
    assert errors_of(_list(500)) == []
    assert errors_of(_list(1000)) == [
        "rule: Forbidden: estimated rule cost exceeds budget by factor of 2.0x",
    ]


def test_rules_together_may_cost_too_much() -> None:
    assert errors_of(_list(None)) == [
        "rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x",
        (
            "rule: Forbidden: contributed to estimated rule cost total exceeding cost limit "
            "for entire OpenAPIv3 schema"
        ),
        (
            "openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for "
            "entire OpenAPIv3 schema exceeds budget by factor of more than 100x"
        ),
    ]


def test_a_rule_that_was_accepted_before_may_stay() -> None:
    assert errors_of(_list(1000), old=_list(1000)) == []
    assert len(errors_of(_list(1000), old=_list(500))) == 1
