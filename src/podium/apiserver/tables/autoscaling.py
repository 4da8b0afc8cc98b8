"""Rows of Scales, and of HorizontalPodAutoscalers with each metric as `current/target`.

An autoscaling/v1 object tells only its CPU target in fields; its other metrics are JSON in annotations, with
the flat field names that version has. Both are read into the form of autoscaling/v2 first.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Printer,
    age,
    column,
)

_MOST = 2
_NIL = "<nil>"  # how Go prints a quantity that is not there
_DEFAULT_CPU_PERCENT = 80
_ANNOTATION = "autoscaling.alpha.kubernetes.io/"
# The type of a metric, the field that holds it, and whether its text starts with the resource's name.
_SOURCES = {
    "External": ("external", False),
    "Object": ("object", False),
    "Pods": ("pods", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def _cells(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    specs, statuses = (
        _v1_metrics(obj) if obj.get("apiVersion") == "autoscaling/v1" else _metrics(spec, status)
    )
    target = spec.get("scaleTargetRef") or {}
    return [
        obj["metadata"].get("name", ""),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(specs, statuses),
        UNSET if spec.get("minReplicas") is None else str(spec["minReplicas"]),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(spec: Object, status: Object) -> tuple[list[Object], list[Object]]:
    return spec.get("metrics") or [], status.get("currentMetrics") or []


def _targets(specs: list[Object], statuses: list[Object]) -> str:
    if not specs:
        return NONE
    texts = []
    for index, spec in enumerate(specs[:_MOST]):
        texts.append(_target(spec, statuses[index] if index < len(statuses) else {}))
    more = f" + {len(specs) - _MOST} more..." if len(specs) > _MOST else ""
    return ", ".join(texts) + more


def _target(spec: Object, status: Object) -> str:
    if spec.get("type") not in _SOURCES:
        return "<unknown type>"
    field, named = _SOURCES[spec["type"]]
    source, observed = spec.get(field) or {}, status.get(field)
    target, current = source.get("target") or {}, (observed or {}).get("current") or {}
    missing = UNKNOWN if observed is None else _NIL
    if named:
        return f"{source.get('name', '')}: {_resource_target(target, current, missing)}"
    if field == "pods":
        return f"{current.get('averageValue', missing)}/{target.get('averageValue', _NIL)}"
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', missing)}/{target.get('value', _NIL)}"


def _resource_target(target: Object, current: Object, missing: str) -> str:
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue', missing)}/{target['averageValue']}"
    used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    return f"{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


# --- autoscaling/v1 -------------------------------------------------------------------------------------


def _v1_metrics(obj: Object) -> tuple[list[Object], list[Object]]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    specs = [_unflattened(metric, "target") for metric in _annotated(obj, "metrics")]
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is not None or not specs:
        wanted = _DEFAULT_CPU_PERCENT if percent is None else percent
        specs.append(_cpu("target", wanted))
    statuses = [_unflattened(metric, "current") for metric in _annotated(obj, "current-metrics")]
    used = status.get("currentCPUUtilizationPercentage")
    if not statuses and used is not None:
        statuses = [_cpu("current", used)]
    return specs, statuses


def _cpu(side: str, percent: int) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", side: {"averageUtilization": percent}}}


def _annotated(obj: Object, name: str) -> list[Object]:
    text = (obj["metadata"].get("annotations") or {}).get(_ANNOTATION + name)
    try:
        found = json.loads(text) if text else []
    except ValueError:
        return []
    return [metric for metric in found if isinstance(metric, dict)] if isinstance(found, list) else []


def _unflattened(metric: Object, side: str) -> Object:
    """`targetAverageValue: 1` as `target: {averageValue: 1}`; what is already so stays."""
    field, _ = _SOURCES.get(metric.get("type", ""), ("", False))
    source = metric.get(field)
    if not isinstance(source, dict) or "averageValue" in (source.get(side) or {}):
        return metric
    flat = {
        "value": source.get(f"{side}Value"),
        "averageValue": source.get(f"{side}AverageValue", source.get("averageValue")),
        "averageUtilization": source.get(f"{side}AverageUtilization"),
    }
    given = {key: value for key, value in flat.items() if value is not None}
    return {**metric, field: {**source, side: given}} if given else metric


def _scale_cells(obj: Object, now: datetime) -> list[Any]:
    wanted, found = ((obj.get(part) or {}).get("replicas", 0) for part in ("spec", "status"))
    return [obj["metadata"].get("name", ""), wanted, found, age(obj, now)]


PRINTERS = {
    ("autoscaling", "scales"): Printer(
        (
            NAME,
            column("Desired", "Wanted instances", "integer"),
            column("Available", "Instances now", "integer"),
            AGE,
        ),
        _scale_cells,
    ),
    ("autoscaling", "horizontalpodautoscalers"): Printer(
        (
            NAME,
            column("Reference", "What is scaled"),
            column("Targets", "Each metric, and the value it is steered to"),
            column("MinPods", "Fewest Pods"),
            column("MaxPods", "Most Pods"),
            column("Replicas", "Pods now"),
            AGE,
        ),
        _cells,
    ),
}
