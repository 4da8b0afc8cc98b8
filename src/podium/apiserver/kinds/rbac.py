"""Roles and their bindings."""

from __future__ import annotations

from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_GROUP = "rbac.authorization.k8s.io"


class _RbacStrategy(KindStrategy):
    create_on_update = True

    def name_problems(self, name: str, prefix: bool) -> Any:
        return names.path_segment(name)


class RoleStrategy(_RbacStrategy):
    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        rules = obj.get("rules") or []
        return [e for i, r in enumerate(rules) for e in _rule(f"rules[{i}]", r, self.namespaced)]


class ClusterRoleStrategy(RoleStrategy):
    namespaced = False

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found = super().validate(obj, old)
        if (aggregation := obj.get("aggregationRule")) is not None:
            path, selectors = (
                "aggregationRule.clusterRoleSelectors",
                aggregation.get("clusterRoleSelectors") or [],
            )
            if not selectors:
                text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                found.append(errors.required(path, text))
            for i, selector in enumerate(selectors):
                found += metadata.validate_selector(f"{path}[{i}]", selector)
        return found


class RoleBindingStrategy(_RbacStrategy):
    _role_kinds: tuple[str, ...] = ("Role", "ClusterRole")

    def default(self, obj: Object) -> None:
        ref = obj.setdefault("roleRef", {})
        if not ref.get("apiGroup"):
            ref["apiGroup"] = _GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _GROUP

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        ref = obj.get("roleRef") or {}
        group, kind, name = ref.get("apiGroup") or "", ref.get("kind") or "", ref.get("name") or ""
        found = [] if group == _GROUP else [unsupported("roleRef.apiGroup", group, (_GROUP,))]
        if kind not in self._role_kinds:
            found.append(unsupported("roleRef.kind", kind, self._role_kinds))
        found += (
            each("roleRef.name", name, names.path_segment(name))
            if name
            else [errors.required("roleRef.name")]
        )
        subjects = obj.get("subjects") or []
        return found + [
            e for i, s in enumerate(subjects) for e in _subject(f"subjects[{i}]", s, self.namespaced)
        ]

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        ref, before = new.get("roleRef") or {}, old.get("roleRef") or {}
        if ref == before:
            return []
        shown = {name: ref.get(name[0].lower() + name[1:]) or "" for name in ("APIGroup", "Kind", "Name")}
        shown["APIGroup"] = ref.get("apiGroup") or ""
        return [errors.invalid("roleRef", shown, "cannot change roleRef")]


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    namespaced = False
    _role_kinds = ("ClusterRole",)


def _rule(path: str, rule: Object, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("verbs"):
        found.append(errors.required(f"{path}.verbs", "verbs must contain at least one value"))
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            found.append(errors.invalid(f"{path}.nonResourceURLs", urls, text))
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(errors.invalid(f"{path}.nonResourceURLs", urls, text))
        return found
    if not rule.get("apiGroups"):
        found.append(
            errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        )
    if not rule.get("resources"):
        found.append(errors.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _subject(path: str, subject: Object, namespaced: bool) -> list[FieldError]:
    name, group, kind = subject.get("name") or "", subject.get("apiGroup") or "", subject.get("kind") or ""
    found = [] if name else [errors.required(f"{path}.name")]
    match kind:
        case "ServiceAccount":
            if name:
                found += each(f"{path}.name", name, names.dns_subdomain(name))
            if group:
                found.append(unsupported(f"{path}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                found.append(errors.required(f"{path}.namespace"))
        case "User" | "Group":
            if group != _GROUP:
                found.append(unsupported(f"{path}.apiGroup", group, (_GROUP,)))
        case _:
            found.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return found
