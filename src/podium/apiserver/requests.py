"""What a request is about, read from its method, path and query: the basis of authorization and routing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api import selectors

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
# Below /namespaces/NAME these are subresources of the namespace, not resources in it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A parsed request; `resource` is empty for paths outside the API (`/version`, `/healthz`, discovery)."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows a subresource that takes a path (proxy)

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


def parse(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Read a request the way kube-apiserver does, so that RBAC rules mean the same."""
    verb = _VERBS.get(method, method.lower())
    parts = [part for part in path.split("/") if part]
    plain = RequestInfo(method.lower(), path)
    if not parts or parts[0] not in ("api", "apis"):
        return plain
    if parts[0] == "api":
        if len(parts) < 3:
            return plain
        group, version, rest = "", parts[1], parts[2:]
    else:
        if len(parts) < 4:
            return plain
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if resource == "namespaces" and not group:
        namespace = name
    if not name:
        verb, name = _collection_verb(verb, query)
    return RequestInfo(verb, path, group, version, namespace, resource, name, subresource, "/".join(rest[3:]))


def _collection_verb(verb: str, query: Mapping[str, str]) -> tuple[str, str]:
    """Requests on a collection have verbs of their own; a selector on one name counts as that name."""
    if verb == "delete":
        return "deletecollection", ""
    if verb != "get":
        return verb, ""
    name = _selected_name(query.get("fieldSelector", ""))
    watching = query.get("watch", "false").lower() not in ("false", "0", "f")
    return ("watch" if watching else "list"), name


def _selected_name(selector: str) -> str:
    """The one name that a field selector allows, read as the selection reads it; empty if it allows more."""
    try:
        terms = selectors.parse_fields(selector)
    except selectors.SelectorError:
        return ""  # refused after authorization
    return next((term.value for term in terms if term.equal and term.path == "metadata.name"), "")
