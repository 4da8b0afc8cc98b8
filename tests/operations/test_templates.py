"""The bundles of a template: each is fetched once, a few at a time, and the first failure is told."""

from __future__ import annotations

import asyncio

import pytest

from harness import samplebundle
from harness.memoryimages import MemoryImages
from podium.catalog.blobs import CatalogError
from podium.oci.errors import ImageNotFound
from podium.operations.lookups import digests_of
from podium.operations.packing import bundle_image, put
from podium.operations.templates import Request, render
from podium.operations.together import together

REPOSITORY = "docker.io/acme/cache"


def template(*tags: str) -> bytes:
    lines = "".join(f"  - image: {REPOSITORY}:{tag}\n" for tag in tags)
    return f"# Ours.\nschema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n{lines}".encode()


@pytest.fixture
async def images() -> MemoryImages:
    images = MemoryImages()
    for version in ("1.2.3", "1.2.4"):
        documents = samplebundle.documents()
        csv = documents[samplebundle.CSV_FILE]
        csv["metadata"]["name"], csv["spec"]["version"] = f"cache.v{version}", version
        await put(bundle_image(samplebundle.files(documents)), f"{REPOSITORY}:{version}", images)
    images.opened.clear()
    return images


async def test_every_bundle_is_opened_once(images: MemoryImages) -> None:
    text = template("1.2.3", "1.2.4") + b"fast:\n  bundles:\n  - image: docker.io/acme/cache:1.2.4\n"
    blobs = await render(Request(text), images)
    assert sorted(images.opened) == [f"{REPOSITORY}:1.2.3", f"{REPOSITORY}:1.2.4"]
    assert {blob.name for blob in blobs if blob.schema == "olm.bundle"} == {"cache.v1.2.3", "cache.v1.2.4"}


async def test_what_is_known_is_not_opened(images: MemoryImages) -> None:
    known = {f"{REPOSITORY}:1.2.3": samplebundle.files()}
    with_known = await render(Request(template("1.2.3"), known=known), images)
    assert images.opened == []
    assert with_known == await render(Request(template("1.2.3")), images)


async def test_a_bundle_can_lie_elsewhere_until_it_is_pushed(images: MemoryImages) -> None:
    places = {f"{REPOSITORY}:9.9.9": f"{REPOSITORY}:1.2.3"}
    made = await render(Request(template("9.9.9"), places=places), images)
    [bundle] = [blob for blob in made if blob.schema == "olm.bundle"]
    assert bundle.value["image"] == f"{REPOSITORY}:9.9.9"


async def test_a_bundle_that_is_nowhere_is_told_with_file_and_line(images: MemoryImages) -> None:
    with pytest.raises(ImageNotFound, match=rf"^t\.yaml:7: {REPOSITORY}:2\.0\.0: "):
        await render(Request(template("1.2.3", "2.0.0"), "t.yaml"), images)


async def test_a_name_that_is_none_is_told_with_file_and_line(images: MemoryImages) -> None:
    with pytest.raises(CatalogError, match=r"t\.yaml:6: .*does not name an image"):
        await render(Request(template("Not:a:tag"), "t.yaml"), images)


async def test_digests_are_those_of_the_tags_now(images: MemoryImages) -> None:
    pinned = f"{REPOSITORY}@sha256:{'0' * 64}"
    found = await digests_of([f"{REPOSITORY}:1.2.3", pinned], images)
    assert found == {f"{REPOSITORY}:1.2.3": images.content()[f"{REPOSITORY}:1.2.3"]}
    with pytest.raises(ImageNotFound, match="gone"):
        await digests_of([f"{REPOSITORY}:{tag}" for tag in ("1.2.3", "gone", "lost")], images)


async def test_only_so_many_work_at_the_same_time_and_results_keep_their_order() -> None:
    busy = busiest = 0

    async def work(number: int) -> int:
        nonlocal busy, busiest
        busy += 1
        busiest = max(busiest, busy)
        for _ in range(20 - number):
            await asyncio.sleep(0)
        busy -= 1
        return number * 2

    assert await together(work, range(20), at_once=3) == [number * 2 for number in range(20)]
    assert busiest == 3


async def test_the_first_failure_stops_the_others() -> None:
    finished = []

    async def work(number: int) -> None:
        if number == 1:
            raise ImageNotFound("gone")
        await asyncio.sleep(3600)
        finished.append(number)

    with pytest.raises(ImageNotFound, match="gone"):
        await together(work, range(3))
    assert finished == []
