"""Images made from files, without a daemon: the same input always gives the same digest.

Nothing of this machine gets in: no clock, no user, no order of a directory. Times are what the caller says
(pass SOURCE_DATE_EPOCH), JSON is written with sorted keys, archives as `tarwrite` makes them. One
dependence is left: compressed bytes may differ between versions of zlib and zstd; `compression="none"` is
independent of that, too.
"""

from __future__ import annotations

import copy
import hashlib
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import zstandard

from podium.oci.errors import Unacceptable
from podium.oci.images import Image
from podium.oci.model import (
    DOCKER_LAYER,
    DOCKER_LAYER_GZIP,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER,
    OCI_LAYER_GZIP,
    OCI_LAYER_ZSTD,
    OCI_MANIFEST,
    Descriptor,
    Digest,
    Index,
    Manifest,
    Platform,
    descriptor_of,
)
from podium.oci.store import Store
from podium.oci.tarwrite import archive

Compression = Literal["gzip", "zstd", "none"]

# What bundles and catalogs hold is for no machine in particular; a fixed name gives one digest everywhere.
ANY_MACHINE = Platform(os="linux", architecture="amd64")
CREATED_BY = "podium"

_MEDIA_TYPES: dict[Compression, str] = {"gzip": OCI_LAYER_GZIP, "zstd": OCI_LAYER_ZSTD, "none": OCI_LAYER}
_FROM_DOCKER = {DOCKER_LAYER: OCI_LAYER, DOCKER_LAYER_GZIP: OCI_LAYER_GZIP}
# No name, no time, no operating system: nothing but the fact that deflated data follows.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, compressed, with the digest of what is inside."""

    descriptor: Descriptor
    diff_id: Digest
    data: bytes
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """An image that is ready to be written; its digest is known already."""

    descriptor: Descriptor
    manifest: bytes
    config_descriptor: Descriptor
    config: bytes
    layers: tuple[Layer, ...]
    base: Image | None = None


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """Images for several platforms under one digest."""

    descriptor: Descriptor
    data: bytes
    images: tuple[Built, ...]


def layer(
    files: Mapping[str, bytes],
    *,
    modes: Mapping[str, int] | None = None,
    mtime: int = 0,
    compression: Compression = "gzip",
    removed: Collection[str] = (),
    emptied: Collection[str] = (),
    comment: str = "",
) -> Layer:
    """A layer of some files; `removed` paths and the contents of `emptied` directories vanish from below."""
    plain = hashlib.sha256()
    pieces = archive(files, modes=modes, mtime=mtime, removed=removed, emptied=emptied)
    data = b"".join(_COMPRESSORS[compression](_seen(pieces, plain.update)))
    diff_id = Digest("sha256:" + plain.hexdigest())
    return Layer(descriptor_of(data, _MEDIA_TYPES[compression]), diff_id, data, comment)


def image(
    layers: Sequence[Layer],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    platform: Platform | None = None,
    base: Image | None = None,
    created: int = 0,
    run: Mapping[str, Any] | None = None,
) -> Built:
    """An image of some layers, on top of a base whose settings it inherits.

    `run` sets fields of the container config by their names there: Entrypoint, Cmd, Env, User, WorkingDir.
    """
    config = _config(layers, labels or {}, platform, base, created, run or {})
    config_data = _canonical(config)
    config_descriptor = descriptor_of(config_data, OCI_CONFIG)
    inherited = [_as_oci(descriptor) for descriptor in base.manifest.layers] if base else []
    manifest = Manifest(
        schema_version=2,
        media_type=OCI_MANIFEST,
        config=config_descriptor,
        layers=[*inherited, *(layer.descriptor for layer in layers)],
        annotations=dict(annotations or {}),
    )
    data = _canonical({"layers": [], **msgspec.to_builtins(manifest)})
    descriptor = descriptor_of(data, OCI_MANIFEST, platform=_platform(config))
    return Built(descriptor, data, config_descriptor, config_data, tuple(layers), base)


def index(images: Iterable[Built], *, annotations: Mapping[str, str] | None = None) -> BuiltIndex:
    """An index of images, one for each platform."""
    images = tuple(images)
    platforms = [str(built.descriptor.platform) for built in images]
    if len(set(platforms)) != len(platforms):
        raise Unacceptable(f"an index with several images for one platform: {', '.join(sorted(platforms))}")
    value = Index(
        schema_version=2,
        media_type=OCI_INDEX,
        manifests=[built.descriptor for built in images],
        annotations=dict(annotations or {}),
    )
    data = _canonical({"manifests": [], **msgspec.to_builtins(value)})
    return BuiltIndex(descriptor_of(data, OCI_INDEX), data, images)


async def write(store: Store, built: Built | BuiltIndex, tag: str = "") -> Descriptor:
    """Put an image or index into a store, blobs first, and point a tag at it."""
    if isinstance(built, Built):
        await _write_image(store, built, tag)
        return built.descriptor
    for each in built.images:
        await _write_image(store, each, "")
    await store.put_manifest(built.descriptor, built.data, tag)
    return built.descriptor


async def _write_image(store: Store, built: Built, tag: str) -> None:
    if built.base is not None:
        for descriptor in built.base.manifest.layers:
            await _take_over(store, built.base, descriptor)
    for each in built.layers:
        await store.put_blob(each.descriptor, _chunks(each.data))
    await store.put_blob(built.config_descriptor, _chunks(built.config))
    await store.put_manifest(built.descriptor, built.manifest, tag)


async def _take_over(store: Store, base: Image, descriptor: Descriptor) -> None:
    """A layer of the base, by the shortest way: it is there, or can be mounted, or is copied."""
    if not await store.has(descriptor) and not await store.mount(descriptor, base.store):
        await store.put_blob(descriptor, lambda: base.store.blob(descriptor))


def _config(
    layers: Sequence[Layer],
    labels: Mapping[str, str],
    platform: Platform | None,
    base: Image | None,
    created: int,
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """The config of an image: the base's, with what is new."""
    if base is not None and not base.is_container_image:
        raise Unacceptable(f"{base.descriptor.digest} is not a container image: nothing can be built on it")
    config: dict[str, Any] = copy.deepcopy(base.config) if base else {}
    if platform is None and not (base and base.platform.architecture):
        platform = ANY_MACHINE
    if platform is not None:
        for key in ("variant", "os.version"):
            config.pop(key, None)
        config.update(msgspec.to_builtins(platform))
    config["created"] = _rfc3339(created)
    settings = {**(config.get("config") or {}), **run}
    if merged := {**(settings.get("Labels") or {}), **labels}:
        settings["Labels"] = merged
    if settings:
        config["config"] = settings
    below = (config.get("rootfs") or {}).get("diff_ids") or []
    config["rootfs"] = {"type": "layers", "diff_ids": [*below, *(layer.diff_id for layer in layers)]}
    config["history"] = [*(config.get("history") or []), *(_history(layer, created) for layer in layers)]
    for key in ("id", "parent", "container", "container_config"):  # Docker's records of how the base was made
        config.pop(key, None)
    return config


def _history(layer: Layer, created: int) -> dict[str, str]:
    entry = {"created": _rfc3339(created), "created_by": CREATED_BY}
    return {**entry, "comment": layer.comment} if layer.comment else entry


def _platform(config: Mapping[str, Any]) -> Platform:
    fields = {"os_version": "os.version"}
    names = ("architecture", "os", "variant", "os_version")
    return Platform(**{name: str(config.get(fields.get(name, name)) or "") for name in names})


def _as_oci(descriptor: Descriptor) -> Descriptor:
    """A layer of a Docker image as one of an OCI image: the bytes are the same, only the name differs."""
    media_type = _FROM_DOCKER.get(descriptor.media_type, descriptor.media_type)
    return msgspec.structs.replace(descriptor, media_type=media_type)


def _rfc3339(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _canonical(value: Any) -> bytes:
    """JSON with sorted keys."""
    return msgspec.json.encode(value, order="sorted")


def _chunks(data: bytes) -> Callable[[], AsyncIterator[bytes]]:
    async def chunks() -> AsyncIterator[bytes]:
        yield data

    return chunks


def _seen(pieces: Iterable[bytes], see: Callable[[bytes], None]) -> Iterator[bytes]:
    for piece in pieces:
        see(piece)
        yield piece


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    engine = zlib.compressobj(6, zlib.DEFLATED, -15)
    checksum, size = 0, 0
    yield _GZIP_HEADER
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
        size += len(piece)
        yield engine.compress(piece)
    yield engine.flush()
    yield checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    engine = zstandard.ZstdCompressor(level=3).compressobj()
    for piece in pieces:
        yield engine.compress(piece)
    yield engine.flush()


def _none(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield from pieces


_COMPRESSORS: dict[Compression, Callable[[Iterable[bytes]], Iterator[bytes]]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "none": _none,
}
