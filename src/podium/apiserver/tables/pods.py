"""Rows of Pods: what the containers' states add up to.

The status is the first thing that keeps the Pod from running, told by the container that says so: an
unfinished init container, else the first container in order that waits or has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from podium.api.conditions import is_true
from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    Printer,
    age,
    column,
    containers_and_images,
    labels,
    since,
    wide,
)

_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def row_conditions(pod: Object) -> list[Object]:
    """What a row says about itself besides its cells: kubectl dims Pods that are over."""
    phase = (pod.get("status") or {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


class _Restarts:
    """How often containers were restarted, and when the last of them ended."""

    __slots__ = ("count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last = ""  # RFC 3339 in UTC to the second, so that texts compare as times

    def add(self, container: Object) -> None:
        self.count += container.get("restartCount") or 0
        ended = (container.get("lastState") or {}).get("terminated")
        if ended:
            finished = ended.get("finishedAt") or ""
            if finished > self.last:
                self.last = finished

    def show(self, now: datetime) -> str:
        return f"{self.count} ({since(self.last, now)} ago)" if self.count and self.last else str(self.count)


def pod_cells(pod: Object, now: datetime) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init_containers = spec.get("initContainers") or ()
    sidecars = {c["name"] for c in init_containers if c.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)

    reason, ready, restarts, sidecar_restarts = _initialization(status, sidecars, len(init_containers))
    initializing = reason is not None
    reason = reason or _own_reason(status)
    if not initializing or is_true(pod, "Initialized"):
        restarts = sidecar_restarts
        reason, running = _containers(pod, status.get("containerStatuses") or (), reason, restarts)
        ready += running
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in _COMPLETED:
            reason = "Terminating"

    ips = status.get("podIPs")
    return [
        pod["metadata"].get("name", ""),
        f"{ready}/{total}",
        reason,
        restarts.show(now),
        age(pod, now),
        (ips[0].get("ip") if ips else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec.get("readinessGates"), status.get("conditions") or ()),
    ]


def _own_reason(status: Object) -> str:
    for found in status.get("conditions") or ():
        if found.get("type") == "PodScheduled" and found.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _initialization(
    status: Object, sidecars: set[str], count: int
) -> tuple[str | None, int, _Restarts, _Restarts]:
    """Why the Pod still initializes (None: it does not), ready sidecars, restarts, those of sidecars."""
    restarts, sidecar_restarts, ready = _Restarts(), _Restarts(), 0
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts.add(container)
        is_sidecar = container["name"] in sidecars
        if is_sidecar:
            sidecar_restarts.add(container)
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            ready += 1 if container.get("ready") else 0
            continue
        if ended is not None:
            reason = _end(ended)
        elif waiting is not None and waiting.get("reason", "") not in ("", "PodInitializing"):
            reason = waiting["reason"]
        else:
            reason = f"{index}/{count}"
        return f"Init:{reason}", ready, restarts, sidecar_restarts
    return None, ready, restarts, sidecar_restarts


def _end(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _containers(pod: Object, statuses: Sequence[Object], reason: str, restarts: _Restarts) -> tuple[str, int]:
    """The status as the ordinary containers tell it, and how many of them are ready."""
    running, failure = 0, ""
    for container in reversed(statuses):
        restarts.add(container)
        state = container.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _end(ended)
            if ended.get("exitCode"):
                failure = reason
        elif container.get("ready") and state.get("running") is not None:
            running += 1
    if reason == "Completed":
        # One container is done; the others decide what the Pod is.
        if running and is_true(pod, "Ready"):
            reason = "Running"
        elif failure:
            reason = failure
        elif running:
            reason = "NotReady"
    return reason, running


def _readiness_gates(gates: list[Object] | None, conditions: Sequence[Object]) -> str:
    if not gates:
        return NONE
    # Of several conditions of one type the first counts.
    first = {found.get("type"): found.get("status") for found in reversed(conditions)}
    passed = sum(first.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def _pod_template_cells(obj: Object, now: datetime) -> list[Any]:
    template = obj.get("template") or {}
    names, images = containers_and_images(template)
    return [
        obj["metadata"].get("name", ""),
        names,
        images,
        labels((template.get("metadata") or {}).get("labels")),
    ]


PRINTERS = {
    ("", "pods"): Printer(
        (
            NAME,
            column("Ready", "Containers that are ready to serve, of how many"),
            column("Status", "What the states of the containers add up to"),
            column("Restarts", "How often containers were restarted, and when last"),
            AGE,
            wide("IP", "Address of the Pod, if it has one"),
            wide("Node", "Node that the Pod was scheduled to"),
            wide("Nominated Node", "Node on which others are evicted to make room for the Pod"),
            wide("Readiness Gates", "Readiness gates that are passed, of how many"),
        ),
        pod_cells,
    ),
    ("", "podtemplates"): Printer(
        (
            NAME,
            column("Containers", "Names of the containers in the template"),
            column("Images", "Images of the containers in the template"),
            column("Pod Labels", "Labels that the template gives to Pods"),
        ),
        _pod_template_cells,
    ),
}
