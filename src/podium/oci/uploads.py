"""Sending blobs: whole, or in pieces where a registry or the proxy before it takes no more at a time.

What is sent is checked while it passes: bytes that are not those the descriptor names never complete an
upload. A whole upload that breaks is started anew; pieces go on from what the registry says it has.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from urllib.parse import quote

from podium.oci.downloads import checked_source
from podium.oci.errors import ImageNotFound, RegistryError
from podium.oci.host import Call, Reply
from podium.oci.model import Descriptor
from podium.oci.remote import Remote
from podium.oci.retrying import TryAgain
from podium.oci.transport import Interrupted

Chunks = Callable[[], AsyncIterator[bytes]]
Moved = Callable[[int], None]

# After a 413: small enough for the usual limits of proxies, large enough for the least that registries take.
_SMALL_PIECE = 5 << 20
# A registry may ask for larger pieces, but a piece is held in memory.
_LARGEST_PIECE = 256 << 20
_RANGE = re.compile(r"(?:bytes=)?0-(\d{1,19})")


async def upload(place: Remote, descriptor: Descriptor, chunks: Chunks, *, piece: int, moved: Moved) -> None:
    """Send a blob; `moved` is told of bytes that go out, and how many to take back on starting over."""
    job = _Upload(place, descriptor, chunks, moved)
    if not piece or descriptor.size <= piece:
        try:
            await place.host.attempts().run(job.whole)
            return
        except RegistryError as error:
            if error.status != 413 or descriptor.size <= _SMALL_PIECE:
                raise
            piece = _SMALL_PIECE
    await job.in_pieces(piece)


class _Upload:
    def __init__(self, place: Remote, descriptor: Descriptor, chunks: Chunks, moved: Moved) -> None:
        self._place = place
        self._descriptor = descriptor
        self._chunks = chunks
        self._moved = moved
        self._sent = 0
        # Where an upload in pieces goes on: every answer may name another place. Empty before it is begun.
        self._session = ""

    async def whole(self) -> None:
        """One session with one request that holds everything."""
        self._back_to(0)
        location = self._location(await self._opened())
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(self._descriptor.size)}
        async with self._place.host.open(
            self._call("PUT", self._closing(location), headers, self._from_start)
        ):
            return

    async def in_pieces(self, piece: int) -> None:
        """One session with a request for each piece; started anew if the registry has forgotten it."""
        attempts = self._place.host.attempts()
        offset = 0
        while True:
            try:
                if not self._session:
                    self._back_to(0)
                    reply = await self._opened()
                    self._session = self._location(reply)
                    piece = max(piece, _least(reply))
                await self._pieces(offset, piece)
                await self._place.host.ask(self._call("PUT", self._closing(self._session), {}, b""))
                return
            except (TryAgain, Interrupted) as failure:
                await attempts.after(failure)
                offset = await self._state()
            except ImageNotFound as forgotten:
                if not self._session:
                    raise  # not the upload is unknown but the repository
                await attempts.after(TryAgain(forgotten))
                self._session, offset = "", 0

    async def _pieces(self, offset: int, piece: int) -> None:
        self._back_to(offset)
        async with aclosing(_regrouped(self._from_start(), offset, piece)) as parts:
            async for part in parts:
                headers = {
                    "Content-Type": "application/octet-stream",
                    "Content-Range": f"{offset}-{offset + len(part) - 1}",
                }
                call = self._call("PATCH", self._session, headers, part, expected=(202,))
                async with self._place.host.open(call) as answer:
                    self._session = self._place.host.transport.target(
                        answer.url, answer.headers.get("Location", self._session)
                    )
                offset += len(part)

    async def _state(self) -> int:
        """How much the registry has of a broken upload; the session is over if it has forgotten it."""
        if not self._session:
            return 0
        location, self._session = self._session, ""
        try:
            reply = await self._place.host.ask(self._call("GET", location, {}, None, expected=(204,)))
        except (ImageNotFound, RegistryError):
            return 0
        has = _RANGE.fullmatch(reply.headers.get("Range", "").strip())
        # `0-0` is what registries say for nothing, as well as for one byte; then nothing is the safe reading.
        offset = int(has[1]) + 1 if has and int(has[1]) > 0 else 0
        if not 0 < offset <= self._descriptor.size:
            return 0
        self._session = self._location(reply) if "Location" in reply.headers else location
        return offset

    async def _opened(self) -> Reply:
        path = self._place.url("blobs/uploads/")
        return await self._place.host.ask(self._call("POST", path, {}, b"", expected=(202,)))

    def _location(self, reply: Reply) -> str:
        location = reply.headers.get("Location")
        if not location:
            raise RegistryError(
                f"{self._place.name}: the registry does not say where to upload to", reply.status
            )
        return self._place.host.transport.target(reply.url, location)

    def _closing(self, location: str) -> str:
        return f"{location}{'&' if '?' in location else '?'}digest={quote(self._descriptor.digest, safe='')}"

    def _call(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | Chunks | None,
        expected: tuple[int, ...] = (200, 201, 202, 204),
    ) -> Call:
        return Call(method, path, self._place.scope("pull,push"), headers, body, expected)

    async def _from_start(self) -> AsyncGenerator[bytes, None]:
        position = 0
        async with aclosing(checked_source(self._chunks(), self._descriptor)) as parts:
            async for part in parts:
                position += len(part)
                # After a broken piece the first bytes are read again but not sent again.
                if position > self._sent:
                    self._moved(position - self._sent)
                    self._sent = position
                yield part

    def _back_to(self, offset: int) -> None:
        if self._sent != offset:
            self._moved(offset - self._sent)
            self._sent = offset


async def _regrouped(source: AsyncIterator[bytes], skip: int, size: int) -> AsyncGenerator[bytes, None]:
    """Pieces of one size (the last may be smaller), after leaving out the beginning."""
    waiting = bytearray()
    async for part in source:
        kept = part[skip:]
        skip -= len(part) - len(kept)
        waiting += kept
        while len(waiting) > size:
            yield bytes(waiting[:size])
            del waiting[:size]
    if waiting:
        yield bytes(waiting)


def _least(reply: Reply) -> int:
    text = reply.headers.get("OCI-Chunk-Min-Length", "")
    return min(int(text[:10]), _LARGEST_PIECE) if text.isascii() and text.isdigit() else 0
