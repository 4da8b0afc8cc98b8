"""What the registry API can be asked about a catalog: packages, bundles, who replaces and who provides what.

The index holds names and edges; a bundle's content stays the compact bytes of its blob and becomes a message
only when asked for, so that serving costs little more memory than the catalog has bytes. Answers that opm
gives in random order come in a fixed one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from podium.catalog.blobs import BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE, Blob, typed
from podium.catalog.blobs import Bundle as BundleFields
from podium.catalog.blobs import Package as PackageFields
from podium.catalog.outline import Channel, Entry, Package, outline
from podium.catalog.properties import GVK, GroupVersionKind, decoded
from podium.registry.bundles import api_bundle
from podium.registry.messages import message
from podium.text.quoting import quote

_KNOWN = (PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS)

_ChannelEntry = message("ChannelEntry")
_Package = message("Package")


class NotFound(LookupError):
    """The catalog has no such thing; the message is opm's."""


class Queries:
    """A catalog, ready to be asked; it must be valid, since a channel is taken to have one head."""

    def __init__(self, blobs: Iterable[Blob]) -> None:
        self._fields: dict[str, PackageFields] = {}
        self._bundles: dict[tuple[str, str], Blob] = {}
        self._others: dict[tuple[str, str], list[Blob]] = {}
        self._packages = outline(self._kept(blobs))

    def _kept(self, blobs: Iterable[Blob]) -> Iterator[Blob]:
        """Passes every blob on and keeps those whose content will be served."""
        for blob in blobs:
            if blob.schema == BUNDLE:
                self._bundles[blob.package, blob.name] = blob
            elif blob.schema == PACKAGE:
                fields = typed(blob)
                assert isinstance(fields, PackageFields)
                self._fields[fields.name] = fields
            elif blob.schema not in _KNOWN:
                self._others.setdefault((blob.schema, blob.package), []).append(blob)
            yield blob

    def packages(self) -> list[str]:
        """The names of all packages, sorted."""
        return list(self._packages)

    def package(self, name: str) -> Any:
        """A package with its channels by name, each with its head."""
        package = self._package(name)
        result = _Package(name=name, defaultChannelName=package.default_channel)
        for channel in sorted(package.channels.values(), key=lambda channel: channel.name):
            added = result.channels.add(name=channel.name, csvName=channel.heads[0].name)
            _deprecate(added, package, CHANNEL, channel.name)
        _deprecate(result, package, PACKAGE, "")
        return result

    def bundles(self) -> Iterator[Any]:
        """Every bundle of every channel, by channel, package and name; manifests only if it has no image."""
        every = [
            (channel.name, package.name, entry.name, package, channel, entry)
            for package in self._packages.values()
            for channel in package.channels.values()
            for entry in channel.entries
        ]
        for *_, package, channel, entry in sorted(every, key=lambda row: row[:3]):
            yield self._message(package, channel, entry, manifests=False)

    def bundle(self, package_name: str, channel_name: str, name: str) -> Any:
        """One bundle of a channel, with its manifests and without its edges."""
        package, channel = self._channel(package_name, channel_name)
        for entry in channel.entries:
            if entry.name == name:
                return self._trimmed(package, channel, entry)
        where = f"package {quote(package_name)}, channel {quote(channel_name)}"
        raise NotFound(f"{where}, bundle {quote(name)} not found")

    def head(self, package_name: str, channel_name: str) -> Any:
        """The newest bundle of a channel."""
        package, channel = self._channel(package_name, channel_name)
        return self._trimmed(package, channel, channel.heads[0])

    def replacement(self, name: str, package_name: str, channel_name: str) -> Any:
        """A bundle of the channel that replaces or skips the one named: the first by name, if several do."""
        if package_name not in self._packages:
            raise NotFound(f"package {package_name} not found")
        package, channel = self._channel(package_name, channel_name)
        for entry in sorted(channel.entries, key=lambda entry: entry.name):
            if name == entry.replaces or name in entry.skips:
                return self._trimmed(package, channel, entry)
        raise NotFound(f"no entry found for package {quote(package_name)}, channel {quote(channel_name)}")

    def entries_that_replace(self, name: str) -> list[Any]:
        """The entries of all channels that replace or skip a bundle."""
        found = []
        for _, channel, entry in self._entries():
            times = (entry.replaces == name) + sum(
                skipped == name and skipped != entry.replaces for skipped in entry.skips
            )
            found += [_entry(channel, entry, entry.replaces)] * times
        if not found:
            raise NotFound(f"no channel entries found that replace {name}")
        return found

    def entries_that_provide(self, group: str, version: str, kind: str) -> list[Any]:
        """The entries of all channels whose bundle provides an API, one for each version they replace."""
        found = []
        for package, channel, entry in self._entries():
            if self._provides(package, entry, (group, version, kind)):
                found.append(_entry(channel, entry, entry.replaces))
                found += [_entry(channel, entry, name) for name in entry.skips if name != entry.replaces]
        return found or _no_provider(group, version, kind)

    def latest_that_provide(self, group: str, version: str, kind: str) -> list[Any]:
        """The same for channel heads only, and only for skipped versions that are in the channel."""
        found = []
        for _, channel, head in self._heads_that_provide(group, version, kind):
            found.append(_entry(channel, head, head.replaces))
            names = channel.names
            found += [
                _entry(channel, head, name) for name in head.skips if name != head.replaces and name in names
            ]
        return found or _no_provider(group, version, kind)

    def default_that_provides(self, group: str, version: str, kind: str) -> Any:
        """The head of the default channel of the first package, by name, that provides an API."""
        any_channel = False
        for package, channel, head in self._heads_that_provide(group, version, kind):
            any_channel = True
            if channel.name == package.default_channel:
                return self._trimmed(package, channel, head)
        if not any_channel:
            _no_provider(group, version, kind)
        wanted = f"group:{quote(group)} version:{quote(version)} kind:{quote(kind)}"
        raise NotFound(f"no entry found that provides {wanted}")

    def custom(self, schema: str, package: str) -> Iterator[dict[str, Any]]:
        """The blobs of a schema that the API does not know, of one package or of none."""
        for blob in self._others.get((schema, package), ()):
            yield blob.value

    def _entries(self) -> Iterator[tuple[Package, Channel, Entry]]:
        for package in self._packages.values():
            for channel in sorted(package.channels.values(), key=lambda channel: channel.name):
                for entry in sorted(channel.entries, key=lambda entry: entry.name):
                    yield package, channel, entry

    def _heads_that_provide(
        self, group: str, version: str, kind: str
    ) -> Iterator[tuple[Package, Channel, Entry]]:
        for package in self._packages.values():
            for channel in sorted(package.channels.values(), key=lambda channel: channel.name):
                head = channel.heads[0]
                if self._provides(package, head, (group, version, kind)):
                    yield package, channel, head

    def _provides(self, package: Package, entry: Entry, api: tuple[str, str, str]) -> bool:
        return (package.name, entry.name) in self._providers.get(api, ())

    @functools.cached_property
    def _providers(self) -> dict[tuple[str, str, str], set[tuple[str, str]]]:
        """The bundles that provide each API; made when first asked for, since it reads every bundle."""
        found: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
        for key in self._bundles:
            for item in self._content(*key).properties:
                api = decoded(item) if item.type == GVK else None
                if isinstance(api, GroupVersionKind):
                    found.setdefault((api.group, api.version, api.kind), set()).add(key)
        return found

    def _content(self, package: str, name: str) -> BundleFields:
        fields = typed(self._bundles[package, name])
        assert isinstance(fields, BundleFields)
        return fields

    def _package(self, name: str) -> Package:
        if name not in self._packages:
            raise NotFound(f"package {quote(name)} not found")
        return self._packages[name]

    def _channel(self, package_name: str, channel_name: str) -> tuple[Package, Channel]:
        package = self._package(package_name)
        if channel_name not in package.channels:
            raise NotFound(f"package {quote(package_name)}, channel {quote(channel_name)} not found")
        return package, package.channels[channel_name]

    def _trimmed(self, package: Package, channel: Channel, entry: Entry) -> Any:
        bundle = self._message(package, channel, entry, manifests=True)
        bundle.replaces = ""
        del bundle.skips[:]
        return bundle

    def _message(self, package: Package, channel: Channel, entry: Entry, *, manifests: bool) -> Any:
        fields = self._content(package.name, entry.name)
        bundle = api_bundle(fields, self._fields[package.name], manifests=manifests or not fields.image)
        bundle.channelName = channel.name
        bundle.replaces, bundle.skipRange = entry.replaces, entry.skip_range
        bundle.skips.extend(entry.skips)
        _deprecate(bundle, package, BUNDLE, entry.name)
        return bundle


def _entry(channel: Channel, entry: Entry, replaces: str) -> Any:
    return _ChannelEntry(
        packageName=channel.package, channelName=channel.name, bundleName=entry.name, replaces=replaces
    )


def _deprecate(result: Any, package: Package, schema: str, name: str) -> None:
    if (schema, name) in package.deprecated:
        result.deprecation.message = package.deprecated[schema, name]


def _no_provider(group: str, version: str, kind: str) -> Any:
    wanted = f"group:{quote(group)} version:{quote(version)} kind:{quote(kind)}"
    raise NotFound(f"no channel entries found that provide {wanted}")
