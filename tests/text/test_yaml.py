from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text import yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True),
        ("Yes", True),
        ("off", False),
        ("y", True),
        ("N", False),
        ("~", None),
        ("null", None),
        ("0777", 0o777),
        ("0o17", 0o17),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0x10", -16),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("2020-01-01", "2020-01-01"),
        ("12:30:45", "12:30:45"),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        ("1" * 5000, "1" * 5000),
        ("1e999", "1e999"),
        ("1.2.3", "1.2.3"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        (".inf", math.inf),
        ("+", "+"),
        ("=", "="),
    ],
)
def test_scalars_resolve_as_go_resolves_them(text: str, value: Any) -> None:
    loaded = yaml.load(f"key: {text}")["key"]
    assert loaded == value
    assert type(loaded) is type(value)


def test_keys_become_strings_as_in_json() -> None:
    assert yaml.load("1: a\ntrue: b\n1.5: c") == {"1": "a", "true": "b", "1.5": "c"}


def test_merge_keys_fill_in_what_is_not_stated() -> None:
    text = "base: &base {a: 1, b: 2}\nuser: {<<: *base, b: 3}"
    assert yaml.load(text)["user"] == {"a": 1, "b": 3}


def test_an_alias_gives_a_copy_that_can_be_changed_alone() -> None:
    loaded = yaml.load("a: &x [1]\nb: *x")
    loaded["a"].append(2)
    assert loaded["b"] == [1]


def test_documents_of_a_stream_come_one_by_one() -> None:
    assert list(yaml.load_all("a: 1\n---\nb: 2\n")) == [{"a": 1}, {"b": 2}]
    assert yaml.load("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", 'line 2: key "a" already set in map'),
        ("a: [", "line 2"),
        ("a: &x [*x]", "contains itself"),
        ("a: *nowhere", "unknown anchor"),
        ("a: 1\n---\nb: 2", "found several"),
        ("? [a]\n: b", "unsupported map key"),
        ("<<: 3", "map merge requires"),
        ("[" * 100_000, "max depth"),
        ("- " * 100_000, "max depth"),
        ("\x00", "yaml"),
    ],
)
def test_bad_input_is_refused_with_the_place_and_the_reason(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        yaml.load(text)


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]")
    with pytest.raises(yaml.YAMLError, match="aliasing"):
        yaml.load("\n".join(lines))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])),
    lambda below: (
        st.lists(below, max_size=4) | st.dictionaries(st.text("abc-", min_size=1), below, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("text", ["0E0", "1e3", "0o17", "y", ".5", "~", "", "1_0", "- a", "a: b"])
def test_a_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml.load(yaml.dump({text: [text]})) == {text: [text]}


@given(json_values)
def test_what_is_dumped_loads_again(value: Any) -> None:
    assert yaml.load(yaml.dump(value)) == value
