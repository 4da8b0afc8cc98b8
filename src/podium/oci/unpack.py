"""The wanted files of an image, read from its layers without writing any of them to disk.

The layers are kept in one unnamed temporary file while they are checked against their digests. A first
pass over them checks the diff IDs, the limits and every name, and finds out which entries survive; a
second one hands out just those. So nothing is handed out before all of it was checked, and memory holds
one file at a time.

Refused: links, devices and anything but plain files and directories where wanted files lie, or in place of
a directory they lie in, or leading there (`links`); names with tricks; archives that two readers would
understand differently (`tarread`). Ignored: whatever a base image has elsewhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from podium.oci import names, overlay
from podium.oci.errors import Corrupt, Unacceptable
from podium.oci.images import Image
from podium.oci.inflate import Inflated
from podium.oci.limits import BUNDLE, CATALOG, Limits, Tally
from podium.oci.links import Links
from podium.oci.model import Descriptor, Digest
from podium.oci.names import Place, Wanted
from podium.oci.store import closing
from podium.oci.tarread import Archive, Kind, Member

__all__ = ["BUNDLE", "BUNDLE_PREFIXES", "CATALOG", "Limits", "files", "members", "stream"]

BUNDLE_PREFIXES = ("manifests/", "metadata/")

_IN_MEMORY = 16 << 20  # layers up to this size together never reach the disk
_BATCH = 4 << 20  # bytes handed from the reading thread to the event loop at a time
_LAYER_TYPES = (
    "application/vnd.oci.image.layer.",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
)


async def files(
    image: Image, prefixes: Iterable[str] = BUNDLE_PREFIXES, limits: Limits = BUNDLE
) -> dict[str, bytes]:
    """The files of an image under some directories, by path and in its order."""
    found = {path: data async for path, data in stream(image, prefixes, limits)}
    return dict(sorted(found.items()))


async def stream(
    image: Image, prefixes: Iterable[str] = BUNDLE_PREFIXES, limits: Limits = BUNDLE
) -> AsyncIterator[tuple[str, bytes]]:
    """The same files one by one, in the order in which they lie in the layers."""
    wanted = Wanted(prefixes)
    _check_layers(image, limits)
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        layers = await _kept(image, cast(BinaryIO, spool))
        survivors = await asyncio.to_thread(_survey, layers, wanted, limits)
        contents = _contents(layers, survivors, limits)
        while batch := await asyncio.to_thread(_batch, contents):
            for item in batch:
                yield item


def members(source: BinaryIO, limits: Limits = BUNDLE) -> Iterator[tuple[Member, bytes]]:
    """Every entry of one archive with its content (of files), compressed or not, wherever it lies."""
    tally = Tally(limits)
    archive = Archive(Inflated(source, tally), tally)
    for member in archive:
        if member.size:
            tally.kept(names.shown(member.name), member.size)
        yield member, archive.content()


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer, checked against its digest, in the temporary file."""

    file: BinaryIO
    offset: int
    descriptor: Descriptor
    diff_id: Digest | None

    def opened(self, tally: Tally, seen: Callable[[bytes], None] | None = None) -> Inflated:
        """The layer from its beginning."""
        self.file.seek(self.offset)
        return Inflated(_Part(self.file, self.descriptor.size), tally, seen)


class _Part:
    """The next bytes of a file, and no more."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


def _check_layers(image: Image, limits: Limits) -> None:
    layers = image.manifest.layers
    if len(layers) > limits.layers:
        raise Unacceptable(f"{len(layers)} layers; at most {limits.layers} are read")
    if (size := sum(layer.size for layer in layers)) > limits.compressed:
        raise Unacceptable(f"layers of {size} bytes; at most {limits.compressed} are read")
    for layer in layers:
        if not layer.media_type.startswith(_LAYER_TYPES):
            raise Unacceptable(f"not a file system layer: media type {layer.media_type!r}")


async def _kept(image: Image, spool: BinaryIO) -> list[_Layer]:
    """All layers of an image in one file."""
    layers = []
    diff_ids: Sequence[Digest | None] = image.diff_ids or [None] * len(image.manifest.layers)
    for descriptor, diff_id in zip(image.manifest.layers, diff_ids, strict=True):
        layers.append(_Layer(spool, spool.tell(), descriptor, diff_id))
        async with closing(image.store.blob(descriptor)) as chunks:
            async for chunk in chunks:
                spool.write(chunk)
    return layers


def _survey(layers: list[_Layer], wanted: Wanted, limits: Limits) -> dict[overlay.Found, str]:
    """Read everything once: which entries are the wanted files of the image, by where they lie."""
    tally = Tally(limits)
    root = overlay.Directory()
    links = Links(wanted)
    for number, layer in enumerate(layers):
        seen = hashlib.new((layer.diff_id or "sha256:").partition(":")[0])
        data = layer.opened(tally, seen.update)
        tree = overlay.Directory()
        for entry, member in enumerate(Archive(data, tally)):
            parts = names.split(member.name)
            hidden = names.hidden_by(parts)
            place = wanted.place(parts if hidden is None else hidden)
            if place is Place.ELSEWHERE:
                links.pass_by(member, parts)
            else:
                _take(tree, member, overlay.Found(number, entry), place, tally)
        data.drain()
        if layer.diff_id and layer.diff_id.partition(":")[2] != seen.hexdigest():
            raise Corrupt(
                f"layer {layer.descriptor.digest} does not hold {layer.diff_id}, as the config says it does"
            )
        overlay.lay(root, tree)
    return {found: path for path, found in overlay.files(root)}


def _take(tree: overlay.Directory, member: Member, found: overlay.Found, place: Place, tally: Tally) -> None:
    """Put one entry of a layer that concerns the wanted files into its tree."""
    parts = names.split(member.name)
    if not parts and member.kind is Kind.DIRECTORY:
        return
    if member.kind not in (Kind.FILE, Kind.DIRECTORY):
        raise Unacceptable(f"{names.shown(member.name)} is a {member.kind.value}")
    path = names.plain(member.name, tally.limits)
    if any(part.startswith(".wh.") for part in path[:-1]):
        raise Unacceptable(f"{names.shown(member.name)} lies in a whiteout")
    if names.hidden_by(parts) is not None:
        _take_whiteout(tree, member, parts, path, tally)
    elif member.kind is Kind.DIRECTORY:
        overlay.add_directory(tree, path, tally)
    elif place is Place.ABOVE or member.name.endswith(b"/"):
        raise Unacceptable(f"{names.shown(member.name)} is a file, and should be a directory")
    else:
        tally.kept("/".join(path), member.size)
        overlay.add_file(tree, path, found, tally)


def _take_whiteout(
    tree: overlay.Directory, member: Member, parts: names.Parts, path: overlay.Path, tally: Tally
) -> None:
    if names.is_aufs_bookkeeping(parts):
        return
    hidden = path[-1].removeprefix(".wh.")
    if member.kind is not Kind.FILE or hidden in ("", ".", ".."):
        raise Unacceptable(f"malformed whiteout {names.shown(member.name)}")
    if parts[-1] == names.OPAQUE:
        overlay.hide_contents(tree, path[:-1], tally)
    else:
        overlay.hide(tree, (*path[:-1], hidden), tally)


def _contents(
    layers: list[_Layer], survivors: dict[overlay.Found, str], limits: Limits
) -> Iterator[tuple[str, bytes]]:
    """Read the layers again, as far as there are survivors in them."""
    tally = Tally(limits)
    for number, layer in enumerate(layers):
        left = sum(1 for found in survivors if found.layer == number)
        if not left:
            continue
        archive = Archive(layer.opened(tally), tally)
        for entry, _ in enumerate(archive):
            if path := survivors.get(overlay.Found(number, entry)):
                yield path, archive.content()
                left -= 1
            if not left:
                break


def _batch(contents: Iterator[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The next files, a few megabytes of them."""
    batch, size = [], 0
    for path, data in contents:
        batch.append((path, data))
        size += len(data)
        if size > _BATCH:
            break
    return batch
