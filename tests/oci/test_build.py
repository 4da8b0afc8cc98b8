"""Images are built to the same digest from the same input, and are what other tools expect."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stores import Memory
from podium.oci import build, images, unpack
from podium.oci.errors import Unacceptable
from podium.oci.model import (
    DOCKER_CONFIG,
    DOCKER_LAYER_GZIP,
    DOCKER_MANIFEST,
    OCI_LAYER_GZIP,
    Descriptor,
    Manifest,
    Platform,
    decode,
    descriptor_of,
)

FILES = {"manifests/b.yaml": b"b: 1\n", "manifests/a.yaml": b"a: 1\n", "metadata/annotations.yaml": b"{}\n"}
LABELS = {"operators.operatorframework.io.bundle.package.v1": "x", "a": "b"}


def opened(layer: build.Layer) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(layer.data)) as archive:
        return [(info, file.read() if (file := archive.extractfile(info)) else b"") for info in archive]


def test_an_archive_is_sorted_owned_by_root_and_has_its_directories() -> None:
    entries = [info for info, _ in opened(build.layer(FILES, modes={"manifests/a.yaml": 0o600}, mtime=1234))]
    assert [(info.name, info.isdir(), oct(info.mode)) for info in entries] == [
        ("manifests", True, "0o755"),
        ("manifests/a.yaml", False, "0o600"),
        ("manifests/b.yaml", False, "0o644"),
        ("metadata", True, "0o755"),
        ("metadata/annotations.yaml", False, "0o644"),
    ]
    assert {(info.uid, info.gid, info.uname, info.gname, info.mtime) for info in entries} == {
        (0, 0, "", "", 1234)
    }


def test_digests_that_must_never_change() -> None:
    plain = build.layer({**FILES, "manifests/" + "long-" * 40 + "ü.yaml": b""}, mtime=1, compression="none")
    built = build.image([plain], labels=LABELS, created=1_700_000_000, annotations={"k": "v"})
    assert plain.descriptor.digest == plain.diff_id
    assert (plain.diff_id, built.descriptor.digest) == (
        "sha256:e3606fed50cedf025a458afeffebd69bb5e7dc35e7278075e9753c4e4fb2cb90",
        "sha256:422abc29f0843aaaa56d96bb2492a57fd6fd21ccc5d1eabdff26504c204c5262",
    )


def test_the_gzip_header_says_nothing_about_this_machine() -> None:
    layer = build.layer(FILES)
    assert layer.data[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    assert gzip.decompress(layer.data) == build.layer(FILES, compression="none").data


@given(st.permutations(sorted(FILES)), st.permutations(sorted(LABELS)))
def test_the_order_of_the_input_does_not_matter(paths: list[str], labels: list[str]) -> None:
    shuffled = build.layer({path: FILES[path] for path in paths})
    made = build.image([shuffled], labels={key: LABELS[key] for key in labels})
    assert made.descriptor == build.image([build.layer(FILES)], labels=LABELS).descriptor


def test_every_process_builds_the_same() -> None:
    program = (
        "from podium.oci import build\n"
        "files = {f'manifests/{name}': name.encode() for name in set('abcdefghij')}\n"
        "removed = {f'configs/{name}' for name in set('abcdefghij')}\n"
        "layers = [build.layer(files, removed=removed, compression=each) for each in ('gzip', 'none')]\n"
        "print(build.image(layers, labels={name: name for name in set('xyz')}).descriptor.digest)\n"
    )
    found = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"}
        command = [sys.executable, "-c", program]
        found.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 1


@given(st.dictionaries(st.text("abn/ü", min_size=1, max_size=300), st.binary(max_size=600), max_size=4))
def test_another_reader_finds_the_same_files(files: dict[str, bytes]) -> None:
    try:
        made = build.layer(files)
    except Unacceptable:
        return
    expected = {"/".join(filter(None, path.split("/"))): data for path, data in files.items()}
    assert {info.name: data for info, data in opened(made) if info.isfile()} == expected


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"../x": b""}, "climbs up"),
        ({"a/../b": b""}, "climbs up"),
        ({"/x": b""}, "absolute"),
        ({"a\\b": b""}, "backslash"),
        ({"a\nb": b""}, "control"),
        ({"\ud800": b""}, "not Unicode"),
        ({"": b""}, "not the name of a file"),
        ({".": b""}, "not the name of a file"),
        ({"a/": b""}, "not the name of a file"),
        ({"a/.wh.b": b""}, "something is deleted"),
        ({"a": b"", "./a": b""}, "two files are called a"),
        ({"a": b"", "a/b": b""}, "a is both a file and a directory"),
        ({"a" * 300: b""}, "a name of 300"),
    ],
)
def test_names_that_could_not_be_read_back_are_not_written(files: dict[str, bytes], why: str) -> None:
    with pytest.raises(Unacceptable, match=why):
        build.layer(files)


@pytest.mark.parametrize("mtime", [-1, 8**11])
def test_times_that_no_archive_can_hold_are_refused(mtime: int) -> None:
    with pytest.raises(ValueError, match="no archive can hold"):
        build.layer({}, mtime=mtime)


def config_of(built: build.Built) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(built.config)
    return config


def test_a_config_says_what_it_is() -> None:
    layer = build.layer(FILES, comment="the bundle")
    built = build.image([layer], labels={"a": "b"}, created=86400, run={"Entrypoint": ["/bin/opm"]})
    assert config_of(built) == {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-02T00:00:00Z",
        "config": {"Entrypoint": ["/bin/opm"], "Labels": {"a": "b"}},
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
        "history": [{"created": "1970-01-02T00:00:00Z", "created_by": "podium", "comment": "the bundle"}],
    }


async def test_an_image_on_a_base_inherits_its_settings_and_layers() -> None:
    base_store, target = Memory("base"), Memory("target")
    settings = {"Env": ["PATH=/bin"], "Entrypoint": ["/opm"], "Cmd": ["serve"], "User": "1001"}
    arm = Platform(os="linux", architecture="arm64")
    lower = build.layer({"bin/opm": b"program", "configs/old": b"1"})
    made = build.image([lower], labels={"kept": "1", "changed": "1"}, run=settings, platform=arm)
    await build.write(base_store, made, "base")
    base = await images.pull(base_store, "base")

    upper = build.layer({"configs/new": b"2"}, emptied=["configs/"])
    built = build.image([upper], base=base, labels={"changed": "2"}, run={"Cmd": ["other"]}, created=1)
    await build.write(target, built, "x")

    image = await images.pull(target, "x")
    assert image.platform == arm
    assert image.config["config"] == {**settings, "Cmd": ["other"], "Labels": {"kept": "1", "changed": "2"}}
    assert image.diff_ids == [lower.diff_id, upper.diff_id]
    assert len(image.config["history"]) == 2
    assert await unpack.files(image, ["bin", "configs"]) == {"bin/opm": b"program", "configs/new": b"2"}


async def test_a_docker_image_can_be_a_base() -> None:
    store = Memory()
    layer = build.layer({"bin/opm": b"program"})
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "container": "0123",
            "container_config": {"Hostname": "builder"},
            "config": {"Labels": None},
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
        }
    ).encode()
    below = Descriptor(
        media_type=DOCKER_LAYER_GZIP, digest=layer.descriptor.digest, size=layer.descriptor.size
    )
    store.content |= {layer.descriptor.digest: layer.data}
    described = descriptor_of(config, DOCKER_CONFIG)
    store.content[described.digest] = config
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": DOCKER_MANIFEST,
            "config": {"mediaType": DOCKER_CONFIG, "digest": described.digest, "size": described.size},
            "layers": [{"mediaType": below.media_type, "digest": below.digest, "size": below.size}],
        }
    ).encode()
    await store.put_manifest(descriptor_of(manifest, DOCKER_MANIFEST), manifest, "docker")

    base = await images.pull(store, "docker")
    built = build.image([build.layer({"configs/a": b"1"})], base=base, labels={"a": "b"})
    await build.write(store, built, "x")
    value = decode(built.manifest, built.descriptor.media_type)
    assert isinstance(value, Manifest)
    assert [each.media_type for each in value.layers] == [OCI_LAYER_GZIP] * 2
    assert "container" not in config_of(built)
    image = await images.pull(store, "x")
    assert await unpack.files(image, ["bin", "configs"]) == {"bin/opm": b"program", "configs/a": b"1"}


async def test_base_layers_are_mounted_within_a_registry_and_copied_between() -> None:
    source, sibling, stranger = Memory(registry="r"), Memory(registry="r"), Memory(registry="other")
    made = build.image([build.layer({"a": b"1"})])
    await build.write(source, made, "base")
    built = build.image([build.layer({"b": b"2"})], base=await images.pull(source, "base"))
    below = made.layers[0].descriptor.digest
    for target in (sibling, stranger):
        await build.write(target, built, "x")
        assert (below in target.mounted, below in target.uploaded) == (target is sibling, target is stranger)


async def test_an_index_holds_an_image_for_each_platform() -> None:
    store = Memory()
    platforms = [Platform(os="linux", architecture=name) for name in ("amd64", "arm64", "s390x")]
    made = [build.image([build.layer({"a": str(each).encode()})], platform=each) for each in platforms]
    assert await build.write(store, build.index(made), "x") == await store.resolve("x")
    for each in platforms:
        image = await images.pull(store, "x", each)
        assert await unpack.files(image, [""]) == {"a": str(each).encode()}
    with pytest.raises(Unacceptable, match="several images for one platform"):
        build.index([made[0], made[0]])


async def test_an_image_without_layers_is_whole() -> None:
    store = Memory()
    built = build.image([], labels={"a": "b"})
    await build.write(store, built, "x")
    assert json.loads(built.manifest)["layers"] == []
    assert await unpack.files(await images.pull(store, "x")) == {}


async def test_nothing_is_built_on_an_artifact() -> None:
    artifact = build.image([])
    manifest = artifact.manifest.replace(b"image.config.v1+json", b"empty.v1+json")
    value = decode(manifest, artifact.descriptor.media_type)
    assert isinstance(value, Manifest)
    base = images.Image(artifact.descriptor, value, {}, Memory())
    with pytest.raises(Unacceptable, match="not a container image"):
        build.image([], base=base)
