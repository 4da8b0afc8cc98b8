"""Reads file-based catalogs from JSON and YAML streams, every error with file, document and line.

A stream is JSON if its first character that is no space is `{`, and YAML otherwise. It is cut into documents
while it is read (see `streams`), and everything is decoded once, one blob at a time, and kept as compact
bytes (see `blobs`): memory is that of the largest blob, for a file or a pipe of any length.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from podium.api.findings import Place
from podium.catalog import blobs
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.decoding import compact
from podium.catalog.streams import MAX_DOCUMENT, Stream, chunks_of
from podium.text import gojson, yaml

LOST = "text follows the end of the document"
TOO_DEEP = "invalid JSON: nested too deeply"
MAX_WIDE = MAX_DOCUMENT // 4  # a text beyond ASCII takes up to four bytes for each of its characters
MAX_PROBLEMS = 100  # after which nobody reads on
MAX_VALUES = 500_000  # of a JSON document
MAX_LINES = 250_000  # of a YAML document, which takes twice as long


def read(files: Iterable[tuple[str, bytes]]) -> Iterator[Blob]:
    """Every blob of every file, in order; the first that is wrong raises CatalogError."""
    for path, data in files:
        yield from read_file(path, data)


def read_file(path: str, data: bytes) -> Iterator[Blob]:
    """Every blob of one file."""
    return read_chunks(path, chunks_of(data))


def read_streams(streams: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[Blob]:
    """Every blob of every file, each file given in chunks that are taken one after the other."""
    for path, chunks in streams:
        yield from read_chunks(path, chunks)


def read_chunks(path: str, chunks: Iterable[bytes]) -> Iterator[Blob]:
    """Every blob of one file that comes in chunks."""
    for value, place in _documents(Stream(path, chunks)):
        try:
            blob = blob_of(value, place)
            blobs.typed(blob)
        except RecursionError:
            raise CatalogError(TOO_DEEP, place) from None
        yield blob


def read_on(streams: Iterable[tuple[str, Iterable[bytes]]], problems: list[CatalogError]) -> Iterator[Blob]:
    """Every blob that can be read; what cannot is put on a list, and reading goes on behind it.

    Behind a blob that is wrong that is the next blob; behind a text that is no JSON or YAML, the next file.
    Behind very many problems there is nothing. Fields of the wrong type are left to the validator.
    """
    for path, chunks in streams:
        try:
            for value, place in _documents(Stream(path, chunks)):
                try:
                    yield blob_of(value, place)
                except CatalogError as error:
                    problems.append(error.with_traceback(None))
                except RecursionError:
                    problems.append(CatalogError(TOO_DEEP, place))
                if len(problems) >= MAX_PROBLEMS:
                    problems.append(
                        CatalogError("this is one problem too many: the rest was not read", place)
                    )
                    return
        except CatalogError as error:
            problems.append(error.with_traceback(None))


def blob_of(value: Any, place: Place) -> Blob:
    """A decoded document as a blob: schema, package and name are found in any case."""
    if not isinstance(value, dict):
        if value is None:
            _fail("the document is empty (a comment before the first `---` makes one too)", place)
        _fail(f"expected an object with a schema, found {json.dumps(value)[:60]}", place)
    folded = {key.casefold(): key for key in value}
    if len(folded) < len(value):
        _fail(_twice(value), place)
    schema, package, name = (_header(value, folded, key, place) for key in ("schema", "package", "name"))
    if not schema:
        _fail("the object is missing its root schema field", place)
    return Blob(schema, package, name, compact(value), place)


def _twice(value: dict[str, Any]) -> str:
    """Which keys are the same but for their case."""
    folded: dict[str, list[str]] = {}
    for key in value:
        folded.setdefault(key.casefold(), []).append(key)
    return "; ".join(
        sorted(f'duplicate keys for key "{key}": {sorted(keys)}' for key, keys in folded.items() if keys[1:])
    )


def _header(value: dict[str, Any], folded: dict[str, str], name: str, place: Place) -> str:
    if name not in folded:
        return ""
    key = folded[name]
    found = value[key]
    if not isinstance(found, str):
        _fail(f'expected the value of key "{key}" to be a string', place)
    return found


def _fail(problem: str, place: Place) -> NoReturn:
    raise CatalogError(problem, place)


# --- streams ---


def documents(path: str, data: bytes) -> Iterator[tuple[Any, Place]]:
    """Every document of a JSON or YAML stream, decoded, with its place; numbers are as Go prints them."""
    return _documents(Stream(path, chunks_of(data)))


def _documents(stream: Stream) -> Iterator[tuple[Any, Place]]:
    if not stream.starts_with_brace():
        yield from _yaml_documents(stream.path, stream.yaml_documents(), 0)
        return
    count = 0
    for piece in stream.json_pieces():
        try:
            for value, place in _json_values(stream.path, piece, count, stream.line):
                yield value, place
                count += 1
        except _NotJSON as error:
            # One object may be flow-style YAML, or the first document of a YAML stream.
            error.with_traceback(None)  # it holds the text of the piece
            is_small = count < 2 and len(piece) <= MAX_WIDE
            rest = _yaml_after_json(stream, count, error) if is_small else None
            if rest is None:
                raise CatalogError(error.problem, error.place) from None
            yield from rest
            return


class _NotJSON(CatalogError):
    """JSON cannot be read on from an offset in a piece; YAML may."""

    def __init__(self, problem: str, place: Place, offset: int) -> None:
        super().__init__(problem, place)
        self.offset = offset


_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_SPACE = re.compile(r"[ \t\r\n]*+")


def _json_values(path: str, piece: bytearray, count: int, line: int) -> Iterator[tuple[Any, Place]]:
    _refuse_bombs(piece, b",{[", MAX_VALUES, Place(path, count + 1, line))
    try:
        text = piece.decode()
    except UnicodeDecodeError:  # Go reads each byte that is not UTF-8 as U+FFFD
        text = _ESCAPED_BYTE.sub("\ufffd", piece.decode(errors="surrogateescape"))
    end = 0
    while (start := _end_of_space(text, end)) < len(text):
        count += 1
        place = Place(path, count, line + text.count("\n", 0, start))
        try:
            value, end = gojson.FLOATS.raw_decode(text, start)
        except ValueError as error:
            problem, where = f"invalid JSON: {error}", place
            if isinstance(error, json.JSONDecodeError):
                problem = f"invalid JSON: {error.msg} (column {error.colno})"
                where = Place(path, count, line + error.lineno - 1)
            raise _NotJSON(problem, where, len(text[:end].encode(errors="replace"))) from None
        except RecursionError:
            raise CatalogError(TOO_DEEP, place) from None
        yield value, place


def _refuse_bombs(text: bytes | bytearray, signs: bytes, limit: int, place: Place) -> None:
    """Refuses what would take far more memory and time decoded than it does as bytes.

    A value starts with or after one of the signs; one in a text counts too, which does no harm so far up.
    """
    if len(text) <= limit:
        return
    if len(text) > MAX_WIDE and not text.isascii():
        _fail(f"a document with characters beyond ASCII is larger than {MAX_WIDE >> 20} MiB", place)
    if sum(map(text.count, signs)) > limit:
        _fail(f"a document has more than {limit:,} values or lines", place)


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _yaml_after_json(stream: Stream, count: int, error: _NotJSON) -> Iterator[tuple[Any, Place]] | None:
    """The rest of a stream as YAML; None if its first document is no YAML either.

    Objects of a JSON stream that follow would be lost with it: that is an error here.
    """
    rest = _yaml_documents(stream.path, stream.rest_as_yaml(error.offset), count)
    try:
        first = next(rest)
    except StopIteration:
        return None
    except CatalogError as no_yaml:
        if LOST in no_yaml.problem:
            raise CatalogError(f"{error.problem}; read as YAML, {LOST}", error.place) from None
        return None
    return itertools.chain([first], rest)


def _yaml_documents(path: str, texts: Iterable[tuple[bytes, int]], count: int) -> Iterator[tuple[Any, Place]]:
    for text, start in texts:
        count += 1
        place = Place(path, count, start)
        _refuse_bombs(text, b",{[\n", MAX_LINES, place)
        try:
            yield gojson.with_floats(_only(text)), place
        except yaml.YAMLError as error:
            wrong = Place(path, count, start + (error.line or 1) - 1)
            raise CatalogError(f"invalid YAML: {error}", wrong) from None
        except ValueError as error:
            raise CatalogError(f"invalid YAML: {error}", place) from None


def _only(text: bytes) -> Any:
    """The one document of a text; opm reads the first and silently drops what follows, which is no help."""
    values = yaml.load_all(text, duplicates=[])
    value = next(values, None)
    try:
        more = next(values, values) is not values
    except yaml.YAMLError:
        more = True
    if more:
        raise ValueError(f"{LOST}: start every document with ---")
    return value
