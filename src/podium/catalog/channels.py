"""How versions follow each other in a channel.

An entry takes the place of what it `replaces`, of what it `skips`, and of every version in its `skipRange`.
opm judges a channel by the first two alone: one head, from which the replaced ones lead down to every entry
that nobody skips. A cluster follows all three, upwards: `successors` and `ways_up` are about that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from podium.catalog.outline import Channel, Entry
from podium.text.ranges import Range
from podium.text.semver import Version


@dataclass(frozen=True, slots=True)
class Chain:
    """The names met when walking from a head along `replaces`; `cycle` is the loop it ends in, if it does."""

    names: tuple[str, ...]
    cycle: tuple[str, ...] = ()


def chain(channel: Channel, head: str) -> Chain:
    """The way down from a head; it ends where the replaced one is skipped or not in the channel."""
    by_name = {entry.name: entry for entry in channel.entries}
    passed_over = channel.skipped
    walked = {head: None}
    current = by_name.get(head)
    while current is not None and current.replaces not in passed_over:
        if current.replaces in walked:
            names = tuple(walked)
            return Chain(names, (*names[names.index(current.replaces) :], current.replaces))
        walked[current.replaces] = None
        current = by_name.get(current.replaces)
    return Chain(tuple(walked))


def stranded(channel: Channel, head: str) -> list[str]:
    """Entries, sorted, that neither lie on the way down from the head nor are skipped: opm refuses them."""
    return sorted(channel.names - set(chain(channel, head).names) - channel.skipped)


MAX_COMPARISONS = 1_000_000


def too_many_ranges(channel: Channel) -> bool:
    """Whether holding every skip range against every entry would take too long; no real channel is so."""
    entries = channel.entries
    return sum(bool(entry.skip_range) for entry in entries) * len(entries) > MAX_COMPARISONS


class EdgeKind(StrEnum):
    """Why an entry takes the place of another."""

    SKIP = "skip"
    SKIP_RANGE = "skipRange"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Edge:
    """One way to upgrade: from `source`, which need not be in the channel, to `target`."""

    source: str
    target: str
    kind: EdgeKind
    skip_range: str = ""


def edges(channel: Channel, entry: Entry, versions: Mapping[str, Version]) -> Iterator[Edge]:
    """The ways to reach one entry: by skips, then by its skip range, then by what it replaces.

    A skip range reaches entries of the channel only, and only those whose version is known.
    """
    for name in entry.skips:
        yield Edge(name, entry.name, EdgeKind.SKIP)
    for name in in_skip_range(channel, entry, versions):
        yield Edge(name, entry.name, EdgeKind.SKIP_RANGE, entry.skip_range)
    if entry.replaces:
        yield Edge(entry.replaces, entry.name, EdgeKind.REPLACE)


def in_skip_range(channel: Channel, entry: Entry, versions: Mapping[str, Version]) -> Iterator[str]:
    """The names in the channel that the entry's skip range covers, be it its own; none if it is no range."""
    try:
        wanted = Range.parse(entry.skip_range) if entry.skip_range else None
    except ValueError:  # the validator says so
        return
    for other in channel.entries if wanted else ():
        if wanted and other.name in versions and wanted.matches(versions[other.name]):
            yield other.name


def successors(channel: Channel, versions: Mapping[str, Version]) -> dict[str, set[str]]:
    """For each entry, the entries that a cluster which runs it may upgrade to directly."""
    direct: dict[str, set[str]] = {name: set() for name in channel.names}
    for entry in channel.entries:
        for edge in edges(channel, entry, versions):
            if edge.source in direct and edge.source != entry.name:
                direct[edge.source].add(entry.name)
    return direct


def ways_up(direct: Mapping[str, set[str]], goal: str) -> set[str]:
    """The entries from which some sequence of upgrades reaches the goal, itself included."""
    below: dict[str, list[str]] = {}
    for name, followers in direct.items():
        for follower in followers:
            below.setdefault(follower, []).append(name)
    reached, waiting = {goal}, [goal]
    while waiting:
        for name in below.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached
