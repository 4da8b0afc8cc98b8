"""Symbolic links outside of the wanted directories, and where names lead through them.

We never follow links, but whoever extracts an image does (inside its root): after a link from `opt/l` to
`manifests`, an entry `opt/l/x` is `manifests/x` for a container runtime, and nothing at all for us. What we
checked would not be what runs. So such entries are refused. Links that lead elsewhere, of which every base
image has hundreds, are fine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.oci import names
from podium.oci.errors import Unacceptable
from podium.oci.names import Parts, Place, Wanted
from podium.oci.tarread import Kind, Member

MAX_HOPS = 40  # as many as Linux follows
MAX_PLACES = 200_000  # links, and directories they lie in
MAX_BYTES = 32 << 20  # of the targets of all links
MAX_STEPS = 1_000_000  # from name to name on ways with links, over all entries


@dataclass(slots=True)
class _Place:
    """A link, or a directory that some lie in."""

    below: dict[bytes, _Place] = field(default_factory=dict)
    target: bytes | None = None


class Links:
    """The links of an image seen so far, layer by layer."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._root = _Place()
        self._places = self._bytes = self._steps = 0

    def pass_by(self, member: Member, parts: Parts) -> None:
        """Take note of an entry elsewhere; Unacceptable if it ends up in a wanted directory after all."""
        reached = self._resolved(parts)
        if reached is not parts:
            hidden = names.hidden_by(reached)
            if self._wanted.place(reached if hidden is None else hidden) is not Place.ELSEWHERE:
                raise Unacceptable(f"{names.shown(member.name)} is in a wanted directory through a link")
        if member.kind is Kind.SYMLINK:
            self._add(parts, member.target)
        elif place := self._find(parts):
            place.target = None

    def _add(self, parts: Parts, target: bytes) -> None:
        place = self._root
        for part in parts:
            if part not in place.below:
                self._places += 1
                place.below[part] = _Place()
            place = place.below[part]
        place.target = target
        self._bytes += len(target)
        if self._places > MAX_PLACES or self._bytes > MAX_BYTES:
            raise Unacceptable(f"more than {MAX_PLACES} links, or {MAX_BYTES} bytes of them")

    def _find(self, parts: Parts) -> _Place | None:
        place: _Place | None = self._root
        for part in parts:
            if place is None:
                break
            place = place.below.get(part)
        return place

    def _resolved(self, parts: Parts) -> Parts:
        """Where a name really lies: links in the directories above it are followed, itself it is not."""
        real: list[bytes] = []
        places: list[_Place | None] = [self._root]  # what is known of each directory on the way
        ahead = list(reversed(parts[:-1]))
        hops = 0
        while ahead:
            part = ahead.pop()
            if part == b"..":  # only targets have these
                real, places = real[:-1], places[:-1] or [self._root]
            if part in (b"", b".", b".."):
                continue
            above = places[-1]
            place = above.below.get(part) if above else None
            if place is None and not hops:
                return parts  # most of all names
            self._steps += 1
            if place is None or place.target is None:
                real.append(part)
                places.append(place)
                continue
            if place.target.startswith(b"/"):
                real, places = [], [self._root]
            ahead += reversed(place.target.split(b"/"))
            hops += 1
            if hops > MAX_HOPS or self._steps > MAX_STEPS:
                raise Unacceptable("too many links on the way to a name")
        return (*real, parts[-1]) if hops else parts
