"""HTTP for the API: connections in, answers and watch streams out.

One handler for every path, without a router: the paths are data (the registry), not code. Limits on sizes and
times are here; everything else is the gateway's.
"""

from __future__ import annotations

import asyncio
import zlib
from http import HTTPStatus
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, BadHttpMethod, LineTooLong
from multidict import CIMultiDict

from podium.apiserver import errors
from podium.apiserver.access.authentication import from_certificate
from podium.apiserver.access.identity import Identity
from podium.apiserver.bodies import MAX_BODY_BYTES
from podium.apiserver.endpoints import Answer
from podium.apiserver.gateway import Gateway, Incoming, failure
from podium.apiserver.watching import Watch

if TYPE_CHECKING:
    import ssl

_GZIP_OVER = 128 * 1024
_BODY_SECONDS = 60
_STALLED_SECONDS = 60
_MAX_LINE_BYTES = 1024 * 1024  # a query may hold a long selector
_MAX_HEADER_BYTES = 64 * 1024
_REMEMBERED_CERTIFICATES = 1000
_MAX_WARNINGS_LENGTH, _MAX_WARNING_LENGTH = 4096, 256


class Http:
    """The request handler of one server."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._certificates: dict[bytes, Identity | None] = {}
        self._stopping = asyncio.Event()
        self._watchers: set[asyncio.Task[Any]] = set()

    async def listen(self, host: str, port: int, tls: ssl.SSLContext) -> web.ServerRunner:
        """Start to serve; the runner stops it."""
        server = _Connections(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=300,
            auto_decompress=False,  # a small body could unpack to a huge one; upstream does not unpack either
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        runner = web.ServerRunner(server, shutdown_timeout=2)
        await runner.setup()
        await web.TCPSite(runner, host, port, ssl_context=tls, backlog=1024).start()
        return runner

    def end_watches(self) -> None:
        """End every open watch, so that clients reconnect elsewhere or later."""
        self._stopping.set()
        for task in list(self._watchers):
            task.cancel()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if "%" in path:
            # What is not UTF-8 was left as it came; it must not look like a name that has a percent sign.
            path = unquote(request.rel_url.raw_path, errors="replace")
        incoming = Incoming(
            request.method,
            path,
            request.query,
            request.headers,
            lambda: _read_body(request),
            self._certificate_identity(request),
        )
        outcome = await self._gateway.answer(incoming)
        if isinstance(outcome, Watch):
            return await self._stream(request, outcome)
        return await _response(request, outcome, incoming.warnings)

    def _certificate_identity(self, request: web.BaseRequest) -> Identity | None:
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport else None
        if not peer or transport is None:
            return None
        der: bytes = transport.get_extra_info("ssl_object").getpeercert(True)
        if der not in self._certificates:
            if len(self._certificates) > _REMEMBERED_CERTIFICATES:
                self._certificates.clear()
            self._certificates[der] = from_certificate(peer, der)
        return self._certificates[der]

    async def _stream(self, request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        response = web.StreamResponse(headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._watchers.add(task)
        try:
            async for lines in watch.lines(self._stopping):
                async with asyncio.timeout(_STALLED_SECONDS):
                    await response.write(lines)
            await response.write_eof()
        except ConnectionError:
            pass  # the client is gone
        except TimeoutError:
            # It does not read what it asked for; what is kept for it is better dropped.
            if request.transport is not None:
                request.transport.abort()
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
        finally:
            self._watchers.discard(task)
        return response


class _Connection(web.RequestHandler):
    """One connection; what is not HTTP, or too much of it, is refused in kube-apiserver's words."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, BadHttpMethod):
            refused = failure(errors.method_not_allowed())
            response = web.Response(status=refused.code, body=refused.body, content_type=refused.content_type)
        elif isinstance(exc, BadHttpMessage):
            problem = HTTPStatus(431 if isinstance(exc, LineTooLong) else 400)
            response = web.Response(status=problem, text=f"{problem.value} {problem.phrase}")
        else:
            return super().handle_error(request, status, exc, message)
        response.force_close()
        return response


class _Connections(web.Server):
    """Makes a handler for each connection."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


async def _read_body(request: web.BaseRequest) -> bytes:
    limit = errors.too_large(f"limit is {MAX_BODY_BYTES}")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise limit
    chunks, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise limit
                chunks.append(chunk)
    except TimeoutError:
        raise errors.timeout("the request body did not arrive in time", 0) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _response(request: web.BaseRequest, answer: Answer, warnings: list[str]) -> web.Response:
    headers = CIMultiDict(answer.headers)
    headers["Content-Type"] = answer.content_type
    headers.setdefault("Cache-Control", "no-cache, private")
    for text in _limited(list(dict.fromkeys(warnings))):
        headers.add("Warning", f"299 - {_quoted(text)}")
    body = answer.body
    if len(body) > _GZIP_OVER and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = await asyncio.to_thread(_gzip, body)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(status=answer.code, body=body, headers=headers)


def _limited(warnings: list[str]) -> list[str]:
    """Warnings that fit into headers that clients accept: where they are too long, each is cut."""
    if sum(map(len, warnings)) <= _MAX_WARNINGS_LENGTH:
        return warnings
    cut = [text[:_MAX_WARNING_LENGTH] for text in warnings]
    lengths = accumulate(map(len, cut), initial=0)
    return [text for text, before in zip(cut, lengths, strict=False) if before < _MAX_WARNINGS_LENGTH]


def _quoted(text: str) -> str:
    clean = "".join(c if c.isprintable() else " " for c in text)
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()
