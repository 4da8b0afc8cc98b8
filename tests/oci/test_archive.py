"""Images in one tar file are read like those of a layout, and never by a path that the file chose."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.archives import END, SYMLINK, entry
from podium.oci import build, images, transfer, unpack
from podium.oci.archive import Archive
from podium.oci.errors import Corrupt, ImageNotFound, OCIError, Unacceptable
from podium.oci.layout import Layout
from podium.oci.layoutfiles import blob_name
from podium.oci.model import digest_of

FILES = {"manifests/a.yaml": b"a: 1\n", "metadata/annotations.yaml": b"{}\n"}
CONFIG_AND_LAYER = {"Config": "c.json", "Layers": ["l.tar"]}


def tarred(files: Sequence[tuple[str, bytes]]) -> bytes:
    return b"".join(entry(name.encode(), data) for name, data in files) + END


async def oci_archive(
    folder: Path, built: build.Built | build.BuiltIndex, tag: str = "v1"
) -> list[tuple[str, bytes]]:
    layout = Layout(folder / "source")
    await build.write(layout, built, tag)
    shutil.rmtree(layout.path / ".podium")
    paths = [path for path in sorted(layout.path.rglob("*")) if path.is_file()]
    return [(path.relative_to(layout.path).as_posix(), path.read_bytes()) for path in paths]


def docker_archive(built: build.Built, **fields: Any) -> list[tuple[str, bytes]]:
    manifest = [{**CONFIG_AND_LAYER, "RepoTags": ["docker.io/x/y:v1"], **fields}]
    layer = gzip.decompress(built.layers[0].data)
    return [("l.tar", layer), ("c.json", built.config), ("manifest.json", json.dumps(manifest).encode())]


def listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def image() -> build.Built:
    return build.image([build.layer(FILES)], labels={"a": "b"})


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_an_oci_archive_is_read_with_its_digests(tmp_path: Path, packed: bool) -> None:
    built = image()
    data = tarred(await oci_archive(tmp_path, built))
    (tmp_path / "a.tar").write_bytes(gzip.compress(data) if packed else data)
    archive = Archive(tmp_path / "a.tar")
    assert await archive.tags() == ["v1"]
    found = await images.pull(archive, "")
    assert (found.descriptor.digest, found.labels) == (built.descriptor.digest, {"a": "b"})
    assert await unpack.files(found) == FILES
    target = Layout(tmp_path / "target")
    assert (await transfer.copy(archive, "v1", target, "v2")).digest == built.descriptor.digest


async def test_an_index_of_which_not_all_platforms_are_there_is_read(tmp_path: Path) -> None:
    platforms = [images.parse_platform(text) for text in ("linux/amd64", "linux/arm64")]
    index = build.index([build.image([build.layer(FILES)], platform=each) for each in platforms])
    missing = blob_name(index.images[0].descriptor.digest)
    files = [each for each in await oci_archive(tmp_path, index) if each[0] != missing]
    (tmp_path / "a.tar").write_bytes(tarred(files))
    archive = Archive(tmp_path / "a.tar")
    assert await unpack.files(await images.pull(archive, "v1", "linux/arm64")) == FILES
    with pytest.raises(ImageNotFound):
        await images.pull(archive, "v1", "linux/amd64")


async def test_an_archive_of_docker_save_is_read(tmp_path: Path) -> None:
    built = image()
    legacy = entry(b"0123/layer.tar", kind=SYMLINK, link=b"../l.tar")
    (tmp_path / "a.tar").write_bytes(legacy + tarred(docker_archive(built)))
    archive = Archive(tmp_path / "a.tar")
    assert await archive.tags() == ["docker.io/x/y:v1"]
    found = await images.pull(archive, "docker.io/x/y:v1")
    assert found.labels == {"a": "b"}
    assert found.diff_ids == [built.layers[0].diff_id]
    assert await unpack.files(found) == FILES
    assert found.descriptor == (await images.pull(archive, "")).descriptor


async def test_docker_save_without_a_tag_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tarred(docker_archive(image(), RepoTags=None)))
    assert await unpack.files(await images.pull(Archive(tmp_path / "a.tar"), "")) == FILES


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([], "neither an OCI archive nor"),
        ([("manifest.json", b"{}")], "malformed manifest.json"),
        ([("manifest.json", b"[" * 100_000)], "malformed manifest.json"),
        ([("manifest.json", json.dumps([CONFIG_AND_LAYER]).encode())], "has no file 'c.json'"),
        (
            [("manifest.json", b'[{"Config":"../../etc/passwd","Layers":[]}]')],
            "has no file '../../etc/passwd'",
        ),
        ([("index.json", b"{}")], "malformed oci-layout"),
        ([("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", b"{}")], "malformed"),
    ],
)
async def test_what_is_no_archive_of_images_is_refused(
    tmp_path: Path, files: list[tuple[str, bytes]], why: str
) -> None:
    (tmp_path / "a.tar").write_bytes(tarred(files))
    with pytest.raises(OCIError, match=why):
        await Archive(tmp_path / "a.tar").resolve("v1")


async def test_blobs_under_another_name_are_not_found(tmp_path: Path) -> None:
    built = image()
    wrong = blob_name(built.layers[0].descriptor.digest)
    files = [(name, b"other" if name == wrong else data) for name, data in await oci_archive(tmp_path, built)]
    (tmp_path / "a.tar").write_bytes(tarred(files))
    archive = Archive(tmp_path / "a.tar")
    with pytest.raises((ImageNotFound, Corrupt)):
        await unpack.files(await images.pull(archive, "v1"))


async def test_a_changed_layer_of_docker_save_is_refused(tmp_path: Path) -> None:
    other = build.layer({"manifests/evil": b"1"}, compression="none").data
    files = [(name, other if name == "l.tar" else data) for name, data in docker_archive(image())]
    (tmp_path / "a.tar").write_bytes(tarred(files))
    with pytest.raises(Corrupt, match="as the config says"):
        await unpack.files(await images.pull(Archive(tmp_path / "a.tar"), ""))


async def test_an_archive_takes_nothing_in_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "a.tar").write_bytes(tarred(docker_archive(image())))
    archive = Archive(tmp_path / "a.tar")
    with pytest.raises(Unacceptable, match="can only be read"):
        await build.write(archive, image(), "v1")
    assert await archive.has(await archive.resolve(""))
    assert await archive.referrers(digest_of(b"")) == []
    assert len(listed(tmp_path)) == 2
    del archive
    assert listed(tmp_path) == ["a.tar"]


async def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ImageNotFound, match="No such file"):
        await Archive(tmp_path / "a.tar").resolve("v1")
