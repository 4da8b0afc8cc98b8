from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.kinds import Object
from podium.simulator import deployments
from podium.simulator.deployments import Bounds
from podium.simulator.plan import Create, Delete, Plan, Update, UpdateStatus
from simulator.objects_for_tests import NOW, at, created, deleted, obj, reasons, reported, stamp, updated

HASH = deployments.HASH_LABEL


def deployment(
    replicas: int, surge: Any = 1, unavailable: Any = 0, image: str = "app:1", **spec: Any
) -> Object:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    given: Object = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": image}]}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "progressDeadlineSeconds": 600,
        **spec,
    }
    return obj("Deployment", "web", "apps/v1", spec=given)


class Model:
    """A Deployment and its ReplicaSets, whose Pods come and go when the model says so."""

    def __init__(self, made: Object) -> None:
        self.deployment = made
        self.sets: dict[str, Object] = {}

    def decide(self) -> Plan:
        plan = deployments.decide(self.deployment, list(self.sets.values()), [], NOW)
        for write in plan.writes:
            match write:
                case Create(made):
                    metadata = {**made["metadata"], "uid": made["metadata"]["name"], "generation": 1}
                    metadata["creationTimestamp"] = stamp(len(self.sets))
                    self.sets[metadata["name"]] = {**made, "metadata": metadata, "status": {}}
                case Update(changed) if changed["kind"] == "ReplicaSet":
                    self.sets[changed["metadata"]["name"]] = changed
                case Delete(gone):
                    del self.sets[gone["metadata"]["name"]]
                case Update(changed) | UpdateStatus(changed) if changed["kind"] == "Deployment":
                    self.deployment = {
                        **self.deployment,
                        "status": changed["status"]
                        if isinstance(write, UpdateStatus)
                        else self.deployment["status"],
                        "metadata": changed["metadata"],
                    }
        return plan

    def settle(self, name: str, *, available: bool = True) -> None:
        """Let one ReplicaSet's controller do its work."""
        found = self.sets[name]
        size = found["spec"]["replicas"]
        before = found["status"].get("availableReplicas", 0)
        counts = {"replicas": size, "availableReplicas": size if available else min(size, before)}
        self.sets[name] = {**found, "status": {**counts, "observedGeneration": 1}}

    def set_image(self, image: str) -> None:
        template = {**self.deployment["spec"]["template"], "spec": {"containers": [{"image": image}]}}
        self.deployment = {**self.deployment, "spec": {**self.deployment["spec"], "template": template}}

    @property
    def total(self) -> int:
        return sum(found["spec"]["replicas"] for found in self.sets.values())

    @property
    def available(self) -> int:
        # Pods that a smaller size takes away count no longer, whatever the status still says.
        return sum(
            min(found["spec"]["replicas"], found["status"].get("availableReplicas", 0))
            for found in self.sets.values()
        )

    def run(self) -> None:
        for _ in range(200):
            if not self.decide() and self.available == self.deployment["spec"]["replicas"] == self.total:
                return
            for name in sorted(self.sets):
                self.settle(name)
        raise AssertionError("the rollout does not end")


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", (1, 1)),
        (3, "25%", "25%", (1, 0)),
        (10, 3, 2, (3, 2)),
        (1, 0, "25%", (0, 1)),
        (3, 0, 0, (0, 1)),
        (2, 1, 5, (1, 2)),
    ],
)
def test_bounds(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    bounds = Bounds.of(deployment(replicas, surge, unavailable))
    assert (bounds.surge, bounds.unavailable) == expected


@given(
    replicas=st.integers(0, 9),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_a_rollout_ends_and_never_leaves_its_bounds(
    replicas: int, surge: int, unavailable: int, data: st.DataObject
) -> None:
    model = Model(deployment(replicas, surge, unavailable))
    model.run()
    bounds = Bounds.of(model.deployment)
    model.set_image("app:2")
    for _ in range(data.draw(st.integers(0, 12))):
        model.decide()
        assert model.total <= replicas + bounds.surge
        assert model.available >= min(replicas, replicas - bounds.unavailable)
        if model.sets:
            name = data.draw(st.sampled_from(sorted(model.sets)))
            model.settle(name, available=data.draw(st.booleans()))
    model.run()
    sizes = {
        found["spec"]["template"]["spec"]["containers"][0]["image"]: found["spec"]["replicas"]
        for found in model.sets.values()
    }
    assert sizes.get("app:1", 0) == 0
    assert sizes["app:2"] == replicas


@given(first=st.integers(1, 9), second=st.integers(0, 9), steps=st.integers(0, 4), surge=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_a_change_of_size_in_the_middle_of_a_rollout_ends_at_the_new_size(
    first: int, second: int, steps: int, surge: int
) -> None:
    model = Model(deployment(first, surge, 0))
    model.run()
    model.set_image("app:2")
    for _ in range(steps):
        model.decide()
        for name in sorted(model.sets):
            model.settle(name)
    model.deployment = {**model.deployment, "spec": {**model.deployment["spec"], "replicas": second}}
    model.run()
    assert model.total == second


def test_the_first_step_makes_a_replica_set_of_the_template() -> None:
    plan = deployments.decide(deployment(3), [], [], NOW)
    (made,) = created(plan)
    digest = made["metadata"]["labels"][HASH]
    assert made["metadata"]["name"] == f"web-{digest}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: digest}
    assert made["spec"]["template"]["metadata"]["labels"][HASH] == digest
    assert made["spec"]["replicas"] == 3
    assert made["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert reasons(plan) == []
    progress = next(c for c in reported(plan)["conditions"] if c["type"] == "Progressing")
    assert progress["reason"] == "NewReplicaSetCreated"


def test_equal_templates_have_equal_hashes_and_others_do_not() -> None:
    names = {
        created(deployments.decide(deployment(1, image=image), [], [], NOW))[0]["metadata"]["name"]
        for image in ("app:1", "app:1", "app:2")
    }
    assert len(names) == 2


def test_a_rollout_without_progress_is_overdue_after_its_deadline_and_told_once() -> None:
    model = Model(deployment(2, progressDeadlineSeconds=5))
    model.run()
    model.set_image("app:2")
    while model.decide():
        pass
    sets = list(model.sets.values())
    early = deployments.decide(model.deployment, sets, [], at(4))
    assert reported(early) == {}
    assert early.again is not None
    assert early.again <= 2
    late = reported(deployments.decide(model.deployment, sets, [], at(6)))
    progress = next(c for c in late["conditions"] if c["type"] == "Progressing")
    assert (progress["status"], progress["reason"]) == ("False", "ProgressDeadlineExceeded")
    after = deployments.decide({**model.deployment, "status": late}, sets, [], at(60))
    assert not after
    assert after.again is None


def test_a_paused_deployment_follows_its_size_and_not_its_template() -> None:
    model = Model(deployment(2))
    model.run()
    model.set_image("app:2")
    spec = {**model.deployment["spec"], "paused": True, "replicas": 5}
    plan = deployments.decide({**model.deployment, "spec": spec}, list(model.sets.values()), [], NOW)
    assert created(plan) == []
    assert [found["spec"]["replicas"] for found in updated(plan)] == [5]


def test_history_beyond_the_limit_is_deleted_oldest_first() -> None:
    model = Model(deployment(1, revisionHistoryLimit=1))
    for number in range(1, 5):
        model.set_image(f"app:{number}")
        model.run()
    gone = []
    while names := deleted(plan := model.decide()):
        gone += names
    assert not plan
    images = {s["spec"]["template"]["spec"]["containers"][0]["image"] for s in model.sets.values()}
    assert images == {"app:3", "app:4"}


def test_a_settled_deployment_gets_no_writes() -> None:
    model = Model(deployment(3))
    model.run()
    model.decide()
    assert not model.decide()
