"""A layout on disk is a store that keeps what it was given, checks what it reads, and survives crashes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from podium.oci import build, images, unpack
from podium.oci.errors import Corrupt, ImageNotFound, OCIError, Unacceptable
from podium.oci.layout import REF_NAME, Layout
from podium.oci.layoutfiles import blob_name
from podium.oci.model import OCI_INDEX, OCI_MANIFEST, Descriptor, descriptor_of, digest_of

FILES = {"manifests/a.yaml": b"a: 1\n"}
NO_GRACE = -60.0  # what is younger than "in a minute" is everything


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


def made(text: str = "a", **fields: Any) -> build.Built:
    return build.image([build.layer({"manifests/a": text.encode()})], **fields)


def chunks(*data: bytes) -> Callable[[], AsyncIterator[bytes]]:
    async def each() -> AsyncIterator[bytes]:
        for chunk in data:
            yield chunk

    return each


def index_of(layout: Layout) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((layout.path / "index.json").read_bytes())
    return value


def blobs_of(layout: Layout) -> set[str]:
    return {f"sha256:{path.name}" for path in (layout.path / "blobs" / "sha256").iterdir()}


async def test_it_is_made_by_the_first_write(layout: Layout) -> None:
    with pytest.raises(ImageNotFound, match="no OCI layout at"):
        await layout.resolve("v1")
    assert not layout.path.exists()
    built = made()
    await build.write(layout, built, "v1")
    assert json.loads((layout.path / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    assert [entry["annotations"] for entry in index_of(layout)["manifests"]] == [{REF_NAME: "v1"}]
    assert (await layout.resolve("v1")).digest == built.descriptor.digest
    assert await layout.tags() == ["v1"]
    assert list((layout.path / ".podium").iterdir()) == [layout.path / ".podium" / "lock"]


async def test_a_tag_moves(layout: Layout) -> None:
    old, new = made("old"), made("new")
    await build.write(layout, old, "v1")
    await build.write(layout, made("other"), "v2")
    await build.write(layout, new, "v1")
    assert (await layout.resolve("v1")).digest == new.descriptor.digest
    assert await layout.tags() == ["v1", "v2"]
    assert len(index_of(layout)["manifests"]) == 2
    assert (await layout.resolve(old.descriptor.digest)).digest == old.descriptor.digest


async def test_names_that_are_not_there_are_answered_with_what_is(layout: Layout) -> None:
    for number in range(12):
        await build.write(layout, made(str(number)), f"v{number:02}")
    with pytest.raises(ImageNotFound, match=r"has no tag 'v9'; it has: v00, v01, .*, \.\.\.$"):
        await layout.resolve("v9")
    with pytest.raises(ImageNotFound, match="12 images; say which"):
        await layout.resolve("")
    with pytest.raises(ImageNotFound, match="no manifest sha256:"):
        await layout.resolve(digest_of(b"unknown"))
    with pytest.raises(ImageNotFound, match="no such file"):
        await layout.manifest(descriptor_of(b"unknown", OCI_MANIFEST))


async def test_a_digest_of_something_else_is_no_manifest(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    for descriptor in (built.config_descriptor, built.layers[0].descriptor):
        with pytest.raises(ImageNotFound, match="no manifest"):
            await layout.resolve(descriptor.digest)


async def test_a_damaged_manifest_is_in_the_way_of_no_other(layout: Layout) -> None:
    good, bad = made("good"), made("bad")
    await build.write(layout, bad, "bad")
    await build.write(layout, good, "good")
    await layout.delete_tag("good")
    await build.write(layout, build.index([made("child")]), "index")
    (layout.path / blob_name(bad.descriptor.digest)).write_bytes(b"x" * bad.descriptor.size)
    for digest in (good.descriptor.digest, made("child").descriptor.digest):
        assert (await layout.resolve(digest)).digest == digest
    with pytest.raises(Corrupt):
        await layout.manifest(await layout.resolve(bad.descriptor.digest))


async def test_the_only_image_needs_no_tag(layout: Layout) -> None:
    built = made()
    await build.write(layout, built)
    assert (await layout.resolve("")).digest == built.descriptor.digest
    assert await layout.tags() == []


async def test_children_of_an_index_are_not_images_of_their_own(layout: Layout) -> None:
    platforms = [images.parse_platform(text) for text in ("linux/amd64", "linux/arm64")]
    built = build.index([made(str(platform), platform=platform) for platform in platforms])
    await build.write(layout, built, "v1")
    assert (await layout.resolve("")).digest == built.descriptor.digest
    child = built.images[1].descriptor.digest
    assert (await layout.resolve(child)).digest == child


async def test_two_entries_with_one_tag_are_refused_unless_they_agree(layout: Layout) -> None:
    await build.write(layout, made("a"), "v1")
    await build.write(layout, made("b"), "v2")
    index = index_of(layout)
    first, second = index["manifests"]
    index["manifests"] = [first, {**second, "annotations": {REF_NAME: "v1"}}]
    (layout.path / "index.json").write_text(json.dumps(index))
    with pytest.raises(Unacceptable, match="the tag 'v1' 2 times"):
        await layout.resolve("v1")
    index["manifests"] = [first, first]
    (layout.path / "index.json").write_text(json.dumps(index))
    assert (await layout.resolve("v1")).digest == first["digest"]


async def test_what_others_wrote_into_the_index_is_kept(layout: Layout) -> None:
    await build.write(layout, made("a"), "v1")
    index = index_of(layout)
    index["annotations"] = {"made.by": "someone"}
    index["future"] = [1]
    index["manifests"][0] |= {
        "urls": ["https://example.com"],
        "platform": {"os": "linux", "architecture": "a"},
    }
    index["manifests"][0]["annotations"]["other"] = "kept"
    (layout.path / "index.json").write_text(json.dumps(index))
    await build.write(layout, made("b"), "v2")
    after = index_of(layout)
    assert (after["annotations"], after["future"]) == (index["annotations"], [1])
    assert after["manifests"][0] == index["manifests"][0]


async def test_an_empty_index_of_umoci_is_one(layout: Layout) -> None:
    layout.path.mkdir()
    (layout.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout.path / "index.json").write_text('{"schemaVersion":2,"manifests":null}')
    assert await layout.tags() == []
    await build.write(layout, made(), "v1")
    assert await layout.tags() == ["v1"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"imageLayoutVersion":"2.0.0"}', "[" * 100_000])
async def test_a_layout_of_another_version_is_refused(layout: Layout, text: str) -> None:
    await build.write(layout, made(), "v1")
    (layout.path / "oci-layout").write_text(text)
    with pytest.raises(Unacceptable):
        await layout.resolve("v1")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schemaVersion":2,"manifests":[{}]}', " " * (5 << 20)])
async def test_a_broken_index_is_refused_and_not_overwritten(layout: Layout, text: str) -> None:
    await build.write(layout, made(), "v1")
    (layout.path / "index.json").write_text(text)
    with pytest.raises(Unacceptable):
        await layout.resolve("v1")
    with pytest.raises(Unacceptable):
        await build.write(layout, made("b"), "v2")
    assert (layout.path / "index.json").read_text() == text


async def test_every_changed_byte_on_disk_is_refused(layout: Layout) -> None:
    built = build.image([build.layer(FILES)], labels={"a": "b"})
    await build.write(layout, built, "v1")
    for descriptor in (built.descriptor, built.config_descriptor, built.layers[0].descriptor):
        path = layout.path / blob_name(descriptor.digest)
        good = path.read_bytes()
        for position in range(len(good)):
            changed = bytearray(good)
            changed[position] ^= 1 << position % 8
            path.write_bytes(changed)
            with pytest.raises(Corrupt):
                await unpack.files(await images.pull(layout, "v1"))
        path.write_bytes(good)
    assert await unpack.files(await images.pull(layout, "v1")) == FILES


async def test_what_does_not_match_is_not_taken_in(layout: Layout) -> None:
    wrong = descriptor_of(b"right", "text/plain")
    for data in ((b"wrong",), (b"righ",), (b"right", b"!"), ()):
        with pytest.raises(Corrupt):
            await layout.put_blob(wrong, chunks(*data))
        assert not await layout.has(wrong)
    built = made()
    with pytest.raises(Corrupt):
        await layout.put_manifest(built.descriptor, built.manifest + b" ", "v1")
    assert list((layout.path / ".podium").iterdir()) == [layout.path / ".podium" / "lock"]


async def test_a_manifest_needs_its_parts(layout: Layout) -> None:
    built = made()
    with pytest.raises(ImageNotFound, match=f"has no {built.config_descriptor.digest}"):
        await layout.put_manifest(built.descriptor, built.manifest, "v1")
    assert await layout.tags() == []


async def test_an_upload_cancelled_at_any_moment_leaves_nothing(layout: Layout) -> None:
    for number in range(120):
        data = f"blob {number}".encode()
        task = asyncio.create_task(layout.put_blob(descriptor_of(data, "text/plain"), chunks(data)))
        await asyncio.wait([task], timeout=number / 40_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()  # threads may still be at it
    assert [path.name for path in (layout.path / ".podium").iterdir()] == ["lock"]


async def test_a_failed_upload_leaves_nothing(layout: Layout) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"ri"
        raise OSError("the cable was cut")

    with pytest.raises(OSError, match="cable"):
        await layout.put_blob(descriptor_of(b"right", "text/plain"), broken)
    assert list((layout.path / ".podium").iterdir()) == [layout.path / ".podium" / "lock"]


async def test_links_are_not_followed_out_of_the_layout(layout: Layout, tmp_path: Path) -> None:
    built = made()
    await build.write(layout, built, "v1")
    blob = layout.path / blob_name(built.descriptor.digest)
    outside = tmp_path / "outside"
    blob.rename(outside)
    blob.symlink_to(outside)
    with pytest.raises(Unacceptable, match="leaves the layout"):
        await images.pull(layout, "v1")
    assert not await layout.has(built.descriptor)
    blob.unlink()
    blob.symlink_to(blob.name)
    with pytest.raises(OCIError):
        await images.pull(layout, "v1")
    blob.unlink()
    os.mkfifo(blob)
    with pytest.raises(Unacceptable, match="not a regular file"):
        await images.pull(layout, "v1")


async def test_a_link_inside_the_layout_is_fine(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    blob = layout.path / blob_name(built.descriptor.digest)
    blob.rename(layout.path / "blobs" / "elsewhere")
    blob.symlink_to("../elsewhere")
    assert (await images.pull(layout, "v1")).descriptor.digest == built.descriptor.digest


async def test_a_layout_reached_through_a_link_is_fine(layout: Layout, tmp_path: Path) -> None:
    await build.write(layout, made(), "v1")
    (tmp_path / "alias").symlink_to(layout.path)
    assert await unpack.files(await images.pull(Layout(tmp_path / "alias"), "v1")) == {"manifests/a": b"a"}


def artifact(subject: Descriptor, kind: str) -> tuple[Descriptor, bytes]:
    empty = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest_of(b"{}"), "size": 2}
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": kind,
        "config": empty,
        "layers": [empty],
        "subject": {"mediaType": subject.media_type, "digest": subject.digest, "size": subject.size},
        "annotations": {"kind": kind},
    }
    data = json.dumps(value).encode()
    return descriptor_of(data, OCI_MANIFEST), data


async def test_referrers_are_found_and_filtered(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    await layout.put_blob(descriptor_of(b"{}", "application/vnd.oci.empty.v1+json"), chunks(b"{}"))
    kinds = ["text/signature", "text/sbom"]
    for kind in kinds:
        await layout.put_manifest(*artifact(built.descriptor, kind))
    found = await layout.referrers(built.descriptor.digest)
    assert sorted(each.artifact_type for each in found) == sorted(kinds)
    assert [each.annotations for each in await layout.referrers(built.descriptor.digest, kinds[0])] == [
        {"kind": kinds[0]}
    ]
    assert await layout.referrers(digest_of(b"other")) == []
    assert await layout.tags() == ["v1"]
    assert await layout.collect(NO_GRACE) == []


async def test_referrers_listed_under_the_fallback_tag_are_found(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    await layout.put_blob(descriptor_of(b"{}", "application/vnd.oci.empty.v1+json"), chunks(b"{}"))
    descriptor, data = artifact(built.descriptor, "text/signature")
    await layout.put_manifest(descriptor, data)
    entry = {"mediaType": OCI_MANIFEST, "digest": descriptor.digest, "size": descriptor.size}
    index = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}).encode()
    await layout.put_manifest(
        descriptor_of(index, OCI_INDEX), index, built.descriptor.digest.replace(":", "-")
    )
    assert [each.digest for each in await layout.referrers(built.descriptor.digest)] == [descriptor.digest]


async def test_what_nothing_needs_is_collected(layout: Layout) -> None:
    kept, dropped = made("kept"), made("dropped")
    both = build.index([made("x", platform=images.parse_platform("linux/arm64"))])
    await build.write(layout, kept, "kept")
    await build.write(layout, dropped, "dropped")
    await build.write(layout, both, "index")
    before = blobs_of(layout)
    assert await layout.collect(NO_GRACE) == []
    await layout.delete_tag("dropped")
    (layout.path / ".podium" / "left-over").write_text("of a crash")
    assert await layout.collect(grace=3600) == []
    gone = {dropped.descriptor.digest, dropped.config_descriptor.digest, dropped.layers[0].descriptor.digest}
    assert set(await layout.collect(NO_GRACE)) == gone
    assert blobs_of(layout) == before - gone
    assert list((layout.path / ".podium").iterdir()) == [layout.path / ".podium" / "lock"]
    with pytest.raises(ImageNotFound, match="no tag 'dropped'"):
        await layout.delete_tag("dropped")


async def test_what_was_asked_for_is_not_collected_before_it_is_used(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    await layout.delete_tag("v1")
    old = time.time() - 7200
    for path in (layout.path / "blobs" / "sha256").iterdir():
        os.utime(path, (old, old))
    assert await layout.has(built.layers[0].descriptor)
    gone = await layout.collect()
    assert set(gone) == {built.descriptor.digest, built.config_descriptor.digest}


async def test_nothing_is_collected_from_a_damaged_layout(layout: Layout) -> None:
    built = made()
    await build.write(layout, built, "v1")
    await layout.delete_tag("v1")
    await build.write(layout, other := made("other"), "v2")
    (layout.path / blob_name(other.descriptor.digest)).write_bytes(b"damaged")
    before = blobs_of(layout)
    with pytest.raises(Corrupt, match="nothing was deleted"):
        await layout.collect(NO_GRACE)
    assert blobs_of(layout) == before


async def test_nothing_is_made_where_only_something_was_to_be_deleted(layout: Layout) -> None:
    with pytest.raises(ImageNotFound):
        await layout.collect()
    with pytest.raises(ImageNotFound):
        await layout.delete_tag("v1")
    assert not layout.path.exists()


async def test_many_tasks_write_at_once(layout: Layout) -> None:
    await asyncio.gather(*(build.write(layout, made(str(number % 3)), f"v{number}") for number in range(30)))
    assert await layout.tags() == sorted(f"v{number}" for number in range(30))


WRITER = """
import asyncio, sys
from podium.oci import build
from podium.oci.layout import Layout

async def main(path, name, count):
    for number in range(count):
        layer = build.layer({"manifests/a": f"{name} {number}".encode() * 2000}, compression="none")
        await build.write(Layout(path), build.image([layer]), f"{name}-{number}")
        print(f"{name}-{number}", flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def writer(layout: Layout, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(layout.path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_tag_at_once_lose_nothing(layout: Layout) -> None:
    writers = [writer(layout, name, 40) for name in "abc"]
    for each in writers:
        each.communicate(timeout=100)
        assert each.returncode == 0
    expected = {f"{name}-{number}" for name in "abc" for number in range(40)}
    assert set(asyncio.run(layout.tags())) == expected


@pytest.mark.parametrize("seed", range(4))
def test_kill_at_any_moment_leaves_what_was_acknowledged(layout: Layout, seed: int) -> None:
    pause = random.Random(seed)
    acknowledged: set[str] = set()
    for number in range(5):
        with writer(layout, f"w{number}", 1000) as process:
            assert process.stdout
            for _ in range(pause.randint(1, 8)):
                acknowledged.add(process.stdout.readline().strip())
            process.send_signal(signal.SIGKILL)  # wherever it is by now
            acknowledged.update(process.stdout.read().split())
        asyncio.run(check_whole(layout, acknowledged))
    assert len(acknowledged) > 5


async def check_whole(layout: Layout, acknowledged: set[str]) -> None:
    """All acknowledged tags are there, and whatever is there can be read."""
    tags = await layout.tags()
    assert acknowledged <= set(tags)
    for tag in tags:
        assert await unpack.files(await images.pull(layout, tag))
