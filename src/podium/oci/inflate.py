"""A layer as a stream of plain bytes, whether it is stored as gzip, zstd or plain tar.

The compression is recognised by its first bytes, as all clients do; the media type is only a claim. Output
comes in bounded chunks and is counted against the limits before anyone sees it: no input, however small,
makes more than one chunk at a time. Several gzip members or zstd frames in a row (eStargz, zstd:chunked,
pigz) are one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import zstandard

from podium.oci.errors import Unacceptable
from podium.oci.limits import Tally

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# The largest window of `zstd --ultra -20`; it is allocated before a byte comes out.
ZSTD_WINDOW = 32 << 20

_CHUNK = 256 << 10
# zlib copies what it has not used yet on every call, so slices are small.
_GZIP_SLICE = 16 << 10
# Four bytes of zstd can stand for 128 KiB, and its output cannot be bounded by us: 16 MiB at worst.
_ZSTD_SLICE = 512


class Source(Protocol):
    """Where compressed bytes come from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most that many; none at the end."""


class Inflated:
    """The decompressed bytes of one layer, read forwards only."""

    def __init__(self, source: Source, tally: Tally, seen: Callable[[bytes], None] | None = None) -> None:
        """Read from `source`; `seen` is given every decompressed byte, also those that are skipped."""
        self._source = _Counted(source)
        self._tally = tally
        self._seen = seen
        self._produced = 0
        self._chunks = self._decompressed()
        self._chunk = b""
        self._used = 0

    def read(self, size: int) -> bytes:
        """The next bytes; fewer than asked only at the end."""
        end = self._used + size
        if end <= len(self._chunk):
            data = self._chunk[self._used : end]
            self._used = end
            return data
        return b"".join(self._pieces(size))

    def skip(self, size: int) -> int:
        """Pass over bytes; how many there were, fewer than asked only at the end."""
        end = self._used + size
        if end <= len(self._chunk):
            self._used = end
            return size
        return sum(map(len, self._pieces(size)))

    def drain(self) -> None:
        """Read to the end, so that everything has been seen and checked."""
        self._used = len(self._chunk)
        while self._advance():
            pass

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size > 0 and (self._used < len(self._chunk) or self._advance()):
            piece = self._chunk[self._used : self._used + size]
            self._used += len(piece)
            size -= len(piece)
            yield piece

    def _advance(self) -> bool:
        """Take the next chunk, counted and seen; False at the end."""
        chunk = next(self._chunks, b"")
        self._chunk, self._used = chunk, 0
        if not chunk:
            return False
        self._produced += len(chunk)
        self._tally.decompressed(len(chunk))
        self._tally.ratio(self._source.count, self._produced)
        if self._seen:
            self._seen(chunk)
        return True

    def _decompressed(self) -> Iterator[bytes]:
        start = self._source.read(4)
        if start.startswith(GZIP_MAGIC):
            return _gunzip(self._source, start, self._tally)
        if start == ZSTD_MAGIC or (len(start) == 4 and start[1:] == b"\x2a\x4d\x18" and start[0] >> 4 == 5):
            return _unzstd(self._source, start, self._tally)
        return _plain(self._source, start)


class _Counted:
    """A file that knows how much was read from it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.count = 0

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self.count += len(data)
        return data


def _plain(source: _Counted, start: bytes) -> Iterator[bytes]:
    chunk = start
    while chunk:
        yield chunk
        chunk = source.read(_CHUNK)


def _gunzip(source: _Counted, start: bytes, tally: Tally) -> Iterator[bytes]:
    rest = start
    try:
        while rest := rest or source.read(_GZIP_SLICE):
            tally.frame()
            engine = zlib.decompressobj(wbits=31)
            while not engine.eof:
                rest = rest or source.read(_GZIP_SLICE)
                chunk = engine.decompress(rest, _CHUNK)
                if not rest and not chunk and not engine.eof:
                    raise Unacceptable("gzip data ends too early")
                rest = engine.unconsumed_tail
                if chunk:
                    yield chunk
            rest = engine.unused_data
    except zlib.error as error:
        raise Unacceptable(f"malformed gzip data: {error}") from None


def _unzstd(source: _Counted, start: bytes, tally: Tally) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    rest = start
    try:
        while rest := rest or source.read(_ZSTD_SLICE):
            tally.frame()
            engine = decompressor.decompressobj()
            while not engine.eof:
                rest = rest or source.read(_ZSTD_SLICE)
                if not rest:
                    raise Unacceptable("zstd data ends too early")
                chunk = engine.decompress(rest)
                rest = b""
                if chunk:
                    yield chunk
            rest = engine.unused_data
    except zstandard.ZstdError as error:
        raise Unacceptable(f"malformed zstd data: {error}") from None
