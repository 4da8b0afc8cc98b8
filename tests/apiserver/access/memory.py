"""Roles, bindings and bound objects in dictionaries: the store as the access modules see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"


class Roles:
    """A `RoleReader` that tests fill; every `add` or `remove` moves the revision."""

    def __init__(self, *objects: Object) -> None:
        self.rbac_revision = 0
        self._objects: dict[tuple[str, str, str], Object] = {}
        for found in objects:
            self.add(found)

    def add(self, found: Object) -> None:
        self.rbac_revision += 1
        metadata = found["metadata"]
        key = (found["kind"], metadata.get("namespace", ""), metadata["name"])
        versioned = {**metadata, "uid": "u", "resourceVersion": str(self.rbac_revision)}
        self._objects[key] = {**found, "metadata": versioned}

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        self.rbac_revision += 1
        del self._objects[kind, namespace, name]

    def cluster_role(self, name: str) -> Object | None:
        return self._objects.get(("ClusterRole", "", name))

    def role(self, namespace: str, name: str) -> Object | None:
        return self._objects.get(("Role", namespace, name))

    def cluster_role_bindings(self) -> Iterable[Object]:
        return [found for (kind, _, _), found in self._objects.items() if kind == "ClusterRoleBinding"]

    def role_bindings(self, namespace: str) -> Iterable[Object]:
        return [
            found
            for (kind, home, _), found in self._objects.items()
            if kind == "RoleBinding" and home == namespace
        ]


class Core:
    """A `BoundObjects` that tests fill."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Object] = {}

    def add(self, resource: str, namespace: str, name: str, **fields: Any) -> Object:
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
        found = {"metadata": metadata | fields.pop("metadata", {}), **fields}
        self._objects[resource, namespace, name] = found
        return found

    def replace(self, resource: str, found: Object) -> None:
        metadata = found["metadata"]
        self._objects[resource, metadata["namespace"], metadata["name"]] = found

    def remove(self, resource: str, namespace: str, name: str) -> None:
        del self._objects[resource, namespace, name]

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((resource, namespace, name))


def role(name: str, *rules: Object, namespace: str = "", **metadata: Any) -> Object:
    """A ClusterRole, or a Role when it has a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "rules": list(rules),
    }


def rule(verbs: str, resources: str = "", groups: str = "", names: str = "", urls: str = "") -> Object:
    """A rule from words: `rule("get list", "pods pods/log")`; groups default to the core group."""
    found: Object = {"verbs": verbs.split()}
    if resources:
        found |= {"resources": resources.split(), "apiGroups": groups.split() or [""]}
    if names:
        found["resourceNames"] = names.split()
    if urls:
        found["nonResourceURLs"] = urls.split()
    return found


def binding(
    name: str, role_name: str, *subjects: Object, namespace: str = "", kind: str = "ClusterRole"
) -> Object:
    """A ClusterRoleBinding, or a RoleBinding when it has a namespace."""
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": RBAC, "name": name}


def group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": RBAC, "name": name}


def account(name: str, namespace: str = "") -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
