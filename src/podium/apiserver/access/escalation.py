"""Nobody may hand out more than they hold: the checks on writing roles and bindings.

A role may contain only rules its writer has, unless the writer has the verb `escalate` on it; a binding may
refer only to a role whose rules its writer has, unless the writer has the verb `bind` on that role. Changes
of owner references and finalizers alone pass, or the garbage collector could not delete roles.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.access import rules
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.identity import MASTERS
from podium.apiserver.access.rbac import GROUP, Rbac
from podium.apiserver.access.rules import Rule
from podium.apiserver.access.wording import aggregate
from podium.text.quoting import quote, quote_all

_GC_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields")
_ROLE_RESOURCES = {"ClusterRole": "clusterroles", "Role": "roles"}


def check_role(rbac: Rbac, request: Attributes, new: Object, old: Object | None = None) -> None:
    """Refuse a role (`old` is None for a create) that would give what its writer has not got."""
    if MASTERS in request.user.groups or _may(rbac, request, "escalate"):
        return
    if old is not None and _only_gc_fields_change(new, old):
        return
    _check_held(rbac, request, new, rules.parse_all(new))
    if _aggregates(new) or (old is not None and _aggregates(old)):
        owned = [rule for rule, _ in rbac.grants(request.user, request.namespace).rules]
        if rules.uncovered(owned, rules.FULL_AUTHORITY):
            detail = "must have cluster-admin privileges to use the aggregationRule"
            raise errors.forbidden(GROUP, request.resource, _name(new), detail)


def check_binding(rbac: Rbac, request: Attributes, new: Object, old: Object | None = None) -> None:
    """Refuse a binding (`old` is None for a create) to a role with rules that its writer has not got."""
    if MASTERS in request.user.groups:
        return
    if old is not None and _only_gc_fields_change(new, old):
        return
    reference = new.get("roleRef") or {}
    if _may_bind(rbac, request, reference):
        return
    wanted = rbac.rules_of(reference, request.namespace)
    if wanted is None:
        # The real server names the resource of the request here, not that of the role.
        raise errors.not_found(GROUP, request.resource, reference.get("name", ""))
    _check_held(rbac, request, new, wanted)


def _check_held(rbac: Rbac, request: Attributes, new: Object, wanted: Sequence[Rule]) -> None:
    grants = rbac.grants(request.user, request.namespace)
    lacking = rules.uncovered([rule for rule, _ in grants.rules], wanted)
    if not lacking:
        return
    shown = "\n".join(sorted({str(rule) for rule in rules.compact(lacking)}))
    user = request.user
    detail = (
        f"user {quote(user.username)} (groups={quote_all(user.groups)}) is attempting to grant "
        f"RBAC permissions not currently held:\n{shown}"
    )
    if grants.missing:
        absent = (f"{request.resource}.{GROUP} {quote(missing.name)} not found" for missing in grants.missing)
        detail += f"; resolution errors: [{aggregate(absent)}]"
    raise errors.forbidden(GROUP, request.resource, _name(new), detail)


def _may(rbac: Rbac, request: Attributes, verb: str) -> bool:
    return rbac.decide(msgspec.structs.replace(request, verb=verb, subresource="")).allowed


def _may_bind(rbac: Rbac, request: Attributes, reference: Object) -> bool:
    resource = _ROLE_RESOURCES.get(reference.get("kind", ""))
    if resource is None:
        return False
    question = Attributes(
        user=request.user,
        verb="bind",
        group=reference.get("apiGroup", ""),
        resource=resource,
        namespace=request.namespace,
        name=reference.get("name", ""),
    )
    return rbac.decide(question).allowed


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_gc_fields_change(new: Object, old: Object) -> bool:
    return _comparable(new) == _comparable(old)


def _comparable(role: Object) -> Object:
    metadata = {key: value for key, value in role["metadata"].items() if key not in _GC_FIELDS and value}
    return {key: value for key, value in role.items() if key != "metadata" and value} | {"metadata": metadata}


def _name(role: Object) -> str:
    return str(role["metadata"].get("name") or "")
