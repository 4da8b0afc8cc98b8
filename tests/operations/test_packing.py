"""Bundles and catalogs as images: one input has one digest, and a name is what it says."""

from __future__ import annotations

import pytest

from harness import samplebundle
from harness.memoryimages import MemoryImages
from podium.content.sources import CONFIGS_LABEL, Source, bundle_files, catalog_streams, open_source
from podium.oci import build, unpack
from podium.oci.build import BuiltIndex
from podium.oci.errors import BadReference, ImageNotFound
from podium.oci.images import parse_platform
from podium.oci.model import Platform
from podium.operations.packing import (
    Packing,
    base_image,
    bundle_image,
    catalog_image,
    published_digest,
    put,
    tag_for,
)

NAME = "docker.io/acme/cache:1"
DIGEST = "sha256:" + "1" * 64


@pytest.fixture
def images() -> MemoryImages:
    return MemoryImages()


async def contents(source: Source) -> dict[str, bytes]:
    return {path: b"".join(chunks) for path, chunks in await catalog_streams(source)}


async def test_a_bundle_comes_back_out_of_its_image(images: MemoryImages) -> None:
    await put(bundle_image(samplebundle.files()), NAME, images)
    source = await open_source(NAME, images)
    assert await bundle_files(source) == samplebundle.files()
    assert source.image is not None
    assert source.image.labels["operators.operatorframework.io.bundle.channels.v1"] == "stable,fast"
    assert source.image.labels["operators.operatorframework.io.bundle.manifests.v1"] == "manifests/"


async def test_a_catalog_comes_back_out_of_its_image(images: MemoryImages) -> None:
    files = {"a/catalog.yaml": b"schema: a\n", "b/c/d.json": b"{}"}
    await put(catalog_image(files.items()), NAME, images)
    source = await open_source(NAME, images)
    assert {path.partition("/configs/")[2]: data for path, data in (await contents(source)).items()} == files
    assert source.image is not None
    assert source.image.labels == {CONFIGS_LABEL: "/configs"}


def test_the_order_of_files_changes_nothing_but_their_content_does() -> None:
    files = samplebundle.files()
    built = bundle_image(files)
    assert bundle_image(dict(reversed(files.items()))).descriptor == built.descriptor
    changed = {**files, samplebundle.CRD_FILE: files[samplebundle.CRD_FILE] + b"\n"}
    assert bundle_image(changed).descriptor != built.descriptor
    assert bundle_image(files, Packing(epoch=1)).descriptor != built.descriptor


async def test_what_is_there_is_not_written_again(images: MemoryImages) -> None:
    built = bundle_image(samplebundle.files())
    first = await put(built, NAME, images)
    writes = images.writes
    again = await put(built, NAME, images)
    assert (first.existed, again.existed) == (False, True)
    assert again.digest == first.digest == await published_digest(NAME, images)
    assert images.writes == writes


async def test_an_image_lies_on_the_base_it_is_given(images: MemoryImages) -> None:
    await put(catalog_image([("x", b"y")], Packing(labels={"base": "yes"})), "docker.io/acme/base:1", images)
    base = await base_image("docker.io/acme/base:1", images)
    await put(bundle_image(samplebundle.files(), Packing(base=base)), NAME, images)
    image = (await open_source(NAME, images)).image
    assert image is not None
    assert len(image.manifest.layers) == 2
    assert image.labels["base"] == "yes"
    assert await base_image("scratch", images) is None
    with pytest.raises(ImageNotFound):
        await base_image("docker.io/acme/gone:1", images)


async def test_nothing_of_the_base_is_taken_for_the_bundle_or_the_catalog(images: MemoryImages) -> None:
    below = {"configs/old.yaml": b"old", "manifests/old.yaml": b"old", "tests/t": b"old", "etc/kept": b"yes"}
    store, tag = images.store("docker.io/acme/base:1")
    await build.write(store, build.image([build.layer(below)]), tag)
    base = await base_image("docker.io/acme/base:1", images)
    await put(bundle_image(samplebundle.files(), Packing(base=base)), NAME, images)
    source = await open_source(NAME, images)
    assert await bundle_files(source) == samplebundle.files()
    assert source.image is not None
    assert await unpack.files(source.image, ["etc/"]) == {"etc/kept": b"yes"}
    await put(catalog_image([("new.yaml", b"new")], Packing(base=base)), NAME, images)
    files = await contents(await open_source(NAME, images))
    assert [(path.rpartition("/")[2], data) for path, data in files.items()] == [("new.yaml", b"new")]


@pytest.mark.parametrize("processors", [("amd64", "arm64"), ("s390x",)])
async def test_the_machine_that_builds_chooses_no_other_base(
    images: MemoryImages, monkeypatch: pytest.MonkeyPatch, processors: tuple[str, ...]
) -> None:
    platforms = [Platform(os="linux", architecture=each) for each in processors]
    index = build.index(build.image([], platform=each) for each in platforms)
    store, tag = images.store("docker.io/acme/base:1")
    await build.write(store, index, tag)
    found = set()
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        base = await base_image("docker.io/acme/base:1", images)
        found.add(bundle_image(samplebundle.files(), Packing(base=base)).descriptor.digest)
    assert len(found) == 1


@pytest.mark.parametrize(("tag", "expected"), [("1.0", "1.0"), ("", ""), (DIGEST, "")])
def test_an_image_is_tagged_unless_its_digest_is_the_name(tag: str, expected: str) -> None:
    assert tag_for(tag, DIGEST, NAME) == expected


async def test_the_digest_of_another_image_is_no_name_for_this_one(images: MemoryImages) -> None:
    with pytest.raises(BadReference, match="names another image"):
        await put(bundle_image(samplebundle.files()), f"docker.io/acme/cache@{DIGEST}", images)
    assert images.writes == 0
    assert await published_digest(NAME, images) == ""


def test_one_catalog_for_several_platforms_is_an_index_of_the_same_files() -> None:
    platforms = {parse_platform(text): None for text in ("linux/amd64", "linux/arm/v7")}
    index = catalog_image([("catalog.yaml", b"schema: x\n")], Packing(platforms=platforms))
    assert isinstance(index, BuiltIndex)
    assert [str(built.descriptor.platform) for built in index.images] == ["linux/amd64", "linux/arm/v7"]
    assert len({built.layers[0].descriptor.digest for built in index.images}) == 1
