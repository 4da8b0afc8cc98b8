"""LimitRanges and ResourceQuotas."""

from __future__ import annotations

from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import quantities
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import IMMUTABLE, each
from podium.apiserver.kinds.resources import (
    QUOTA_NAMES,
    default_resource_list,
    is_overcommittable,
    validate_container_name,
    validate_name,
    validate_quantity,
    validate_quota_name,
)
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_EXISTS_ONLY = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_SCOPES = (*_EXISTS_ONLY, "PriorityClass", "VolumeAttributesClass")
_POD_COMPUTE = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)


class LimitRangeStrategy(KindStrategy):
    create_on_update = True

    def default(self, obj: Object) -> None:
        for item in (obj.get("spec") or {}).get("limits") or ():
            for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
                default_resource_list(item.get(field))
            if item.get("type") == "Container":
                limit = {**(item.get("max") or {}), **(item.get("default") or {})}
                request = {**(item.get("min") or {}), **limit, **(item.get("defaultRequest") or {})}
                if limit:
                    item["default"] = limit
                if request:
                    item["defaultRequest"] = request

    def prepare_create(self, obj: Object) -> None:
        meta = obj.setdefault("metadata", {})
        if not meta.get("name") and meta.get("uid"):
            meta["name"] = meta["uid"]

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        found: list[FieldError] = []
        seen: set[str] = set()
        for i, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
            here, kind = f"spec.limits[{i}]", item.get("type") or ""
            found += _limit_type(f"{here}.type", kind)
            if kind in seen:
                found.append(errors.duplicate(f"{here}.type", kind))
            seen.add(kind)
            found += _limit_names(here, kind, item)
            for name in sorted({n for f in _LIMIT_FIELDS for n in item.get(f) or ()}):
                found += _limit_values(here, kind, name, item)
        return found


class ResourceQuotaStrategy(KindStrategy):
    empty_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        default_resource_list((obj.get("spec") or {}).get("hard"))
        default_resource_list((obj.get("status") or {}).get("hard"))
        default_resource_list((obj.get("status") or {}).get("used"))

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = _amounts("spec.hard", spec.get("hard") or {})
        return found + _scopes(spec) + _scope_selector(spec)

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        scopes, before = ((o.get("spec") or {}).get("scopes") or [] for o in (new, old))
        if set(scopes) == set(before):
            return []
        return [errors.invalid("spec.scopes", scopes or None, IMMUTABLE)]

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        return _amounts("status.hard", status.get("hard") or {}) + _amounts(
            "status.used", status.get("used") or {}
        )

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None:
            return []
        hard = (obj.get("spec") or {}).get("hard") or {}
        found = []
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            asked = f"requests.{name}"
            if asked not in hard and name in ("cpu", "memory") and name in hard:
                asked = name
            limit = f"limits.{name}"
            if (
                asked in hard
                and limit in hard
                and quantities.nano(hard[asked]) > quantities.nano(hard[limit])
            ):
                found.append(
                    f"ResourceQuota {asked} ({hard[asked]}) should be less than {limit} ({hard[limit]})"
                )
        return found


_LIMIT_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _limit_type(path: str, kind: str) -> list[FieldError]:
    if found := each(path, kind, names.qualified_name(kind)):
        return found
    if "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
        return [errors.invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _limit_names(path: str, kind: str, item: Object) -> list[FieldError]:
    check = validate_container_name if kind in ("Pod", "Container") else validate_name
    found: list[FieldError] = []
    for field in _LIMIT_FIELDS:
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if item.get(field):
                found.append(errors.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in item.get(field) or ():
            found += check(f"{path}.{field}[{name}]", name)
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(f) or {}) for f in ("min", "max")):
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(errors.required(f"{path}.limits", text))
    return found


def _limit_values(path: str, kind: str, name: str, item: Object) -> list[FieldError]:
    """The amounts for one resource, each against the others."""
    low, high = (item.get("min") or {}).get(name), (item.get("max") or {}).get(name)
    limit = request = None
    if kind != "Pod":
        limit, request = (item.get("default") or {}).get(name), (item.get("defaultRequest") or {}).get(name)
    ratio = (item.get("maxLimitRequestRatio") or {}).get(name)
    found: list[FieldError] = []

    def ordered(small: str | None, large: str | None, field: str, shown: str | None, text: str) -> None:
        if small is not None and large is not None and quantities.nano(small) > quantities.nano(large):
            found.append(errors.invalid(f"{path}.{field}[{name}]", shown, text))

    ordered(low, high, "min", low, f"min value {low} is greater than max value {high}")
    text = f"min value {low} is greater than default request value {request}"
    ordered(low, request, "defaultRequest", request, text)
    text = f"default request value {request} is greater than max value {high}"
    ordered(request, high, "defaultRequest", request, text)
    text = f"default request value {request} is greater than default limit value {limit}"
    ordered(request, limit, "defaultRequest", request, text)
    ordered(low, limit, "default", low, f"min value {low} is greater than default value {limit}")
    ordered(limit, high, "default", high, f"default value {limit} is greater than max value {high}")
    if ratio is not None:
        found += _ratio(f"{path}.maxLimitRequestRatio[{name}]", ratio, low, high)
    unequal = limit is not None and request is not None and quantities.nano(limit) != quantities.nano(request)
    if unequal and not is_overcommittable(name):
        text = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        found.append(errors.invalid(f"{path}.defaultRequest[{name}]", request, text))
    return found


def _ratio(path: str, ratio: str, low: str | None, high: str | None) -> list[FieldError]:
    found: list[FieldError] = []
    if quantities.nano(ratio) < quantities.nano("1"):
        found.append(errors.invalid(path, ratio, f"ratio {ratio} is less than 1"))
    if low is None or high is None or not quantities.nano(low):
        return found
    limit = quantities.nano(high) / quantities.nano(low)
    if quantities.nano(ratio) / 10**9 > limit:
        found.append(errors.invalid(path, ratio, f"ratio {ratio} is greater than max/min = {limit:f}"))
    return found


def _amounts(path: str, amounts: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name, amount in amounts.items():
        found += validate_quota_name(f"{path}[{name}]", name) + validate_quantity(
            f"{path}[{name}]", name, amount
        )
    return found


def _scope_fits(scope: str, resource: str) -> bool:
    if resource not in QUOTA_NAMES:
        return True
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or resource == "pods" or resource in _POD_COMPUTE


def _scopes(spec: Object) -> list[FieldError]:
    path, scopes = "spec.scopes", spec.get("scopes") or []
    found: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(errors.invalid(path, scopes, "unsupported scope"))
        misfits = [name for name in spec.get("hard") or () if not _scope_fits(scope, name)]
        found += [errors.invalid(path, scopes, "unsupported scope applied to resource") for _ in misfits]
    conflicts = [pair for pair in _CONFLICTS if set(pair) <= set(scopes)]
    return found + [errors.invalid(path, scopes, "conflicting scopes") for _ in conflicts]


def _scope_selector(spec: Object) -> list[FieldError]:
    path, selector = "spec.scopeSelector.matchExpressions", spec.get("scopeSelector") or {}
    found: list[FieldError] = []
    seen: set[str] = set()
    for expression in selector.get("matchExpressions") or ():
        scope, operator = expression.get("scopeName") or "", expression.get("operator") or ""
        values = expression.get("values") or []
        if scope not in _SCOPES:
            found.append(errors.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        for name in sorted(spec.get("hard") or ()):
            if not _scope_fits(scope, name):
                shown = {"MatchExpressions": [_internal(e) for e in selector["matchExpressions"]]}
                found.append(errors.invalid(path, shown, "unsupported scope applied to resource"))
        if scope in _EXISTS_ONLY and operator != "Exists":
            found.append(errors.invalid(f"{path}.operator", operator, _EXISTS_TEXT))
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                found.append(errors.required(f"{path}.values", text))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                found.append(errors.invalid(f"{path}.values", values, text))
        else:
            found.append(errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
        seen.add(scope)
    conflicts = [pair for pair in _CONFLICTS if set(pair) <= seen]
    return found + [errors.invalid(path, spec.get("scopes"), "conflicting scopes") for _ in conflicts]


def _internal(expression: Object) -> Object:
    names_ = ("ScopeName", "Operator", "Values")
    return {name: expression.get(name[0].lower() + name[1:]) for name in names_}
