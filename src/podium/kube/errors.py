"""What can go wrong when talking to a Kubernetes API server, sorted by what a caller can do about it.

KubeError
 ├ APIError                 the server answered with a Status
 │   ├ BadRequest           400  fix the request
 │   ├ Unauthorized         401  log in again
 │   ├ Forbidden            403  ask for permission
 │   ├ NotFound             404  create it, or give up
 │   ├ MethodNotAllowed     405  the resource does not know this verb
 │   ├ AlreadyExists        409  take the existing one, or choose another name
 │   ├ Conflict             409  somebody else wrote first: read again and retry
 │   ├ ApplyConflict        409  another field manager owns the field: force, or give way
 │   ├ Gone                 410  the version is too old: list again
 │   ├ TooLarge             413  send less
 │   ├ UnsupportedMedia     415  (or 406) use another patch type or encoding
 │   ├ Invalid              422  fix the object
 │   ├ TooManyRequests      429  nothing was done: wait `retry_after` seconds, then retry
 │   └ ServerError          5xx  retry later
 ├ NoMatch                  no such kind is served: install its definition, or wait for it
 ├ ConnectionFailed         nothing was answered: retry (`sent` says whether the server may have acted)
 ├ ProtocolError            the answer is not what an API server says: is this one?
 └ ConfigError              kubeconfig, credentials, certificates: fix the set-up
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_BODY_SHOWN = 512


class KubeError(Exception):
    """Anything that went wrong between this process and an API server."""


class APIError(KubeError):
    """The server answered that it will not do this; `status` is its Status object."""

    def __init__(self, status: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.status: dict[str, Any] = dict(status)
        self.code: int = _integer(status.get("code"))
        self.reason: str = _text(status.get("reason"))
        self.message: str = _text(status.get("message")) or f"the server answered {self.code or 'an error'}"
        details = status.get("details")
        self.details: dict[str, Any] = details if isinstance(details, dict) else {}
        self.retry_after: float | None = retry_after
        super().__init__(self.message)

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The single complaints of which the error consists, each with `reason`, `message` and `field`."""
        causes = self.details.get("causes")
        return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.status, self.retry_after)


class BadRequest(APIError):
    """The request itself makes no sense to the server."""


class Unauthorized(APIError):
    """The server does not know who is asking."""


class Forbidden(APIError):
    """The server knows who is asking and will not do this for them."""


class NotFound(APIError):
    """The object, or the whole resource, does not exist."""

    @property
    def names_object(self) -> bool:
        """Whether the answer is about one object, and not about a path that nobody serves."""
        return bool(self.details.get("name"))


class MethodNotAllowed(APIError):
    """The resource exists, but does not know this verb."""


class AlreadyExists(APIError):
    """An object of this name is already there."""


class Conflict(APIError):
    """The object changed since it was read: read it again and retry."""


class ApplyConflict(APIError):
    """Another field manager owns what was applied; `causes` lists the fields. Force, or give way."""


class Gone(APIError):
    """The resource version or continue token is too old: list again."""


class TooLarge(APIError):
    """The request body is larger than the server takes."""


class UnsupportedMedia(APIError):
    """The server does not speak this encoding or patch type here."""


class Invalid(APIError):
    """The object breaks the rules of its kind; `causes` lists the fields."""


class TooManyRequests(APIError):
    """The server did nothing because it is busy, or a disruption budget forbids it for now."""


class ServerError(APIError):
    """The server, or something in front of it, failed; the same request may work later."""


class NoMatch(KubeError):
    """The server serves no such kind or resource (yet)."""


class ConnectionFailed(KubeError):
    """No answer arrived. `sent` is false only if the server certainly never saw the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_connection_failed, (str(self), self.sent)


class ProtocolError(KubeError):
    """The answer cannot be understood: broken JSON, or something that is not a Kubernetes API."""


class ConfigError(KubeError):
    """The set-up is wrong; the message says which file and entry, and what to do."""


_BY_REASON: dict[str, type[APIError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "RequestEntityTooLarge": TooLarge,
    "UnsupportedMediaType": UnsupportedMedia,
    "NotAcceptable": UnsupportedMedia,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": ServerError,
    "ServerTimeout": ServerError,
    "Timeout": ServerError,
    "ServiceUnavailable": ServerError,
    "StoreReadError": ServerError,
}

_BY_CODE: dict[int, type[APIError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: UnsupportedMedia,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    415: UnsupportedMedia,
    422: Invalid,
    429: TooManyRequests,
}


def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> APIError:
    """The exception for a Status object; its reason counts for more than its code."""
    code = _integer(status.get("code"))
    kind = _BY_REASON.get(_text(status.get("reason"))) or _BY_CODE.get(code)
    if kind is None:
        kind = ServerError if code >= 500 else APIError
    details = status.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    if retry_after is None and isinstance(seconds, int) and seconds > 0:
        retry_after = float(seconds)
    error = kind(status, retry_after=retry_after)
    if kind is Conflict and any(cause.get("reason") == "FieldManagerConflict" for cause in error.causes):
        return ApplyConflict(status, retry_after=retry_after)
    return error


def from_answer(code: int, body: bytes, *, what: str, retry_after: float | None = None) -> APIError:
    """The exception for an HTTP error answer, whether its body is a Status or a proxy's error page."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        # Some servers leave the code out of the body; the answer's own is as good.
        return from_status({**status, "code": status.get("code") or code}, retry_after=retry_after)
    shown = body[:_BODY_SHOWN].decode("utf-8", "replace").strip()
    if len(body) > _BODY_SHOWN:
        shown += " …"
    message = f"{what}: the server answered {code}" + (f": {shown}" if shown else " without an explanation")
    synthetic = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return from_status(synthetic, retry_after=retry_after)


def _rebuild(kind: type[APIError], status: dict[str, Any], retry_after: float | None) -> APIError:
    return kind(status, retry_after=retry_after)


def _rebuild_connection_failed(message: str, sent: bool) -> ConnectionFailed:
    return ConnectionFailed(message, sent=sent)


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
