"""The seam between the client and the network: requests in, answers out.

`Transport` is all that the client knows of HTTP; `AiohttpTransport` is the one that talks to real servers,
and `podium.kube.faults` wraps any other to make it fail on purpose. A transport neither retries nor
interprets: it gives back whatever was answered, or raises ConnectionFailed and says whether the request may
have been seen.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from podium.kube.auth import Certificate
from podium.kube.config import Config
from podium.kube.errors import ConfigError, ConnectionFailed, ProtocolError

if TYPE_CHECKING:
    import aiohttp

MAX_BODY = 512 << 20
_LARGE_BODY = 1 << 20


class Headers:
    """The headers of an answer: names in any case, values possibly repeated."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    def get(self, name: str, default: str = "") -> str:
        """The first value of a header."""
        values = self._values.get(name.lower())
        return values[0] if values else default

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return list(self._values.get(name.lower(), ()))

    def __repr__(self) -> str:
        return f"Headers({self._values!r})"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `target` is the path and query below the server's URL, already escaped."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    certificate: Certificate | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes


class Stream(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, in pieces of any size; raises ConnectionFailed if it breaks off."""
        ...


class Transport(Protocol):
    """Carries requests to one server."""

    async def request(self, request: Request) -> Response:
        """Send a request and wait for the whole answer."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a request and read its answer as it comes; leaving the context closes the connection."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class AiohttpTransport:
    """Connections of one configuration, kept open between requests; one more for each watch."""

    def __init__(self, config: Config, *, max_body: int = MAX_BODY) -> None:
        self._config = config
        self._server = config.server.rstrip("/")
        self._max_body = max_body
        self._slots = asyncio.Semaphore(config.max_connections)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def request(self, request: Request) -> Response:
        import aiohttp

        config = self._config
        timeout = aiohttp.ClientTimeout(total=config.request_timeout, sock_connect=config.connect_timeout)
        async with self._slots:
            with self._failures(request):
                async with self._send(request, timeout) as answer:
                    body = await self._whole_body(answer, request)
        return Response(answer.status, Headers(answer.headers.items()), body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        import aiohttp

        config = self._config
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=config.connect_timeout, sock_read=config.watch_idle_timeout
        )
        with self._failures(request):
            async with asyncio.timeout(config.request_timeout):
                answer = await self._send(request, timeout)
        try:
            yield _AiohttpStream(answer, self, request)
        finally:
            # Not `release`: that would wait for the rest of an endless body. Nor a polite end of TLS, which
            # would go on in the background after the client is closed.
            if answer.connection is not None and answer.connection.transport is not None:
                answer.connection.transport.abort()
            answer.close()

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None
            for _ in range(3):  # aborted sockets are closed in the next turns of the loop
                await asyncio.sleep(0)

    def _send(self, request: Request, timeout: aiohttp.ClientTimeout) -> Any:
        from yarl import URL

        return self._opened().request(
            request.method,
            URL(self._server + request.target, encoded=True),
            headers=request.headers,
            data=_payload(request.body),
            timeout=timeout,
            ssl=self._context(request.certificate),
            server_hostname=self._config.tls_server_name or None,
            proxy=self._config.proxy_url or None,
            # A redirect would lead our credentials elsewhere; API servers send none.
            allow_redirects=False,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:
            raise RuntimeError("the client is closed")
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                # A connection idle for longer than this may be closed by the server under our next request.
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
                read_bufsize=1 << 18,
            )
            # aiohttp repeats PUT and DELETE by itself when a connection breaks; whether that is safe is for
            # the client to decide. There is no public switch.
            self._session._retry_connection = False  # noqa: SLF001
        return self._session

    def _context(self, certificate: Certificate | None) -> Any:
        """One TLS context per certificate: aiohttp keeps connections apart by it, so a new one reconnects."""
        if not self._server.startswith("https:"):
            return True
        if self._tls is None or self._tls[0] != certificate:
            from podium.kube.tls import tls_context

            self._tls = certificate, tls_context(self._config, certificate)
        return self._tls[1]

    async def _whole_body(self, answer: aiohttp.ClientResponse, request: Request) -> bytes:
        length = answer.content_length
        if length is not None and length <= self._max_body and "Content-Encoding" not in answer.headers:
            return await answer.read()
        parts: list[bytes] = []
        size = 0
        async for part in answer.content.iter_any():
            size += len(part)
            if size > self._max_body:
                answer.close()
                raise ProtocolError(f"{request}: the answer is larger than {self._max_body} bytes")
            parts.append(part)
        return b"".join(parts)

    @contextmanager
    def _failures(self, request: Request) -> Iterator[None]:
        """Say in our words what aiohttp says in its own."""
        import aiohttp

        server = self._server
        try:
            yield
        except aiohttp.ClientConnectorCertificateError as error:
            raise ConfigError(
                f"cannot trust {server}: {_reason_of_distrust(error.certificate_error)}; "
                f"check certificate-authority and tls-server-name in {self._config.origin}"
            ) from error
        except aiohttp.ClientHttpProxyError as error:
            raise ConnectionFailed(
                f"the proxy refused to connect to {server}: {error.status} {error.message}", sent=False
            ) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise ConnectionFailed(f"cannot connect to {server}: {_reason(error)}", sent=False) from error
        except aiohttp.SocketTimeoutError as error:
            idle = self._config.watch_idle_timeout
            raise ConnectionFailed(f"{request}: nothing came for {idle:g} s", sent=True) from error
        except TimeoutError as error:
            limit = self._config.request_timeout
            raise ConnectionFailed(f"{request}: no answer from {server} in {limit:g} s", sent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(
                f"{request}: connection to {server} lost: {_reason(error)}", sent=True
            ) from error


class _AiohttpStream:
    def __init__(self, answer: aiohttp.ClientResponse, transport: AiohttpTransport, request: Request) -> None:
        self._answer = answer
        self._transport = transport
        self._request = request
        self.status = answer.status
        self.headers = Headers(answer.headers.items())

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._answer.content
        while True:
            with self._transport._failures(self._request):  # noqa: SLF001
                chunk = await content.readany()
            if not chunk:
                return
            yield chunk


def _reason_of_distrust(error: Exception) -> str:
    return getattr(error, "verify_message", "") or str(error)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp sends large bytes in one go, which blocks the event loop, and warns of it; a file it cuts up.
    return io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY else body


def _reason(error: BaseException) -> str:
    cause = getattr(error, "os_error", None) or error
    number = getattr(cause, "errno", None)
    if isinstance(number, int) and number > 0 and not isinstance(cause, ssl.SSLError):
        return os.strerror(number)  # asyncio's own text says less
    return str(cause) or type(cause).__name__
