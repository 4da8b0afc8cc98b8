"""Copies arrive with the digest that left, once each, in an order that never shows a tag too early."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from harness.stores import Memory
from podium.oci import build, images, transfer, unpack
from podium.oci.errors import Corrupt, ImageNotFound, Unacceptable
from podium.oci.layout import Layout
from podium.oci.model import OCI_INDEX, OCI_MANIFEST, Descriptor, descriptor_of, digest_of

PLATFORMS = ["linux/amd64", "linux/arm64", "linux/s390x"]


def made(platform: str, extra: int = 0) -> build.Built:
    layers = [build.layer({"common": b"shared"}), build.layer({"manifests/a": platform.encode()})]
    layers += [build.layer({f"manifests/{number}": b"x"}) for number in range(extra)]
    return build.image(layers, platform=images.parse_platform(platform))


async def filled(store: Memory) -> build.BuiltIndex:
    index = build.index([made(platform) for platform in PLATFORMS])
    await build.write(store, index, "v1")
    store.uploaded.clear()
    return index


class Recorded:
    """A progress that writes down what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.moved: dict[str, int] = {}
        self.ended: dict[str, bool] = {}

    def started(self, descriptor: Descriptor, what: str) -> None:
        self.begun.append(f"{what} {descriptor.digest}")

    def advanced(self, descriptor: Descriptor, count: int) -> None:
        self.moved[descriptor.digest] = self.moved.get(descriptor.digest, 0) + count

    def finished(self, descriptor: Descriptor, *, skipped: bool = False) -> None:
        self.ended[descriptor.digest] = skipped


async def test_an_index_is_copied_with_all_its_platforms_and_its_digest() -> None:
    source, target = Memory("source"), Memory("target")
    index = await filled(source)
    assert (await transfer.copy(source, "v1", target, "v2")).digest == index.descriptor.digest
    assert target.content == source.content
    assert await target.tags() == ["v2"]
    assert source.resolved == 1


async def test_each_blob_moves_once_even_if_many_images_share_it() -> None:
    source, target = Memory("source"), Memory("target")
    await filled(source)
    await transfer.copy(source, "v1", target, "v1")
    assert len(target.uploaded) == len(set(target.uploaded)) == 3 + 3 + 1


async def test_what_is_there_is_not_sent_again() -> None:
    source, target = Memory("source"), Memory("target")
    await filled(source)
    await transfer.copy(source, "v1", target, "v1")
    target.uploaded.clear()
    progress = Recorded()
    await transfer.copy(source, "v1", target, "again", progress=progress)
    assert target.uploaded == []
    assert set(progress.ended.values()) == {True}
    assert progress.moved == {}


async def test_blobs_are_mounted_between_repositories_of_one_registry() -> None:
    source, target = Memory("r/a", registry="r"), Memory("r/b", registry="r")
    await filled(source)
    await transfer.copy(source, "v1", target, "v1")
    assert (target.uploaded, len(target.mounted)) == ([], 7)


async def test_one_platform_becomes_a_plain_image() -> None:
    source, target = Memory("source"), Memory("target")
    index = await filled(source)
    copied = await transfer.copy(source, "v1", target, "arm", platforms=["linux/arm64"])
    assert copied.digest == index.images[1].descriptor.digest
    assert len(target.uploaded) == 3
    assert (await images.pull(target, "arm")).platform.architecture == "arm64"


async def test_without_all_platforms_this_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "s390x")
    source, target = Memory("source"), Memory("target")
    index = await filled(source)
    copied = await transfer.copy(source, "v1", target, "x", all_platforms=False)
    assert copied.digest == index.images[2].descriptor.digest


async def test_several_platforms_become_an_index_of_just_these() -> None:
    source, target = Memory("source"), Memory("target")
    index = await filled(source)
    copied = await transfer.copy(source, "v1", target, "x", platforms=["linux/s390x", "linux/amd64"])
    assert copied.media_type == OCI_INDEX
    found = [each.digest for each in await images.expand(target, copied)]
    assert found == [index.images[2].descriptor.digest, index.images[0].descriptor.digest]
    with pytest.raises(ImageNotFound, match="has no image for linux/riscv64"):
        await transfer.copy(source, "v1", target, "y", platforms=["linux/riscv64"])


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_so_many_blobs_move_at_a_time(concurrency: int) -> None:
    source, target = Memory("source", chunk=10), Slow("target")
    await build.write(source, made("linux/amd64", extra=10), "v1")
    await transfer.copy(source, "v1", target, "v1", concurrency=concurrency)
    assert target.busiest == concurrency


class Slow(Memory):
    """Lets others go first with every chunk."""

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        async def slowly() -> AsyncIterator[bytes]:
            async for chunk in chunks():
                await asyncio.sleep(0)
                yield chunk

        await super().put_blob(descriptor, slowly)


class Retrying(Memory):
    """Starts each upload over once, as a client does whose connection broke."""

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        async for _ in chunks():
            break
        await super().put_blob(descriptor, chunks)


async def test_progress_adds_up_even_when_uploads_start_over() -> None:
    source, target, progress = Memory("source", chunk=7), Retrying("target"), Recorded()
    built = made("linux/amd64")
    await build.write(source, built, "v1")
    await transfer.copy(source, "v1", target, "v1", progress=progress)
    blobs = [*(layer.descriptor for layer in built.layers), built.config_descriptor]
    assert progress.moved == {blob.digest: blob.size for blob in blobs}
    assert sorted(progress.begun) == sorted(f"copy {blob.digest}" for blob in blobs)
    assert progress.ended == {blob.digest: False for blob in blobs}


async def test_a_changed_blob_stops_the_copy_before_the_tag() -> None:
    source, target = Memory("source"), Memory("target")
    index = await filled(source)
    digest = index.images[0].layers[1].descriptor.digest
    source.content[digest] = source.content[digest][:-1] + b"!"
    with pytest.raises(Corrupt, match="does not match its digest"):
        await transfer.copy(source, "v1", target, "v1")
    assert await target.tags() == []


async def test_a_missing_blob_stops_the_copy_before_the_tag(tmp_path: Path) -> None:
    source, target = Memory("source"), Layout(tmp_path / "layout")
    index = await filled(source)
    del source.content[index.images[0].layers[0].descriptor.digest]
    with pytest.raises(ImageNotFound):
        await transfer.copy(source, "v1", target, "v1")
    assert await target.tags() == []


async def with_signature(store: Memory, subject: Descriptor) -> Descriptor:
    empty = descriptor_of(b"{}", "application/vnd.oci.empty.v1+json")
    store.content[empty.digest] = b"{}"
    parts = {"mediaType": empty.media_type, "digest": empty.digest, "size": empty.size}
    value = {
        "schemaVersion": 2,
        "artifactType": "text/signature",
        "config": parts,
        "layers": [parts],
        "subject": {"mediaType": subject.media_type, "digest": subject.digest, "size": subject.size},
    }
    data = json.dumps(value).encode()
    descriptor = descriptor_of(data, OCI_MANIFEST)
    await store.put_manifest(descriptor, data)
    return descriptor


async def test_signatures_follow_on_request(tmp_path: Path) -> None:
    source = Memory("source")
    index = await filled(source)
    signature = await with_signature(source, index.images[0].descriptor)
    countersigned = await with_signature(source, signature)
    without, target = Layout(tmp_path / "without"), Layout(tmp_path / "target")
    await transfer.copy(source, "v1", without, "v1")
    assert await without.referrers(index.images[0].descriptor.digest) == []
    await transfer.copy(source, "v1", target, "v1", referrers=True)
    found = await target.referrers(index.images[0].descriptor.digest)
    assert [each.digest for each in found] == [signature.digest]
    assert [each.digest for each in await target.referrers(signature.digest)] == [countersigned.digest]
    assert (await target.resolve("v1")).digest == index.descriptor.digest


async def test_a_copy_through_layouts_comes_back_the_same(tmp_path: Path) -> None:
    source, back = Memory("source"), Memory("back")
    index = await filled(source)
    first, second = Layout(tmp_path / "one"), Layout(tmp_path / "two")
    await transfer.copy(source, index.descriptor.digest, first, "a")
    await transfer.copy(first, "a", second, "b")
    await transfer.copy(second, "", back, "v1")
    assert back.content == source.content
    image = await images.pull(second, "b", "linux/arm64")
    assert await unpack.files(image) == {"manifests/a": b"linux/arm64"}


async def test_an_index_that_holds_itself_a_thousand_times_is_refused() -> None:
    store = Memory()
    descriptor = await build.write(store, made("linux/amd64"))
    for number in range(6):
        entry = {"mediaType": descriptor.media_type, "digest": descriptor.digest, "size": descriptor.size}
        value = {"schemaVersion": 2, "manifests": [entry] * 100, "annotations": {"n": str(number)}}
        data = json.dumps(value).encode()
        descriptor = descriptor_of(data, OCI_INDEX)
        await store.put_manifest(descriptor, data, "nested")
    with pytest.raises(Unacceptable, match="nested too deep"):
        await transfer.copy(store, "nested", Memory("target"), "x")


async def test_what_is_no_image_at_all_is_not_copied() -> None:
    store = Memory()
    store.content[digest_of(b"{}")] = b"{}"
    store.tagged["x"] = descriptor_of(b"{}", "text/plain")
    with pytest.raises(Unacceptable, match="text/plain"):
        await transfer.copy(store, "x", Memory("target"), "x")
