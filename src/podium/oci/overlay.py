"""What is left of the wanted files when the layers of an image lie on each other.

Each layer becomes a tree of its own first; only then is it laid on the ones below. A whiteout thus never
touches a file of its own layer, whatever their order (image-spec, "layer.md"). Of two entries with one
name in a layer the later wins, as in every extractor. A subtree is replaced in one step, so no order of
entries makes this slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from podium.oci.errors import Unacceptable
from podium.oci.limits import Tally

Path = tuple[str, ...]


class Found(NamedTuple):
    """A file: in which layer it lies, and as which entry of it."""

    layer: int
    entry: int


@dataclass(slots=True)
class Directory:
    """A directory of one layer, or of several laid on each other."""

    children: dict[str, Directory | Found] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # names of lower layers taken away by whiteouts
    opaque: bool = False  # nothing of the lower layers shows through
    declared: bool = False  # has an entry of its own, and is not only implied by what lies in it


def add_file(root: Directory, path: Path, found: Found, tally: Tally) -> None:
    """Put a file into a layer, in place of what has this name."""
    _directory(root, path[:-1], tally).children[path[-1]] = found


def add_directory(root: Directory, path: Path, tally: Tally) -> None:
    """Put a directory into a layer; what is in it already stays."""
    if not path:
        return
    children = _directory(root, path[:-1], tally).children
    existing = children.get(path[-1])
    if isinstance(existing, Directory):
        existing.declared = True
    else:
        tally.directory()
        # One that takes the place of a file does not bring back what the file had hidden.
        children[path[-1]] = Directory(declared=True, opaque=existing is not None)


def hide(root: Directory, path: Path, tally: Tally) -> None:
    """Take a name of the lower layers away."""
    _directory(root, path[:-1], tally).hidden.add(path[-1])


def hide_contents(root: Directory, path: Path, tally: Tally) -> None:
    """Take everything away that lower layers have in a directory."""
    _directory(root, path, tally).opaque = True


def lay(lower: Directory, upper: Directory, above: str = "") -> None:
    """Lay a layer on what lies below, which becomes the result."""
    if upper.opaque:
        lower.children.clear()
    for name in upper.hidden:
        lower.children.pop(name, None)
    for name, child in upper.children.items():
        existing = lower.children.get(name)
        if isinstance(child, Found):
            lower.children[name] = child
            continue
        if isinstance(existing, Found) and not child.declared:
            raise Unacceptable(f"{above}{name} is a file in one layer and a directory in the next")
        if not isinstance(existing, Directory):
            existing = lower.children[name] = Directory()
        lay(existing, child, f"{above}{name}/")


def files(root: Directory, above: str = "") -> Iterator[tuple[str, Found]]:
    """All files with their paths."""
    for name, child in root.children.items():
        if isinstance(child, Found):
            yield above + name, child
        else:
            yield from files(child, f"{above}{name}/")


def _directory(root: Directory, path: Path, tally: Tally) -> Directory:
    for name in path:
        child = root.children.get(name)
        if child is None:
            tally.directory()
            child = root.children[name] = Directory()
        if isinstance(child, Found):
            raise Unacceptable(f"{'/'.join(path)!r} goes through a file")
        root = child
    return root
