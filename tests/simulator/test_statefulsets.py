from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import revisions, statefulsets
from simulator.objects_for_tests import NOW, created, deleted, obj, pod, reported, stamp

TEMPLATE = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}


def stateful_set(replicas: int, **spec: Any) -> Object:
    given = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": TEMPLATE,
        **spec,
    }
    return obj("StatefulSet", "db", "apps/v1", spec=given)


def stored(owner: Object, *older: Object) -> list[Object]:
    return revisions.history(owner, older).known


def decide(owner: Object, pods: list[Object], known: list[Object] | None = None) -> Any:
    return statefulsets.decide(owner, pods, known or stored(owner), (), NOW)


def replica(ordinal: int, owner: Object, **more: Any) -> Object:
    labels = {revisions.REVISION_LABEL: stored(owner)[-1]["metadata"]["name"]}
    return pod(f"db-{ordinal}", labels=labels, **more)


def test_the_revision_is_stored_before_any_pod_is_made() -> None:
    owner = stateful_set(2)
    (made,) = created(statefulsets.decide(owner, [], [], (), NOW))
    assert made["kind"] == "ControllerRevision"
    assert made["data"]["spec"]["template"] == {**TEMPLATE, "$patch": "replace"}
    assert made["revision"] == 1


ORDERED, PARALLEL = "OrderedReady", "Parallel"


@pytest.mark.parametrize(
    ("policy", "present", "made"),
    [
        (ORDERED, {}, ["db-0"]),
        (ORDERED, {0: True}, ["db-1"]),
        (ORDERED, {0: False}, []),
        (ORDERED, {1: True}, ["db-0"]),
        (PARALLEL, {}, ["db-0", "db-1", "db-2"]),
        (PARALLEL, {0: False}, ["db-1", "db-2"]),
    ],
)
def test_pods_are_made_in_order_unless_in_parallel(
    policy: str, present: dict[int, bool], made: list[str]
) -> None:
    owner = stateful_set(3, podManagementPolicy=policy)
    pods = [replica(ordinal, owner, ready=ready) for ordinal, ready in present.items()]
    names = [found["metadata"]["name"] for found in created(decide(owner, pods))]
    assert names == made


@pytest.mark.parametrize(
    ("policy", "present", "gone"),
    [
        (ORDERED, {0: True, 1: True, 2: True}, ["db-2"]),
        (ORDERED, {0: False, 1: True, 2: True}, []),
        (PARALLEL, {0: True, 1: True, 2: True}, ["db-2", "db-1"]),
    ],
)
def test_pods_beyond_the_size_go_from_the_top(policy: str, present: dict[int, bool], gone: list[str]) -> None:
    owner = stateful_set(1, podManagementPolicy=policy)
    pods = [replica(ordinal, owner, ready=ready) for ordinal, ready in present.items()]
    assert deleted(decide(owner, pods)) == gone


@pytest.mark.parametrize(
    ("strategy", "old", "gone"),
    [
        ({}, {0, 1, 2}, ["db-2"]),
        ({}, {0, 1}, ["db-1"]),
        ({"rollingUpdate": {"partition": 2}}, {0, 1}, []),
        ({"type": "OnDelete"}, {0, 1, 2}, []),
    ],
)
def test_updates_go_from_the_top_down_to_the_partition(
    strategy: Object, old: set[int], gone: list[str]
) -> None:
    before = stateful_set(3)
    template = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    after = stateful_set(3, template=template, updateStrategy={"type": "RollingUpdate", **strategy})
    known = stored(after, *stored(before))
    pods = []
    for ordinal in range(3):
        revision = known[0] if ordinal in old else known[1]
        labels = {revisions.REVISION_LABEL: revision["metadata"]["name"]}
        pods.append(pod(f"db-{ordinal}", labels=labels))
    assert deleted(decide(after, pods, known)) == gone


def test_a_pod_below_the_partition_comes_back_as_it_was() -> None:
    before = stateful_set(2)
    template = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "app:2"}]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    after = stateful_set(2, template=template, updateStrategy=strategy)
    known = stored(after, *stored(before))
    after["status"] = {"currentRevision": known[0]["metadata"]["name"]}
    (made,) = created(decide(after, [], known))
    assert made["spec"]["containers"][0]["image"] == "app:1"


def test_a_failed_pod_is_deleted_so_that_it_can_be_made_again() -> None:
    owner = stateful_set(1)
    assert deleted(decide(owner, [replica(0, owner, phase="Failed", ready=False)])) == ["db-0"]


def test_a_pod_has_its_name_its_host_and_its_claims() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    owner = stateful_set(1, volumeClaimTemplates=[claim], ordinals={"start": 5})
    claimed, made = created(decide(owner, []))
    assert claimed["metadata"]["name"] == "data-db-5"
    assert made["metadata"]["labels"][statefulsets.POD_NAME] == "db-5"
    assert made["metadata"]["labels"][statefulsets.POD_INDEX] == "5"
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("db-5", "db")
    assert made["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-5"}}]


def test_the_current_revision_follows_when_every_pod_is_updated_and_ready() -> None:
    owner = stateful_set(2)
    status = reported(decide(owner, [replica(0, owner), replica(1, owner)]))
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"], status["availableReplicas"]) == (2, 2, 2)


def test_nothing_is_made_for_a_set_that_is_being_deleted() -> None:
    owner = stateful_set(2)
    owner["metadata"]["deletionTimestamp"] = stamp()
    assert created(decide(owner, [])) == []
