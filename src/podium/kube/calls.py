"""The one way that every request takes: log in, send, retry if that is safe, report, and raise by remedy.

When a request is repeated:
- nothing reached the server (connection refused): any request;
- the connection broke before an answer: reads only, since a write may have been done;
- 429 with Retry-After: any request, since the server says that it did nothing;
- 5xx with Retry-After: reads only;
- 401: any request, once, if the credentials have something newer to offer.
The number of tries is bounded, waits grow and are spread by chance, and a server that asks for more patience
than `MAX_WAIT` is believed but not waited for: the exception carries its `retry_after`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podium.kube.auth import Credentials, Login, impersonation_headers
from podium.kube.backoff import CHANCE, Backoff
from podium.kube.clock import Clock
from podium.kube.config import Config
from podium.kube.errors import ConnectionFailed, from_answer
from podium.kube.transport import Headers, Request, Response, Stream, Transport

log = logging.getLogger("podium.kube.client")

MAX_RETRIES = 4
MAX_WAIT = 30.0
_BACKOFF = Backoff(initial=0.1, maximum=5.0, jitter=0.5)
_MAX_ERROR_BODY = 1 << 20
_WARNING = re.compile(r'(\d{3}) \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to ask of the server, before it becomes HTTP requests."""

    verb: str
    resource: str  # for the metrics: `deployments.apps`
    method: str
    target: str
    accept: str = "application/json"
    content_type: str = ""
    body: bytes | None = None

    @property
    def reads(self) -> bool:
        """Whether doing this twice is the same as doing it once."""
        return self.method in ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class RequestDone:
    """One HTTP request that ended; `code` is 0 if nothing was answered. A watch counts when it begins."""

    verb: str
    resource: str
    code: int
    seconds: float


class Caller:
    """Sends calls over a transport as one identity."""

    def __init__(
        self,
        config: Config,
        transport: Transport,
        credentials: Credentials,
        clock: Clock,
        *,
        user_agent: str,
        on_warning: Callable[[str], None],
        observer: Callable[[RequestDone], None] | None = None,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._clock = clock
        self._on_warning = on_warning
        self._observer = observer
        self._chance = chance
        self._fixed_headers = (
            ("User-Agent", user_agent),
            ("Accept-Encoding", "identity" if config.disable_compression else "gzip"),
            *impersonation_headers(config.impersonate),
        )

    async def call(self, call: Call) -> Response:
        """The server's answer to a call; APIError if it refused, ConnectionFailed if it did not answer."""
        response = await self.send(call)
        if response.status >= 300:
            raise _refusal(call, response)
        return response

    async def send(self, call: Call) -> Response:
        """The server's last answer to a call, whatever it is."""
        failures, may_renew = 0, True
        while True:
            login = await self._credentials.login()
            try:
                response = await self._attempt(call, login)
            except ConnectionFailed as error:
                failures += 1
                if failures > MAX_RETRIES or (error.sent and not call.reads):
                    raise
                wait = 0.0
            else:
                if response.status == 401 and may_renew:
                    may_renew = False
                    if await self._credentials.renew(login) is not None:
                        continue
                failures += 1
                asked = _asked_to_wait(call, response)
                if asked is None or asked > MAX_WAIT or failures > MAX_RETRIES:
                    return response
                wait = asked
            await self._clock.sleep(max(wait, _BACKOFF.delay(failures, self._chance)))

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[Stream]:
        """The server's answer to a call while it arrives; tried once, and once more after a 401."""
        login = await self._credentials.login()
        for may_renew in (True, False):
            async with self._streamed(call, login) as stream:
                if stream.status < 300:
                    yield stream
                    return
                response = Response(stream.status, stream.headers, await _error_body(stream))
            renewed = await self._credentials.renew(login) if response.status == 401 and may_renew else None
            if renewed is None:
                raise _refusal(call, response)
            login = renewed

    async def _attempt(self, call: Call, login: Login) -> Response:
        started, code = self._clock.monotonic(), 0
        try:
            response = await self._transport.request(self._request(call, login))
            code = response.status
        finally:
            self._report(call, code, started)
        self._warn(response.headers)
        return response

    @asynccontextmanager
    async def _streamed(self, call: Call, login: Login) -> AsyncIterator[Stream]:
        started, reported = self._clock.monotonic(), False
        try:
            async with self._transport.stream(self._request(call, login)) as stream:
                reported = True
                self._report(call, stream.status, started)
                self._warn(stream.headers)
                yield stream
        finally:
            if not reported:
                self._report(call, 0, started)

    def _request(self, call: Call, login: Login) -> Request:
        headers = [("Accept", call.accept), *self._fixed_headers]
        if call.content_type:
            headers.append(("Content-Type", call.content_type))
        if login.authorization:
            headers.append(("Authorization", login.authorization))
        return Request(call.method, call.target, tuple(headers), call.body, login.certificate)

    def _report(self, call: Call, code: int, started: float) -> None:
        if self._observer is not None:
            seconds = self._clock.monotonic() - started
            self._observer(RequestDone(call.verb, call.resource, code, seconds))

    def _warn(self, headers: Headers) -> None:
        for header in headers.all("Warning"):
            for code, text in _WARNING.findall(header):
                if code == "299":
                    self._on_warning(re.sub(r"\\(.)", r"\1", text))


def log_warning(text: str) -> None:
    """What happens to a server's warning if nobody asked for it."""
    log.warning("the server warns: %s", text)


def _refusal(call: Call, response: Response) -> Exception:
    what = f"{call.method} {call.target.partition('?')[0]}"
    return from_answer(response.status, response.body, what=what, retry_after=_retry_after(response.headers))


def _asked_to_wait(call: Call, response: Response) -> float | None:
    """For how long the server asks us to wait before we try again; None if we must not."""
    if response.status == 429 or (response.status >= 500 and call.reads):
        return _retry_after(response.headers)
    return None


def _retry_after(headers: Headers) -> float | None:
    value = headers.get("Retry-After").strip()
    # The other form of this header is a date, which no API server sends.
    return float(value) if value.isascii() and value.isdigit() else None


async def _error_body(stream: Stream) -> bytes:
    body = b""
    try:
        async for chunk in stream.chunks():
            body += chunk
            if len(body) > _MAX_ERROR_BODY:
                break
    except ConnectionFailed:
        pass  # the status line says enough
    return body
