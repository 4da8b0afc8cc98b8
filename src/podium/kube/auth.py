"""Who we are to the server: the log-in that each request carries, and how it is renewed.

A `Credentials` object gives the current `Login`, and after the server refused one (401) a different one if it
has any. The client asks before every attempt, so a rotated token is used from the next request on. Renewals
are serialised: however many requests fail at once, a file is read or a plugin run only once.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from podium.kube.clock import Clock
from podium.kube.config import Config, ExecPlugin, Impersonation
from podium.kube.errors import ConfigError
from podium.kube.execplugin import Issued, run_plugin

log = logging.getLogger(__name__)

_TOKEN_FILE_SECONDS = 60.0
_HEADER_NAME_CHARACTERS = frozenset(
    "!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, as PEM text."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    """What one request shows to the server; both parts may be absent."""

    authorization: str = field(default="", repr=False)
    certificate: Certificate | None = None


class Credentials(Protocol):
    """Gives the log-in of each request."""

    async def login(self) -> Login:
        """The log-in to use now."""
        ...

    async def renew(self, refused: Login) -> Login | None:
        """Another log-in after the server refused this one with 401, or None if there is no other."""
        ...


def credentials(config: Config, clock: Clock) -> Credentials:
    """The credentials that a configuration describes, in the order of precedence that kubectl has."""
    certificate = None
    if config.client_certificate:
        certificate = Certificate(
            config.client_certificate.read(f"{config.origin}: client-certificate"),
            config.client_key.read(f"{config.origin}: client-key"),
        )
    if config.token_file:
        return TokenFile(config.token_file, clock, certificate, fallback=config.token)
    if config.token:
        return Fixed(Login(_bearer(config.token, config.origin), certificate))
    if config.username or config.password:
        pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        return Fixed(Login(f"Basic {pair}", certificate))
    if config.exec and not certificate:
        return Exec(config.exec, clock)
    return Fixed(Login(certificate=certificate))


def impersonation_headers(impersonation: Impersonation | None) -> list[tuple[str, str]]:
    """The headers that ask the server to act as somebody else."""
    if impersonation is None:
        return []
    headers = [("Impersonate-User", impersonation.user)]
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra:
        headers += [(f"Impersonate-Extra-{_header_escaped(key)}", value) for value in values]
    return headers


class Fixed:
    """A log-in that never changes: a static token, a password, a certificate, or nothing."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def login(self) -> Login:
        return self._login

    async def renew(self, refused: Login) -> Login | None:
        return None


class TokenFile:
    """A token in a file that somebody rotates; read at most once a minute, and after a 401."""

    def __init__(self, path: str, clock: Clock, certificate: Certificate | None, fallback: str = "") -> None:
        self._path = path
        self._clock = clock
        self._certificate = certificate
        self._fallback = fallback
        self._read_at = 0.0
        self._login: Login | None = None

    async def login(self) -> Login:
        if self._login is None or self._clock.monotonic() - self._read_at >= _TOKEN_FILE_SECONDS:
            self._login = self._read()
        return self._login

    async def renew(self, refused: Login) -> Login | None:
        self._login = self._read()
        return self._login if self._login != refused else None

    def _read(self) -> Login:
        self._read_at = self._clock.monotonic()
        try:
            token = Path(self._path).read_text().strip()
            problem = "" if token else "it is empty"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", str(getattr(error, "strerror", None) or error)
        if token:
            return Login(_bearer(token, self._path), self._certificate)
        if self._login is not None:
            # The file is being replaced, or its volume is gone for a moment: the old token may well be valid.
            log.warning("cannot read the token file %s (%s); keeping the last token", self._path, problem)
            return self._login
        if self._fallback:
            return Login(_bearer(self._fallback, self._path), self._certificate)
        raise ConfigError(f"cannot read a token from {self._path}: {problem}")


class Exec:
    """Credentials from a plugin: run when first needed, when they expire, and after a 401."""

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._lock = asyncio.Lock()
        self._login: Login | None = None
        self._expires: datetime | None = None

    async def login(self) -> Login:
        current = self._current()
        if current is not None:
            return current
        async with self._lock:
            return self._current() or await self._run()

    async def renew(self, refused: Login) -> Login | None:
        async with self._lock:
            current = self._current()
            if current is None or current == refused:
                current = await self._run()
            return current if current != refused else None

    def _current(self) -> Login | None:
        if self._expires is not None and self._clock.wall() >= self._expires:
            return None
        return self._login

    async def _run(self) -> Login:
        issued = await run_plugin(self._plugin)
        self._login, self._expires = _login_of(issued, self._plugin), issued.expires
        return self._login


def _login_of(issued: Issued, plugin: ExecPlugin) -> Login:
    certificate = Certificate(issued.certificate, issued.key) if issued.certificate else None
    return Login(_bearer(issued.token, plugin.command) if issued.token else "", certificate)


def _bearer(token: str, origin: str) -> str:
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{origin}: the token has characters that no token can have; is it truncated?")
    return f"Bearer {token}"


def _header_escaped(key: str) -> str:
    return "".join(
        chr(byte) if chr(byte) in _HEADER_NAME_CHARACTERS else f"%{byte:02X}" for byte in key.encode()
    )
