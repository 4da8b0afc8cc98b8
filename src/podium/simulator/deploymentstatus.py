"""What a Deployment reports: its counts, whether it is available, and whether it moves on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from podium.api.conditions import condition, holds_since, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import name, seconds_since, spec, status, without_empty
from podium.simulator.plan import Plan, set_status

if TYPE_CHECKING:
    from podium.simulator.deployments import Bounds

# The largest int32 means: no deadline.
_NO_DEADLINE = 2**31 - 1
_Verdict = tuple[str, str, str]  # status, reason, message


def report(
    deployment: Object,
    current: Object | None,
    sets: Sequence[Object],
    bounds: Bounds,
    now: datetime,
    *,
    created: str = "",
) -> Plan:
    """The write that brings the status up to date, and when the progress deadline passes."""
    new = _counts(deployment, current, sets)
    conditions = [_available(deployment, new, bounds, now)]
    progressing, wait = _progressing(deployment, current, new, created, now)
    if progressing is not None:
        conditions.append(progressing)
    failure = _failure(deployment, current, sets)
    if failure is not None:
        conditions.append(failure)
    others = other_conditions(deployment, "Available", "Progressing", "ReplicaFailure")
    order = {c["type"]: place for place, c in enumerate(status(deployment).get("conditions") or ())}
    conditions = sorted([*others, *conditions], key=lambda c: order.get(c["type"], len(order)))
    return Plan(set_status(deployment, {**new, "conditions": conditions})).look_again(wait)


def is_complete(deployment: Object, reported: Object) -> bool:
    """Whether every replica is of the newest template and available, and no other is left."""
    total = spec(deployment).get("replicas", 1)
    counts = [reported.get(key) or 0 for key in ("updatedReplicas", "replicas", "availableReplicas")]
    observed = (reported.get("observedGeneration") or 0) >= (deployment["metadata"].get("generation") or 0)
    return counts == [total] * 3 and observed


def _counts(deployment: Object, current: Object | None, sets: Sequence[Object]) -> Object:
    def total(field: str) -> int:
        return sum(status(found).get(field) or 0 for found in sets)

    available = total("availableReplicas")
    wanted = sum(spec(found).get("replicas", 1) for found in sets)
    counts = without_empty(
        {
            "observedGeneration": deployment["metadata"].get("generation"),
            "replicas": total("replicas"),
            "updatedReplicas": status(current).get("replicas") if current else 0,
            "readyReplicas": total("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
            "collisionCount": status(deployment).get("collisionCount"),
        }
    )
    return {**counts, "terminatingReplicas": total("terminatingReplicas")}


def _available(deployment: Object, new: Object, bounds: Bounds, now: datetime) -> Object:
    least = spec(deployment).get("replicas", 1) - bounds.unavailable
    if (new.get("availableReplicas") or 0) >= least:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        message = "Deployment does not have minimum availability."
        verdict = ("False", "MinimumReplicasUnavailable", message)
    return _condition(deployment, "Available", verdict, now)


def _progressing(
    deployment: Object, current: Object | None, new: Object, created: str, now: datetime
) -> tuple[Object | None, float | None]:
    """The Progressing condition, if the Deployment asks for one, and seconds until its deadline."""
    deadline = spec(deployment).get("progressDeadlineSeconds")
    if deadline is None or deadline == _NO_DEADLINE:
        return None, None
    old = condition(deployment, "Progressing")
    verdict = _progress(deployment, old, current, new, created, deadline, now)
    found = old if verdict is None else _condition(deployment, "Progressing", verdict, now)
    if found is None or spec(deployment).get("paused"):
        return found, None
    if found["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return found, None
    return found, max(0.0, deadline - seconds_since(found.get("lastUpdateTime"), now)) + 0.1


def _progress(
    deployment: Object,
    old: Object | None,
    current: Object | None,
    new: Object,
    created: str,
    deadline: int,
    now: datetime,
) -> _Verdict | None:
    """What to say about progress; None to leave it as it was said."""
    reason = old.get("reason") if old else ""
    if spec(deployment).get("paused"):
        if reason in ("DeploymentPaused", "ProgressDeadlineExceeded"):
            return None
        return "Unknown", "DeploymentPaused", "Deployment is paused"
    if created:
        return "True", "NewReplicaSetCreated", f'Created new replica set "{created}"'
    if reason == "DeploymentPaused":
        return "Unknown", "DeploymentResumed", "Deployment is resumed"
    if reason == "NewReplicaSetAvailable" and new.get("replicas") == new.get("updatedReplicas"):
        return None
    subject = f'ReplicaSet "{name(current)}"' if current else f'Deployment "{name(deployment)}"'
    if is_complete(deployment, new):
        return "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed."
    if old is None and current is not None:
        return "True", "FoundNewReplicaSet", f'Found new replica set "{name(current)}"'
    if _has_moved(status(deployment), new):
        return "True", "ReplicaSetUpdated", f"{subject} is progressing."
    if old is not None and _is_overdue(old, deadline, now):
        return "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing."
    return None


def _has_moved(before: Object, new: Object) -> bool:
    def old_replicas(reported: Object) -> int:
        return (reported.get("replicas") or 0) - (reported.get("updatedReplicas") or 0)

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_replicas(new) < old_replicas(before) or any(
        (new.get(field) or 0) > (before.get(field) or 0) for field in grown
    )


def _is_overdue(old: Object, deadline: int, now: datetime) -> bool:
    if old.get("reason") in ("ProgressDeadlineExceeded", "NewReplicaSetAvailable"):
        return False
    return seconds_since(old.get("lastUpdateTime"), now) > deadline


def _failure(deployment: Object, current: Object | None, sets: Sequence[Object]) -> Object | None:
    """The first ReplicaSet's complaint that it cannot make Pods, the newest one's before others."""
    for found in [*([current] if current else []), *sets]:
        complaint = condition(found, "ReplicaFailure")
        if complaint is not None and complaint.get("status") == "True":
            known = condition(deployment, "ReplicaFailure")
            if known is not None and known.get("message") == complaint.get("message"):
                return known
            return {**complaint, "lastUpdateTime": complaint["lastTransitionTime"]}
    return None


def _condition(deployment: Object, kind: str, verdict: _Verdict, now: datetime) -> Object:
    value, reason, message = verdict
    old = condition(deployment, kind)
    # A report of progress is made anew each time: the deadline counts from the last one.
    told = old and (old.get("status"), old.get("reason"), old.get("message"))
    if old is not None and told == verdict and reason != "ReplicaSetUpdated":
        return old
    since = holds_since(old, value, timestamp(now))
    return {
        "type": kind,
        "status": value,
        "lastUpdateTime": timestamp(now),
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
