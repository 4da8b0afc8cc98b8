"""Upgrade edges between the versions of a channel, the ways that opm's releases have made them.

Input are slots in order of archetype, kind of channel (major before minor) and version. All ways agree that
only the highest patch release of a minor version gets edges, and that it replaces the highest of the minor
version before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from podium.catalog.blobs import ChannelEntry
from podium.text.semver import Version

MAJOR = "major"
MINOR = "minor"

Channels = dict[str, list[ChannelEntry]]


@dataclass(frozen=True, slots=True)
class Slot:
    """One bundle in one channel."""

    archetype: int  # rank: higher is more stable
    kind: str
    channel: str
    name: str
    version: Version

    @property
    def major_line(self) -> tuple[int, str, int]:
        """What is upgraded along: an archetype and a kind of channel within one major version."""
        return self.archetype, self.kind, self.version.major


def across_channels(slots: list[Slot]) -> Channels:
    """Up to 1.36 and since 1.61: edges follow the major version, also out of a minor channel.

    The highest patch skips, sorted as strings, whatever of the major version is below what it replaces.
    """
    channels: Channels = {}
    for _, line in itertools.groupby(slots, key=lambda slot: slot.major_line):
        previous = ""
        before: set[str] = set()
        for members in _by_minor(line):
            head = members[-1]
            below = before | {slot.name for slot in members[:-1]}
            _add(channels, members, previous, sorted(below - {previous}))
            previous = head.name
            before = below | {head.name}
    return channels


def within_channels(slots: list[Slot]) -> Channels:
    """1.57 to 1.60: each channel for itself; the highest patch skips the lower ones of its minor version."""
    return _channel_by_channel(slots, skip_the_replaced=False)


def within_channels_skipping_the_replaced(slots: list[Slot]) -> Channels:
    """1.37 to 1.56: as the next generation, and what is replaced is skipped as well, first in the list."""
    return _channel_by_channel(slots, skip_the_replaced=True)


def _channel_by_channel(slots: list[Slot], *, skip_the_replaced: bool) -> Channels:
    by_channel: dict[str, list[Slot]] = {}
    for slot in slots:
        by_channel.setdefault(slot.channel, []).append(slot)
    channels: Channels = {}
    for inside in by_channel.values():
        previous = ""
        for members in _by_minor(inside):
            lower = [slot.name for slot in members[:-1]]
            _add(channels, members, previous, [previous, *lower] if skip_the_replaced and previous else lower)
            previous = members[-1].name
    return channels


def _by_minor(slots: Iterable[Slot]) -> Iterable[list[Slot]]:
    for _, members in itertools.groupby(slots, key=lambda slot: slot.version.minor):
        yield list(members)


def _add(channels: Channels, members: list[Slot], replaces: str, skips: list[str]) -> None:
    for slot in members[:-1]:
        channels.setdefault(slot.channel, []).append(ChannelEntry(slot.name))
    head = members[-1]
    channels.setdefault(head.channel, []).append(ChannelEntry(head.name, replaces, skips))
