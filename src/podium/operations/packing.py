"""Bundles and catalogs as images: what goes in, which labels say so, and where they are put.

Both are plain files on an empty base unless the caller names another, so one input has one digest, and no
daemon is needed. A catalog's image holds no program and no cache: OLM v1 reads its files, and OLM v0 extracts
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from podium.bundle.model import MANIFESTS_KEY, MEDIATYPE_KEY, METADATA_KEY, REGISTRY_V1, Files
from podium.bundle.read import read_leniently
from podium.content.directories import BUNDLE_FOLDERS
from podium.content.sources import CONFIGS_LABEL
from podium.oci import build
from podium.oci import images as oci_images
from podium.oci.build import Built, BuiltIndex
from podium.oci.errors import BadReference, ImageNotFound
from podium.oci.images import Image
from podium.oci.model import Platform
from podium.oci.open import Images

CONFIGS = "configs"
Packed = Built | BuiltIndex


@dataclass(frozen=True, slots=True)
class Packing:
    """What a caller may choose about an image."""

    labels: Mapping[str, str] = field(default_factory=dict)
    base: Image | None = None
    epoch: int = 0  # when it was made, as SOURCE_DATE_EPOCH counts
    platforms: Mapping[Platform, Image | None] = field(
        default_factory=dict
    )  # an index of these, each on its base


@dataclass(frozen=True, slots=True)
class Written:
    """An image that was put somewhere, or was there already."""

    name: str
    digest: str
    size: int
    existed: bool
    replaced: str = ""  # the digest that the name had before


def bundle_image(files: Files, packing: Packing = Packing()) -> Packed:
    """The image of a bundle: its files, and its annotations as labels."""
    bundle = read_leniently(files)
    labels = {
        MEDIATYPE_KEY: REGISTRY_V1,
        MANIFESTS_KEY: "manifests/",
        METADATA_KEY: "metadata/",
        **bundle.annotations,
        **packing.labels,
    }
    return _image(files, labels, packing, [folder.rstrip("/") for folder in BUNDLE_FOLDERS])


def catalog_image(files: Iterable[tuple[str, bytes]], packing: Packing = Packing()) -> Packed:
    """The image of a catalog: its files below /configs."""
    content = {f"{CONFIGS}/{path}": data for path, data in files}
    return _image(content, {CONFIGS_LABEL: f"/{CONFIGS}", **packing.labels}, packing, [CONFIGS])


async def base_image(name: str, images: Images, platform: Platform | None = None) -> Image | None:
    """The image to build upon; None for `scratch`, which is empty.

    Unless a platform is asked for, always the same one of many is taken, for the digest must not depend on
    where it is built; if there is none of that kind, the one for this machine.
    """
    if name in ("", "scratch"):
        return None
    store, tag = images.store(name)
    if platform is not None:
        return await oci_images.pull(store, tag, platform)
    try:
        return await oci_images.pull(store, tag, build.ANY_MACHINE)
    except ImageNotFound:
        return await oci_images.pull(store, tag)


async def put(built: Packed, name: str, images: Images) -> Written:
    """Write an image under a name, unless exactly it is there."""
    store, tag = images.store(name)
    digest = built.descriptor.digest
    size = size_of(built)
    before = await published_digest(name, images)
    if before != digest:
        await build.write(store, built, tag_for(tag, digest, name))
    return Written(name, digest, size, before == digest, before if before != digest else "")


def size_of(built: Packed) -> int:
    """How many bytes its own layers have, each counted once."""
    images = built.images if isinstance(built, BuiltIndex) else (built,)
    return sum(
        {layer.descriptor.digest: layer.descriptor.size for each in images for layer in each.layers}.values()
    )


def tag_for(tag: str, digest: str, name: str) -> str:
    """The tag to point at an image; none if the name has its digest, BadReference if it has another's."""
    if not tag.startswith(("sha256:", "sha512:")):
        return tag
    if tag != digest:
        raise BadReference(f"{name} names another image: this one has the digest {digest}; give a tag")
    return ""


async def published_digest(name: str, images: Images) -> str:
    """The digest that a name has now; empty if there is no such image."""
    store, tag = images.store(name)
    try:
        return (await store.resolve(tag)).digest
    except ImageNotFound:
        return ""


def _image(files: Files, labels: Mapping[str, str], packing: Packing, folders: Collection[str]) -> Packed:
    """The files on their base, of which nothing may show through in these folders: it was never checked."""

    def one(base: Image | None, platform: Platform | None = None) -> Built:
        layer = build.layer(files, mtime=packing.epoch, emptied=folders if base else ())
        return build.image([layer], labels=labels, base=base, platform=platform, created=packing.epoch)

    if packing.platforms:
        return build.index([one(base, platform) for platform, base in packing.platforms.items()])
    return one(packing.base)
