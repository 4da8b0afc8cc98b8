from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import provisioning, volumes
from podium.simulator.plan import Create, Update, UpdateStatus
from podium.simulator.scheduling import SELECTED_NODE
from simulator.objects_for_tests import created, deleted, obj, pod, reasons, reported, stamp, updated

CLASS = {**provisioning.STANDARD_CLASS}
LATE = {**CLASS, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(size: str = "1Gi", storage: str = "standard", **more: Any) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage,
        **more.pop("spec", {}),
    }
    return obj("PersistentVolumeClaim", "data", spec=spec, **more)


def volume(name: str, size: str = "1Gi", storage: str = "standard", **more: Any) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "capacity": {"storage": size},
        "storageClassName": storage,
        **more.pop("spec", {}),
    }
    return obj("PersistentVolume", name, spec=spec, **more)


REFERENCE = {"namespace": "default", "name": "data", "uid": "uid-data"}


@pytest.mark.parametrize(
    ("wanted", "offered", "chosen"),
    [
        (claim("3Gi"), [volume("a", "1Gi"), volume("b", "9Gi"), volume("c", "5Gi")], "c"),
        (claim(), [volume("a", storage="other")], ""),
        (claim(), [volume("a", spec={"accessModes": ["ReadWriteMany"]})], ""),
        (claim(), [volume("a", spec={"volumeMode": "Block"})], ""),
        (claim(), [volume("a", deletionTimestamp=stamp())], ""),
        (claim(), [volume("a", spec={"claimRef": {**REFERENCE, "name": "other"}})], ""),
        (claim("9Gi"), [volume("a", spec={"claimRef": REFERENCE}), volume("b", "9Gi")], "a"),
        (claim(), [volume("a", spec={"claimRef": {**REFERENCE, "uid": "earlier"}})], ""),
        (claim(spec={"volumeName": "b"}), [volume("a"), volume("b", "9Gi")], "b"),
        (claim(spec={"selector": {"matchLabels": {"tier": "fast"}}}), [volume("a")], ""),
    ],
)
def test_which_volume_a_claim_gets(wanted: Object, offered: list[Object], chosen: str) -> None:
    plan = volumes.decide_claim(wanted, offered, CLASS, in_use=False)
    bound = [made for made in updated(plan) if made["kind"] == "PersistentVolume"]
    reports = [write.object for write in plan.writes if isinstance(write, UpdateStatus)]
    names = {found["metadata"]["name"] for found in [*bound, *reports] if found["kind"] == "PersistentVolume"}
    assert names == ({chosen} if chosen else set())


def carried_out(wanted: Object, there: Object) -> tuple[Object, Object, int]:
    """Both objects after a plan, and how many writes it had."""
    objects = {"PersistentVolumeClaim": wanted, "PersistentVolume": there}
    plan = volumes.decide_claim(wanted, [there], CLASS, in_use=False)
    for write in plan.writes:
        if isinstance(write, Update):
            known = objects[write.object["kind"]]
            objects[write.object["kind"]] = {**write.object, "status": known["status"]}
        elif isinstance(write, UpdateStatus):
            known = objects[write.object["kind"]]
            objects[write.object["kind"]] = {**known, "status": write.object["status"]}
    return objects["PersistentVolumeClaim"], objects["PersistentVolume"], len(plan.writes)


def test_a_binding_is_complete_after_one_plan_and_then_left_alone() -> None:
    wanted, there, writes = carried_out(claim(), volume("a"))
    assert writes == 4
    assert wanted["spec"]["volumeName"] == "a"
    assert wanted["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "capacity": {"storage": "1Gi"},
    }
    assert (there["spec"]["claimRef"]["uid"], there["status"]["phase"]) == ("uid-data", "Bound")
    assert carried_out(wanted, there)[2] == 0


@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_binding_that_was_interrupted_is_completed(done: int) -> None:
    wanted, there = claim(), volume("a")
    finished_claim, finished_volume, _ = carried_out(wanted, there)
    partial_volume = {**finished_volume, "status": finished_volume["status"] if done > 1 else {}}
    partial_claim = {**finished_claim, "status": {}} if done > 2 else wanted
    result = carried_out(partial_claim, partial_volume)
    assert result[0]["status"]["phase"] == "Bound"
    assert result[1]["status"]["phase"] == "Bound"
    assert result[0]["spec"]["volumeName"] == "a"


def test_a_claim_whose_volume_vanished_is_lost() -> None:
    bound = claim(spec={"volumeName": "a"}, annotations={volumes.BIND_COMPLETED: "yes"})
    assert reported(volumes.decide_claim(bound, [], CLASS, in_use=False))["phase"] == "Lost"


def test_a_claim_grows_where_its_class_allows_it() -> None:
    wanted, there, _ = carried_out(claim(), volume("a"))
    wanted["spec"]["resources"]["requests"]["storage"] = "5Gi"
    plan = volumes.decide_claim(wanted, [there], CLASS, in_use=False)
    assert reported(plan)["capacity"] == {"storage": "5Gi"}
    rigid = {**CLASS, "allowVolumeExpansion": False}
    assert not volumes.decide_claim(wanted, [there], rigid, in_use=False)


@pytest.mark.parametrize(("in_use", "freed"), [(True, 0), (False, 1)])
def test_a_deleted_claim_is_held_while_a_pod_uses_it(in_use: bool, freed: int) -> None:
    going = claim(deletionTimestamp=stamp(), finalizers=[volumes.PVC_PROTECTION])
    assert len(updated(volumes.decide_claim(going, [], CLASS, in_use))) == freed


@pytest.mark.parametrize(
    ("reference", "found", "phase"),
    [
        (None, None, "Available"),
        ({**REFERENCE, "uid": ""}, None, "Available"),
        (REFERENCE, claim(), "Bound"),
        (REFERENCE, None, "Released"),
        ({**REFERENCE, "uid": "earlier"}, claim(), "Released"),
    ],
)
def test_the_phase_of_a_volume(reference: Object | None, found: Object | None, phase: str) -> None:
    given = volume("a", spec={"claimRef": reference} if reference else {})
    assert reported(volumes.decide_volume(given, found))["phase"] == phase


@pytest.mark.parametrize(
    ("wanted", "storage", "exists", "made"),
    [
        (claim(), CLASS, False, 1),
        (claim(), CLASS, True, 0),
        (claim(), None, False, 0),
        (claim(), {**CLASS, "provisioner": "example.com/disks"}, False, 0),
        (claim(spec={"volumeName": "a"}), CLASS, False, 0),
        (claim(), LATE, False, 0),
        (claim(annotations={SELECTED_NODE: "n1"}), LATE, False, 1),
        (claim(deletionTimestamp=stamp()), CLASS, False, 0),
    ],
)
def test_when_a_volume_is_made(wanted: Object, storage: Object | None, exists: bool, made: int) -> None:
    assert len(created(provisioning.provision(wanted, storage, exists))) == made


def test_a_volume_that_was_made_for_a_claim_is_reserved_for_it() -> None:
    (made,) = created(provisioning.provision(claim("2Gi"), CLASS, False))
    assert made["metadata"]["name"] == "pvc-uid-data"
    assert made["spec"]["claimRef"]["uid"] == "uid-data"
    assert made["spec"]["capacity"] == {"storage": "2Gi"}


@pytest.mark.parametrize(
    ("policy", "by", "gone"),
    [
        ("Delete", provisioning.PROVISIONER, ["a"]),
        ("Retain", provisioning.PROVISIONER, []),
        ("Delete", "example.com/disks", []),
    ],
)
def test_a_released_volume_of_ours_goes_if_its_policy_says_so(policy: str, by: str, gone: list[str]) -> None:
    released = volume(
        "a",
        spec={"persistentVolumeReclaimPolicy": policy},
        annotations={provisioning.PROVISIONED_BY: by},
        status={"phase": "Released"},
    )
    assert deleted(provisioning.reclaim(released)) == gone


def test_waiting_for_a_consumer_is_told_once() -> None:
    plan = volumes.decide_claim(claim(), [], LATE, in_use=False)
    assert reasons(plan) == ["WaitForFirstConsumer"]
    told = {**claim(), "status": reported(plan)}
    assert not volumes.decide_claim(told, [], LATE, in_use=False)


def test_an_ephemeral_volume_gets_a_claim_that_goes_with_its_pod() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"]}, "metadata": {"labels": {"a": "b"}}}
    user = pod("web", spec={"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]})
    plan = volumes.ephemeral_claims(user, ())
    assert [type(write) for write in plan.writes] == [Create]
    (made,) = created(plan)
    assert made["metadata"]["name"] == "web-tmp"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert not volumes.ephemeral_claims(user, {"web-tmp"})
