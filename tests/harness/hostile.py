"""Archives that mean harm, and some that only look like it: each with what has to come of it.

Makers are plain tables, so that a new trick is a new line. A case says why it is refused, since one that is
refused for another reason than the one it was made for proves nothing.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from harness.archives import (
    BLOCK_DEVICE,
    CHARACTER,
    DIRECTORY,
    END,
    FIFO,
    GNU,
    HARD_LINK,
    SYMLINK,
    V7,
    entry,
    header,
    long_name,
    pax,
    record,
    spelled,
)

GOOD = entry(b"manifests/good.yaml", b"good: true\n")
KEPT = {"manifests/good.yaml": b"good: true\n"}
LINKS = {"hard link": HARD_LINK, "symbolic link": SYMLINK}
SPECIAL = {"character device": CHARACTER, "block device": BLOCK_DEVICE, "fifo": FIFO}


@dataclass(frozen=True)
class Case:
    """Layers of an image, and either why they are refused or which files they hold."""

    name: str
    layers: tuple[bytes, ...]
    refused: str = ""
    files: dict[str, bytes] | None = None


def cases() -> Iterator[Case]:
    """All of them that are small."""
    yield from _names()
    yield from _harmless_names()
    yield from _links_and_devices()
    yield from _written_through_links()
    yield from _types()
    yield from _sizes()
    yield from _headers()
    yield from _pax_headers()
    yield from _whiteouts()
    yield from _duplicates()
    yield from _compression()


def refused(name: str, body: bytes, why: str) -> Case:
    """A single layer that is refused although good files surround the bad."""
    return Case(name, (GOOD + body + GOOD + END,), refused=why)


def harmless(name: str, body: bytes, **more: bytes) -> Case:
    """A single layer of which only the good is left."""
    return Case(name, (GOOD + body + END,), files={**KEPT, **more})


BAD_NAMES: dict[str, tuple[bytes, str]] = {
    "up from the root": (b"../x", "climbs up"),
    "up to a sibling": (b"../manifests/x", "climbs up"),
    "up within": (b"manifests/../x", "climbs up"),
    "up twice": (b"manifests/../../etc/passwd", "climbs up"),
    "up after a dot": (b"./../x", "climbs up"),
    "up at the end": (b"manifests/..", "climbs up"),
    "only up": (b"..", "climbs up"),
    "up and back": (b"a/../manifests/x", "climbs up"),
    "up out of a foreign directory": (b"usr/share/../../../x", "climbs up"),
    "up by backslashes": (b"..\\x", "climbs up"),
    "up by mixed slashes": (b"manifests\\../x", "climbs up"),
    "absolute": (b"/manifests/x", "absolute"),
    "absolute twice": (b"//manifests/x", "absolute"),
    "absolute with a dot": (b"/./manifests/x", "absolute"),
    "absolute by a backslash": (b"\\manifests\\x", "backslash"),
    "backslash as slash": (b"manifests\\x", "backslash"),
    "backslash further down": (b"manifests/a\\b", "backslash"),
    "newline": (b"manifests/a\nb", "control"),
    "carriage return": (b"manifests/a\rb", "control"),
    "tab": (b"manifests/a\tb", "control"),
    "escape sequence": (b"manifests/\x1b[2J", "control"),
    "delete": (b"manifests/\x7f", "control"),
    "next line of C1": ("manifests/\x85".encode(), "control"),
    "Latin-1": (b"manifests/\xe9.yaml", "not UTF-8"),
    "overlong slash": (b"manifests/a\xc0\xafb", "not UTF-8"),
    "surrogate": (b"manifests/\xed\xa0\x80", "not UTF-8"),
    "long component": (b"manifests/" + b"n" * 256, "a name of"),
    "long path": (b"manifests/" + b"/".join([b"n" * 200] * 6), "a name of"),
    "longer than any": (b"manifests/" + b"/".join([b"n" * 200] * 25), "a name of"),
    "long elsewhere": (b"usr/" + b"/".join([b"n" * 200] * 25), "a name of"),
    "deep": (b"manifests/" + b"d/" * 40 + b"x", "deep"),
    "deep elsewhere": (b"usr/" + b"d/" * 300 + b"x", "deep"),
    "file with a slash": (b"manifests/x/", "should be a directory"),
    "wanted directory as a file": (b"manifests", "should be a directory"),
    "wanted directory as a file, dotted": (b"./manifests/.", "should be a directory"),
    "root as a file": (b"./.", "should be a directory"),
}


def _names() -> Iterator[Case]:
    for what, (name, why) in BAD_NAMES.items():
        for way, body in spelled(name).items():
            yield refused(f"name: {what} ({way})", body, why)
    nul = b"manifests/a\0/../../x"
    yield refused("name: NUL (pax)", pax([(b"path", nul)]) + entry(b"s"), "NUL")
    yield refused("name: NUL (gnu)", long_name(nul) + entry(b"s"), "NUL")
    yield refused("name: none (ustar)", entry(b""), "a name of 0")
    yield refused("name: none (gnu)", entry(b"L", b"\0\0", b"L") + entry(b"s"), "a name of 0")
    yield refused("name: prefix climbs", entry(b"x", prefix=b".."), "climbs up")
    yield refused("name: prefix is absolute", entry(b"x", prefix=b"/manifests"), "absolute")


def _harmless_names() -> Iterator[Case]:
    ignored = {
        "other case": b"Manifests/x",
        "upper case": b"MANIFESTS/x",
        "space after": b"manifests /x",
        "dot after": b"manifests./x",
        "longer": b"manifests2/x",
        "in a directory": b"opt/manifests/x",
        "fullwidth slash": "manifests／x".encode(),
        "zero width space": "manifests\u200b/x".encode(),
        "long s": "manife\u017fts/x".encode(),
        "systemd unit": b"usr/lib/system-systemd\\x2dcryptsetup.slice",
        "absolute elsewhere": b"/etc/passwd",
        "Latin-1 elsewhere": b"usr/share/\xe9",
        "newline elsewhere": b"usr/share/a\nb",
    }
    for what, name in ignored.items():
        for way, body in spelled(name).items():
            yield harmless(f"ignored name: {what} ({way})", body)
    for name in (b"./manifests/x", b"manifests//x", b"././/manifests/././x"):
        yield harmless(f"plain after all: {name.decode()}", entry(name, b"1"), **{"manifests/x": b"1"})
    both = entry(b"manifests/A", b"1") + entry(b"manifests/a", b"2")
    yield harmless("two cases", both, **{"manifests/A": b"1", "manifests/a": b"2"})
    composed = entry("manifests/\u00e9".encode(), b"1") + entry("manifests/e\u0301".encode(), b"2")
    yield harmless("two forms", composed, **{"manifests/\u00e9": b"1", "manifests/e\u0301": b"2"})
    yield harmless("magic of no one", entry(b"manifests/v7", b"1", magic=V7), **{"manifests/v7": b"1"})
    gnu = entry(b"manifests/g", b"1", magic=GNU, prefix=b"00000000000\x0000000000000\0")
    yield harmless("GNU times where ustar has a prefix", gnu, **{"manifests/g": b"1"})
    gnu = entry(b"g", b"1", magic=GNU, prefix=b"manifests")
    yield refused("a prefix where GNU has times, which Go reads as one", gnu, "malformed number")
    star = bytearray(entry(b"s", prefix=b"manifests/".ljust(131, b"x") + b"00000000000 00000000000 "))
    star[508:512], star[148:156] = b"tar\0", b" " * 8
    star[148:156] = b"%06o\0 " % sum(star)
    yield refused("a prefix of star, which ends before its times for Go", bytes(star), "header of star")


def _links_and_devices() -> Iterator[Case]:
    places = (b"manifests/x", b"manifests", b"./manifests/", b"metadata/deep/er", b"/metadata", b".")
    for what, kind in {**LINKS, **SPECIAL}.items():
        for place in places:
            body = entry(place, kind=kind, link=b"/etc/passwd")
            yield refused(f"{what} at {place.decode()}", body, f"is a {what}")
        yield harmless(f"{what} elsewhere", entry(b"usr/bin/x", kind=kind, link=b"../../manifests/good.yaml"))
    through = entry(b"manifests", kind=SYMLINK, link=b"/etc") + entry(b"manifests/passwd", b"root")
    yield Case("file through a link", (through + END,), refused="is a symbolic link")
    alias = entry(b"alias", kind=SYMLINK, link=b"manifests") + entry(b"alias/x", b"1")
    yield refused("link to the wanted directory", alias, "through a link")
    below = entry(b"manifests", kind=SYMLINK, link=b"configs")
    yield Case("link in a lower layer", (below + END, GOOD + END), refused="is a symbolic link")
    chain = entry(b"manifests/a", kind=HARD_LINK, link=b"manifests/good.yaml")
    yield refused("hard link to a wanted file", chain, "is a hard link")
    long_target = long_name(b"../" * 60 + b"etc/passwd", b"K") + entry(b"manifests/l", kind=SYMLINK)
    yield refused("link with a long target", long_target, "is a symbolic link")


def _types() -> Iterator[Case]:
    for number in b"SVMDNXAZIE89a\x01\xff":
        body = entry(b"usr/x", b"1", bytes([number]))
        yield refused(f"type {number:#x}", body, "sparse" if number == ord("S") else "unknown type")
    yield harmless("type contiguous", entry(b"manifests/c", b"1", b"7"), **{"manifests/c": b"1"})
    yield harmless("type of old", entry(b"manifests/o", b"1", b"\0"), **{"manifests/o": b"1"})
    yield harmless("directory of old", entry(b"manifests/d/", kind=b"\0"))
    for what, kind in {**LINKS, **SPECIAL, "directory": DIRECTORY}.items():
        body = entry(b"usr/x", b"hidden", kind)
        yield refused(f"{what} with content", body, "bytes of content")
        yield refused(f"{what} with content by PAX", pax([(b"size", b"6")]) + body, "bytes of content")


def _sizes() -> Iterator[Case]:
    fields = {
        "base-256 negative": (b"\xff" * 12, "negative or absurd"),
        "base-256 most negative": (b"\xc0" + bytes(11), "negative or absurd"),
        "base-256 absurd": (b"\x80" + b"\xff" * 11, "negative or absurd"),
        "base-256 of 2**63": (b"\x80\0\0\0\x80" + bytes(7), "negative or absurd"),
        "base-256 of 10 GiB": (b"\x80" + (10 << 30).to_bytes(11, "big"), "an entry of"),
        "octal 8 GiB": (b"77777777777\0", "an entry of"),
        "minus": (b"-0000000001\0", "malformed number"),
        "letters": (b"deadbeef\0\0\0\0", "malformed number"),
        "decimal": (b"00000000009\0", "malformed number"),
        "two numbers": (b"0000 000001\0", "malformed number"),
        "NUL between": (b"1\x000000000001", "malformed number"),
    }
    for what, (field, why) in fields.items():
        yield refused(f"size: {what}", header(b"manifests/x", field), why)
        yield refused(f"size elsewhere: {what}", header(b"usr/x", field), why)
    for value in (b"-1", b"+1", b"0x10", b"1e3", b" 1", "\u0661".encode(), b"9" * 40, b"1_0"):
        yield refused(
            f"PAX size {value!r}", pax([(b"size", value)]) + entry(b"manifests/x", b"1"), "malformed size"
        )
    ten = pax([(b"size", str(10 << 30).encode())])
    yield refused("PAX size of 10 GiB", ten + entry(b"manifests/x", b"1"), "an entry of")
    hidden = entry(b"manifests/evil", b"evil")
    smuggled = pax([(b"size", b"%d" % len(hidden))]) + header(b"manifests/x", 0) + hidden
    yield harmless("PAX size over header size", smuggled, **{"manifests/x": hidden})
    other = pax([(b"size", b"0")]) + header(b"usr/x", len(hidden)) + hidden
    yield harmless("PAX size of nothing", other, **{"manifests/evil": b"evil"})
    yield harmless("base-256 of three", entry(b"manifests/x", b"abc", size=b"\x80" + bytes(10) + b"\3"),
                   **{"manifests/x": b"abc"})  # fmt: skip


def _headers() -> Iterator[Case]:
    yield refused("checksum: wrong", entry(b"usr/x", checksum=b"000001\0 "), "wrong checksum")
    yield refused("checksum: none", entry(b"usr/x", checksum=bytes(8)), "wrong checksum")
    yield refused("checksum: letters", entry(b"usr/x", checksum=b"checksum"), "malformed number")
    yield refused("garbage block", random.Random(1).randbytes(512), "header")
    yield Case("ends in a header", ((GOOD + GOOD)[:-600],), refused="middle of a header")
    yield Case(
        "ends in a file", (GOOD + header(b"manifests/x", 2000) + b"x" * 512,), refused="middle of a file"
    )
    yield Case(
        "ends in a skipped file", (GOOD + header(b"usr/x", 2000) + b"x" * 512,), refused="middle of a file"
    )
    yield Case("ends after a header", (GOOD + header(b"manifests/x", 1),), refused="middle of a file")
    yield Case("ends in a PAX header", (GOOD + header(b"x", 2000, b"x"),), refused="middle of a name or PAX")
    yield Case("ends after a PAX header", (GOOD + pax([(b"path", b"x")]) + END,), refused="never comes")
    yield Case("ends without an end", (GOOD,), files=KEPT)
    yield Case("ends without padding", ((GOOD + header(b"manifests/x", 1)) + b"1",),
               files={**KEPT, "manifests/x": b"1"})  # fmt: skip
    yield Case("ends with one block", (GOOD + bytes(512),), files=KEPT)
    yield Case("nothing after the end counts", (GOOD + END + entry(b"manifests/late", b"1"),), files=KEPT)
    yield Case("one empty block is an end", (GOOD + bytes(512) + entry(b"manifests/late", b"1"),), files=KEPT)
    yield Case("garbage after the end", (GOOD + END + b"garbage" * 999,), files=KEPT)
    yield Case("no bytes at all", (b"",), files={})
    yield Case("only an end", (END,), files={})
    yield Case("a text", (b"This is not an archive.\n" * 99,), refused="malformed number")
    yield Case("a document", (b'{"schemaVersion":2}',), refused="middle of a header")


def _pax_headers() -> Iterator[Case]:
    big = header(b"x", 2 << 20, b"x") + b"a" * 512
    yield refused("PAX: two megabytes", big, "at most")
    yield refused("PAX: long name of 1 GiB", header(b"x", 1 << 30, b"L"), "at most")
    many = pax([(b"k%d" % number, b"v") for number in range(1001)])
    yield refused("PAX: a thousand records", many + entry(b"x"), "malformed PAX")
    broken = {
        "no length": b"path=x\n",
        "length of zero": b"0 path=x\n",
        "leading zero": b"09 path=x\n",
        "too long": b"99 path=x\n",
        "too short": b"5 path=x\n",
        "absurd length": b"99999999999999999999 path=x\n",
        "negative length": b"-9 path=x\n",
        "no newline": b"9 path=xy",
        "no equals": b"8 pathx\n",
        "no key": b"5 =x\n",
        "NULs": bytes(20),
        "rubbish after": record(b"path", b"manifests/x") + b"rubbish",
        "padding counted": record(b"path", b"manifests/x").ljust(512, b"\0"),
    }
    for what, data in broken.items():
        yield refused(f"PAX: {what}", pax(data) + entry(b"x"), "malformed PAX")
    for key in (b"major", b"name", b"map", b"size", b"realsize", b"numblocks"):
        body = pax([(b"GNU.sparse." + key, b"1")])
        yield refused(f"PAX: sparse {key.decode()}", body + entry(b"manifests/x"), "sparse")
    two = record(b"path", b"manifests/a") + record(b"path", b"manifests/b")
    yield refused("PAX: two paths", pax(two) + entry(b"x"), "two PAX records")
    yield refused("PAX: two sizes", pax([(b"size", b"1"), (b"size", b"2")]) + entry(b"x"), "two PAX records")
    named = pax([(b"path", b"manifests/a")])
    yield refused("PAX: two headers", named + named + entry(b"x"), "two extension headers")
    yield refused("GNU: two names", long_name(b"a") + long_name(b"b") + entry(b"x"), "two extension headers")
    yield refused("PAX after GNU", long_name(b"a") + named + entry(b"x"), "both a GNU and a PAX")
    yield refused("GNU after PAX", named + long_name(b"a") + entry(b"x"), "both a GNU and a PAX")
    for key in (b"path", b"size", b"linkpath", b"GNU.sparse.major"):
        yield refused(f"PAX: global {key.decode()}", pax([(key, b"1")], b"g"), "global PAX header")
    comment = pax([(b"comment", b"0" * 40)], b"g")
    yield harmless("PAX: global comment", comment)
    for way, data in spelled(b"manifests/z").items():
        if len(data) > 1024:  # Go forgets a name that comes before a global header
            cut = data[:-1024] + comment + data[-1024:]
            yield refused(f"PAX: global between a name and its entry, {way}", cut, "a global header between")
    yield harmless(
        "PAX: attribute with a newline", pax([(b"SCHILY.xattr.user.a", b"\n\0=\n")]) + entry(b"usr/x")
    )
    empty = pax([(b"path", b"")]) + entry(b"manifests/x", b"1")
    yield harmless("PAX: path taken back", empty, **{"manifests/x": b"1"})
    target = pax([(b"linkpath", b"/etc/passwd")]) + entry(b"manifests/x", b"1")
    yield harmless("PAX: target of a file", target, **{"manifests/x": b"1"})


def _whiteouts() -> Iterator[Case]:
    bad = {
        "of nothing": (entry(b"manifests/.wh."), "malformed whiteout"),
        "of itself": (entry(b"manifests/.wh.."), "malformed whiteout"),
        "of its parent": (entry(b"manifests/.wh..."), "malformed whiteout"),
        "as a directory": (entry(b"manifests/.wh.x/", kind=DIRECTORY), "malformed whiteout"),
        "as a link": (entry(b"manifests/.wh.x", kind=SYMLINK), "is a symbolic link"),
        "as a device": (entry(b"manifests/.wh.x", kind=CHARACTER), "is a character device"),
        "opaque as a link": (entry(b"manifests/.wh..wh..opq", kind=HARD_LINK), "is a hard link"),
        "with a file in it": (entry(b"manifests/.wh.d/x"), "lies in a whiteout"),
        "in a whiteout": (entry(b"manifests/.wh.d/.wh.x"), "lies in a whiteout"),
        "by a climbing name": (entry(b"usr/../manifests/.wh.good.yaml"), "climbs up"),
        "absolute": (entry(b"/manifests/.wh.good.yaml"), "absolute"),
        "with a backslash": (entry(b"manifests\\.wh.good.yaml"), "backslash"),
        "device of overlayfs": (entry(b"manifests/good.yaml", kind=CHARACTER), "is a character device"),
    }
    for what, (body, why) in bad.items():
        yield Case(f"whiteout {what}", (GOOD + END, body + END), refused=why)
    gone = {
        "of a file": entry(b"manifests/.wh.good.yaml"),
        "of a directory": entry(b".wh.manifests"),
        "opaque": entry(b"manifests/.wh..wh..opq"),
        "opaque at the root": entry(b"./.wh..wh..opq"),
        "with content": entry(b"manifests/.wh.good.yaml", b"ignored"),
        "twice": entry(b"manifests/.wh.good.yaml") * 2,
    }
    for what, body in gone.items():
        yield Case(f"whiteout {what}", (GOOD + END, body + END), files={})
        yield Case(f"whiteout {what}, in the same layer", (GOOD + body + END,), files=KEPT)
        yield Case(f"whiteout {what}, first in the same layer", (body + GOOD + END,), files=KEPT)
    for name in (
        b".wh.other",
        b"usr/.wh.manifests",
        b".wh..wh.plnk",
        b"manifests/.wh..wh.aufs",
        b".wh...",
        b".wh.",
    ):
        yield Case(
            f"whiteout of something else: {name.decode()}", (GOOD + END, entry(name) + END), files=KEPT
        )
    back = (GOOD + END, entry(b".wh.manifests") + END, entry(b"manifests/new", b"1") + END)
    yield Case("a directory that comes back", back, files={"manifests/new": b"1"})


def _duplicates() -> Iterator[Case]:
    again = entry(b"manifests/good.yaml", b"changed")
    yield harmless("a file twice: the later counts", again, **{"manifests/good.yaml": b"changed"})
    yield harmless("a file thrice", again + again + entry(b"./manifests//good.yaml", b"3"),
                   **{"manifests/good.yaml": b"3"})  # fmt: skip
    directory = entry(b"manifests/good.yaml/", kind=DIRECTORY)
    yield Case("a file becomes a directory", (GOOD + directory + END,), files={})
    child = entry(b"manifests/good.yaml/x", b"1")
    yield Case("a file with a file in it", (GOOD + child + END,), refused="goes through a file")
    yield Case(
        "a file of a lower layer with a file in it", (GOOD + END, child + END), refused="is a file in one"
    )
    inside = {"manifests/good.yaml/x": b"1"}
    yield Case("a file replaced by a directory", (GOOD + END, directory + child + END), files=inside)
    yield Case("a directory replaced by a file", (child + END, GOOD + END), files=KEPT)
    yield Case("a directory replaced in its layer", (child + GOOD + END,), files=KEPT)
    back = child + GOOD + directory
    yield Case("replaced and made again", (child + END, back + END), files={})
    yield Case(
        "directories many times", (entry(b"manifests/", kind=DIRECTORY) * 50 + GOOD + END,), files=KEPT
    )
    yield Case(
        "whole directory twice", (entry(b"manifests/d/x", b"1") * 2 + END,), files={"manifests/d/x": b"1"}
    )


def _compression() -> Iterator[Case]:
    plain = GOOD + END
    packed = gzip.compress(plain, mtime=0)
    zstd = zstandard.ZstdCompressor(write_checksum=True).compress(plain)
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    yield Case("gzip", (packed,), files=KEPT)
    yield Case("zstd", (zstd,), files=KEPT)
    yield Case("gzip in members", (gzip.compress(plain[:700]) + gzip.compress(plain[700:]),), files=KEPT)
    halves = (zstandard.ZstdCompressor().compress(half) for half in (plain[:700], plain[700:]))
    yield Case("zstd in frames", (skippable + b"".join(halves) + skippable,), files=KEPT)
    yield Case("gzip with a name and comment", (_gzip_with_fields(plain),), files=KEPT)
    yield Case("gzip cut to 1", (packed[:1],), refused="middle of a header")
    for count in (5, 9, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        yield Case(f"gzip cut to {count}", (packed[:count],), refused="ends too early")
    for count in (5, len(zstd) // 2, len(zstd) - 1):
        yield Case(f"zstd cut to {count}", (zstd[:count],), refused="ends too early")
    yield Case(
        "gzip with a wrong checksum", (packed[:-8] + b"\0\0\0\0" + packed[-4:],), refused="malformed gzip"
    )
    yield Case("gzip with a wrong length", (packed[:-4] + b"\0\0\0\0",), refused="malformed gzip")
    yield Case("gzip with rubbish after it", (packed + b"rubbish",), refused="malformed gzip")
    yield Case("gzip with zeros after it", (packed + bytes(512),), refused="malformed gzip")
    yield Case("gzip by another method", (packed[:2] + b"\x07" + packed[3:],), refused="malformed gzip")
    yield Case("zstd with a wrong checksum", (zstd[:-4] + b"\0\0\0\0",), refused="malformed zstd")
    yield Case("zstd with rubbish after it", (zstd + b"rubbish",), refused="malformed zstd")
    yield Case(
        "zstd with a window of 2 GiB", (b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(20),), refused="malformed zstd"
    )
    yield Case("zstd with a dictionary", (_zstd_with_dictionary(plain),), refused="malformed zstd")
    yield Case("gzip in gzip", (gzip.compress(packed, mtime=0),), refused="middle of a header")
    yield Case("bzip2", (bz2.compress(plain),), refused="middle of a header")
    yield Case("xz", (lzma.compress(plain),), refused="middle of a header")
    yield Case("zlib", (zlib.compress(plain),), refused="middle of a header")


def _gzip_with_fields(data: bytes) -> bytes:
    packed = gzip.compress(data, mtime=0)
    return packed[:3] + b"\x1c" + packed[4:10] + b"\x02\0ab" + b"name\0" + b"comment\0" + packed[10:]


def _zstd_with_dictionary(data: bytes) -> bytes:
    dictionary = zstandard.ZstdCompressionDict(GOOD * 20, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(dict_data=dictionary).compress(data)


def _written_through_links() -> Iterator[Case]:
    """Links elsewhere that lead into wanted directories: extractors find more there than we would."""
    usr = _link(b"opt/l", b"/usr")
    into = {
        "relative": _link(b"opt/l", b"../manifests"),
        "absolute": _link(b"opt/l", b"/manifests"),
        "of links": _link(b"a", b"b/c") + _link(b"b/c", b"../manifests") + _link(b"opt/l", b"../a"),
        "past another": _link(b"e/f", b"/usr") + _link(b"opt/l", b"/e/f/../manifests"),
        "with a PAX name": pax([(b"linkpath", b"/manifests")]) + usr,
        "with a GNU name": long_name(b"/manifests", b"K") + usr,
    }
    for way, link in into.items():
        for what, name in (("file", b"opt/l/x"), ("whiteout", b"opt/l/.wh.x"), ("other link", b"opt/l/d/x")):
            yield refused(f"link {way}: a {what} through it", link + entry(name), "through a link")
        layers = (GOOD + link + END, entry(b"opt/l/x") + END)
        yield Case(f"link {way}: in the next layer", layers, refused="through a link")
    root = _link(b"opt/l", b"..") + entry(b"opt/l/manifests/", kind=DIRECTORY)
    yield refused("link to the root: a directory through it", root, "through a link")
    circle = _link(b"opt/l", b"m") + _link(b"opt/m", b"l") + entry(b"opt/l/x")
    yield refused("link: in a circle", circle, "too many links")
    yield harmless("link elsewhere: a file through it", usr + entry(b"opt/l/x"))
    real = into["absolute"] + entry(b"opt/l/", kind=DIRECTORY) + entry(b"opt/l/x")
    yield harmless("link: replaced by a directory", real)
    yield refused("link: two PAX targets", pax([(b"linkpath", b"a")] * 2) + usr, "two PAX records")
    both = long_name(b"a", b"K") + pax([(b"linkpath", b"b")]) + usr
    yield refused("link: a GNU and a PAX target", both, "both a GNU and a PAX")


def _link(name: bytes, target: bytes) -> bytes:
    return entry(name, kind=SYMLINK, link=target)
