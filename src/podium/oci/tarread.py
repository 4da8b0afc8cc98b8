"""A strict reader of tar archives: names and contents in, nothing ever written.

Reads ustar, GNU long names and PAX, which is what image builders write. Whatever two tar readers could
understand differently is refused instead of guessed: sparse files, two names for one entry, sizes on
entries that have no content, a name that a global header separates from its entry, prefixes in headers of
formats that have none, negative or absurd numbers. (Python's own tarfile is lenient by design, and 3.11
lacks its fixes of 2025.) Fields that do not matter here (owners, times, modes) are not even parsed.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import NamedTuple

from podium.oci.errors import Unacceptable
from podium.oci.inflate import Inflated
from podium.oci.limits import Tally

BLOCK = 512
# Long names and PAX headers are held in memory; Go's reader draws the line here, too.
MAX_EXTENSION = 1 << 20
MAX_RECORDS = 1000
MAX_NAME = 4096  # no file system takes more

_ZEROS = bytes(BLOCK)
_OCTAL = re.compile(rb"[0-7]+")
_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ([^=\n\0]+)=")


class Kind(enum.Enum):
    """What an entry is."""

    FILE = "file"
    DIRECTORY = "directory"
    HARD_LINK = "hard link"
    SYMLINK = "symbolic link"
    CHARACTER_DEVICE = "character device"
    BLOCK_DEVICE = "block device"
    FIFO = "fifo"


class Member(NamedTuple):
    """One entry of an archive, its name as it was written."""

    name: bytes
    kind: Kind
    size: int
    target: bytes = b""  # of a symbolic link


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,  # "contiguous": everyone reads it as a file
    b"1": Kind.HARD_LINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.CHARACTER_DEVICE,
    b"4": Kind.BLOCK_DEVICE,
    b"5": Kind.DIRECTORY,
    b"6": Kind.FIFO,
}
_EXTENSIONS = (b"x", b"g", b"L", b"K")
_SPARSE = b"S"
_SYMLINK = b"2"


class Archive:
    """The members of a tar stream, in order; `content` gives the bytes of the one just iterated to."""

    def __init__(self, stream: Inflated, tally: Tally) -> None:
        self._stream = stream
        self._tally = tally
        self._unread = 0  # content of the current member that nobody has asked for
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        extension = _Extension()
        while block := self._header():
            name, flag, size = _parse(block)
            if flag in _EXTENSIONS:
                extension.add(flag, self._extension(size), self._tally)
                continue
            target = block[157:257].split(b"\0", 1)[0] if flag == _SYMLINK else b""
            member = _member(name, flag, size, target, extension)
            self._tally.announced(member.size)
            extension = _Extension()
            self._unread, self._padding = member.size, -member.size % BLOCK
            yield member
            self._skip_rest()
        if extension.names:
            raise Unacceptable("the archive ends with the name of an entry that never comes")

    def content(self) -> bytes:
        """The bytes of the member that iteration has reached; only once."""
        data = self._stream.read(self._unread)
        if len(data) != self._unread:
            raise Unacceptable("the archive ends in the middle of a file")
        self._unread = 0
        return data

    def chunks(self, size: int) -> Iterator[bytes]:
        """The same in pieces of at most this size."""
        while self._unread:
            data = self._stream.read(min(size, self._unread))
            if not data:
                raise Unacceptable("the archive ends in the middle of a file")
            self._unread -= len(data)
            yield data

    def _header(self) -> bytes:
        """The next header block; nothing at the end, which is a block of zeros or the end of the stream."""
        block = self._stream.read(BLOCK)
        if not block or block == _ZEROS:
            return b""
        if len(block) < BLOCK:
            raise Unacceptable("the archive ends in the middle of a header")
        self._tally.entry()
        return block

    def _extension(self, size: int) -> bytes:
        if size > MAX_EXTENSION:
            raise Unacceptable(f"a name or PAX header of {size} bytes; at most {MAX_EXTENSION} are read")
        data = self._stream.read(size)
        if len(data) != size:
            raise Unacceptable("the archive ends in the middle of a name or PAX header")
        self._stream.skip(-size % BLOCK)
        return data

    def _skip_rest(self) -> None:
        """Pass over what is left of the current member; only the padding of the very last may be missing."""
        if self._stream.skip(self._unread + self._padding) < self._unread:
            raise Unacceptable("the archive ends in the middle of a file")


class _Extension:
    """What the headers before an entry say about it."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.targets: list[bytes] = []
        self.size: int | None = None
        self._seen: set[bytes] = set()

    def add(self, flag: bytes, data: bytes, tally: Tally) -> None:
        """Take one extension header."""
        if flag == b"g":
            if self._seen:  # Go forgets what came before it, GNU tar does not
                raise Unacceptable("a global header between an entry and the header that describes it")
            _refuse_overrides(dict(_records(data, tally)))
            return
        if flag in self._seen:
            raise Unacceptable("two extension headers of one kind for one entry")
        self._seen.add(flag)
        if flag == b"L":
            self.names.append(_terminated(data))
        elif flag == b"K":
            self.targets.append(_terminated(data))
        elif flag == b"x":
            self._pax(data, tally)

    def _pax(self, data: bytes, tally: Tally) -> None:
        seen: set[bytes] = set()
        for key, value in _records(data, tally):
            if key.startswith(b"GNU.sparse."):
                raise Unacceptable("a sparse file")
            if key in (b"path", b"size", b"linkpath"):
                if key in seen:
                    raise Unacceptable(f"two PAX records {key.decode()!r} for one entry")
                seen.add(key)
            if key == b"path" and value:
                self.names.append(value)
            if key == b"linkpath" and value:
                self.targets.append(value)
            if key == b"size" and value:
                if not value.isdigit() or len(value) > 18:
                    raise Unacceptable(f"malformed size in a PAX header: {value[:40]!r}")
                self.size = int(value)


def _member(name: bytes, flag: bytes, size: int, target: bytes, extension: _Extension) -> Member:
    """The entry that a header and the extensions before it describe."""
    if flag == _SPARSE:
        raise Unacceptable("a sparse file")
    kind = _KINDS.get(flag)
    if kind is None:
        raise Unacceptable(f"an entry of unknown type {flag!r}")
    if len(extension.names) > 1 or len(extension.targets) > 1:
        raise Unacceptable("an entry with both a GNU and a PAX name")
    if extension.names:
        name = extension.names[0]
    if extension.targets and kind is Kind.SYMLINK:
        target = extension.targets[0]
    if extension.size is not None:
        size = extension.size
    if flag == b"\0" and name.endswith(b"/"):
        kind = Kind.DIRECTORY  # how tar said it before directories had a type
    if kind is not Kind.FILE and size:
        raise Unacceptable(f"a {kind.value} with {size} bytes of content")
    if not 0 < len(name) <= MAX_NAME:
        raise Unacceptable(f"a name of {len(name)} bytes")
    if len(target) > MAX_NAME:
        raise Unacceptable(f"a link to a name of {len(target)} bytes")
    return Member(name, kind, size, target)


def _parse(block: bytes) -> tuple[bytes, bytes, int]:
    """Name, type and size in a header block whose checksum is right."""
    field = block[148:156]
    if sum(block) - sum(field) + 8 * 32 != _number(field):
        raise Unacceptable("wrong checksum in an archive header")
    name = block[:100].split(b"\0", 1)[0]
    if prefix := _prefix(block):
        name = prefix + b"/" + name
    return name, block[156:157], _number(block[124:136])


def _prefix(block: bytes) -> bytes:
    """What stands before the name; only ustar has it, and readers disagree on when others do."""
    if block[257:263] == b"ustar\0":
        if block[508:] == b"tar\0" and b"\0" not in block[345:476]:
            raise Unacceptable("a header of star, whose prefix ends earlier for some readers")
        return block[345:500].split(b"\0", 1)[0]
    if block[257:265] == b"ustar  \0":
        # GNU keeps times here; Go takes what is no time for a prefix, as its own writer once made it.
        for times in (block[345:357], block[357:369]):
            if times[0]:
                _number(times)
    return b""


def _number(field: bytes) -> int:
    """An octal or base-256 number; never negative."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") & ~(0x80 << 8 * (len(field) - 1))
        if field[0] & 0x40 or value >= 1 << 62:
            raise Unacceptable("a negative or absurd number in an archive header")
        return value
    text = field.strip(b" \0")
    if not text:
        return 0
    if not _OCTAL.fullmatch(text):
        raise Unacceptable(f"malformed number in an archive header: {field!r}")
    return int(text, 8)


def _records(data: bytes, tally: Tally) -> Iterator[tuple[bytes, bytes]]:
    """The records of a PAX header: each is its own length, a key and a value."""
    position, count = 0, 0
    while position < len(data):
        tally.record()
        count += 1
        match = _RECORD.match(data, position)
        end = position + int(match[1]) if match else 0
        if not match or end > len(data) or end <= match.end() or data[end - 1] != 0x0A or count > MAX_RECORDS:
            raise Unacceptable("malformed PAX header")
        value = data[match.end() : end - 1]
        if b"\0" in value and match[2] in (b"path", b"linkpath"):
            raise Unacceptable(f"a NUL in a name: {value[:80]!r}")
        yield match[2], value
        position = end


def _refuse_overrides(records: dict[bytes, bytes]) -> None:
    """Global headers may carry comments, not names and sizes for whatever follows."""
    for key in records:
        if key in (b"path", b"size", b"linkpath") or key.startswith(b"GNU.sparse."):
            raise Unacceptable(f"a global PAX header that sets {key.decode(errors='replace')!r}")


def _terminated(data: bytes) -> bytes:
    """A GNU long name without the NUL that ends it."""
    name = data.rstrip(b"\0")
    if b"\0" in name:
        raise Unacceptable(f"a NUL in a name: {name[:80]!r}")
    return name
