"""Which rights go into the ClusterServiceVersion, and which RBAC objects are shipped beside it.

Whoever installs a bundle makes the operator's accounts, and gives them the rights that the
ClusterServiceVersion lists: rules of roles that a RoleBinding gives to such an account become `permissions`,
rules that a ClusterRoleBinding gives become `clusterPermissions`. Everything else is shipped as it is. A role
that both an operator's account and somebody else are bound to goes both ways.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.findings import Finding, Severity
from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.model import items, member
from podium.schema import coerce, facts

GROUP = "rbac.authorization.k8s.io"
KINDS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


@dataclass(frozen=True, slots=True)
class Rights:
    """What `split` found: two lists for the ClusterServiceVersion, and the objects that stay."""

    permissions: tuple[Object, ...]
    cluster_permissions: tuple[Object, ...]
    shipped: tuple[Authored, ...]
    findings: tuple[Finding, ...]


def split(objects: Sequence[Authored], accounts: Collection[str]) -> Rights:
    """The rights of the operator's accounts, and all RBAC objects that are not only theirs."""
    roles = {(item.kind, item.name): item for item in objects if item.kind in ("Role", "ClusterRole")}
    bindings = [item for item in objects if item.kind in ("RoleBinding", "ClusterRoleBinding")]
    rules: dict[str, dict[str, list[Any]]] = {"RoleBinding": {}, "ClusterRoleBinding": {}}
    shipped: list[Authored] = []
    used: set[tuple[str, str]] = set()
    needed: set[tuple[str, str]] = set()
    for binding in bindings:
        reference = _role_of(binding)
        ours, others = _subjects(binding, accounts)
        role = roles.get(reference)
        if role is None or not ours:
            shipped.append(binding)
            needed.add(reference)
            continue
        used.add(reference)
        for account in ours:
            rules[binding.kind].setdefault(account, []).extend(_rules(role))
        if others:
            shipped.append(binding.with_object({**binding.object, "subjects": others}))
            needed.add(reference)
    shipped += [role for key, role in roles.items() if key not in used or key in needed]
    return Rights(
        _permissions(rules["RoleBinding"]),
        _permissions(rules["ClusterRoleBinding"]),
        tuple(shipped),
        tuple(_aggregated(roles[key]) for key in sorted(used) if "aggregationRule" in roles[key].object),
    )


def powerless(
    deployments: Iterable[Authored], accounts: Sequence[Authored], objects: Iterable[Authored]
) -> list[Finding]:
    """Deployments whose account has neither a manifest nor a binding, which is mostly a slip of the pen."""
    known = {_written_name(item) for item in accounts}
    current = {item.name for item in accounts}
    bound = {
        str(subject.get("name"))
        for item in objects
        for subject in items(item.object, "subjects")
        if isinstance(subject, dict) and subject.get("kind") == "ServiceAccount"
    }
    findings = []
    for item in deployments:
        name = member(item.object, "spec", "template", "spec").get("serviceAccountName")
        if not name or name in current | bound:
            continue
        close = difflib.get_close_matches(str(name), sorted(known), n=1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        there = (
            f"accounts with a manifest are {', '.join(sorted(known))}" if known else "there are no accounts"
        )
        message = (
            f"its serviceAccountName {name} has neither a ServiceAccount nor a role that is bound to it, "
            f"so the operator may do nothing; {there}{meant}"
        )
        rule = "service-account-without-permissions"
        findings.append(Finding(Severity.WARNING, rule, message, item.title, item.place))
    return findings


def _written_name(item: Authored) -> str:
    """An object's name as its author wrote it, before any overlay."""
    return item.former[0].name if item.former else item.name


def _role_of(binding: Authored) -> tuple[str, str]:
    reference = binding.object.get("roleRef")
    if not isinstance(reference, dict) or reference.get("apiGroup", "") not in ("", GROUP):
        return "", ""
    kind = str(reference.get("kind"))
    # A ClusterRoleBinding can only give a ClusterRole.
    if binding.kind == "ClusterRoleBinding" and kind != "ClusterRole":
        return "", ""
    return kind, str(reference.get("name"))


def _subjects(binding: Authored, accounts: Collection[str]) -> tuple[list[str], list[Any]]:
    """The operator's accounts among a binding's subjects, and all other subjects."""
    ours: list[str] = []
    others: list[Any] = []
    subjects = binding.object.get("subjects")
    for subject in subjects if isinstance(subjects, list) else ():
        if (
            isinstance(subject, dict)
            and subject.get("kind") == "ServiceAccount"
            and subject.get("name") in accounts
        ):
            ours.append(subject["name"])
        else:
            others.append(subject)
    return list(dict.fromkeys(ours)), others


def _rules(role: Authored) -> list[Any]:
    rules = role.object.get("rules")
    fact = facts.load().struct("rbac/v1.PolicyRule")
    return (
        [coerce.coerce(copy.deepcopy(rule), fact).object for rule in rules] if isinstance(rules, list) else []
    )


def _permissions(rules: dict[str, list[Any]]) -> tuple[Object, ...]:
    listed: Iterable[tuple[str, list[Any]]] = sorted(rules.items())
    return tuple({"serviceAccountName": account, "rules": each} for account, each in listed if each)


def _aggregated(role: Authored) -> Finding:
    return Finding(
        Severity.WARNING,
        "aggregated-role",
        "its rules are gathered in a cluster, so they cannot be put into the ClusterServiceVersion; "
        "list the rules in the role",
        role.title,
        role.place,
    )
