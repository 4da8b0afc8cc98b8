"""The conditions that a kubelet reports on a Pod, derived from its container statuses and in its order."""

from __future__ import annotations

from datetime import datetime

from podium.api.conditions import condition, holds_since, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import spec

_ORDER = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_Verdict = tuple[bool, str, str]  # status, reason, message


def applied(pod: Object, new: Object, now: datetime) -> Object:
    """A new status with the conditions that follow from it; those of other writers come first."""
    verdicts = _verdicts(pod, new)
    others = other_conditions({"status": new}, *_ORDER)
    return {**new, "conditions": [*others, *(_condition(pod, kind, verdicts[kind], now) for kind in _ORDER)]}


def _verdicts(pod: Object, new: Object) -> dict[str, _Verdict]:
    containers_ready = _containers_ready(new)
    return {
        # A Pod has its network from the moment in which it has its address.
        "PodReadyToStartContainers": (bool(new.get("podIP")) and not _ended(new), "", ""),
        "Initialized": _initialized(pod, new),
        "Ready": _ready(pod, new, containers_ready),
        "ContainersReady": containers_ready,
        "PodScheduled": (True, "", ""),
    }


def _ended(new: Object) -> str:
    return {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(new.get("phase") or "", "")


def _initialized(pod: Object, new: Object) -> _Verdict:
    if new.get("phase") == "Succeeded":
        return True, "PodCompleted", ""
    names = []
    sidecars = {
        c["name"] for c in spec(pod).get("initContainers") or () if c.get("restartPolicy") == "Always"
    }
    for state in new.get("initContainerStatuses") or ():
        done = "terminated" in state["state"] or (state["name"] in sidecars and state.get("started"))
        if not done:
            names.append(state["name"])
    if names:
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(names)}]"
    return True, "", ""


def _containers_ready(new: Object) -> _Verdict:
    if _ended(new):
        return False, _ended(new), ""
    unready = [state["name"] for state in new.get("containerStatuses") or () if not state.get("ready")]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, "", ""


def _ready(pod: Object, new: Object, containers_ready: _Verdict) -> _Verdict:
    if not containers_ready[0]:
        return containers_ready
    complaints = []
    for gate in spec(pod).get("readinessGates") or ():
        kind = gate["conditionType"]
        found = condition({"status": new}, kind)
        if found is None:
            complaints.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found.get("status") != "True":
            what = f'the status of pod readiness gate "{kind}" is not "True", but {found.get("status")}'
            complaints.append(what)
    if complaints:
        return False, "ReadinessGatesNotReady", ", ".join(complaints)
    return True, "", ""


def _condition(pod: Object, kind: str, verdict: _Verdict, now: datetime) -> Object:
    value, reason, message = "True" if verdict[0] else "False", verdict[1], verdict[2]
    old = condition(pod, kind)
    if old is not None and (value, reason, message) == (
        old.get("status"),
        old.get("reason") or "",
        old.get("message") or "",
    ):
        return old
    since = holds_since(old, value, timestamp(now))
    new: Object = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
    if reason:
        new["reason"] = reason
    if message:
        new["message"] = message
    return new
