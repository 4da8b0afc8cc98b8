"""The Common Expression Language: what expressions mean, their faults, and how much work they may be."""

from __future__ import annotations

from typing import Any

import pytest
from cel_expr_python import cel as google
from cel_expr_python.ext import ext_optional, ext_strings
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import cel_types as types
from podium.schema.cel_compile import CompileError, compile_expression
from podium.schema.cel_values import CelError, OverBudget

BUDGET = 1_000_000
VARIABLES = {"d": types.DYN, "m": types.map_of(types.STRING, types.INT), "l": types.list_of(types.STRING)}
VALUES: dict[str, Any] = {"d": 1, "m": {"k": 2, "j": -1}, "l": ["a", "b"]}


def evaluate(text: str, **values: Any) -> Any:
    return compile_expression(text, VARIABLES).run(VALUES | values, BUDGET)[0]


TRUE = [
    "1 + 2 * 3 == 7",
    "-5 / 2 == -2",
    "-5 % 2 == -1",
    "1 < 1.5",
    "dyn(1) == 1.0",
    "dyn(1) != dyn(true)",
    "true || 1 / 0 > 0",
    "1 / 0 > 0 || true",
    "false && 1 / 0 > 0 || true",
    "[1, 2].exists(x, x / (x - 1) > 0)",
    "'äö'.size() == 2",
    "'abc'.matches('^a.c$')",
    "'a,b'.split(',') == ['a', 'b']",
    "['a', 'b'].join('-') == 'a-b'",
    "'%s is %d'.format(['x', 3]) == 'x is 3'",
    "'%.2f %x'.format([1.5, 255]) == '1.50 ff'",
    "'HeLLo'.lowerAscii() == 'hello'",
    "'hello'.substring(1, 3) == 'el'",
    "' x '.trim() == 'x'",
    "'abc'.charAt(1) == 'b'",
    "'abcabc'.lastIndexOf('b') == 4",
    "r'\\d' == '\\\\d'",
    "b'a' == bytes('a')",
    "l.all(x, x.size() == 1)",
    "l.exists_one(x, x == 'a')",
    "l.map(x, x + '!') == ['a!', 'b!']",
    "l.filter(x, x > 'a') == ['b']",
    "l.map(x, x == 'a', 1) == [1]",
    "m.all(k, m[k] != 0)",
    "'k' in m",
    "!('x' in l)",
    "m.k == 2",
    "m['k'] == 2",
    "has(m.k) && !has(m.zz)",
    "l.all(i, x, i < 2 && x != '')",
    "m.exists(k, v, v < 0)",
    "l.transformList(i, x, i) == [0, 1]",
    "m.transformMap(k, v, v > 0, v * 2) == {'k': 4}",
    "m.transformMapEntry(k, v, {v: k}) == {2: 'k', -1: 'j'}",
    "m.existsOne(k, v, v == 2)",
    "m.?zz.orValue(7) == 7",
    "m.?k.hasValue()",
    "l[?5].orValue('none') == 'none'",
    "optional.none().orValue(1) == 1",
    "m.?k.optMap(v, v + 1).value() == 3",
    "[?m.?zz, ?m.?k] == [2]",
    "{?'a': m.?zz} == {}",
    "[1, 3, 2].isSorted() == false",
    "[1, 3].sum() == 4",
    "[1.5, 2.0].max() == 2.0",
    "['b', 'a'].min() == 'a'",
    "[1, 2, 2].indexOf(2) == 1",
    "[1, 2, 2].lastIndexOf(2) == 2",
    "[[1], [2, 3]].flatten() == [1, 2, 3]",
    "[3, 1].sort() == [1, 3]",
    "['bb', 'a'].sortBy(s, s.size()) == ['a', 'bb']",
    "[1, 1].distinct() == [1]",
    "lists.range(3) == [0, 1, 2]",
    "[1, 2].first().value() == 1",
    "[1, 2, 3].slice(1, 2) == [2]",
    "sets.contains([1, 2], [2])",
    "sets.equivalent([1, 2], [2, 1, 1])",
    "!sets.intersects([1], [2])",
    "'abc 123'.find('[0-9]+') == '123'",
    "'1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
    "url('https://u@example.com:80/a%20b?k=v#f').getHostname() == 'example.com'",
    "url('https://h/a%20b').getEscapedPath() == '/a%20b'",
    "url('https://h?k=v&k=w').getQuery()['k'] == ['v', 'w']",
    "isURL('/path') && !isURL('path')",
    "ip('10.0.0.1').family() == 4",
    "isIP('::1') && !isIP('::ffff:1.2.3.4')",
    "ip('fe80::1').isLinkLocalUnicast()",
    "ip.isCanonical('::1') && !ip.isCanonical('::0001')",
    "!ip('255.255.255.255').isGlobalUnicast()",
    "cidr('192.168.0.0/16').containsIP('192.168.3.4')",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
    "cidr('::/64').prefixLength() == 64",
    "quantity('1k') == quantity('1000')",
    "quantity('1.5Gi').isGreaterThan(quantity('1.5G'))",
    "quantity('50k').add(20).sub(quantity('100k')).asInteger() == -49980",
    "!isQuantity('1,3G')",
    "sign(quantity('-1')) == -1",
    "quantity('500m').asApproximateFloat() == 0.5",
    "!quantity('500m').isInteger()",
    "semver('1.2.3').isLessThan(semver('1.10.0'))",
    "semver('1.0.0-rc.2').compareTo(semver('1.0.0-rc.10')) == -1",
    "isSemver('v1.0', true) && !isSemver('v1.0')",
    "semver('v1.2', true).minor() == 2",
    "!format.dns1123Label().validate('my-name').hasValue()",
    "format.named('uri').hasValue()",
    "format.dns1123Label().validate('My').value()[0].startsWith('a lowercase RFC 1123 label')",
    "duration('1h30m') > duration('80m')",
    "duration('90s').getMinutes() == 1",
    "string(duration('1h')) == '3600s'",
    "timestamp('2024-02-29T23:30:00Z') + duration('1h') == timestamp('2024-03-01T00:30:00Z')",
    "timestamp('2024-02-29T23:30:00Z').getDayOfYear() == 59",
    "timestamp('2024-02-29T23:30:00Z').getDayOfWeek() == 4",
    "timestamp('2024-02-29T23:30:00Z').getHours('+02:00') == 1",
    "string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'",
    "int('42') == 42 && double('1.5') == 1.5 && string(1.0) == '1'",
    "bool('true')",
    "uint(3) == 3u",
    "type(d) == int",
    "type(l) == list && type(m) == map",
    "d == 1",
    "l == ['a', 'b']",
    "0x10 == 16",
    "1.5e3 == 1500.0",
    "[1, 2].all(x, [3].all(y, y > x))",
    "{'a': 1}.a == 1",
    "(true ? 1 : 2) == 1",
    "!!true",
    "'''a\"b''' == 'a\"b'",
    "l.map(x, l.map(y, x + y)) == [['aa', 'ab'], ['ba', 'bb']]",
    "// a comment\n true",
]


@pytest.mark.parametrize("text", TRUE)
def test_this_is_true(text: str) -> None:
    assert evaluate(text) is True


ERRORS = [
    ("1 / 0 > 0", "division by zero"),
    ("9223372036854775807 + 1 > 0", "integer overflow"),
    ("m.zz > 0", "no such key: zz"),
    ("l[5] == 'a'", "index out of bounds: 5"),
    ("d.startsWith('a')", "no such overload"),
    ("d + 'a' == 'b'", "no such overload"),
    ("[].min() == 1", "min called on empty list"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("int(l[0]) == 1", "type conversion error from 'string' to 'int'"),
    (
        "quantity('x').isInteger()",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "ip('1.2.3').family() == 4",
        (
            'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address '
            "too short"
        ),
    ),
    ("l.all(x, x == 'a' || 1 / 0 > 0)", "division by zero"),
    ("'abc'.substring(5) == ''", "invalid substring range. start: 5, end: 3"),
    ("dyn([dyn([1]), dyn({'a': 1})]).isSorted()", "no such overload"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_this_fails_when_it_is_evaluated(text: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(text)
    assert str(caught.value) == message


FAULTS = [
    ("foo > 3", "1:1: undeclared reference to 'foo' (in container '')"),
    ("1 + 'a' > 3", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
    ("1 == 1.0", "1:3: found no matching overload for '_==_' applied to '(int, double)'"),
    ("l.foo()", "1:6: undeclared reference to 'foo' (in container '')"),
    ("l.sum() > 0", "1:6: found no matching overload for 'sum' applied to 'list(string).()'"),
    ("[1, 'a'].size() > 0", "1:5: expected type 'int' but found 'string'"),
    ("l.all(x, x)", "1:10: expected type 'bool' but found 'string'"),
    (
        "l.filter(x, x) == l",
        "1:9: found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'",
    ),
    ("l.all(1, true)", "1:7: argument must be a simple name"),
    (
        "'a'.all(x, true)",
        "1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    ("has(m)", "1:5: invalid argument to has() macro"),
    ("true ? 1 : 'a'", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
    ("l[0].x == 1", "1:5: type 'string' does not support field selection"),
    ("'a'.matches('[')", "1:13: invalid matches argument"),
    ("duration('x') == duration('1s')", "1:10: invalid duration argument"),
    (
        "m.k >",
        (
            "1:6: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', "
            "'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ),
    ),
    ("1 2", "1:3: Syntax error: extraneous input '2' expecting <EOF>"),
    ("if == 1", "1:1: reserved identifier: if"),
    ("99999999999999999999 > 1", "1:1: invalid int literal"),
    ("true &&\n  m.k", "2:4: expected type 'bool' but found 'int'"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_this_does_not_compile(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression(text, VARIABLES)
    assert str(caught.value).splitlines()[0] == f"ERROR: <input>:{message}"


def test_a_fault_is_shown_under_its_source() -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression("m.k > 'x'", VARIABLES)
    assert str(caught.value).splitlines()[1:] == [" | m.k > 'x'", " | ....^"]


HOSTILE = [
    "n.all(x, n.all(y, n.all(z, x + y + z >= 0)))",
    "[n.map(x, n)].all(a, [n.map(y, a)].all(b, b == b))",
    "[n.map(x, n)].all(a, [n.map(y, a)].all(b, b.flatten().flatten().size() > 0))",
    "lists.range(1000000000).size() > 0",
    "n.map(x, s + s).size() > 0",
    "n.map(x, s.replace('a', s)).size() > 0",
    "n.all(x, s.contains(s))",
    "n.all(x, s.findAll('a').size() > 0)",
    "[n.map(x, n)].all(a, '%s'.format([a]).size() > 0)",
    "[n.map(x, n)].all(a, n.all(q, a in [a]))",
    "[n.map(x, n)].all(a, a.distinct().size() > 0)",
]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", HOSTILE)
def test_an_expression_that_asks_for_too_much_work_ends_with_an_error(text: str) -> None:
    program = compile_expression(text, {"n": types.list_of(types.INT), "s": types.STRING})
    with pytest.raises(OverBudget, match="actual cost limit exceeded"):
        program.run({"n": list(range(1500)), "s": "a" * 100_000}, BUDGET)


def test_an_expression_cannot_be_nested_without_end() -> None:
    with pytest.raises(CompileError, match="expression recursion limit exceeded"):
        compile_expression("(" * 5000 + "true" + ")" * 5000, {})
    assert compile_expression(" && ".join(["true"] * 2000), {}).run({}, BUDGET)[0] is True


# Expressions of integers, booleans, strings and lists, which Google's implementation understands as well.
integers = st.recursive(
    st.integers(0, 9).map(str) | st.just("d"),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "%"]), inner)
        | st.builds("(-{})".format, inner)
        | st.builds("({} < {} ? {} : {})".format, inner, inner, inner, inner)
        | st.builds("[{}, {}].map(x, x + {})[{}]".format, inner, inner, inner, inner)
        | st.builds("size('{}' + string({}))".format, st.text("ab", max_size=2), inner)
    ),
    max_leaves=5,
)
booleans = st.recursive(
    st.builds("({} {} {})".format, integers, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), integers),
    lambda inner: (
        st.builds("({} && {})".format, inner, inner)
        | st.builds("({} || {})".format, inner, inner)
        | st.builds("(!{})".format, inner)
        | st.builds("[{}, {}].all(y, y == {})".format, inner, inner, inner)
        | st.builds("[{}, {}].exists(y, y || {})".format, inner, inner, inner)
        | st.builds("([{}, {}].filter(y, y).size() == {})".format, inner, inner, integers)
    ),
    max_leaves=4,
)
GOOGLE = google.NewEnv(
    variables={"d": google.Type.INT}, extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()]
)


@given(booleans, st.integers(-3, 3))
def test_another_implementation_computes_the_same(text: str, d: int) -> None:
    theirs = GOOGLE.compile(text).eval(data={"d": d})
    program = compile_expression(text, {"d": types.INT})
    if theirs.type().name() == "BOOL":
        assert program.run({"d": d}, BUDGET)[0] is theirs.value()
    else:
        with pytest.raises(CelError):
            program.run({"d": d}, BUDGET)
