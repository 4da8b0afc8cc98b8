"""One container's next state: waiting, running or terminated, from its present one and the wishes for it.

A step moves a container by one state, so that every state can be seen by whoever watches. A container whose
state stays as it is keeps its status as the very same mapping; a settled Pod therefore compares equal.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.faults import Faults
from podium.simulator.objects import seconds_since

ERROR_PULL, PULL_BACK_OFF, CRASH_LOOP = "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ends by itself, if it does."""

    after: float = 0.0
    code: int = 0


@dataclass(slots=True)
class Step:
    """A container's next status, what to tell about the step, and when to look again."""

    status: Object
    told: list[tuple[str, str, bool]] = field(
        default_factory=list
    )  # reason, message, whether it is a warning
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a Pod as it is specified, and what applies to it."""

    spec: Object
    restarts: str  # Always, OnFailure or Never
    faults: Faults
    ending: Ending | None
    pod_uid: str

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def image(self) -> str:
        return str(self.spec.get("image") or "")

    @property
    def has_readiness_probe(self) -> bool:
        return self.spec.get("readinessProbe") is not None


def waiting(container: Container, reason: str) -> Object:
    """The status of a container that has not run yet."""
    return {
        "name": container.name,
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container.image,
        "imageID": "",
        "started": False,
    }


def step(container: Container, current: Object, now: datetime) -> Step:
    """The next state of a container whose turn has come."""
    state = current.get("state") or {}
    if "running" in state:
        return _from_running(container, current, state["running"], now)
    if "terminated" in state:
        return Step(current)
    reason = (state.get("waiting") or {}).get("reason")
    if reason == CRASH_LOOP:
        return _from_crash_loop(container, current, now)
    if container.faults.is_unpullable(container.image):
        return _not_pulled(container, current, reason)
    return _started(container, current, now)


def terminated(
    container: Container, current: Object, code: int, now: datetime, *, reason: str = ""
) -> Object:
    """The status of a container that has ended."""
    started = ((current.get("state") or {}).get("running") or {}).get("startedAt") or timestamp(now)
    ended = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": started,
        "finishedAt": timestamp(now),
        "containerID": current.get("containerID") or _container_id(container, current["restartCount"]),
    }
    return {
        **current,
        "state": {"terminated": ended},
        "ready": False,
        "started": False,
        "image": container.image,
        "imageID": _image_id(container.image),
        "containerID": ended["containerID"],
    }


def _started(container: Container, current: Object, now: datetime, restarts: int = 0) -> Step:
    faults = container.faults
    # One that crashes is not ready even for a moment, or its Deployment would count as rolled out.
    unready = (
        container.has_readiness_probe
        or faults.is_never_ready(container.name)
        or faults.crashes(container.name)
    )
    status = {
        **current,
        "state": {"running": {"startedAt": timestamp(now)}},
        "ready": not unready,
        "restartCount": restarts,
        "image": container.image,
        "imageID": _image_id(container.image),
        "containerID": _container_id(container, restarts),
        "started": True,
    }
    pulled = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
    told = [
        ("Pulled", pulled, False),
        ("Created", "Container created", False),
        ("Started", "Container started", False),
    ]
    return Step(status, told)


def _from_running(container: Container, current: Object, running: Object, now: datetime) -> Step:
    faults = container.faults
    if current.get("image") != container.image:
        last = terminated(container, current, 143, now)["state"]
        step = _started(container, {**current, "lastState": last}, now, current["restartCount"] + 1)
        step.told.insert(
            0, ("Killing", f"Container {container.name} definition changed, will be restarted", False)
        )
        return step
    if faults.crashes(container.name):
        return _ended(container, current, 1 if faults.exit_code is None else faults.exit_code, now)
    if container.ending is not None:
        wait = container.ending.after - seconds_since(running.get("startedAt"), now)
        if wait <= 0:
            return _ended(container, current, container.ending.code, now)
        return Step(current, again=wait)
    ready = not faults.is_never_ready(container.name)
    if current["ready"] == ready:
        return Step(current)
    told = [] if ready else [("Unhealthy", "Readiness probe failed: simulated by annotation", True)]
    return Step({**current, "ready": ready}, told)


def _ended(container: Container, current: Object, code: int, now: datetime) -> Step:
    status = terminated(container, current, code, now)
    if container.restarts == "Never" or (container.restarts == "OnFailure" and code == 0):
        return Step(status)
    message = f"back-off restarting failed container={container.name}"
    status |= {
        "lastState": status["state"],
        "state": {"waiting": {"reason": CRASH_LOOP, "message": message}},
    }
    return Step(status, [("BackOff", f"Back-off restarting failed container {container.name}", True)])


def _from_crash_loop(container: Container, current: Object, now: datetime) -> Step:
    faults = container.faults
    healed = not faults.crashes(container.name) and (container.ending is None or container.ending.code == 0)
    if current["restartCount"] >= faults.crash_restarts and not healed:
        return Step(current)
    ended = (current.get("lastState") or {}).get("terminated") or {}
    wait = faults.restart_seconds - seconds_since(ended.get("finishedAt"), now)
    if wait > 0:
        return Step(current, again=wait)
    return _started(container, current, now, current["restartCount"] + 1)


def _not_pulled(container: Container, current: Object, reason: str | None) -> Step:
    if reason == PULL_BACK_OFF:
        return Step(current)
    image = container.image
    if reason == ERROR_PULL:
        message = f'Back-off pulling image "{image}"'
        state = {"waiting": {"reason": PULL_BACK_OFF, "message": message}}
        told = [("BackOff", message, False), ("Failed", f"Error: {PULL_BACK_OFF}", True)]
        return Step({**current, "state": state}, told)
    message = f'failed to pull and unpack image "{image}": not found (simulated by annotation)'
    state = {"waiting": {"reason": ERROR_PULL, "message": message}}
    told = [
        ("Pulling", f'Pulling image "{image}"', False),
        ("Failed", f'Failed to pull image "{image}": {message}', True),
        ("Failed", f"Error: {ERROR_PULL}", True),
    ]
    return Step({**current, "state": state}, told)


def _image_id(image: str) -> str:
    return f"simulated://sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _container_id(container: Container, restarts: int) -> str:
    unique = f"{container.pod_uid}/{container.name}/{restarts}"
    return f"simulated://{hashlib.sha256(unique.encode()).hexdigest()}"
