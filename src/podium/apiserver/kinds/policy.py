"""PodDisruptionBudgets."""

from __future__ import annotations

from typing import ClassVar

from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import (
    at_most_100_percent,
    int_or_percent,
    not_negative_fields,
    unsupported,
)
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_EVICTION = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(KindStrategy):
    generation_fields = ("spec",)
    unconditional_update = False
    standard_finalizers = False
    empty_status: ClassVar[Object | None] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def _metadata(self, obj: Object) -> list[FieldError]:
        return []  # only the last, common check applies

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            text = "minAvailable and maxUnavailable cannot be both set"
            found.append(errors.invalid("spec", _internal(spec), text))
        for field in ("minAvailable", "maxUnavailable"):
            if (value := spec.get(field)) is not None:
                found += int_or_percent(f"spec.{field}", value) + at_most_100_percent(f"spec.{field}", value)
        found += metadata.validate_selector("spec.selector", spec.get("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _EVICTION:
            found.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        return not_negative_fields("status", new.get("status") or {}, self.empty_status or ())


def _internal(spec: Object) -> Object:
    fields = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
    return {name: spec.get(name[0].lower() + name[1:]) for name in fields}
