from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import kubelet
from podium.simulator.faults import NONE, Faults
from podium.simulator.plan import Delete, UpdateStatus
from simulator.objects_for_tests import NOW, at, obj, owned, reported, stamp

PLACE = kubelet.Place("172.18.0.2", "10.128.0.2")
JOB = obj("Job", "sum", "batch/v1")


def pod(**spec: Any) -> Object:
    given = {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Always", **spec}
    return obj("Pod", "web", spec={"nodeName": "podium-simulated", **given})


def lives(given: Object, faults: Faults = NONE, steps: int = 40) -> list[str]:
    """What `kubectl get` would show, step by step, until nothing changes any more."""
    shown: list[str] = []
    for _ in range(steps):
        plan = kubelet.decide(given, faults, PLACE, NOW)
        if not plan:
            return shown
        (write,) = [w for w in plan.writes if isinstance(w, UpdateStatus)]
        given = write.object
        shown.append(_shown(given["status"]))
    raise AssertionError(f"no end: {shown}")


def _shown(status: Object) -> str:
    (main, *_) = status["containerStatuses"]
    ready = (
        "ready" if any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"]) else ""
    )
    state, detail = next(iter(main["state"].items()))
    what = detail.get("reason") or state
    return " ".join(filter(None, (status["phase"], what, str(main["restartCount"] or ""), ready)))


@pytest.mark.parametrize(
    ("given", "faults", "life"),
    [
        (pod(), NONE, ["Pending ContainerCreating", "Running running ready"]),
        (
            pod(containers=[{"name": "main", "image": "app:1", "readinessProbe": {}}]),
            NONE,
            ["Pending ContainerCreating", "Running running", "Running running ready"],
        ),
        (
            pod(initContainers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]),
            NONE,
            ["Pending PodInitializing"] * 3 + ["Running running ready"],
        ),
        (
            pod(),
            Faults(unpullable="app:*"),
            ["Pending ContainerCreating", "Pending ErrImagePull", "Pending ImagePullBackOff"],
        ),
        (pod(), Faults(unpullable="other:*"), ["Pending ContainerCreating", "Running running ready"]),
        (pod(), Faults(never_ready="*"), ["Pending ContainerCreating", "Running running"]),
        (
            pod(),
            Faults(crash="main", crash_restarts=2),
            [
                "Pending ContainerCreating",
                "Running running",
                "Running CrashLoopBackOff",
                "Running running 1",
                "Running CrashLoopBackOff 1",
                "Running running 2",
                "Running CrashLoopBackOff 2",
            ],
        ),
        (
            pod(restartPolicy="Never"),
            Faults(crash="*", exit_code=7),
            ["Pending ContainerCreating", "Running running", "Failed Error"],
        ),
        (pod(restartPolicy="Never"), NONE, ["Pending ContainerCreating", "Running running ready"]),
        (
            owned(pod(restartPolicy="Never"), JOB),
            NONE,
            ["Pending ContainerCreating", "Running running ready", "Succeeded Completed"],
        ),
        (
            owned(pod(restartPolicy="Never"), JOB),
            Faults(exit_code=1),
            ["Pending ContainerCreating", "Running running ready", "Failed Error"],
        ),
        (
            owned(pod(restartPolicy="Never"), JOB),
            Faults(finish=False),
            ["Pending ContainerCreating", "Running running ready"],
        ),
        (
            pod(restartPolicy="OnFailure"),
            Faults(finish=True),
            ["Pending ContainerCreating", "Running running ready", "Succeeded Completed"],
        ),
    ],
)
def test_the_life_of_a_pod(given: Object, faults: Faults, life: list[str]) -> None:
    assert lives(given, faults) == life


def settled(given: Object, faults: Faults = NONE) -> Object:
    """The Pod once nothing changes any more."""
    while plan := kubelet.decide(given, faults, PLACE, NOW):
        (given,) = [write.object for write in plan.writes if isinstance(write, UpdateStatus)]
    return given


def test_a_container_for_debugging_runs_beside_the_others_and_ends_with_the_pod() -> None:
    debugged = settled(pod(ephemeralContainers=[{"name": "debugger", "image": "tools:1"}]))
    (debugger,) = debugged["status"]["ephemeralContainerStatuses"]
    assert "running" in debugger["state"]
    assert debugger["ready"] is False
    assert _shown(debugged["status"]) == "Running running ready"
    ended = settled(
        owned({**debugged, "spec": {**debugged["spec"], "restartPolicy": "Never"}}, JOB), Faults(finish=True)
    )
    assert ended["status"]["phase"] == "Succeeded"
    assert "terminated" in ended["status"]["ephemeralContainerStatuses"][0]["state"]


def test_a_container_for_debugging_whose_image_cannot_be_pulled_waits() -> None:
    given = pod(ephemeralContainers=[{"name": "debugger", "image": "tools:1"}])
    (debugger,) = settled(given, Faults(unpullable="tools:*"))["status"]["ephemeralContainerStatuses"]
    assert debugger["state"]["waiting"]["reason"] == "ImagePullBackOff"


def started(faults: Faults = NONE, **spec: Any) -> Object:
    given = pod(**spec)
    for _ in range(2):
        given = {**given, "status": reported(kubelet.decide(given, faults, PLACE, NOW))}
    return given


@pytest.mark.parametrize(("seconds", "again"), [(0, 5), (3, 2)])
def test_a_start_delay_is_waited_for(seconds: float, again: float) -> None:
    slow = Faults(start_seconds=5)
    admitted = pod()
    admitted["status"] = reported(kubelet.decide(admitted, slow, PLACE, NOW))
    plan = kubelet.decide(admitted, slow, PLACE, at(seconds))
    assert (plan.writes, plan.again) == ([], again)
    assert reported(kubelet.decide(admitted, slow, PLACE, at(5)))["phase"] == "Running"


def test_a_finish_delay_is_waited_for() -> None:
    slow = Faults(finish=True, finish_seconds=9)
    running = started(slow, restartPolicy="Never")
    assert kubelet.decide(running, slow, PLACE, at(4)).again == 5
    assert reported(kubelet.decide(running, slow, PLACE, at(9)))["phase"] == "Succeeded"


def test_a_pod_that_is_active_for_too_long_fails() -> None:
    running = started(activeDeadlineSeconds=3)
    assert kubelet.decide(running, NONE, PLACE, at(1)).again == 2
    status = reported(kubelet.decide(running, NONE, PLACE, at(3)))
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_running_pod_has_the_addresses_and_conditions_of_a_real_one() -> None:
    status = started()["status"]
    assert (status["podIP"], status["hostIP"]) == ("10.128.0.2", "172.18.0.2")
    assert (status["podIPs"], status["hostIPs"]) == ([{"ip": "10.128.0.2"}], [{"ip": "172.18.0.2"}])
    assert status["startTime"] == stamp()
    conditions = [(c["type"], c["status"]) for c in status["conditions"]]
    order = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert conditions == [(kind, "True") for kind in order]


def test_a_pod_on_the_host_network_has_the_address_of_its_node() -> None:
    assert started(hostNetwork=True)["status"]["podIP"] == "172.18.0.2"


def test_conditions_of_others_are_kept() -> None:
    running = started()
    mine = {"type": "example.com/gate", "status": "False", "lastTransitionTime": stamp()}
    running["status"]["conditions"].append(mine)
    running["spec"]["readinessGates"] = [{"conditionType": "example.com/gate"}]
    conditions = reported(kubelet.decide(running, NONE, PLACE, at(1)))["conditions"]
    assert conditions[0] == mine
    ready = next(c for c in conditions if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")


@pytest.mark.parametrize(("grace", "gone"), [(30, True), (0, False)])
def test_a_deleted_pod_is_removed_once(grace: int, gone: bool) -> None:
    running = started()
    running["metadata"] |= {"deletionTimestamp": stamp(), "deletionGracePeriodSeconds": grace}
    writes = kubelet.decide(running, NONE, PLACE, NOW).writes
    deletions = [write for write in writes if isinstance(write, Delete)]
    assert [write.grace_seconds for write in deletions] == ([0] if gone else [])


def test_a_finished_pod_is_left_alone() -> None:
    ended = {**pod(), "status": {"phase": "Succeeded"}}
    assert not kubelet.decide(ended, Faults(crash="*"), PLACE, NOW)
