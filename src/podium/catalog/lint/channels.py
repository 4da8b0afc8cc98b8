"""Lints of a package's channels: can a cluster that runs some version get to the newest, and only forward?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podium.api.findings import Finding, quoted
from podium.catalog import channels
from podium.catalog.lint.rules import Lint, finding
from podium.catalog.outline import BundleOutline, Channel, Entry, Package
from podium.text.semver import Version

Versions = Mapping[str, Version]


def look(package: Package) -> Iterator[Finding]:
    """What is odd about the channels of a package."""
    known = package.versions
    for channel in package.channels.values():
        if channels.too_many_ranges(channel):
            message = (
                f"{len(channel.entries)} entries with too many skip ranges to look at: let one cover many"
            )
            yield finding(Lint.TOO_MANY_RANGES, message, _subject(channel), channel.place)
            continue
        yield from _heads(channel, known)
        skipped = channel.skipped
        for entry in channel.entries:
            yield from _replaces(entry, channel, package, skipped)
            yield from _downgrades(entry, channel, known)
    yield from _default_channel(package, known)
    yield from _ties(package)


def rank(bundle: BundleOutline) -> tuple[Any, ...]:
    """What bundles are ordered by: the version, then the release, of which none is lowest."""
    try:
        version = Version.parse(bundle.version)
        release = Version(0, 0, 0, tuple(bundle.release.split("."))) if bundle.release else None
    except ValueError:
        return ()
    return (version.precedence, (1, release.precedence) if release else (0,))


def _subject(channel: Channel) -> str:
    return f"channel {channel.package}/{channel.name}"


def _heads(channel: Channel, known: Versions) -> Iterator[Finding]:
    heads = [entry.name for entry in channel.heads]
    direct = channels.successors(channel, known)
    if len(heads) == 1:
        yield from _ways_to(heads[0], channel, direct)
        return
    for name in heads:
        if covering := sorted(direct[name]):
            message = (
                f"the skipRange of {quoted(covering)} covers {name!r}, but only replaces and skips decide "
                f"which entry is the head: let {covering[-1]!r} replace or skip it"
            )
            yield finding(Lint.SKIP_RANGE_MAKES_NO_HEAD, message, _subject(channel), channel.place)


def _ways_to(head: str, channel: Channel, direct: Mapping[str, set[str]]) -> Iterator[Finding]:
    reaching = channels.ways_up(direct, head)
    lost = sorted(channel.names - reaching)
    if not lost:
        return
    entry = next(entry for entry in channel.entries if entry.name == head)
    reason = f"; its skipRange {entry.skip_range!r} does not cover them" if entry.skip_range else ""
    if reaching == {head}:
        message = f"no version of the channel can be upgraded to its head {head!r}{reason}"
        yield finding(Lint.HEAD_UNREACHABLE, message, _subject(channel), channel.place)
    else:
        message = f"no sequence of upgrades leads from {quoted(lost)} to the head {head!r}{reason}"
        yield finding(Lint.NO_WAY_FORWARD, message, _subject(channel), channel.place)


def _replaces(entry: Entry, channel: Channel, package: Package, skipped: set[str]) -> Iterator[Finding]:
    subject, place, replaced = _subject(channel), channel.place, entry.replaces
    if not replaced:
        return
    if replaced not in package.bundles:
        message = f"{entry.name!r} replaces {replaced!r}, which is nowhere in the package"
        yield finding(Lint.REPLACES_UNKNOWN, message, subject, place)
    elif replaced not in channel.names:
        message = f"{entry.name!r} replaces {replaced!r}, which is only in other channels"
        yield finding(Lint.REPLACES_OUTSIDE_CHANNEL, message, subject, place)
    if replaced in skipped:
        way = "OLM v0 drops that way to upgrade"
        message = f"{entry.name!r} replaces {replaced!r}, which is also skipped: {way}"
        yield finding(Lint.REPLACED_AND_SKIPPED, message, subject, place)


def _downgrades(entry: Entry, channel: Channel, known: Versions) -> Iterator[Finding]:
    subject, place, replaced = _subject(channel), channel.place, entry.replaces
    own = known.get(entry.name)
    if own is None:
        return
    if replaced in known and known[replaced] > own:
        message = f"{entry.name!r} ({own}) replaces the newer {replaced!r} ({known[replaced]})"
        yield finding(Lint.REPLACES_NEWER, message, subject, place)
    newer = _newer_in_range(entry, own, channel, known)
    if newer:
        message = (
            f"the skipRange {entry.skip_range!r} of {entry.name!r} covers newer versions: {quoted(newer)}"
        )
        yield finding(Lint.SKIP_RANGE_DOWNGRADES, message, subject, place)


def _newer_in_range(entry: Entry, own: Version, channel: Channel, known: Versions) -> list[str]:
    return sorted(name for name in channels.in_skip_range(channel, entry, known) if known[name] > own)


def _default_channel(package: Package, known: Versions) -> Iterator[Finding]:
    subject, name = f"package {package.name}", package.default_channel
    if ("olm.channel", name) in package.deprecated:
        message = f"the default channel {name!r} is deprecated: name another"
        yield finding(Lint.DEFAULT_CHANNEL_DEPRECATED, message, subject, package.place)
    newest = {each.name: known[head] for each in package.channels.values() if (head := each.head) in known}
    if name not in newest:
        return
    ahead = [
        f"{other!r} ({version})"
        for other, version in sorted(newest.items())
        if version > newest[name] and not version.prerelease
    ]
    if ahead:
        message = f"the default channel {name!r} ends at {newest[name]}, behind {', '.join(ahead)}"
        yield finding(Lint.DEFAULT_CHANNEL_BEHIND, message, subject, package.place)


def _ties(package: Package) -> Iterator[Finding]:
    by_rank: dict[tuple[Any, ...], list[BundleOutline]] = {}
    for bundle in package.bundles.values():
        by_rank.setdefault(rank(bundle), []).append(bundle)
    for order, tied in by_rank.items():
        if order and len({(bundle.version, bundle.release) for bundle in tied}) > 1:
            names = ", ".join(f"{bundle.name!r} ({bundle.version})" for bundle in tied)
            message = f"build metadata does not order versions, so neither of these is newer: {names}"
            yield finding(Lint.VERSIONS_TIE, message, f"package {package.name}", tied[-1].place)
