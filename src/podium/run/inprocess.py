"""A client's way to an API server in the same process: the same requests, without sockets and TLS.

Controllers cannot tell the difference; authentication, authorization and every check apply as over the
network. Only the bytes take the short way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, unquote

from multidict import CIMultiDict, MultiDict

from podium.apiserver.endpoints import Answer
from podium.apiserver.gateway import Gateway, Incoming
from podium.apiserver.watching import Watch
from podium.kube.transport import Headers, Request, Response


class InProcessTransport:
    """Carries a client's requests to a gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._closed = asyncio.Event()

    async def request(self, request: Request) -> Response:
        incoming = _incoming(request)
        outcome = await self._gateway.answer(incoming)
        assert isinstance(outcome, Answer), "watches are streamed"
        return Response(outcome.code, _headers(outcome, incoming), outcome.body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[_Stream]:
        incoming = _incoming(request)
        outcome = await self._gateway.answer(incoming)
        if isinstance(outcome, Watch):
            yield _Stream(200, Headers([("Content-Type", "application/json")]), outcome.lines(self._closed))
        else:
            yield _Stream(outcome.code, _headers(outcome, incoming), _once(outcome.body))

    async def close(self) -> None:
        self._closed.set()


class _Stream:
    def __init__(self, status: int, headers: Headers, chunks: AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks

    def chunks(self) -> AsyncIterator[bytes]:
        return self._chunks


def _incoming(request: Request) -> Incoming:
    path, _, query = request.target.partition("?")

    async def read_body() -> bytes:
        return request.body or b""

    return Incoming(
        request.method,
        unquote(path),
        MultiDict(parse_qsl(query, keep_blank_values=True)),
        CIMultiDict(request.headers),
        read_body,
    )


def _headers(answer: Answer, incoming: Incoming) -> Headers:
    pairs = [("Content-Type", answer.content_type), *answer.headers.items()]
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in dict.fromkeys(incoming.warnings))
    return Headers([*pairs, *(("Warning", f'299 - "{text}"') for text in quoted)])


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
