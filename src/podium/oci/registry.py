"""A repository in a registry as a store, with the mirrors that registries.conf gives it.

Reading goes to the mirrors in order and then to the place itself. Whoever answered for a tag is asked first
for everything below it. That is safe whoever it is, because all content is checked by digest. Writing goes
to the place that was named. A tag is resolved with one request, whose bytes are kept, so what follows
cannot be another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

import msgspec

from podium.oci.downloads import download
from podium.oci.errors import Blocked, OCIError
from podium.oci.model import (
    INDEXES,
    MANIFESTS,
    OCI_INDEX,
    Descriptor,
    Digest,
    Index,
    Manifest,
    checked,
    decode,
    descriptor_of,
)
from podium.oci.remote import Found, Remote, reference
from podium.oci.store import Progress, Store
from podium.oci.uploads import upload
from podium.text.references import Reference

Result = TypeVar("Result")

# Bytes of manifests kept after resolving; enough for an index with all its platforms.
_KEPT = 16 << 20


class Slots:
    """How many blobs move at the same time, in each direction.

    The directions are apart because a copy holds one of each: an upload waits for the download that feeds it.
    """

    def __init__(self, concurrency: int) -> None:
        self.pulls = asyncio.Semaphore(concurrency)
        self.pushes = asyncio.Semaphore(concurrency)


class Repository:
    """One repository; made by `open.Images`."""

    def __init__(
        self,
        name: Reference,
        sources: Callable[[Reference], Sequence[tuple[Remote, str]]],
        target: Remote,
        slots: Slots,
        *,
        progress: Progress | None = None,
        upload_chunk: int = 0,
    ) -> None:
        self._named = name
        # Places to read a reference from, with the tag or digest it has there.
        self._sources = sources
        self.target = target
        self._slots = slots
        self._progress = progress
        self._upload_chunk = upload_chunk
        self._kept: dict[str, Found] = {}
        self._tags: dict[str, str] = {}
        # Who answered last for a tag.
        self._answered: Remote | None = None
        self._fallback = asyncio.Lock()

    @property
    def name(self) -> str:
        """Domain and path."""
        return self._named.name

    async def resolve(self, tag_or_digest: str) -> Descriptor:
        """The manifest or index that a tag or digest names now."""
        if tag_or_digest in self._kept:
            return self._kept[tag_or_digest].descriptor
        found = await self._first(
            tag_or_digest, lambda place, there: self._resolved(place, there, tag_or_digest)
        )
        return found.descriptor

    async def manifest(self, descriptor: Descriptor) -> bytes:
        """The bytes of a manifest or index."""
        known = self._kept.get(descriptor.digest)
        if known is None:
            known = await self._first(descriptor.digest, lambda place, there: place.fetched(there))
            self._keep(known)
        return checked(known.data, descriptor.digest, descriptor.size)

    async def blob(self, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob, checked as they pass."""
        places = [place for place, _ in self._places(descriptor.digest)]
        async with self._slots.pulls, aclosing(download(places, descriptor)) as parts:
            if self._progress:
                self._progress.started(descriptor, "pull")
            async for part in parts:
                if self._progress:
                    self._progress.advanced(descriptor, len(part))
                yield part
            if self._progress:
                self._progress.finished(descriptor)

    async def has(self, descriptor: Descriptor) -> bool:
        """Whether a blob or manifest is at the place itself: a mirror's copy is no reason not to push."""
        return await self.target.has(descriptor)

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        """Store a blob unless it is there."""
        if await self.has(descriptor):
            if self._progress:
                self._progress.finished(descriptor, skipped=True)
            return

        def moved(count: int) -> None:
            if self._progress:
                self._progress.advanced(descriptor, count)

        async with self._slots.pushes:
            if self._progress:
                self._progress.started(descriptor, "push")
            await upload(self.target, descriptor, chunks, piece=self._upload_chunk, moved=moved)
        if self._progress:
            self._progress.finished(descriptor)

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        """Store a manifest or index and point a tag at it; one with a subject is listed with that subject."""
        checked(data, descriptor.digest, descriptor.size)
        value = (
            decode(data, descriptor.media_type) if descriptor.media_type in (*MANIFESTS, *INDEXES) else None
        )
        reply = await self.target.put_manifest(descriptor, data, tag)
        self._tags.pop(tag, None)
        subject = value.subject if value else None
        if value and subject and "OCI-Subject" not in reply.headers:
            await self._list_referrer(subject.digest, _listed_as(descriptor, value))

    async def tags(self) -> list[str]:
        """All tags, sorted."""
        return await self.target.tags()

    async def referrers(self, digest: Digest, artifact_type: str = "") -> list[Descriptor]:
        """Manifests whose subject is this digest."""
        reference(digest)
        found = await self.target.referrers(digest)
        if found is None:
            found = await self.target.listed(_fallback_tag(digest))
        unique = {each.digest: each for each in found}
        return [each for each in unique.values() if artifact_type in ("", each.artifact_type)]

    async def mount(self, descriptor: Descriptor, source: Store) -> bool:
        """Take a blob over from another repository of the same registry."""
        if not isinstance(source, Repository) or source.target.host is not self.target.host:
            return False
        if source.target.path == self.target.path or not await self.target.mounted(
            descriptor, source.target.path
        ):
            return False
        if self._progress:
            self._progress.finished(descriptor, skipped=True)
        return True

    async def _resolved(self, place: Remote, there: str, asked: str) -> Found:
        known = self._kept.get(self._tags.get(asked, ""))
        if known and await place.claimed(there) == known.descriptor.digest:
            return known  # the bytes were checked when they came; the registry only says that nothing is new
        found = await place.fetched(there)
        self._keep(found)
        if ":" not in asked:
            self._tags[asked] = found.descriptor.digest
        self._answered = place
        return found

    def _keep(self, found: Found) -> None:
        self._kept[found.descriptor.digest] = found
        while sum(len(each.data) for each in self._kept.values()) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def _places(self, tag_or_digest: str) -> Sequence[tuple[Remote, str]]:
        """Where to read from, whoever answered for the tag first."""
        if ":" not in tag_or_digest:
            return self._sources(replace(self._named, tag=reference(tag_or_digest), digest=""))
        places = list(self._sources(replace(self._named, tag="", digest=reference(tag_or_digest))))
        if self._answered is not None:
            answered = self._answered
            places = [each for each in places if each[0] is not answered]
            places.insert(0, (answered, tag_or_digest))
        return places

    async def _first(self, tag_or_digest: str, read: Callable[[Remote, str], Awaitable[Result]]) -> Result:
        """What the first place gives that has it; the error of the last one, with those before as notes."""
        places = self._places(tag_or_digest)
        notes: list[str] = []
        for place, there in places[:-1]:
            try:
                return await read(place, there)
            except Blocked:
                raise
            except OCIError as error:
                notes.append(f"mirror {place.name}: {error}")
        try:
            return await read(*places[-1])
        except OCIError as error:
            for note in notes:
                error.add_note(note)
            raise

    async def _list_referrer(self, subject: Digest, descriptor: Descriptor) -> None:
        """Add to the index that stands in for the referrers API; within a process one at a time."""
        tag = _fallback_tag(subject)
        async with self._fallback:
            listed = await self.target.listed(tag)
            if any(each.digest == descriptor.digest for each in listed):
                return
            index = Index(schema_version=2, media_type=OCI_INDEX, manifests=[*listed, descriptor])
            data = msgspec.json.encode(index)
            await self.target.put_manifest(descriptor_of(data, OCI_INDEX), data, tag)


def _fallback_tag(digest: str) -> str:
    """The tag under which clients look for referrers where a registry has no API for them."""
    algorithm, _, encoded = digest.partition(":")
    return f"{algorithm[:32]}-{encoded[:64]}"


def _listed_as(descriptor: Descriptor, value: Manifest | Index) -> Descriptor:
    """How a list of referrers shows a manifest: with its type and annotations."""
    artifact_type = value.artifact_type
    if not artifact_type and isinstance(value, Manifest):
        artifact_type = value.config.media_type
    return Descriptor(
        media_type=descriptor.media_type,
        digest=descriptor.digest,
        size=descriptor.size,
        artifact_type=artifact_type,
        annotations=value.annotations,
    )
