"""Checks a catalog by opm's rules and reports every one that is broken, with the place of the blob.

opm stops at the first mistake of its first stage and only then looks at the rest. Here all rules are checked
at once, but there is a finding if and only if `opm validate` fails. Blobs stream by: a bundle is checked as
it passes, and what is kept of it for the checks between blobs is its name, version and place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from podium.api.findings import Finding, Place, Severity, quoted
from podium.catalog import channels
from podium.catalog import properties as bundle_properties
from podium.catalog.blobs import (
    PACKAGE,
    Blob,
    Bundle,
    CatalogError,
    Channel,
    DeprecationEntry,
    Deprecations,
    Package,
    typed,
)
from podium.catalog.outline import Channel as ChannelOutline
from podium.catalog.outline import Entry
from podium.catalog.outline import channel as channel_outline
from podium.catalog.properties import PackageProperty, release_identifiers
from podium.catalog.validate.rules import Rule
from podium.text.ranges import Range
from podium.text.references import Grammar, Reference
from podium.text.semver import Version

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL = 63


def validate(blobs: Iterable[Blob]) -> list[Finding]:
    """Every rule that the catalog breaks, in the order of the blobs; none if opm would accept it."""
    validator = Validator()
    for blob in blobs:
        validator.look_at(blob)
    return validator.findings()


@dataclass(slots=True)
class _Bundle:
    """What is kept of a bundle; `version` is empty if it could not be read."""

    version: str
    place: Place


@dataclass(slots=True)
class _Package:
    """Everything that says it belongs to a package, and the package's own blob if there is one."""

    name: str
    declared: bool = False
    incomplete: bool = False  # a blob of it could not be read: what seems to be missing may be in there
    place: Place = Place()
    default_channel: str = ""
    channels: dict[str, ChannelOutline] = field(default_factory=dict)
    bundles: dict[str, _Bundle] = field(default_factory=dict)
    deprecations: list[tuple[Deprecations, Place]] = field(default_factory=list)


class Validator:
    """Checks a catalog while it passes by, one blob after the other."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self.packages = 0
        self.other_schemas: set[str] = set()
        self._packages: dict[str, _Package] = {}

    def _report(self, rule: Rule, place: Place, subject: str, message: str) -> None:
        self._findings.append(Finding(Severity.ERROR, rule, message, subject, place))

    def findings(self, *, whole: bool = True) -> list[Finding]:
        """All that is wrong; of a catalog that is not `whole`, only what is wrong with single blobs."""
        if whole:
            self._look_between()
        return sorted(self._findings, key=lambda finding: (finding.place.file, finding.place.document))

    def _package(self, name: str) -> _Package:
        return self._packages.setdefault(name, _Package(name))

    # --- one blob at a time ---

    def look_at(self, blob: Blob) -> None:
        """Checks a blob on its own and remembers what the checks between blobs need."""
        try:
            fields = typed(blob)
        except CatalogError as error:
            self._report(Rule.FIELD_TYPE, error.place, blob.name, error.problem)
            package = self._package(blob.name if blob.schema == PACKAGE else blob.package)
            package.incomplete = True
            return
        match fields:
            case Package():
                self.packages += 1
                self._look_at_package(fields, blob.place)
            case Channel():
                self._look_at_channel(fields, blob.place)
            case Bundle():
                self._look_at_bundle(fields, blob.place)
            case Deprecations():
                self._package(fields.package).deprecations.append((fields, blob.place))
            case None:
                self.other_schemas.add(blob.schema)

    def _look_at_package(self, fields: Package, place: Place) -> None:
        name = fields.name
        subject = f"package {name}"
        if not name:
            self._report(Rule.PACKAGE_NAME_MISSING, place, subject, "the package has no name")
            return
        package = self._package(name)
        if package.declared:
            message = f"the package is declared twice{_first(package.place)}"
            self._report(Rule.PACKAGE_DUPLICATE, place, subject, message)
            return
        if len(name) > _LONGEST_LABEL or not _DNS_LABEL.fullmatch(name):
            message = (
                f"{name!r} is not a valid package name: use at most {_LONGEST_LABEL} lower-case letters, "
                "digits and hyphens, with a letter or digit first and last"
            )
            self._report(Rule.PACKAGE_NAME_INVALID, place, subject, message)
        package.declared, package.place, package.default_channel = True, place, fields.defaultChannel

    def _look_at_channel(self, fields: Channel, place: Place) -> None:
        package = self._package(fields.package)
        subject = f"channel {fields.package}/{fields.name}"
        if not fields.name:
            self._report(Rule.CHANNEL_NAME_MISSING, place, subject, "the channel has no name")
        elif first := package.channels.get(fields.name):
            message = f"package {fields.package!r} declares the channel twice{_first(first.place)}"
            self._report(Rule.CHANNEL_DUPLICATE, place, subject, message)
            return
        channel = channel_outline(fields, place)
        entries: dict[str, Entry] = {}
        for entry in channel.entries:
            self._look_at_entry(entry, place, subject)
            if entry.name in entries:
                self._report(
                    Rule.ENTRY_DUPLICATE, place, subject, f"the entry {entry.name!r} is listed twice"
                )
            entries.setdefault(entry.name, entry)
        package.channels[fields.name] = replace(channel, entries=tuple(entries.values()))

    def _look_at_entry(self, entry: Entry, place: Place, subject: str) -> None:
        if not entry.name:
            self._report(Rule.ENTRY_NAME_MISSING, place, subject, "an entry has no name")
        if "" in entry.skips:
            message = f"skip {entry.skips.index('')} of entry {entry.name!r} is empty"
            self._report(Rule.ENTRY_EMPTY_SKIP, place, subject, message)
        if entry.skip_range:
            try:
                Range.parse(entry.skip_range)
            except ValueError as error:
                message = f"the skipRange {entry.skip_range!r} of entry {entry.name!r} is invalid: {error}"
                self._report(Rule.ENTRY_SKIP_RANGE_INVALID, place, subject, message)

    def _look_at_bundle(self, fields: Bundle, place: Place) -> None:
        subject = f"bundle {fields.name}"
        properties = bundle_properties.read(fields.properties)
        for problem in properties.problems:
            self._report(Rule.BUNDLE_PROPERTY_INVALID, place, subject, problem)
        for problem in properties.object_problems:
            self._report(Rule.BUNDLE_OBJECT_INVALID, place, subject, problem)
        self._look_at_images(fields, place, subject)
        if not fields.image and not properties.objects:
            self._report(Rule.BUNDLE_IMAGE_MISSING, place, subject, "the bundle has no image")
        version = ""
        if len(properties.packages) == 1:
            version = self._version(fields, properties.packages[0], place, subject)
        elif not properties.problems or properties.packages:
            count = len(properties.packages)
            message = f"the bundle must have exactly one property of type {PACKAGE!r}, not {count}"
            self._report(Rule.BUNDLE_PACKAGE_PROPERTIES, place, subject, message)
        first = self._package(fields.package).bundles.setdefault(
            fields.name, bundle := _Bundle(version, place)
        )
        if first is not bundle:
            message = f"package {fields.package!r} has the bundle twice{_first(first.place)}"
            self._report(Rule.BUNDLE_DUPLICATE, place, subject, message)

    def _look_at_images(self, fields: Bundle, place: Place, subject: str) -> None:
        if fields.image and (problem := _reference_problem(fields.image)):
            message = f"the image {fields.image!r} is no image reference: {problem}"
            self._report(Rule.BUNDLE_IMAGE_INVALID, place, subject, message)
        for index, related in enumerate(fields.relatedImages):
            if related.image and (problem := _reference_problem(related.image)):
                message = f"related image {index}, {related.image!r}, is no image reference: {problem}"
                self._report(Rule.BUNDLE_RELATED_IMAGE_INVALID, place, subject, message)

    def _version(self, fields: Bundle, said: PackageProperty, place: Place, subject: str) -> str:
        """The version with its release as opm spells it; empty if it cannot be read."""
        if said.package_name != fields.package:
            message = f"the bundle is in package {fields.package!r}, its property says {said.package_name!r}"
            self._report(Rule.BUNDLE_PACKAGE_DIFFERS, place, subject, message)
        try:
            version = Version.parse(said.version)
        except ValueError as error:
            message = f"the version {said.version!r} is not a semantic version: {error}"
            self._report(Rule.BUNDLE_VERSION_INVALID, place, subject, message)
            return ""
        if not said.release:
            return str(version)
        if problem := _release_problem(said.release):
            message = f"the release {said.release!r} is invalid: {problem}"
            self._report(Rule.BUNDLE_RELEASE_INVALID, place, subject, message)
            return str(version)
        if version.build:
            message = (
                f"the version {said.version!r} has build metadata, which a bundle with a release must not"
            )
            self._report(Rule.BUNDLE_RELEASE_WITH_BUILD, place, subject, message)
        wanted = f"{fields.package}-v{version}-{said.release}"
        if fields.name != wanted:
            message = f"a bundle with a release must be named {wanted!r}"
            self._report(Rule.BUNDLE_NAME_WITHOUT_RELEASE, place, subject, message)
        return f"{version}-{said.release}"

    # --- between blobs ---

    def _look_between(self) -> None:
        """Checks what needs more than one blob."""
        for package in self._packages.values():
            if package.incomplete:
                continue
            if package.declared:
                self._look_at_default_channel(package)
            else:
                self._report_undeclared(package)
            for channel in package.channels.values():
                self._look_at_graph(channel, package)
            self._look_at_membership(package)
            self._look_at_versions(package)
            if package.declared:
                self._look_at_deprecations(package)

    def _report_undeclared(self, package: _Package) -> None:
        message = f"there is no package {package.name!r}"
        for channel in package.channels.values():
            subject = f"channel {package.name}/{channel.name}"
            self._report(Rule.CHANNEL_PACKAGE_UNKNOWN, channel.place, subject, message)
        for name, bundle in package.bundles.items():
            if package.name:
                self._report(Rule.BUNDLE_PACKAGE_UNKNOWN, bundle.place, f"bundle {name}", message)
            else:
                text = "the bundle names no package"
                self._report(Rule.BUNDLE_PACKAGE_MISSING, bundle.place, f"bundle {name}", text)
        for _, place in package.deprecations:
            if package.name:
                self._report(Rule.DEPRECATIONS_PACKAGE_UNKNOWN, place, f"package {package.name}", message)
            else:
                text = "the deprecations name no package"
                self._report(Rule.DEPRECATIONS_PACKAGE_MISSING, place, "", text)

    def _look_at_default_channel(self, package: _Package) -> None:
        subject = f"package {package.name}"
        if not package.default_channel:
            message = "the package sets no defaultChannel"
            self._report(Rule.DEFAULT_CHANNEL_MISSING, package.place, subject, message)
            if not package.channels:
                message = "the package has no channels"
                self._report(Rule.PACKAGE_WITHOUT_CHANNELS, package.place, subject, message)
        elif package.default_channel not in package.channels:
            known = quoted(sorted(package.channels)) or "none"
            message = f"the default channel {package.default_channel!r} does not exist (channels: {known})"
            self._report(Rule.DEFAULT_CHANNEL_UNKNOWN, package.place, subject, message)

    def _look_at_graph(self, channel: ChannelOutline, package: _Package) -> None:
        subject = f"channel {package.name}/{channel.name}"
        for rule, message in _graph_problems(channel):
            self._report(rule, channel.place, subject, message)
        missing = [entry.name for entry in channel.entries if entry.name not in package.bundles]
        if missing:
            message = f"there is no bundle for the entries {quoted(missing)}"
            self._report(Rule.ENTRY_WITHOUT_BUNDLE, channel.place, subject, message)

    def _look_at_membership(self, package: _Package) -> None:
        listed = {entry.name for channel in package.channels.values() for entry in channel.entries}
        for name, bundle in package.bundles.items():
            if name not in listed:
                message = f"no channel of package {package.name!r} lists the bundle"
                self._report(Rule.BUNDLE_IN_NO_CHANNEL, bundle.place, f"bundle {name}", message)

    def _look_at_versions(self, package: _Package) -> None:
        by_version: dict[str, list[str]] = {}
        for name, bundle in package.bundles.items():
            if bundle.version:
                by_version.setdefault(bundle.version, []).append(name)
        for version, names in by_version.items():
            if len(names) > 1:
                message = f"the bundles {quoted(sorted(names))} all have version {version}"
                place = package.bundles[names[-1]].place
                self._report(Rule.PACKAGE_DUPLICATE_VERSIONS, place, f"package {package.name}", message)

    def _look_at_deprecations(self, package: _Package) -> None:
        subject = f"package {package.name}"
        for index, (fields, place) in enumerate(package.deprecations):
            if index:
                message = f"the package has deprecations twice{_first(package.deprecations[0][1])}"
                self._report(Rule.DEPRECATIONS_DUPLICATE, place, subject, message)
            seen: set[tuple[str, str]] = set()
            for each in fields.entries or ():
                for rule, message in _deprecation_problems(each, package, seen):
                    self._report(rule, place, subject, message)
                seen.add((each.reference.schema, each.reference.name))


def _first(place: Place) -> str:
    return f", first at {place}" if place.file else ""


def _reference_problem(text: str) -> str:
    try:
        Reference.parse(text, Grammar.CONTAINERS)
    except ValueError as error:
        return str(error)
    return ""


def _release_problem(text: str) -> str:
    try:
        release_identifiers(text)
    except ValueError as error:
        return str(error)
    return ""


def _graph_problems(channel: ChannelOutline) -> Iterator[tuple[Rule, str]]:
    if not channel.entries:
        yield Rule.CHANNEL_EMPTY, "the channel has no entries"
        return
    heads = [entry.name for entry in channel.heads]
    if not heads:
        yield (
            Rule.CHANNEL_WITHOUT_HEAD,
            "every entry is replaced or skipped by another: the channel has no head",
        )
    elif len(heads) > 1:
        yield (
            Rule.CHANNEL_MULTIPLE_HEADS,
            f"nothing replaces or skips {quoted(heads)}: only one may be the head",
        )
    elif cycle := channels.chain(channel, heads[0]).cycle:
        yield (
            Rule.CHANNEL_CYCLE,
            f"the entries replace each other in a circle: {' -> '.join(map(repr, cycle))}",
        )
    elif lost := channels.stranded(channel, heads[0]):
        message = (
            f"the chain of replaces from {heads[0]!r} does not reach {quoted(lost)}, and nothing skips them"
        )
        yield Rule.CHANNEL_STRANDED, message


def _deprecation_problems(
    entry: DeprecationEntry, package: _Package, seen: set[tuple[str, str]]
) -> Iterator[tuple[Rule, str]]:
    schema, name = entry.reference.schema, entry.reference.name
    if (schema, name) in seen:
        yield Rule.DEPRECATION_DUPLICATE, f"{schema} {name!r} is deprecated twice"
    if not entry.message:
        yield Rule.DEPRECATION_MESSAGE_MISSING, f"the deprecation of {schema} {name!r} has no message"
    match schema:
        case "":
            yield Rule.DEPRECATION_SCHEMA_MISSING, "a deprecation does not say the schema of what it is about"
        case "olm.bundle" if name not in package.bundles:
            yield Rule.DEPRECATION_BUNDLE_UNKNOWN, f"there is no bundle {name!r} to deprecate"
        case "olm.channel" if name not in package.channels and name != package.default_channel:
            yield Rule.DEPRECATION_CHANNEL_UNKNOWN, f"there is no channel {name!r} to deprecate"
        case "olm.package" if name:
            yield Rule.DEPRECATION_PACKAGE_NAMED, f"a deprecated package must not be named, but {name!r} is"
        case "olm.bundle" | "olm.channel" | "olm.package":
            pass
        case _:
            yield Rule.DEPRECATION_SCHEMA_UNKNOWN, f"{schema!r} cannot be deprecated"
