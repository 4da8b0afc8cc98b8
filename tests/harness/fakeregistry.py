"""A small registry in memory on a real socket, which tests can make misbehave.

`registry.before` is asked first about every request and may answer in the registry's place. `registry.seen`
holds what arrived. It follows the distribution API as far as its clients can tell.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from podium.oci import model
from podium.oci.model import Descriptor
from podium.oci.open import Images
from podium.oci.retrying import Clock
from podium.oci.settings import Retries, Settings

Before = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

_ROUTE = re.compile(r"/v2/(?P<name>.+?)/(?P<what>manifests|blobs/uploads|blobs|tags|referrers)/(?P<rest>.*)")


@dataclass
class Seen:
    """One request that arrived; its body if the registry itself has read it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class FakeRegistry:
    """What the registry holds and how it behaves."""

    host: str = ""
    scheme: str = "http"
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    tag_names: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, bytearray] = field(default_factory=dict)
    mountable: set[str] = field(default_factory=set)
    has_referrers_api: bool = False
    page: int = 0
    seen: list[Seen] = field(default_factory=list)
    before: Before | None = None

    @property
    def url(self) -> str:
        """Scheme and host."""
        return f"{self.scheme}://{self.host}"

    def add_blob(self, data: bytes, media_type: str = model.OCI_LAYER_GZIP) -> Descriptor:
        """Hold a blob."""
        descriptor = model.descriptor_of(data, media_type)
        self.blobs[descriptor.digest] = data
        return descriptor

    def add_image(self, tag: str, layer: bytes = b"layer", **fields: Any) -> Descriptor:
        """Hold an image of one layer under a tag."""
        data = image_bytes(self.add_blob(b"{}", model.OCI_CONFIG), self.add_blob(layer), **fields)
        return self.add_manifest(data, tag)

    def add_manifest(self, data: bytes, tag: str = "", media_type: str = model.OCI_MANIFEST) -> Descriptor:
        """Hold a manifest."""
        descriptor = model.descriptor_of(data, media_type)
        self.manifests[descriptor.digest] = (media_type, data)
        if tag:
            self.tag_names[tag] = descriptor.digest
        return descriptor

    def paths(self, method: str = "") -> list[str]:
        """The paths that were asked for."""
        return [each.path for each in self.seen if method in ("", each.method)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        seen = Seen(request.method, request.raw_path, dict(request.headers))
        self.seen.append(seen)
        if self.before is not None and (answer := await self.before(request)) is not None:
            return answer
        seen.body = body = await request.read()
        match = _ROUTE.fullmatch(request.path)
        if match is None:
            return web.json_response({}) if request.path == "/v2/" else _not_found()
        handler = getattr(self, "_" + match["what"].replace("/", "_"))
        answer = handler(request, match["rest"], body)
        assert isinstance(answer, web.StreamResponse)
        return answer

    def _manifests(self, request: web.Request, rest: str, body: bytes) -> web.Response:
        if request.method == "PUT":
            media_type = request.headers["Content-Type"]
            descriptor = self.add_manifest(body, "" if ":" in rest else rest, media_type)
            headers = {"Docker-Content-Digest": descriptor.digest}
            subject = msgspec.json.decode(body).get("subject")
            if subject and self.has_referrers_api:
                headers["OCI-Subject"] = subject["digest"]
            return web.Response(status=201, headers=headers)
        digest = self.tag_names.get(rest, rest)
        if digest not in self.manifests:
            return _not_found()
        media_type, data = self.manifests[digest]
        return web.Response(body=data, content_type=media_type, headers={"Docker-Content-Digest": digest})

    def _blobs(self, request: web.Request, rest: str, body: bytes) -> web.Response:
        if rest not in self.blobs:
            return _not_found()
        return ranged(request, self.blobs[rest])

    def _blobs_uploads(self, request: web.Request, rest: str, body: bytes) -> web.Response:
        if request.method == "POST":
            mount = request.query.get("mount", "")
            if mount in self.mountable:
                self.blobs.setdefault(mount, b"")
                return web.Response(status=201)
            rest = f"u{len(self.uploads)}"
            self.uploads[rest] = bytearray()
            return self._progress(request, rest, 202)
        if rest not in self.uploads:
            return _not_found()
        if request.method == "DELETE":
            del self.uploads[rest]
            return web.Response(status=204)
        if request.method == "GET":
            return self._progress(request, rest, 204)
        if request.method == "PATCH":
            start = int(request.headers["Content-Range"].partition("-")[0])
            if start != len(self.uploads[rest]):
                return web.Response(status=416)
        self.uploads[rest] += body
        if request.method == "PATCH":
            return self._progress(request, rest, 202)
        data = bytes(self.uploads.pop(rest))
        if model.digest_of(data) != request.query["digest"]:
            return web.json_response({"errors": [{"message": "digest invalid"}]}, status=400)
        self.blobs[request.query["digest"]] = data
        return web.Response(status=201)

    def _progress(self, request: web.Request, upload: str, status: int) -> web.Response:
        base = request.path.partition("/blobs/uploads/")[0]
        last = max(len(self.uploads[upload]) - 1, 0)
        headers = {"Location": f"{base}/blobs/uploads/{upload}?state=x%2Fy", "Range": f"0-{last}"}
        return web.Response(status=status, headers=headers)

    def _tags(self, request: web.Request, rest: str, body: bytes) -> web.Response:
        names = [name for name in sorted(self.tag_names) if name > request.query.get("last", "")]
        headers = {}
        if self.page and len(names) > self.page:
            names = names[: self.page]
            headers["Link"] = f'<{request.path}?n={self.page}&last={names[-1]}>; rel="next"'
        return web.json_response({"name": "x", "tags": names}, headers=headers)

    def _referrers(self, request: web.Request, rest: str, body: bytes) -> web.Response:
        if not self.has_referrers_api:
            return _not_found()
        found = []
        for digest, (media_type, data) in self.manifests.items():
            value = msgspec.json.decode(data)
            if (value.get("subject") or {}).get("digest") == rest:
                kind = value.get("artifactType") or value["config"]["mediaType"]
                found.append(
                    {"mediaType": media_type, "digest": digest, "size": len(data), "artifactType": kind}
                )
        return web.json_response(
            {"schemaVersion": 2, "mediaType": model.OCI_INDEX, "manifests": found},
            content_type=model.OCI_INDEX,
        )


def image_bytes(config: Descriptor, *layers: Descriptor, **fields: Any) -> bytes:
    """A manifest."""
    return msgspec.json.encode(
        model.Manifest(
            schema_version=2, media_type=model.OCI_MANIFEST, config=config, layers=list(layers), **fields
        )
    )


def ranged(request: web.Request, data: bytes) -> web.Response:
    """Some bytes, or the part of them that the request's Range asks for."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
    if match is None:
        return web.Response(body=data)
    start = int(match[1])
    if start >= len(data):
        return web.Response(status=416)
    end = min(int(match[2] or len(data)), len(data) - 1)
    headers = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
    return web.Response(status=206, body=data[start : end + 1], headers=headers)


async def break_off(request: web.Request, data: bytes, *, claimed: int | None = None) -> web.StreamResponse:
    """Send some bytes and drop the connection before the length that was claimed."""
    response = web.StreamResponse(headers={"Content-Length": str(claimed or len(data) + 1)})
    await response.prepare(request)
    await response.write(data)
    assert request.transport is not None
    request.transport.close()
    return response


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeRegistry]:
    """A registry on a free port of the loopback address."""
    registry = FakeRegistry(scheme="https" if tls else "http")
    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/{path:.*}", registry.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    registry.host = f"{'localhost' if tls else '127.0.0.1'}:{port}"
    try:
        yield registry
    finally:
        await runner.cleanup()


def settings(home: Path, *plain: FakeRegistry, **fields: Any) -> Settings:
    """Settings that know nothing of this machine, for registries over plain HTTP."""
    environ = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), **fields.pop("environ", {})}
    return Settings(
        plain_http=frozenset(fields.pop("plain_http", [each.host for each in plain])),
        environ=environ,
        etc=home / "etc",
        share=home / "share",
        retries=fields.pop("retries", Retries()),
        **fields,
    )


class Waits:
    """A clock on which waiting takes no time but is written down."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.time = 0.0

    @property
    def clock(self) -> Clock:
        """For `Images`."""
        return Clock(now=lambda: self.time, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def images(home: Path, *plain: FakeRegistry, waits: Waits | None = None, **fields: Any) -> Images:
    """Images that reach these registries, waiting on a clock that does not take time."""
    progress = fields.pop("progress", None)
    return Images(settings(home, *plain, **fields), progress, clock=(waits or Waits()).clock)


def _not_found() -> web.Response:
    return web.json_response({"errors": [{"code": "NAME_UNKNOWN", "message": "not known"}]}, status=404)
