"""Archives that would fill a disk or a memory: small to keep, huge to read.

The ten gigabytes inside are never made here either: compressed pieces are repeated. `read_in_own_process`
unpacks an image of a layout in a process that may not take more than its share, and says how long it took.
"""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.archives import DIRECTORY, END, FILE, SYMLINK, entry, header, pax
from harness.hostile import GOOD

GIB = 1 << 30
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_EMPTY_FRAME = ZSTD_MAGIC + b"\x20\x00\x01\x00\x00"
_MIB_OF_ZEROS = bytes(1 << 20)


class Measured(msgspec.Struct):
    """What came of unpacking in another process."""

    error: str
    files: int
    seconds: float  # of processor time, which other processes do not lengthen
    peak: int  # bytes resident at most


@dataclass(frozen=True)
class Bomb:
    """Layers, made only when they are needed, and why they are refused; or how many files they hold."""

    name: str
    layers: Callable[[], Sequence[bytes]]
    refused: str = ""
    files: int = 0
    diff_ids: bool = False  # whether a reader may get so far as to compare them


TEN_GIB = b"\x80" + (10 << 30).to_bytes(11, "big")
WANTED, ELSEWHERE = header(b"manifests/x", TEN_GIB), header(b"usr/x", TEN_GIB)
DEEP = b"manifests/%d" + b"/a" * 29

BOMBS = [
    Bomb("10 GiB said in a header, none there", lambda: [GOOD + WANTED], "an entry of"),
    Bomb("10 GiB wanted, gzip", lambda: [gzipped_zeros(10 * GIB, WANTED)], "an entry of"),
    Bomb("10 GiB elsewhere, gzip", lambda: [gzipped_zeros(10 * GIB, ELSEWHERE)], "an entry of"),
    Bomb("10 GiB elsewhere, zstd", lambda: [zstd_zeros(10 * GIB, ELSEWHERE)], "an entry of"),
    Bomb("10 GiB after the end, gzip", lambda: [gzipped_zeros(10 * GIB, GOOD + END)], "times"),
    Bomb("10 GiB after the end, zstd", lambda: [zstd_zeros(10 * GIB, GOOD + END)], "times"),
    Bomb("10 GiB, compressed only 100 times", lambda: [_hardly_compressed()], "after decompression"),
    Bomb("files of 60 MiB, wanted", lambda: [_files_of_60_mib(b"manifests/f")], "times"),
    Bomb("files of 60 MiB, elsewhere", lambda: [_files_of_60_mib(b"usr/f")], "times"),
    Bomb("20 million empty files", lambda: [_gzip_repeated(_headers(b"usr/%d", 2000), 10_000)], "entries"),
    Bomb("120,000 empty files", lambda: [_headers(b"usr/share/%d", 120_000)], "40000 entries"),
    Bomb("10,001 empty wanted files", lambda: [_headers(b"manifests/%d", 10_001)], "10000 wanted files"),
    Bomb("one directory many times", lambda: [header(b"manifests/", kind=DIRECTORY) * 120_000], "entries"),
    Bomb("many PAX records", lambda: [(_pax_of(999) + header(b"usr/x")) * 1200], "PAX records"),
    Bomb("many long names", lambda: [_long_name() * 19_000]),
    Bomb("many large PAX headers", lambda: [_large_pax() * 240]),
    Bomb("gzip: a million empty members", lambda: [gzip_member(b"") * 1_000_000], "compression frames"),
    Bomb("zstd: a million empty frames", lambda: [ZSTD_EMPTY_FRAME * 1_000_000], "compression frames"),
    Bomb("zstd: three million empty blocks", lambda: [_zstd_empty_blocks(3_000_000)]),
    Bomb(
        "30 MiB in each of 100 layers",
        lambda: [gzip_member(END + bytes(30 << 20))] * 100,
        "after decompression",
        diff_ids=True,
    ),
    Bomb("129 layers", lambda: [END] * 129, "layers"),
    Bomb("a wanted file written again and again", lambda: [_rewritten()], "wanted files have more than"),
    Bomb("directories replaced again and again", lambda: [_churn()], files=9000),
    Bomb("whiteouts again and again", lambda: [_whiteouts()] * 9),
    Bomb("links in a tangle", lambda: [_tangle()], "too many links"),
    Bomb(
        "links in deep directories",
        lambda: [_headers(DEEP.replace(b"manifests", b"usr"), 30_000, SYMLINK)],
        "links",
    ),
    Bomb("deep names through a link", lambda: [_through_a_link()], "too many links"),
    Bomb("deep directories", lambda: [_headers(DEEP + b"/", 90_000, DIRECTORY)], "10000 directories"),
    Bomb("deep whiteouts", lambda: [_headers(DEEP + b"/.wh.x", 90_000)], "10000 directories"),
    Bomb("deep files", lambda: [_headers(DEEP + b"/x", 9_900)], "10000 directories"),
]


def gzip_member(data: bytes) -> bytes:
    """One gzip member."""
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    return engine.compress(data) + engine.flush()


def gzipped_zeros(size: int, start: bytes) -> bytes:
    """Some bytes and many zeros; the checksum at the end is wrong, and nobody should get there."""
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = engine.compress(start) + engine.flush(zlib.Z_FULL_FLUSH)
    return first + _deflated(_MIB_OF_ZEROS) * (size >> 20) + b"\x03\0" + bytes(8)


def zstd_zeros(size: int, start: bytes) -> bytes:
    """The same as a frame of raw and run-length blocks."""
    raw = (len(start) << 3).to_bytes(3, "little") + start
    run = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (1).to_bytes(3, "little")
    return ZSTD_MAGIC + b"\x00\x38" + raw + run * (size >> 17) + last


def _gzip_repeated(data: bytes, times: int) -> bytes:
    """Some bytes many times over, compressed once."""
    engine = zlib.compressobj(1, zlib.DEFLATED, 31)
    start = engine.compress(b"") + engine.flush(zlib.Z_FULL_FLUSH)
    return start + _deflated(data) * times + b"\x03\0" + bytes(8)


def _deflated(data: bytes) -> bytes:
    """Deflated data that can stand anywhere in a stream, for it refers to nothing before it."""
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush(zlib.Z_FULL_FLUSH)


def _hardly_compressed() -> bytes:
    """Ten gigabytes that look like those of an honest base image."""
    piece = random.Random(1).randbytes(10 << 10) + bytes((1 << 20) - (10 << 10))
    return _gzip_repeated(GOOD + END + piece, 10 << 10)


def _files_of_60_mib(name: bytes) -> bytes:
    return _gzip_repeated(header(name, 60 << 20) + bytes(60 << 20), 170)


def _headers(pattern: bytes, count: int, kind: bytes = FILE) -> bytes:
    return b"".join(header(pattern % number, kind=kind) for number in range(count))


def _pax_of(count: int) -> bytes:
    return pax([(b"k%d" % number, b"") for number in range(count)])


def _long_name() -> bytes:
    return pax([(b"path", b"usr/" + b"a/" * 250 + b"n" * 3000)]) + header(b"x")


def _large_pax() -> bytes:
    return pax([(b"comment", b"c" * ((1 << 20) - 17))]) + header(b"usr/x")


def _zstd_empty_blocks(count: int) -> bytes:
    return ZSTD_MAGIC + b"\x00\x58" + b"\x00\x00\x00" * count + b"\x01\x00\x00"


def _rewritten() -> bytes:
    """One file of 30 MiB five times: only the last would count, all have to be read."""
    return b"".join(entry(b"manifests/x", bytes([n]) * (30 << 20)) for n in range(5)) + END


def _churn() -> bytes:
    """A directory becomes a file, and back; quadratic for whoever looks through all files each time."""
    change = header(b"manifests/a/", kind=DIRECTORY) + header(b"manifests/a/x") + header(b"manifests/a")
    return _headers(b"manifests/z/%d", 9000) + change * 500 + header(b"manifests/a/", kind=DIRECTORY) * 29_000


def _whiteouts() -> bytes:
    return header(b"manifests/.wh.x") * 4_000 + header(b"manifests/d/.wh..wh..opq")


def _tangle() -> bytes:
    """Each link leads through the next with a detour of a thousand steps."""
    turns = b"a/../" * 18
    links = b"".join(header(b"l%d" % n, kind=SYMLINK, link=turns + b"l%d" % (n + 1)) for n in range(39))
    return links + header(b"l0/x") * 30_000


def _through_a_link() -> bytes:
    name = pax([(b"path", b"l/" + b"a/" * 250 + b"x")])
    return header(b"l", kind=SYMLINK, link=b"usr") + (name + header(b"x")) * 15_000


_CHILD = """
import asyncio, re, resource, sys, time
import msgspec
from podium.oci import images, unpack
from podium.oci.errors import OCIError
from podium.oci.layout import Layout

async def read(path):
    image = await images.pull(Layout(path), "hostile")
    return await unpack.files(image)

resource.setrlimit(resource.RLIMIT_AS, (768 << 20, 768 << 20))
started, error, files = time.process_time(), "", {}
try:
    files = asyncio.run(read(sys.argv[1]))
except OCIError as refusal:
    error = f"{type(refusal).__name__}: {refusal}"
seconds = time.process_time() - started
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10
sys.stdout.buffer.write(msgspec.json.encode(dict(error=error, files=len(files), seconds=seconds, peak=peak)))
"""


def read_in_own_process(layout: Path) -> Measured:
    """Unpack the image `hostile` of a layout in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(layout)], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return msgspec.json.decode(done.stdout, type=Measured)
