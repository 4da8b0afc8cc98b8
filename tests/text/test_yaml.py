from __future__ import annotations

from typing import Any

import pytest

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
        ("+18446744073709551615", 18446744073709551615.0),
        ("-9223372036854775809", -9223372036854775809.0),
        ("08", 8.0),
        ("0b-1", -1),
        (".1_5", 0.15),
        ("._5", "._5"),
        ("0x1FFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFF"),
        ("!!float 3", 3.0),
        ("!!binary aGk=", "hi"),
        ("!!timestamp 2001-01-01", "2001-01-01"),
        ("!custom x", "x"),
        ("! 1", "1"),
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
    assert list(yaml.load("0x10: a\n1e10: b\n1e40: c\n.nan: d\n0.1: e\n1e3: f\n-0.0: g")) == [
        *("16", "1e+10", ".inf", ".nan", "0.1", "1000", "-0")
    ]


def test_merge_keys_fill_in_what_is_not_stated() -> None:
    text = "base: &base {a: 1, b: 2}\nuser: {<<: *base, b: 3}"
    assert yaml.load(text)["user"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, <<: {a: 2}}", {"a": 2}),  # as in the original: the order of the text counts
        ("{<<: [{a: 1}, {a: 2, b: 3}]}", {"a": 1, "b": 3}),
        ('{"<<": {a: 1}}', {"<<": {"a": 1}}),
        ("{<<: {a: 1}, a: 2, b: 3}", {"a": 2, "b": 3}),
    ],
)
def test_merges_work_as_in_the_original(text: str, value: Any) -> None:
    assert yaml.load(text) == value


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
        ("a: &x [1]\n<<: *x", "map merge requires"),
        ("a: .inf", "unsupported value"),
        ("- .nan", "unsupported value"),
        ("!!int x", "cannot decode !!str `x` as a !!int"),
        ("!!binary x", "invalid base64"),
        ("18446744073709551615: a", "unsupported map key"),
        ("~: a", "unsupported map key"),
        ("[" * 100_000, "max depth"),
        ("- " * 100_000, "max depth"),
        ("? " * 100_000, "unsupported map key"),
        ("{a: " * 100_000, "max depth"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(1000)), "max depth"),
        ("\x00", "yaml"),
    ],
)
def test_bad_input_is_refused_with_the_place_and_the_reason(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        yaml.load(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", 3),
        ("a: 1\n---\nb: [\n", 4),
        ("a: 1\n---\nb: 1\nb: 2\n", 4),
        ("a: 1\n---\n\nb: *x\n", 4),
        ("\n\na:\n- ~: x\n", 4),
        ("a: b: c\n", 1),
        ("\r\na: '\r\n---\r\n", 3),
    ],
)
def test_an_error_knows_its_line_in_the_stream(text: str, line: int) -> None:
    with pytest.raises(yaml.YAMLError) as refused:
        list(yaml.load_all(text))
    assert refused.value.line == line


def test_duplicate_keys_are_listed_if_asked_for_and_the_last_counts() -> None:
    duplicates: list[str] = []
    assert list(yaml.load_all("a: 1\na: 2\n---\nb: 1\n\nb: 2\n", duplicates)) == [{"a": 2}, {"b": 2}]
    assert duplicates == ['line 2: key "a" already set in map', 'line 6: key "b" already set in map']


def test_documents_know_their_number_and_the_line_of_their_content() -> None:
    text = "# head\n\na: 1\n---\n# more\n- b\n---\n--- # nothing\n\n--- [c]\n---   \n\n  d: 1\r\n"
    found = [(document.value, document.index, document.line) for document in yaml.documents(text)]
    assert found == [
        ({"a": 1}, 1, 3),
        (["b"], 2, 6),
        (None, 3, 7),
        (None, 4, 8),
        (["c"], 5, 10),
        ({"d": 1}, 6, 13),
    ]
    assert list(yaml.documents("# only a comment")) == []


@pytest.mark.parametrize("text", ["%YAML 1.1\n---\na: 1\n...\n---\nb: 2\n", "a: 1\n...\n---\nb: 2\n"])
def test_directives_and_end_markers_are_understood(text: str) -> None:
    assert list(yaml.load_all(text)) == [{"a": 1}, {"b": 2}]


def test_a_text_in_another_encoding_is_read() -> None:
    assert yaml.load("é: 1".encode("utf-16")) == {"é": 1}
    assert yaml.load("\ufeffé: 1".encode()) == {"é": 1}


def test_documents_before_a_bad_one_are_still_read() -> None:
    stream = yaml.load_all("a: 1\n---\nb: &x 1\nc: *x\n---\nd: '\n")
    assert [next(stream), next(stream)] == [{"a": 1}, {"b": 1, "c": 1}]
    with pytest.raises(yaml.YAMLError, match="line 7: found unexpected end of stream"):
        next(stream)


def test_a_text_that_is_too_large_is_refused_unread() -> None:
    with pytest.raises(yaml.YAMLError, match="101 bytes are more than the 100"):
        next(yaml.documents(b"[" * 101, max_size=100))


PLACES = """\
# a bundle
apiVersion: v1
spec:
  names: [a,
    b]
  items:
  - name: x
    "on": &anchor
      key: 1
  - *anchor
on: 1
---
- second
- last: 3
"""


@pytest.mark.parametrize(
    ("path", "document", "line"),
    [
        (["apiVersion"], 1, 2),
        (["spec"], 1, 3),
        (["spec", "names", 1], 1, 5),
        (["spec", "items", 0, "name"], 1, 7),
        (["spec", "items", 0, "on", "key"], 1, 9),
        (["spec", "items", "1"], 1, 10),
        (["spec", "items", 1, "key"], 1, 10),  # an alias is not followed
        (["spec", "items", 7, "key"], 1, 6),
        (["spec", "missing", "deeper"], 1, 3),
        (["true"], 1, 11),
        ([], 1, 2),
        ([1, "last"], 2, 14),
        (["nowhere"], 2, 13),
        (["x"], 3, 12),
    ],
)
def test_a_path_leads_to_its_line_or_that_of_its_nearest_parent(
    path: list[str | int], document: int, line: int
) -> None:
    assert yaml.locate(PLACES, path, document) == line


def test_a_path_in_a_broken_text_leads_to_where_it_breaks() -> None:
    assert yaml.locate("a: 1\nb: '\n\n", ["c"]) == 4


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]")
    with pytest.raises(yaml.YAMLError, match="aliasing"):
        yaml.load("\n".join(lines))


def test_aliases_cannot_add_up_to_a_depth_or_a_length_that_no_text_may_have() -> None:
    deep = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} {'[' * 100}*a{n - 1}{']' * 100}\n" for n in range(1, 5))
    with pytest.raises(yaml.YAMLError, match="max depth"):
        yaml.load(deep)
    long = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
    with pytest.raises(yaml.YAMLError, match="aliasing"):
        yaml.load(long)
