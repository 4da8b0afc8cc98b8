"""The same workloads on both control planes end up as the same objects, field by field.

On the real one kube-controller-manager makes them and our nodes run them; on the embedded one all is
simulated. Values that are made up anew each time (hashes, addresses, times) are left out, not their presence.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.plane import ControlPlane
from podium.api.kinds import GVK, Object
from podium.kube import Client, load_config
from podium.kube.errors import AlreadyExists
from podium.simulator import Simulator, faults
from podium.simulator.objects import (
    BUDGET,
    CLAIM,
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINTS,
    JOB,
    NAMESPACE,
    POD,
    REPLICA_SET,
    REVISION,
    SERVICE,
    SLICE,
    STATEFUL_SET,
)
from podium.simulator.provisioning import STANDARD_CLASS
from simulator.cluster import is_true, job, running, until, workload

pytestmark = pytest.mark.real

ACCOUNT = GVK("", "v1", "ServiceAccount")
PLACE = "likeness"
KINDS = (
    DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB, REVISION,
    SERVICE, ENDPOINTS, SLICE, CLAIM, BUDGET, POD,
)  # fmt: skip
VOLATILE = {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"}
# Rows of the documentation: a hint for measurements, which the simulated controllers do not write.
DEVIATIONS = re.compile(r"last-change-trigger-time|kubernetes.io/job-tracking")
MADE_UP = re.compile(r"^(\d{4}-|10\.|simulated://)|-|^[bcdfghjklmnpqrstvwxz0-9]{5,10}$")


def objects() -> list[Object]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "standard"}}
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    ports = [{"name": "http", "port": 80}]
    plain = (
        ("v1", "Service", "web", {"selector": {"app": "web"}, "ports": ports}),
        ("v1", "Service", "db", {"selector": {"app": "db"}, "ports": ports, "clusterIP": "None"}),
        ("policy/v1", "PodDisruptionBudget", "web", budget),
    )
    return [
        workload("Deployment", "web", replicas=2),
        workload("StatefulSet", "db", replicas=1, serviceName="db", volumeClaimTemplates=[template]),
        workload("DaemonSet", "agent"),
        job("sum", completions=2, parallelism=2),
        job("indexed", completions=2, completionMode="Indexed"),
        job("bad", annotations={faults.EXIT_CODE: "1"}, backoffLimit=0),
        *({"apiVersion": a, "kind": k, "metadata": {"name": n}, "spec": s} for a, k, n, s in plain),
    ]


async def settled_objects(client: Client) -> dict[str, Any]:
    """Make the objects and wait until their status is final; every leaf by its path."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
    await until(client, ACCOUNT, "default", bool, PLACE)
    for made in objects():
        await client.create({**made, "metadata": {**made["metadata"], "namespace": PLACE}})
    for gvk, name, field, count in (
        (DEPLOYMENT, "web", "availableReplicas", 2),
        (STATEFUL_SET, "db", "availableReplicas", 1),
        (DAEMON_SET, "agent", "numberAvailable", 1),
        (BUDGET, "web", "currentHealthy", 2),
    ):
        await until(client, gvk, name, lambda o, f=field, n=count: o["status"].get(f) == n, PLACE)  # type: ignore[misc]
    await until(client, DEPLOYMENT, "web", _has_progressed, PLACE)
    for name, end in (("sum", "Complete"), ("indexed", "Complete"), ("bad", "Failed")):
        await until(client, JOB, name, lambda o, end=end: is_true(o, end), PLACE)  # type: ignore[misc]
    await until(client, ENDPOINTS, "web", lambda e: len(_addresses(e)) == 2, PLACE)
    await until(client, ENDPOINTS, "db", lambda e: len(_addresses(e)) == 1, PLACE)
    found: dict[str, Any] = {}
    for gvk in KINDS:
        for made in (await client.list(gvk, PLACE)).items:
            name = re.sub(r"^(web|db|agent|sum|indexed|bad|data)\b.*?$", r"\1", made["metadata"]["name"])
            found |= dict(leaves(made, f"{gvk.kind} {name}"))
    return found


def _has_progressed(deployment: Object) -> bool:
    conditions = deployment["status"].get("conditions") or ()
    return any(found["reason"] == "NewReplicaSetAvailable" for found in conditions)


def _addresses(endpoints: Object) -> list[Object]:
    subsets = endpoints.get("subsets") or [{}]
    return subsets[0].get("addresses") or []


def leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            if key not in VOLATILE:
                yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            key = inner.get("type") or place if isinstance(inner, dict) else place
            yield from leaves(inner, f"{path}[{key}]")
    else:
        yield path, "*" if isinstance(value, str) and MADE_UP.search(value) else value


@pytest.fixture
async def real_client(real_control_plane: ControlPlane) -> AsyncIterator[Client]:
    config = load_config(real_control_plane.kubeconfig)
    async with Client(config) as simulated, Client(config, on_warning=lambda _: None) as user:
        with suppress(AlreadyExists):
            await user.create(STANDARD_CLASS)
        task = asyncio.create_task(Simulator(simulated, workloads=False).run())
        yield user
        await user.delete(NAMESPACE, PLACE)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_simulated_controllers_make_what_the_real_ones_make(
    real_client: Client, tmp_path: Path
) -> None:
    real = await settled_objects(real_client)
    async with running(tmp_path) as cluster:
        await cluster.start()
        simulated = await settled_objects(cluster.user)
    differences = {
        path: (real.get(path, "absent"), simulated.get(path, "absent"))
        for path in sorted(real.keys() | simulated.keys())
        if real.get(path, "absent") != simulated.get(path, "absent") and not DEVIATIONS.search(path)
    }
    assert differences == {}
