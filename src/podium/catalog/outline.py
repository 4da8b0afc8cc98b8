"""The skeleton of a catalog: packages, channels, entries and versions, without the weight of bundle contents.

Listing, drawing and comparing need names and edges, a thousandth of the bytes. An outline is made in one pass
over the blobs and keeps none of them, so a catalog of any size can be outlined while it streams by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from podium.api.findings import Place
from podium.bundle.model import member, text
from podium.catalog.blobs import Blob, CatalogError, Deprecations, Typed, typed
from podium.catalog.blobs import Bundle as BundleFields
from podium.catalog.blobs import Channel as ChannelFields
from podium.catalog.blobs import Package as PackageFields
from podium.catalog.migrate import find_csv
from podium.catalog.properties import CSV_METADATA, PackageProperty, packages_of
from podium.text.semver import Version


@dataclass(frozen=True, slots=True)
class Entry:
    """One version in a channel and the versions it upgrades from."""

    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel: entries in the order the catalog gives them."""

    package: str
    name: str
    entries: tuple[Entry, ...]
    place: Place = Place()

    @property
    def names(self) -> set[str]:
        """The names of all entries."""
        return {entry.name for entry in self.entries}

    @property
    def heads(self) -> list[Entry]:
        """Entries, by name, that nothing replaces or skips; one in a valid channel. No `skipRange` counts."""
        passed = self.skipped | {entry.replaces for entry in self.entries if entry.replaces}
        found = {entry.name: entry for entry in self.entries if entry.name not in passed}
        return [found[name] for name in sorted(found)]

    @property
    def head(self) -> str:
        """The name of the head; empty unless there is exactly one."""
        heads = self.heads
        return heads[0].name if len(heads) == 1 else ""

    @property
    def skipped(self) -> set[str]:
        """Every name that some entry skips."""
        return {name for entry in self.entries for name in entry.skips}


@dataclass(frozen=True, slots=True)
class BundleOutline:
    """What a bundle is called, where its image is and which version it says it is."""

    package: str
    name: str
    image: str
    version: str
    release: str = ""
    display_name: str = ""
    content: str = ""  # a hash of everything the catalog says about it, if the outline was asked for it
    place: Place = Place()


@dataclass(slots=True)
class Package:
    """One package of an outline; what is deprecated maps a reference (schema, name) to its message."""

    name: str
    default_channel: str = ""
    description: str = ""
    channels: dict[str, Channel] = field(default_factory=dict)
    bundles: dict[str, BundleOutline] = field(default_factory=dict)
    deprecated: dict[tuple[str, str], str] = field(default_factory=dict)
    place: Place = Place()

    @property
    def versions(self) -> dict[str, Version]:
        """The version of each bundle whose version can be read."""
        found = {}
        for bundle in self.bundles.values():
            try:
                found[bundle.name] = Version.parse(bundle.version)
            except ValueError:  # the validator says so
                continue
        return found


def outline(blobs: Iterable[Blob], *, contents: bool = False) -> dict[str, Package]:
    """The packages of a catalog by name, sorted; CatalogError for a blob whose fields have the wrong type.

    With `contents`, bundles carry a hash by which a change of content can be seen.
    """
    outlining = Outlining(contents=contents)
    for blob in blobs:
        outlining.add(blob, typed(blob))
    return outlining.packages()


class Outlining:
    """An outline that is being made, one blob after the other."""

    def __init__(self, *, contents: bool = False) -> None:
        self._contents = contents
        self._packages: dict[str, Package] = {}

    def packages(self) -> dict[str, Package]:
        """What has come so far, by name, sorted."""
        return dict(sorted(self._packages.items()))

    def add(self, blob: Blob, fields: Typed | None) -> None:
        """Adds a blob with its fields; CatalogError, and nothing is added, if its properties do not fit."""
        match fields:
            case PackageFields():
                package = self._package(fields.name)
                package.default_channel, package.description = fields.defaultChannel, fields.description
                package.place = blob.place
            case ChannelFields():
                self._package(fields.package).channels[fields.name] = channel(fields, blob.place)
            case BundleFields():
                bundle = _bundle(fields, blob, contents=self._contents)
                self._package(fields.package).bundles[fields.name] = bundle
            case Deprecations():
                deprecated = self._package(fields.package).deprecated
                for entry in fields.entries or ():
                    deprecated[entry.reference.schema, entry.reference.name] = entry.message

    def _package(self, name: str) -> Package:
        return self._packages.setdefault(name, Package(name))


def channel(fields: ChannelFields, place: Place = Place()) -> Channel:
    """The outline of a channel."""
    entries = tuple(
        Entry(entry.name, entry.replaces, tuple(entry.skips), entry.skipRange)
        for entry in fields.entries or ()
    )
    return Channel(fields.package, fields.name, entries, place)


def bundle_versions(packages: Mapping[str, Package]) -> dict[str, Version]:
    """The version of each bundle by name; a name in several packages counts once, as for opm.

    CatalogError for a version that cannot be read.
    """
    found: dict[str, Version] = {}
    for package in packages.values():
        for bundle in package.bundles.values():
            if bundle.name not in found:
                try:
                    found[bundle.name] = Version.parse(bundle.version)
                except ValueError as error:
                    message = f"bundle {bundle.name!r} has invalid version {bundle.version!r}: {error}"
                    raise CatalogError(message, bundle.place) from None
    return found


class _DisplayName(msgspec.Struct, rename="camel"):
    display_name: str = ""


_display_name = msgspec.json.Decoder(_DisplayName)  # the rest of this property is large


def _bundle(fields: BundleFields, blob: Blob, *, contents: bool) -> BundleOutline:
    display_name = ""
    try:
        said = next(reversed(packages_of(fields)), PackageProperty())
        for item in fields.properties:
            if item.type == CSV_METADATA:
                display_name = _display_name.decode(item.value).display_name
        if not display_name and (csv := find_csv(fields)) is not None:
            display_name = text(member(csv, "spec").get("displayName"))
    except CatalogError as error:
        raise CatalogError(error.problem, blob.place) from None
    except msgspec.DecodeError as error:
        raise CatalogError(f"bundle {fields.name!r}: {error}", blob.place) from None
    content = hashlib.blake2b(blob.raw, digest_size=16).hexdigest() if contents else ""
    return BundleOutline(
        fields.package,
        fields.name,
        fields.image,
        said.version,
        said.release,
        display_name,
        content,
        blob.place,
    )
