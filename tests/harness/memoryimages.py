"""Images whose repositories are in memory, counted, and able to fail at a chosen write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from harness.stores import Memory
from podium.oci.model import Descriptor
from podium.oci.open import Images, parse
from podium.oci.store import Store


class Killed(Exception):
    """The process ends here."""


class MemoryImages(Images):
    """Every repository is a `Memory`; `fail_at` is the number of the write that does not happen."""

    def __init__(self) -> None:
        super().__init__()
        self.repositories: dict[str, _Counted] = {}
        self.writes = 0
        self.fail_at = 0
        self.opened: list[str] = []

    def store(self, text: str) -> tuple[Store, str]:
        """The repository in memory that a reference names."""
        reference = parse(text).pinned()
        self.opened.append(str(reference))
        found = self.repositories.setdefault(reference.name, _Counted(reference.name, self))
        return found, reference.digest or reference.tag

    def content(self) -> dict[str, str]:
        """The digest of every tag of every repository."""
        return {
            f"{name}:{tag}": descriptor.digest
            for name, repository in self.repositories.items()
            for tag, descriptor in repository.tagged.items()
        }

    def written(self) -> None:
        """Called before each write."""
        self.writes += 1
        if self.writes == self.fail_at:
            raise Killed


class _Counted(Memory):
    def __init__(self, name: str, images: MemoryImages) -> None:
        super().__init__(name)
        self._images = images

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        self._images.written()
        await super().put_blob(descriptor, chunks)

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        self._images.written()
        await super().put_manifest(descriptor, data, tag)
