"""One repository on one registry host, by the distribution API: manifests, tags, referrers, existence.

What comes back is checked here: a manifest against the digest it was asked for by, or, if by tag, against
the one that the registry claims. Blobs are in `downloads` and `uploads`; mirrors in `registry`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from podium.oci.auth import Scope
from podium.oci.errors import BadReference, Corrupt, ImageNotFound, RegistryError, Unacceptable
from podium.oci.host import Call, Host, Reply
from podium.oci.model import (
    INDEXES,
    MANIFESTS,
    MAX_MANIFEST,
    OCI_INDEX,
    Descriptor,
    Digest,
    Index,
    checked,
    decode,
    digest_of,
    parse_digest,
)
from podium.oci.transport import joined, origin, shown

ACCEPTED = ", ".join((*INDEXES, *MANIFESTS))
_MAX_PAGE = 16 << 20
_MAX_PAGES = 1000
_MAX_LIST = 128 << 20
_PAGE = 1000
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,<>]*?rel\s*=\s*"?next"?', re.IGNORECASE)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_UNSPECIFIC = frozenset({"", "application/json", "application/octet-stream", "text/plain"})


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest or index: its descriptor and the bytes it was computed from."""

    descriptor: Descriptor
    data: bytes


class Remote:
    """One repository on one host."""

    def __init__(self, host: Host, path: str) -> None:
        self.host = host
        self.path = path

    @property
    def name(self) -> str:
        """Host and path."""
        return f"{self.host.name}/{self.path}"

    def url(self, rest: str) -> str:
        """The path of something in this repository."""
        return f"/v2/{self.path}/{rest}"

    def scope(self, actions: str = "pull", source: str = "") -> Scope:
        """What a token for this repository is to allow."""
        return Scope(self.path, actions, source)

    async def claimed(self, tag: str) -> str:
        """The digest that the registry says a tag has, empty if it does not say: a hint, never a proof."""
        reply = await self._head(f"manifests/{reference(tag)}", {"Accept": ACCEPTED})
        return "" if reply is None else reply.headers.get("Docker-Content-Digest", "")

    async def fetched(self, tag_or_digest: str, accept: str = ACCEPTED) -> Found:
        """The manifest or index that a tag or digest names, its digest computed from the bytes."""
        path = self.url(f"manifests/{reference(tag_or_digest)}")
        call = Call("GET", path, self.scope(), {"Accept": accept})
        reply = await self.host.ask(call, limit=MAX_MANIFEST)
        asked = tag_or_digest if ":" in tag_or_digest else _claimed_digest(reply)
        data = checked(reply.data, asked) if asked else reply.data
        digest = Digest(asked or digest_of(data))
        return Found(Descriptor(_media_type(reply, self.name), digest, len(data)), data)

    async def has(self, descriptor: Descriptor) -> bool:
        """Whether a blob or manifest is there, with the right size as far as the registry says one."""
        if descriptor.media_type in (*MANIFESTS, *INDEXES):
            reply = await self._head(f"manifests/{descriptor.digest}", {"Accept": descriptor.media_type})
        else:
            reply = await self._head(f"blobs/{descriptor.digest}", {})
        if reply is None:
            return False
        return reply.headers.get("Content-Length", "0") in ("0", str(descriptor.size))

    async def put_manifest(self, descriptor: Descriptor, data: bytes, tag: str) -> Reply:
        """Store a manifest under a tag, or under its digest alone."""
        path = self.url(f"manifests/{reference(tag or descriptor.digest)}")
        headers = {"Content-Type": descriptor.media_type}
        call = Call("PUT", path, self.scope("pull,push"), headers, data, expected=(200, 201, 202))
        reply = await self.host.ask(call)
        stored = reply.headers.get("Docker-Content-Digest", descriptor.digest)
        if (
            stored.startswith("sha256:")
            and stored != descriptor.digest
            and descriptor.digest.startswith("sha256:")
        ):
            raise Corrupt(f"{self.name} stored {stored} instead of {descriptor.digest}")
        return reply

    async def tags(self) -> list[str]:
        """All tags, sorted; the registry's pages are followed within a limit."""
        found: set[str] = set()
        async for page in self._pages(self.url(f"tags/list?n={_PAGE}")):
            names = page.get("tags") or []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise RegistryError(f"{self.name}: the tag list is malformed")
            found.update(name for name in names if _TAG.fullmatch(name))
        return sorted(found)

    async def referrers(self, digest: Digest) -> list[Descriptor] | None:
        """What refers to a manifest by the registry's API; None if it has none."""
        found: list[Descriptor] = []
        try:
            async for page in self._pages(self.url(f"referrers/{digest}"), accept=OCI_INDEX):
                found += _descriptors(page, self.name)
        except ImageNotFound:
            return None
        except RegistryError as error:
            if error.status in (400, 405, 501):
                return None
            raise
        return found

    async def listed(self, tag: str) -> list[Descriptor]:
        """What an index under a tag lists; nothing if there is no such tag."""
        try:
            found = await self.fetched(tag)
        except ImageNotFound:
            return []
        value = decode(found.data, found.descriptor.media_type)
        if not isinstance(value, Index):
            raise Unacceptable(f"{self.name}:{tag} should be an index of referrers, but is an image")
        return value.manifests

    async def mounted(self, descriptor: Descriptor, source: str) -> bool:
        """Take a blob over from another repository of this host; False if it has to be sent."""
        path = self.url(
            f"blobs/uploads/?mount={quote(descriptor.digest, safe=':')}&from={quote(source, safe='')}"
        )
        scope = self.scope("pull,push", source)
        reply = await self.host.ask(Call("POST", path, scope, body=b"", expected=(201, 202, 404, 405)))
        if reply.status == 202 and (location := reply.headers.get("Location")):
            await self._abandoned(self.host.transport.target(reply.url, location))
        return reply.status == 201

    async def _abandoned(self, upload: str) -> None:
        """Tell the registry that an upload will not come; it would find out by itself."""
        call = Call("DELETE", upload, self.scope("pull,push"), expected=range(200, 500))
        try:
            await self.host.ask(call)
        except RegistryError:
            return

    async def _head(self, rest: str, headers: dict[str, str]) -> Reply | None:
        call = Call("HEAD", self.url(rest), self.scope(), headers, expected=(200, 404, 405, 501))
        reply = await self.host.ask(call)
        return reply if reply.status == 200 else None

    async def _pages(self, path: str, accept: str = "application/json") -> AsyncIterator[dict[str, Any]]:
        seen: set[str] = set()
        size = 0
        while path:
            if path in seen or len(seen) >= _MAX_PAGES:
                raise RegistryError(f"{self.name}: the registry's list does not end after {len(seen)} pages")
            seen.add(path)
            reply = await self.host.ask(Call("GET", path, self.scope(), {"Accept": accept}), limit=_MAX_PAGE)
            size += len(reply.data)
            if size > _MAX_LIST:
                raise RegistryError(f"{self.name}: the registry's list has more than {_MAX_LIST} bytes")
            yield _object(reply, self.name)
            path = _next_page(reply)


def reference(tag_or_digest: str) -> str:
    """A tag or digest that is safe in a URL; BadReference if it is neither."""
    if ":" not in tag_or_digest and _TAG.fullmatch(tag_or_digest):
        return tag_or_digest
    try:
        return parse_digest(tag_or_digest)
    except ValueError:
        raise BadReference(f"neither a tag nor a sha256 or sha512 digest: {tag_or_digest!r}") from None


def _claimed_digest(reply: Reply) -> str:
    text = reply.headers.get("Docker-Content-Digest", "")
    try:
        return parse_digest(text) if text else ""
    except ValueError:
        raise Corrupt(f"{shown(reply.url)} claims a digest that is none: {text[:100]!r}") from None


def _media_type(reply: Reply, name: str) -> str:
    """The type of a manifest: the header's, or what the content says where the header says nothing."""
    header = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if header not in _UNSPECIFIC:
        return header
    content = _object(reply, name)
    said = content.get("mediaType")
    if isinstance(said, str) and said:
        return said
    return OCI_INDEX if isinstance(content.get("manifests"), list) else MANIFESTS[0]


def _object(reply: Reply, name: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(reply.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RegistryError(f"{name}: {shown(reply.url)} does not answer with a JSON object", reply.status)
    return value


def _descriptors(page: dict[str, Any], name: str) -> list[Descriptor]:
    try:
        return decode(msgspec.json.encode({**page, "schemaVersion": 2}), OCI_INDEX).manifests  # type: ignore[union-attr]
    except Unacceptable as error:
        raise RegistryError(f"{name}: the list of referrers is malformed: {error}") from None


def _next_page(reply: Reply) -> str:
    """The URL of the next page, if there is one on the same registry."""
    for header in reply.headers.getall("Link", []):
        if match := _NEXT.search(header):
            target = joined(reply.url, match[1])
            if origin(target) != origin(reply.url):
                raise RegistryError(f"{shown(reply.url)}: its next page is on another host, {shown(target)}")
            return target
    return ""
