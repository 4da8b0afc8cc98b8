"""The OCI image format as values: descriptors, manifests, indexes, configs.

Only what we read is typed; `extra` annotations and unknown fields of foreign manifests are never rewritten,
because a manifest is passed on as the bytes that came in.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NewType

import msgspec

from podium.oci.errors import Corrupt, Unacceptable

Digest = NewType("Digest", str)

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
OCI_LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar"
DOCKER_LAYER_GZIP = "application/vnd.docker.image.rootfs.diff.tar.gzip"

MANIFESTS = (OCI_MANIFEST, DOCKER_MANIFEST)
INDEXES = (OCI_INDEX, DOCKER_LIST)

MAX_MANIFEST = 4 << 20  # what registries accept, and what we are willing to hold and parse

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


class Platform(msgspec.Struct, frozen=True, omit_defaults=True, rename={"os_version": "os.version"}):
    """What machine an image is for."""

    architecture: str
    os: str
    variant: str = ""
    os_version: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Names content by its digest and size; trusted only after `checked` has seen the bytes."""

    media_type: str
    digest: Digest
    size: int
    annotations: dict[str, str] = {}
    platform: Platform | None = None
    artifact_type: str = ""


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One image or artifact: its config and layers."""

    schema_version: int
    config: Descriptor
    layers: list[Descriptor] = []
    media_type: str = ""
    artifact_type: str = ""
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


class Index(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Several manifests under one name, usually one for each platform."""

    schema_version: int
    manifests: list[Descriptor] = []
    media_type: str = ""
    artifact_type: str = ""
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


def parse_digest(text: str) -> Digest:
    """The text as a digest; ValueError unless it is a sha256 or sha512 one."""
    if not _DIGEST.fullmatch(text):
        raise ValueError(f"not a sha256 or sha512 digest: {text!r}")
    return Digest(text)


def digest_of(data: bytes) -> Digest:
    """The sha256 digest of some bytes."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def descriptor_of(data: bytes, media_type: str, **fields: Any) -> Descriptor:
    """The descriptor that names these bytes."""
    return Descriptor(media_type=media_type, digest=digest_of(data), size=len(data), **fields)


def checked(data: bytes, digest: str, size: int | None = None) -> bytes:
    """The same bytes, if they are what the digest (and size) name; Corrupt otherwise."""
    if size is not None and len(data) != size:
        raise Corrupt(f"{digest} should have {size} bytes, got {len(data)}")
    algorithm, _, wanted = digest.partition(":")
    found = hashlib.new(algorithm, data).hexdigest()
    if found != wanted:
        raise Corrupt(f"content does not match its digest: wanted {digest}, got {algorithm}:{found}")
    return data


class Verifier:
    """Checks the chunks of one blob as they pass by, so that no blob need be held in memory."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor
        self._algorithm, _, self._wanted = descriptor.digest.partition(":")
        self._hash = hashlib.new(self._algorithm)
        self._seen = 0

    def update(self, chunk: bytes) -> None:
        """Take the next chunk; Corrupt as soon as there is more than the descriptor says."""
        self._seen += len(chunk)
        if self._seen > self._descriptor.size:
            raise Corrupt(f"{self._descriptor.digest} should have {self._descriptor.size} bytes, got more")
        self._hash.update(chunk)

    def finish(self) -> None:
        """Say that this was all; Corrupt unless it was exactly what the descriptor names."""
        if self._seen != self._descriptor.size:
            raise Corrupt(
                f"{self._descriptor.digest} should have {self._descriptor.size} bytes, got {self._seen}"
            )
        if (found := self._hash.hexdigest()) != self._wanted:
            wanted = self._descriptor.digest
            raise Corrupt(
                f"content does not match its digest: wanted {wanted}, got {self._algorithm}:{found}"
            )


def decode(data: bytes, media_type: str) -> Manifest | Index:
    """A manifest or index by its media type; Unacceptable if it is neither or malformed."""
    if len(data) > MAX_MANIFEST:
        raise Unacceptable(f"manifest of {len(data)} bytes; at most {MAX_MANIFEST} are read")
    wanted: type[Manifest] | type[Index]
    if media_type in MANIFESTS:
        wanted = Manifest
    elif media_type in INDEXES:
        wanted = Index
    else:
        raise Unacceptable(f"not an image manifest or index: media type {media_type!r}")
    try:
        fields = _without_nulls(msgspec.json.decode(data))
        value = msgspec.convert(fields, type=wanted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unacceptable(f"malformed {media_type}: {error}") from None
    if value.schema_version != 2:
        raise Unacceptable(f"malformed {media_type}: schemaVersion is {value.schema_version}, not 2")
    # A document that is both would mean one thing to us and another to the next client (CVE-2021-41190).
    if {"manifests"} & fields.keys() if wanted is Manifest else {"config", "layers"} & fields.keys():
        raise Unacceptable(f"malformed {media_type}: it holds the fields of a manifest and of an index")
    if value.media_type not in ("", media_type):
        raise Unacceptable(f"served as {media_type} but says it is {value.media_type}")
    for descriptor in _descriptors(value):
        if not _DIGEST.fullmatch(descriptor.digest) or descriptor.size < 0:
            raise Unacceptable(f"malformed descriptor: {descriptor.digest!r}, {descriptor.size} bytes")
    return value


def _descriptors(value: Manifest | Index) -> list[Descriptor]:
    """Every descriptor a manifest or index holds."""
    inner = [value.config, *value.layers] if isinstance(value, Manifest) else list(value.manifests)
    return [*inner, *filter(None, [value.subject])]


def _without_nulls(value: Any) -> Any:
    """The same JSON without members that are null, which Go tools write for empty lists and maps."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
