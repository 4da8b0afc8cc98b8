"""What changes for the users of a catalog when another one takes its place.

Blobs that moved or were formatted anew are no change. What counts is what a user of a channel meets: which
version is newest, where an installed version can go, what is gone, and what is not what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from podium.catalog.channels import edges
from podium.catalog.outline import Channel, Entry, Package, bundle_versions
from podium.text.semver import Version

_ZERO = Version(0, 0, 0)


class ChangeKind(StrEnum):
    """What sort of change it is; the value is how it is printed."""

    PACKAGE_ADDED = "package added"
    PACKAGE_REMOVED = "package removed"
    DEFAULT_CHANNEL = "default channel"
    CHANNEL_ADDED = "channel added"
    CHANNEL_REMOVED = "channel removed"
    NEWEST = "newest version"
    VERSION_ADDED = "version added"
    VERSION_REMOVED = "version removed"
    UPGRADE = "upgrade goes to"
    CONTENT = "content changed"
    DEPRECATED = "deprecated"
    UNDEPRECATED = "no longer deprecated"


# A user who follows the catalog cannot undo these, or does not expect them.
BREAKING = frozenset(
    (ChangeKind.PACKAGE_REMOVED, ChangeKind.CHANNEL_REMOVED, ChangeKind.VERSION_REMOVED, ChangeKind.CONTENT)
)


@dataclass(frozen=True, slots=True)
class Change:
    """One change; `channel` is empty for what concerns the whole package."""

    package: str
    channel: str
    kind: ChangeKind
    name: str = ""
    before: str = ""
    after: str = ""

    @property
    def breaking(self) -> bool:
        """Whether it takes something away from those who use it."""
        return self.kind in BREAKING


def diff(before: Mapping[str, Package], after: Mapping[str, Package]) -> list[Change]:
    """All changes from one catalog to another, by package and channel; outlines made with `contents`."""
    old_versions = bundle_versions(before)
    new_versions = {**old_versions, **bundle_versions(after)}
    changes: list[Change] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            changes.append(Change(name, "", ChangeKind.PACKAGE_REMOVED))
        elif name not in before:
            changes.append(Change(name, "", ChangeKind.PACKAGE_ADDED))
        else:
            changes += _package(before[name], after[name], old_versions, new_versions)
    return changes


def upgrades(channel: Channel, installed: Iterable[str], versions: Mapping[str, Version]) -> dict[str, str]:
    """For each installed version that can move, the highest version of the channel it can go to directly.

    A version need not be in the channel: a `skipRange` or `replaces` may name one that was removed from it.
    """
    every = replace(channel, entries=(*channel.entries, *map(Entry, set(installed) - channel.names)))
    best: dict[str, str] = {}
    for entry in channel.entries:
        for edge in edges(every, entry, versions):
            if edge.source != entry.name:
                rival = best.get(edge.source, entry.name)
                best[edge.source] = max(rival, entry.name, key=lambda name: (versions.get(name, _ZERO), name))
    return best


def _package(
    old: Package, new: Package, old_versions: Mapping[str, Version], new_versions: Mapping[str, Version]
) -> Iterator[Change]:
    name = new.name
    if old.default_channel != new.default_channel:
        before, after = old.default_channel, new.default_channel
        yield Change(name, "", ChangeKind.DEFAULT_CHANNEL, before=before, after=after)
    for bundle in sorted(old.bundles.keys() & new.bundles.keys()):
        was, now = old.bundles[bundle], new.bundles[bundle]
        if was.content != now.content:
            moved = was.image != now.image
            images = (was.image, now.image) if moved else ("", "")
            yield Change(name, "", ChangeKind.CONTENT, bundle, *images)
    yield from _deprecations(old, new)
    for channel in sorted(old.channels.keys() | new.channels.keys()):
        if channel not in new.channels:
            yield Change(name, channel, ChangeKind.CHANNEL_REMOVED)
        elif channel not in old.channels:
            heads = _heads(new.channels[channel])
            yield Change(name, channel, ChangeKind.CHANNEL_ADDED, after=heads)
        else:
            yield from _channel(old.channels[channel], new.channels[channel], old_versions, new_versions)


def _channel(
    old: Channel, new: Channel, old_versions: Mapping[str, Version], new_versions: Mapping[str, Version]
) -> Iterator[Change]:
    if _heads(old) != _heads(new):
        yield Change(new.package, new.name, ChangeKind.NEWEST, before=_heads(old), after=_heads(new))
    before, after = old.names, new.names
    for name in sorted(after - before):
        yield Change(new.package, new.name, ChangeKind.VERSION_ADDED, name)
    for name in sorted(before - after):
        yield Change(new.package, new.name, ChangeKind.VERSION_REMOVED, name)
    was = upgrades(old, before, old_versions)
    now = upgrades(new, before, new_versions)
    for name in sorted(before):
        if was.get(name) != now.get(name):
            yield Change(
                new.package, new.name, ChangeKind.UPGRADE, name, was.get(name, ""), now.get(name, "")
            )


def _deprecations(old: Package, new: Package) -> Iterator[Change]:
    for schema, name in sorted(new.deprecated.keys() | old.deprecated.keys()):
        was, now = old.deprecated.get((schema, name), ""), new.deprecated.get((schema, name), "")
        channel = name if schema == "olm.channel" else ""
        if now and was != now:
            yield Change(new.name, channel, ChangeKind.DEPRECATED, name or new.name, was, now)
        elif was and not now:
            yield Change(new.name, channel, ChangeKind.UNDEPRECATED, name or new.name, was)


def _heads(channel: Channel) -> str:
    return ", ".join(entry.name for entry in channel.heads)
