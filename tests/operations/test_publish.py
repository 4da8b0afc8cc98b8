"""Publishing as a whole: it can be killed anywhere, and takes nothing from those who have installed."""

from __future__ import annotations

import asyncio
import copy
import itertools
import re
import shutil
from pathlib import Path

import pytest

from harness.commandline import edit, project, raise_version, snapshot
from harness.memoryimages import Killed, MemoryImages
from podium.bundle.project import ProjectError
from podium.catalog.blobs import CatalogError
from podium.catalog.diff import ChangeKind
from podium.content.sources import catalog_blobs, open_source
from podium.oci.errors import ImageNotFound
from podium.oci.open import Images
from podium.operations.publish import AlreadyPublished, Published, Rejected, Request, publish

BUNDLE = "docker.io/acme/pantry-operator-bundle"
CATALOG = "docker.io/acme/pantry-operator-catalog"
EPOCH = 1_700_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "pantry")


@pytest.fixture
def images() -> MemoryImages:
    return MemoryImages()


async def release(folder: Path, images: MemoryImages, version: str = "", *also: str) -> Published:
    if version:
        raise_version(folder, version)
    return await publish(Request(folder, also_tags=also, epoch=EPOCH), images)


async def bundles_in(images: MemoryImages, tag: str) -> set[str]:
    blobs = await catalog_blobs(await open_source(f"{CATALOG}:{tag}", images))
    return {blob.name for blob in blobs if blob.schema == "olm.bundle"}


@pytest.mark.parametrize("before", [(), ("0.1.0",), ("0.1.0", "0.2.0")], ids=len)
async def test_killed_before_any_write_and_run_again_it_ends_the_same(
    folder: Path, tmp_path: Path, before: tuple[str, ...]
) -> None:
    published = MemoryImages()
    for version in before:
        await release(folder, published, version, "latest")
    raise_version(folder, "0.3.0" if before else "0.1.0")
    whole_folder, whole = tmp_path / "whole", _copied(published)
    shutil.copytree(folder, whole_folder)
    expected = await release(whole_folder, whole, "", "latest")
    final = {path.removeprefix(str(whole_folder)): data for path, data in snapshot(whole_folder).items()}
    for number in itertools.count(1):
        images, again = _copied(published), tmp_path / f"killed-{number}"
        shutil.copytree(folder, again)
        images.fail_at = number
        try:
            await release(again, images, "", "latest")
        except Killed:
            await _nobody_sees_a_half(images)
        else:
            break
        done = await release(again, images, "", "latest")
        assert (done.bundle.digest, done.catalog.digest) == (expected.bundle.digest, expected.catalog.digest)
        assert images.content() == whole.content()
        files = {path.removeprefix(str(again)): data for path, data in snapshot(again).items()}
        assert files == final
    assert number == 1 + 3 + 3 + 3, "two images of layer, config and manifest, and a tag for the latter"


@pytest.mark.parametrize("number", range(1, 10))
async def test_killed_before_any_write_the_next_version_can_be_published(
    folder: Path, images: MemoryImages, number: int
) -> None:
    await release(folder, images, "0.1.0", "latest")
    images.writes, images.fail_at = 0, number
    with pytest.raises(Killed):
        await release(folder, images, "0.2.0", "latest")
    await release(folder, images, "0.3.0", "latest")
    there = await bundles_in(images, "latest")
    assert {"pantry-operator.v0.1.0", "pantry-operator.v0.3.0"} <= there
    assert ("pantry-operator.v0.2.0" in there) == (f"{BUNDLE}:0.2.0" in images.content())


async def test_two_who_publish_the_same_at_once_both_succeed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    layout = str(tmp_path / "layout")
    async with Images() as images:
        requests = [Request(each, layout, epoch=EPOCH) for each in (folder, tmp_path / "other")]
        one, two = await asyncio.gather(*(publish(request, images) for request in requests))
    assert (one.bundle.digest, one.catalog.digest) == (two.bundle.digest, two.catalog.digest)


def _copied(images: MemoryImages) -> MemoryImages:
    copied = MemoryImages()
    for name, repository in images.repositories.items():
        found, _ = copied.store(name)
        for attribute in ("content", "tagged", "manifests"):
            setattr(found, attribute, copy.copy(getattr(repository, attribute)))
    return copied


async def _nobody_sees_a_half(images: MemoryImages) -> None:
    """Whatever a tag names is whole, and every bundle that a catalog names is there."""
    there = images.content()
    for name in there:
        if name.startswith(CATALOG):
            for bundle in await bundles_in(images, name.rpartition(":")[2]):
                version = bundle.removeprefix("pantry-operator.v")
                assert f"{BUNDLE}:{version}" in there


async def test_published_again_nothing_is_written(folder: Path, images: MemoryImages) -> None:
    first = await release(folder, images)
    assert first.changes[0].kind is ChangeKind.PACKAGE_ADDED
    written, files = images.writes, snapshot(folder)
    again = await release(folder, images)
    assert (again.bundle.existed, again.catalog.existed, again.changes) == (True, True, [])
    assert images.writes == written
    assert snapshot(folder) == files


async def test_a_dry_run_opens_images_but_writes_none(folder: Path, images: MemoryImages) -> None:
    files = snapshot(folder)
    told = await publish(Request(folder, dry_run=True, epoch=EPOCH), images)
    assert images.writes == 0
    assert snapshot(folder) == files
    done = await release(folder, images)
    assert (told.bundle.digest, told.catalog.digest) == (done.bundle.digest, done.catalog.digest)


@pytest.mark.parametrize(
    ("tags", "newest"),
    [
        (("0.9.0", "0.10.0", "latest"), "0.10.0"),
        (("1.0.0-rc.1", "0.10.0"), "1.0.0-rc.1"),
        (("1.0.0", "1.0.0-rc.1"), "1.0.0"),
        (("v0.2", "0.1.0"), "v0.2"),
        (("nightly", "0.1.0"), "0.1.0"),
    ],
)
async def test_the_catalog_that_users_have_is_the_one_with_the_highest_version(
    folder: Path, images: MemoryImages, tags: tuple[str, ...], newest: str
) -> None:
    await release(folder, images, "0.1.0")
    store, _ = images.store(f"{CATALOG}:0.1.0")
    first = await store.resolve("0.1.0")
    await release(folder, images, "0.2.0")
    second = await store.resolve("0.2.0")
    repository = images.repositories[CATALOG]
    repository.tagged = {tag: second if tag == newest else first for tag in tags}
    raise_version(folder, "2.0.0")
    edit(
        folder / "catalog/template.yaml", f"{BUNDLE}:0.2.0", f"{BUNDLE}:2.0.0"
    )  # it held two, and one is gone
    with pytest.raises(Rejected, match=r"version 0\.2\.0 was published and is gone"):
        await release(folder, images)


async def test_bundles_that_users_have_are_taken_from_their_catalog(
    folder: Path, images: MemoryImages
) -> None:
    await release(folder, images, "0.1.0")
    images.repositories[BUNDLE].tagged.clear()
    images.opened.clear()
    done = await release(folder, images, "0.2.0")
    assert f"{BUNDLE}:0.1.0" not in images.opened
    assert await bundles_in(images, "0.2.0") == {"pantry-operator.v0.1.0", "pantry-operator.v0.2.0"}
    assert done.catalog.existed is False


async def test_bundles_that_nobody_has_yet_are_pulled(folder: Path, images: MemoryImages) -> None:
    await release(folder, images, "0.1.0")
    images.repositories[CATALOG].tagged.clear()
    images.opened.clear()
    await release(folder, images, "0.2.0")
    assert f"{BUNDLE}:0.1.0" in images.opened
    assert await bundles_in(images, "0.2.0") == {"pantry-operator.v0.1.0", "pantry-operator.v0.2.0"}


async def test_an_image_that_is_gone_everywhere_is_named(folder: Path, images: MemoryImages) -> None:
    await release(folder, images, "0.1.0")
    for repository in images.repositories.values():
        repository.tagged.clear()
    written = images.writes
    with pytest.raises(ImageNotFound, match=rf"template\.yaml:\d+: {BUNDLE}:0\.1\.0"):
        await release(folder, images, "0.2.0")
    assert images.writes == written


async def test_other_content_is_refused_and_nothing_written(folder: Path, images: MemoryImages) -> None:
    await release(folder, images)
    written, files = images.writes, snapshot(folder)
    edit(folder / "config/deployment.yaml", "replicas: 1", "replicas: 2")
    with pytest.raises(AlreadyPublished, match="raise the version"):
        await release(folder, images)
    edit(folder / "config/deployment.yaml", "replicas: 2", "replicas: 1")
    assert (images.writes, snapshot(folder)) == (written, files)


async def test_the_same_version_from_another_repository_is_refused(
    folder: Path, images: MemoryImages
) -> None:
    await release(folder, images)
    edit(folder / "podium.yaml", f"bundle: {BUNDLE}", f"bundle: {BUNDLE}-moved")
    with pytest.raises(CatalogError, match=r"version 0\.1\.0 is there already"):
        await publish(Request(folder, catalog_tag="other"), images)


async def test_a_tag_never_moves_back_to_a_catalog_with_less(
    folder: Path, tmp_path: Path, images: MemoryImages
) -> None:
    await release(folder, images, "0.1.0", "latest")
    shutil.copytree(folder, tmp_path / "old")
    await release(folder, images, "0.2.0", "latest")
    before = images.content()
    again = await release(tmp_path / "old", images)
    assert (again.bundle.existed, again.catalog.existed) == (True, True)
    with pytest.raises(Rejected, match="is gone"):
        await release(tmp_path / "old", images, "", "latest")
    assert images.content() == before


async def test_a_tag_moves_after_the_catalog_it_moves_to(folder: Path, images: MemoryImages) -> None:
    await release(folder, images, "0.1.0", "latest")
    done = await release(folder, images, "0.2.0", "latest", "v0")
    for tag in ("0.2.0", "latest", "v0"):
        assert images.content()[f"{CATALOG}:{tag}"] == done.catalog.digest


async def test_a_tag_can_follow_later(folder: Path, images: MemoryImages) -> None:
    done = await release(folder, images, "0.1.0")
    await release(folder, images, "0.1.0", "latest")
    assert images.content()[f"{CATALOG}:latest"] == done.catalog.digest


async def test_a_project_without_images_cannot_be_published(folder: Path, images: MemoryImages) -> None:
    file = folder / "podium.yaml"
    file.write_text(file.read_text().replace(f"  bundle: {BUNDLE}\n", ""))
    with pytest.raises(ProjectError, match=r"images\.bundle"):
        await release(folder, images)


async def test_a_fix_of_an_older_version_may_not_be_dropped_later(folder: Path, images: MemoryImages) -> None:
    for version in ("0.1.0", "0.2.0", "0.1.5"):
        await release(folder, images, version)
    template = folder / "catalog/template.yaml"
    template.write_text(re.sub(r".*:0\.1\.5\n", "", template.read_text()))
    with pytest.raises(Rejected) as caught:
        await release(folder, images, "0.3.0")
    gone = [finding.subject for finding in caught.value.findings if finding.rule == "version-removed"]
    assert gone == ["bundle pantry-operator.v0.1.5"]


async def test_nothing_is_published_when_the_project_cannot_be_written(
    folder: Path, images: MemoryImages
) -> None:
    (folder / "bundle" / "manifests").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="is not a bundle"):
        await release(folder, images)
    assert images.writes == 0
