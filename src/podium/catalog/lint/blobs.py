"""Lints that need one blob only: names nobody reads, pictures that are none, images that move."""

from __future__ import annotations

import base64
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.api.findings import Finding, Place
from podium.catalog.blobs import Blob, Bundle, Channel, Deprecations, Icon, Package, Property, Typed
from podium.catalog.lint.rules import Lint, finding
from podium.catalog.properties import BUNDLE_OBJECT, CSV_METADATA, TYPES, BundleObject, decoded
from podium.text.pictures import media_type
from podium.text.references import Grammar, Reference

_KNOWN_PROPERTIES = frozenset(
    {
        *TYPES,
        "olm.constraint",
        "olm.label",
        "olm.deprecated",
        "olm.maxOpenShiftVersion",
        "olm.substitutesFor",
    }
)
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in (Package, Channel, Bundle, Deprecations)}


def look(blob: Blob, fields: Typed | None) -> Iterator[Finding]:
    """What is odd about a blob on its own."""
    if fields is None:
        if blob.schema.startswith("olm."):
            message = f"nothing reads the schema {blob.schema!r}; is it misspelt?"
            yield finding(Lint.UNKNOWN_SCHEMA, message, blob.name, blob.place)
        return
    subject = _subject(fields)
    for key in _unknown_fields(blob, fields):
        yield finding(
            Lint.UNKNOWN_FIELD, f"nothing reads the field {key!r}; is it misspelt?", subject, blob.place
        )
    match fields:
        case Package():
            yield from _package(fields, subject, blob.place)
        case Bundle():
            yield from _properties(fields, subject, blob.place)
            yield from _images(fields, subject, blob.place)
        case Deprecations() if not fields.entries:
            yield finding(
                Lint.DEPRECATIONS_EMPTY, "the deprecations list nothing: remove them", subject, blob.place
            )


def _subject(fields: Typed) -> str:
    match fields:
        case Package():
            return f"package {fields.name}"
        case Channel():
            return f"channel {fields.package}/{fields.name}"
        case Bundle():
            return f"bundle {fields.name}"
        case _:
            return f"package {fields.package}"


# --- fields ---


def _unknown_fields(blob: Blob, fields: Typed) -> list[str]:
    """The paths of keys that opm drops; found the fast way if there are none."""
    try:
        _DECODERS[type(fields)].decode(blob.raw)
    except msgspec.ValidationError:
        return sorted(set(_unknown_keys(type(fields), blob.value, "")))
    return []


def _unknown_keys(kind: type[msgspec.Struct], value: Any, where: str) -> Iterator[str]:
    known = {each.name.casefold(): each for each in msgspec.structs.fields(kind)}
    for key, item in value.items() if isinstance(value, dict) else ():
        each = known.get(key.casefold())
        if each is None:
            yield f"{where}{key}"
        elif inner := _struct_in(each.type):
            for part in item if isinstance(item, list) else [item]:
                yield from _unknown_keys(inner, part, f"{where}{each.name}.")


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that an annotation such as `list[Entry] | None` speaks of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next(filter(None, map(_struct_in, typing.get_args(kind))), None)


# --- packages ---


def _package(fields: Package, subject: str, place: Place) -> Iterator[Finding]:
    if not fields.description:
        yield finding(
            Lint.PACKAGE_WITHOUT_DESCRIPTION,
            "the package has no description: say what it is for",
            subject,
            place,
        )
    if fields.icon is not None:
        yield from _icon(fields.icon, subject, place)


def _icon(icon: Icon, subject: str, place: Place) -> Iterator[Finding]:
    if not icon.base64data or not icon.mediatype:
        missing = "data" if not icon.base64data else "mediatype"
        yield finding(Lint.ICON_EMPTY, f"the icon has no {missing}", subject, place)
        return
    found = media_type(base64.b64decode(icon.base64data))
    if found != icon.mediatype:
        said = found or "no picture that is known"
        message = f"the icon says it is {icon.mediatype!r}, its data is {said}"
        yield finding(Lint.ICON_TYPE, message, subject, place)


# --- bundles ---


def _properties(fields: Bundle, subject: str, place: Place) -> Iterator[Finding]:
    kinds = {item.type for item in fields.properties}
    for kind in sorted(kinds):
        if kind.startswith("olm.") and kind not in _KNOWN_PROPERTIES:
            message = f"nothing reads properties of type {kind!r}; is it misspelt?"
            yield finding(Lint.UNKNOWN_PROPERTY, message, subject, place)
    if CSV_METADATA not in kinds and BUNDLE_OBJECT not in kinds:
        message = f"the bundle has no {CSV_METADATA!r} property, so catalog browsers have nothing to show"
        yield finding(Lint.BUNDLE_WITHOUT_METADATA, message, subject, place)
    for index, item in enumerate(fields.properties):
        if item.type == BUNDLE_OBJECT and (problem := _broken_json(item)):
            message = f"property {index}, an inline manifest, is not JSON: {problem}"
            yield finding(Lint.MANIFEST_BROKEN, message, subject, place)


def _broken_json(item: Property) -> str:
    """Why a manifest that begins like JSON is none: opm does not look, the cluster that installs it does."""
    try:
        content = decoded(item)
    except ValueError:  # the validator says so
        return ""
    data = content.data if isinstance(content, BundleObject) else None
    if not data or not data.lstrip().startswith(b"{"):
        return ""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _images(fields: Bundle, subject: str, place: Place) -> Iterator[Finding]:
    named = {related.image for related in fields.relatedImages} | {fields.image}
    images = {image: found for image in sorted(named) if (found := _reference(image))}
    short = [f"{image} ({found})" for image, found in images.items() if str(found) != image]
    if short:
        message = f"write out where the images are: {', '.join(short)}"
        yield finding(Lint.IMAGE_NOT_CANONICAL, message, subject, place)
    moving = [image for image, found in images.items() if not found.digest]
    if moving:
        message = f"named by tag, these images may change without notice: {', '.join(moving)}"
        yield finding(Lint.IMAGE_BY_TAG, message, subject, place)
    empty = sum(not related.image for related in fields.relatedImages)
    if empty:
        message = f"{empty} of the related images name no image: a mirrored catalog will lack them"
        yield finding(Lint.RELATED_IMAGE_EMPTY, message, subject, place)


def _reference(image: str) -> Reference | None:
    try:
        return Reference.parse(image, Grammar.CONTAINERS)
    except ValueError:  # empty, or the validator says so
        return None
