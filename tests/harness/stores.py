"""A store in memory, for tests that need one which misbehaves on request or is fast."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from podium.oci.errors import ImageNotFound
from podium.oci.model import Descriptor, Digest, Manifest, Verifier, checked, decode
from podium.oci.store import Store


class Memory:
    """A store of bytes by digest; a test may change any of them behind its back."""

    def __init__(self, name: str = "memory", *, chunk: int = 1 << 16, registry: str = "") -> None:
        self._name = name
        self._chunk = chunk
        self._registry = registry  # blobs are mounted between stores of one registry
        self.content: dict[str, bytes] = {}
        self.tagged: dict[str, Descriptor] = {}
        self.manifests: dict[str, Descriptor] = {}
        self.uploaded: list[Digest] = []
        self.mounted: list[Digest] = []
        self.resolved = 0
        self.busy = self.busiest = 0

    @property
    def name(self) -> str:
        return self._name

    async def resolve(self, tag_or_digest: str) -> Descriptor:
        self.resolved += 1
        found = self.tagged.get(tag_or_digest) or self.manifests.get(tag_or_digest)
        if found is None:
            raise ImageNotFound(f"{self.name} has no {tag_or_digest}")
        return found

    async def manifest(self, descriptor: Descriptor) -> bytes:
        return checked(self._get(descriptor), descriptor.digest, descriptor.size)

    async def blob(self, descriptor: Descriptor) -> AsyncIterator[bytes]:
        verifier = Verifier(descriptor)
        data = self._get(descriptor)
        for start in range(0, len(data), self._chunk):
            chunk = data[start : start + self._chunk]
            verifier.update(chunk)
            yield chunk
        verifier.finish()

    async def has(self, descriptor: Descriptor) -> bool:
        return descriptor.digest in self.content

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        if await self.has(descriptor):
            return
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            data = b"".join([chunk async for chunk in chunks()])
        finally:
            self.busy -= 1
        self.content[descriptor.digest] = checked(data, descriptor.digest, descriptor.size)
        self.uploaded.append(descriptor.digest)

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        value = decode(checked(data, descriptor.digest, descriptor.size), descriptor.media_type)
        parts = [value.config, *value.layers] if isinstance(value, Manifest) else value.manifests
        for part in parts:
            if not await self.has(part):
                raise ImageNotFound(f"{self.name} has no {part.digest}")
        self.content[descriptor.digest] = data
        bare = Descriptor(media_type=descriptor.media_type, digest=descriptor.digest, size=descriptor.size)
        self.manifests[descriptor.digest] = bare
        if tag:
            self.tagged[tag] = bare

    async def tags(self) -> list[str]:
        return sorted(self.tagged)

    async def referrers(self, digest: Digest, artifact_type: str = "") -> list[Descriptor]:
        found = []
        for descriptor in self.manifests.values():
            value = decode(self.content[descriptor.digest], descriptor.media_type)
            if (
                value.subject
                and value.subject.digest == digest
                and artifact_type in ("", value.artifact_type)
            ):
                found.append(descriptor)
        return found

    async def mount(self, descriptor: Descriptor, source: Store) -> bool:
        if not isinstance(source, Memory) or not self._registry or source._registry != self._registry:
            return False
        self.content[descriptor.digest] = source._get(descriptor)
        self.mounted.append(descriptor.digest)
        return True

    def _get(self, descriptor: Descriptor) -> bytes:
        if descriptor.digest not in self.content:
            raise ImageNotFound(f"{self.name} has no {descriptor.digest}")
        return self.content[descriptor.digest]
