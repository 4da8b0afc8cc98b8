"""Lints against the catalog that users already have: nothing that was published may vanish or change.

Contents are compared as opm understands them. The order of properties, images and keys, and fields that it
does not read, are no content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from podium.api.findings import Finding, Place, quoted
from podium.catalog import channels
from podium.catalog.blobs import Bundle
from podium.catalog.decoding import compact
from podium.catalog.lint.channels import rank
from podium.catalog.lint.rules import Lint, finding
from podium.catalog.outline import BundleOutline, Channel, Entry, Package
from podium.catalog.properties import BUNDLE_OBJECT, CSV_METADATA

_METADATA = (CSV_METADATA, BUNDLE_OBJECT)


@dataclass(frozen=True, slots=True)
class Content:
    """What a bundle is, small enough to keep for all bundles of a catalog."""

    image: str
    facts: bytes
    related_images: bytes
    metadata: bytes
    metadata_types: tuple[str, ...]


Contents = Mapping[tuple[str, str], Content]


def content(fields: Bundle) -> Content:
    """The content of a bundle: the image, and a hash of all else."""
    properties = [(item.type, compact(item.decoded())) for item in fields.properties]
    return Content(
        fields.image,
        _hash(kind.encode() + b"\0" + value for kind, value in properties if kind not in _METADATA),
        _hash(f"{related.name}\0{related.image}".encode() for related in fields.relatedImages),
        _hash(value for kind, value in properties if kind in _METADATA),
        tuple(sorted({kind for kind, _ in properties if kind in _METADATA})),
    )


def _hash(parts: Iterable[bytes]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in sorted(parts):
        found.update(len(part).to_bytes(8, "big") + part)
    return found.digest()


def look(
    package: Package, contents: Contents, published: Package, published_contents: Contents
) -> Iterator[Finding]:
    """What users of the published package lose with the new one."""
    subject = f"package {package.name}"
    if package.default_channel != published.default_channel:
        message = (
            f"the default channel was {published.default_channel!r}, now it is {package.default_channel!r}"
        )
        yield finding(Lint.DEFAULT_CHANNEL_CHANGED, message, subject, package.place)
    yield from _removed_versions(package, published)
    for name in published.bundles.keys() & package.bundles.keys():
        before, after = published_contents.get((package.name, name)), contents.get((package.name, name))
        if before and after:
            yield from _changes(name, before, after, package.bundles[name].place)
    for name, channel in published.channels.items():
        if name not in package.channels:
            yield finding(Lint.CHANNEL_REMOVED, f"the channel {name!r} is gone", subject, package.place)
        else:
            yield from _channel(package.channels[name], channel, package, published)


def removed_package(name: str) -> Finding:
    """The finding for a package that is not there at all any more."""
    message = "the published catalog has this package, this one does not"
    return finding(Lint.PACKAGE_REMOVED, message, f"package {name}", Place())


def _removed_versions(package: Package, published: Package) -> Iterator[Finding]:
    left = {(bundle.version, bundle.release): bundle for bundle in package.bundles.values()}
    for bundle in published.bundles.values():
        now = left.get((bundle.version, bundle.release))
        if bundle.name in package.bundles:
            continue
        if now is None:
            so = "clusters that run it have no way forward"
            message = f"version {_spelt(bundle)} was published and is gone: {so}"
            yield finding(Lint.VERSION_REMOVED, message, f"bundle {bundle.name}", package.place)
        else:
            message = f"version {_spelt(bundle)} was published as {bundle.name!r}"
            yield finding(Lint.CONTENT_CHANGED, message, f"bundle {now.name}", now.place)


def _spelt(bundle: BundleOutline) -> str:
    return f"{bundle.version}-{bundle.release}" if bundle.release else bundle.version


def _changes(name: str, before: Content, after: Content, place: Place) -> Iterator[Finding]:
    changed = []
    if before.image != after.image:
        changed.append(f"its image was {before.image!r} and is {after.image!r}")
    if before.facts != after.facts:
        changed.append("its properties differ")
    if before.related_images != after.related_images:
        changed.append("its related images differ")
    if before.metadata != after.metadata and before.metadata_types == after.metadata_types:
        changed.append("its metadata differ")
    if changed:
        message = f"the bundle was published with other content under this name: {', '.join(changed)}"
        yield finding(Lint.CONTENT_CHANGED, message, f"bundle {name}", place)
    elif before.metadata_types != after.metadata_types:
        was, now = quoted(before.metadata_types) or "none", quoted(after.metadata_types) or "none"
        message = f"the metadata are carried by other properties than published: {was} before, {now} now"
        yield finding(Lint.METADATA_MOVED, message, f"bundle {name}", place)


def _channel(now: Channel, before: Channel, package: Package, published: Package) -> Iterator[Finding]:
    subject = f"channel {package.name}/{now.name}"
    head, old_head = now.head, before.head
    if _is_older(package.bundles.get(head), published.bundles.get(old_head)):
        message = f"the newest version was {old_head!r} and is now the older {head!r}"
        yield finding(Lint.HEAD_MOVED_BACK, message, subject, now.place)
    gone = sorted(before.names - now.names)
    if gone and head:
        # A removed version may still be named by replaces, skips or skipRange: then it can go on.
        known = {**published.versions, **package.versions}
        every = replace(now, entries=(*now.entries, *map(Entry, gone)))
        if channels.too_many_ranges(every):
            return
        reaching = channels.ways_up(channels.successors(every, known), head)
        if stuck := [name for name in gone if name not in reaching]:
            message = f"{quoted(stuck)} left the channel, and no upgrade leads from there to {head!r}"
            yield finding(Lint.ENTRY_REMOVED, message, subject, now.place)


def _is_older(bundle: BundleOutline | None, other: BundleOutline | None) -> bool:
    if bundle is None or other is None:
        return False
    return bool(rank(bundle)) and rank(bundle) < rank(other)
