from __future__ import annotations

from typing import Any

from podium.api.kinds import Object
from podium.simulator import faults
from podium.simulator.objects import BUDGET, CLAIM, ENDPOINTS, POD, SERVICE, SLICE, STORAGE_CLASS, VOLUME
from simulator.cluster import Cluster, is_true, template, workload


def service(name: str, **spec: Any) -> Object:
    given = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": given}


def claim(name: str, size: str = "1Gi", **spec: Any) -> Object:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": given}


def consumer(name: str, claim_name: str) -> Object:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    spec = {"containers": [{"name": "main", "image": "app:1"}], "volumes": [volume]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_bound(found: Object) -> bool:
    return bool(found.get("status", {}).get("phase") == "Bound")


async def test_a_service_leads_to_its_ready_pods(cluster: Cluster) -> None:
    await cluster.user.create(service("web"))
    await cluster.user.create(workload("Deployment", "web", replicas=2))
    endpoints = await cluster.until(
        ENDPOINTS, "web", lambda e: len((e.get("subsets") or [{}])[0].get("addresses") or ()) == 2
    )
    assert endpoints["subsets"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]
    await cluster.settled()
    slices = (await cluster.user.list(SLICE, "default", labels="kubernetes.io/service-name=web")).items
    found = [e for part in slices for e in part["endpoints"]]
    addresses = {pod["status"]["podIP"] for pod in await cluster.pods("app=web")}
    assert {e["addresses"][0] for e in found} == addresses
    assert all(e["conditions"]["ready"] for e in found)


async def test_pods_that_are_not_ready_are_listed_apart(cluster: Cluster) -> None:
    await cluster.user.create(service("web"))
    made = template("web", annotations={faults.NEVER_READY: "true"})
    await cluster.user.create(workload("Deployment", "web", replicas=1, template=made))
    endpoints = await cluster.until(
        ENDPOINTS, "web", lambda e: (e.get("subsets") or [{}])[0].get("notReadyAddresses")
    )
    assert "addresses" not in endpoints["subsets"][0]


async def test_the_endpoints_go_with_their_service(cluster: Cluster) -> None:
    await cluster.user.create(service("web"))
    await cluster.until(ENDPOINTS, "web", bool)
    await cluster.user.delete(SERVICE, "web", "default")
    await cluster.until_gone(ENDPOINTS, "web")
    await cluster.settled()
    assert (await cluster.user.list(SLICE, "default", labels="kubernetes.io/service-name=web")).items == []


async def test_load_balancers_get_addresses_of_their_own(cluster: Cluster) -> None:
    seen = set()
    for name in ("one", "two"):
        await cluster.user.create(service(name, type="LoadBalancer"))
        made = await cluster.until(SERVICE, name, lambda s: s["status"]["loadBalancer"].get("ingress"))
        seen.add(made["status"]["loadBalancer"]["ingress"][0]["ip"])
    assert len(seen) == 2
    await cluster.user.patch(SERVICE, "one", {"spec": {"type": "ClusterIP"}}, "default")
    await cluster.until(SERVICE, "one", lambda s: not s["status"]["loadBalancer"].get("ingress"))


async def test_a_claim_without_a_class_gets_the_standard_one_and_a_volume(cluster: Cluster) -> None:
    await cluster.user.create(claim("data"))
    bound = await cluster.until(CLAIM, "data", is_bound)
    assert bound["spec"]["storageClassName"] == "standard"
    assert bound["status"]["capacity"] == {"storage": "1Gi"}
    volume = await cluster.until(VOLUME, bound["spec"]["volumeName"], is_bound, "")
    assert volume["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    await cluster.user.delete(CLAIM, "data", "default")
    await cluster.until_gone(CLAIM, "data")
    await cluster.until_gone(VOLUME, bound["spec"]["volumeName"], "")


async def test_a_claim_takes_the_smallest_volume_that_fits(cluster: Cluster) -> None:
    for name, size in (("small", "1Gi"), ("fitting", "5Gi"), ("large", "50Gi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "storageClassName": "manual",
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        await cluster.user.create(volume)
    await cluster.user.create(claim("data", "3Gi", storageClassName="manual"))
    bound = await cluster.until(CLAIM, "data", is_bound)
    assert bound["spec"]["volumeName"] == "fitting"
    await cluster.user.delete(CLAIM, "data", "default")
    await cluster.until(VOLUME, "fitting", lambda v: v["status"]["phase"] == "Released", "")


async def test_a_claim_of_a_waiting_class_is_bound_when_a_pod_uses_it(cluster: Cluster) -> None:
    await cluster.user.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "late"},
            "provisioner": "podium.dev/simulated",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    await cluster.user.create(claim("data", storageClassName="late"))
    await cluster.settled()
    assert (await cluster.user.get(CLAIM, "data", "default"))["status"]["phase"] == "Pending"
    await cluster.user.create(consumer("web", "data"))
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    assert is_bound(await cluster.user.get(CLAIM, "data", "default"))


async def test_a_claim_in_use_is_deleted_only_when_its_pod_is_gone(cluster: Cluster) -> None:
    await cluster.user.create(claim("data"))
    await cluster.user.create(consumer("web", "data"))
    await cluster.until(POD, "web", lambda p: is_true(p, "Ready"))
    await cluster.user.delete(CLAIM, "data", "default")
    await cluster.settled()
    assert (await cluster.user.get(CLAIM, "data", "default"))["metadata"]["deletionTimestamp"]
    await cluster.user.delete(POD, "web", "default")
    await cluster.until_gone(CLAIM, "data")


async def test_a_bound_claim_grows_where_its_class_allows_it(cluster: Cluster) -> None:
    await cluster.user.create(claim("data"))
    await cluster.until(CLAIM, "data", is_bound)
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    await cluster.user.patch(CLAIM, "data", patch, "default")
    await cluster.until(CLAIM, "data", lambda c: c["status"]["capacity"] == {"storage": "2Gi"})


async def test_the_standard_class_is_the_default(cluster: Cluster) -> None:
    found = await cluster.user.get(STORAGE_CLASS, "standard")
    assert found["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    assert found["provisioner"] == "podium.dev/simulated"


async def test_a_budget_counts_what_may_be_disrupted(cluster: Cluster) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=3))
    spec = {"maxUnavailable": "34%", "selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web", "namespace": "default"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await cluster.user.create(budget)
    counted = await cluster.until(BUDGET, "web", lambda b: b["status"].get("currentHealthy") == 3)
    assert counted["status"]["expectedPods"] == 3
    assert (counted["status"]["desiredHealthy"], counted["status"]["disruptionsAllowed"]) == (1, 2)
    assert is_true(counted, "DisruptionAllowed")
