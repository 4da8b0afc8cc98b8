from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import daemonsets, revisions
from podium.simulator.plan import Plan
from simulator.objects_for_tests import NOW, created, deleted, obj, pod, reported

NODES = [obj("Node", name) for name in ("n1", "n2", "n3")]


def daemon_set(image: str = "app:1", **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"image": image}]}}
    return obj("DaemonSet", "agent", "apps/v1", spec={"template": template, **spec})


def known(*owners: Object) -> list[Object]:
    found: list[Object] = []
    for owner in owners:
        found = revisions.history(owner, found).known
    return found


def daemon(node: str, owner: Object, **more: Any) -> Object:
    digest = revisions.hash_of(known(owner)[-1])
    return pod(f"agent-{node}", labels={revisions.REVISION_LABEL: digest}, spec={"nodeName": node}, **more)


def decide(owner: Object, pods: list[Object], nodes: list[Object], *before: Object) -> Plan:
    return daemonsets.decide(owner, pods, nodes, known(*before, owner), NOW)


def targets(plan: Plan) -> list[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found = []
    for made in created(plan):
        (term,) = made["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
        found += term["matchFields"][0]["values"]
    return sorted(found)


def test_every_node_without_a_daemon_gets_one() -> None:
    owner = daemon_set()
    assert targets(decide(owner, [daemon("n2", owner)], NODES)) == ["n1", "n3"]


def test_cordoned_nodes_are_served_and_tainted_ones_are_not() -> None:
    cordoned = obj("Node", "n1", spec={"unschedulable": True})
    tainted = obj("Node", "n2", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    assert targets(decide(daemon_set(), [], [cordoned, tainted])) == ["n1"]


def test_daemons_that_are_surplus_failed_or_misplaced_go() -> None:
    owner = daemon_set()
    twin = {**daemon("n1", owner), "metadata": {**daemon("n1", owner)["metadata"], "name": "twin"}}
    pods = [daemon("n1", owner), twin, daemon("n2", owner, phase="Failed"), daemon("gone", owner)]
    assert sorted(deleted(decide(owner, pods, NODES[:2]))) == ["agent-gone", "agent-n2", "twin"]


@pytest.mark.parametrize(
    ("strategy", "unready", "gone"),
    [
        ({}, set(), ["agent-n1"]),
        ({"rollingUpdate": {"maxUnavailable": 2}}, set(), ["agent-n1", "agent-n2"]),
        ({"rollingUpdate": {"maxUnavailable": "100%"}}, set(), ["agent-n1", "agent-n2", "agent-n3"]),
        ({}, {"n3"}, ["agent-n3"]),
        ({"type": "OnDelete"}, set(), []),
    ],
)
def test_old_daemons_are_replaced_within_bounds(strategy: Object, unready: set[str], gone: list[str]) -> None:
    before = daemon_set()
    after = daemon_set("app:2", updateStrategy={"type": "RollingUpdate", **strategy})
    pods = [daemon(name, before, ready=name not in unready) for name in ("n1", "n2", "n3")]
    assert deleted(decide(after, pods, NODES, before)) == gone


def test_the_status_counts_daemons() -> None:
    owner = daemon_set()
    pods = [daemon("n1", owner), daemon("n2", owner, ready=False), daemon("n3", owner)]
    assert reported(decide(owner, pods, NODES)) == {
        "observedGeneration": 1,
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 2,
        "numberAvailable": 2,
        "numberUnavailable": 1,
        "updatedNumberScheduled": 3,
    }


def test_a_template_that_comes_back_gets_a_new_number_and_no_second_revision() -> None:
    first, second = daemon_set(), daemon_set("app:2")
    found = revisions.history(first, known(first, second))
    assert [revision["revision"] for revision in found.known] == [2, 3]
    assert revisions.template_of(found.update) == first["spec"]["template"]
