"""From the name of an image to the one manifest that is meant, with its config.

A tag is resolved once; an index is searched for the platform; from then on the image is its digest. The
config is read here because everything that uses an image wants its labels, and because it says what the
layers must hold.
"""

from __future__ import annotations

import platform as machine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.oci.errors import BadReference, ImageNotFound, Unacceptable
from podium.oci.model import (
    DOCKER_CONFIG,
    INDEXES,
    MANIFESTS,
    OCI_CONFIG,
    Descriptor,
    Digest,
    Index,
    Manifest,
    Platform,
    decode,
    parse_digest,
)
from podium.oci.store import Store

MAX_CONFIG = 8 << 20
MAX_NESTING = 4  # indexes in indexes
MAX_MANIFESTS = 1000  # of one index with all that are nested in it

ATTESTATION = "attestation-manifest"
ATTESTATION_KEY = "vnd.docker.reference.type"


@dataclass(frozen=True, slots=True)
class Image:
    """One image for one platform, by digest."""

    descriptor: Descriptor
    manifest: Manifest
    config: dict[str, Any]
    store: Store = field(repr=False)

    @property
    def labels(self) -> dict[str, str]:
        """The labels in its config."""
        found = (self.config.get("config") or {}).get("Labels") or {}
        return {key: value for key, value in found.items() if isinstance(value, str)}

    @property
    def platform(self) -> Platform:
        """The platform in its config; empty where that does not say."""
        names = {key: str(self.config.get(key) or "") for key in ("architecture", "os", "variant")}
        return Platform(**names)

    @property
    def diff_ids(self) -> list[Digest]:
        """The digests of its layers before compression; none for an artifact that is not an image."""
        return [Digest(digest) for digest in (self.config.get("rootfs") or {}).get("diff_ids") or []]

    @property
    def is_container_image(self) -> bool:
        """Whether it is meant to be unpacked as a file system, rather than an artifact of another kind."""
        return self.manifest.config.media_type in (OCI_CONFIG, DOCKER_CONFIG)


async def pull(store: Store, tag_or_digest: str, platform: Platform | str | None = None) -> Image:
    """The image that a tag or digest names, for a platform like `linux/arm/v7` (default: this machine's)."""
    wanted = parse_platform(platform) if isinstance(platform, str) else platform
    descriptor = await store.resolve(tag_or_digest)
    if descriptor.media_type in INDEXES:
        entries = await expand(store, descriptor)
        descriptor = choose(entries, wanted, f"{store.name} {tag_or_digest}")
        return await load(store, descriptor)
    image = await load(store, descriptor)
    found = _normalised(image.platform)
    if wanted and found.architecture and found not in _equivalents(_normalised(wanted)):
        raise ImageNotFound(f"{store.name} {tag_or_digest} is for {image.platform}, not for {wanted}")
    return image


async def load(store: Store, descriptor: Descriptor) -> Image:
    """The image of a manifest, with its config decoded and checked for sense."""
    manifest = decode(await store.manifest(descriptor), descriptor.media_type)
    if not isinstance(manifest, Manifest):
        raise Unacceptable(f"{descriptor.digest} is an index, not the manifest of an image")
    config: dict[str, Any] = {}
    if manifest.config.media_type in (OCI_CONFIG, DOCKER_CONFIG):
        config = _decode_config(await _small_blob(store, manifest.config), manifest)
    return Image(descriptor, manifest, config, store)


async def expand(store: Store, descriptor: Descriptor) -> list[Descriptor]:
    """The manifests of an index, with those of indexes nested in it."""
    found: list[Descriptor] = []
    level = [descriptor]
    for _ in range(MAX_NESTING):
        inner: list[Descriptor] = []
        for nested in level:
            index = decode(await store.manifest(nested), nested.media_type)
            if not isinstance(index, Index):
                raise Unacceptable(f"{nested.digest} is a manifest, not an index")
            found += (entry for entry in index.manifests if entry.media_type in MANIFESTS)
            inner += (entry for entry in index.manifests if entry.media_type in INDEXES)
            if len(found) + len(inner) > MAX_MANIFESTS:
                raise Unacceptable(f"{descriptor.digest} is an index of more than {MAX_MANIFESTS} manifests")
        if not inner:
            return found
        level = inner
    raise Unacceptable(f"{descriptor.digest} nests indexes more than {MAX_NESTING} deep")


def choose(entries: list[Descriptor], wanted: Platform | None, what: str = "the index") -> Descriptor:
    """The entry of an index for a platform; without one for this machine, or the only one there is."""
    images = [entry for entry in entries if not is_attestation(entry)]
    if wanted is None and len({entry.digest for entry in images}) == 1:
        return images[0]
    acceptable = _equivalents(_normalised(wanted)) if wanted else _equivalents(this_machine())
    for candidate in acceptable:
        for entry in images:
            if entry.platform and _normalised(entry.platform) == candidate:
                return entry
    have = ", ".join(sorted({str(entry.platform) for entry in images if entry.platform})) or "none named"
    raise ImageNotFound(f"{what} has no image for {wanted or this_machine()}; it has: {have}")


def is_attestation(entry: Descriptor) -> bool:
    """Whether an entry of an index is no image but a statement about another entry, as BuildKit adds them."""
    unknown = entry.platform is not None and entry.platform.os == entry.platform.architecture == "unknown"
    return unknown or entry.annotations.get(ATTESTATION_KEY) == ATTESTATION


def parse_platform(text: str) -> Platform:
    """`os/arch[/variant]` as a platform; BadReference if it is not that."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise BadReference(f"not a platform like linux/amd64 or linux/arm/v7: {text!r}")
    return Platform(os=parts[0], architecture=parts[1], variant="".join(parts[2:]))


def this_machine() -> Platform:
    """Linux on the processor of this machine, whatever system runs on it."""
    return _normalised(Platform(os="linux", architecture=machine.machine().lower()))


_ARCHITECTURES = {
    "x86_64": ("amd64", ""),
    "x86-64": ("amd64", ""),
    "aarch64": ("arm64", ""),
    "i386": ("386", ""),
    "i686": ("386", ""),
    "armhf": ("arm", "v7"),
    "armv7l": ("arm", "v7"),
    "armel": ("arm", "v6"),
    "armv6l": ("arm", "v6"),
}
# The variant that is meant when none is named; written as "" from here on.
_BASELINE = {"amd64": "v1", "arm64": "v8", "arm": "v7"}


def _normalised(platform: Platform) -> Platform:
    """One spelling for each platform."""
    architecture, variant = _ARCHITECTURES.get(platform.architecture, (platform.architecture, ""))
    variant = platform.variant or variant
    if variant.isdigit():
        variant = f"v{variant}"
    if variant == _BASELINE.get(architecture):
        variant = ""
    return Platform(os=platform.os, architecture=architecture, variant=variant)


def _equivalents(platform: Platform) -> list[Platform]:
    """The platform, then those whose programs run on it too: newer processors run older variants."""
    baseline = _BASELINE.get(platform.architecture, "")
    number = (platform.variant or baseline).removeprefix("v")
    if not number.isdigit() or len(number) > 2:
        return [platform]
    older = [f"v{count}" for count in range(int(number), 0, -1)]
    variants = ["" if variant == baseline else variant for variant in older]
    return [Platform(os=platform.os, architecture=platform.architecture, variant=name) for name in variants]


async def _small_blob(store: Store, descriptor: Descriptor) -> bytes:
    if descriptor.size > MAX_CONFIG:
        raise Unacceptable(f"config of {descriptor.size} bytes; at most {MAX_CONFIG} are read")
    return b"".join([chunk async for chunk in store.blob(descriptor)])


def _decode_config(data: bytes, manifest: Manifest) -> dict[str, Any]:
    """An image config whose parts that we use have the right shape."""
    what = f"malformed config {manifest.config.digest}"
    try:
        config = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unacceptable(f"{what}: {error}") from None
    if not isinstance(config, dict):
        raise Unacceptable(f"{what}: not an object")
    inner, rootfs = config.get("config") or {}, config.get("rootfs") or {}
    if not isinstance(inner, dict) or not isinstance(inner.get("Labels") or {}, dict):
        raise Unacceptable(f"{what}: its config or labels are not an object")
    if not isinstance(config.get("history") or [], list):
        raise Unacceptable(f"{what}: its history is not a list")
    diff_ids = rootfs.get("diff_ids") or [] if isinstance(rootfs, dict) else None
    if not isinstance(diff_ids, list):
        raise Unacceptable(f"{what}: its rootfs has no list of diff_ids")
    try:
        parsed = [parse_digest(digest) for digest in diff_ids]
    except (TypeError, ValueError) as error:
        raise Unacceptable(f"{what}: {error}") from None
    if len(parsed) != len(manifest.layers):
        raise Unacceptable(f"{what}: {len(parsed)} diff_ids for {len(manifest.layers)} layers")
    return config
