"""What registries know about images: the digest under a tag now, the platforms they are for."""

from __future__ import annotations

from collections.abc import Iterable

from podium.oci import images as oci_images
from podium.oci.errors import OCIError
from podium.oci.model import INDEXES
from podium.oci.open import Images
from podium.operations.together import together


async def digests_of(names: Iterable[str], images: Images) -> dict[str, str]:
    """The digest of each image by its name; those that have one already are left out."""

    async def resolve(name: str) -> tuple[str, str]:
        store, tag = images.store(name)
        return name, (await store.resolve(tag)).digest

    return dict(await together(resolve, [name for name in names if "@" not in name]))


async def platforms_of(names: Iterable[str], images: Images) -> dict[str, list[tuple[str, str]]]:
    """Operating system and architecture that each image is for; one that cannot be looked at is left out."""

    async def look(name: str) -> tuple[str, list[tuple[str, str]]]:
        try:
            store, tag = images.store(name)
            descriptor = await store.resolve(tag)
            if descriptor.media_type in INDEXES:
                entries = await oci_images.expand(store, descriptor)
                platforms = [e.platform for e in entries if not oci_images.is_attestation(e)]
            else:
                platforms = [(await oci_images.load(store, descriptor)).platform]
        except OCIError:
            return name, []
        return name, [(each.os, each.architecture) for each in platforms if each]

    return {name: found for name, found in await together(look, names) if found}
