"""What rules may cost at worst, by our estimate and by the real server's: the same to seven digits.

The real server tells a cost only when it is too high, so each rule stands in a list that is just long enough
for that. The answers must then agree word for word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.plain import Plain
from harness.real import RealControlPlane
from podium.schema import cel, crd
from podium.schema.crdschema import parse

pytestmark = pytest.mark.real

Object = dict[str, Any]

TEXT: Object = {"type": "string", "maxLength": 40}
LONG: Object = {"type": "string"}
NUMBER: Object = {"type": "integer"}
TEXTS: Object = {"type": "array", "items": TEXT, "maxItems": 30}
MAP: Object = {"type": "object", "additionalProperties": TEXT, "maxProperties": 20}
OBJECT: Object = {
    "type": "object",
    "properties": {
        "a": TEXT,
        "b": LONG,
        "n": NUMBER,
        "list": TEXTS,
        "map": MAP,
        "e": {**LONG, "enum": ["xyz"]},
    },
    "required": ["a"],
}
OBJECTS: Object = {"type": "array", "items": OBJECT, "maxItems": 10}
RULES: list[tuple[Object, str]] = [
    (NUMBER, "self > 0"),
    (NUMBER, "self == 1 || self == 2 && self != 3"),
    (NUMBER, "self in [1, 2, 3]"),
    (NUMBER, "(self > 5 ? 'big' : 'small') == 'big'"),
    (NUMBER, "string(self).size() > 0"),
    (NUMBER, "{'a': 1, 'b': 2}['a'] == self"),
    (NUMBER, "dyn(self) == 1"),
    (NUMBER, "-self < 3 && !(self > 2)"),
    (NUMBER, "self == oldSelf"),
    (TEXT, "self == 'abc'"),
    (TEXT, "self == oldSelf"),
    (TEXT, "self.size() < 10"),
    (TEXT, "self < 'abc' && self >= 'a'"),
    (TEXT, "self.startsWith('abcdefghijklm') || self.endsWith(self)"),
    (TEXT, "self.contains('abc') && self.contains(self)"),
    (TEXT, "self.matches('^[a-z]+[0-9]*$')"),
    (TEXT, "self.matches(self)"),
    (TEXT, "self + 'abc' == 'x'"),
    (TEXT, "(self + self).size() > 0"),
    (TEXT, "self in ['a', 'b']"),
    (TEXT, "self.lowerAscii().upperAscii().trim() == self.substring(1)"),
    (TEXT, "self.replace('abc', 'de') == self"),
    (TEXT, "self.replace('abc', 'defghijk').size() == 2"),
    (TEXT, "self.replace('', 'x') == 'abc'"),
    (TEXT, "self.split(',').all(x, x == 'a')"),
    (TEXT, "self.split(',', 3).size() == 2"),
    (TEXT, "self.indexOf('a') > self.lastIndexOf('b')"),
    (TEXT, "self.find('[0-9]+') == '12'"),
    (TEXT, "self.findAll('[0-9]+').size() > 1"),
    (TEXT, "isURL(self) && url(self).getHost() == 'a'"),
    (TEXT, "isIP(self) && ip(self).family() == 4"),
    (TEXT, "isCIDR(self) && cidr(self).containsIP('10.0.0.1') && cidr(self).containsCIDR('10.0.0.0/8')"),
    (TEXT, "cidr(self).ip() == ip('10.0.0.1') && ip.isCanonical(self)"),
    (TEXT, "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))"),
    (TEXT, "quantity(self).add(quantity('1')).sub(1).asInteger() == 5"),
    (TEXT, "isSemver(self) && semver(self).isLessThan(semver('1.0.0')) && semver(self).major() > 1"),
    (TEXT, "!format.dns1123Label().validate(self).hasValue()"),
    (TEXT, "format.named('uuid').hasValue()"),
    (TEXT, "bytes(self).size() > 0"),
    (TEXT, "'%s is odd'.format([self]).size() > 0"),
    (LONG, "self == 'abc'"),
    (LONG, "self.size() < 10"),
    (LONG, "self.startsWith('abc')"),
    ({**LONG, "enum": ["a", "bcd"]}, "self == oldSelf"),
    ({**LONG, "format": "date-time"}, "self > timestamp('2020-01-01T00:00:00Z')"),
    ({**LONG, "format": "duration"}, "self == duration('1h') && self.getSeconds() > 5"),
    ({**LONG, "format": "byte", "maxLength": 50}, "self == b'abc' && string(self) == 'x'"),
    ({"x-kubernetes-int-or-string": True, "maxLength": 20}, "type(self) == int ? self > 0 : self == 'all'"),
    ({"type": "number"}, "self < 1.5 && double(3) > self"),
    (TEXTS, "self.all(x, x == 'a')"),
    (TEXTS, "self.all(x, x.size() > 1)"),
    (TEXTS, "self.exists(x, x.startsWith('must'))"),
    (TEXTS, "self.exists_one(x, x == 'a')"),
    (TEXTS, "self.map(x, x.size()).sum() < 5"),
    (TEXTS, "self.map(x, x == 'a', x + 'b').size() < 5"),
    (TEXTS, "self.filter(x, x == 'a').size() < 2"),
    (TEXTS, "self.filter(x, x == 'a').all(y, y.contains('b'))"),
    (TEXTS, "self.isSorted() && self.min() == 'a' && self.max() != 'b'"),
    (TEXTS, "self.indexOf('a') == 1 && self.lastIndexOf('b') == 2"),
    (TEXTS, "self.all(x, self.exists(y, x == y))"),
    (TEXTS, "self[0] == 'a' && self.size() > 1"),
    (TEXTS, "self == oldSelf && self != ['a', 'b']"),
    (TEXTS, "self + ['a'] == self"),
    (TEXTS, "'a' in self && self[0] in self"),
    (TEXTS, "self.join(',') == 'a,b' && self.join().size() > 1"),
    (TEXTS, "sets.contains(['a', 'b'], self) && sets.equivalent(self, ['a']) || sets.intersects(self, self)"),
    (MAP, "self.all(key, key.startsWith('a'))"),
    (MAP, "self.all(key, self[key] == 'a')"),
    (MAP, "self.exists(key, self[key].contains('abc'))"),
    (MAP, "'a' in self && self['a'] == 'b' && self.a == 'b'"),
    (MAP, "self.map(key, self[key]).size() > 1"),
    (OBJECT, "self.a == self.b && self.n > 0"),
    (OBJECT, "has(self.a) && !has(self.b)"),
    (OBJECT, "self.?a.orValue('x') == 'x' || self.?n.orValue(1) == 1"),
    (OBJECT, "self.?n.optMap(x, x + 1).orValue(0) > 2"),
    (OBJECT, "self.?n.hasValue() && self.n in [1, 2]"),
    (OBJECT, "self.list.all(x, x == self.a) && self.map.all(k, k == self.a)"),
    (OBJECT, "self.e == self.a || self == oldSelf"),
    (OBJECTS, "self.all(x, x.a == 'a' && x.list.exists(y, y == x.b))"),
    (OBJECTS, "self.map(x, x.a).all(y, self.exists_one(z, z.a == y))"),
    (OBJECTS, "self.filter(x, x.n > 1).map(x, x.list).all(l, l.size() > 0)"),
    (OBJECTS, "self.all(x, self.all(y, x.n != y.n || x == y))"),
    (OBJECTS, "self[0].map['a'].size() > 1"),
    (OBJECTS, "self.all(i, v, i > 0 && v.a == 'a')"),
    (OBJECTS, "self.exists(i, v, v.list[i] == 'a')"),
]  # fmt: skip
MESSAGES: list[tuple[Object, str]] = [
    (TEXT, "'not ' + self"),
    (LONG, "'not ' + self"),
    (NUMBER, "'not ' + string(self)"),
    (TEXTS, "self.join(', ')"),
]


@pytest.fixture(scope="module")
def real() -> Iterator[Plain]:
    """A real API server."""
    with RealControlPlane(controller_manager=False) as plane:
        yield Plain(plane.kubeconfig)


@pytest.mark.parametrize(("schema", "rule"), RULES, ids=[rule for _, rule in RULES])
def test_a_rule_costs_the_same(real: Plain, schema: Object, rule: str) -> None:
    ruled = {**schema, "x-kubernetes-validations": [{"rule": rule}]}
    assert _ours(ruled) == _theirs(real, ruled)


@pytest.mark.parametrize(("schema", "text"), MESSAGES, ids=[text for _, text in MESSAGES])
def test_a_message_costs_the_same(real: Plain, schema: Object, text: str) -> None:
    rules = [{"rule": "true", "messageExpression": text}] * 20
    ruled = {**schema, "x-kubernetes-validations": rules}
    assert _ours(ruled) == _theirs(real, ruled)


def test_a_list_without_a_limit_costs_the_same(real: Plain) -> None:
    ruled = {**OBJECT, "x-kubernetes-validations": [{"rule": "self.n > 0 && self.a != 'x'"}]}
    assert _ours(ruled, limited=False) == _theirs(real, ruled, limited=False)


def _ours(ruled: Object, *, limited: bool = True) -> list[str]:
    found = crd.validate_crd(_definition(ruled, limited))
    return sorted(f"{error.path}: {error.body}" for error in found)


def _theirs(real: Plain, ruled: Object, *, limited: bool = True) -> list[str]:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    answer = real.request("POST", path, _definition(ruled, limited))
    assert answer.status in (201, 422), answer.body.decode()
    causes = answer.json()["details"]["causes"] if answer.status == 422 else []
    return sorted(f"{cause['field']}: {cause['message']}" for cause in causes)


def _definition(ruled: Object, limited: bool) -> Object:
    """A definition with a list of such values, long enough for its rules to cost a little too much."""
    items: Object = {"type": "array", "items": ruled}
    if limited:
        # A rule that knows nothing of old values goes into an unkeyed list; another stands in a map.
        node = parse(ruled)
        compiled = cel.compile_at(node, is_resource=False) or ()
        cost = sum(cel.worst_costs(each, node, is_resource=False)[0] for each in compiled)
        length = max(1, -(-120_000_000 // max(cost, 1)))
        items = {"type": "object", "additionalProperties": ruled, "maxProperties": length}
    spec: Object = {"type": "object", "properties": {"items": items}}
    made: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "costs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "costs", "kind": "Cost"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }
    crd.default_crd(made)
    return made
