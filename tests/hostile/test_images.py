"""Manifests, indexes and layouts that lie, loop, or are not what they should be; and registries that do."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.confined import podium

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ABSENT = {"mediaType": LAYER, "digest": "sha256:" + "0" * 64, "size": 1}


class Layout:
    """Writes whatever it is told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, content: bytes | dict[str, Any], media_type: str, **changes: Any) -> dict[str, Any]:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        encoded = hashlib.sha256(data).hexdigest()
        (self.path / "blobs/sha256" / encoded).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{encoded}", "size": len(data), **changes}

    def index(self, content: Any) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.path / "index.json").write_bytes(data)

    def tagged(self, descriptor: dict[str, Any]) -> None:
        tag = {"annotations": {"org.opencontainers.image.ref.name": "1"}}
        self.index({"schemaVersion": 2, "manifests": [descriptor | tag]})


def refused(layout: Layout) -> None:
    """Nobody takes it, and nothing of it is copied."""
    name = f"oci:{layout.path}:1"
    work = layout.path.parent
    for command in (
        ("catalog", "validate", name),
        ("bundle", "validate", name),
        ("image", "copy", name, "oci:copy:1"),
    ):
        podium(*command, cwd=work).assert_refused()
    podium("image", "inspect", name, cwd=work).assert_bounded()


INDEXES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\0" * 1000,
    "a list": b"[]",
    "null": b"null",
    "nested deeply": b'{"manifests":' + b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "no UTF-8": b'{"schemaVersion":2,"manifests":[{"digest":"\xff"}]}',
    "manifests that are no list": b'{"schemaVersion":2,"manifests":{"a":1}}',
    "manifests that are numbers": b'{"schemaVersion":2,"manifests":[1,2,3]}',
    "a digest that is a number": b'{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":5,"size":1}]}',
    "a digest that is a path": json.dumps(
        {"schemaVersion": 2, "manifests": [ABSENT | {"digest": "sha256:../../../../etc/passwd"}]}
    ).encode(),
    "a digest of an unknown kind": json.dumps(
        {"schemaVersion": 2, "manifests": [ABSENT | {"digest": "../x:" + "0" * 64}]}
    ).encode(),
    "a size below zero": json.dumps({"schemaVersion": 2, "manifests": [ABSENT | {"size": -1}]}).encode(),
    "a size beyond all measure": json.dumps(
        {"schemaVersion": 2, "manifests": [ABSENT | {"size": 10**30}]}
    ).encode(),
    "100,000 manifests": json.dumps({"schemaVersion": 2, "manifests": [ABSENT] * 100_000}).encode(),
    "an annotation of 60 MiB": b'{"schemaVersion":2,"manifests":[],"annotations":{"a":"'
    + b"a" * (60 << 20)
    + b'"}}',
}


@pytest.mark.parametrize("name", INDEXES)
def test_a_layout_with_a_bad_index_is_refused(name: str, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.index(INDEXES[name])
    refused(layout)
    assert not (tmp_path / "copy").exists()


def good_config(layout: Layout, **changes: Any) -> dict[str, Any]:
    return layout.blob(
        {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}, **changes},
        CONFIG,
    )


def manifest(config: Any, layers: Any, **more: Any) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, **more}


def many_layers(layout: Layout) -> dict[str, Any]:
    layer = layout.blob(b"\0" * 1024, LAYER)
    return manifest(good_config(layout), [layer] * 10_000)


def huge_annotations(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout), [], annotations={f"k{n}": "v" * 100 for n in range(100_000)})


def lying_size(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout), [layout.blob(b"\0" * 1024, LAYER, size=1 << 40)])


def short_size(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout), [layout.blob(b"\0" * 2048, LAYER, size=512)])


def lying_digest(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout), [layout.blob(b"\0" * 1024, LAYER) | {"digest": ABSENT["digest"]}])


def layer_from_elsewhere(layout: Layout) -> dict[str, Any]:
    foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
    return manifest(good_config(layout), [ABSENT | {"mediaType": foreign, "urls": ["http://127.0.0.1:1/x"]}])


def config_that_is_a_list(layout: Layout) -> dict[str, Any]:
    return manifest(layout.blob(b"[]", CONFIG), [])


def config_nested_deeply(layout: Layout) -> dict[str, Any]:
    return manifest(layout.blob(b'{"a":' * 100_000, CONFIG), [])


def labels_that_are_numbers(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout, config={"Labels": {"a": 1}}), [])


def config_of_60_mebibytes(layout: Layout) -> dict[str, Any]:
    return manifest(layout.blob(b" " * (60 << 20) + b"{}", CONFIG), [])


def label_that_is_a_path(layout: Layout) -> dict[str, Any]:
    label = {"operators.operatorframework.io.index.configs.v1": "/../../../../etc"}
    return manifest(good_config(layout, config={"Labels": label}), [layout.blob(b"\0" * 1024, LAYER)])


def both_manifest_and_index(layout: Layout) -> dict[str, Any]:
    return manifest(good_config(layout), [], manifests=[ABSENT])


def config_is_the_manifest_of_another(layout: Layout) -> dict[str, Any]:
    return manifest(layout.blob({"schemaVersion": 2, "manifests": []}, INDEX), [])


MANIFESTS = [
    many_layers,
    huge_annotations,
    lying_size,
    short_size,
    lying_digest,
    layer_from_elsewhere,
    config_that_is_a_list,
    config_nested_deeply,
    labels_that_are_numbers,
    config_of_60_mebibytes,
    both_manifest_and_index,
    config_is_the_manifest_of_another,
]


@pytest.mark.parametrize("make", MANIFESTS, ids=lambda make: make.__name__.replace("_", " "))
def test_an_image_that_lies_is_no_catalog_and_no_bundle(make: Any, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.tagged(layout.blob(make(layout), MANIFEST))
    for command in ("catalog", "bundle"):
        podium(command, "validate", f"oci:{layout.path}:1").assert_refused()
    podium("image", "inspect", f"oci:{layout.path}:1").assert_bounded()
    podium("image", "copy", f"oci:{layout.path}:1", "oci:copy:1", cwd=tmp_path).assert_bounded()


def test_a_label_that_is_a_path_finds_nothing_outside_the_image(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.tagged(layout.blob(label_that_is_a_path(layout), MANIFEST))
    run = podium("catalog", "render", f"oci:{layout.path}:1")
    run.assert_bounded()
    assert "root:" not in run.words


def test_indexes_within_indexes_end_somewhere(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    inner = layout.blob({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}, INDEX)
    for _ in range(300):
        inner = layout.blob({"schemaVersion": 2, "mediaType": INDEX, "manifests": [inner] * 3}, INDEX)
    layout.tagged(inner)
    refused(layout)


def test_an_index_of_100000_platforms_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    listed = [
        ABSENT | {"mediaType": MANIFEST, "platform": {"os": "linux", "architecture": "amd64"}}
    ] * 100_000
    layout.tagged(layout.blob({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}, INDEX))
    refused(layout)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"imageLayoutVersion": "9"}', b"\0" * (8 << 20), b"[" * 100_000]
)
def test_a_directory_with_a_bad_layout_file_is_refused(data: bytes, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.index(b'{"schemaVersion":2,"manifests":[]}')
    (layout.path / "oci-layout").write_bytes(data)
    refused(layout)


def test_a_blob_that_is_a_link_or_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    descriptor = layout.blob(manifest(good_config(layout), []), MANIFEST)
    layout.tagged(descriptor)
    blob = layout.path / "blobs" / descriptor["digest"].replace(":", "/")
    blob.unlink()
    os.mkfifo(blob)
    refused(layout)
    blob.unlink()
    blob.symlink_to("/dev/zero")
    refused(layout)
    (layout.path / "index.json").unlink()
    os.mkfifo(layout.path / "index.json")
    refused(layout)
