"""HTTP on behalf of one registry: connections, redirects, proxies, time limits.

A transport neither retries nor logs in. It decides where a request may go: redirects are followed by hand,
at most ten, never from HTTPS to HTTP, never with the Authorization of another origin, never to an address
that `addresses.Guard` refuses. Whatever breaks on the way is Unreachable, or Interrupted if trying again
may help.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
from yarl import URL

import podium
from podium.oci.addresses import Guard, Lookup, Refused, literal
from podium.oci.certificates import Certificates
from podium.oci.errors import BadSetup, OCIError, RegistryError, Unreachable
from podium.oci.settings import Settings
from podium.text.proxies import proxy_for

Body = bytes | Callable[[], AsyncIterator[bytes]]

MAX_REDIRECTS = 10
CHUNK = 256 << 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_LOCATION = 16 << 10
# Presigned URLs of blob stores are long.
_MAX_HEADER = 32 << 10
_SERVER = re.compile(r"(?:[\w-]+(?:\.[\w-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?", re.ASCII)
_LONGEST_HOST = 253
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})


class Interrupted(Unreachable):
    """A connection broke or timed out; trying again may help."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; a body that streams is a function, because it may have to be sent again."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Body | None = field(default=None, repr=False)


class Answer:
    """The head of an answer, and its body as it arrives."""

    def __init__(self, response: aiohttp.ClientResponse, *, foreign: bool) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.url = str(response.url)
        # Answered by another origin than the registry's: its challenges and words are not the registry's.
        self.foreign = foreign

    @property
    def length(self) -> int | None:
        """What Content-Length says, if it says a number."""
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isascii() and text.isdigit() else None

    async def read(self, limit: int) -> bytes:
        """The whole body; RegistryError as soon as it exceeds the limit."""
        parts: list[bytes] = []
        size = 0
        async for part in self.chunks():
            size += len(part)
            if size > limit:
                raise RegistryError(f"{shown(self.url)} answers with more than {limit} bytes", self.status)
            parts.append(part)
        return b"".join(parts)

    async def beginning(self, limit: int = 64 << 10) -> bytes:
        """As much of the body as fits the limit; if that is all, the connection can be used again."""
        return await _beginning(self._response, limit)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces; Interrupted if it breaks off."""
        with _broken(self.url):
            async for part in self._response.content.iter_chunked(CHUNK):
                yield part


class Transport:
    """Connections for one registry: its own, and those to places that it points to."""

    def __init__(self, host: str, settings: Settings, certificates: Certificates, *, lax: bool) -> None:
        self.host = host
        # Plain HTTP and unchecked certificates are allowed here, because the user said so.
        self.plain = host in settings.plain_http or lax
        self._lax = lax or host in settings.insecure_skip_tls_verify
        self._settings = settings
        self._certificates = certificates
        self._hostname = urlsplit(f"//{server_of(host)}").hostname or host
        self._guard = Guard(self._hostname, settings.trusted_hosts)
        self._own: aiohttp.ClientSession | None = None
        self._others: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def open(self, request: Request, *, follow: bool = True, home: str = "") -> AsyncIterator[Answer]:
        """Send a request, follow redirects, and hand over the answer; leaving closes the connection.

        An answer is foreign unless it comes from where the request was sent, or from `home` if that is given.
        """
        first = url = request.url
        headers = dict(request.headers)
        async with AsyncExitStack() as stack:
            for _ in range(MAX_REDIRECTS + 1):
                response = await stack.enter_async_context(self._once(request, url, headers))
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None or not follow:
                    yield Answer(response, foreign=origin(url) != origin(home or first))
                    return
                target = self.target(url, location)
                if response.status in (301, 302, 303) and request.method not in ("GET", "HEAD"):
                    raise RegistryError(
                        f"{shown(url)} redirects a {request.method}, which cannot be followed"
                    )
                if origin(target) != origin(url):
                    headers = {
                        name: text for name, text in headers.items() if name.lower() not in _CREDENTIALS
                    }
                await _beginning(response)
                url = target
            raise RegistryError(f"{shown(first)} redirects more than {MAX_REDIRECTS} times")

    def target(self, url: str, location: str) -> str:
        """Where an answer from `url` points, absolute; RegistryError if we must not go there."""
        if len(location) > _MAX_LOCATION:
            raise RegistryError(f"{shown(url)} points to a URL of {len(location)} characters")
        target = joined(url, location)
        here, there = urlsplit(url), urlsplit(target)
        if here.scheme == "https" and there.scheme == "http":
            if there.hostname != here.hostname or there.port not in (None, here.port, 80):
                raise RegistryError(
                    f"{shown(url)} points to {shown(target)}: leaving HTTPS for plain HTTP is refused"
                )
            # A registry behind a proxy that ends TLS does not know its own scheme; the host is right.
            target = there._replace(scheme="https", netloc=here.netloc).geturl()
        self.check(target, f"{shown(url)} points to")
        return target

    def check(self, url: str, why: str) -> None:
        """RegistryError unless this place may be connected to on behalf of the registry."""
        parts = urlsplit(url)
        if not self._is_own(url):
            host = parts.hostname or ""
            try:
                refusal = self._guard.refusal(host, parts.port, literal(host))
            except ValueError as error:
                refusal = str(error)
            if refusal:
                raise RegistryError(f"{why} {shown(url)}: refused, {refusal}{_remedy(host)}")

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._own, self._others):
            if session is not None:
                await session.close()
        self._own = self._others = None

    @asynccontextmanager
    async def _once(
        self, request: Request, url: str, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        proxy = self._proxy(url)
        session = self._session(guarded=not proxy and not self._is_own(url))
        body = _Sending(request.body, self._settings.timeouts.idle)
        response: aiohttp.ClientResponse | None = None
        try:
            with _broken(url):
                async with body.watched():
                    response = await session.request(
                        request.method,
                        URL(url, encoded=True),
                        headers={**headers, **body.headers},
                        data=body.data(),
                        allow_redirects=False,
                        proxy=proxy or None,
                        ssl=self._tls(url),
                    )
            yield response
        finally:
            if response is not None:
                response.close()
            await body.close()

    def _session(self, *, guarded: bool) -> aiohttp.ClientSession:
        found = self._others if guarded else self._own
        if found is None:
            found = self._new_session(guarded=guarded)
            if guarded:
                self._others = found
            else:
                self._own = found
        return found

    def _new_session(self, *, guarded: bool) -> aiohttp.ClientSession:
        timeouts = self._settings.timeouts
        return aiohttp.ClientSession(
            # Names are looked up for every connection to foreign hosts, so that each lookup is judged.
            # Connections have no limit: an upload that feeds on a download holds one and waits for another.
            connector=aiohttp.TCPConnector(
                resolver=Lookup(self._guard, guarded=guarded), use_dns_cache=not guarded, limit=0
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect, sock_read=timeouts.idle),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Digests are of the bytes as stored: nothing may be unpacked on the way.
            auto_decompress=False,
            headers={"User-Agent": f"podium/{podium.__version__}", "Accept-Encoding": "identity"},
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )

    def _proxy(self, url: str) -> str:
        try:
            return proxy_for(url, self._settings.environ)
        except ValueError as error:
            raise BadSetup(str(error)) from None

    def _tls(self, url: str) -> ssl.SSLContext | bool:
        parts = urlsplit(url)
        if parts.scheme != "https":
            return True
        name = self.host if self._is_own(url) else parts.netloc
        same_machine = parts.hostname == self._hostname
        verify = not (self._lax and same_machine) and name not in self._settings.insecure_skip_tls_verify
        return self._certificates.context(name, registry=self.host, verify=verify)

    def _is_own(self, url: str) -> bool:
        return origin(url) == origin(f"{urlsplit(url).scheme}://{server_of(self.host)}")


class _Sending:
    """The body of one request, with a time limit on standing still: aiohttp has none for writing."""

    def __init__(self, body: Body | None, idle: float) -> None:
        # Much at once would hold up everything else, so it goes the same way as what streams.
        self._body = partial(_pieces, body) if isinstance(body, bytes) and len(body) > CHUNK else body
        self.headers = {"Content-Length": str(len(body))} if isinstance(body, bytes) else {}
        self._idle = idle
        self._failure: BaseException | None = None
        self._limit: asyncio.Timeout | None = None
        self._streaming: AsyncGenerator[bytes, None] | None = None

    def data(self) -> bytes | AsyncIterator[bytes] | None:
        if not callable(self._body):
            return self._body
        self._streaming = self._stream(self._body)
        return self._streaming

    async def close(self) -> None:
        """Let go of where the body comes from, sent or not."""
        if self._streaming is not None:
            # Already running: then the task that sends it has been cancelled and ends it.
            with suppress(RuntimeError):
                await self._streaming.aclose()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """What goes wrong where the body comes from is raised as it is, not as a broken connection."""
        try:
            async with asyncio.timeout(None) as self._limit:
                self._moved()
                yield
        except (aiohttp.ClientError, OSError) as error:
            if self._failure is not None:
                raise self._failure from error
            raise
        finally:
            self._limit = None

    async def _stream(self, source: Callable[[], AsyncIterator[bytes]]) -> AsyncGenerator[bytes, None]:
        try:
            async with ended(source()) as parts:
                async for part in parts:
                    self._moved()
                    yield part
                    self._moved()
        except OCIError as error:
            self._failure = error
            raise

    def _moved(self) -> None:
        if self._limit is not None and callable(self._body):
            self._limit.reschedule(asyncio.get_running_loop().time() + self._idle)


@asynccontextmanager
async def ended(source: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """The source itself; on leaving it lets go of what it holds, even if it was not read to its end."""
    try:
        yield source
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK]


async def _beginning(response: aiohttp.ClientResponse, limit: int = 64 << 10) -> bytes:
    parts: list[bytes] = []
    with suppress(aiohttp.ClientError, OSError):
        while limit > 0 and (part := await response.content.read(limit)):
            parts.append(part)
            limit -= len(part)
    return b"".join(parts)


def server_of(host: str) -> str:
    """Where a registry is really served: Docker Hub's name is not its server's."""
    return "registry-1.docker.io" if host == "docker.io" else host


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL: what credentials are bound to."""
    parts = urlsplit(url)
    return (
        parts.scheme,
        (parts.hostname or "").lower(),
        parts.port or (443 if parts.scheme == "https" else 80),
    )


def shown(url: str) -> str:
    """A URL as messages show it: without the query, where presigned URLs keep their secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:300]


def joined(url: str, location: str) -> str:
    """The absolute URL that an answer from `url` points to."""
    try:
        target = urljoin(url, location)
    except ValueError:
        raise RegistryError(f"{shown(url)} points to a malformed URL") from None
    return clean(target, shown(url))


def clean(url: str, source: str) -> str:
    """The URL, safely encoded, if it is one of HTTP; RegistryError naming its source otherwise."""
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port != 0  # reading it checks that it is a number
    except ValueError:
        raise RegistryError(f"{source} points to a malformed URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise RegistryError(f"{source} points to {parts.scheme}:, which is no place for a registry")
    # Whoever looks the host up, we or a proxy, must see the one that is judged here: no user name before it,
    # nothing escaped, nothing that IDNA would turn into digits or dots.
    if not _SERVER.fullmatch(parts.netloc) or len(parts.hostname) > _LONGEST_HOST or "\\" in url:
        raise RegistryError(f"{source} points to a URL with a user name or stray characters in it")
    # What is already escaped stays as it is: signatures of presigned URLs cover the exact text.
    return parts._replace(
        path=quote(parts.path, safe="/%:@!$&'()*+,;=~-._"),
        query=quote(parts.query, safe="/%:@!$&'()*+,;=~-._?"),
        fragment="",
    ).geturl()


def _remedy(host: str) -> str:
    return f" (if this is right, add {host} to the trusted hosts)"


class _broken:  # noqa: N801 - reads as a statement
    """Turns what aiohttp and sockets raise into our errors, within a `with` block."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, aiohttp.ClientError | OSError) and not isinstance(error, OCIError):
            # Some of aiohttp's errors hold the request, with its Authorization and the query of its URL.
            telling = isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL)
            raise _explained(error, shown(self._url)) from (None if telling else error)


def _explained(error: Exception, where: str) -> OCIError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Refused):
            return RegistryError(f"{where}: refused, {cause}{_remedy(urlsplit(where).hostname or '')}")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return Unreachable(
            f"{where}: its proxy {error.host}:{error.port} cannot be reached ({_words(error)})"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Unreachable(f"{where}: its proxy answers {error.status} ({_words(error)})")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Unreachable(
            f"{where}: its certificate is not trusted ({_words(error.certificate_error)}); put its authority "
            f"into certs.d/<host:port>/ca.crt, or set SSL_CERT_FILE"
        )
    if isinstance(error, aiohttp.ClientSSLError):
        return Unreachable(
            f"{where}: TLS failed ({_words(error)}); if it speaks plain HTTP, name it with --plain-http"
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Unreachable(f"{where}: no such host; check the name, or the proxy")
    if isinstance(error, ConnectionRefusedError) or isinstance(error.__cause__, ConnectionRefusedError):
        return Unreachable(f"{where}: connection refused")
    if isinstance(error, TimeoutError):
        return Interrupted(f"{where}: no answer in time")
    if isinstance(error, aiohttp.InvalidURL):
        return Unreachable(f"{where}: {_words(error)}")
    return Interrupted(f"{where}: the connection broke ({_words(error)})")


def _words(error: BaseException) -> str:
    # The text of an error about an answer or a URL holds the URL, with the secrets of its query.
    if isinstance(error, aiohttp.ClientResponseError):
        text = error.message
    elif isinstance(error, aiohttp.InvalidURL):
        text = "the URL cannot be used"
    elif isinstance(error, aiohttp.ClientConnectorError):
        text = str(error.os_error)
    else:
        text = str(error)
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line.strip()[:300] or type(error).__name__
