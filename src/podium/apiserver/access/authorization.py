"""One question to the authorizer, its answer, and how a "no" is worded.

`Attributes` is what RBAC, impersonation and the review kinds all speak; whoever answers implements
`Authorizer`. Only "allowed" and "no opinion" exist here, because RBAC has no rules that deny.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from podium.apiserver import errors
from podium.apiserver.access.identity import Identity
from podium.apiserver.errors import StatusError
from podium.text.quoting import quote


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """What somebody wants to do: a verb on a resource, or on a path when `path` is set."""

    user: Identity
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None


class Decision(msgspec.Struct, frozen=True):
    """Whether it is allowed, and by which binding; or what stood in the way of finding out."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Whoever decides."""

    def decide(self, attributes: Attributes) -> Decision: ...


def check(authorizer: Authorizer, attributes: Attributes) -> None:
    """Raise the 403 that a client sees, unless it is allowed."""
    decision = authorizer.decide(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision.reason)


def forbidden(attributes: Attributes, reason: str = "") -> StatusError:
    """The refusal of a request, with the reason that the authorizer gave."""
    # The path and the username come from the request: never echo what a browser could take for HTML.
    message = _message(attributes).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    detail = f"{message}: {reason}" if reason else message
    return errors.forbidden(attributes.group, attributes.resource, attributes.name, detail)


def _message(attributes: Attributes) -> str:
    start = f"User {quote(attributes.user.username)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{start} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = (
        f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    )
    return f"{start} resource {quote(resource)} in API group {quote(attributes.group)} {where}"
