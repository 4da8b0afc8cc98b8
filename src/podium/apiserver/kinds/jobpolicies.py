"""When a Job counts as failed or as done: its failure and success policies, and lists of indexes."""

from __future__ import annotations

import re
from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds.checks import each, not_negative, unsupported
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_OPERATORS = ("In", "NotIn")


def validate_managed_by(path: str, manager: str) -> list[FieldError]:
    found = domain_prefixed_path(path, manager)
    return found + ([errors.too_long(path, 63)] if len(manager) > 63 else [])


def domain_prefixed_path(path: str, value: str) -> list[FieldError]:
    """A DNS subdomain, a slash, and a path that fits into a URL."""
    if not value:
        return [errors.required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [errors.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = each(path, host, names.dns_subdomain(host))
    if not re.fullmatch(names.HTTP_PATH_FMT, rest):
        found.append(errors.invalid(path, rest, names.pattern("Invalid path", names.HTTP_PATH_FMT)))
    return found


def validate_failure_policy(path: str, spec: Object) -> list[FieldError]:
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    found = [errors.too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {c.get("name") for f in ("containers", "initContainers") for c in pod.get(f) or ()}
    for i, rule in enumerate(rules):
        here, codes, conditions = (
            f"{path}.rules[{i}]",
            rule.get("onExitCodes"),
            rule.get("onPodConditions") or [],
        )
        found += _action(f"{here}.action", rule.get("action") or "", spec)
        if codes is not None:
            found += _exit_codes(f"{here}.onExitCodes", codes, containers)
        for j, pattern in enumerate(conditions):
            kind, where = pattern.get("type") or "", f"{here}.onPodConditions[{j}]"
            found += each(f"{where}.type", kind, names.qualified_name(kind))
            if (status := pattern.get("status") or "") not in _STATUSES:
                found.append(unsupported(f"{where}.status", status, _STATUSES))
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            found.append(errors.invalid_whole(here, text))
        if codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            found.append(errors.invalid_whole(here, text))
    return found


def validate_success_policy(path: str, spec: Object) -> list[FieldError]:
    policy = spec.get("successPolicy") or {}
    rules, completions = policy.get("rules") or [], spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed":
        return [errors.invalid(path, _internal(policy), "requires indexed completion mode")]
    found: list[FieldError] = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        found.append(errors.required(f"{path}.rules", text))
    if len(rules) > 20:
        found.append(errors.too_many(f"{path}.rules", len(rules), 20))
    for i, rule in enumerate(rules):
        found += _success_rule(f"{path}.rules[{i}]", rule, completions)
    return found


def index_problem(indexes: str, completions: int) -> str:
    """What is wrong with a list of indexes such as `1,3-5`; empty if nothing is."""
    try:
        _count(indexes, completions)
    except ValueError as error:
        return str(error)
    return ""


def _success_rule(path: str, rule: Object, completions: int) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    found: list[FieldError] = []
    total = 0
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        found.append(errors.required(path, text))
    if indexes is not None:
        try:
            total = _count(indexes, completions)
        except ValueError as error:
            text = f"error parsing succeededIndexes: {error}"
            found.append(errors.invalid(f"{path}.succeededIndexes", indexes, text))
    if count is not None:
        here = f"{path}.succeededCount"
        found += not_negative(here, count)
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            found.append(errors.invalid(here, count, text))
        if indexes is not None and count > total:
            listed = "(the number of indexes in the specified succeededIndexes field)"
            found.append(errors.invalid(here, count, f"must be less than or equal to {total} {listed}"))
    return found


def _count(indexes: str, completions: int) -> int:
    total, last = 0, -1
    for part in indexes.split(",") if indexes else ():
        bounds = part.split("-")
        if len(bounds) > 2:
            text = (
                "violates the requirement that an index interval can have at most two parts separated by '-'"
            )
            raise ValueError(f'the fragment "{part}" {text}')
        first, final = _index(bounds[0], completions), _index(bounds[-1], completions)
        if len(bounds) == 2 and first >= final:
            raise ValueError(f"non-increasing order, previous: {first}, current: {final}")
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += final - first + 1
        last = final
    return total


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)


def _action(path: str, action: str, spec: Object) -> list[FieldError]:
    if not action:
        return [errors.required(path, f"valid values: {_go_list(_ACTIONS)}")]
    if action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            return [errors.invalid(path, action, "requires the backoffLimitPerIndex to be set")]
        return []
    return [] if action in _ACTIONS else [unsupported(path, action, _ACTIONS)]


def _exit_codes(path: str, codes: Object, containers: set[Any]) -> list[FieldError]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    found: list[FieldError] = []
    if not operator:
        found.append(errors.required(f"{path}.operator", f"valid values: {_go_list(_OPERATORS)}"))
    elif operator not in _OPERATORS:
        found.append(unsupported(f"{path}.operator", operator, _OPERATORS))
    container = codes.get("containerName")
    if container is not None and container not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        found.append(errors.invalid(f"{path}.containerName", container, text))
    if not values:
        found.append(errors.invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > 255:
        found.append(errors.too_many(f"{path}.values", len(values), 255))
    for i, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(errors.invalid(f"{path}.values[{i}]", value, "must not be 0 for the In operator"))
        if value in values[:i]:
            found.append(errors.duplicate(f"{path}.values[{i}]", value))
    if values != sorted(values):
        found.append(errors.invalid(f"{path}.values", values, "must be ordered"))
    return found


def _go_list(values: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{v}"' for v in values) + "]"


def shown_failure_policy(policy: Object | None) -> Object | None:
    """A failure policy the way upstream shows it: as its internal struct."""
    if policy is None:
        return None
    rules = policy.get("rules")
    return {"Rules": rules and [_internal_rule(rule) for rule in rules]}


def shown_success_policy(policy: Object | None) -> Object | None:
    """A success policy the way upstream shows it: as its internal struct."""
    return None if policy is None else _internal(policy)


def _internal_rule(rule: Object) -> Object:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    code_names = ("ContainerName", "Operator", "Values")
    return {
        "Action": rule.get("action") or "",
        "OnExitCodes": codes and {name: codes.get(name[0].lower() + name[1:]) for name in code_names},
        "OnPodConditions": conditions
        and [{"Type": c.get("type"), "Status": c.get("status")} for c in conditions],
    }


def _internal(policy: Object) -> Object:
    rules = policy.get("rules")
    shown = rules and [
        {"SucceededIndexes": r.get("succeededIndexes"), "SucceededCount": r.get("succeededCount")}
        for r in rules
    ]
    return {"Rules": shown}
