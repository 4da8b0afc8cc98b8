"""The fast reader must say what the exact one says, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.text import yaml
from podium.text.yaml import blocks, exact


def exactly(text: str) -> Any:
    found = [document.value for document in exact.documents(text)]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  c: d e\n  f:\n  - 1\n  - g: h\n    i: ~\n",
        "- a\n-\n- \n- b: 1\n\n  c: 2\n",
        "a:   # comment\n  b: c # comment\n# comment\n  # comment\n  d: 'e' # comment\nf: # comment\n",
        "a: 'it''s'\nb: \"x\\ty\\u00e9\\n\"\nc: '  '\n\"d e\": 1\n'f': 2\n",
        "a: one\n  two\n\n  three\nd:\n  four\n  five\n",
        "a: 'one\n  two\n\n\n  three '\nb: \"one \\\n   two\n  three\"\n",
        "a: |\n  x\n   y\n\n  z\nb: |-\n  x\n\nc: |+\n  x\n\nd: |2\n   x\n",
        "a: >\n  x\n  y\n\n  z\n   w\n  v\nb: >-\n  x\n",
        "- |\n x\n- >-\n  a\n  b\n",
        'a: [b, c, 1]\nb: []\nc: {}\nd: [ ]\ne: {a: b, c: 1}\nf: ["x", 1]\n',
        "a: http://b:80/c#d\nb: -1\nc: 0x1F\nd: 2020-01-01\ne: 1e3\nf: a:b\ng: <<\n",
        "on: 1\n1.5: 2\nx/y: 3\nx.y-z: 4\na:b: 5\n",
        "a: 1",
        "a:",
        "# nothing\n",
        "",
        "é: ü\n",
    ],
)
def test_what_tools_write_is_read_fast_and_right(text: str) -> None:
    assert json.dumps(blocks.parse(text)) == json.dumps(exactly(text))


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "? a\n: b\n",
        "a: {b: {c: d}}\n",
        "a: [b,\n  c]\n",
        "a: [b, [c]]\n",
        "- - a\n",
        "a:\tb\n",
        "\ta: b\n",
        "a: b: c\n",
        "a: 1\na: 2\n",
        "a: 1\n b: 2\n",
        "a:\n    b: 1\n  c: 2\n",
        "a: 1\n- b\n",
        "- a\nb: 1\n",
        "a: 'b\n",
        'a: "\\q"\n',
        'a: "\\ud800"\n',
        "a: 'b' c\n",
        "a: b\n# c\n  d\n",
        "a: |\n  x\n y\n",
        "a: |\n\n",
        "a: |\n     \n  x\n",
        "a: |\n  \tx",
        "a: .inf\n",
        "~: 1\n",
        "<<: {a: 1}\n",
        "text\n",
        "a: @b\n",
        "a: - b\n",
        'a: ["x", 1111111111111111111111]\n',
    ],
)
def test_what_is_rare_or_wrong_is_left_to_the_exact_reader(text: str) -> None:
    with pytest.raises(blocks.Unsure):
        blocks.parse(text)


def test_a_document_too_large_for_the_fast_reader_is_left_to_the_exact_one() -> None:
    with pytest.raises(blocks.Unsure):
        blocks.parse("-\n" * 300_000)
    with pytest.raises(blocks.Unsure):
        blocks.parse(f"a: {'x' * 17_000_000}\n")


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029", "\ufeff", "\x00", "\x7f", "\ufffe", "\r"])
def test_a_text_with_odd_characters_is_not_ordinary(odd: str) -> None:
    assert not blocks.is_ordinary(f"a: é{odd}".encode())
    assert blocks.is_ordinary("a: é😀\t\n".encode())
    assert not blocks.is_ordinary(b"\xff")


# Lines that mostly make sense together, in any order and at any indentation.
KEYS = [
    "a",
    "b",
    "c",
    "'a'",
    '"b c"',
    "on",
    "1",
    "a b",
    "<<",
    "- a",
    "- ",
    "-",
    "- - ",
    "? ",
    "a.b/c",
    "é",
    "#",
]
VALUES = [
    "",
    "x",
    "x y",
    "1",
    "0x1F",
    "true",
    "~",
    "'q'",
    '"d"',
    "'open",
    '"open',
    "close'",
    'close"',
    "it's",
    "''",
]
VALUES += [
    "|",
    "|-",
    "|+",
    ">",
    ">-",
    "|2",
    "[]",
    "{}",
    "[a, b]",
    "{a: b}",
    "[a",
    "b]",
    "&x y",
    "*x",
    "!t z",
    "# c",
]
VALUES += ["x # c", "x: y", "x:", ":", "-", "- x", "\\", '"\\n\\x41\\', "\tx", "%", "@", ".inf", "\\/"]
line = st.tuples(
    st.integers(0, 5),
    st.sampled_from([*KEYS, ""]),
    st.sampled_from([": ", ":", " : ", " "]),
    st.sampled_from(VALUES),
).map(lambda parts: f"{' ' * parts[0]}{parts[1]}{parts[2] if parts[1] else ''}{parts[3]}")
blocky = st.lists(line, max_size=8).flatmap(
    lambda lines: st.sampled_from(["\n", ""]).map("\n".join(lines).__add__)
)


@settings(max_examples=1000)
@given(blocky)
def test_any_text_is_read_as_the_exact_reader_reads_it_or_not_at_all(text: str) -> None:
    try:
        found = blocks.parse(text)
    except blocks.Unsure:
        return
    assert json.dumps(found) == json.dumps(exactly(text))


@settings(max_examples=300)
@given(
    st.lists(blocky, max_size=4), st.sampled_from(["\n---\n", "\n---", "\n--- # x\n", "\n--- ", "\n...\n"])
)
def test_any_stream_gives_the_documents_and_errors_of_the_exact_reader(texts: list[str], marker: str) -> None:
    def outcome(documents: Any) -> list[Any]:
        seen: list[Any] = []
        duplicates: list[str] = []
        try:
            seen.extend(
                (json.dumps(found.value), found.index, found.line)
                for found in documents(marker.join(texts), duplicates)
            )
        except yaml.YAMLError as error:
            seen.append((str(error), error.line))
        return [*seen, duplicates]

    assert outcome(yaml.documents) == outcome(exact.documents)
