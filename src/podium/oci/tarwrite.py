"""Tar archives that are the same bytes for the same files, on every machine.

Entries are sorted, belong to root, carry one given time, and their directories come before them. Names
that fit are plain ustar; longer ones, and those that are not ASCII, get a PAX header, which every reader
understands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from podium.oci import names
from podium.oci.errors import Unacceptable
from podium.oci.limits import Limits
from podium.oci.tarread import BLOCK

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755

_FILE, _DIRECTORY, _PAX = b"0", b"5", b"x"
_OCTAL_LIMIT = 8**11  # what the octal fields for size and time can hold
TIME_LIMIT = _OCTAL_LIMIT  # the first second that no archive of ours can hold, in the year 2242
# What we write we must be willing to read; sizes are the caller's business.
_NAMES = Limits(depth=100, name=4096)


def archive(
    files: Mapping[str, bytes],
    *,
    modes: Mapping[str, int] | None = None,
    mtime: int = 0,
    removed: Collection[str] = (),
    emptied: Collection[str] = (),
) -> Iterator[bytes]:
    """The archive in pieces; `removed` paths and what `emptied` directories hold vanish from lower layers."""
    if not 0 <= mtime < TIME_LIMIT:
        raise ValueError(f"a time that no archive can hold: {mtime}")
    modes = modes or {}
    contents = dict(_contents(files, removed, emptied))
    for directory in _directories(contents):
        if directory in contents:
            raise Unacceptable(f"{directory} is both a file and a directory")
    for path in sorted([*contents, *(f"{directory}/" for directory in _directories(contents))]):
        if path.endswith("/"):
            yield _header(path, 0, _DIRECTORY, modes.get(path.rstrip("/"), DIRECTORY_MODE), mtime)
            continue
        data = contents[path]
        yield _header(path, len(data), _FILE, modes.get(path, FILE_MODE), mtime)
        yield data
        yield bytes(-len(data) % BLOCK)
    yield bytes(2 * BLOCK)


def _contents(
    files: Mapping[str, bytes], removed: Collection[str], emptied: Collection[str]
) -> Iterator[tuple[str, bytes]]:
    """All files of the archive by their plain paths, whiteouts among them."""
    seen: set[str] = set()
    for path, data in files.items():
        plain = _plain(path)
        if plain in seen:
            raise Unacceptable(f"two files are called {plain}")
        seen.add(plain)
        yield plain, data
    for path in removed:
        parent, slash, name = _plain(path).rpartition("/")
        yield f"{parent}{slash}{names.WHITEOUT.decode()}{name}", b""
    for path in emptied:
        inside = _plain(path.rstrip("/")) + "/" if path.strip("./") else ""
        yield inside + names.OPAQUE.decode(), b""


def _plain(path: str) -> str:
    """A path as it is written into archives: what `unpack` would refuse to read is refused here."""
    try:
        name = path.encode()
    except UnicodeEncodeError:
        raise Unacceptable(f"a name that is not Unicode: {path!a}") from None
    names.split(name)
    parts = names.plain(name, _NAMES)
    if not parts or path.endswith("/"):
        raise Unacceptable(f"not the name of a file: {path!r}")
    if any(part.startswith(names.WHITEOUT.decode()) for part in parts):
        raise Unacceptable(f"{path}: a name that begins with .wh. means that something is deleted")
    return "/".join(parts)


def _directories(paths: Collection[str]) -> set[str]:
    """Every directory that some files lie in."""
    found: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _header(path: str, size: int, kind: bytes, mode: int, mtime: int) -> bytes:
    """The header of one entry, after a PAX header if ustar cannot say it."""
    fitting = _split(path.encode())
    if fitting and size < _OCTAL_LIMIT:
        return _block(*fitting, size, kind, mode, mtime)
    records = b"" if fitting else _record(b"path", path.encode())
    if size >= _OCTAL_LIMIT:
        records += _record(b"size", str(size).encode())
    extended = _block(b"", b"PaxHeaders/pax", len(records), _PAX, FILE_MODE, mtime)
    short = fitting or (b"", path.encode("ascii", "replace")[:100])
    return b"".join(
        (
            extended,
            records,
            bytes(-len(records) % BLOCK),
            _block(*short, min(size, _OCTAL_LIMIT - 1), kind, mode, mtime),
        )
    )


def _split(name: bytes) -> tuple[bytes, bytes] | None:
    """Prefix and name as ustar stores them; None if they do not fit."""
    if not name.isascii():
        return None
    if len(name) <= 100:
        return b"", name
    # The name is what follows some slash, the prefix what is before it.
    cut = name.find(b"/", len(name) - 101, len(name) - 1)
    if 0 < cut <= 155:
        return name[:cut], name[cut + 1 :]
    return None


def _block(prefix: bytes, name: bytes, size: int, kind: bytes, mode: int, mtime: int) -> bytes:
    """One ustar header with its checksum."""
    block = b"".join(
        (
            name.ljust(100, b"\0"),
            b"%07o\0" % (mode & 0o7777),
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            b"%011o\0" % size,
            b"%011o\0" % mtime,
            b" " * 8,
            kind,
            bytes(100),
            b"ustar\00000",
            bytes(64),
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            prefix.ljust(155, b"\0"),
            bytes(12),
        )
    )
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _record(key: bytes, value: bytes) -> bytes:
    """A PAX record, which begins with its own length in decimal."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)
