"""`olm.template.basic`: a catalog written by hand, except for the contents of its bundles.

The file is `{schema, entries}`; entries are the blobs of the catalog, and of a bundle it says only where
its image is. Before opm 1.44 the file was a bare stream of such blobs, which is still understood here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.api.findings import Place
from podium.catalog import blobs
from podium.catalog.blobs import BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE, Blob, CatalogError
from podium.catalog.migrate import Level
from podium.catalog.read import blob_of, documents
from podium.catalog.templates.sources import Sources

SCHEMA = "olm.template.basic"
BARE_SCHEMAS = (PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS)


def images(template: bytes, file: str = "") -> list[str]:
    """The bundles that a template names, each once."""
    return list(dict.fromkeys(_image(blob) for blob in entries(template, file) if blob.schema == BUNDLE))


def render(template: bytes, sources: Sources, file: str = "", *, level: Level = Level.NONE) -> list[Blob]:
    """The template's blobs with every bundle replaced by what is in its image."""
    return [
        sources.get(_image(blob), level).blob if blob.schema == BUNDLE else blob
        for blob in list(entries(template, file))
    ]


def entries(template: bytes, file: str = "") -> Iterator[Blob]:
    """The blobs that the template holds, as written."""
    stream = list(documents(file, template))
    fields, place = first_document(stream, file)
    if fields.get("schema") in BARE_SCHEMAS:
        for value, where in stream:
            yield _checked(blob_of(value, where))
        return
    if fields.get("schema") != SCHEMA:
        found = fields.get("schema", "")
        raise CatalogError(f'template has unknown schema ("{found}"), should be "{SCHEMA}"', place)
    yield from listed(fields, place)


def first_document(stream: list[tuple[Any, Place]], file: str) -> tuple[dict[str, Any], Place]:
    """The fields of a template, found in any case; what follows the first document is not looked at."""
    if not stream:
        raise CatalogError("decoding template schema: the file is empty", Place(file))
    value, place = stream[0]
    if not isinstance(value, dict):
        raise CatalogError("unmarshalling template: expected an object", place)
    known = {name.casefold(): name for name in ("schema", "entries", "substitutions")}
    fields: dict[str, Any] = {}
    for key in sorted(value):
        if (name := known.get(key.casefold())) and value[key] is not None:
            fields[name] = value[key]
    return fields, place


def listed(fields: dict[str, Any], place: Place) -> Iterator[Blob]:
    """The blobs under `entries`."""
    given = fields.get("entries", [])
    if not isinstance(given, list):
        raise CatalogError("unmarshalling template: entries must be a list", place)
    for index, value in enumerate(given):
        try:
            yield _checked(blob_of(value, place))
        except CatalogError as error:
            raise CatalogError(f"entries[{index}]: {error.problem}", place) from None


def _checked(blob: Blob) -> Blob:
    blobs.typed(blob)
    return blob


def _image(blob: Blob) -> str:
    bundle = blobs.bundle(blob)
    if not bundle.image or bundle.package or bundle.properties or bundle.relatedImages:
        raise CatalogError("unexpected fields present in basic template bundle", blob.place)
    return bundle.image
