"""Leases."""

from __future__ import annotations

from podium.api.kinds import Object
from podium.apiserver.kinds.base import KindStrategy
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError


class LeaseStrategy(KindStrategy):
    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def prepare_create(self, obj: Object) -> None:
        _drop_coordination(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        spec = old.get("spec") or {}
        if spec.get("strategy") is None and spec.get("preferredHolder") is None:
            _drop_coordination(new)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        found: list[FieldError] = []
        if duration is not None and duration <= 0:
            found.append(errors.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            text = "must be greater than or equal to 0"
            found.append(errors.invalid("spec.leaseTransitions", transitions, text))
        return found


def _drop_coordination(lease: Object) -> None:
    # Coordinated leader election is behind a feature gate, so its fields are not kept.
    for field in ("strategy", "preferredHolder"):
        (lease.get("spec") or {}).pop(field, None)
