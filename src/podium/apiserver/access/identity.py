"""Who makes a request, and the names that Kubernetes reserves for users and groups.

A decision depends on the username and the groups only; uid and extra are carried for reviews and admission.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.api import names
from podium.api.kinds import Object

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
# The group that is above RBAC: a broken role must never lock the administrator out.
MASTERS = "system:masters"
NODES = "system:nodes"
SERVICE_ACCOUNTS = "system:serviceaccounts"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"

_ACCOUNT_PREFIX = "system:serviceaccount:"
_NODE_PREFIX = "system:node:"


class Identity(msgspec.Struct, frozen=True):
    """A user as authentication found it."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def user_info(self) -> Object:
        """The `UserInfo` object of reviews and admission; what is empty is left out."""
        info: Object = {"username": self.username} if self.username else {}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in sorted(self.extra.items())}
        return info

    def with_groups(self, *groups: str) -> Identity:
        """The same user in more groups; those it has stay where they are."""
        added = tuple(group for group in groups if group not in self.groups)
        return msgspec.structs.replace(self, groups=self.groups + added) if added else self


NOBODY = Identity(ANONYMOUS, groups=(UNAUTHENTICATED,))


def account_username(namespace: str, name: str) -> str:
    """The username of a service account."""
    return f"{_ACCOUNT_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups every service account of a namespace is in."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def split_account(username: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's username, or None for any other user."""
    if not username.startswith(_ACCOUNT_PREFIX):
        return None
    namespace, colon, name = username.removeprefix(_ACCOUNT_PREFIX).partition(":")
    if not colon or names.dns_label(namespace) or names.dns_subdomain(name):
        return None
    return namespace, name


def split_node(username: str) -> str | None:
    """The node's name in the username of a node, or None for any other user."""
    name = username.removeprefix(_NODE_PREFIX)
    return name if username.startswith(_NODE_PREFIX) and not names.dns_subdomain(name) else None
