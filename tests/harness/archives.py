"""Tar archives made by hand, so that they can be wrong in every way, and images of them.

Nothing here uses what it is to test: headers are put together from their fields. `hostile` holds the cases.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence

import zstandard

from podium.oci import build
from podium.oci.build import Built
from podium.oci.model import OCI_LAYER, Digest, descriptor_of, digest_of

BLOCK = 512
END = bytes(2 * BLOCK)

FILE, HARD_LINK, SYMLINK, CHARACTER, BLOCK_DEVICE, DIRECTORY, FIFO = (
    b"0", b"1", b"2", b"3", b"4", b"5", b"6"
)  # fmt: skip
USTAR = b"ustar\x0000"
GNU = b"ustar  \0"
V7 = bytes(8)


def header(
    name: bytes,
    size: int | bytes = 0,
    kind: bytes = FILE,
    *,
    link: bytes = b"",
    prefix: bytes = b"",
    magic: bytes = USTAR,
    checksum: bytes | None = None,
) -> bytes:
    """One header block; a size or checksum in bytes is written as it is."""
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    block = bytearray(BLOCK)
    block[0:100] = name[:100].ljust(100, b"\0")
    block[100:124] = b"0000644\x000000000\x000000000\0"
    block[124:136] = field.ljust(12, b"\0")
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[157:257] = link.ljust(100, b"\0")
    block[257:265] = magic
    block[345:500] = prefix.ljust(155, b"\0")
    block[148:156] = b"%06o\0 " % sum(block) if checksum is None else checksum
    return bytes(block)


def padded(data: bytes) -> bytes:
    """Some bytes, filled up to whole blocks."""
    return data + bytes(-len(data) % BLOCK)


def entry(name: bytes, data: bytes = b"", kind: bytes = FILE, **fields: bytes) -> bytes:
    """One entry with its content; `link`, `prefix`, `magic`, `checksum` and `size` as in `header`."""
    size = fields.pop("size", None)
    return header(name, len(data) if size is None else size, kind, **fields) + padded(data)


def record(key: bytes, value: bytes) -> bytes:
    """One PAX record."""
    length = len(key) + len(value) + 3
    while len(b"%d %s=%s\n" % (length, key, value)) != length:
        length += 1
    return b"%d %s=%s\n" % (length, key, value)


def pax(records: Iterable[tuple[bytes, bytes]] | bytes, kind: bytes = b"x") -> bytes:
    """A PAX header, of records or of bytes that pass for them."""
    data = records if isinstance(records, bytes) else b"".join(record(*each) for each in records)
    return entry(b"PaxHeaders/x", data, kind)


def long_name(name: bytes, kind: bytes = b"L") -> bytes:
    """A GNU long name."""
    return entry(b"././@LongLink", name + b"\0", kind, magic=GNU)


def spelled(name: bytes, data: bytes = b"x", kind: bytes = FILE) -> dict[str, bytes]:
    """The same entry with its name in each way that tar knows, as far as it fits."""
    ways = {
        "pax": pax([(b"path", name)]) + entry(b"short", data, kind),
        "gnu": long_name(name) + entry(b"short", data, kind, magic=GNU),
    }
    if len(name) <= 100:
        ways["ustar"] = entry(name, data, kind)
    if b"/" in name and len(name) <= 100:
        prefix, _, rest = name.partition(b"/")
        if prefix and rest:
            ways["prefix"] = entry(rest, data, kind, prefix=prefix)
    return ways


def image(layers: Sequence[bytes], *, diff_ids: bool = True) -> Built:
    """An image of archives as they are, compressed or not; on request without the work for the diff IDs."""
    known = {data: diff_id(data) if diff_ids else digest_of(b"") for data in set(layers)}
    return build.image([build.Layer(descriptor_of(data, OCI_LAYER), known[data], data) for data in layers])


def diff_id(data: bytes) -> Digest:
    """The digest of a layer's plain bytes; some other one for data that cannot be decompressed."""
    with contextlib.suppress(OSError, EOFError, zlib.error, zstandard.ZstdError):
        data = _decompressed(data)
    return digest_of(data)


def _decompressed(data: bytes, limit: int = 64 << 20) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        with gzip.open(io.BytesIO(data)) as file:
            return file.read(limit)
    if data.startswith((b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")):
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 30).stream_reader(
            io.BytesIO(data), read_across_frames=True
        )
        return reader.read(limit)
    return data
