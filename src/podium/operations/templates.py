"""Catalogs from templates: finds the bundles that a template names, wherever they are, and renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.api.findings import Place
from podium.bundle.model import Files
from podium.catalog import templates
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.migrate import Level
from podium.catalog.templates.semver import Generation
from podium.catalog.templates.sources import Sources
from podium.content.sources import bundle_files, open_source
from podium.oci.errors import BadReference, ImageNotFound
from podium.oci.open import Images
from podium.operations.together import together


@dataclass(frozen=True, slots=True)
class Request:
    """A template and how to render it.

    `places` says where the bundle of an image reference is to be found instead of in its registry: a
    directory or a layout. So a catalog can be made before anything is pushed.
    """

    template: bytes
    file: str = ""
    generation: Generation = Generation.HEAD
    level: Level = Level.NONE
    places: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Files | Blob] = field(default_factory=dict)


async def render(request: Request, images: Images) -> list[Blob]:
    """The catalog that a template makes; every bundle is fetched once, several at a time."""

    async def fetch(reference: str) -> tuple[str, Files | Blob]:
        if reference in request.known:
            return reference, request.known[reference]
        try:
            source = await open_source(request.places.get(reference, reference), images)
        except BadReference as error:
            raise CatalogError(str(error), _place(request, reference)) from None
        except ImageNotFound as error:
            where = f"{_place(request, reference)}: {reference}"
            raise ImageNotFound(
                f"{where}: {error}; push it first; if it was never published, take the line out"
            ) from None
        return reference, await bundle_files(source)

    sources = Sources(dict(await together(fetch, templates.images(request.template, request.file))))
    return templates.render(
        request.template, sources, request.file, generation=request.generation, level=request.level
    )


def _place(request: Request, reference: str) -> Place:
    """Where a template names a bundle; without a line if it spells the name in some other way."""
    before, found, _ = request.template.partition(reference.encode())
    return Place(request.file, 1, before.count(b"\n") + 1 if found else 0)
