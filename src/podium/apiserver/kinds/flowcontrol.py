"""FlowSchemas and PriorityLevelConfigurations: kept and checked, though nothing here acts on them."""

from __future__ import annotations

from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}


class FlowSchemaStrategy(KindStrategy):
    namespaced = False
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = 1000

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, (obj.get("metadata") or {}).get("name") or ""
        found = _precedence(spec.get("matchingPrecedence") or 0, name)
        method, methods = spec.get("distinguisherMethod"), ("ByNamespace", "ByUser")
        if method is not None and method.get("type") not in methods:
            shown = {"Type": method.get("type") or ""}
            found.append(unsupported("spec.distinguisherMethod.type", shown, methods))
        path, level = (
            "spec.priorityLevelConfiguration.name",
            (spec.get("priorityLevelConfiguration") or {}).get("name"),
        )
        if level:
            found += each(path, level, names.dns_subdomain(level))
        else:
            found.append(errors.required(path, "must reference a priority level"))
        rules = spec.get("rules") or []
        return found + [e for i, rule in enumerate(rules) for e in _rule(f"spec.rules[{i}]", rule)]


class PriorityLevelConfigurationStrategy(KindStrategy):
    namespaced = False
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field, shares in (("limited", 30), ("exempt", 0)):
            if (level := spec.get(field)) is not None:
                if level.get("nominalConcurrencyShares") is None:
                    level["nominalConcurrencyShares"] = shares
                if level.get("lendablePercent") is None:
                    level["lendablePercent"] = 0
        queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(field):
                    queuing[field] = value

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, (obj.get("metadata") or {}).get("name") or ""
        kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
        found: list[FieldError] = []
        if (name == "exempt") != (kind == "Exempt"):
            text = "must be 'Exempt' if and only if `name` is 'exempt'"
            found.append(errors.invalid("spec.type", kind, text))
        match kind:
            case "Exempt":
                if limited is not None:
                    found.append(errors.forbidden("spec.limited", "must be nil if the type is not Limited"))
            case "Limited":
                if exempt is not None:
                    found.append(errors.forbidden("spec.exempt", "must be nil if the type is Limited"))
                if limited is None:
                    found.append(errors.required("spec.limited", "must not be empty when type is Limited"))
                else:
                    found += _limited("spec.limited", limited)
            case "":
                found.append(errors.required("spec.type"))
            case _:
                found.append(unsupported("spec.type", kind, ("Exempt", "Limited")))
        return found


def _precedence(precedence: int, name: str) -> list[FieldError]:
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        return [errors.invalid(path, precedence, "must be a positive value")]
    if precedence > 10000:
        return [errors.invalid(path, precedence, "must not be greater than 10000")]
    if precedence == 1 and name != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        return [errors.invalid(path, precedence, text)]
    return []


def _rule(path: str, rule: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if not rule.get("subjects"):
        found.append(errors.required(f"{path}.subjects", "subjects must contain at least one value"))
    for i, subject in enumerate(rule.get("subjects") or ()):
        found += _subject(f"{path}.subjects[{i}]", subject)
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        found.append(errors.required(path, text))
    for i, one in enumerate(rule.get("resourceRules") or ()):
        found += _resource_rule(f"{path}.resourceRules[{i}]", one)
    for i, one in enumerate(rule.get("nonResourceRules") or ()):
        here = f"{path}.nonResourceRules[{i}]"
        found += _verbs(f"{here}.verbs", one.get("verbs") or [])
        if not one.get("nonResourceURLs"):
            text = "nonResourceURLs must contain at least one value"
            found.append(errors.required(f"{here}.nonResourceURLs", text))
        found += _urls(f"{here}.nonResourceURLs", one.get("nonResourceURLs") or [])
    return found


def _subject(path: str, subject: Object) -> list[FieldError]:
    kind = subject.get("kind") or ""
    wanted = _SUBJECTS.get(kind)
    if wanted is None:
        return [unsupported(f"{path}.kind", kind, sorted(_SUBJECTS))]
    found: list[FieldError] = []
    given = subject.get(wanted)
    if given is None:
        found.append(
            errors.required(f"{path}.{wanted}", f"{wanted} is required when subject kind is '{kind}'")
        )
    elif not given.get("name"):
        found.append(errors.required(f"{path}.{wanted}.name"))
    for other, field in _SUBJECTS.items():
        if field != wanted and subject.get(field) is not None:
            text = f"{field} is forbidden when subject kind is not '{other}'"
            found.append(errors.forbidden(f"{path}.{field}", text))
    return found


def _verbs(path: str, verbs: list[str]) -> list[FieldError]:
    if not verbs:
        return [errors.required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        text = "if '*' is present, must not specify other verbs"
        return [errors.invalid(path, verbs, text)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [unsupported(path, verbs, _VERBS)]


def _urls(path: str, urls: list[str]) -> list[FieldError]:
    if "*" in urls:
        text = "if '*' is present, must not specify other non-resource URLs"
        return [errors.invalid(path, urls, text)] if len(urls) > 1 else []
    found: list[FieldError] = []
    for i, url in enumerate(urls):
        if not url:
            text = "must not be empty"
        elif url == "/":
            continue
        elif not url.startswith("/"):
            text = "must start with slash"
        elif " " in url:
            text = "must not contain white-space"
        elif "//" in url:
            text = "must not contain double slash"
        elif "*" in url[:-1] or (url.endswith("*") and not url.endswith("/*")):
            text = "wildcard can only do suffix matching"
        else:
            continue
        found.append(errors.invalid(f"{path}[{i}]", url, text))
    return found


def _resource_rule(path: str, rule: Object) -> list[FieldError]:
    found = _verbs(f"{path}.verbs", rule.get("verbs") or [])
    for field, one, many in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values = rule.get(field) or []
        if not values:
            found.append(errors.required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        elif len(values) > 1 and "*" in values:
            text = f"if '*' is present, must not specify other {many}"
            found.append(errors.invalid(f"{path}.{field}", values, text))
    if not rule.get("namespaces") and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        found.append(errors.required(f"{path}.namespaces", text))
    return found


def _limited(path: str, limited: Object) -> list[FieldError]:
    found: list[FieldError] = []
    shares, lendable = limited.get("nominalConcurrencyShares") or 0, limited.get("lendablePercent")
    if shares < 0:
        found.append(
            errors.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
        )
    response = limited.get("limitResponse") or {}
    kind, queuing, here = response.get("type") or "", response.get("queuing"), f"{path}.limitResponse"
    if not kind:
        found.append(errors.required(f"{here}.type"))
    elif kind not in ("Queue", "Reject"):
        found.append(unsupported(f"{here}.type", kind, ("Queue", "Reject")))
    elif kind == "Reject" and queuing is not None:
        text = "must be nil if limited.limitResponse.type is not Limited"
        found.append(errors.forbidden(f"{here}.queuing", text))
    elif kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            found.append(errors.required(f"{here}.queuing", text))
        else:
            found += _queuing(f"{here}.queuing", queuing)
    if lendable is not None and not 0 <= lendable <= 100:
        found.append(errors.invalid(f"{path}.lendablePercent", lendable, names.between(0, 100)))
    return found


def _queuing(path: str, queuing: Object) -> list[FieldError]:
    found = [
        errors.invalid(f"{path}.{field}", queuing.get(field) or 0, "must be positive")
        for field in ("queueLengthLimit", "queues", "handSize")
        if (queuing.get(field) or 0) <= 0
    ]
    hand, queues = queuing.get("handSize") or 0, queuing.get("queues") or 0
    if hand > queues > 0:
        text = f"should not be greater than queues ({queues})"
        found.append(errors.invalid(f"{path}.handSize", hand, text))
    return found
