"""ServiceAccounts, roles and bindings from a ClusterServiceVersion's permissions.

An operator that watches the whole cluster gets its namespaced permissions as ClusterRoles, and with them
the right to see namespaces, which it could not know it would need.
"""

from __future__ import annotations

from podium.api.kinds import Object
from podium.bundle.convert.contents import Contents, Permission
from podium.bundle.convert.objects import new_object
from podium.bundle.convert.options import Options

_GROUP = "rbac.authorization.k8s.io"
_API_VERSION = f"{_GROUP}/v1"
_SEE_NAMESPACES: Object = {
    "verbs": ["get", "list", "watch"],
    "apiGroups": [""],
    "resources": ["namespaces"],
}


def service_accounts(contents: Contents, options: Options) -> list[Object]:
    """The accounts that permissions are given to, each once; the default account exists anyway."""
    permissions = (*contents.permissions, *contents.cluster_permissions)
    names = dict.fromkeys(permission.account for permission in permissions)
    names.pop("default", None)
    return [new_object("v1", "ServiceAccount", name, options.namespace) for name in names]


def roles(contents: Contents, options: Options) -> list[Object]:
    """A Role and its binding for each permission in each watched namespace; none if all are watched."""
    if options.watches_all:
        return []
    return [
        obj
        for namespace in options.watched
        for permission in contents.permissions
        for obj in _granted(contents, permission, options, namespace)
    ]


def cluster_roles(contents: Contents, options: Options) -> list[Object]:
    """A ClusterRole and its binding for each permission that is meant for the whole cluster."""
    permissions = [*contents.cluster_permissions]
    if options.watches_all:
        permissions += [_promoted(permission) for permission in contents.permissions]
    return [obj for permission in permissions for obj in _granted(contents, permission, options)]


def _promoted(permission: Permission) -> Permission:
    return Permission(permission.service_account, [*(permission.rules or ()), _SEE_NAMESPACES])


def _granted(
    contents: Contents, permission: Permission, options: Options, namespace: str = ""
) -> tuple[Object, Object]:
    """A role that holds the permission and the binding that gives it; without a namespace for the cluster."""
    account, rules = permission.account, permission.rules
    named_after = {"serviceAccountName": permission.service_account, "rules": rules}
    name = options.unique_name(f"{contents.name}-{account}", named_after)
    kind = "Role" if namespace else "ClusterRole"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": options.namespace}
    role = new_object(_API_VERSION, kind, name, namespace, rules=None if rules is None else [*rules])
    binding = new_object(_API_VERSION, f"{kind}Binding", name, namespace, subjects=[subject])
    binding["roleRef"] = {"apiGroup": _GROUP, "kind": kind, "name": name}
    return role, binding
