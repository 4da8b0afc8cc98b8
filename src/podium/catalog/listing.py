"""What a catalog holds, in rows for people and scripts: packages, channels, bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podium.catalog.outline import Channel, Package


@dataclass(frozen=True, slots=True)
class PackageRow:
    """One package: its display name is that of the newest version in the default channel."""

    name: str
    display_name: str
    default_channel: str


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One channel and its newest version; several heads are an error of the catalog and all shown."""

    package: str
    channel: str
    head: str


@dataclass(frozen=True, slots=True)
class BundleRow:
    """One version in one channel, with the versions it upgrades from."""

    package: str
    channel: str
    bundle: str
    version: str
    replaces: str
    skips: tuple[str, ...]
    skip_range: str
    image: str


def packages(catalog: Mapping[str, Package]) -> Iterator[PackageRow]:
    """A row for each package, by name."""
    for package in catalog.values():
        channel = package.channels.get(package.default_channel)
        bundle = package.bundles.get(channel.head) if channel else None
        yield PackageRow(package.name, bundle.display_name if bundle else "", package.default_channel)


def channels(catalog: Mapping[str, Package]) -> Iterator[ChannelRow]:
    """A row for each channel, by package and name."""
    for channel in _channels(catalog):
        heads = ", ".join(entry.name for entry in channel.heads)
        yield ChannelRow(channel.package, channel.name, heads)


def bundles(catalog: Mapping[str, Package]) -> Iterator[BundleRow]:
    """A row for each entry of each channel, by package, channel and name."""
    for channel in _channels(catalog):
        known = catalog[channel.package].bundles
        for entry in sorted(channel.entries, key=lambda entry: entry.name):
            bundle = known.get(entry.name)
            version, image = (bundle.version, bundle.image) if bundle else ("", "")
            yield BundleRow(
                channel.package,
                channel.name,
                entry.name,
                version,
                entry.replaces,
                entry.skips,
                entry.skip_range,
                image,
            )


def _channels(catalog: Mapping[str, Package]) -> Iterator[Channel]:
    for package in catalog.values():
        yield from sorted(package.channels.values(), key=lambda channel: channel.name)
