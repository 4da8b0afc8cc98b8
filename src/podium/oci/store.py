"""The seam between images and where they lie: a repository in a registry, or a layout on disk.

A store is one repository. All content is named by digest; a tag is resolved once, by `resolve`, and
everything after uses the descriptor it gave. Stores check digest and size of what they hand out and of what
they take in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from podium.oci.model import Descriptor, Digest


class Store(Protocol):
    """One repository of manifests and blobs."""

    @property
    def name(self) -> str:
        """How messages call it: `docker.io/library/alpine`, `oci:path`."""

    async def resolve(self, tag_or_digest: str) -> Descriptor:
        """The manifest or index that a tag or digest names now; ImageNotFound if none."""

    async def manifest(self, descriptor: Descriptor) -> bytes:
        """The bytes of a manifest or index, checked against the descriptor."""

    def blob(self, descriptor: Descriptor) -> AsyncIterator[bytes]:
        """The bytes of a blob in chunks; Corrupt in place of the end if they are not the right ones."""

    async def has(self, descriptor: Descriptor) -> bool:
        """Whether a blob or manifest is there already."""

    async def put_blob(self, descriptor: Descriptor, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        """Store a blob unless it is there; `chunks` may be called again when an upload is retried."""

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str = "") -> None:
        """Store a manifest or index, whose parts must be there already, and point a tag at it."""

    async def tags(self) -> list[str]:
        """All tags, sorted."""

    async def referrers(self, digest: Digest, artifact_type: str = "") -> list[Descriptor]:
        """Manifests whose subject is this digest (by the API, or by the tag-schema fallback)."""

    async def mount(self, descriptor: Descriptor, source: Store) -> bool:
        """Take a blob over from another repository of the same registry; False if it has to be sent."""


@asynccontextmanager
async def closing(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Some chunks, whose files and connections are closed at the end even if not all were taken."""
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


class Progress(Protocol):
    """Told of transfers as they happen; the command line draws it, others ignore it."""

    def started(self, descriptor: Descriptor, what: str) -> None:
        """A blob begins to move; `what` says in which direction."""

    def advanced(self, descriptor: Descriptor, count: int) -> None:
        """That many more bytes have moved; negative when a retry starts over."""

    def finished(self, descriptor: Descriptor, *, skipped: bool = False) -> None:
        """The blob is there; skipped if it had been all along, or was mounted."""
