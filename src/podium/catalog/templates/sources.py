"""Where a template's bundles come from, and what they will be called.

The caller passes a mapping from the references *as the template writes them* to what is there: the files of
a bundle, or a blob that was rendered before. What a catalog must say is where the image will be pulled
from. For `registry/path:tag` that is the reference itself, short names completed (opm refuses those). So a
bundle that is not pushed yet is rendered by mapping its future reference to the files of its directory: on
a command line, `--bundle docker.io/acme/operator-bundle:1.0.0=./bundle`. A template may also name a source
that is no image reference (`dir:./bundle`, `oci:layout:1.0.0`, a path); then `names` must say what it will
be called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.bundle import read as bundle_read
from podium.bundle.model import BundleError, Files
from podium.catalog import blobs, render
from podium.catalog.blobs import Blob, Bundle, CatalogError
from podium.catalog.migrate import Level, find_csv, migrate_blob

_LOCAL = ("dir:", "oci:", "./", "../", "/")


@dataclass(frozen=True, slots=True)
class Sources:
    """Bundles by the reference that the template gives, and final references for those that are none."""

    bundles: Mapping[str, Files | Blob]
    names: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False  # refuse short image names, as opm does

    def get(self, reference: str, level: Level = Level.NONE) -> Rendered:
        """A bundle, rendered; CatalogError if it was not supplied or is none."""
        found = self.bundles.get(reference)
        if found is None:
            raise CatalogError(f'bundle "{reference}" was not supplied')
        image = self.image(reference)
        try:
            if isinstance(found, Blob):
                return _from_blob(found, image, level)
            bundle = bundle_read.read_leniently(found)
            return Rendered(render.bundle_blob(bundle, image, level), bundle.csv)
        except (BundleError, CatalogError) as error:
            raise CatalogError(f'render reference "{reference}": {error}') from None

    def image(self, reference: str) -> str:
        """The image reference that the catalog will hold."""
        name = self.names.get(reference, reference)
        if name.startswith(_LOCAL):
            raise CatalogError(
                f'"{reference}" is a local source without an image reference: say what it will be called'
            )
        return render.image_reference(name, strict=self.strict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A bundle's blob, and its ClusterServiceVersion if that is known."""

    blob: Blob
    csv: dict[str, Any] | None

    @property
    def bundle(self) -> Bundle:
        """The fields of the blob."""
        return blobs.bundle(self.blob)


def _from_blob(blob: Blob, image: str, level: Level) -> Rendered:
    bundle = blobs.bundle(blob)
    csv = find_csv(bundle)
    if bundle.image != image:
        bundle.image = image
        blob = blobs.of(bundle, blob.place)
    return Rendered(migrate_blob(blob, level), csv)
