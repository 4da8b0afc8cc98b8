"""The body of a watch: one JSON event per line, cut into network chunks anywhere.

Only the envelope is decoded; the object stays as the bytes that the server sent. A body that breaks off in
the middle of a line never yields half an event.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from podium.kube.errors import ConnectionFailed, ProtocolError, from_status

MAX_LINE = 64 << 20


class WatchEvent(msgspec.Struct, frozen=True):
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object as JSON text."""

    type: str
    object: msgspec.Raw


class LineSplitter:
    """Puts lines together from chunks, in time linear in their size."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends; ProtocolError if one is too long."""
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        lines: list[bytes] = []
        for piece in pieces:
            self._keep(piece)
            lines.append(self.rest())
        self._keep(last)
        return lines

    def rest(self) -> bytes:
        """What has arrived of the line that is not complete; it is then forgotten."""
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size > self._max_line:
            raise ProtocolError(f"an event of the watch is larger than {self._max_line} bytes")
        self._parts.append(piece)


async def events(
    chunks: AsyncIterator[bytes], *, max_line: int = MAX_LINE
) -> AsyncGenerator[WatchEvent, None]:
    """The events of a watch; an ERROR event is raised as the exception that its Status stands for."""
    splitter = LineSplitter(max_line)
    decoder = msgspec.json.Decoder(WatchEvent)
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            if line and not line.isspace():
                yield _event(line, decoder)
    rest = splitter.rest().strip()
    if rest:
        # No beginning of a JSON object is itself one, so this decodes only if just the line end is missing.
        try:
            last = _event(rest, decoder)
        except ProtocolError as error:
            raise ConnectionFailed("the watch broke off in the middle of an event", sent=True) from error
        yield last


def _event(line: bytes, decoder: msgspec.json.Decoder[WatchEvent]) -> WatchEvent:
    try:
        event = decoder.decode(line)
        if event.type != "ERROR":
            return event
        status = msgspec.json.decode(event.object, type=dict)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"an event of the watch cannot be read: {error}") from error
    raise from_status(status)
