"""A transport that fails on purpose, to prove what the client and the runtime do about it.

It wraps any other transport and asks a plan, request by request, what should go wrong:

    FaultyTransport(AiohttpTransport(config), script([Refused(), None, Answer(429, retry_after=1)]))

Nothing here waits: a slow body is one that comes in small pieces, with the event loop running in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import msgspec

from podium.kube.errors import ConnectionFailed
from podium.kube.transport import Headers, Request, Response, Stream, Transport


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection cannot be made; the server sees nothing."""


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """The server does what was asked, but the connection breaks before its answer arrives."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server, or something in front of it, refuses with this code and does nothing."""

    status: int
    reason: str = ""
    message: str = "injected"
    retry_after: int | None = None
    body: bytes | None = None  # instead of a Status object

    def response(self) -> Response:
        """The answer as it arrives."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.status,
        }
        headers = [("Content-Type", "application/json" if self.body is None else "text/plain")]
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        body = msgspec.json.encode(status) if self.body is None else self.body
        return Response(self.status, Headers(headers), body)


@dataclass(frozen=True, slots=True)
class CutAt:
    """The body breaks off after so many bytes."""

    bytes: int


@dataclass(frozen=True, slots=True)
class InPieces:
    """The body comes in pieces of this size, with `pause` awaited before each."""

    size: int
    pause: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)


Fault = Refused | AnswerLost | Answer | CutAt | InPieces
Plan = Callable[[Request], Fault | None]


def script(faults: Iterable[Fault | None]) -> Plan:
    """A plan that goes through a list, one per request; after its end nothing more goes wrong."""
    remaining = iter(faults)
    return lambda request: next(remaining, None)


class FaultyTransport:
    """Another transport, and the faults that befall its requests."""

    def __init__(self, inner: Transport, plan: Plan) -> None:
        self._inner = inner
        self._plan = plan
        self.requests: list[Request] = []  # what the client tried to send

    async def request(self, request: Request) -> Response:
        match self._fault(request):
            case Refused():
                raise ConnectionFailed(f"{request}: connection refused (injected)", sent=False)
            case Answer() as answer:
                return answer.response()
            case AnswerLost():
                await self._inner.request(request)
                raise ConnectionFailed(f"{request}: connection reset (injected)", sent=True)
            case CutAt(bytes=limit):
                response = await self._inner.request(request)
                if len(response.body) > limit:
                    raise ConnectionFailed(f"{request}: cut after {limit} bytes (injected)", sent=True)
                return response
            case InPieces(size=size, pause=pause):
                response = await self._inner.request(request)
                for _ in range(0, len(response.body), size):
                    await pause()
                return response
            case None:
                return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request, self._fault(request))

    async def close(self) -> None:
        await self._inner.close()

    def _fault(self, request: Request) -> Fault | None:
        self.requests.append(request)
        return self._plan(request)

    @asynccontextmanager
    async def _stream(self, request: Request, fault: Fault | None) -> AsyncIterator[Stream]:
        if isinstance(fault, Refused):
            raise ConnectionFailed(f"{request}: connection refused (injected)", sent=False)
        if isinstance(fault, Answer):
            yield _Whole(fault.response())
            return
        async with self._inner.stream(request) as stream:
            match fault:
                case AnswerLost():
                    raise ConnectionFailed(f"{request}: connection reset (injected)", sent=True)
                case CutAt(bytes=limit):
                    yield _Altered(stream, _cut(stream, limit))
                case InPieces() as pieces:
                    yield _Altered(stream, _in_pieces(stream, pieces))
                case None:
                    yield stream


class _Whole:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


class _Altered:
    def __init__(self, stream: Stream, chunks: AsyncIterator[bytes]) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self._chunks = chunks

    def chunks(self) -> AsyncIterator[bytes]:
        return self._chunks


async def _cut(stream: Stream, limit: int) -> AsyncIterator[bytes]:
    async for chunk in stream.chunks():
        if len(chunk) >= limit:
            if limit:
                yield chunk[:limit]
            raise ConnectionFailed("the body was cut (injected)", sent=True)
        limit -= len(chunk)
        yield chunk


async def _in_pieces(stream: Stream, pieces: InPieces) -> AsyncIterator[bytes]:
    async for chunk in stream.chunks():
        for start in range(0, len(chunk), pieces.size):
            await pieces.pause()
            yield chunk[start : start + pieces.size]
