"""One resource as the server describes it: its names, its verbs, and where its objects live."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from podium.api.kinds import GVK

# What may stand in a path segment unescaped (RFC 3986); `system:node` is a common name of a ClusterRole.
_SAFE = "-._~!$&'()*+,;=:@"


class Resource(msgspec.Struct, frozen=True):
    """A kind and the path under which it is served."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def gvk(self) -> GVK:
        """The kind of the objects."""
        return GVK(self.group, self.version, self.kind)

    @property
    def qualified(self) -> str:
        """The name that kubectl and RBAC use: `deployments.apps`, or `pods` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of its subresource.

        Without a namespace this is the collection across all namespaces.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts += [_segment(part) for part in subresource.split("/")]
        return "/".join(parts)


def _segment(text: str) -> str:
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be the name of a Kubernetes object")
    return quote(text, safe=_SAFE)
