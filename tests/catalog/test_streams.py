"""However a stream is cut into chunks, its documents are the same; and one without an end is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.catalog import read, streams
from podium.catalog.blobs import CatalogError

PARTS = (
    '{"schema":"a"}',
    '{\n "schema": "b", "x": "}\\n{"\n}',
    "{schema: c}",
    "schema: d",
    "schema: e\nx: |\n  text\n",
    "x: |+\n  text\n\n",
    "schema: f\r\nx: 1\r\n",
    "---",
    "--- # c",
    "---x",
    "--",
    "# comment",
    "}",
    "{",
    " ",
    "\t",
    "\r",
    "\n",
    "\n\n",
    "\r\n",
    "\n---\n",
    "é",
)


def outcome(chunks: list[bytes]) -> tuple[list[tuple[bytes, int]], str]:
    """The blobs of a stream with their lines, and the error that ended it."""
    found: list[tuple[bytes, int]] = []
    try:
        found.extend((blob.raw, blob.place.line) for blob in read.read_chunks("f", chunks))
    except CatalogError as error:
        return found, str(error)
    return found, ""


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.data())
def test_the_chunks_of_a_stream_make_no_difference(text: str, data: st.DataObject) -> None:
    whole = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=8)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert outcome(chunks) == outcome([whole])
    assert outcome([whole[at : at + 1] for at in range(len(whole))]) == outcome([whole])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("schema: a\n---\nschema: b", ["schema: a\n", "schema: b\n"]),
        ("---\na\n---\n---\nb\n", ["---\na\n", "---\nb\n"]),
        ("a\r\n---\r\n\r\nb\r", ["a\n", "\nb\n"]),
    ],
)
def test_documents_end_at_separators_and_every_line_has_its_break(text: str, expected: list[str]) -> None:
    stream = streams.Stream("f", [text.encode()])
    assert [document.decode() for document, _ in stream.yaml_documents()] == expected


def test_no_more_is_taken_from_a_stream_than_a_document_needs() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b'{"schema":"a"}\n'

    blobs = read.read_chunks("f", endless())
    assert [next(blobs).schema for _ in range(10)] == ["a"] * 10
    assert taken < 15


@pytest.mark.parametrize("unit", [b" ", b"x", b'{"a":"', b"# c\n"])
def test_a_document_over_the_limit_is_refused_with_its_line(
    unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DOCUMENT", 1000)
    chunks = [b"schema: a\n---\n"] if unit != b'{"a":"' else [b'{"schema":"a"}\n']
    blobs = read.read_chunks("f", [*chunks, *[unit * 50] * 1000])
    assert next(blobs).schema == "a"
    with pytest.raises(CatalogError, match="larger than") as caught:
        next(blobs)
    assert caught.value.place.line in (2, 3)


def test_a_block_scalar_at_the_end_of_a_document_keeps_its_line_break() -> None:
    text = b"schema: a\nx: |\n  abc\n---\nschema: b\nx: |\n  abc"
    assert [blob.value["x"] for blob in read.read_chunks("f", [text])] == ["abc\n", "abc\n"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"schema":"a","x":[' + b"1," * 600_000 + b"1]}", "more than 500,000 values"),
        (b"schema: a\nx:\n" + b"- 1\n" * 300_000, "more than 250,000 values or lines"),
        ('{"schema":"a","x":"é'.encode() + b"a" * (9 << 20) + b'"}', "beyond ASCII is larger than 8 MiB"),
    ],
)
def test_a_document_that_would_grow_when_decoded_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        list(read.read_file("f", text))
