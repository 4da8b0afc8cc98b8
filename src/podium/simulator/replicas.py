"""ReplicaSets and ReplicationControllers: as many Pods as asked for, the least useful ones removed first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from podium.api import selectors
from podium.api.conditions import condition, holds_since, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import (
    annotations_of,
    born,
    is_active,
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name,
    next_available,
    phase,
    pod_from,
    spec,
)
from podium.simulator.plan import Create, Delete, Note, Plan, set_status

COMPONENT = "simulated-replicaset-controller"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
# No more at once than the real controller makes before it looks again.
_BURST = 500


def decide(owner: Object, pods: Sequence[Object], now: datetime) -> Plan:
    """Make or remove Pods; once the number is right, report what they do."""
    active = [pod for pod in pods if is_active(pod)]
    missing = int(spec(owner).get("replicas", 1)) - len(active)
    if missing and not is_deleting(owner):
        return _make(owner, missing) if missing > 0 else _remove(owner, pods, active, -missing)
    plan = Plan(list(set_status(owner, observed(owner, pods, now, failure=""))))
    return plan.look_again(next_available(active, spec(owner).get("minReadySeconds") or 0, now))


def observed(owner: Object, pods: Sequence[Object], now: datetime, failure: str) -> Object:
    """The status that these Pods amount to; `failure` is why some could not be made."""
    active = [pod for pod in pods if is_active(pod)]
    wanted = _template_selector(owner)
    minimum = spec(owner).get("minReadySeconds") or 0
    counts = {
        "fullyLabeledReplicas": sum(selectors.matches(wanted, labels_of(pod)) for pod in active),
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "availableReplicas": sum(is_available(pod, minimum, now) for pod in active),
        "observedGeneration": owner["metadata"].get("generation") or 0,
    }
    new: Object = {"replicas": len(active), **{key: count for key, count in counts.items() if count}}
    if owner["kind"] == "ReplicaSet":
        new["terminatingReplicas"] = sum(is_deleting(pod) and not is_finished(pod) for pod in pods)
    conditions = other_conditions(owner, "ReplicaFailure")
    if failure:
        old = condition(owner, "ReplicaFailure")
        conditions.append(
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": holds_since(old, "True", timestamp(now)),
                "reason": "FailedCreate",
                "message": failure,
            }
        )
    if conditions:
        new["conditions"] = conditions
    return new


def least_useful_first(active: Sequence[Object], related: Sequence[Object]) -> list[Object]:
    """Pods in the order in which a scale-down removes them."""
    crowd = Counter(spec(pod).get("nodeName") for pod in related)
    # Three stable sorts, least important first: two of the criteria run from new to old.
    ordered = sorted(active, key=born, reverse=True)
    ordered.sort(key=_ready_since, reverse=True)
    return sorted(ordered, key=lambda pod: _usefulness(pod, crowd))


def _usefulness(pod: Object, crowd: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    cost = annotations_of(pod).get(DELETION_COST, "0")
    return (
        bool(spec(pod).get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(phase(pod), 2),
        is_ready(pod),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -crowd[spec(pod).get("nodeName")],
    )


def _ready_since(pod: Object) -> str:
    ready = condition(pod, "Ready")
    return str(ready.get("lastTransitionTime") or "") if ready else ""


def _make(owner: Object, count: int) -> Plan:
    pod = pod_from(spec(owner).get("template") or {}, owner, generateName=f"{name(owner)}-")
    told = Note(owner, "SuccessfulCreate", "Created pod: {}", COMPONENT)
    return Plan([Create(pod, told) for _ in range(min(count, _BURST))])


def _remove(owner: Object, pods: Sequence[Object], active: Sequence[Object], count: int) -> Plan:
    plan = Plan()
    for pod in least_useful_first(active, pods)[: min(count, _BURST)]:
        plan.add(Delete(pod))
        plan.add(Note(owner, "SuccessfulDelete", f"Deleted pod: {name(pod)}", COMPONENT))
    return plan


def _template_selector(owner: Object) -> selectors.LabelSelector:
    template = spec(owner).get("template") or {}
    return selectors.from_labels((template.get("metadata") or {}).get("labels") or {})
