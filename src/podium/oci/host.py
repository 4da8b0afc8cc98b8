"""One registry host: requests that log in when asked and are tried again when that helps.

`ask` is for answers that are held whole, `open` for those that stream. The scheme is HTTPS unless the user
allowed plain HTTP; where registries.conf says `insecure`, HTTPS is tried first, as podman does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from podium.oci.auth import Login, Scope
from podium.oci.certificates import Certificates
from podium.oci.challenges import challenges
from podium.oci.credentials import Keychain
from podium.oci.errors import ImageNotFound, OCIError, RateLimited, RegistryError, Unreachable
from podium.oci.retrying import Attempts, Clock, TryAgain, retry_after
from podium.oci.settings import Settings
from podium.oci.transport import Answer, Body, Request, Transport, origin, server_of, shown

_MAX_SMALL = 64 << 10
_SHOWN = 300
_PASSING = frozenset({408, 425, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of a registry: a path below the host or a whole URL, and what for."""

    method: str
    path: str
    scope: Scope
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    # Statuses that are an answer; every other is an error.
    expected: Sequence[int] = (200,)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    headers: CIMultiDictProxy[str]
    data: bytes
    url: str


class Host:
    """A registry, as far as it concerns no particular repository."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        certificates: Certificates,
        keychain: Keychain,
        *,
        insecure: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._settings = settings
        self._clock = clock or Clock()
        self._insecure = insecure
        self.transport = Transport(name, settings, certificates, lax=insecure)
        self._login = Login(name, self.transport, keychain, settings.retries, self._clock)
        self._base = ""
        self._probing = asyncio.Lock()

    def attempts(self) -> Attempts:
        """A fresh allowance of attempts."""
        return Attempts(self._settings.retries, self._clock)

    async def ask(self, call: Call, *, limit: int = _MAX_SMALL) -> Reply:
        """A whole answer with one of the expected statuses, tried again where that helps."""

        async def once() -> Reply:
            async with self.open(call) as answer:
                data = b"" if call.method == "HEAD" else await answer.read(limit)
                return Reply(answer.status, CIMultiDictProxy(CIMultiDict(answer.headers)), data, answer.url)

        return await self.attempts().run(once)

    @asynccontextmanager
    async def open(self, call: Call) -> AsyncIterator[Answer]:
        """One answer with an expected status, as it arrives; TryAgain if another attempt may do better."""
        base = await self.base()
        url = call.path if "://" in call.path else base + call.path
        request = Request(call.method, url, call.headers, call.body)
        # An upload may have to go to another host, which gets no credentials, whatever it asks for.
        own = origin(url) == origin(base)
        authorization = await self._login.authorization(call.scope) if own else ""
        async with self.transport.open(_with(request, authorization), home=base) as answer:
            if answer.status != 401 or answer.foreign:
                await self._expect(answer, call)
                yield answer
                return
            offered = challenges(answer.headers.getall("WWW-Authenticate", []))
            await answer.beginning()
        authorization = await self._login.challenged(offered, call.scope, authorization)
        async with self.transport.open(_with(request, authorization), home=base) as answer:
            await self._expect(answer, call)
            yield answer

    async def base(self) -> str:
        """Scheme and host; found out once."""
        if not self._base:
            async with self._probing:
                self._base = self._base or await self._probe()
        return self._base

    async def close(self) -> None:
        """Close every connection."""
        await self.transport.close()

    async def _probe(self) -> str:
        secure, plain = f"https://{server_of(self.name)}", f"http://{server_of(self.name)}"
        if self.name in self._settings.plain_http:
            return plain
        if not self._insecure:
            return secure
        try:
            async with self.transport.open(Request("GET", f"{secure}/v2/", {}), follow=False):
                return secure
        except Unreachable:
            return plain

    async def _expect(self, answer: Answer, call: Call) -> None:
        if answer.status in call.expected:
            return
        where = f"{call.method} {shown(answer.url)}"
        words = "" if call.method == "HEAD" else _words(await answer.beginning())
        said = f": {words}" if words else ""
        if answer.foreign:
            # Not the registry speaks but a blob store; its link may have expired, and the registry gives a
            # new one.
            error: OCIError = RegistryError(f"{where} answers {answer.status}{said}", answer.status)
            raise (
                TryAgain(error, self._wait(answer)) if answer.status in (401, 403, 429, *_PASSING) else error
            )
        if answer.status in (401, 403):
            raise await self._login.denial(call.scope, words)
        if answer.status == 404:
            raise ImageNotFound(f"{where}: not found{said}")
        if answer.status == 429:
            error = RateLimited(
                f"{where}: too many requests{said}; log in for a higher limit, or use a mirror"
            )
            raise TryAgain(error, self._wait(answer))
        error = RegistryError(f"{where} answers {answer.status}{said}", answer.status)
        raise TryAgain(error, self._wait(answer)) if answer.status in _PASSING else error

    def _wait(self, answer: Answer) -> float | None:
        return retry_after(answer.headers.get("Retry-After", ""), self._clock.wall())


def _with(request: Request, authorization: str) -> Request:
    if not authorization:
        return request
    return replace(request, headers={**request.headers, "Authorization": authorization})


def _words(body: bytes) -> str:
    """What a registry says in its error, in one line; nothing if it is not the usual form."""
    try:
        errors: Any = msgspec.json.decode(body).get("errors") or []
        texts = [str(each.get("message") or each.get("code") or "") for each in errors[:5]]
    except (msgspec.MsgspecError, AttributeError, LookupError, RecursionError, TypeError, UnicodeDecodeError):
        return ""
    line = "; ".join(filter(None, texts))
    return "".join(letter if letter.isprintable() else " " for letter in line)[:_SHOWN]
