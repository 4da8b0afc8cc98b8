"""Failures the API server answers with: each is an exception that carries a Kubernetes Status object.

    StatusError
     └── made by the functions below, one per reason; clients match on code, reason and message

Messages are part of the API: clients show and sometimes parse them, so they read as kube-apiserver's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.api.kinds import Object
from podium.schema.fielderrors import FieldError


class StatusError(Exception):
    """A request failed; `status` is the body of the answer and `code` its HTTP status."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.list_meta: Object = {}

    @property
    def status(self) -> Object:
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body

    @property
    def retry_after(self) -> int | None:
        return (self.details or {}).get("retryAfterSeconds")


def _qualified(name: str, group: str) -> str:
    return f"{name}.{group}" if group else name


def _details(group: str, kind: str, name: str = "", **more: Any) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details | more


def not_found(group: str, resource: str, name: str) -> StatusError:
    message = f'{_qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(group, resource, name))


def no_such_path() -> StatusError:
    """The path names no resource that is served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, resource: str, name: str) -> StatusError:
    message = f'{_qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(group, resource, name))


def name_generation_failed(group: str, resource: str, name: str) -> StatusError:
    message = (
        f'{_qualified(resource, group)} "{name}" already exists, '
        "the server was not able to generate a unique name for the object"
    )
    return StatusError(409, "AlreadyExists", message, _details(group, resource, name, retryAfterSeconds=1))


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    qualified = _qualified(resource, group)
    subject = f'{qualified} "{name}" is forbidden' if name else f"{qualified} is forbidden"
    if not resource:
        subject = "forbidden"
    return StatusError(403, "Forbidden", f"{subject}: {why}", _details(group, resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, resource: str, name: str, why: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(group, resource, name))


def apply_conflict(message: str, causes: Sequence[Object]) -> StatusError:
    return StatusError(409, "Conflict", message, {"causes": list(causes)})


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """The object breaks rules; all of them are listed, each once."""
    causes = [{"reason": e.cause.value, "message": e.body, "field": e.path} for e in errors]
    texts = list(dict.fromkeys(str(e) for e in errors))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{_qualified(kind, group)} "{name}" is invalid'
    details = _details(group, kind, name, causes=causes)
    return StatusError(422, "Invalid", f"{message}: {joined}" if texts else message, details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unclassified(message: str) -> StatusError:
    """A failure that upstream passes on as a bare error: it becomes a 500 without a reason."""
    return StatusError(500, "", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def not_acceptable(supported: str) -> StatusError:
    message = f"only the following media types are accepted: {supported}"
    return StatusError(406, "NotAcceptable", message)


def no_representation(available: str) -> StatusError:
    """The Accept header names nothing that the route could answer."""
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return StatusError(406, "NotAcceptable", message, {})


def unsupported_media_type(supported: Sequence[str]) -> StatusError:
    accepted = ", ".join(supported)
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def timeout(message: str, retry_after: int, causes: Sequence[Object] = ()) -> StatusError:
    details: Object = {"retryAfterSeconds": retry_after}
    if causes:
        details["causes"] = list(causes)
    return StatusError(504, "Timeout", f"Timeout: {message}", details)


def too_many_requests(message: str, retry_after: int) -> StatusError:
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after})


def unexplained(message: str) -> StatusError:
    """A failure that kube-apiserver has no reason for; it says 500 even where the request is at fault."""
    return StatusError(500, "", message)


def internal(message: str) -> StatusError:
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)
