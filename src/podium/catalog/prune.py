"""Keeps a part of a catalog: some packages, some of their channels, versions from some minimum on.

The graph that is left stays valid and nobody is stranded. What replaced a version that goes replaces the next
one that stays instead, and skips the one that went, so that whoever runs that one still gets on. A channel
whose head would go, because its version is not its highest, may not be cut that way: that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from podium.catalog import blobs
from podium.catalog.blobs import (
    BUNDLE,
    PACKAGE,
    Blob,
    Bundle,
    CatalogError,
    Channel,
    ChannelEntry,
    Deprecations,
    Package,
)
from podium.catalog.properties import version_of
from podium.catalog.validate import validate
from podium.catalog.write import owner
from podium.text.semver import Version


@dataclass(frozen=True, slots=True)
class Keep:
    """What to keep of a package: these channels (all if none are named), versions from `minimum` on."""

    channels: tuple[str, ...] = ()
    minimum: str = ""
    default_channel: str = ""  # needed if the old one goes and several stay


_SPEC = re.compile(r"(?P<package>[^/>]+)(?:/(?P<channel>[^>]+))?(?:>=(?P<minimum>.+))?")


def parse(texts: Iterable[str], default_channels: Mapping[str, str]) -> dict[str, Keep]:
    """What `PACKAGE[/CHANNEL][>=VERSION]` texts ask to keep; several channels of a package add up."""
    keep: dict[str, Keep] = {}
    for text in texts:
        found = _SPEC.fullmatch(text.replace(" ", ""))
        if found is None:
            raise CatalogError(f"{text!r} is not PACKAGE[/CHANNEL][>=VERSION]")
        package, channel, minimum = found["package"], found["channel"], found["minimum"] or ""
        old = keep.get(package)
        if old is not None and minimum and old.minimum not in ("", minimum):
            raise CatalogError(f"{package}: two minimum versions, {old.minimum} and {minimum}; give one")
        channels = (*(old.channels if old else ()), *([channel] if channel else []))
        lowest = minimum or (old.minimum if old else "")
        keep[package] = Keep(channels, lowest, default_channels.get(package, ""))
    return keep


def prune(content: Iterable[Blob], keep: Mapping[str, Keep]) -> list[Blob]:
    """The blobs of the packages named, each cut down; CatalogError if something named does not exist."""
    packages: dict[str, list[Blob]] = {name: [] for name in keep}
    kept: list[Blob] = []
    for blob in content:
        if owner(blob) in packages:
            packages[owner(blob)].append(blob)
        elif not owner(blob):
            kept.append(blob)
    for name, members in packages.items():
        if not any(blob.schema == PACKAGE for blob in members):
            raise CatalogError(f"there is no package {name}")
        left = list(_Pruned(name, members, keep[name]).blobs())
        if wrong := validate(left):
            problems = "; ".join(finding.message for finding in wrong)
            raise CatalogError(f"package {name} would not be valid any more: {problems}")
        kept += left
    return kept


class _Pruned:
    """One package being cut down."""

    def __init__(self, name: str, members: list[Blob], keep: Keep) -> None:
        self._name = name
        self._members = members
        self._keep = keep
        typed = [blobs.typed(blob) for blob in members]
        self._low = _below(keep.minimum, [each for each in typed if isinstance(each, Bundle)])
        channels = [each for each in typed if isinstance(each, Channel)]
        self._channels = {each.name: each for each in self._chosen(channels)}
        self._bundles = {entry.name for each in self._channels.values() for entry in each.entries or ()}

    def _chosen(self, channels: list[Channel]) -> Iterator[Channel]:
        unknown = set(self._keep.channels) - {channel.name for channel in channels}
        if unknown:
            raise CatalogError(f"package {self._name} has no channel {', '.join(sorted(unknown))}")
        for channel in channels:
            if not self._keep.channels or channel.name in self._keep.channels:
                channel.entries = _cut(channel, self._low)
                if channel.entries:
                    yield channel

    def blobs(self) -> Iterator[Blob]:
        """What is left, in the order it came."""
        if not self._channels:
            raise CatalogError(f"package {self._name}: nothing is left of it")
        for blob in self._members:
            match blobs.typed(blob):
                case Package() as package:
                    package.defaultChannel = self._default_channel(package.defaultChannel)
                    yield blobs.of(package, blob.place)
                case Channel() as channel if channel.name in self._channels:
                    yield blobs.of(self._channels[channel.name], blob.place)
                case Deprecations() as deprecations:
                    yield from self._deprecations(deprecations, blob)
                case Bundle() if blob.name in self._bundles:
                    yield blob
                case None:
                    yield blob

    def _default_channel(self, old: str) -> str:
        wanted = self._keep.default_channel or old
        if wanted in self._channels:
            return wanted
        if len(self._channels) == 1 and not self._keep.default_channel:
            return next(iter(self._channels))
        left = ", ".join(sorted(self._channels))
        raise CatalogError(f"package {self._name}: default channel {wanted} goes; choose one of {left}")

    def _deprecations(self, found: Deprecations, blob: Blob) -> Iterator[Blob]:
        there = {"olm.package": {""}, "olm.channel": set(self._channels), BUNDLE: self._bundles}
        entries = found.entries or []
        found.entries = [e for e in entries if e.reference.name in there.get(e.reference.schema, {""})]
        if found.entries:
            yield blobs.of(found, blob.place)


def _below(minimum: str, bundles: list[Bundle]) -> set[str]:
    """The names of bundles with a version below the minimum."""
    if not minimum:
        return set()
    try:
        floor = Version.parse_tolerant(minimum)
    except ValueError as error:
        raise CatalogError(f'"{minimum}" is no version: {error}') from None
    return {bundle.name for bundle in bundles if _version(bundle) < floor}


def _version(bundle: Bundle) -> Version:
    said = version_of(bundle)
    try:
        return Version.parse(said)
    except ValueError as error:
        raise CatalogError(f'bundle {bundle.name} has the invalid version "{said}": {error}') from None


def _cut(channel: Channel, low: set[str]) -> list[ChannelEntry]:
    """The entries that stay, linked past those that go."""
    entries = {entry.name: entry for entry in channel.entries or ()}
    for entry in entries.values():
        if entry.name in low:
            continue
        gone: list[ChannelEntry] = []
        target = entry.replaces
        while target in low and target in entries and entries[target] not in gone:
            gone.append(entries[target])
            target = entries[target].replaces
        if target in entries and target not in low:
            skipped = [name for old in gone for name in (old.name, *old.skips)]
            entry.replaces = target
        else:  # nothing below stays: the old name remains as the way in for those who run it
            skipped = [name for old in gone for name in old.skips if name in entries and name not in low]
        entry.skips = list(dict.fromkeys([*entry.skips, *skipped]))
    return [entry for name, entry in entries.items() if name not in low]
