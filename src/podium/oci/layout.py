"""An OCI image layout on disk (image-spec 1.0 and 1.1) as a store; it works wherever a registry does.

Tags are the `org.opencontainers.image.ref.name` annotations of entries in `index.json`. Manifests without
a tag get an entry, too, so that they and their blobs survive `collect`; children of an index do not need
one. Everything read is checked against digest and size. Files and locks are in `layoutfiles`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from podium.oci.errors import Corrupt, ImageNotFound, OCIError, Unacceptable
from podium.oci.layoutfiles import INDEX_FILE, LAYOUT_FILE, LayoutFiles, blob_name
from podium.oci.model import (
    INDEXES,
    MANIFESTS,
    MAX_MANIFEST,
    OCI_INDEX,
    Descriptor,
    Digest,
    Index,
    Manifest,
    Verifier,
    checked,
    decode,
    parse_digest,
)
from podium.oci.store import Store, closing

REF_NAME = "org.opencontainers.image.ref.name"
_CHUNK = 1 << 20
_ELSEWHERE = ("nondistributable", "foreign")  # layers that may be missing: they are fetched from elsewhere

Entry = dict[str, Any]


class Layout:
    """One repository in a directory: a Store."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._files = LayoutFiles(self.path)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"oci:{self.path}"

    async def resolve(self, tag_or_digest: str) -> Descriptor:
        """What a tag or digest names; an empty tag means the only image of the layout."""
        return await asyncio.to_thread(self._resolve, tag_or_digest)

    async def manifest(self, descriptor: Descriptor) -> bytes:
        """The bytes of a manifest or index."""
        return await asyncio.to_thread(self._manifest, descriptor)

    async def blob(self, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob in chunks."""
        verifier = Verifier(descriptor)
        # Not in a thread: a cancelled wait would lose the open file.
        with self._open(descriptor) as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                verifier.update(chunk)
                yield chunk
        verifier.finish()

    async def has(self, descriptor: Descriptor) -> bool:
        """Whether a blob or manifest of this size is there."""
        return await asyncio.to_thread(self._has, descriptor)

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        """Store a blob unless it is there."""
        if await asyncio.to_thread(self._has, descriptor):
            return
        await asyncio.to_thread(self._files.create)
        verifier = Verifier(descriptor)
        # Not in a thread: a cancelled wait would lose the file, open and with a name that nobody knows.
        file, temporary = self._files.begin()
        try:
            with file:
                async with closing(chunks()) as parts:
                    async for chunk in parts:
                        verifier.update(chunk)
                        await asyncio.to_thread(file.write, chunk)
                verifier.finish()
                await asyncio.to_thread(self._files.commit, file, temporary, blob_name(descriptor.digest))
        finally:
            temporary.unlink(missing_ok=True)

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        """Store a manifest or index and point a tag at it."""
        await asyncio.to_thread(self._put_manifest, descriptor, data, tag)

    async def tags(self) -> list[str]:
        """All tags, sorted."""
        index = await asyncio.to_thread(self._index)
        return sorted(
            {entry.annotations[REF_NAME] for entry in index.manifests if REF_NAME in entry.annotations}
        )

    async def delete_tag(self, tag: str) -> None:
        """Forget a tag; what it named goes with the next `collect`, unless something else needs it."""
        await asyncio.to_thread(self._delete_tag, tag)

    async def referrers(self, digest: Digest, artifact_type: str = "") -> list[Descriptor]:
        """Manifests whose subject is this digest."""
        found = await asyncio.to_thread(self._referrers, digest)
        return [entry for entry in found if artifact_type in ("", entry.artifact_type)]

    async def mount(self, descriptor: Descriptor, source: Store) -> bool:
        """Never: a blob from another store is read and checked."""
        return False

    async def collect(self, grace: float = 3600.0) -> list[Digest]:
        """Delete what no entry of the index needs; what is younger than `grace` seconds may yet be used."""
        return await asyncio.to_thread(self._collect, grace)

    def _resolve(self, tag_or_digest: str) -> Descriptor:
        try:
            digest = parse_digest(tag_or_digest)
        except ValueError:
            return self._tagged(tag_or_digest)
        entries = self._index().manifests
        # Looked for where others are not read, since one that is damaged must not be in the way of this one.
        listed = next((entry for entry in entries if entry.digest == digest), None)
        if found := listed or self._unlisted(digest):
            return _bare(found)
        for descriptor, _ in self._walk(entries):
            if descriptor.digest == digest:
                return _bare(descriptor)
        raise ImageNotFound(f"{self.name} has no manifest {digest}")

    def _tagged(self, tag: str) -> Descriptor:
        entries = self._index().manifests
        found = [entry for entry in entries if not tag or entry.annotations.get(REF_NAME) == tag]
        choices = {entry.digest for entry in found}
        if len(choices) == 1:
            return _bare(found[0])
        tags = sorted({entry.annotations.get(REF_NAME, entry.digest) for entry in entries})
        have = ", ".join(tags[:10]) + (", ..." if len(tags) > 10 else "") if tags else "nothing"
        if not found:
            raise ImageNotFound(f"{self.name} has no {f'tag {tag!r}' if tag else 'image'}; it has: {have}")
        if tag:
            raise Unacceptable(f"{self.name} has the tag {tag!r} {len(found)} times")
        raise ImageNotFound(f"{self.name} has {len(choices)} images; say which: {have}")

    def _unlisted(self, digest: Digest) -> Descriptor | None:
        """A manifest that says itself what it is: a child of an index, or one whose tag moved on."""
        name = blob_name(digest)
        size = self._files.size(name)
        if size is not None and size <= MAX_MANIFEST:
            data = checked(self._files.read(name, MAX_MANIFEST), digest)
            for media_type in (*MANIFESTS, *INDEXES):
                try:
                    value = decode(data, media_type)
                except Unacceptable:
                    continue
                if value.media_type == media_type:
                    return Descriptor(media_type=media_type, digest=digest, size=len(data))
        return None

    def _index(self) -> Index:
        """What `index.json` says."""
        return decode_index(self._index_bytes(), self.name)

    def _index_bytes(self) -> bytes:
        if not self._files.exists():
            raise ImageNotFound(f"no OCI layout at {self.path}")
        check_version(self._files.read(LAYOUT_FILE, MAX_MANIFEST), self.name)
        return self._files.read(INDEX_FILE, MAX_MANIFEST)

    def _manifest(self, descriptor: Descriptor) -> bytes:
        if descriptor.size > MAX_MANIFEST:
            raise Unacceptable(f"manifest of {descriptor.size} bytes; at most {MAX_MANIFEST} are read")
        data = self._files.read(blob_name(descriptor.digest), MAX_MANIFEST)
        return checked(data, descriptor.digest, descriptor.size)

    def _open(self, descriptor: Descriptor) -> BinaryIO:
        return self._files.open(blob_name(descriptor.digest))

    def _has(self, descriptor: Descriptor) -> bool:
        name = blob_name(descriptor.digest)
        if self._files.size(name) != descriptor.size:
            return False
        self._files.renew(name)  # whoever asks is about to refer to it
        return True

    def _walk(self, entries: list[Descriptor]) -> Iterator[tuple[Descriptor, Manifest | Index]]:
        """All manifests and indexes reachable from some entries, each once; missing ones are left out."""
        seen: set[Digest] = set()
        ahead = list(reversed(entries))
        while ahead:
            entry = ahead.pop()
            if entry.digest in seen or entry.media_type not in (*MANIFESTS, *INDEXES):
                continue
            seen.add(entry.digest)
            try:
                value = decode(self._manifest(entry), entry.media_type)
            except ImageNotFound:
                continue  # an index may be copied without all of its platforms
            yield entry, value
            if isinstance(value, Index):
                ahead += reversed(value.manifests)

    def _put_manifest(self, descriptor: Descriptor, data: bytes, tag: str) -> None:
        checked(data, descriptor.digest, descriptor.size)
        value = decode(data, descriptor.media_type)
        self._files.create()
        with self._files.lock():
            self._check_parts(descriptor, value)
            name = blob_name(descriptor.digest)
            self._files.write_unless_there(name, data)
            children = {child.digest for child in value.manifests} if isinstance(value, Index) else set()
            self._change_index(lambda entries: _with_entry(entries, descriptor, tag, children))

    def _check_parts(self, descriptor: Descriptor, value: Manifest | Index) -> None:
        parts = value.manifests if isinstance(value, Index) else [value.config, *value.layers]
        for part in parts:
            if not any(word in part.media_type for word in _ELSEWHERE) and not self._has(part):
                raise ImageNotFound(
                    f"{self.name} has no {part.digest}, which {descriptor.digest} consists of"
                )

    def _delete_tag(self, tag: str) -> None:
        self._index()  # so that nothing is created for the sake of deleting
        with self._files.lock():
            if all(entry.annotations.get(REF_NAME) != tag for entry in self._index().manifests):
                raise ImageNotFound(f"{self.name} has no tag {tag!r}")
            self._change_index(lambda entries: [entry for entry in entries if _tag(entry) != tag])

    def _change_index(self, change: Callable[[list[Entry]], list[Entry]]) -> None:
        """Rewrite the entries of the index, keeping also what we do not understand; needs the lock."""
        data = self._index_bytes()
        decode_index(data, self.name)
        value = msgspec.json.decode(data)
        value["manifests"] = change(value.get("manifests") or [])
        new = msgspec.json.encode(value)
        if len(new) > MAX_MANIFEST:
            raise Unacceptable(f"{self.name} has too many tags: more than {MAX_MANIFEST} bytes of index")
        if new != data:
            self._files.write(INDEX_FILE, new)

    def _referrers(self, digest: Digest) -> list[Descriptor]:
        entries = self._index().manifests
        # Clients of registries without the referrers API list them in an index with this tag.
        listed = [entry for entry in entries if entry.annotations.get(REF_NAME) == digest.replace(":", "-")]
        found = {
            entry.digest: _referrer(entry, value)
            for entry, value in [*self._walk(entries), *self._walk(listed)]
            if value.subject is not None and value.subject.digest == digest
        }
        return [found[key] for key in sorted(found)]

    def _collect(self, grace: float) -> list[Digest]:
        self._index()  # so that nothing is created for the sake of deleting
        with self._files.lock():
            index = self._index()
            keep = {entry.digest for entry in index.manifests}
            try:
                for _, value in self._walk(index.manifests):
                    parts = value.manifests if isinstance(value, Index) else [value.config, *value.layers]
                    keep.update(part.digest for part in parts)
            except OCIError as error:
                raise Corrupt(f"{self.name} is damaged, so nothing was deleted: {error}") from error
            return self._files.sweep(keep, grace)


def decode_index(data: bytes, name: str) -> Index:
    """The entries of an `index.json`."""
    try:
        value = decode(data, OCI_INDEX)
    except Unacceptable as error:
        raise Unacceptable(f"{name}: {error}") from None
    assert isinstance(value, Index)
    return value


def check_version(data: bytes, name: str) -> None:
    """Unacceptable unless an `oci-layout` file speaks of a version we know."""
    try:
        version = str(msgspec.json.decode(data)["imageLayoutVersion"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        raise Unacceptable(f"{name}: malformed {LAYOUT_FILE}") from None
    if not version.startswith("1."):
        raise Unacceptable(f"{name}: layout version {version}; 1.x is understood")


def _with_entry(entries: list[Entry], descriptor: Descriptor, tag: str, children: set[Digest]) -> list[Entry]:
    """The entries with one for this manifest; a tag that moves leaves its old place."""
    # Children of an index that came before it had entries only so that they would not be swept away.
    gone = children | {descriptor.digest}
    kept = [entry for entry in entries if entry.get("annotations") or entry.get("digest") not in gone]
    if not tag:
        present = any(entry.get("digest") == descriptor.digest for entry in kept)
        return kept if present else [*kept, msgspec.to_builtins(_bare(descriptor))]
    new = msgspec.to_builtins(msgspec.structs.replace(_bare(descriptor), annotations={REF_NAME: tag}))
    position = next((number for number, entry in enumerate(kept) if _tag(entry) == tag), len(kept))
    rest = [entry for entry in kept if _tag(entry) != tag]
    return [*rest[:position], new, *rest[position:]]


def _tag(entry: Entry) -> str | None:
    found: str | None = (entry.get("annotations") or {}).get(REF_NAME)
    return found


def _bare(descriptor: Descriptor) -> Descriptor:
    """Only what names the content: annotations of an entry say where it was found, not what it is."""
    return Descriptor(media_type=descriptor.media_type, digest=descriptor.digest, size=descriptor.size)


def _referrer(entry: Descriptor, value: Manifest | Index) -> Descriptor:
    """An entry as the referrers API describes it."""
    kind = value.artifact_type or (value.config.media_type if isinstance(value, Manifest) else "")
    return msgspec.structs.replace(_bare(entry), artifact_type=kind, annotations=value.annotations)
