"""The life of a Pod on a simulated node, one step per decision.

Admitted (ContainerCreating), init containers in order, containers running, ready; then for some finished, and
in the end removed. Where a Pod stands is read from its status alone, so a new process continues where the old
one stopped, and a Pod that has arrived gets no more writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator import containers, podconditions
from podium.simulator.containers import Container, Ending, Step
from podium.simulator.faults import Faults
from podium.simulator.nodes import COMPONENT
from podium.simulator.objects import (
    controller,
    is_deleting,
    is_finished,
    seconds_since,
    spec,
    status,
    uid,
    without_empty,
)
from podium.simulator.plan import Delete, Note, Plan, UpdateStatus, set_status

_SIGTERM = 143


@dataclass(frozen=True, slots=True)
class Place:
    """Where the Pod runs: the node's address, and one for the Pod to take if it has none."""

    host: str
    address: str


def decide(pod: Object, faults: Faults, place: Place, now: datetime) -> Plan:
    """The next step in a Pod's life."""
    if is_deleting(pod):
        return _remove(pod, faults, now)
    if is_finished(pod):
        return Plan()
    if not status(pod).get("startTime"):
        return Plan(set_status(pod, _admitted(pod, faults, place, now)))
    wait = faults.start_seconds - seconds_since(status(pod)["startTime"], now)
    if wait > 0:
        return Plan(again=wait)
    expired = _deadline(pod, now)
    if expired is not None and expired <= 0:
        return _exceed_deadline(pod, faults, now)
    return _advance(pod, faults, place, now).look_again(expired)


def ending_of(pod: Object, faults: Faults) -> Ending | None:
    """How the Pod's containers end by themselves; None for Pods that run until they are deleted."""
    if spec(pod).get("restartPolicy", "Always") == "Always":
        return None
    owner = controller(pod)
    finishes = owner is not None and owner.get("kind") == "Job"
    if faults.finish is not None:
        finishes = faults.finish
    return Ending(faults.finish_seconds, faults.exit_code or 0) if finishes else None


# --- steps ----------------------------------------------------------------------------------------------


def _admitted(pod: Object, faults: Faults, place: Place, now: datetime) -> Object:
    init, main = _containers(pod, faults)
    reason = "PodInitializing" if init else "ContainerCreating"
    new: Object = {
        **status(pod),
        "phase": "Pending",
        "startTime": timestamp(now),
        "hostIP": place.host,
        "hostIPs": [{"ip": place.host}],
        "containerStatuses": [containers.waiting(container, reason) for container in main],
    }
    if init:
        new["initContainerStatuses"] = [containers.waiting(container, reason) for container in init]
    if pod["metadata"].get("generation"):
        new["observedGeneration"] = pod["metadata"]["generation"]
    return podconditions.applied(pod, new, now)


def _advance(pod: Object, faults: Faults, place: Place, now: datetime) -> Plan:
    init, main = _containers(pod, faults)
    init_steps, initialized = _initialize(init, _by_name(pod, "initContainerStatuses"), now)
    current = _by_name(pod, "containerStatuses")
    if initialized:
        steps = [containers.step(c, current.get(c.name) or containers.waiting(c, ""), now) for c in main]
    else:
        steps = [Step(current.get(c.name) or containers.waiting(c, "PodInitializing")) for c in main]
    states = [step.status for step in steps]
    new: Object = {**status(pod), "phase": _phase(states), "containerStatuses": states}
    if init:
        new["initContainerStatuses"] = [
            _stopped_sidecar(container, step.status, new["phase"], now)
            for container, step in zip(init, init_steps, strict=True)
        ]
    debug, debug_steps = _debugging(pod, faults, now) if initialized else ([], [])
    if debug:
        new["ephemeralContainerStatuses"] = [
            _stopped_sidecar(container, step.status, new["phase"], now)
            for container, step in zip(debug, debug_steps, strict=True)
        ]
    if any("running" in (state["state"] or {}) for state in [*states, *(s.status for s in init_steps)]):
        new |= _addresses(pod, place)
    if pod["metadata"].get("generation"):
        new["observedGeneration"] = pod["metadata"]["generation"]
    new = podconditions.applied(pod, new, now)
    plan = Plan(set_status(pod, new))
    for kind, container, taken in (
        *(("initContainers", c, s) for c, s in zip(init, init_steps, strict=True)),
        *(("containers", c, s) for c, s in zip(main, steps, strict=True)),
        *(("ephemeralContainers", c, s) for c, s in zip(debug, debug_steps, strict=True)),
    ):
        plan.look_again(taken.again)
        for reason, message, warning in taken.told:
            plan.add(Note(pod, reason, message, COMPONENT, warning, f"spec.{kind}{{{container.name}}}"))
    return plan


def _initialize(init: list[Container], current: dict[str, Object], now: datetime) -> tuple[list[Step], bool]:
    """The init containers' next statuses, of which at most one changes, and whether all were done before."""
    steps: list[Step] = []
    done = True
    for container in init:
        old = current.get(container.name) or containers.waiting(container, "PodInitializing")
        if not done:
            steps.append(Step(old))
            continue
        if "terminated" in old["state"] or ("running" in old["state"] and container.restarts == "Always"):
            steps.append(Step(old))
            continue
        step = containers.step(container, old, now)
        done = False
        if "running" in step.status["state"] and container.restarts != "Always":
            ended = containers.terminated(container, step.status, 0, now)
            step = Step({**ended, "ready": True}, step.told)
        steps.append(step)
    return steps, done


def _debugging(pod: Object, faults: Faults, now: datetime) -> tuple[list[Container], list[Step]]:
    """The containers that `kubectl debug` adds, and their next statuses: running, never ready."""
    debug = [
        Container(c, "Never", _without_crash(faults), None, uid(pod))
        for c in spec(pod).get("ephemeralContainers") or ()
    ]
    current = _by_name(pod, "ephemeralContainerStatuses")
    steps: list[Step] = []
    for container in debug:
        old = current.get(container.name) or containers.waiting(container, "")
        if "running" in old["state"] or "terminated" in old["state"]:
            steps.append(Step(old))
            continue
        step = containers.step(container, old, now)
        step.status = {**step.status, "ready": False}
        step.status.pop("started", None)
        steps.append(step)
    return debug, steps


def _stopped_sidecar(container: Container, state: Object, phase: str, now: datetime) -> Object:
    # Sidecars run as long as the containers proper, not longer.
    if phase in ("Succeeded", "Failed") and "running" in state["state"]:
        return containers.terminated(container, state, 0, now)
    return state


def _phase(states: list[Object]) -> str:
    ended = [state["state"]["terminated"] for state in states if "terminated" in state["state"]]
    if states and len(ended) == len(states):
        return "Failed" if any(end.get("exitCode") for end in ended) else "Succeeded"
    has_run = any(
        {"running", "terminated"} & set(state["state"]) or state.get("lastState") for state in states
    )
    return "Running" if has_run else "Pending"


def _addresses(pod: Object, place: Place) -> Object:
    address = status(pod).get("podIP") or (place.host if spec(pod).get("hostNetwork") else place.address)
    return {"podIP": address, "podIPs": [{"ip": address}]}


def _containers(pod: Object, faults: Faults) -> tuple[list[Container], list[Container]]:
    restarts, ending = spec(pod).get("restartPolicy", "Always"), ending_of(pod, faults)
    init = [
        Container(c, c.get("restartPolicy") or "Never", _without_crash(faults), None, uid(pod))
        for c in spec(pod).get("initContainers") or ()
    ]
    main = [Container(c, restarts, faults, ending, uid(pod)) for c in spec(pod).get("containers") or ()]
    return init, main


def _without_crash(faults: Faults) -> Faults:
    # Crashes and unreadiness are for the containers proper: an init container has its own way to fail.
    return Faults(unpullable=faults.unpullable)


def _by_name(pod: Object, field: str) -> dict[str, Object]:
    return {state["name"]: state for state in status(pod).get(field) or ()}


# --- deadlines and deletion -----------------------------------------------------------------------------


def _deadline(pod: Object, now: datetime) -> float | None:
    limit = spec(pod).get("activeDeadlineSeconds")
    return None if limit is None else limit - seconds_since(status(pod).get("startTime"), now)


def _exceed_deadline(pod: Object, faults: Faults, now: datetime) -> Plan:
    message = "Pod was active on the node longer than the specified deadline"
    new = {**_stopped(pod, faults, now), "reason": "DeadlineExceeded", "message": message}
    told = Note(pod, "DeadlineExceeded", message, COMPONENT)
    return Plan([UpdateStatus({**pod, "status": podconditions.applied(pod, new, now)}), told])


def _remove(pod: Object, faults: Faults, now: datetime) -> Plan:
    plan = Plan()
    if pod["metadata"].get("finalizers") and not is_finished(pod) and status(pod).get("startTime"):
        # Somebody will still look at it: the containers have ended.
        new = podconditions.applied(pod, _stopped(pod, faults, now), now)
        plan.add(UpdateStatus({**pod, "status": new}))
    if pod["metadata"].get("deletionGracePeriodSeconds") != 0:
        for state in status(pod).get("containerStatuses") or ():
            if "running" in (state.get("state") or {}):
                message = f"Stopping container {state['name']}"
                path = f"spec.containers{{{state['name']}}}"
                plan.add(Note(pod, "Killing", message, COMPONENT, field_path=path))
        plan.add(Delete(pod, grace_seconds=0))
    return plan


def _stopped(pod: Object, faults: Faults, now: datetime) -> Object:
    _, main = _containers(pod, faults)
    current = _by_name(pod, "containerStatuses")
    states = []
    for container in main:
        state = current.get(container.name) or containers.waiting(container, "")
        ended = "terminated" in (state.get("state") or {})
        states.append(state if ended else containers.terminated(container, state, _SIGTERM, now))
    return without_empty({**status(pod), "phase": "Failed", "containerStatuses": states})
