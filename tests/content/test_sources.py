"""Whatever a user names is opened, and told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.content.directories import UnreadableContent
from podium.content.sources import SourceKind, bundle_files, catalog_blobs, image_reference, open_source
from podium.oci import build
from podium.oci.errors import ImageNotFound
from podium.oci.layout import Layout
from podium.oci.open import Images
from podium.operations.packing import bundle_image, catalog_image

PACKAGE = json.dumps({"schema": "olm.package", "name": "pantry", "defaultChannel": "stable"}).encode()
BUNDLE = {
    "manifests/csv.yaml": b"{kind: ClusterServiceVersion, metadata: {name: p.v1}, spec: {version: 1.0.0}}",
    "metadata/annotations.yaml": b"annotations: {operators.operatorframework.io.bundle.package.v1: pantry}\n",
}


async def test_a_catalog_in_an_image_reads_like_the_one_in_a_directory(tmp_path: Path) -> None:
    directory = tmp_path / "catalog"
    directory.mkdir()
    files = {"catalog.json": PACKAGE, ".indexignore": b"*.md", "notes.md": b"# not a catalog"}
    for name, data in files.items():
        (directory / name).write_bytes(data)
    layout = tmp_path / "layout"
    await build.write(Layout(layout), catalog_image(files.items()), "1.0")
    async with Images() as images:
        for name in (str(directory), f"dir:{directory}", f"oci:{layout}:1.0"):
            source = await open_source(name, images)
            assert source.kind is SourceKind.CATALOG
            assert [blob.name for blob in await catalog_blobs(source)] == ["pantry"]


async def test_a_bundle_in_an_image_has_the_files_of_its_directory_and_a_digest(tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    built = bundle_image(BUNDLE)
    await build.write(Layout(layout), built, "1.0")
    async with Images() as images:
        source = await open_source(f"oci:{layout}:1.0", images)
        assert (source.kind, source.digest) == (SourceKind.BUNDLE, built.descriptor.digest)
        assert await bundle_files(source) == BUNDLE
        with pytest.raises(UnreadableContent, match="is a bundle, not a catalog"):
            await catalog_blobs(source)


async def test_an_image_that_is_neither_says_which_labels_it_has(tmp_path: Path) -> None:
    built = build.image([build.layer({"x": b""})], labels={"maintainer": "me"})
    await build.write(Layout(tmp_path), built, "1.0")
    async with Images() as images:
        with pytest.raises(UnreadableContent, match=r"neither a catalog nor a bundle.*maintainer"):
            await open_source(f"oci:{tmp_path}:1.0", images)


async def test_what_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    async with Images() as images:
        with pytest.raises(UnreadableContent, match="no such file or directory"):
            await open_source(f"{tmp_path}/absent", images)
        with pytest.raises(ImageNotFound):
            await open_source(f"oci:{tmp_path}/absent:1.0", images)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("acme/pantry:1.0", "docker.io/acme/pantry:1.0"),
        ("docker://docker.io/acme/pantry:1.0", "docker.io/acme/pantry:1.0"),
        ("oci:images:docker.io/acme/pantry:1.0", "docker.io/acme/pantry:1.0"),
        ("oci:images:1.0", ""),
        ("oci:some/images", ""),
        ("oci-archive:some/images.tar:docker.io/acme/pantry:1.0", "docker.io/acme/pantry:1.0"),
    ],
)
def test_the_reference_of_an_image_is_full_or_unknown(name: str, reference: str) -> None:
    assert image_reference(name) == reference
