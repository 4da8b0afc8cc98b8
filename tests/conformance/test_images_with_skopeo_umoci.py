"""What we build, the real skopeo and umoci read; what they write, we read; and all mean the same by it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import archives
from harness.archives import DIRECTORY, END, HARD_LINK, SYMLINK, entry
from harness.registry import RealRegistry, Skopeo, program, running
from podium.oci import build, images, transfer, unpack
from podium.oci.archive import Archive
from podium.oci.layout import Layout
from podium.oci.model import DOCKER_LIST, DOCKER_MANIFEST, Platform
from podium.oci.open import Images, Settings

pytestmark = pytest.mark.registry

EVERYTHING = ("",)
FILES = {
    "manifests/a.yaml": b"a: 1\n",
    "manifests/" + "long-" * 40 + "\u00fc.yaml": b"long",
    "metadata/annotations.yaml": b"annotations: {}\n",
}
LABELS = {"operators.operatorframework.io.bundle.package.v1": "x"}
PLATFORMS = [Platform(os="linux", architecture=name) for name in ("amd64", "arm64", "s390x")]


@dataclass
class Tools:
    """The real programs, with a home of their own."""

    home: Path

    @property
    def skopeo(self) -> Skopeo:
        return Skopeo(self.home)

    def umoci(self, *arguments: str | Path) -> str:
        command = [program("umoci"), *map(str, arguments)]
        environ = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def unpacked(self, layout: Layout, tag: str, target: Path) -> dict[str, bytes]:
        """The regular files of an image as umoci extracts them."""
        self.umoci("unpack", "--rootless", "--image", f"{layout.path}:{tag}", target)
        return tree(target / "rootfs")


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    (tmp_path / "home").mkdir()
    return Tools(tmp_path / "home")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    with running(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
async def opened(registry: RealRegistry) -> AsyncIterator[Images]:
    async with Images(Settings(plain_http=frozenset({registry.host}))) as found:
        yield found


def tree(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def multi_platform() -> build.BuiltIndex:
    return build.index(
        build.image([build.layer({"manifests/a": str(each).encode()})], platform=each, labels=LABELS)
        for each in PLATFORMS
    )


async def read(layout: Layout, tag: str, *prefixes: str) -> dict[str, bytes]:
    return await unpack.files(await images.pull(layout, tag), prefixes or EVERYTHING)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "none"])
async def test_skopeo_inspects_and_copies_what_we_build(
    tools: Tools, layout: Layout, tmp_path: Path, compression: build.Compression
) -> None:
    built = build.image([build.layer(FILES, compression=compression)], labels=LABELS, created=1_700_000_000)
    await build.write(layout, built, "v1")
    shown = json.loads(await tools.skopeo.run("inspect", f"oci:{layout.path}:v1"))
    assert (shown["Digest"], shown["Labels"]) == (built.descriptor.digest, LABELS)
    assert (shown["Created"], shown["Architecture"]) == ("2023-11-14T22:13:20Z", "amd64")
    assert await tools.skopeo.run("inspect", "--raw", f"oci:{layout.path}:v1") == built.manifest.decode()
    config = json.loads(await tools.skopeo.run("inspect", "--config", f"oci:{layout.path}:v1"))
    assert config["rootfs"]["diff_ids"] == [built.layers[0].diff_id]

    theirs = Layout(tmp_path / "theirs")
    kept = "--dest-oci-accept-uncompressed-layers"
    await tools.skopeo.run("copy", kept, f"oci:{layout.path}:v1", f"oci:{theirs.path}:v2")
    assert (await theirs.resolve("v2")).digest == built.descriptor.digest
    assert await read(theirs, "v2") == dict(sorted(FILES.items()))


async def test_skopeo_copies_an_index_with_all_platforms(
    tools: Tools, layout: Layout, tmp_path: Path
) -> None:
    index = multi_platform()
    await build.write(layout, index, "v1")
    theirs = Layout(tmp_path / "theirs")
    await tools.skopeo.run("copy", "--all", f"oci:{layout.path}:v1", f"oci:{theirs.path}:v1")
    assert (await theirs.resolve("v1")).digest == index.descriptor.digest
    for platform in PLATFORMS:
        image = await images.pull(theirs, "v1", platform)
        assert await unpack.files(image) == {"manifests/a": str(platform).encode()}


async def test_skopeo_recompresses_and_we_still_read(tools: Tools, layout: Layout, tmp_path: Path) -> None:
    await build.write(layout, build.image([build.layer(FILES, compression="none")]), "v1")
    for form in ("gzip", "zstd"):
        theirs = Layout(tmp_path / form)
        flags = ("--dest-compress-format", form)
        await tools.skopeo.run("copy", *flags, f"oci:{layout.path}:v1", f"oci:{theirs.path}:v1")
        image = await images.pull(theirs, "v1")
        assert image.manifest.layers[0].media_type.endswith(form)
        assert await unpack.files(image, EVERYTHING) == dict(sorted(FILES.items()))


@pytest.mark.parametrize("transport", ["oci-archive", "docker-archive"])
async def test_archives_of_skopeo_are_read(
    tools: Tools, layout: Layout, tmp_path: Path, transport: str
) -> None:
    built = build.image([build.layer(FILES), build.layer({"manifests/b": b"2"})], labels=LABELS)
    await build.write(layout, built, "v1")
    file = tmp_path / "image.tar"
    await tools.skopeo.run("copy", f"oci:{layout.path}:v1", f"{transport}:{file}:docker.io/x/y:v1")
    archive = Archive(file)
    assert await archive.tags() == ["docker.io/x/y:v1"]
    image = await images.pull(archive, "docker.io/x/y:v1")
    assert (image.labels, image.diff_ids) == (LABELS, [layer.diff_id for layer in built.layers])
    assert (image.descriptor.digest == built.descriptor.digest) is (transport == "oci-archive")
    assert await unpack.files(image) == dict(sorted({**FILES, "manifests/b": b"2"}.items()))


async def test_umoci_unpacks_what_we_build(tools: Tools, layout: Layout, tmp_path: Path) -> None:
    layer = build.layer(FILES, modes={"manifests/a.yaml": 0o600}, mtime=1_700_000_000)
    await build.write(layout, build.image([layer], labels=LABELS), "v1")
    assert tools.unpacked(layout, "v1", tmp_path / "out") == FILES
    status = (tmp_path / "out" / "rootfs" / "manifests" / "a.yaml").stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o600, 1_700_000_000)
    assert tools.umoci("ls", "--layout", layout.path).split() == ["v1"]
    before = tree(layout.path / "blobs")
    tools.umoci("gc", "--layout", layout.path)
    assert tree(layout.path / "blobs") == before


PARTS = st.sampled_from(["a", "b", "a.b", "\u00fc", "n" * 120])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@st.composite
def changes(draw: st.DrawFn) -> build.Layer:
    """A layer of files and whiteouts that meet those of others."""
    drawn = draw(st.dictionaries(PATHS, st.binary(max_size=9), max_size=5))
    files = {path: data for path, data in drawn.items() if not _within(drawn.keys() - {path}, path)}
    marked = {each for each in draw(st.frozensets(PATHS, max_size=2)) if not _within({each}, *files)}
    emptied = {each for each in marked if draw(st.booleans())}
    return build.layer(files, removed=marked - emptied, emptied=emptied)


def _within(paths: Iterable[str], *directories: str) -> bool:
    """Whether one of the paths is one of the directories or lies in it."""
    return any(f"{path}/".startswith(f"{directory}/") for path in paths for directory in directories)


@settings(max_examples=40)
@given(st.lists(changes(), min_size=1, max_size=4))
def test_umoci_and_we_see_the_same_files_in_any_layers(layers: list[build.Layer]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        layout = Layout(Path(directory) / "layout")
        asyncio.run(_write(layout, layers))
        theirs = Tools(Path(directory)).unpacked(layout, "x", Path(directory) / "out")
        assert asyncio.run(read(layout, "x")) == dict(sorted(theirs.items()))


async def _write(layout: Layout, layers: list[build.Layer]) -> None:
    await build.write(layout, build.image(layers), "x")


ODD_BUT_FINE = {
    "a file twice": [entry(b"manifests/a", b"1") + entry(b"manifests/a", b"2")],
    "a file that becomes a directory": [
        entry(b"manifests/a", b"1") + entry(b"manifests/a/", kind=DIRECTORY) + entry(b"manifests/a/b", b"2")
    ],
    "a directory that becomes a file": [entry(b"manifests/a/b", b"1") + entry(b"manifests/a", b"2")],
    "dots and slashes": [entry(b"./manifests/./a", b"1") + entry(b"manifests//b", b"2")],
    "opaque before and after": [
        entry(b"manifests/a", b"1"),
        entry(b"manifests/b", b"2") + entry(b"manifests/.wh..wh..opq") + entry(b"manifests/c", b"3"),
    ],
    "a whiteout and a new file": [
        entry(b"manifests/a", b"1"), entry(b"manifests/.wh.a") + entry(b"manifests/b")
    ],
    "a directory gone and back": [
        entry(b"manifests/a", b"1"), entry(b".wh.manifests"), entry(b"manifests/b", b"2")
    ],
    "links elsewhere": [
        entry(b"usr/a", b"1")
        + entry(b"usr/b", kind=SYMLINK, link=b"../manifests")
        + entry(b"usr/c", kind=HARD_LINK, link=b"usr/a")
        + entry(b"manifests/x", b"2")
    ],
    "long names of GNU": [archives.long_name(b"manifests/" + b"n" * 150) + entry(b"short", b"1")],
    "names of PAX": [archives.pax([(b"path", "manifests/\u00fc".encode())]) + entry(b"short", b"1")],
    "nothing after the end": [entry(b"manifests/a", b"1") + END + entry(b"manifests/late", b"2")],
}  # fmt: skip


@pytest.mark.parametrize("case", ODD_BUT_FINE)
async def test_umoci_and_we_agree_on_odd_archives(
    tools: Tools, layout: Layout, tmp_path: Path, case: str
) -> None:
    await build.write(layout, archives.image([body + END for body in ODD_BUT_FINE[case]]), "x")
    theirs = tools.unpacked(layout, "x", tmp_path / "out")
    wanted = {path: data for path, data in theirs.items() if path.startswith("manifests/")}
    assert await read(layout, "x", "manifests") == dict(sorted(wanted.items()))


async def test_we_read_what_umoci_makes(tools: Tools, layout: Layout, tmp_path: Path) -> None:
    tools.umoci("init", "--layout", layout.path)
    assert await layout.tags() == []
    image = f"{layout.path}:v1"
    tools.umoci("new", "--image", image)
    tools.umoci("config", "--image", image, "--config.label", "a=b", "--architecture", "arm64")
    folder = tmp_path / "folder"
    (folder / "d").mkdir(parents=True)
    (folder / "a").write_text("1")
    (folder / "d" / "b").write_text("2")
    tools.umoci("insert", "--rootless", "--image", image, folder, "/configs")
    first = await images.pull(layout, "v1")
    assert (first.labels, first.platform.architecture) == ({"a": "b"}, "arm64")
    assert await unpack.files(first, ["/configs"]) == {"configs/a": b"1", "configs/d/b": b"2"}

    tools.umoci("insert", "--rootless", "--image", image, "--whiteout", "/configs/d")
    assert await read(layout, "v1", "configs") == {"configs/a": b"1"}
    (folder / "a").unlink()
    tools.umoci("insert", "--rootless", "--image", image, "--opaque", folder, "/configs")
    assert await read(layout, "v1", "configs") == {"configs/d/b": b"2"}

    await layout.collect(grace=-60)
    tools.umoci("stat", "--image", image)
    assert await read(layout, "v1", "configs") == {"configs/d/b": b"2"}


async def test_umoci_changes_an_image_of_ours_and_we_build_on_that(
    tools: Tools, layout: Layout, tmp_path: Path
) -> None:
    await build.write(layout, build.image([build.layer(FILES)], labels=LABELS), "v1")
    target = tmp_path / "out"
    tools.umoci("unpack", "--rootless", "--image", f"{layout.path}:v1", target)
    root = target / "rootfs"
    (root / "manifests" / "a.yaml").unlink()
    (root / "manifests" / "new.yaml").write_text("new")
    (root / "bin").symlink_to("usr/bin")
    (root / "one").write_text("1")
    os.link(root / "one", root / "two")
    tools.umoci("repack", "--image", f"{layout.path}:v2", target)
    expected = {**FILES, "manifests/new.yaml": b"new"}
    del expected["manifests/a.yaml"]
    assert await read(layout, "v2", "manifests", "metadata") == dict(sorted(expected.items()))

    base = await images.pull(layout, "v2")
    assert base.labels == LABELS
    built = build.image([build.layer({"configs/c": b"3"})], base=base)
    await build.write(layout, built, "v3")
    assert tools.unpacked(layout, "v3", tmp_path / "again")["configs/c"] == b"3"
    assert (tmp_path / "again" / "rootfs" / "bin").readlink() == Path("usr/bin")


async def test_an_image_goes_through_a_registry_and_back(
    tools: Tools, layout: Layout, tmp_path: Path, registry: RealRegistry, opened: Images
) -> None:
    index = multi_platform()
    await build.write(layout, index, "v1")
    remote, _ = opened.store(f"{registry.host}/team/bundle")
    assert (await transfer.copy(layout, "v1", remote, "v1")).digest == index.descriptor.digest
    name = f"docker://{registry.host}/team/bundle:v1"
    raw = await tools.skopeo.run("inspect", "--tls-verify=false", "--raw", name)
    assert raw == index.data.decode()
    theirs = Layout(tmp_path / "theirs")
    await tools.skopeo.run("copy", "--all", "--src-tls-verify=false", name, f"oci:{theirs.path}:v1")
    assert (await theirs.resolve("v1")).digest == index.descriptor.digest
    ours = Layout(tmp_path / "ours")
    await transfer.copy(remote, "v1", ours, "v1")
    assert tree(ours.path / "blobs") == tree(theirs.path / "blobs")
    assert await unpack.files(await images.pull(remote, "v1", "linux/s390x")) == {
        "manifests/a": b"linux/s390x"
    }


async def test_blobs_are_mounted_between_repositories_of_a_registry(
    layout: Layout, registry: RealRegistry, opened: Images
) -> None:
    await build.write(layout, multi_platform(), "v1")
    first, _ = opened.store(f"{registry.host}/mounting/first")
    second, _ = opened.store(f"{registry.host}/mounting/second")
    await transfer.copy(layout, "v1", first, "v1")
    moved = Moved()
    await transfer.copy(first, "v1", second, "v1", progress=moved)
    assert moved.bytes == 0
    assert await second.tags() == ["v1"]

    base = await images.pull(first, "v1", "linux/amd64")
    third, _ = opened.store(f"{registry.host}/mounting/third")
    await build.write(third, build.image([build.layer({"configs/a": b"1"})], base=base), "v1")
    assert set(await unpack.files(await images.pull(third, "v1"), EVERYTHING)) == {"configs/a", "manifests/a"}


class Moved:
    """Counts bytes."""

    bytes = 0

    def started(self, descriptor: Any, what: str) -> None:
        pass

    def advanced(self, descriptor: Any, count: int) -> None:
        self.bytes += count

    def finished(self, descriptor: Any, *, skipped: bool = False) -> None:
        pass


async def test_docker_images_and_lists_are_read_and_built_upon(
    tools: Tools, layout: Layout, registry: RealRegistry, opened: Images
) -> None:
    await build.write(layout, multi_platform(), "v1")
    target = f"docker://{registry.host}/docker/list:v1"
    flags = ("--all", "--format", "v2s2", "--dest-tls-verify=false")
    await tools.skopeo.run("copy", *flags, f"oci:{layout.path}:v1", target)
    remote, tag = opened.store(target)
    assert (await remote.resolve(tag)).media_type == DOCKER_LIST
    base = await images.pull(remote, tag, "linux/arm64")
    assert (base.descriptor.media_type, base.labels) == (DOCKER_MANIFEST, LABELS)
    assert await unpack.files(base) == {"manifests/a": b"linux/arm64"}
    built = build.image([build.layer({"manifests/b": b"2"})], base=base)
    await build.write(layout, built, "on-docker")
    assert await read(layout, "on-docker") == {"manifests/a": b"linux/arm64", "manifests/b": b"2"}
    await tools.skopeo.run("inspect", f"oci:{layout.path}:on-docker")
