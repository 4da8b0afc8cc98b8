"""Images in one tar file, as `skopeo copy`, `docker save` and `podman save` write them: a store to read from.

The file is read twice when the first question comes: once to learn the digest of everything in it, once to
put what belongs to images into a temporary layout, under names made from digests and never from the
archive. From then on the layout answers. Layers of `docker save` have no manifest; they get one that names
them as they are.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from podium.oci.errors import ImageNotFound, Unacceptable
from podium.oci.inflate import Inflated
from podium.oci.layout import Layout, check_version, decode_index
from podium.oci.layoutfiles import INDEX_FILE, LAYOUT_FILE, LayoutFiles
from podium.oci.limits import CATALOG, Limits, Tally
from podium.oci.model import (
    MAX_MANIFEST,
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Descriptor,
    Digest,
    Manifest,
    descriptor_of,
)
from podium.oci.store import Store
from podium.oci.tarread import Archive as TarArchive
from podium.oci.tarread import Kind

_CHUNK = 1 << 20
_SAVED = "manifest.json"
_TEXTS = (LAYOUT_FILE, INDEX_FILE, _SAVED)
_BLOB = re.compile(r"blobs/sha256/[0-9a-f]{64}")


class Saved(msgspec.Struct, frozen=True, rename="pascal"):
    """One image in the `manifest.json` of `docker save`."""

    config: str
    layers: list[str] = []
    repo_tags: list[str] | None = None


class Archive:
    """The images of one tar file, compressed or not: a Store that takes nothing in."""

    def __init__(self, path: Path | str, limits: Limits = CATALOG) -> None:
        self.path = Path(path)
        self._limits = limits
        self._loading = asyncio.Lock()
        self._layout: Layout | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"oci-archive:{self.path}"

    async def resolve(self, tag_or_digest: str) -> Descriptor:
        """What a tag or digest names; an empty tag means the only image of the archive."""
        return await (await self._loaded()).resolve(tag_or_digest)

    async def manifest(self, descriptor: Descriptor) -> bytes:
        """The bytes of a manifest or index."""
        return await (await self._loaded()).manifest(descriptor)

    async def blob(self, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob in chunks."""
        async for chunk in (await self._loaded()).blob(descriptor):
            yield chunk

    async def has(self, descriptor: Descriptor) -> bool:
        """Whether a blob or manifest is there."""
        return await (await self._loaded()).has(descriptor)

    async def tags(self) -> list[str]:
        """All tags, sorted; of `docker save` whole references."""
        return await (await self._loaded()).tags()

    async def referrers(self, digest: Digest, artifact_type: str = "") -> list[Descriptor]:
        """Manifests whose subject is this digest."""
        return await (await self._loaded()).referrers(digest, artifact_type)

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        """Never: archives are only read."""
        raise Unacceptable(f"{self.name} can only be read; write to oci:path")

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        """Never: archives are only read."""
        raise Unacceptable(f"{self.name} can only be read; write to oci:path")

    async def mount(self, descriptor: Descriptor, source: Store) -> bool:
        """Never."""
        return False

    async def _loaded(self) -> Layout:
        async with self._loading:
            if self._layout is None:
                directory = await asyncio.to_thread(tempfile.mkdtemp, prefix="podium-archive-")
                weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
                layout = Layout(Path(directory) / "layout")
                await self._load(layout)
                self._layout = layout
            return self._layout

    async def _load(self, layout: Layout) -> None:
        """Put the images of the file into a layout."""
        found, texts = await asyncio.to_thread(self._survey)
        if INDEX_FILE in texts:
            check_version(texts.get(LAYOUT_FILE, b""), self.name)
            decode_index(texts[INDEX_FILE], self.name)
            await self._copy(layout, {name: each for name, each in found.items() if _BLOB.fullmatch(name)})
            # As it is, for `docker save` writes indexes of which not all platforms are there.
            await asyncio.to_thread(_adopt, layout.path, texts[INDEX_FILE])
        elif _SAVED in texts:
            await self._load_saved(layout, found, _saved(texts[_SAVED], self.name))
        else:
            raise ImageNotFound(f"{self.path} is neither an OCI archive nor one of `docker save`")

    async def _load_saved(self, layout: Layout, found: dict[str, Descriptor], images: list[Saved]) -> None:
        wanted: dict[str, Descriptor] = {}
        for image in images:
            for name in (image.config, *image.layers):
                if name not in found:
                    raise Unacceptable(f"{self.path} has no file {name!r}, which its {_SAVED} names")
                wanted[name] = found[name]
        await self._copy(layout, wanted)
        for image in images:
            data = _manifest(found[image.config], [found[name] for name in image.layers])
            for tag in image.repo_tags or [""]:
                await layout.put_manifest(descriptor_of(data, OCI_MANIFEST), data, tag)

    def _survey(self) -> tuple[dict[str, Descriptor], dict[str, bytes]]:
        """The digest of every file in the archive, and the few that say what the others are."""
        found: dict[str, Descriptor] = {}
        texts: dict[str, bytes] = {}
        with self._opened() as file:
            for name, size, archive in _regular_files(file, self._limits):
                if name in _TEXTS and size <= MAX_MANIFEST:
                    texts[name] = archive.content()
                    continue
                seen = hashlib.sha256()
                for chunk in archive.chunks(_CHUNK):
                    seen.update(chunk)
                digest = Digest("sha256:" + seen.hexdigest())
                found[name] = Descriptor(media_type="", digest=digest, size=size)
        return found, texts

    async def _copy(self, layout: Layout, wanted: dict[str, Descriptor]) -> None:
        """Put some files into the layout; of two with one name the later, as `_survey` found it."""
        with await asyncio.to_thread(self._opened) as file:
            for name, size, archive in _regular_files(file, self._limits):
                if name in wanted and size == wanted[name].size:
                    data = archive.chunks(_CHUNK)
                    await layout.put_blob(wanted[name], partial(_each, data))

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ImageNotFound(f"cannot read {self.path}: {error.strerror}") from None


def _regular_files(file: BinaryIO, limits: Limits) -> Iterator[tuple[str, int, TarArchive]]:
    """The names and sizes of the files in an archive, which stands at the content of each."""
    tally = Tally(limits)
    archive = TarArchive(Inflated(file, tally), tally)
    for member in archive:
        if member.kind is Kind.FILE:
            yield member.name.decode(errors="replace").removeprefix("./"), member.size, archive


def _adopt(path: Path, index: bytes) -> None:
    """Give the blobs of a layout the index that came with them."""
    files = LayoutFiles(path)
    files.create()
    files.write(INDEX_FILE, index)


def _saved(data: bytes, name: str) -> list[Saved]:
    try:
        return msgspec.json.decode(data, type=list[Saved])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unacceptable(f"{name}: malformed {_SAVED}: {error}") from None


def _manifest(config: Descriptor, layers: list[Descriptor]) -> bytes:
    """A manifest for files that `docker save` wrote without one."""
    value = Manifest(
        schema_version=2,
        media_type=OCI_MANIFEST,
        config=msgspec.structs.replace(config, media_type=OCI_CONFIG),
        layers=[msgspec.structs.replace(layer, media_type=OCI_LAYER) for layer in layers],
    )
    return msgspec.json.encode({"layers": [], **msgspec.to_builtins(value)}, order="sorted")


async def _each(data: Iterator[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(next, data, b""):
        yield chunk
