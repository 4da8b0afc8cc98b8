"""Brings bundles of a catalog up to a newer form, level by level, as opm's `--migrate-level` does.

There is one level so far: whole manifests in `olm.bundle.object` properties give way to one
`olm.csv.metadata` property. It leaves alone what has no image, for its objects are nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from podium.bundle.model import CSV_KIND
from podium.catalog import blobs, csvmetadata
from podium.catalog.blobs import BUNDLE, Blob, Bundle, CatalogError, Property
from podium.catalog.decoding import Misfit
from podium.catalog.properties import BUNDLE_OBJECT, CSV_METADATA, BundleObject, decoded, manifest_problem
from podium.text import gojson, yaml


class Level(StrEnum):
    """How far to migrate; each level includes those before it."""

    NONE = "none"
    CSV_METADATA = "bundle-object-to-csv-metadata"
    ALL = "all"


def migrate_blob(blob: Blob, level: Level = Level.ALL) -> Blob:
    """The same blob, at the level if it is a bundle."""
    if level is Level.NONE or blob.schema != BUNDLE:
        return blob
    bundle = blobs.bundle(blob)
    if not bundle.image or any(each.type == CSV_METADATA for each in bundle.properties):
        return blob
    try:
        csv = find_csv(bundle)
        if csv is None:
            return blob
        metadata = Property(CSV_METADATA, msgspec.Raw(csvmetadata.property_value(csv)))
    except CatalogError as error:
        raise CatalogError(f'migrate bundle "{blob.name}": {error.problem}', blob.place) from None
    kept = [each for each in bundle.properties if each.type != BUNDLE_OBJECT]
    bundle.properties = [*kept, metadata]
    return blobs.of(bundle, blob.place)


def find_csv(bundle: Bundle) -> dict[str, Any] | None:
    """The first ClusterServiceVersion among the bundle's inline objects."""
    for data in inline_objects(bundle):
        try:
            value = gojson.decode(data) if data.lstrip().startswith(b"{") else yaml.load(data, duplicates=[])
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("kind") == CSV_KIND:
            return value
    return None


def check_inline_objects(bundle: Bundle) -> None:
    """CatalogError unless every manifest in the bundle's properties can be read."""
    for data in inline_objects(bundle):
        if problem := manifest_problem(data):
            raise CatalogError(f"a property of type {BUNDLE_OBJECT} holds no manifest: {problem}")


def inline_objects(bundle: Bundle) -> Iterator[bytes]:
    """The manifests that a bundle carries in its properties; CatalogError for one that does not decode."""
    for index, each in enumerate(bundle.properties):
        if each.type == BUNDLE_OBJECT:
            try:
                content = decoded(each)
            except Misfit as misfit:
                raise CatalogError(f"properties[{index}] is no {BUNDLE_OBJECT}: {misfit}") from None
            assert isinstance(content, BundleObject)
            yield content.data or b""
