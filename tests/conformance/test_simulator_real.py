"""The simulator's node half serves the real control plane: its controllers make Pods, ours move them on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from harness.plane import ControlPlane
from podium.api.kinds import Object
from podium.kube import Client, load_config
from podium.simulator import Simulator, faults
from podium.simulator.objects import CLAIM, DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, STATEFUL_SET
from podium.simulator.provisioning import STANDARD_CLASS
from simulator.cluster import condition, is_true, job, template, until, until_gone, workload

pytestmark = pytest.mark.real


@pytest.fixture(scope="session")
def control_plane(real_control_plane: ControlPlane) -> ControlPlane:
    return real_control_plane


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """An admin of the real control plane, beside which a simulated node runs."""
    config = load_config(control_plane.kubeconfig)
    async with Client(config) as simulated, Client(config) as user:
        task = asyncio.create_task(Simulator(simulated, workloads=False).run())
        yield user
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def placed(obj: Object, namespace: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def test_the_simulated_node_registers_and_is_ready(client: Client) -> None:
    node = await until(client, NODE, "podium-simulated", lambda n: is_true(n, "Ready"), "")
    assert node["status"]["nodeInfo"]["osImage"] == "Simulated by Podium"
    await until(client, NODE, "podium-simulated", lambda n: not n["spec"].get("taints"), "")


async def test_a_deployment_of_the_real_controller_becomes_available_and_rolls(
    client: Client, namespace: str
) -> None:
    await client.create(placed(workload("Deployment", "web", replicas=3), namespace))
    await until(client, DEPLOYMENT, "web", lambda d: d["status"].get("availableReplicas") == 3, namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
    await client.patch(DEPLOYMENT, "web", patch, namespace)
    rolled = await until(
        client,
        DEPLOYMENT,
        "web",
        lambda d: (
            d["status"].get("observedGeneration") == d["metadata"]["generation"]
            and d["status"].get("updatedReplicas") == d["status"].get("replicas") == 3
            and d["status"].get("availableReplicas") == 3
        ),
        namespace,
    )
    assert condition(rolled, "Progressing")["reason"] in ("NewReplicaSetAvailable", "ReplicaSetUpdated")


async def test_a_rollout_of_the_real_controller_stalls_by_annotation(client: Client, namespace: str) -> None:
    made = template("web", annotations={faults.UNPULLABLE: "true"})
    given = workload("Deployment", "web", replicas=1, progressDeadlineSeconds=1, template=made)
    await client.create(placed(given, namespace))
    await until(
        client,
        DEPLOYMENT,
        "web",
        lambda d: condition(d, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        namespace,
    )


async def test_a_job_of_the_real_controller_completes(client: Client, namespace: str) -> None:
    await client.create(placed(job("sum", completions=2, parallelism=2), namespace))
    done = await until(client, JOB, "sum", lambda j: is_true(j, "Complete"), namespace)
    assert done["status"]["succeeded"] == 2


async def test_a_job_of_the_real_controller_fails(client: Client, namespace: str) -> None:
    given = job("sum", annotations={faults.EXIT_CODE: "2"}, backoffLimit=0)
    await client.create(placed(given, namespace))
    failed = await until(client, JOB, "sum", lambda j: is_true(j, "Failed"), namespace)
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded"


async def test_a_stateful_set_of_the_real_controller_rolls(client: Client, namespace: str) -> None:
    await client.create(placed(workload("StatefulSet", "db", replicas=2, serviceName="db"), namespace))
    await until(client, STATEFUL_SET, "db", lambda s: s["status"].get("availableReplicas") == 2, namespace)
    patch = {"spec": {"template": template("db", "app:2")}}
    await client.patch(STATEFUL_SET, "db", patch, namespace)
    await until(
        client,
        STATEFUL_SET,
        "db",
        lambda s: (
            s["status"]["observedGeneration"] == 2
            and s["status"].get("updatedReplicas") == s["status"].get("availableReplicas") == 2
            and s["status"]["currentRevision"] == s["status"]["updateRevision"]
        ),
        namespace,
    )


async def test_a_daemon_set_of_the_real_controller_runs_on_the_simulated_node(
    client: Client, namespace: str
) -> None:
    await client.create(placed(workload("DaemonSet", "agent"), namespace))
    await until(client, DAEMON_SET, "agent", lambda d: d["status"].get("numberAvailable") == 1, namespace)


async def test_a_claim_is_provisioned_by_us_and_bound_by_the_real_controller(
    client: Client, namespace: str
) -> None:
    made = {**STANDARD_CLASS, "metadata": {"name": "simulated"}, "volumeBindingMode": "WaitForFirstConsumer"}
    await client.create(made)
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "simulated",
    }
    metadata = {"name": "data", "namespace": namespace}
    await client.create(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    )
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    pod = {"containers": [{"name": "main", "image": "app:1"}], "volumes": [volume]}
    user = {"name": "web", "namespace": namespace}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": user, "spec": pod})
    await until(client, POD, "web", lambda p: is_true(p, "Ready"), namespace)
    claim = await client.get(CLAIM, "data", namespace)
    assert claim["status"]["phase"] == "Bound"


async def test_a_namespace_with_running_pods_is_emptied(client: Client) -> None:
    name = "simulated-shop"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await client.create(placed(workload("Deployment", "web", replicas=2), name))
    await until(client, DEPLOYMENT, "web", lambda d: d["status"].get("availableReplicas") == 2, name)
    await client.delete(NAMESPACE, name)
    await until_gone(client, NAMESPACE, name, "")
