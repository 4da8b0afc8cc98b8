"""Writes blobs as opm does: its order, its JSON and its YAML, byte for byte.

Packages come by name; within each the package, its channels by name, its bundles by name, blobs of other
schemas by schema, its deprecations; at the end what belongs to no package. Names sort as plain strings. Blobs
of the four known schemas are written field by field, so fields that opm does not know are dropped; all others
are written whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from podium.catalog import blobs
from podium.catalog.blobs import BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE, Blob, CatalogError
from podium.catalog.decoding import document, encoded
from podium.text import gojson
from podium.text import yaml as yaml_text

_RANK = {PACKAGE: 0, CHANNEL: 1, BUNDLE: 2, DEPRECATIONS: 4}
_OTHER = 3

Write = Callable[[Iterable[Blob]], Iterator[bytes]]


def json(content: Iterable[Blob]) -> Iterator[bytes]:
    """One indented JSON object per blob, each with a line break at its end, in opm's order."""
    return map(as_json, ordered(content))


def yaml(content: Iterable[Blob]) -> Iterator[bytes]:
    """One YAML document per blob, each starting with `---`, in opm's order."""
    return map(as_yaml, ordered(content))


def as_json(blob: Blob) -> bytes:
    """One blob as an indented JSON object."""
    return msgspec.json.format(written(blob), indent=4) + b"\n"


def as_yaml(blob: Blob) -> bytes:
    """One blob as a YAML document."""
    return b"---\n" + yaml_text.dump(_yaml_value(written(blob))).encode()


def tree(content: Iterable[Blob], write: Write, extension: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of the directory form: `<package>/catalog.<extension>`, one per package.

    What belongs to no package goes to a catalog file of its own at the root.
    """
    packages: dict[str, list[Blob]] = {}
    for blob in ordered(content):
        packages.setdefault(owner(blob), []).append(blob)
    for package, members in packages.items():
        if not _is_one_path(package):
            raise CatalogError(f'invalid package name "{package}": must be a single local path element')
        folder = f"{package}/" if package else ""
        yield f"{folder}catalog.{extension}", write(members)


def ordered(content: Iterable[Blob]) -> list[Blob]:
    """The blobs that are written, in their order."""
    return sorted(filter(is_written, content), key=position)


def is_written(blob: Blob) -> bool:
    """False for a package without a name and what belongs to no package but should: left out as in opm."""
    return bool(owner(blob)) or blob.schema not in _RANK


def owner(blob: Blob) -> str:
    """The package that a blob belongs to; for a package itself that is its name."""
    return blob.name if blob.schema == PACKAGE else blob.package


def position(blob: Blob) -> tuple[bool, str, int, str]:
    """What blobs are sorted by; those that are equal stay in the order they came."""
    package = owner(blob)
    rank = _RANK.get(blob.schema, _OTHER)
    if not package:
        return True, "", rank, ""
    by = blob.schema if rank == _OTHER else blob.name if rank in (1, 2) else ""
    return False, package, rank, by


def written(blob: Blob) -> bytes:
    """The compact JSON that opm would write for a blob: known fields only, in the order of its structs."""
    known = blobs.typed(blob)
    if known is None:
        return blob.raw
    return encoded(document(known))


_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def _yaml_value(data: bytes) -> Any:
    """What go-yaml reads: integers that fit no 64 bits are floats."""
    value = msgspec.json.decode(data)
    return gojson.within(value, -(2**63), 2**64 - 1) if _LONG_NUMBER.search(data) else value


def _is_one_path(package: str) -> bool:
    return not (package.startswith("/") or ".." in package.split("/") or "\0" in package)
