"""Streams of documents: each goes to the fast reader first, and to the exact one if that is not sure.

An error is always the one that the exact reader gives for the whole stream, whoever met it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from podium.text.yaml import blocks, exact
from podium.text.yaml.document import Document
from podium.text.yaml.errors import MalformedError, YAMLError

MAX_SIZE = 256 * 2**20

_MARKER = "\n---"
_AFTER_MARKER = ("", " ", "\t", "\n")
_BARE_MARKER = re.compile(r"---[ ]*+(?:(?<=[ ])#[^\n]*+)?(?:\n|\Z)")
_CONTENT = re.compile(r"[ \n]*+(?:#[^\n]*+\n[ \n]*+)*+(?=[^ #\n])")


class _OddStream(Exception):
    """The stream has not the documents that its marker lines promise."""


def load(text: str | bytes, duplicates: list[str] | None = None) -> Any:
    """The one document in a text; an empty text is None, a second document is an error.

    With `duplicates`, a key that is set twice is no error: the last one counts, and the list says where.
    """
    values = load_all(text, duplicates)
    value = next(values, None)
    for _ in values:
        raise YAMLError("expected one YAML document, found several")
    return value


def load_all(text: str | bytes, duplicates: list[str] | None = None) -> Iterator[Any]:
    """Each document of a stream as plain values, in order."""
    for document in documents(text, duplicates):
        yield document.value


def documents(
    text: str | bytes, duplicates: list[str] | None = None, *, max_size: int = MAX_SIZE
) -> Iterator[Document]:
    """Each document of a stream with its place; a text of more than `max_size` is refused unread."""
    if len(text) > max_size:
        raise YAMLError(f"yaml: {len(text):,} bytes are more than the {max_size:,} that are accepted")
    simple = _simple(text)
    if simple is None:
        yield from exact.documents(text, duplicates)
        return
    known = len(duplicates) if duplicates is not None else 0
    index = 0
    for chunk, lines_before in _chunks(simple):
        index += 1
        try:
            yield _document(chunk, index, lines_before, duplicates)
        except (MalformedError, _OddStream):
            break
    else:
        return
    # The error, in the words that the exact reader finds when it knows the whole stream.
    if duplicates is not None:
        del duplicates[known:]
    for document in exact.documents(text, duplicates):
        if document.index >= index:
            yield document


def _simple(text: str | bytes) -> str | None:
    """The text with plain line breaks, if nothing but lines with `---` can part its documents; else None."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if data[:1] in (b"%", b".") or b"\n%" in data or b"\n..." in data or not blocks.is_ordinary(data):
        return None
    return data.decode()


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """The text of each document with its `---` line, and the number of lines before it."""
    starts = _markers(text)
    start = next(starts)
    if _CONTENT.match(text, 0, start):
        starts = chain([start], starts)
        start = 0
    lines = text.count("\n", 0, start)
    for end in starts:
        yield text[start:end], lines
        lines += text.count("\n", start, end)
        start = end


def _markers(text: str) -> Iterator[int]:
    """Where each line starts that is `---`, with or without something after a space; last, the end."""
    if text[3:4] in _AFTER_MARKER and text.startswith("---"):
        yield 0
    at = text.find(_MARKER)
    while at >= 0:
        if text[at + 4 : at + 5] in _AFTER_MARKER:
            yield at + 1
        at = text.find(_MARKER, at + 1)
    yield len(text)


def _document(chunk: str, index: int, lines_before: int, duplicates: list[str] | None) -> Document:
    try:
        return _read_fast(chunk, index, lines_before)
    except blocks.Unsure:
        found = list(islice(exact.documents(chunk, duplicates, lines_before), 2))
        if len(found) != 1:
            raise _OddStream from None
        return Document(found[0].value, index, found[0].line)


def _read_fast(chunk: str, index: int, lines_before: int) -> Document:
    body = chunk
    if chunk.startswith("---"):
        marker = _BARE_MARKER.match(chunk)
        if not marker:
            raise blocks.Unsure
        body = chunk[marker.end() :]
    value = blocks.parse(body)
    content = _CONTENT.match(chunk, len(chunk) - len(body))
    return Document(value, index, lines_before + 1 + (chunk.count("\n", 0, content.end()) if content else 0))
