"""Archives that both we and Go's archive/tar accept hold the same for both: no reader is tricked alone."""

from __future__ import annotations

import base64
import io
import random
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.archives import END, GNU, USTAR, V7, entry, header, long_name, padded, pax
from harness.oracle import Oracle
from podium.oci import unpack
from podium.oci.errors import Unacceptable
from podium.oci.tarread import Kind

pytestmark = pytest.mark.oracle

Found = list[tuple[bytes, Kind | None, bytes, bytes]]

KINDS = {
    "\0": Kind.FILE,
    "0": Kind.FILE,
    "7": Kind.FILE,
    "1": Kind.HARD_LINK,
    "2": Kind.SYMLINK,
    "3": Kind.CHARACTER_DEVICE,
    "4": Kind.BLOCK_DEVICE,
    "5": Kind.DIRECTORY,
    "6": Kind.FIFO,
}
NAMES = (b"manifests/a.yaml", b"b", b"metadata/", b"manifests//c", b"./d", b"\xc3\xbc", b"n" * 100, b"")
TIMES = b"00000000017 00000000017 "
PREFIXES = (b"", b"", b"", b"manifests", b"q" * 155, b"00000000017", b"p" * 131 + TIMES)
KEYS = (b"path", b"path", b"size", b"linkpath", b"mtime", b"comment", b"hdrcharset", b"SCHILY.realsize")
VALUES = (b"manifests/z", b"3", b"0", b"600", b"", b"12", b"BINARY", b"a/", b"1.5", b"+3", b"03")
TYPES = b"0000000\0557123456xgLKSVDMNA"


def ours(data: bytes) -> Found | None:
    """What we read; None if we refuse it."""
    try:
        return [
            (member.name, member.kind, member.target, content)
            for member, content in unpack.members(io.BytesIO(data))
        ]
    except Unacceptable:
        return None


def theirs(archives: list[bytes]) -> list[Found | None]:
    """What Go reads of each archive; None where it refuses it."""
    answers = Oracle().ask_all("tar.members", [base64.b64encode(data).decode() for data in archives])
    assert not [answer.error for answer in answers if answer.error.startswith(("oracle", "panic"))]
    return [None if answer.error else _found(answer.output or []) for answer in answers]


def _found(entries: list[dict[str, str]]) -> Found:
    return [
        (
            base64.b64decode(each["name"]),
            KINDS.get(each["kind"]),
            base64.b64decode(each["target"] or "") if each["kind"] == "2" else b"",
            base64.b64decode(each["content"] or ""),
        )
        for each in entries
        if each["kind"] != "g"  # Go shows global headers, which name nothing
    ]


def compare(archives: list[bytes]) -> int:
    """Check that whoever accepts finds the same; how many archives both accept."""
    both = 0
    for data, found in zip(archives, theirs(archives), strict=True):
        mine = ours(data)
        if mine is not None and found is not None:
            assert mine == found, data
            both += 1
    return both


def sealed(block: bytearray) -> bytes:
    """A header block with the right checksum."""
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def oddly(rng: random.Random) -> bytes:
    """One or two headers that may or may not belong together."""
    match rng.randrange(9):
        case 0:
            records = [(rng.choice(KEYS), rng.choice(VALUES)) for _ in range(rng.randrange(1, 3))]
            return pax(records, rng.choice([b"x", b"x", b"g"]))
        case 1:
            return pax([(b"comment", b"hello")], b"g")
        case 2:
            return long_name(rng.choice([*NAMES, b"a\0b"]), rng.choice([b"L", b"L", b"K"]))
        case 3:
            return bytes(512)
    name, prefix = rng.choice(NAMES), rng.choice(PREFIXES)
    data = rng.randbytes(rng.choice([0, 3, 512, 600]))
    kind = bytes([rng.choice(TYPES)]) if rng.random() < 0.4 else b"0"
    size = rng.choice([len(data)] * 4 + [0, 3])
    field: int | bytes = size
    if rng.random() < 0.2:
        field = b"\x80" + size.to_bytes(11, "big")
    elif rng.random() < 0.1:
        field = rng.choice([b" %o " % size, b"%o\0junk" % size, b"%012o" % size, b"-1", b"\xff" * 12])
    magic, link = rng.choice([USTAR, USTAR, GNU, V7]), rng.choice([b"", b"t", b"t" * 100])
    block = bytearray(header(name, field, kind, link=link, prefix=prefix, magic=magic))
    if rng.random() < 0.15:
        block[508:512] = b"tar\0"  # as Schilling's star marks its own
    if rng.random() < 0.1:
        block[rng.randrange(512)] = rng.randrange(256)
    return sealed(block) + padded(data)


def made_up(rng: random.Random) -> bytes:
    """An archive of headers in any order."""
    end = rng.choice([END, END, b"", bytes(512)])
    return b"".join(oddly(rng) for _ in range(rng.randrange(1, 6))) + end


def written(rng: random.Random, form: int) -> bytes:
    """An archive of Python's writer, with long names, links and directories."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as archive:
        for number in range(rng.randrange(1, 5)):
            parts = [rng.choice(["a", "ü", "d" * 90, "x y"]) for _ in range(rng.randrange(1, 4))]
            info = tarfile.TarInfo("/".join((*parts, str(number))))
            info.type = rng.choice([tarfile.REGTYPE, tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
            info.linkname = "t" * rng.choice([3, 130]) if info.type == tarfile.SYMTYPE else ""
            info.mtime = rng.choice([0, 1_700_000_000.25]) if form == tarfile.PAX_FORMAT else 0
            data = rng.randbytes(rng.randrange(1200)) if info.isreg() else b""
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The same with some bytes changed, and the checksum of the block they are in made right again."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(changed) // 512) * 512
        where = start + rng.choice(
            [rng.randrange(512), rng.randrange(124, 136), rng.randrange(156, 158), 257]
        )
        changed[where] = rng.choice([0, 32, 47, 48, 51, 53, 120, 128, 255, rng.randrange(256)])
        if rng.random() < 0.8:
            changed[start : start + 512] = sealed(changed[start : start + 512])
    return bytes(changed[: rng.choice([len(changed)] * 5 + [len(changed) - 512])])


FORMS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def mostly_written(rng: random.Random) -> bytes:
    """An archive of Python's writer in any form, where a long name does not fit in ustar in another."""
    try:
        return written(rng, rng.choice(FORMS))
    except ValueError:
        return written(rng, tarfile.PAX_FORMAT)


@pytest.mark.parametrize(
    ("make", "count", "accepted"),
    [
        (mostly_written, 300, 300),
        (lambda rng: mutated(rng, mostly_written(rng)), 3000, 300),
        (made_up, 6000, 300),
        (lambda rng: mutated(rng, made_up(rng)), 3000, 50),
    ],
    ids=["written", "written-mutated", "made-up", "made-up-mutated"],
)
def test_whoever_accepts_an_archive_finds_the_same(
    make: Callable[[random.Random], bytes], count: int, accepted: int
) -> None:
    rng = random.Random(20)
    assert compare([make(rng) for _ in range(count)]) >= accepted


@pytest.mark.parametrize("form", ["v7", "oldgnu", "gnu", "ustar", "pax"])
def test_archives_of_gnu_tar_are_read(form: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "manifests").mkdir(parents=True)
    (tree / "manifests/a.yaml").write_bytes(b"x" * 700)
    (tree / "manifests/empty").touch()
    (tree / "link").symlink_to("manifests/a.yaml")
    (tree / "hard").hardlink_to(tree / "manifests/empty")
    if form in ("oldgnu", "gnu", "pax"):
        (tree / ("ü" * 60 + "y" * 60)).write_bytes(b"long")
    tar = shutil.which("tar")
    assert tar, "tar is missing"
    data = subprocess.run(
        [tar, "--create", f"--format={form}", "--sort=name", "."],
        cwd=tree,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    assert compare([data]) == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            pax([(b"path", b"manifests/z")]) + pax([(b"comment", b"c")], b"g") + entry(b"a", b"x"),
            id="a-name-before-a-global-header",
        ),
        pytest.param(
            long_name(b"manifests/z") + pax([(b"comment", b"c")], b"g") + entry(b"a", b"x", magic=GNU),
            id="a-gnu-name-before-a-global-header",
        ),
        pytest.param(entry(b"a", b"x", prefix=b"manifests", magic=GNU), id="a-prefix-in-a-gnu-header"),
        pytest.param(
            sealed(bytearray(header(b"a", prefix=b"p" * 131 + TIMES)[:508] + b"tar\0")), id="a-prefix-of-star"
        ),
    ],
)
def test_what_readers_are_known_to_understand_differently_is_refused(data: bytes) -> None:
    assert theirs([data + END]) != [None]
    assert ours(data + END) is None
