"""What the server says about itself: groups, versions and resources, plain and aggregated.

Documents are made from the registry when it changed and kept as bytes with an ETag, because every kubectl
call may ask for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from podium.api.kinds import Object
from podium.apiserver.registry import Registry, Resource, version_priority
from podium.apiserver.store import encode

_AGGREGATED = "APIGroupDiscoveryList"
_AGGREGATED_TYPE = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_AGGREGATED}"
# The order in which clients look for a resource that several groups have (`kubectl get events`).
_GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)


class Document:
    """A discovery document and its validator."""

    __slots__ = ("aggregated", "body", "content_type", "etag")

    def __init__(self, value: Object, *, aggregated: bool = False) -> None:
        self.body = encode(value)
        self.aggregated = aggregated
        self.content_type = _AGGREGATED_TYPE if aggregated else "application/json"
        self.etag = f'"{hashlib.sha256(self.body).hexdigest().upper()}"'


class Discovery:
    """Discovery documents by path."""

    def __init__(self, registry: Registry, address: str = "") -> None:
        self._registry = registry
        self.address = address
        self._revision = -1
        self._documents: dict[tuple[str, bool], Document] = {}

    def find(self, path: str, headers: Mapping[str, str]) -> Document | None:
        """The document for a path in the form the client accepts; None if nothing is there."""
        if self._revision != self._registry.revision:
            self._documents.clear()
            self._revision = self._registry.revision
        aggregated = path in ("/api", "/apis") and _wants_aggregated(headers.get("Accept", ""))
        key = (path, aggregated)
        document = self._documents.get(key)
        if document is None:
            document = self._build(path, aggregated)
            if document is not None:
                self._documents[key] = document
        return document

    def groups(self) -> list[str]:
        """Served groups without the core, in the order clients should try them."""
        names = [name for name in self._registry.groups() if name]
        known = {name: position for position, name in enumerate(_GROUP_ORDER)}
        return sorted(names, key=lambda name: (known.get(name, len(known)), name))

    def _build(self, path: str, aggregated: bool) -> Document | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api" | "apis" as root] if aggregated:
                return self._aggregated(core=root == "api")
            case ["api"]:
                client_cidr = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
                return Document(
                    {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": client_cidr}
                )
            case ["apis"]:
                groups = [self._group(name) for name in self.groups()]
                return Document({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            case ["apis", group] if group in self._registry.groups():
                return Document({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ["api", version]:
                return self._resource_list("", version)
            case ["apis", group, version]:
                return self._resource_list(group, version)
        return None

    def _group(self, group: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._registry.groups()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> Document | None:
        if version not in self._registry.groups().get(group, ()):
            return None
        entries = []
        for resource in sorted(self._registry.in_version(group, version), key=lambda r: r.plural):
            entries += _plain_entries(resource)
        group_version = f"{group}/{version}" if group else version
        head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
        return Document({**head, "resources": entries})

    def _aggregated(self, *, core: bool) -> Document:
        items = []
        for group in [""] if core else self.groups():
            versions = [
                {
                    "version": version,
                    "resources": [
                        _aggregated_entry(resource)
                        for resource in sorted(
                            self._registry.in_version(group, version), key=lambda r: r.plural
                        )
                    ],
                    "freshness": "Current",
                }
                for version in sorted(self._registry.groups()[group], key=version_priority)
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": versions})
        value = {
            "kind": _AGGREGATED,
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
        return Document(value, aggregated=True)


def _wants_aggregated(accept: str) -> bool:
    wanted = {"application/json", "v=v2", "g=apidiscovery.k8s.io", f"as={_AGGREGATED}"}
    return any(wanted <= {part.strip() for part in clause.split(";")} for clause in accept.split(","))


def _plain_entries(resource: Resource) -> list[Object]:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.extra.get("storageVersionHash"):
        entry["storageVersionHash"] = resource.extra["storageVersionHash"]
    entries = [entry]
    for name, sub in sorted(resource.subresources.items()):
        below: Object = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if (sub["group"], sub["version"]) != (resource.group, resource.version):
            if sub["group"]:
                below["group"] = sub["group"]
            below["version"] = sub["version"]
        entries.append({**below, "kind": sub["kind"], "verbs": list(sub["verbs"])})
    return entries


def _aggregated_entry(resource: Resource) -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Object = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": {key: sub[key] for key in ("group", "version", "kind")},
                "verbs": list(sub["verbs"]),
            }
            for name, sub in sorted(resource.subresources.items())
        ]
    return entry
