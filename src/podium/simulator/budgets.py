"""PodDisruptionBudgets: how many Pods may be evicted now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from podium.api.conditions import condition, holds_since
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import count_of, is_active, is_ready, spec, status
from podium.simulator.plan import Plan, set_status


def decide(budget: Object, pods: Sequence[Object], scale: int, now: datetime) -> Plan:
    """Report the room for disruptions; `scale` is how many Pods the controllers of these Pods want."""
    alive = [pod for pod in pods if is_active(pod)]
    healthy = sum(is_ready(pod) for pod in alive)
    expected, desired = _expectation(budget, len(alive), scale)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    new = {
        **status(budget),
        "observedGeneration": budget["metadata"].get("generation") or 0,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "conditions": [_condition(budget, allowed, now)],
    }
    # Evictions that were granted and seen need not be remembered.
    new.pop("disruptedPods", None)
    return Plan(set_status(budget, {key: value for key, value in new.items() if value is not None}))


def _expectation(budget: Object, alive: int, scale: int) -> tuple[int, int]:
    """How many Pods there should be, and how many of them healthy."""
    least, most = spec(budget).get("minAvailable"), spec(budget).get("maxUnavailable")
    if most is not None:
        return scale, max(0, scale - count_of(most, scale, round_up=True))
    if isinstance(least, str):
        return scale, count_of(least, scale, round_up=True)
    return alive, int(least if least is not None else 1)


def _condition(budget: Object, allowed: int, now: datetime) -> Object:
    value, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    generation = budget["metadata"].get("generation") or 0
    old = condition(budget, "DisruptionAllowed")
    if old is not None and (old.get("status"), old.get("reason"), old.get("observedGeneration") or 0) == (
        value,
        reason,
        generation,
    ):
        return old
    since = holds_since(old, value, timestamp(now))
    return {
        "type": "DisruptionAllowed",
        "status": value,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": reason,
        "message": "",
    }
