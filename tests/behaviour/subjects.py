"""Who acts in a test about access, by own credentials or impersonated, and what they are granted."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from behaviour.scratch import Scratch, named
from behaviour.support import eventually
from harness.plain import Answer, Plain

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
RBAC_V1 = f"{RBAC}/v1"


class Actor:
    """A user whom the administrator impersonates."""

    def __init__(
        self, plain: Plain, username: str, *, group: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.username = username
        self._plain = plain
        self._headers = {"Impersonate-User": username, **(headers or {})}
        if group:
            self._headers["Impersonate-Group"] = group

    def request(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The same as `Plain.request`, as this user."""
        return self._plain.request(method, path, body, headers={**self._headers, **(headers or {})})


def plain_as(kubeconfig: Path, folder: Path, **user: Any) -> Plain:
    """The same server with other credentials: `token=...`, or nothing for an anonymous client."""
    config = yaml.safe_load(kubeconfig.read_text())
    for entry in config["clusters"]:
        if "certificate-authority" in entry["cluster"]:
            path = kubeconfig.parent / entry["cluster"]["certificate-authority"]
            entry["cluster"]["certificate-authority"] = str(path)
    for entry in config["users"]:
        entry["user"] = user
    other = folder / "kubeconfig"
    other.write_text(json.dumps(config))
    return Plain(other)


def whoami(server: Plain | Actor) -> Object:
    """Whom the server takes the sender for."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer.status == 201, answer.body.decode()
    user: Object = answer.json()["status"]["userInfo"]
    return user


def rule(verbs: str, resources: str, groups: str = "", names: Sequence[str] = ()) -> Object:
    """A rule with its parts as words: `rule("get list", "pods pods/log")`."""
    found: Object = {"verbs": verbs.split(), "apiGroups": groups.split() or [""]}
    found["resources"] = resources.split()
    return found | ({"resourceNames": list(names)} if names else {})


def subject(who: str, kind: str = "User") -> Object:
    """Who a binding is for."""
    return {"apiGroup": RBAC, "kind": kind, "name": who}


def role(name: str, *rules: Object) -> Object:
    """A Role of the test's namespace."""
    return named("Role", RBAC_V1, name, rules=list(rules))


def cluster_role(name: str, *rules: Object) -> Object:
    """A ClusterRole."""
    return named("ClusterRole", RBAC_V1, name, rules=list(rules))


def binding(name: str, to: tuple[str, str], *subjects: Object, cluster_wide: bool = False) -> Object:
    """A RoleBinding, or a ClusterRoleBinding, to a kind and name."""
    kind = "ClusterRoleBinding" if cluster_wide else "RoleBinding"
    reference = {"apiGroup": RBAC, "kind": to[0], "name": to[1]}
    return named(kind, RBAC_V1, name, roleRef=reference, subjects=list(subjects))


def grant(scratch: Scratch, who: Object, *rules: Object, cluster_wide: bool = False) -> None:
    """Give somebody these rules, and return when they count: the real server's authorizer lags a little."""
    marker = f"grant-{secrets.token_hex(4)}"
    name = f"{scratch.namespace}-{marker}"
    make = cluster_role if cluster_wide else role
    created = scratch.create(make(name, *rules, rule("get", marker)))
    scratch.create(binding(name, (created["kind"], name), who, cluster_wide=cluster_wide))
    attributes = {"verb": "get", "resource": marker, "namespace": scratch.namespace}
    eventually(lambda: may(scratch.plain, who, attributes))


def may(server: Plain, who: Object, attributes: Object) -> bool:
    """Whether a subject of a binding may do this, by SubjectAccessReview."""
    spec: Object = {"resourceAttributes": attributes}
    if who["kind"] == "ServiceAccount":
        spec["user"] = f"system:serviceaccount:{who['namespace']}:{who['name']}"
    elif who["kind"] == "User":
        spec["user"] = who["name"]
    else:
        spec |= {"user": "somebody", "groups": [who["name"]]}
    return bool(review(server, "SubjectAccessReview", spec)["allowed"])


def review(server: Plain | Actor, kind: str, spec: Object) -> Object:
    """The status of an access review."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = server.request("POST", f"/apis/authorization.k8s.io/v1/{kind.lower()}s", body)
    assert answer.status == 201, answer.body.decode()
    status: Object = answer.json()["status"]
    return status
