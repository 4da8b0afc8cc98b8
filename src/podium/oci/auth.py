"""Logging in: Basic, and Bearer tokens from the realm that a registry names.

Credentials are looked up only when a registry asks, by the registry's own name, and are sent only to the
registry (Basic) or to its realm (Bearer): over HTTPS, unless plain HTTP is allowed for this registry.
Tokens are kept for each scope until shortly before they expire.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from podium.oci.challenges import Challenge
from podium.oci.credentials import Credential, Keychain
from podium.oci.errors import AccessDenied, RateLimited, RegistryError
from podium.oci.retrying import Attempts, Clock, TryAgain, retry_after
from podium.oci.settings import Retries
from podium.oci.transport import Request, Transport, clean, shown

_MAX_ANSWER = 1 << 20
# What a token lives if its server does not say: the least that the protocol promises.
_SHORTEST_LIFE = 60.0
_LONGEST_LIFE = 3600.0
# A token is renewed this much before its end, so that it does not end on the way.
_MARGIN = 10.0


@dataclass(frozen=True, slots=True)
class Scope:
    """What we want to do: actions on repositories, the first being the one whose credentials count."""

    repository: str
    actions: str = "pull"
    # Another repository of the same registry to take blobs from.
    source: str = ""

    def texts(self) -> tuple[str, ...]:
        """As token servers read them."""
        own = f"repository:{self.repository}:{self.actions}"
        return (own, f"repository:{self.source}:pull") if self.source else (own,)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    expires: float


class _Answer(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None
    expires_in: float | None = None

    def __repr__(self) -> str:
        return "_Answer(...)"


class Login:
    """Our standing with one registry."""

    def __init__(
        self, host: str, transport: Transport, keychain: Keychain, retries: Retries, clock: Clock
    ) -> None:
        self._host = host
        self._transport = transport
        self._keychain = keychain
        self._retries = retries
        self._clock = clock
        # How the registry wants it; known after it has asked for the first time.
        self._challenge: Challenge | None = None
        self._tokens: dict[tuple[str, ...], _Token] = {}
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}
        self._credentials: dict[str, Credential | None] = {}
        # A helper may ask its user: once, however many requests want to know.
        self._finding = asyncio.Lock()

    async def authorization(self, scope: Scope) -> str:
        """What to send with a request, as far as is known without being asked; may be empty."""
        if self._challenge is None:
            return ""
        if self._challenge.scheme == "basic" and await self._credential(scope) is None:
            return ""  # it may let anybody do this
        return await self._answer(self._challenge, scope, refused="")

    async def challenged(self, offered: Sequence[Challenge], scope: Scope, refused: str) -> str:
        """What to send after the registry has asked; AccessDenied if there is nothing but `refused`."""
        chosen = next((each for each in offered if each.scheme in ("bearer", "basic")), None)
        if chosen is None:
            schemes = ", ".join(each.scheme for each in offered) or "nothing"
            raise AccessDenied(f"{self._host} wants to be logged in to by {schemes}, which is not supported")
        self._challenge = chosen
        return await self._answer(chosen, scope, refused)

    async def denial(self, scope: Scope, words: str) -> AccessDenied:
        """The error for a request that was refused for good, saying what can be done."""
        credential = await self._credential(scope)
        what = f"{self._host}/{scope.repository}: access denied"
        said = f" ({words})" if words else ""
        if credential is None:
            return AccessDenied(
                f"{what}{said}: no credentials found in {self._keychain.places()}; log in with podman or "
                "docker login, or set REGISTRY_AUTH_FILE (a repository that does not exist may look the same)"
            )
        return AccessDenied(
            f"{what}{said}: the credentials from {credential.origin} do not allow to {scope.actions}"
        )

    async def _answer(self, challenge: Challenge, scope: Scope, refused: str) -> str:
        credential = await self._credential(scope)
        if challenge.scheme == "basic":
            if credential is None or not credential.password:
                raise await self.denial(scope, "it wants a user name and password")
            return _basic(credential)
        if credential is not None and credential.registry_token:
            return f"Bearer {credential.registry_token}"
        return f"Bearer {await self._token(challenge, scope, credential, refused)}"

    async def _token(
        self, challenge: Challenge, scope: Scope, credential: Credential | None, refused: str
    ) -> str:
        scopes = scope.texts()
        asked_for = challenge.parameters.get("scope", "")
        # Some registries know only scopes of their own, such as `aws`; it is of no use to other repositories.
        if asked_for and not asked_for.startswith("repository:") and asked_for not in scopes:
            scopes = (*scopes, asked_for)
        key = (challenge.parameters.get("realm", ""), challenge.parameters.get("service", ""), *scopes)
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._tokens.get(key)
            if known and known.expires > self._clock.now() and refused != f"Bearer {known.text}":
                return known.text
            work = Attempts(self._retries, self._clock)
            token = await work.run(lambda: self._fetched(challenge, scope, scopes, credential))
            self._tokens[key] = token
            return token.text

    async def _fetched(
        self, challenge: Challenge, scope: Scope, scopes: Sequence[str], credential: Credential | None
    ) -> _Token:
        realm = self._realm(challenge)
        request = _token_request(realm, challenge.parameters.get("service", ""), scopes, credential)
        # A redirect would take the credentials to a place that the registry did not name.
        async with self._transport.open(request, follow=False) as answer:
            body = await answer.read(_MAX_ANSWER)
            if answer.status in (400, 401, 403):
                raise await self.denial(scope, f"{shown(realm)} answers {answer.status}")
            if answer.status == 429:
                wait = retry_after(answer.headers.get("Retry-After", ""), self._clock.wall())
                raise TryAgain(RateLimited(f"{shown(realm)}: too many requests for tokens"), wait)
            if answer.status != 200:
                error = RegistryError(
                    f"{shown(realm)} answers {answer.status} instead of a token", answer.status
                )
                raise TryAgain(error) if answer.status >= 500 else error
        return self._read(body, realm)

    def _realm(self, challenge: Challenge) -> str:
        """The token server, if it is one that credentials may be sent to."""
        text = challenge.parameters.get("realm", "")
        realm = clean(text, f"the token realm of {self._host}")
        if urlsplit(realm).scheme != "https" and not self._transport.plain:
            raise RegistryError(f"{self._host} names {shown(realm)} for tokens: plain HTTP is refused")
        self._transport.check(realm, f"{self._host} names for tokens")
        return realm

    def _read(self, body: bytes, realm: str) -> _Token:
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise RegistryError(f"{shown(realm)} does not answer with a token") from None
        text = answer.token or answer.access_token or ""
        # It goes into a header: whatever could end one is no token.
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            raise RegistryError(f"{shown(realm)} does not answer with a token")
        life = min(max(answer.expires_in or 0.0, _SHORTEST_LIFE), _LONGEST_LIFE)
        return _Token(text, self._clock.now() + life - _MARGIN)

    async def _credential(self, scope: Scope) -> Credential | None:
        name = scope.repository
        async with self._finding:
            if name not in self._credentials:
                self._credentials[name] = await self._keychain.find(f"{self._host}/{name}")
            return self._credentials[name]


def _token_request(realm: str, service: str, scopes: Sequence[str], credential: Credential | None) -> Request:
    if credential is not None and credential.identity_token:
        form = {
            "grant_type": "refresh_token",
            "service": service,
            "client_id": "podium",
            "scope": " ".join(scopes),
            "refresh_token": credential.identity_token,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        return Request("POST", realm, headers, urlencode(form).encode())
    parts = urlsplit(realm)
    query = [*parse_qsl(parts.query, keep_blank_values=True)]
    query += [("service", service)] if service else []
    query += [("scope", scope) for scope in scopes]
    headers = {"Accept": "application/json"}
    if credential is not None and credential.password:
        headers["Authorization"] = _basic(credential)
        query.append(("account", credential.username))
    return Request("GET", parts._replace(query=urlencode(query)).geturl(), headers)


def _basic(credential: Credential) -> str:
    return "Basic " + base64.b64encode(f"{credential.username}:{credential.password}".encode()).decode()
