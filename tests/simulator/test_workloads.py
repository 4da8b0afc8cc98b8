from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from podium.api.kinds import Object
from podium.simulator import faults
from podium.simulator.objects import (
    CLAIM,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISION,
    STATEFUL_SET,
)
from simulator.cluster import Cluster, condition, is_true, job, template, workload


def is_complete(deployment: Object) -> bool:
    status = deployment.get("status", {})
    return (
        condition(deployment, "Progressing").get("reason") == "NewReplicaSetAvailable"
        and status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("replicas") == deployment["spec"]["replicas"]
    )


async def set_image(
    cluster: Cluster, name: str, image: str, annotations: dict[str, str] | None = None
) -> None:
    container = {"name": "main", "image": image}
    patch = {
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}}
    }
    await cluster.user.patch(DEPLOYMENT, name, patch, "default")


async def test_a_deployment_becomes_available_with_pods_to_look_at(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=3))
    deployment = await cluster.until(DEPLOYMENT, "web", is_complete)
    assert deployment["status"]["availableReplicas"] == 3
    assert is_true(deployment, "Available")
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert deployment["metadata"]["generation"] == 1
    pods = await cluster.pods("app=web")
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3
    assert len({pod["status"]["podIP"] for pod in pods}) == 3
    owner = pods[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["blockOwnerDeletion"]) == ("ReplicaSet", True)
    order = [found["type"] for found in pods[0]["status"]["conditions"]]
    assert order == ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]


def _plain(api: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_settled_cluster_gets_no_writes(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template_of_claim = {"metadata": {"name": "data"}, "spec": claim}
    stateful = {"replicas": 2, "serviceName": "db", "volumeClaimTemplates": [template_of_claim]}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    ports = [{"name": "http", "port": 80}]
    broken = template("broken", annotations={faults.CRASH: "true", faults.CRASH_RESTARTS: "1"})
    for made in (
        workload("Deployment", "web", replicas=2),
        workload("Deployment", "broken", replicas=1, template=broken),
        workload("StatefulSet", "db", **stateful),
        workload("DaemonSet", "agent"),
        _plain("v1", "Service", "web", {"selector": {"app": "web"}, "ports": ports, "type": "LoadBalancer"}),
        _plain("v1", "Service", "db", {"selector": {"app": "db"}, "ports": ports, "clusterIP": "None"}),
        _plain("policy/v1", "PodDisruptionBudget", "web", budget),
        _plain(
            "batch/v1",
            "CronJob",
            "nightly",
            {"schedule": "0 3 * * *", "jobTemplate": {"spec": job("x")["spec"]}},
        ),
        job("done", completions=2),
    ):
        await cluster.user.create(made)
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await cluster.until(JOB, "done", lambda j: is_true(j, "Complete"))
    await cluster.until(STATEFUL_SET, "db", lambda s: s["status"].get("availableReplicas") == 2)
    await cluster.settled()
    cluster.writes.clear()
    # A new simulator looks at everything again and finds nothing to do.
    await cluster.stop()
    await cluster.start()
    assert cluster.writes == []


async def test_a_rolling_update_keeps_the_promised_number_of_pods_available(cluster: Cluster) -> None:
    bounds = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await cluster.user.create(workload("Deployment", "web", replicas=3, strategy=bounds))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    seen: list[tuple[int, int]] = []

    async def observe() -> None:
        ready: dict[str, bool] = {}
        events = cluster.user.watch(POD, "default", labels="app=web", send_initial_events=True)
        async with aclosing(events):
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                pod = msgspec.json.decode(event.object)
                alive = event.type != "DELETED" and "deletionTimestamp" not in pod["metadata"]
                ready.pop(pod["metadata"]["name"], None)
                if alive:
                    ready[pod["metadata"]["name"]] = is_true(pod, "Ready")
                seen.append((sum(ready.values()), len(ready)))

    watching = asyncio.create_task(observe())
    await set_image(cluster, "web", "app:2")
    deployment = await cluster.until(DEPLOYMENT, "web", is_complete)
    await cluster.settled()
    watching.cancel()
    assert min(ready for ready, _ in seen[3:]) == 3
    assert max(alive for _, alive in seen) <= 4
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()} == {"app:2"}


async def test_a_rollout_stalls_and_says_so_when_new_pods_never_become_ready(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=2, progressDeadlineSeconds=1))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await set_image(cluster, "web", "app:2", {faults.NEVER_READY: "true"})
    stalled = await cluster.until(
        DEPLOYMENT, "web", lambda d: condition(d, "Progressing").get("reason") == "ProgressDeadlineExceeded"
    )
    assert condition(stalled, "Progressing")["status"] == "False"
    assert is_true(stalled, "Available")
    await set_image(cluster, "web", "app:1", {faults.NEVER_READY: ""})
    await cluster.until(DEPLOYMENT, "web", is_complete)


async def test_going_back_to_an_old_template_reuses_its_replica_set_under_a_new_number(
    cluster: Cluster,
) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=1))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    for image, revision in (("app:2", "2"), ("app:1", "3")):
        await set_image(cluster, "web", image)
        await cluster.until(
            DEPLOYMENT,
            "web",
            lambda d, revision=revision: (
                is_complete(d)  # type: ignore[misc]
                and d["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == revision
            ),
        )
    sets = (await cluster.user.list(REPLICA_SET, "default")).items
    images = {s["spec"]["template"]["spec"]["containers"][0]["image"]: s for s in sets}
    assert len(sets) == 2
    assert images["app:1"]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    assert (images["app:1"]["spec"]["replicas"], images["app:2"]["spec"]["replicas"]) == (1, 0)


async def test_old_replica_sets_beyond_the_history_limit_are_deleted(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    for number in range(1, 4):
        await cluster.until(DEPLOYMENT, "web", is_complete)
        await set_image(cluster, "web", f"app:{number + 1}")
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await cluster.settled()
    sets = (await cluster.user.list(REPLICA_SET, "default")).items
    images = sorted(s["spec"]["template"]["spec"]["containers"][0]["image"] for s in sets)
    assert images == ["app:3", "app:4"]


async def test_recreate_ends_every_old_pod_before_a_new_one_is_made(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    mixed = False

    async def observe() -> None:
        nonlocal mixed
        images: dict[str, str] = {}
        events = cluster.user.watch(POD, "default", send_initial_events=True)
        async with aclosing(events):
            async for event in events:
                pod = msgspec.json.decode(event.object)
                if event.type == "DELETED":
                    images.pop(pod["metadata"]["name"], None)
                elif event.type != "BOOKMARK":
                    images[pod["metadata"]["name"]] = pod["spec"]["containers"][0]["image"]
                mixed = mixed or len(set(images.values())) > 1

    watching = asyncio.create_task(observe())
    await set_image(cluster, "web", "app:2")
    await cluster.until(DEPLOYMENT, "web", is_complete)
    watching.cancel()
    assert not mixed


async def test_a_paused_deployment_waits_and_goes_on_when_resumed(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=1))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await cluster.user.patch(DEPLOYMENT, "web", {"spec": {"paused": True}}, "default")
    await set_image(cluster, "web", "app:2")
    await cluster.until(
        DEPLOYMENT, "web", lambda d: condition(d, "Progressing").get("reason") == "DeploymentPaused"
    )
    await cluster.settled()
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()} == {"app:1"}
    await cluster.user.patch(DEPLOYMENT, "web", {"spec": {"paused": False}}, "default")
    await cluster.until(DEPLOYMENT, "web", is_complete)


async def test_scaling_down_removes_pods_and_scaling_to_nothing_all_of_them(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=4))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    for replicas in (1, 0):
        await cluster.user.patch(DEPLOYMENT, "web", {"spec": {"replicas": replicas}}, "default")
        await cluster.until(
            DEPLOYMENT,
            "web",
            lambda d, n=replicas: (
                d["status"].get("replicas", 0) == n  # type: ignore[misc]
                and d["status"]["observedGeneration"] == d["metadata"]["generation"]
            ),
        )
        await cluster.settled()
        assert len(await cluster.pods()) == replicas


async def test_a_replica_set_adopts_a_pod_that_matches_and_lets_go_of_one_that_does_not(
    cluster: Cluster,
) -> None:
    orphan = {"apiVersion": "v1", "kind": "Pod", **template("web")}
    orphan["metadata"] = {**orphan["metadata"], "name": "orphan", "namespace": "default"}
    await cluster.user.create(orphan)
    await cluster.user.create(workload("ReplicaSet", "web", replicas=2))
    await cluster.until(REPLICA_SET, "web", lambda s: s["status"].get("availableReplicas") == 2)
    adopted = await cluster.user.get(POD, "orphan", "default")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"
    await cluster.user.patch(POD, "orphan", {"metadata": {"labels": {"app": "other"}}}, "default")
    await cluster.until(POD, "orphan", lambda pod: not pod["metadata"].get("ownerReferences"))
    await cluster.until(REPLICA_SET, "web", lambda s: s["status"].get("availableReplicas") == 2)
    await cluster.settled()
    assert len(await cluster.pods("app=web")) == 2


async def test_a_replication_controller_keeps_its_pods(cluster: Cluster) -> None:
    spec = {"replicas": 2, "selector": {"app": "old"}, "template": template("old")}
    metadata = {"name": "old", "namespace": "default"}
    await cluster.user.create(
        {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": spec}
    )
    await cluster.until(REPLICATION_CONTROLLER, "old", lambda c: c["status"].get("readyReplicas") == 2)
    await cluster.user.delete(POD, (await cluster.pods())[0]["metadata"]["name"], "default")
    await cluster.settled()
    assert len(await cluster.pods("app=old")) == 2


async def test_pods_that_the_server_refuses_show_up_as_a_failure_of_their_owners(cluster: Cluster) -> None:
    spec = template("web", serviceAccountName="nobody")
    await cluster.user.create(workload("Deployment", "web", replicas=1, template=spec))
    failed = await cluster.until(DEPLOYMENT, "web", lambda d: is_true(d, "ReplicaFailure"))
    assert 'serviceaccount "nobody" not found' in condition(failed, "ReplicaFailure")["message"]


async def test_a_stateful_set_makes_its_pods_in_order_with_claims_of_their_own(cluster: Cluster) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.user.create(
        workload("StatefulSet", "db", replicas=3, serviceName="db", volumeClaimTemplates=[claim])
    )
    await cluster.until(STATEFUL_SET, "db", lambda s: s["status"].get("availableReplicas") == 3)
    pods = await cluster.pods()
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1", "db-2"]
    ages = [int(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"]) for pod in pods]
    assert ages == [0, 1, 2]
    ready = [condition(pod, "Ready")["lastTransitionTime"] for pod in pods]
    assert ready == sorted(ready)
    assert pods[1]["spec"]["hostname"] == "db-1"
    claims = (await cluster.user.list(CLAIM, "default")).items
    assert sorted(c["metadata"]["name"] for c in claims) == ["data-db-0", "data-db-1", "data-db-2"]
    assert {c["status"]["phase"] for c in claims} == {"Bound"}


async def test_a_stateful_set_updates_from_the_top_down_to_its_partition(cluster: Cluster) -> None:
    await cluster.user.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    await cluster.until(STATEFUL_SET, "db", lambda s: s["status"].get("availableReplicas") == 3)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    patch = {"spec": {"template": template("db", "app:2"), "updateStrategy": rolling}}
    await cluster.user.patch(STATEFUL_SET, "db", patch, "default")
    partial = await cluster.until(
        STATEFUL_SET,
        "db",
        lambda s: s["status"].get("updatedReplicas") == 2 and s["status"].get("availableReplicas") == 3,
    )
    assert partial["status"]["currentRevision"] != partial["status"]["updateRevision"]
    assert [p["spec"]["containers"][0]["image"] for p in await cluster.pods()] == ["app:1", "app:2", "app:2"]
    await cluster.user.patch(
        STATEFUL_SET, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "default"
    )
    done = await cluster.until(
        STATEFUL_SET, "db", lambda s: s["status"]["currentRevision"] == s["status"]["updateRevision"]
    )
    assert done["status"]["updatedReplicas"] == 3
    assert len((await cluster.user.list(REVISION, "default")).items) == 2


async def test_a_stateful_set_shrinks_from_the_top(cluster: Cluster) -> None:
    await cluster.user.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    await cluster.until(STATEFUL_SET, "db", lambda s: s["status"].get("availableReplicas") == 3)
    await cluster.user.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}}, "default")
    await cluster.until(STATEFUL_SET, "db", lambda s: s["status"].get("replicas") == 1)
    await cluster.settled()
    assert [pod["metadata"]["name"] for pod in await cluster.pods()] == ["db-0"]


async def test_a_daemon_set_runs_once_on_every_node_and_is_replaced_when_it_changes(cluster: Cluster) -> None:
    await cluster.stop()
    await cluster.start(nodes=3)
    await cluster.user.create(workload("DaemonSet", "agent"))
    await cluster.until(DAEMON_SET, "agent", lambda d: d["status"].get("numberAvailable") == 3)
    nodes = {pod["spec"]["nodeName"] for pod in await cluster.pods()}
    assert nodes == {"podium-simulated", "podium-simulated-2", "podium-simulated-3"}
    await cluster.user.patch(
        DAEMON_SET, "agent", {"spec": {"template": template("agent", "app:2")}}, "default"
    )
    await cluster.until(
        DAEMON_SET,
        "agent",
        lambda d: (
            d["status"]["observedGeneration"] == 2
            and d["status"].get("updatedNumberScheduled") == d["status"].get("numberAvailable") == 3
        ),
    )
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()} == {"app:2"}


async def test_a_simulator_that_is_restarted_in_the_middle_of_a_rollout_finishes_it(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=4))
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await set_image(cluster, "web", "app:2")
    for _ in range(6):
        await cluster.written(7)
        await cluster.stop()
        await cluster.start(settle=False)
    await cluster.until(DEPLOYMENT, "web", is_complete)
    await cluster.settled()
    pods = await cluster.pods()
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["app:2"] * 4


async def test_the_node_says_that_it_is_simulated(cluster: Cluster) -> None:
    node = await cluster.until(NODE, "podium-simulated", lambda n: is_true(n, "Ready"), "")
    info = node["status"]["nodeInfo"]
    assert info["osImage"] == "Simulated by Podium"
    assert info["containerRuntimeVersion"] == "simulated://1"
    assert info["kubeletVersion"] == "v1.36.4-simulated"
    assert node["metadata"]["labels"]["podium.dev/simulated"] == "true"
    assert not node["spec"].get("taints")
