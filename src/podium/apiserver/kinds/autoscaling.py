"""HorizontalPodAutoscalers, in the form of autoscaling/v1 and in that of autoscaling/v2.

The two are one object; which form is at hand shows in its apiVersion. Errors name the fields of v2.
"""

from __future__ import annotations

from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import quantities
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, not_negative_fields, unsupported
from podium.apiserver.kinds.resources import not_negative_quantity, validate_container_name
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_CPU_PERCENT = 80
_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_POPULATE = "must populate information for the given metric source"
_EITHER_RAW = "must set either a target raw value or a target utilization"
_BOTH_RAW = "may not set both a target raw value and a target utilization"


class HorizontalPodAutoscalerStrategy(KindStrategy):
    empty_status: ClassVar[Object | None] = {"currentReplicas": 0, "desiredReplicas": 0}

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        if _is_v1(obj):
            if spec.get("targetCPUUtilizationPercentage") is None and not _has_other_metrics(obj):
                spec["targetCPUUtilizationPercentage"] = _CPU_PERCENT
            return
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        if (behavior := spec.get("behavior")) is not None:
            up, down = _scale_up_defaults(), _scale_down_defaults()
            behavior["scaleUp"] = up | _given(behavior.get("scaleUp"))
            behavior["scaleDown"] = down | _given(behavior.get("scaleDown"))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict(self.empty_status or {})
        if not _is_v1(obj):
            obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
        low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
        bound = 0 if before.get("minReplicas") == 0 else 1
        found: list[FieldError] = []
        if low is not None and low < bound:
            text = f"must be greater than or equal to {bound}"
            found.append(errors.invalid("spec.minReplicas", low, text))
        if high == 0:
            found.append(errors.required("spec.maxReplicas", "must be set and greater than 0"))
        elif high < 0:
            found.append(errors.invalid("spec.maxReplicas", high, "must be greater than or equal to 1"))
        if low is not None and high < low:
            text = "must be greater than or equal to `minReplicas`"
            found.append(errors.invalid("spec.maxReplicas", high, text))
        found += _target_ref(spec.get("scaleTargetRef") or {}, before.get("scaleTargetRef") if old else None)
        found += _metrics(_metrics_of(obj), low)
        behavior = spec.get("behavior") or {}
        for field in ("scaleUp", "scaleDown"):
            if (rules := behavior.get(field)) is not None:
                found += _scaling_rules(f"spec.behavior.{field}", rules)
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        return not_negative_fields("status", new.get("status") or {}, ("currentReplicas", "desiredReplicas"))


def _is_v1(obj: Object) -> bool:
    return obj.get("apiVersion") == "autoscaling/v1"


def _given(rules: Object | None) -> Object:
    return {field: value for field, value in (rules or {}).items() if value is not None}


def _scale_up_defaults() -> Object:
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]}


def _scale_down_defaults() -> Object:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _metrics_of(obj: Object) -> list[Object]:
    spec = obj.get("spec") or {}
    if not _is_v1(obj):
        listed: list[Object] = spec.get("metrics") or []
        return listed
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is None:
        return []
    target = {"type": "Utilization", "averageUtilization": percent}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _has_other_metrics(obj: Object) -> bool:
    """Whether a v1 object carries metrics that only v2 can show."""
    return _METRICS_ANNOTATION in (obj["metadata"].get("annotations") or {})


def _target_ref(ref: Object, before: Object | None) -> list[FieldError]:
    path = "spec.scaleTargetRef"
    found = _reference(path, ref)
    unchanged = before is not None and all(before.get(f) == ref.get(f) for f in ("apiVersion", "kind"))
    return (
        found
        if unchanged
        else found + _api_version(path, ref, group_needed=ref.get("kind") != "ReplicationController")
    )


def _reference(path: str, ref: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for field in ("kind", "name"):
        value, here = ref.get(field) or "", f"{path}.{field}"
        found += each(here, value, names.path_segment(value)) if value else [errors.required(here)]
    return found


def _api_version(path: str, ref: Object, *, group_needed: bool) -> list[FieldError]:
    version = ref.get("apiVersion") or ""
    if version.count("/") > 1:
        return [errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")]
    group, slash, _ = version.partition("/")
    if group_needed and not (slash and group):
        return [errors.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")]
    return []


def _metrics(metrics: list[Object], low: int | None) -> list[FieldError]:
    found = [e for i, metric in enumerate(metrics) for e in _metric(f"spec.metrics[{i}]", metric)]
    if low == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(errors.forbidden("spec.metrics", text))
    return found


def _metric(path: str, metric: Object) -> list[FieldError]:
    kind = metric.get("type") or ""
    found: list[FieldError] = []
    if not kind:
        found.append(errors.required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        found.append(unsupported(f"{path}.type", kind, _SOURCES))
    checks = {
        "object": _object,
        "external": _external,
        "pods": _pods,
        "resource": _resource,
        "containerResource": _container_resource,
    }
    given = [field for field in checks if metric.get(field) is not None]
    if given:
        found += checks[given[0]](f"{path}.{given[0]}", metric[given[0]])
    wanted = _SOURCES.get(kind)
    if wanted is None:
        found.append(unsupported(f"{path}.type", kind, _SOURCES))
    elif metric.get(wanted) is None:
        found.append(errors.required(f"{path}.{wanted}", _POPULATE))
    if len(given) != 1:
        text = "must populate the given metric source only"
        found += [errors.forbidden(f"{path}.{field}", text) for field in given if field != wanted]
    return found


def _object(path: str, source: Object) -> list[FieldError]:
    about = source.get("describedObject") or {}
    found = _reference(f"{path}.describedObject", about)
    found += _api_version(f"{path}.describedObject", about, group_needed=False)
    found += _identifier(f"{path}.metric", source.get("metric") or {}) + _target(f"{path}.target", source)
    if not _has(source, "value") and not _has(source, "averageValue"):
        text = "must set either a target value or averageValue"
        found.append(errors.required(f"{path}.target.averageValue", text))
    return found


def _external(path: str, source: Object) -> list[FieldError]:
    found = _identifier(f"{path}.metric", source.get("metric") or {}) + _target(f"{path}.target", source)
    if not _has(source, "value") and not _has(source, "averageValue"):
        text = "must set either a target value for metric or a per-pod target"
        found.append(errors.required(f"{path}.target.averageValue", text))
    if _has(source, "value") and _has(source, "averageValue"):
        text = "may not set both a target value for metric and a per-pod target"
        found.append(errors.forbidden(f"{path}.target.value", text))
    return found


def _pods(path: str, source: Object) -> list[FieldError]:
    found = _identifier(f"{path}.metric", source.get("metric") or {}) + _target(f"{path}.target", source)
    if not _has(source, "averageValue"):
        text = "must specify a positive target averageValue"
        found.append(errors.required(f"{path}.target.averageValue", text))
    return found


def _resource(path: str, source: Object) -> list[FieldError]:
    found = [] if source.get("name") else [errors.required(f"{path}.name", "must specify a resource name")]
    return found + _target(f"{path}.target", source) + _raw_or_share(f"{path}.target", source)


def _container_resource(path: str, source: Object) -> list[FieldError]:
    name, container = source.get("name") or "", source.get("container") or ""
    if name:
        found = validate_container_name(f"{path}.name", name)
    else:
        found = [errors.required(f"{path}.name", "must specify a resource name")]
    if container:
        found += each(f"{path}.container", container, names.dns_label(container))
    else:
        found.append(errors.required(f"{path}.container", "must specify a container"))
    return found + _target(f"{path}.target", source) + _raw_or_share(f"{path}.target", source)


def _raw_or_share(path: str, source: Object) -> list[FieldError]:
    share, raw = _has(source, "averageUtilization"), _has(source, "averageValue")
    if not share and not raw:
        return [errors.required(f"{path}.averageUtilization", _EITHER_RAW)]
    return [errors.forbidden(f"{path}.averageValue", _BOTH_RAW)] if share and raw else []


def _has(source: Object, field: str) -> bool:
    return (source.get("target") or {}).get(field) is not None


def _target(path: str, source: Object) -> list[FieldError]:
    target = source.get("target") or {}
    kind = target.get("type") or ""
    found = [] if kind else [errors.required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        text = "must be either Utilization, Value, or AverageValue"
        found.append(errors.invalid(f"{path}.type", kind, text))
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and quantities.nano(amount) <= 0:
            found.append(errors.invalid(f"{path}.{field}", amount, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        found.append(errors.invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return found


def _identifier(path: str, metric: Object) -> list[FieldError]:
    name = metric.get("name") or ""
    if not name:
        return [errors.required(f"{path}.name", "must specify a metric name")]
    return each(f"{path}.name", name, names.path_segment(name))


def _scaling_rules(path: str, rules: Object) -> list[FieldError]:
    found: list[FieldError] = []
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        text = "must be greater than or equal to zero"
        found.append(errors.invalid(f"{path}.stabilizationWindowSeconds", window, text))
    if window is not None and window > 3600:
        text = "must be less than or equal to 3600"
        found.append(errors.invalid(f"{path}.stabilizationWindowSeconds", window, text))
    if select is not None and select not in ("Disabled", "Max", "Min"):
        found.append(unsupported(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min")))
    policies = rules.get("policies") or []
    if not policies:
        found.append(errors.required(f"{path}.policies", "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        found += _scaling_policy(f"{path}.policies[{i}]", policy)
    if (tolerance := rules.get("tolerance")) is not None:
        found += not_negative_quantity(f"{path}.tolerance", tolerance)
    return found


def _scaling_policy(path: str, policy: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if (kind := policy.get("type") or "") not in ("Percent", "Pods"):
        found.append(unsupported(f"{path}.type", kind, ("Percent", "Pods")))
    found += [
        errors.invalid(f"{path}.{field}", number, "must be greater than zero")
        for field in ("value", "periodSeconds")
        if (number := policy.get(field) or 0) <= 0
    ]
    if (period := policy.get("periodSeconds") or 0) > 1800:
        found.append(errors.invalid(f"{path}.periodSeconds", period, "must be less than or equal to 1800"))
    return found
