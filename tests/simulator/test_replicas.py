from __future__ import annotations

from podium.simulator import ownership, replicas
from simulator.objects_for_tests import NOW, created, deleted, obj, owned, pod, reasons, reported, stamp

SET = obj(
    "ReplicaSet",
    "web",
    "apps/v1",
    spec={
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}},
    },
)
LABELS = {"app": "web"}


def test_missing_pods_are_made_and_told() -> None:
    plan = replicas.decide(SET, [pod("a", labels=LABELS)], NOW)
    (made,) = created(plan)
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-web"


def test_pods_that_ended_or_are_going_are_replaced() -> None:
    pods = [pod("a", phase="Failed"), pod("b", deletionTimestamp=stamp()), pod("c")]
    assert len(created(replicas.decide(SET, pods, NOW))) == 1


def test_surplus_pods_are_removed() -> None:
    pods = [pod(name, labels=LABELS) for name in "abc"]
    plan = replicas.decide(SET, pods, NOW)
    assert len(deleted(plan)) == 1
    assert reasons(plan) == ["SuccessfulDelete"]


def test_the_least_useful_pods_go_first() -> None:
    placed = {"nodeName": "n1"}
    elsewhere = {"nodeName": "n2"}
    pods = [
        pod("old", spec=elsewhere, since=-100),
        pod("costly", spec=placed, annotations={replicas.DELETION_COST: "10"}),
        pod("crowded", spec=placed),
        pod("newly-ready", spec=elsewhere, since=-1),
        pod("cheap", spec=placed, annotations={replicas.DELETION_COST: "-5"}),
        pod("unready", spec=placed, ready=False),
        pod("pending", spec=placed, phase="Pending", ready=False),
        pod("unplaced", phase="Pending", ready=False),
    ]
    order = [found["metadata"]["name"] for found in replicas.least_useful_first(pods, pods)]
    assert order == ["unplaced", "pending", "unready", "cheap", "crowded", "newly-ready", "old", "costly"]


def test_the_status_counts_what_is_ready_and_available() -> None:
    waiting = {**SET, "spec": {**SET["spec"], "minReadySeconds": 30}}
    pods = [pod("a", labels=LABELS), pod("b", labels=LABELS, since=-10)]
    plan = replicas.decide(waiting, pods, NOW)
    assert reported(plan) == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }
    assert plan.again == 20


def test_what_matches_is_adopted_and_what_no_longer_does_is_let_go() -> None:
    orphan, other = pod("orphan", labels=LABELS), pod("other", labels={"app": "db"})
    mine = owned(pod("mine", labels=LABELS), SET)
    changed = owned(pod("changed", labels={"app": "db"}), SET)
    foreign = owned(pod("foreign", labels=LABELS), obj("ReplicaSet", "theirs", "apps/v1"))
    dying = pod("dying", labels=LABELS, deletionTimestamp=stamp())
    claimed = ownership.claim(SET, [orphan, other, mine, changed, foreign, dying])
    assert [found["metadata"]["name"] for found in claimed.objects] == ["orphan", "mine"]
    adopted, released = (write.object["metadata"] for write in claimed.writes)
    assert (adopted["name"], adopted["ownerReferences"][0]["blockOwnerDeletion"]) == ("orphan", True)
    assert (released["name"], "ownerReferences" in released) == ("changed", False)
