"""How built-in kinds are read and stored, and how two versions of one kind turn into each other.

Most built-in kinds have one version, and what is stored is what is served. Two have two: Events are stored
as core/v1 and HorizontalPodAutoscalers as autoscaling/v2; the other version is converted on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.store import Stored, decode, encode
from podium.schema import coerce, facts
from podium.schema.facts import TypeFact
from podium.schema.shape import Shape

Convert = Callable[[Object], Object]


class BuiltinCodec:
    """A built-in kind whose stored form is its served form."""

    def __init__(self, group: str, version: str, kind: str) -> None:
        self._group, self._version, self._kind = group, version, kind

    @cached_property
    def type(self) -> TypeFact:
        found = facts.load().type_for(self._group, self._version, self._kind)
        assert found is not None, f"no facts about {self._group}/{self._version} {self._kind}"
        return found

    @cached_property
    def shape(self) -> Shape:
        return facts.shape_for(self.type)

    @cached_property
    def zero(self) -> Object | None:
        return coerce.coerce({"apiVersion": "", "kind": ""}, self.type).object

    def admit(self, obj: Object) -> tuple[Object, list[str]]:
        try:
            coerced = coerce.coerce(obj, self.type)
        except coerce.DecodeError as error:
            what = f'{self._kind} in version "{self._version}" cannot be handled as a {self._kind}'
            raise errors.bad_request(f"{what}: {error}") from None
        return coerced.object, list(coerced.unknown)

    def serve(self, stored: Stored) -> bytes:
        return stored.data

    def decode(self, stored: Stored) -> Object:
        return decode(stored.data)

    def to_storage(self, obj: Object) -> Object:
        return obj

    def is_settled(self, stored: Stored) -> bool:
        return True


class ConvertedCodec(BuiltinCodec):
    """A built-in kind that is stored in another version than it is served in."""

    def __init__(
        self, group: str, version: str, kind: str, from_storage: Convert, to_storage: Convert
    ) -> None:
        super().__init__(group, version, kind)
        self._from_storage = from_storage
        self._to_storage = to_storage

    def serve(self, stored: Stored) -> bytes:
        return encode(self.decode(stored))

    def decode(self, stored: Stored) -> Object:
        return self._from_storage(decode(stored.data))

    def to_storage(self, obj: Object) -> Object:
        return self._to_storage(obj)


def _renamed(obj: Object, api_version: str, names: dict[str, str]) -> Object:
    out: Object = {"apiVersion": api_version}
    for key, value in obj.items():
        if key != "apiVersion":
            out[names.get(key, key)] = value
    return out


_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def event_to_v1(obj: Object) -> Object:
    """A core Event as events.k8s.io/v1."""
    return _renamed(obj, "events.k8s.io/v1", _EVENT_FIELDS)


def event_from_v1(obj: Object) -> Object:
    """An events.k8s.io/v1 Event as core/v1; the fields core always has are filled in."""
    core = _renamed(obj, "v1", {new: old for old, new in _EVENT_FIELDS.items()})
    core.setdefault("source", {})
    core.setdefault("firstTimestamp", None)
    core.setdefault("lastTimestamp", None)
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    return core


_HPA_ANNOTATIONS = {
    "metrics": "autoscaling.alpha.kubernetes.io/metrics",
    "behavior": "autoscaling.alpha.kubernetes.io/behavior",
    "currentMetrics": "autoscaling.alpha.kubernetes.io/current-metrics",
    "conditions": "autoscaling.alpha.kubernetes.io/conditions",
}


def hpa_to_v1(obj: Object) -> Object:
    """An autoscaling/v2 HorizontalPodAutoscaler as v1: one CPU target, the rest in annotations."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict((obj["metadata"].get("annotations")) or {})
    others = []
    for metric in spec.pop("metrics", None) or ():
        target = (metric.get("resource") or {}).get("target") or {}
        is_cpu = metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu"
        if is_cpu and "averageUtilization" in target:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            others.append(metric)
    for metric in status.pop("currentMetrics", None) or ():
        current = (metric.get("resource") or {}).get("current") or {}
        if (metric.get("resource") or {}).get("name") == "cpu" and "averageUtilization" in current:
            status["currentCPUUtilizationPercentage"] = current["averageUtilization"]
    kept = {
        "metrics": others,
        "behavior": spec.pop("behavior", None),
        "conditions": status.pop("conditions", None),
    }
    for name, value in kept.items():
        if value:
            annotations[_HPA_ANNOTATIONS[name]] = encode(value).decode()
    metadata = dict(obj["metadata"])
    if annotations:
        metadata["annotations"] = annotations
    return dict(obj, apiVersion="autoscaling/v1", metadata=metadata, spec=spec, status=status)


def hpa_from_v1(obj: Object) -> Object:
    """An autoscaling/v1 HorizontalPodAutoscaler as v2."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict((obj["metadata"].get("annotations")) or {})
    restored = {
        name: decode_any(annotations.pop(key)) for name, key in _HPA_ANNOTATIONS.items() if key in annotations
    }
    metrics = list(restored.get("metrics") or ())
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if restored.get("behavior"):
        spec["behavior"] = restored["behavior"]
    status.pop("currentCPUUtilizationPercentage", None)
    if restored.get("conditions"):
        status["conditions"] = restored["conditions"]
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return dict(obj, apiVersion="autoscaling/v2", metadata=metadata, spec=spec, status=status)


def decode_any(text: str) -> Any:
    """JSON from an annotation; what a user broke by hand counts as absent."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return None
