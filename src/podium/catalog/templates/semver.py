"""`olm.semver`: channels and upgrade edges that follow from the versions of the bundles listed.

A template lists bundles under up to three archetypes: candidate, fast, stable. Each archetype gets a channel
per major version, per minor version, or both. Within a major version the highest patch of every minor version
replaces the highest of the minor version before, and skips everything else that came before it.

What exactly it skips has changed with opm's releases, see `Generation`; `edges` has one function for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from podium.api.findings import Place
from podium.bundle.annotations import as_text
from podium.catalog import blobs
from podium.catalog.blobs import CHANNEL, PACKAGE, Blob, CatalogError, Channel, Icon, Package
from podium.catalog.migrate import Level
from podium.catalog.properties import packages_of
from podium.catalog.templates import edges
from podium.catalog.templates.edges import MAJOR, MINOR, Slot
from podium.catalog.templates.sources import Rendered, Sources
from podium.text import yaml
from podium.text.semver import Version

SCHEMA = "olm.semver"
ARCHETYPES = ("candidate", "fast", "stable")  # from least to most stable


class Generation(StrEnum):
    """Which opm's edges to make; each value is the first release of its kind that is still worth naming."""

    V1_36 = "1.36"  # up to 1.36: as 1.61 again; it also migrated bundles to CSV metadata, see `migrate`
    V1_51 = "1.51"  # 1.37 to 1.56: a replaced bundle is skipped too, which OLM v0 takes for no replacement
    V1_57 = "1.57"  # 1.57 to 1.60: without that, still channel by channel
    V1_61 = "1.61"  # 1.61 to 1.64: minor channels know the bundles before them
    HEAD = "head"  # since 1.65: the package's description and icon come from the newest bundle


def generation(opm: str) -> Generation:
    """The generation of an opm release such as `1.51.0` or `v1.60`; `head` is the newest."""
    if opm == Generation.HEAD:
        return Generation.HEAD
    try:
        version = Version.parse_tolerant(opm)
    except ValueError as error:
        raise CatalogError(f'"{opm}" is no opm release: {error}') from None
    if version.major != 1:
        raise CatalogError(f'"{opm}" is no opm release: only 1.x is known')
    ends = ((36, Generation.V1_36), (56, Generation.V1_51), (60, Generation.V1_57), (64, Generation.V1_61))
    return next((found for last, found in ends if version.minor <= last), Generation.HEAD)


@dataclass(frozen=True, slots=True)
class Template:
    """What a template file says, with defaults applied."""

    major: bool
    minor: bool
    preference: str  # the kind of channel that is the default one if versions leave the choice
    bundles: dict[str, tuple[str, ...]]  # references by archetype

    @property
    def images(self) -> list[str]:
        """Every reference once, in order of appearance."""
        return list(dict.fromkeys(image for archetype in ARCHETYPES for image in self.bundles[archetype]))


def images(template: bytes, file: str = "") -> list[str]:
    """The bundles that a template names."""
    return parse(template, file).images


def render(
    template: bytes,
    sources: Sources,
    file: str = "",
    *,
    generation: Generation = Generation.HEAD,
    level: Level = Level.NONE,
) -> list[Blob]:
    """The package, its channels and its bundles."""
    parsed = parse(template, file)
    place = Place(file, 1)
    rendered = {image: sources.get(image, level) for image in parsed.images}
    if not rendered:
        raise CatalogError("render: no bundles specified or no bundles could be rendered", place)
    try:
        package, versions = _versions(parsed, rendered)
    except CatalogError as error:
        raise CatalogError(f"render: unable to post-process bundle info: {error.problem}", place) from None
    slots = _slots(parsed, versions)
    channels = _LINK[generation](slots)
    default = _default_channel(slots, parsed.preference)
    made = Package(PACKAGE, package, default)
    if generation is Generation.HEAD and channels.get(default):
        by_name = {each.blob.name: each for each in rendered.values()}
        _describe(made, by_name[channels[default][-1].name])
    named = [Channel(CHANNEL, name, package, channels[name]) for name in sorted(channels)]
    unique = {each.blob.raw: each.blob for each in rendered.values()}
    return [blobs.of(made, place), *(blobs.of(each, place) for each in named), *unique.values()]


_LINK = {
    Generation.V1_36: edges.across_channels,
    Generation.V1_51: edges.within_channels_skipping_the_replaced,
    Generation.V1_57: edges.within_channels,
    Generation.V1_61: edges.across_channels,
    Generation.HEAD: edges.across_channels,
}


# --- the file ---

_FIELDS = {
    name.casefold(): name
    for name in (
        "schema",
        "generateMajorChannels",
        "generateMinorChannels",
        "defaultChannelTypePreference",
        *ARCHETYPES,
    )
}


def parse(template: bytes, file: str = "") -> Template:
    """What the template says; CatalogError, with the line, for what opm would not accept."""
    return _Parser(template, file).template()


class _Parser:
    def __init__(self, text: bytes, file: str) -> None:
        self._text = text
        self._file = file

    def template(self) -> Template:
        try:
            value = next(iter(yaml.load_all(self._text)), None)
        except yaml.YAMLError as error:
            line = error.line or 0
            raise CatalogError(f"unable to read file: {error}", Place(self._file, 1, line)) from None
        fields = self._fields(value, _FIELDS, ())
        if self._string(fields, "schema", ()) != SCHEMA:
            self._fail(f'input file has unknown schema, should be "{SCHEMA}"', ("schema",))
        major = self._flag(fields, "generateMajorChannels")
        minor = self._flag(fields, "generateMinorChannels") or not major
        bundles = {archetype: self._bundles(fields, archetype) for archetype in ARCHETYPES}
        return Template(major, minor, self._preference(fields, major, minor), bundles)

    def _preference(self, fields: dict[str, tuple[str, Any]], major: bool, minor: bool) -> str:
        given = self._string(fields, "defaultChannelTypePreference", ())
        if given == "":
            return MINOR if minor else MAJOR
        where = (fields["defaultChannelTypePreference"][0],)
        if given not in (MAJOR, MINOR):
            self._fail(f'unknown DefaultChannelTypePreference: "{given}"; it must be major or minor', where)
        if not (major if given == MAJOR else minor):
            self._fail(
                f"schema attribute mismatch: DefaultChannelTypePreference set to '{given}' doesn't make sense"
                f" if not generating {given}-version channels",
                where,
            )
        return given

    def _bundles(self, fields: dict[str, tuple[str, Any]], archetype: str) -> tuple[str, ...]:
        key, value = fields.get(archetype, (archetype, None))
        key_of_list, listed = self._fields(value, {"bundles": "bundles"}, (key,)).get("bundles", ("", None))
        path = (key, key_of_list)
        if listed is not None and not isinstance(listed, list):
            self._fail(f"{archetype}.bundles must be a list", path)
        found = []
        for index, item in enumerate(listed or ()):
            here = (*path, index)
            found.append(self._string(self._fields(item, {"image": "image"}, here), "image", here))
        return tuple(found)

    def _fields(
        self, value: Any, known: dict[str, str], path: tuple[str | int, ...]
    ) -> dict[str, tuple[str, Any]]:
        """The fields of a mapping, in any case: by their name, the key as written and the value."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._fail(f"{_path(path) or 'the template'} must be a mapping", path)
        found: dict[str, tuple[str, Any]] = {}
        for key in sorted(value):
            name = known.get(key.casefold())
            if name is None:
                self._fail(f'unknown field "{key}"', (*path, key))
            if value[key] is not None or name not in found:
                found[name] = (key, value[key])
        return found

    def _string(self, fields: dict[str, tuple[str, Any]], name: str, path: tuple[str | int, ...]) -> str:
        key, value = fields.get(name, (name, None))
        text = as_text(value)
        if text is None:
            self._fail(f"{_path((*path, key))} must be a string", (*path, key))
        return text

    def _flag(self, fields: dict[str, tuple[str, Any]], name: str) -> bool:
        key, value = fields.get(name, (name, None))
        if value is not None and not isinstance(value, bool):
            self._fail(f"{key} must be true or false", (key,))
        return bool(value)

    def _fail(self, problem: str, path: Sequence[str | int]) -> NoReturn:
        line = yaml.locate(self._text, path) if path else 1
        raise CatalogError(problem, Place(self._file, 1, line))


def _path(path: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in path)


# --- versions and channels ---


def _versions(template: Template, rendered: dict[str, Rendered]) -> tuple[str, dict[str, dict[str, Version]]]:
    """The package that all bundles belong to, and for each archetype the version of each bundle name."""
    package = ""
    found: dict[str, dict[str, Version]] = {}
    for archetype in ARCHETYPES:
        versions: dict[str, Version] = {}
        for image in template.bundles[archetype]:
            name, owner, version = _identity(rendered[image])
            package = package or owner
            if owner != package:
                raise CatalogError(f'bundle "{owner}" does not belong to this package: "{package}"')
            if name in versions:
                raise CatalogError(f'duplicate bundle name "{name}"')
            versions[name] = version
        _refuse_equal_ranks(versions)
        found[archetype] = versions
    return package, found


def _identity(rendered: Rendered) -> tuple[str, str, Version]:
    name = rendered.blob.name
    packages = packages_of(rendered.bundle)
    if len(packages) != 1:
        raise CatalogError(f'bundle "{name}" has multiple "{PACKAGE}" properties, expected exactly 1')
    owner, text = packages[0].package_name, packages[0].version
    try:
        return name, owner, Version.parse(text)
    except ValueError as error:
        raise CatalogError(f'bundle "{name}" has invalid version "{text}": {error}') from None


def _refuse_equal_ranks(versions: dict[str, Version]) -> None:
    seen: dict[str, Version] = {}
    conflicts = []
    for version in versions.values():
        plain = str(Version(version.major, version.minor, version.patch, version.prerelease))
        if plain in seen:
            conflicts.append(f'bundle version "{version}" cannot be compared to "{plain}"')
        seen[plain] = version
    if conflicts:
        raise CatalogError(
            "encountered bundle versions which differ only by build metadata, which cannot be ordered: "
            + (conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]")
        )


def _slots(template: Template, versions: dict[str, dict[str, Version]]) -> list[Slot]:
    """Every place of a bundle in a channel, by archetype, kind of channel and version."""
    slots = []
    for rank, archetype in enumerate(ARCHETYPES):
        ascending = sorted(versions[archetype].items(), key=lambda item: item[1].precedence)
        for kind, wanted in ((MAJOR, template.major), (MINOR, template.minor)):
            for name, version in ascending if wanted else ():
                x, y = version.major, version.minor
                channel = f"{archetype}-v{x}" if kind == MAJOR else f"{archetype}-v{x}.{y}"
                slots.append(Slot(rank, kind, channel, name, version))
    return slots


def _default_channel(slots: list[Slot], preference: str) -> str:
    """The channel of the highest archetype whose *lowest* version is highest; then the preferred kind.

    It should be the highest version, and would be if opm compared heads; but it compares a channel when it
    creates it, from its lowest bundle. A candidate below 0.0.0 never becomes the default.
    """
    opened: dict[str, Slot] = {}
    for slot in slots:
        opened.setdefault(slot.channel, slot)
    zero = Version(0, 0, 0)
    eligible = [slot for slot in opened.values() if slot.archetype > 0 or slot.version >= zero]

    def rank(slot: Slot) -> tuple[int, Any, bool, bool]:
        return slot.archetype, slot.version.precedence, slot.kind == preference, slot.kind == MINOR

    return max(eligible, key=rank).channel if eligible else ""


# --- the package's description and icon ---


def _describe(package: Package, head: Rendered) -> None:
    """Sets what the ClusterServiceVersion of the default channel's newest bundle says of the package."""
    spec = head.csv.get("spec") if head.csv else None
    if not isinstance(spec, dict):
        return
    description = spec.get("description")
    if isinstance(description, str):
        package.description = description
    icons = spec.get("icon")
    if isinstance(icons, list) and icons:
        package.icon = _icon(icons)


def _icon(icons: list[Any]) -> Icon | None:
    """The first icon; none if any of the list is no icon."""
    try:
        first, *_ = [blobs.icon(each) for each in icons]
        return first
    except CatalogError:
        return None
