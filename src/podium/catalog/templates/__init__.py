"""Catalog templates: short files that name bundles, and rules that make a catalog from them.

Rendering has two steps, so that nothing here needs a network: `images` lists the bundles a template names,
the caller fetches them from registries, layouts or local directories, and `render` makes the blobs. Read
`sources` for what a bundle may be, then `semver`, `basic` and `substitutes`.
"""

from __future__ import annotations

from enum import StrEnum

from podium.api.findings import Place
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.migrate import Level
from podium.catalog.read import documents
from podium.catalog.templates import basic, semver, substitutes
from podium.catalog.templates.semver import Generation
from podium.catalog.templates.sources import Sources


class TemplateKind(StrEnum):
    """The templates there are, by the schema of their file."""

    SEMVER = semver.SCHEMA
    BASIC = basic.SCHEMA
    SUBSTITUTES = substitutes.SCHEMA


def kind(template: bytes, file: str = "") -> TemplateKind:
    """What kind of template a file holds; a bare stream of blobs is the old form of a basic one."""
    value, place = next(documents(file, template), (None, Place(file)))
    schema = ""
    if isinstance(value, dict):
        schema = next((str(value[key]) for key in sorted(value) if key.casefold() == "schema"), "")
    if not schema:
        raise CatalogError("template input missing required 'schema' field", place)
    if schema in basic.BARE_SCHEMAS:
        return TemplateKind.BASIC
    try:
        return TemplateKind(schema)
    except ValueError:
        raise CatalogError(f"unknown template schema: {schema}", place) from None


def images(template: bytes, file: str = "") -> list[str]:
    """The bundles that a template names, each once, in order of appearance."""
    match kind(template, file):
        case TemplateKind.SEMVER:
            return semver.images(template, file)
        case TemplateKind.BASIC:
            return basic.images(template, file)
    return substitutes.images(template, file)


def render(
    template: bytes,
    sources: Sources,
    file: str = "",
    *,
    generation: Generation = Generation.HEAD,
    level: Level = Level.NONE,
) -> list[Blob]:
    """The catalog that a template makes of its bundles; CatalogError says what is wrong with either."""
    match kind(template, file):
        case TemplateKind.SEMVER:
            return semver.render(template, sources, file, generation=generation, level=level)
        case TemplateKind.BASIC:
            return basic.render(template, sources, file, level=level)
    return substitutes.render(template, sources, file, level=level)
