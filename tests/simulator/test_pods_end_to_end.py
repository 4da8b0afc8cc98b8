from __future__ import annotations

from typing import Any

from podium.api.kinds import GVK, Object
from podium.kube import PatchType
from podium.simulator import faults
from podium.simulator.objects import DEPLOYMENT, NAMESPACE, NODE, POD
from simulator.cluster import Cluster, condition, is_true, workload

EVENT = GVK("", "v1", "Event")


def pod(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    given = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": given}


def waits_for(reason: str, restarts: int = 0) -> Any:
    def test(found: Object) -> bool:
        states = found["status"].get("containerStatuses") or [{}]
        waiting = states[0].get("state", {}).get("waiting", {})
        return bool(waiting.get("reason") == reason and states[0]["restartCount"] >= restarts)

    return test


async def reasons(cluster: Cluster, name: str) -> list[str]:
    await cluster.settled()
    events = (await cluster.user.list(EVENT, "default", fields=f"involvedObject.name={name}")).items
    return sorted(event["reason"] for event in events)


async def test_what_people_look_for_in_describe_is_there(cluster: Cluster) -> None:
    await cluster.user.create(pod("web"))
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    assert await reasons(cluster, "web") == ["Created", "Pulled", "Scheduled", "Started"]


async def test_an_image_that_cannot_be_pulled_is_backed_off_until_the_annotation_goes(
    cluster: Cluster,
) -> None:
    await cluster.user.create(pod("web", {faults.UNPULLABLE: "app:*"}))
    await cluster.until(POD, "web", waits_for("ImagePullBackOff"))
    assert {"BackOff", "Failed"} <= set(await reasons(cluster, "web"))
    await cluster.user.patch(POD, "web", {"metadata": {"annotations": {faults.UNPULLABLE: None}}}, "default")
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_a_fault_of_a_namespace_holds_for_its_pods(cluster: Cluster) -> None:
    patch = {"metadata": {"annotations": {faults.UNPULLABLE: "true"}}}
    await cluster.user.patch(NAMESPACE, "default", patch)
    await cluster.settled()
    await cluster.user.create(pod("web"))
    await cluster.until(POD, "web", waits_for("ImagePullBackOff"))
    await cluster.user.patch(NAMESPACE, "default", {"metadata": {"annotations": {faults.UNPULLABLE: None}}})
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_a_crashing_container_restarts_until_its_bound_and_heals(cluster: Cluster) -> None:
    await cluster.user.create(pod("web", {faults.CRASH: "true", faults.CRASH_RESTARTS: "3"}))
    crashed = await cluster.until(POD, "web", waits_for("CrashLoopBackOff", restarts=3))
    last = crashed["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (1, "Error")
    await cluster.settled()
    cluster.writes.clear()
    await cluster.settled()
    assert cluster.writes == []
    await cluster.user.patch(POD, "web", {"metadata": {"annotations": {faults.CRASH: None}}}, "default")
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_init_containers_end_before_the_others_start(cluster: Cluster) -> None:
    init = [
        {"name": "first", "image": "init:1"},
        {"name": "side", "image": "init:2", "restartPolicy": "Always"},
    ]
    await cluster.user.create(pod("web", initContainers=init))
    ready = await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    states = {s["name"]: s["state"] for s in ready["status"]["initContainerStatuses"]}
    assert states["first"]["terminated"]["reason"] == "Completed"
    assert "running" in states["side"]


async def test_a_readiness_gate_keeps_a_pod_unready_until_somebody_opens_it(cluster: Cluster) -> None:
    await cluster.user.create(pod("web", readinessGates=[{"conditionType": "example.com/gate"}]))
    closed = await cluster.until(POD, "web", lambda p: is_true(p, "ContainersReady"))
    assert condition(closed, "Ready")["reason"] == "ReadinessGatesNotReady"
    conditions = [*closed["status"]["conditions"], {"type": "example.com/gate", "status": "True"}]
    patch = {"status": {"conditions": conditions}}
    await cluster.user.patch(POD, "web", patch, "default", subresource="status")
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_a_changed_image_restarts_the_container(cluster: Cluster) -> None:
    await cluster.user.create(pod("web"))
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    patch = {"spec": {"containers": [{**pod("x")["spec"]["containers"][0], "image": "app:2"}]}}
    await cluster.user.patch(POD, "web", patch, "default", type=PatchType.STRATEGIC)
    changed = await cluster.until(
        POD, "web", lambda p: p["status"]["containerStatuses"][0]["image"] == "app:2"
    )
    assert changed["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_a_pod_that_no_node_can_take_says_why_and_is_placed_when_one_can(cluster: Cluster) -> None:
    await cluster.user.create(pod("web", nodeSelector={"disk": "ssd"}))
    refused = await cluster.until(POD, "web", lambda p: condition(p, "PodScheduled").get("reason"))
    assert condition(refused, "PodScheduled")["reason"] == "Unschedulable"
    assert condition(refused, "PodScheduled")["message"] == (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert await reasons(cluster, "web") == ["FailedScheduling"]
    await cluster.user.patch(NODE, "podium-simulated", {"metadata": {"labels": {"disk": "ssd"}}})
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_a_full_node_takes_no_more_pods_until_there_is_room(cluster: Cluster) -> None:
    big = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "40"}}}
    await cluster.user.create(pod("first", containers=[big]))
    await cluster.until(POD, "first", lambda p: is_true(p, "Ready"))
    await cluster.user.create(pod("second", containers=[big]))
    refused = await cluster.until(POD, "second", lambda p: condition(p, "PodScheduled").get("message"))
    assert "1 Insufficient cpu" in condition(refused, "PodScheduled")["message"]
    await cluster.user.delete(POD, "first", "default")
    await cluster.until(POD, "second", lambda p: is_true(p, "Ready"))


async def test_a_node_is_full_while_its_annotation_says_so(cluster: Cluster) -> None:
    await cluster.user.patch(
        NODE, "podium-simulated", {"metadata": {"annotations": {faults.NODE_FULL: "true"}}}
    )
    await cluster.settled()
    await cluster.user.create(pod("web"))
    refused = await cluster.until(POD, "web", lambda p: condition(p, "PodScheduled").get("message"))
    assert "1 Too many pods" in condition(refused, "PodScheduled")["message"]
    await cluster.user.patch(
        NODE, "podium-simulated", {"metadata": {"annotations": {faults.NODE_FULL: None}}}
    )
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))


async def test_another_schedulers_pods_are_left_alone(cluster: Cluster) -> None:
    await cluster.user.create(pod("web", schedulerName="mine"))
    await cluster.settled()
    assert "nodeName" not in (await cluster.user.get(POD, "web", "default"))["spec"]


async def test_a_deleted_pod_is_gone_although_its_grace_period_is_long(cluster: Cluster) -> None:
    await cluster.user.create(pod("web", terminationGracePeriodSeconds=3600))
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    await cluster.user.delete(POD, "web", "default")
    await cluster.until_gone(POD, "web")


async def test_a_deleted_pod_with_a_finalizer_shows_that_its_containers_ended(cluster: Cluster) -> None:
    held = pod("web")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.user.create(held)
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    await cluster.user.delete(POD, "web", "default")
    ended = await cluster.until(POD, "web", lambda p: p["status"]["phase"] == "Failed")
    assert "terminated" in ended["status"]["containerStatuses"][0]["state"]
    await cluster.settled()
    await cluster.user.patch(POD, "web", {"metadata": {"finalizers": None}}, "default")
    await cluster.until_gone(POD, "web")


async def test_a_namespace_with_running_pods_can_be_deleted(cluster: Cluster) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    await cluster.user.create(space)
    deployment = workload("Deployment", "web", replicas=2)
    deployment["metadata"]["namespace"] = "shop"
    await cluster.user.create(deployment)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "shop"}
    await cluster.user.create(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
    )
    await cluster.until(DEPLOYMENT, "web", lambda d: is_true(d, "Available"), "shop")
    await cluster.user.delete(NAMESPACE, "shop")
    await cluster.until_gone(NAMESPACE, "shop", "")


async def test_the_node_half_alone_leaves_workloads_to_others(cluster: Cluster) -> None:
    await cluster.stop()
    await cluster.start(workloads=False)
    await cluster.user.create(workload("Deployment", "web", replicas=1))
    await cluster.user.create(pod("single"))
    await cluster.until(POD, "single", lambda p: is_true(p, "Ready"))
    await cluster.settled()
    assert [p["metadata"]["name"] for p in await cluster.pods()] == ["single"]
