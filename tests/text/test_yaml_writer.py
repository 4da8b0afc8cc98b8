from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text import yaml
from podium.text.yaml.natural import natural_order

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null\n"),
        (True, "true\n"),
        (1, "1\n"),
        (2**64 - 1, "18446744073709551615\n"),
        (2**64, "1.8446744073709552e+19\n"),
        (1.0, "1\n"),
        (-0.0, "0\n"),
        (1.5, "1.5\n"),
        (123456789.5, "1.234567895e+08\n"),
        (0.00001, "1e-05\n"),
        (1e21, "1e+21\n"),
        ({}, "{}\n"),
        ([], "[]\n"),
        ({"b": [], "a": {}, "c": None}, "a: {}\nb: []\nc: null\n"),
        ({"a": [1, {"b": 2, "c": [3]}]}, "a:\n- 1\n- b: 2\n  c:\n  - 3\n"),
        ([[1, [2]], []], "- - 1\n  - - 2\n- []\n"),
        ({"a": {"b": {"c": 1}}}, "a:\n  b:\n    c: 1\n"),
    ],
)
def test_values_take_the_shape_of_the_original(value: Any, text: str) -> None:
    assert yaml.dump(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("a:b#c", "a:b#c"),
        ("-x", "-x"),
        ("<<", "<<"),
        ("=", "="),
        ("", '""'),
        ("true", '"true"'),
        ("on", '"on"'),
        ("y", '"y"'),
        ("~", '"~"'),
        ("0x1", '"0x1"'),
        ("1_000", '"1_000"'),
        ("08", '"08"'),
        ("1e3", '"1e3"'),
        (".5", '".5"'),
        ("2020-01-01", '"2020-01-01"'),
        ("2020-1-1T1:2:3.5+01:00", '"2020-1-1T1:2:3.5+01:00"'),
        ("2020-02-30", "2020-02-30"),
        ("12:30:45", '"12:30:45"'),
        ("1.2.3", "1.2.3"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("- a", "'- a'"),
        ("it's", "it's"),
        ("'it's", "'''it''s'"),
        ("[a", "'[a'"),
        ("@a", "'@a'"),
        ("--- a", "'--- a'"),
        ("a:", "'a:'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("a\tb", '"a\\tb"'),
        ('say "x"\r', '"say \\"x\\"\\r"'),
        ("é\u3000", "é\u3000"),
        ("😀", '"\\U0001F600"'),
        ("\ufeffa", '"\\uFEFF\\x61"'),
        ("\x7f\x85", '"\\x7F\\N"'),
        ("a\udcffb", "a\ufffdb"),
    ],
)
def test_texts_are_quoted_as_the_original_quotes_them(value: str, text: str) -> None:
    assert yaml.dump({"key": value}) == f"key: {text}\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "|-\n  a\n  b\n"),
        ("a\nb\n", "|\n  a\n  b\n"),
        ("a\n\n", "|+\n  a\n\n"),
        ("\n", "|2+\n\n"),
        (" a\nb", "|2-\n   a\n  b\n"),
        ("a\n\n  b", "|-\n  a\n\n    b\n"),
        ("a \nb", '"a \\nb"\n'),
        ("a\nb ", '"a\\nb "\n'),
        ("a\tb\nc", '"a\\tb\\nc"\n'),
        ("a\u2028b\nc", "|-\n  a\u2028  b\n  c\n"),
    ],
)
def test_texts_of_several_lines_are_literal_where_that_is_possible(value: str, text: str) -> None:
    assert yaml.dump({"k": value}) == f"k: {text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (WORDS, f"{WORDS[:80]}\n  {WORDS[81:]}"),
        (f"{WORDS}:", f"'{WORDS[:80]}\n  {WORDS[81:]}:'"),
        (f"\t{WORDS}", f'"\\t{WORDS[:80]}\n  {WORDS[81:]}"'),
        ("x" * 100, "x" * 100),
        ("x" * 90 + "  y z", "x" * 90 + "  y\n  z"),
        ("\t" + "x" * 90 + "  y", '"\\t' + "x" * 90 + '\n  \\ y"'),
        (" " + "x" * 90 + " ", "' " + "x" * 90 + " '"),
    ],
)
def test_long_texts_are_folded_behind_column_80(value: str, text: str) -> None:
    assert yaml.dump([value]) == f"- {text}\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"": 1}, '"": 1\n'),
        ({"on": 1}, '"on": 1\n'),
        ({"<<": 1}, '"<<": 1\n'),
        ({"a: b": 1}, "'a: b': 1\n"),
        ({WORDS: 1}, f"{WORDS}: 1\n"),
        ({"k" * 129: 1}, f"? {'k' * 129}\n: 1\n"),
        ({"k" * 129: {"a": 1, "b": 2}}, f"? {'k' * 129}\n: a: 1\n  b: 2\n"),
        ({"k" * 129: ["a", "b"]}, f"? {'k' * 129}\n: - a\n  - b\n"),
        ({"a\nb": {}}, "? |-\n  a\n  b\n: {}\n"),
        ([{"é" * 65: 1, "z": 2}], f"- z: 2\n  ? {'é' * 65}\n  : 1\n"),
        ({1: {True: "x"}}, '"1":\n  "true": x\n'),
    ],
)
def test_keys_that_do_not_fit_a_line_take_the_explicit_form(value: Any, text: str) -> None:
    assert yaml.dump(value) == text


def test_keys_come_in_natural_order() -> None:
    expected = [
        "1",
        "2",
        "10",
        "A",
        "a",
        "a-b",
        "a.b",
        "a_b",
        "a1",
        "a9",
        "a10",
        "a10.c",
        "a10b",
        "ab",
        "b",
        "é",
    ]
    assert natural_order(sorted(expected)) == expected
    assert natural_order(reversed(expected)) == expected


def test_documents_of_a_stream_each_start_with_a_marker() -> None:
    assert yaml.dump_all([{"a": 1}, [], "x"]) == "---\na: 1\n---\n[]\n---\nx\n"


def test_tuples_and_other_mappings_count_as_lists_and_maps() -> None:
    assert yaml.dump({"a": (1, OrderedDict(b=2))}) == "a:\n- 1\n- b: 2\n"


@pytest.mark.parametrize("value", [math.inf, [math.nan], {"a": -math.inf}])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(yaml.YAMLError, match="unsupported value"):
        yaml.dump(value)


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(TypeError, match="a set cannot be written"):
        yaml.dump({"a": {1}})
    with pytest.raises(TypeError, match="a tuple cannot be a key"):
        yaml.dump({(1,): 2})


def test_nesting_without_end_is_refused() -> None:
    value: Any = []
    for _ in range(10_000):
        value = [value, {"a": value}]
    with pytest.raises(yaml.YAMLError, match="max depth"):
        yaml.dump(value)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(codec="utf-8")),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=200), below, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_is_dumped_loads_again(value: Any) -> None:
    assert yaml.load(yaml.dump(value)) == value
