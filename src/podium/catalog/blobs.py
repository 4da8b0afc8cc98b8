"""What a file-based catalog is made of: blobs, and the four kinds of them that have fields of their own.

A `Blob` keeps its JSON as bytes, because a large catalog decoded into Python objects is ten times as big.
What `read` yields has one form: compact, keys sorted, numbers as a float64 prints them, nothing escaped but
quotes, backslashes, control characters and line separators; so equal content means equal bytes. Blobs made
by `render` keep property values as their author ordered them, for opm does; `canonical` gives those the one
form. `typed` gives the fields of a package, channel, bundle or deprecations blob as Go finds them: in any
case, null meaning not set.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from podium.api.findings import Place
from podium.catalog.decoding import Misfit, base64_data, compact, document, encoded, fit
from podium.text import gojson

PACKAGE = "olm.package"
CHANNEL = "olm.channel"
BUNDLE = "olm.bundle"
DEPRECATIONS = "olm.deprecations"


class CatalogError(ValueError):
    """A catalog, template or bundle that cannot be used; `place` says where, if that is known."""

    def __init__(self, problem: str, place: Place = Place()) -> None:
        super().__init__(f"{place}: {problem}" if place.file or place.line else problem)
        self.problem = problem
        self.place = place

    def __reduce__(self) -> tuple[type[CatalogError], tuple[str, Place]]:
        return CatalogError, (self.problem, self.place)  # so that it survives a process boundary


@dataclass(frozen=True, slots=True)
class Blob:
    """One object of a catalog; two blobs are equal if their content is, wherever they were found."""

    schema: str
    package: str
    name: str
    raw: bytes
    place: Place = Place()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    @property
    def value(self) -> dict[str, Any]:
        """The whole content, decoded anew with each call."""
        decoded: dict[str, Any] = msgspec.json.decode(self.raw)
        return decoded


class Property(msgspec.Struct, forbid_unknown_fields=True):
    """A typed fact about a bundle, channel or package; the value stays JSON until somebody wants it."""

    always_written = ("type", "value")

    type: str = ""
    value: msgspec.Raw = msgspec.Raw(b"")

    def decoded(self) -> Any:
        """The value; None if it is absent."""
        return msgspec.json.decode(self.value) if self.value else None


class Icon(msgspec.Struct, forbid_unknown_fields=True):
    """A picture, as base64 text; null, which opm writes for none, is not the same as empty."""

    always_written = ("base64data", "mediatype")

    base64data: str | None = None
    mediatype: str = ""


class Package(msgspec.Struct, forbid_unknown_fields=True):
    """`olm.package`."""

    always_written = ("schema", "name", "defaultChannel")

    schema: str = ""
    name: str = ""
    defaultChannel: str = ""  # noqa: N815
    icon: Icon | None = None
    description: str = ""
    properties: list[Property] = []


class ChannelEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A bundle in a channel and what it upgrades from."""

    always_written = ("name",)

    name: str = ""
    replaces: str = ""
    skips: list[str] = []
    skipRange: str = ""  # noqa: N815


class Channel(msgspec.Struct, forbid_unknown_fields=True):
    """`olm.channel`."""

    always_written = ("schema", "name", "package", "entries")

    schema: str = ""
    name: str = ""
    package: str = ""
    entries: list[ChannelEntry] | None = None
    properties: list[Property] = []


class RelatedImage(msgspec.Struct, forbid_unknown_fields=True):
    """An image that a bundle needs at run time."""

    always_written = ("name", "image")

    name: str = ""
    image: str = ""


class Bundle(msgspec.Struct, forbid_unknown_fields=True):
    """`olm.bundle`."""

    always_written = ("schema", "image")

    schema: str = ""
    name: str = ""
    package: str = ""
    image: str = ""
    properties: list[Property] = []
    relatedImages: list[RelatedImage] = []  # noqa: N815


class Reference(msgspec.Struct, forbid_unknown_fields=True):
    """What a deprecation is about."""

    always_written = ("schema",)

    schema: str = ""
    name: str = ""


class DeprecationEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One deprecated package, channel or bundle."""

    always_written = ("reference", "message")

    reference: Reference = msgspec.field(default_factory=Reference)
    message: str = ""


class Deprecations(msgspec.Struct, forbid_unknown_fields=True):
    """`olm.deprecations`."""

    always_written = ("schema", "package", "entries")

    schema: str = ""
    package: str = ""
    entries: list[DeprecationEntry] | None = None


Typed = Package | Channel | Bundle | Deprecations

_TYPES: dict[str, type[Typed]] = {
    PACKAGE: Package,
    CHANNEL: Channel,
    BUNDLE: Bundle,
    DEPRECATIONS: Deprecations,
}
_DECODERS = {schema: msgspec.json.Decoder(kind) for schema, kind in _TYPES.items()}


def typed(blob: Blob) -> Typed | None:
    """The fields of a blob of the four known schemas, None for any other; CatalogError if they do not fit."""
    decoder = _DECODERS.get(blob.schema)
    if decoder is None:
        return None
    try:
        found: Typed = decoder.decode(blob.raw)
    except msgspec.ValidationError:
        # Unknown keys, keys in another case, nulls, or a real mistake: find out the slow way.
        try:
            found = fit(_TYPES[blob.schema], gojson.FLOATS.decode(blob.raw.decode()), "")
        except Misfit as misfit:
            kind = blob.schema.removeprefix("olm.")
            raise CatalogError(f"parse {kind}: {misfit}", blob.place) from None
    if isinstance(found, Package) and found.icon is not None:
        _check_icon(found.icon, blob.place)
    return found


def bundle(blob: Blob) -> Bundle:
    """The fields of a bundle's blob; CatalogError if they do not fit."""
    found = typed(blob)
    if not isinstance(found, Bundle):
        raise CatalogError(f"expected a bundle, found a blob of schema {blob.schema!r}", blob.place)
    return found


def icon(value: Any) -> Icon:
    """An icon from decoded JSON or YAML; CatalogError if it is none."""
    try:
        made: Icon = fit(Icon, value, "icon")
    except Misfit as misfit:
        raise CatalogError(str(misfit)) from None
    _check_icon(made, Place())
    return made


def of(value: Typed | dict[str, Any], place: Place = Place()) -> Blob:
    """The blob that holds a value made by a program; key case is taken as given."""
    content = value if isinstance(value, dict) else document(value)
    schema, package, name = (content.get(key, "") for key in ("schema", "package", "name"))
    return Blob(schema, package, name, encoded(content), place)


def canonical(blob: Blob) -> Blob:
    """The blob with `raw` in its one form, if a renderer kept somebody's own order of keys in a property."""
    return replace(blob, raw=compact(gojson.FLOATS.decode(blob.raw.decode())))


def _check_icon(icon: Icon, place: Place) -> None:
    """Checks the base64 of an icon and writes it the standard way, without line breaks."""
    if icon.base64data is None:
        return
    try:
        data = base64_data(icon.base64data, "icon.base64data")
    except Misfit as misfit:
        raise CatalogError(f"parse package: {misfit}", place) from None
    icon.base64data = base64.b64encode(data).decode()
