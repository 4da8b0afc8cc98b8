from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.kube import errors
from podium.kube.watchstream import LineSplitter, events

OBJECTS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3)
TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])


async def feed(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(chunks: list[bytes], max_line: int = 1 << 20) -> list[tuple[str, bytes]]:
    return [(event.type, bytes(event.object)) async for event in events(feed(chunks), max_line=max_line)]


def written(changes: list[tuple[str, dict[str, str]]]) -> bytes:
    lines = [msgspec.json.encode({"type": kind, "object": obj}) for kind, obj in changes]
    return b"".join(line + b"\n" for line in lines)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    return [body[start:end] for start, end in pairwise(edges)]


@given(st.lists(st.tuples(TYPES, OBJECTS), max_size=6), st.lists(st.integers(0, 10_000), max_size=20))
async def test_any_chunking_gives_the_same_events(
    changes: list[tuple[str, dict[str, str]]], places: list[int]
) -> None:
    expected = [(kind, msgspec.json.encode(obj)) for kind, obj in changes]
    assert await read(cut(written(changes), places)) == expected


@given(st.lists(st.tuples(TYPES, OBJECTS), min_size=1, max_size=4), st.data())
async def test_a_body_that_ends_at_any_byte_gives_whole_events_or_an_error(
    changes: list[tuple[str, dict[str, str]]], data: st.DataObject
) -> None:
    body = written(changes)
    end = data.draw(st.integers(0, len(body)))
    expected = [(kind, msgspec.json.encode(obj)) for kind, obj in changes]
    seen: list[tuple[str, bytes]] = []
    try:
        async for event in events(feed([body[:end]])):
            seen.append((event.type, bytes(event.object)))  # noqa: PERF401 - kept if the loop raises
    except errors.ConnectionFailed:
        assert body[:end].count(b"\n") < len(changes)
    assert seen == expected[: len(seen)]
    assert len(seen) >= body[:end].count(b"\n")


async def test_blank_lines_and_carriage_returns_are_skipped() -> None:
    body = b'\n\r\n  \n{"type":"ADDED","object":{}}\r\n\n'
    assert await read([body]) == [("ADDED", b"{}")]


async def test_unknown_fields_of_the_envelope_are_ignored_and_of_the_object_kept() -> None:
    body = b'{"type":"ADDED","new":1,"object":{"new":{"a":[1, 2.50]}}}\n'
    assert await read([body]) == [("ADDED", b'{"new":{"a":[1, 2.50]}}')]


async def test_an_error_event_is_raised_by_its_status() -> None:
    status = {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version: 1 (9)",
    }
    body = (
        b'{"type":"ADDED","object":{}}\n' + msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
    )
    with pytest.raises(errors.Gone, match="too old resource version"):
        await read([body])


@pytest.mark.parametrize(
    "body", [b"<html>\n", b"[]\n", b'{"type":1,"object":{}}\n', b'{"type":"ERROR","object":1}\n']
)
async def test_what_is_no_event_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(errors.ProtocolError):
        await read([body])


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_line_without_end_is_refused_early(size: int) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000_000):
            yield b"x" * size

    with pytest.raises(errors.ProtocolError, match="larger than 5000 bytes"):
        async for _ in events(endless(), max_line=5000):
            pass


@given(st.binary(max_size=200).map(lambda text: text.replace(b"x", b"\n")), st.lists(st.integers(0, 200)))
def test_lines_are_those_of_the_whole(body: bytes, places: list[int]) -> None:
    splitter = LineSplitter()
    lines = [line for chunk in cut(body, places) for line in splitter.feed(chunk)]
    assert [*lines, splitter.rest()] == body.split(b"\n")
