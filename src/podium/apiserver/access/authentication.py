"""Who sent a request: by client certificate, else by bearer token, else nobody in particular.

A certificate that the listener accepted names its user; its bearer token, if any, is then ignored. A bearer
token that is wrong is refused, never taken for an anonymous request. Requests without either are anonymous,
and RBAC decides what those may read (`/healthz`, `/livez`, `/readyz` and `/version`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from podium.apiserver import errors
from podium.apiserver.access.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    CREDENTIAL_ID,
    MASTERS,
    NOBODY,
    UNAUTHENTICATED,
    Identity,
)
from podium.apiserver.access.signing import TokenError
from podium.apiserver.access.tokens import ServiceAccountTokens, Verified

# The object identifier of the uid that some authorities put into the subject.
_UID = "1.3.6.1.4.1.57683.2"
_INVALID = "invalid bearer token"


def from_certificate(peer: Mapping[str, Any], der: bytes) -> Identity | None:
    """The user that a checked client certificate names: `ssl.getpeercert()` in both its forms."""
    names: dict[str, list[str]] = {}
    for relative in peer.get("subject", ()):
        for key, value in relative:
            names.setdefault(key, []).append(value)
    if not names.get("commonName"):
        return None
    user = Identity(
        username=names["commonName"][-1],
        uid="".join(names.get(_UID, ())[:1]),
        groups=tuple(names.get("organizationName", ())),
        extra={CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)},
    )
    return _authenticated(user)


def administrator(username: str) -> Identity:
    """The user of the static token that the server makes for itself."""
    return Identity(username, groups=(MASTERS,))


def bearer_token(authorization: str | None) -> str | None:
    """The token of an Authorization header; None for another scheme or no token at all."""
    parts = (authorization or "").strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer" or not parts[1]:
        return None
    return parts[1]


class Authenticator:
    """Finds the identity behind a request."""

    def __init__(self, accounts: ServiceAccountTokens, static: Mapping[str, Identity]) -> None:
        self._accounts = accounts
        # By hash, so that how long a look-up takes tells nothing about the tokens.
        self._static = {_digest(token): user for token, user in static.items()}

    @property
    def audiences(self) -> tuple[str, ...]:
        """Whom tokens for this server are addressed to."""
        return self._accounts.audiences

    def authenticate(self, certificate: Identity | None, authorization: str | None) -> Identity:
        """Who sends a request with this certificate user and Authorization header; 401 for a bad token."""
        if certificate is not None:
            return certificate
        token = bearer_token(authorization)
        if token is None:
            return NOBODY
        try:
            return self.check_token(token).identity
        except TokenError as error:
            raise errors.unauthorized() from error

    def check_token(self, token: str, audiences: Sequence[str] | None = None) -> Verified:
        """Whose token it is; `TokenError` if it is nobody's, or not for these audiences."""
        wanted = tuple(audiences) if audiences is not None else self.audiences
        user = self._static.get(_digest(token))
        shared = tuple(audience for audience in self.audiences if audience in wanted)
        if user is not None and shared:
            return Verified(_authenticated(user), shared)
        try:
            verified = self._accounts.authenticate(token, wanted)
        except TokenError as error:
            raise TokenError(f"[{_INVALID}, {error}]") from error
        if verified is None:
            raise TokenError(_INVALID)
        return Verified(_authenticated(verified.identity), verified.audiences)


def _authenticated(user: Identity) -> Identity:
    if user.username == ANONYMOUS or UNAUTHENTICATED in user.groups:
        return user
    return user.with_groups(AUTHENTICATED)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
