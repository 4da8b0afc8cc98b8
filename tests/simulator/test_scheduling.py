from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import faults, scheduling
from podium.simulator.scheduling import Claims, Usage
from simulator.objects_for_tests import NOW, bound_to, obj, reasons, reported, updated


def node(name: str = "n1", spec: Object | None = None, **more: Any) -> Object:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return obj("Node", name, spec=spec, status={"allocatable": room}, **more)


def pod(**spec: Any) -> Object:
    return obj("Pod", "web", spec={"containers": [{"name": "main"}], **spec})


def asking(**amounts: str) -> Object:
    return {"name": "main", "resources": {"requests": amounts}}


def affinity(**term: Any) -> Object:
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
NO_MATCH = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("given", "there", "expected"),
    [
        (pod(), node(), []),
        (pod(), node(spec={"unschedulable": True}), ["node(s) were unschedulable"]),
        (pod(), node(spec={"taints": [TAINT]}), ["node(s) had untolerated taint(s)"]),
        (pod(), node(spec={"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}), []),
        (pod(tolerations=[{"operator": "Exists"}]), node(spec={"taints": [TAINT]}), []),
        (pod(tolerations=[{"key": "gpu", "value": "yes"}]), node(spec={"taints": [TAINT]}), []),
        (
            pod(tolerations=[{"key": "gpu", "value": "no"}]),
            node(spec={"taints": [TAINT]}),
            ["node(s) had untolerated taint(s)"],
        ),
        (pod(nodeSelector={"disk": "ssd"}), node(), [NO_MATCH]),
        (pod(nodeSelector={"disk": "ssd"}), node(labels={"disk": "ssd"}), []),
        (
            pod(
                affinity=affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}])
            ),
            node(),
            [],
        ),
        (
            pod(
                affinity=affinity(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["n2"]}])
            ),
            node(),
            [NO_MATCH],
        ),
        (
            pod(affinity=affinity(matchExpressions=[{"key": "cores", "operator": "Gt", "values": ["8"]}])),
            node(labels={"cores": "16"}),
            [],
        ),
        (
            pod(affinity=affinity(matchExpressions=[{"key": "spot", "operator": "DoesNotExist"}])),
            node(labels={"spot": ""}),
            [NO_MATCH],
        ),
        (pod(), node(annotations={faults.NODE_FULL: "true"}), ["Too many pods"]),
        (pod(containers=[asking(cpu="5")]), node(), ["Insufficient cpu"]),
        (pod(containers=[asking(cpu="2"), asking(cpu="2001m")]), node(), ["Insufficient cpu"]),
        (pod(initContainers=[asking(memory="9Gi")]), node(), ["Insufficient memory"]),
        (pod(containers=[asking(**{"nvidia.com/gpu": "1"})]), node(), ["Insufficient nvidia.com/gpu"]),
    ],
)
def test_why_a_node_cannot_take_a_pod(given: Object, there: Object, expected: list[str]) -> None:
    assert scheduling.obstacles(given, there, Usage()) == expected


def test_what_others_take_counts() -> None:
    busy = Usage(pods=10, amounts=Counter({"cpu": 3500}))
    assert scheduling.obstacles(pod(containers=[asking(cpu="501m")]), node(), busy) == [
        "Too many pods",
        "Insufficient cpu",
    ]


def test_init_containers_need_their_peak_and_sidecars_add_to_the_rest() -> None:
    sidecar = {**asking(cpu="1"), "restartPolicy": "Always"}
    spec = {"containers": [asking(cpu="1")], "initContainers": [sidecar, asking(cpu="500m")]}
    assert scheduling.requests(spec) == {"cpu": 2000}
    spec["initContainers"].append(asking(cpu="3"))
    assert scheduling.requests(spec) == {"cpu": 4000}


def test_the_emptier_node_is_chosen() -> None:
    usage = {"n1": Usage(pods=3, amounts=Counter({"cpu": 1000})), "n2": Usage(pods=1)}
    plan = scheduling.decide(pod(), [node("n1"), node("n2")], usage, Claims(), NOW)
    assert bound_to(plan) == "n2"
    assert reasons(plan) == ["Scheduled"]


def test_the_reasons_of_all_nodes_are_summed_up_and_told_once() -> None:
    nodes = [node("n1", spec={"unschedulable": True}), node("n2"), node("n3")]
    big = pod(containers=[asking(cpu="5")])
    plan = scheduling.decide(big, nodes, {}, Claims(), NOW)
    (condition,) = reported(plan)["conditions"]
    assert condition["message"] == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert not scheduling.decide({**big, "status": reported(plan)}, nodes, {}, Claims(), NOW)


def test_without_nodes_it_says_so() -> None:
    (condition,) = reported(scheduling.decide(pod(), [], {}, Claims(), NOW))["conditions"]
    assert condition["message"] == "no nodes available to schedule pods"


def claim(name: str, phase: str = "Pending", storage: str = "late") -> Object:
    return obj("PersistentVolumeClaim", name, spec={"storageClassName": storage}, status={"phase": phase})


CLASSES = {"late": {"volumeBindingMode": "WaitForFirstConsumer"}, "now": {"volumeBindingMode": "Immediate"}}
USER = pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])


@pytest.mark.parametrize(
    ("claims", "problem", "bound"),
    [
        ({}, 'persistentvolumeclaim "data" not found', False),
        ({"data": claim("data", "Bound")}, "", True),
        ({"data": claim("data", storage="now")}, "pod has unbound immediate PersistentVolumeClaims", False),
        ({"data": claim("data")}, "", True),
    ],
)
def test_what_claims_mean_for_a_pod(claims: dict[str, Object], problem: str, bound: bool) -> None:
    found = scheduling.claims_of(USER, claims, CLASSES)
    assert (found.problem, found.bound) == (problem, bound)


def test_a_claim_that_waits_for_its_consumer_is_told_the_node_first() -> None:
    waiting = scheduling.claims_of(USER, {"data": claim("data")}, CLASSES)
    plan = scheduling.decide(USER, [node()], {}, waiting, NOW)
    assert bound_to(plan) == ""
    (told,) = updated(plan)
    assert told["metadata"]["annotations"] == {scheduling.SELECTED_NODE: "n1"}


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (pod(), True),
        (pod(nodeName="n1"), False),
        (pod(schedulerName="mine"), False),
        (pod(schedulingGates=[{"name": "later"}]), False),
    ],
)
def test_which_pods_are_scheduled_here(given: Object, ours: bool) -> None:
    assert scheduling.is_ours(given) is ours
