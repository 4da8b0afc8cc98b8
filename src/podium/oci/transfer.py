"""Images copied from one store to another, byte for byte: what arrives has the digest that left.

The tag is resolved once. Blobs go first, several at a time, each only once and only if it is missing;
manifests follow from the leaves up, and the tag comes last, so whoever sees the tag finds everything under
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from podium.oci import images
from podium.oci.errors import Unacceptable
from podium.oci.model import (
    INDEXES,
    OCI_INDEX,
    Descriptor,
    Digest,
    Index,
    Manifest,
    Platform,
    decode,
    descriptor_of,
)
from podium.oci.store import Progress, Store, closing

_MAX_MANIFESTS = images.MAX_MANIFESTS
_ELSEWHERE = ("nondistributable", "foreign")  # layers that registries do not keep


async def copy(
    source: Store,
    ref: str,
    target: Store,
    tag: str,
    *,
    all_platforms: bool = True,
    platforms: Sequence[Platform | str] = (),
    referrers: bool = False,
    concurrency: int = 4,
    progress: Progress | None = None,
) -> Descriptor:
    """Copy what a tag or digest names, and return it.

    Of an index all platforms are copied, or with `all_platforms=False` the image for this machine, or those
    named in `platforms`: one becomes a plain image, several a new index of just these. With `referrers`,
    signatures and the like follow. A store may report to a `progress` of its own; give it to one of the two.
    """
    top = await source.resolve(ref)
    tree = _Tree(source)
    if top.media_type in INDEXES and (platforms or not all_platforms):
        top = await _chosen(tree, top, platforms, f"{source.name} {ref}")
    else:
        await tree.add(top)
    if referrers:
        await tree.add_referrers()
    await _copy_blobs(source, target, tree.blobs.values(), concurrency, progress)
    for digest, (descriptor, data) in tree.manifests.items():
        if digest != top.digest:
            await target.put_manifest(descriptor, data)
    # After its referrers, too: stores take them before their subject.
    await target.put_manifest(top, tree.manifests[top.digest][1], tag)
    return top


@dataclass(slots=True)
class _Tree:
    """Everything under some manifests: manifests in an order in which they can be stored, and blobs."""

    source: Store
    manifests: dict[Digest, tuple[Descriptor, bytes]] = field(default_factory=dict)
    blobs: dict[Digest, Descriptor] = field(default_factory=dict)

    async def add(self, descriptor: Descriptor, depth: int = 0) -> None:
        """Take a manifest or index with all that belongs to it."""
        if descriptor.digest in self.manifests:
            return
        if depth > images.MAX_NESTING or len(self.manifests) >= _MAX_MANIFESTS:
            raise Unacceptable(f"{descriptor.digest}: too many manifests, or nested too deep")
        data = await self.source.manifest(descriptor)
        value = decode(data, descriptor.media_type)
        if isinstance(value, Index):
            for child in value.manifests:
                await self.add(child, depth + 1)
        else:
            self._add_blobs(value)
        self.manifests[descriptor.digest] = (descriptor, data)

    async def add_referrers(self) -> None:
        """Take what refers to the manifests, and what refers to that."""
        ahead = list(self.manifests)
        seen = set(ahead)
        while ahead:
            for descriptor in await self.source.referrers(ahead.pop()):
                if descriptor.digest not in seen:
                    seen.add(descriptor.digest)
                    await self.add(descriptor)
                    ahead.append(descriptor.digest)

    def _add_blobs(self, manifest: Manifest) -> None:
        for descriptor in (manifest.config, *manifest.layers):
            if not any(word in descriptor.media_type for word in _ELSEWHERE):
                self.blobs[descriptor.digest] = descriptor


async def _chosen(tree: _Tree, top: Descriptor, platforms: Sequence[Platform | str], what: str) -> Descriptor:
    """The image for one platform, or a new index of several, in the place of an index of all."""
    entries = await images.expand(tree.source, top)
    wanted = [images.parse_platform(each) if isinstance(each, str) else each for each in platforms]
    chosen = [images.choose(entries, each, what) for each in wanted] or [images.choose(entries, None, what)]
    for descriptor in chosen:
        await tree.add(descriptor)
    if len(chosen) == 1:
        return chosen[0]
    index = Index(schema_version=2, media_type=OCI_INDEX, manifests=chosen)
    data = msgspec.json.encode(index, order="sorted")
    descriptor = descriptor_of(data, OCI_INDEX)
    tree.manifests[descriptor.digest] = (descriptor, data)
    return descriptor


async def _copy_blobs(
    source: Store,
    target: Store,
    blobs: Iterable[Descriptor],
    concurrency: int,
    progress: Progress | None,
) -> None:
    """Copy blobs, so many at a time; the first failure stops the others and is what the caller sees."""
    slots = asyncio.Semaphore(concurrency)

    async def one(descriptor: Descriptor) -> None:
        async with slots:
            await _copy_blob(source, target, descriptor, progress)

    try:
        async with asyncio.TaskGroup() as group:
            for descriptor in blobs:
                group.create_task(one(descriptor))
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


async def _copy_blob(source: Store, target: Store, descriptor: Descriptor, progress: Progress | None) -> None:
    moved = False
    if not await target.mount(descriptor, source):
        chunks = _reported(source, descriptor, progress)

        def opened() -> AsyncIterator[bytes]:
            nonlocal moved
            moved = True
            return chunks()

        await target.put_blob(descriptor, opened)
    if progress:
        progress.finished(descriptor, skipped=not moved)


def _reported(
    source: Store, descriptor: Descriptor, progress: Progress | None
) -> Callable[[], AsyncIterator[bytes]]:
    """The chunks of a blob, told to `progress` as they pass; told back when an upload starts over."""
    passed = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal passed
        if progress and passed:
            progress.advanced(descriptor, -passed)
        elif progress:
            progress.started(descriptor, "copy")
        passed = 0
        async with closing(source.blob(descriptor)) as blob:
            async for chunk in blob:
                passed += len(chunk)
                if progress:
                    progress.advanced(descriptor, len(chunk))
                yield chunk

    return chunks


def _first(failures: BaseException) -> BaseException:
    """One of several errors that happened at once; the others would say much the same."""
    while isinstance(failures, BaseExceptionGroup):
        failures = failures.exceptions[0]
    return failures
