"""Names in archives: which of them concern us, and which are refused.

A name is understood here as the most careless extractor would understand it (leading slashes dropped,
backslashes as slashes), so that nothing which could end up among the wanted files passes as something
else. What is meant for the wanted directories has to be spelled plainly; names elsewhere, of which base
images hold strange ones, are ignored.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from podium.oci.errors import Unacceptable
from podium.oci.limits import Limits

WHITEOUT = b".wh."
OPAQUE = b".wh..wh..opq"
_AUFS = b".wh..wh."
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

MAX_PARTS = 256  # of names anywhere; those of wanted files have a limit of their own

Parts = tuple[bytes, ...]


class Place(enum.Enum):
    """Where a name lies, seen from the wanted directories."""

    INSIDE = "in a wanted directory"
    ABOVE = "a wanted directory itself, or one it lies in"
    ELSEWHERE = "elsewhere"


class Wanted:
    """Some directories of an image: `manifests/`, `/configs`; an empty one is the whole image."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = [split(prefix.encode()) for prefix in prefixes]

    def place(self, parts: Parts) -> Place:
        """Where a path lies."""
        found = Place.ELSEWHERE
        for prefix in self._prefixes:
            shared = min(len(prefix), len(parts))
            if parts[:shared] != prefix[:shared]:
                continue
            if len(parts) > len(prefix):
                return Place.INSIDE
            found = Place.ABOVE
        return found


def split(name: bytes) -> Parts:
    """The components of a name; Unacceptable if it tries to leave the archive."""
    if b"\\" in name:
        name = name.replace(b"\\", b"/")
    if name.count(b"/") > MAX_PARTS:
        raise Unacceptable(f"more than {MAX_PARTS} directories deep: {shown(name)}")
    parts = name.split(b"/")
    if b".." in parts:
        raise Unacceptable(f"a name that climbs up: {shown(name)}")
    if b"" in parts or b"." in parts:
        parts = [part for part in parts if part not in (b"", b".")]
    return tuple(parts)


def plain(name: bytes, limits: Limits) -> tuple[str, ...]:
    """The components of a name that concerns us, which has to be spelled without tricks."""
    if name.startswith(b"/"):
        raise Unacceptable(f"an absolute name: {shown(name)}")
    if b"\\" in name:
        raise Unacceptable(f"a name with a backslash: {shown(name)}")
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise Unacceptable(f"a name that is not UTF-8: {shown(name)}") from None
    if _CONTROL.search(text):
        raise Unacceptable(f"a name with control characters: {shown(name)}")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if len(name) > limits.name or any(len(part.encode()) > 255 for part in parts):
        raise Unacceptable(f"a name of {len(name)} bytes: {shown(name)}")
    if len(parts) > limits.depth + 1:
        raise Unacceptable(f"more than {limits.depth} directories deep: {shown(name)}")
    return parts


def hidden_by(parts: Parts) -> Parts | None:
    """What a whiteout takes away: a path, or for an opaque one its directory; None if this is no whiteout."""
    if not parts or not parts[-1].startswith(WHITEOUT):
        return None
    return parts[:-1] if parts[-1] == OPAQUE else (*parts[:-1], parts[-1].removeprefix(WHITEOUT))


def is_aufs_bookkeeping(parts: Parts) -> bool:
    """Whether this is one of the files that the AUFS driver kept for itself, which mean nothing."""
    return bool(parts) and parts[-1].startswith(_AUFS) and parts[-1] != OPAQUE


def shown(name: bytes) -> str:
    """A name as messages may print it."""
    return ascii(name[:200].decode(errors="replace")) + ("..." if len(name) > 200 else "")
