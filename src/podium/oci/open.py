"""From what a user types to a store: `oci:path`, `oci-archive:file`, `docker://name` or a plain name.

A plain name is completed as Docker does it: `alpine` is `docker.io/library/alpine:latest`. There is no
search through registries. `Images` owns the connections; everything opened through it lives as long as it.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import TYPE_CHECKING

from podium.oci.archive import Archive
from podium.oci.errors import BadReference
from podium.oci.layout import Layout
from podium.oci.settings import Retries, Settings, Timeouts
from podium.oci.store import Progress, Store
from podium.text.references import Reference

if TYPE_CHECKING:
    from podium.oci.connections import Connections
    from podium.oci.registry import Repository
    from podium.oci.retrying import Clock

__all__ = ["Images", "Retries", "Settings", "Timeouts", "parse"]

_DIGEST_AT_END = re.compile(r"(.+)@((?:sha256:[0-9a-f]{64})|(?:sha512:[0-9a-f]{128}))", re.DOTALL)
ARCHIVES = ("oci-archive:", "docker-archive:")  # a file that skopeo, docker save or podman save wrote
_OTHER_TRANSPORTS = (
    "containers-storage:",
    "dir:",
    "docker-daemon:",
    "sif:",
)


class Images:
    """Opens stores; an async context manager that closes all connections at its end."""

    def __init__(
        self,
        settings: Settings | None = None,
        progress: Progress | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._progress = progress
        self._clock = clock
        self._connections: Connections | None = None

    async def __aenter__(self) -> Images:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        opened, self._connections = self._connections, None
        if opened is not None:
            await opened.close()

    def store(self, text: str) -> tuple[Store, str]:
        """The store that a text names, and the tag or digest in it; Blocked before any connection."""
        if text.startswith("oci://"):
            raise BadReference(
                f"{text}: leave out oci://; a registry needs no prefix, oci:PATH is a directory"
            )
        if text.startswith("oci:"):
            path, tag = _path_and_tag(text, "oci:")
            return Layout(path), tag
        for prefix in ARCHIVES:
            if text.startswith(prefix):
                path, tag = _path_and_tag(text, prefix)
                return Archive(path), tag
        reference = parse(text).pinned()
        return self.repository(reference), reference.digest or reference.tag

    def repository(self, reference: Reference) -> Repository:
        """The repository of a reference; Blocked before any connection."""
        if self._connections is None:
            # Here, because an HTTP client takes long to import, and whoever works with files needs none.
            from podium.oci.connections import Connections

            self._connections = Connections(self.settings, self._progress, self._clock)
        return self._connections.repository(reference)


def parse(text: str) -> Reference:
    """The image in a registry that a text names; BadReference saying what can be written otherwise."""
    if text.startswith(("http://", "https://")):
        raise BadReference(
            f"{text}: write the name without a scheme; plain HTTP is allowed by naming the host for it"
        )
    if text.startswith(_OTHER_TRANSPORTS):
        raise BadReference(f"{text}: write a name, docker://name, oci:path[:tag] or oci-archive:file[:tag]")
    name = text.removeprefix("docker://")
    try:
        return Reference.parse(name)
    except ValueError as error:
        raise BadReference(f"{text!r} does not name an image: {error}") from None


def _path_and_tag(text: str, prefix: str) -> tuple[str, str]:
    """`path`, `path:tag` or `path@digest` after a prefix; the first colon ends the path, as for skopeo."""
    rest = text.removeprefix(prefix)
    if match := _DIGEST_AT_END.fullmatch(rest):
        path, tag = match[1], match[2]
        if ":" in path:
            raise BadReference(f"{text}: give a tag or a digest, not both")
    else:
        path, _, tag = rest.partition(":")
    if not path:
        raise BadReference(f"{text}: the path is missing")
    return path, tag
