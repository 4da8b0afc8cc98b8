"""Reading catalogs: every form of stream, and every mistake with its place."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.findings import Place
from podium.catalog import blobs, read
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.decoding import compact
from podium.catalog.ignore import kept


def blobs_of(text: str | bytes) -> list[Blob]:
    """The blobs of one file."""
    return list(read.read([("f", text.encode() if isinstance(text, str) else text)]))


JSON = '{"schema":"a","name":"1"}\n{\n  "schema": "b",\n  "package": "p"\n}\n\n{"schema":"c"}{"schema":"d"}'
YAML = "---\nschema: a\nname: '1'\n---\nschema: b\npackage: p\n--- # c\nschema: c\n---\nschema: d\n---\n"


@pytest.mark.parametrize("text", [JSON, YAML], ids=["json", "yaml"])
def test_a_stream_yields_its_blobs_with_their_headers(text: str) -> None:
    assert [(b.schema, b.package, b.name) for b in blobs_of(text)] == [
        ("a", "", "1"),
        ("b", "p", ""),
        ("c", "", ""),
        ("d", "", ""),
    ]


def test_blobs_know_their_document_and_line() -> None:
    assert [b.place for b in blobs_of(JSON)] == [
        Place("f", 1, 1),
        Place("f", 2, 2),
        Place("f", 3, 7),
        Place("f", 4, 7),
    ]
    assert [b.place.line for b in blobs_of(YAML)] == [1, 5, 8, 10]


def test_raw_is_compact_sorted_and_prints_numbers_as_go_does() -> None:
    text = '{"z": 1.0, "schema": "a", "b": [1e21, 9007199254740993, 1e-7, -0, "<\\u2028>"], "a": {}}'
    expected = rb'{"a":{},"b":[1e+21,9007199254740992,1e-7,-0,"<\u2028>"],"schema":"a","z":1}'
    assert blobs_of(text)[0].raw == expected
    assert (
        blobs_of('z: 1.0\nschema: a\nb: [1e21, 9007199254740993, 1e-7, -0.0, "<\\u2028>"]\na: {}\n')[0].raw
        == expected
    )


def test_equal_content_makes_equal_blobs_wherever_it_is_found() -> None:
    first, second = (
        blobs_of('{"schema":"a","x":{"c":1,"b":2}}')[0],
        blobs_of("\n\nx: {b: 2, c: 1.0}\nschema: a"),
    )
    assert {first, *second} == {first}
    assert pickle.loads(pickle.dumps(first)) == first


def test_headers_are_found_in_any_case_and_last_duplicates_count() -> None:
    assert blobs_of('{"SCHEMA":"olm.package","Name":"x","name_":1}')[0].name == "x"
    assert blobs_of("schema: a\nschema: b\n")[0].schema == "b"


def test_what_go_reads_as_a_replacement_character_becomes_one() -> None:
    assert blobs_of(b'{"schema":"a","x":"\xff\xe2\x82","y":"\\ud800"}')[0].value == {
        "schema": "a",
        "x": "\ufffd\ufffd\ufffd",
        "y": "\ufffd",
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"schema":"a"}\n{"schema":"b"}\n{"schema":\n}', 4, "invalid JSON: Expecting value"),
        ('{"schema":"a"}\n{"schema":"b"}\n{"schema":"c", "x": NaN}', 3, "invalid JSON"),
        (
            '{"schema":"a"}\n{"schema":"b"}\n{"schema":"c", "x": 1e400}',
            3,
            "number 1e400 does not fit a float64",
        ),
        ('{"schema":"a","x":[1,}\n{"schema":"b"}', 1, "invalid JSON"),
        ("schema: a\n---\nx: [1\n---\n", 4, "invalid YAML"),
        ("schema: a\n--- x\n", 2, "invalid YAML document separator: x"),
        ("# only a comment\n---\nschema: a\n", 1, "the document is empty"),
        ("schema: a\n...\nschema: b\n", 1, "text follows the end of the document"),
        ("schema: a\nx: .inf\n", 2, "unsupported value: inf"),
        ("just text", 1, 'expected an object with a schema, found "just text"'),
        ("[1]", 1, "expected an object"),
        ('{"name":"a"}', 1, "missing its root schema field"),
        ('{"schema":""}', 1, "missing its root schema field"),
        ('{"schema":1}', 1, 'expected the value of key "schema" to be a string'),
        ('{"schema":"a","Package":{}}', 1, 'expected the value of key "Package" to be a string'),
        ('{"schema":"a","x":1,"X":2}', 1, 'duplicate keys for key "x"'),
        ("[" * 100_000, 1, "invalid YAML"),
        ('{"x":' * 100_000, 1, "nested too deeply"),
        (
            '\n{"schema":"olm.channel","entries":{}}',
            2,
            "parse channel: entries must be a list, not an object",
        ),
        (
            '{"schema":"olm.channel","entries":[{"skips":[1]}]}',
            1,
            r"entries\[0\].skips\[0\] must be a string, not a number",
        ),
        ('{"schema":"olm.bundle","image":true}', 1, "parse bundle: image must be a string, not a boolean"),
        ('{"schema":"olm.bundle","properties":[[]]}', 1, r"properties\[0\] must be an object, not a list"),
        ('{"schema":"olm.package","icon":{"base64data":"!"}}', 1, "icon.base64data must be base64"),
        ('{"schema":"olm.deprecations","entries":[{"reference":"x"}]}', 1, "must be an object, not a string"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CatalogError, match=message) as caught:
        blobs_of(text)
    assert (caught.value.place.file, caught.value.place.line) == ("f", line)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_flow_style_yaml_is_no_json_and_is_read_all_the_same() -> None:
    assert blobs_of("{schema: a, x: [1]}")[0].value == {"schema": "a", "x": [1]}
    assert [b.schema for b in blobs_of('{"schema": "a"}\n---\nschema: b\n')] == ["a", "b"]


def test_an_empty_file_holds_nothing() -> None:
    assert blobs_of("") == []


def test_typed_fields_are_found_as_go_finds_them() -> None:
    text = (
        '{"schema":"olm.channel","Name":"c","ENTRIES":[{"Name":"a","skips":null,"replaces":null},null],"x":1}'
    )
    found = blobs.typed(blobs_of(text)[0])
    assert isinstance(found, blobs.Channel)
    assert found.name == "c"
    assert found.entries == [blobs.ChannelEntry("a"), blobs.ChannelEntry()]


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=9) | st.integers(-(10**6), 10**6), st.lists, max_leaves=5
)


@given(st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=4))
def test_what_was_written_compactly_is_read_back(values: list[dict[str, object]]) -> None:
    unique = [
        {key: value for key, value in each.items() if key.casefold() not in ("schema", "package", "name")}
        for each in values
        if len({key.casefold() for key in each}) == len(each)
    ]
    data = b"\n".join(compact({"schema": "x"} | each) for each in unique)
    assert [blob.value for blob in read.read([("f", data)])] == [{"schema": "x"} | each for each in unique]


IGNORES = {
    ".indexignore": b"# notes\n*.md\n/build\nlogs/\n!keep.md\n/deep/**/x\n",
    "sub/.indexignore": b"  a?\n!ab\n[bc]\n",
}


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("README.md", True),
        ("sub/README.md", True),
        ("keep.md", False),
        ("build/keep.md", False),
        ("build/x", True),
        ("sub/build", False),
        ("logs", False),
        ("sub/logs/x", True),
        ("deep/x", True),
        ("deep/1/2/x", True),
        ("deep/y", False),
        ("ac", False),
        ("sub/ac", True),
        ("sub/ab", False),
        ("sub/b", True),
        ("sub/d", False),
        (".indexignore", True),
        ("sub/.indexignore", True),
    ],
)
def test_ignore_files_say_what_is_no_catalog_file(path: str, ignored: bool) -> None:
    assert kept([path], IGNORES) == ([] if ignored else [path])
