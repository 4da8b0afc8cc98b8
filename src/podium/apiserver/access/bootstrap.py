"""The roles and bindings that every cluster starts with, and how a start brings them up to date.

The table (`bootstrap.json`) was read from the real server by `tools/bootstrap/generate.py`. At each start
what is missing is made and what lacks rules or subjects gets them added; nothing that an administrator added
is taken away, and what is annotated `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from importlib.resources import files
from typing import NamedTuple

import msgspec

from podium.api.kinds import Object
from podium.apiserver.access import rules

# Kind, namespace (empty for cluster-wide kinds) and name to the stored object.
Lookup = Callable[[str, str, str], Object | None]

API_VERSION = "rbac.authorization.k8s.io/v1"
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"


class Action(Enum):
    """What to do with a written object."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"  # delete and create: the roleRef of a binding cannot change


class Write(NamedTuple):
    """One object to write, and how."""

    action: Action
    object: Object


class RoleFact(msgspec.Struct, omit_defaults=True):
    """One line of the table about a role; each rule is verbs, groups, resources, names, urls."""

    name: str
    namespace: str = ""
    rules: list[list[list[str]]] = []
    aggregates: str = ""  # takes in the roles labelled aggregate-to-<this>
    aggregated_to: str = ""


class BindingFact(msgspec.Struct, omit_defaults=True):
    """One line of the table about a binding; each subject is kind, name, namespace."""

    name: str
    role: tuple[str, str]
    subjects: list[tuple[str, str, str]]
    namespace: str = ""


class Facts(msgspec.Struct):
    """The whole table."""

    version: str
    roles: list[RoleFact]
    bindings: list[BindingFact]


def objects() -> Iterator[Object]:
    """All default roles and bindings; those of a namespace need it to exist (kube-system, kube-public)."""
    facts = msgspec.json.decode(files(__package__).joinpath("bootstrap.json").read_bytes(), type=Facts)
    yield from map(_role, facts.roles)
    yield from map(_binding, facts.bindings)


def pending(lookup: Lookup) -> Iterator[Write]:
    """What has to be written so that everything a cluster starts with is there."""
    for wanted in objects():
        metadata = wanted["metadata"]
        have = lookup(wanted["kind"], metadata.get("namespace", ""), metadata["name"])
        if have is None:
            yield Write(Action.CREATE, wanted)
        elif write := _reconcile(have, wanted):
            yield write


def _reconcile(have: Object, wanted: Object) -> Write | None:
    annotations = have["metadata"].get("annotations") or {}
    if annotations.get(_AUTOUPDATE) == "false":
        return None
    if "roleRef" in wanted and have.get("roleRef") != wanted["roleRef"]:
        return Write(Action.REPLACE, wanted)
    merged = {**have, "metadata": _with_metadata(have["metadata"], wanted["metadata"])}
    merged |= _missing_subjects(have, wanted) if "roleRef" in wanted else _missing_rules(have, wanted)
    if "aggregationRule" in have and "roleRef" not in wanted and "aggregationRule" not in wanted:
        del merged["aggregationRule"]
    return Write(Action.UPDATE, merged) if merged != have else None


def _with_metadata(have: Object, wanted: Object) -> Object:
    merged = dict(have)
    for field in ("annotations", "labels"):
        merged[field] = {**wanted.get(field, {}), **(have.get(field) or {})}
    return merged


def _missing_rules(have: Object, wanted: Object) -> Object:
    changes: Object = {}
    if have.get("rules") != wanted["rules"]:
        lacking = rules.uncovered(rules.parse_all(have), rules.parse_all(wanted))
        if lacking:
            changes["rules"] = [*(have.get("rules") or ()), *map(rules.to_object, lacking)]
    if "aggregationRule" in wanted:
        own = (have.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        missing = [s for s in wanted["aggregationRule"]["clusterRoleSelectors"] if s not in own]
        if missing:
            changes["aggregationRule"] = {"clusterRoleSelectors": [*own, *missing]}
    return changes


def _missing_subjects(have: Object, wanted: Object) -> Object:
    own = have.get("subjects") or []
    missing = [subject for subject in wanted.get("subjects", ()) if subject not in own]
    return {"subjects": [*own, *missing]} if missing else {}


def _role(fact: RoleFact) -> Object:
    kind = "Role" if fact.namespace else "ClusterRole"
    role = _object(kind, fact.name, fact.namespace)
    if fact.aggregated_to:
        role["metadata"]["labels"][f"{_AGGREGATE_TO}{fact.aggregated_to}"] = "true"
    if fact.aggregates:
        selector = {"matchLabels": {f"{_AGGREGATE_TO}{fact.aggregates}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    role["rules"] = [rules.to_object(rules.Rule(*map(tuple, rule))) for rule in fact.rules]
    return role


def _binding(fact: BindingFact) -> Object:
    binding = _object("RoleBinding" if fact.namespace else "ClusterRoleBinding", fact.name, fact.namespace)
    kind, name = fact.role
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subjects = [
        {"kind": kind, "name": name, "namespace": namespace}
        if kind == "ServiceAccount"
        else {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}
        for kind, name, namespace in fact.subjects
    ]
    return {**binding, "subjects": subjects} if subjects else binding


def _object(kind: str, name: str, namespace: str) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= {"labels": dict(_LABELS), "annotations": {_AUTOUPDATE: "true"}}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
