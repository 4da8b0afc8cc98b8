"""Deleting objects: answers, preconditions, finalizers, grace periods and whole collections."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from behaviour.collection import Collection, Object, config_map, done, pod
from behaviour.support import causes, refusal
from harness.plain import Plain

HELD = ["podium.dev/held"]


def release(collection: Collection, name: str) -> None:
    done(collection.patch(name, {"metadata": {"finalizers": None}}))


def test_a_delete_answers_with_what_was_deleted(config_maps: Collection) -> None:
    uid = done(config_maps.create(config_map("one")))["metadata"]["uid"]
    answer = config_maps.delete("one")
    assert answer.status == 200
    details = {"name": "one", "kind": "configmaps", "uid": uid}
    expected = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    assert answer.json() == expected
    assert refusal(config_maps.get("one")) == (404, "NotFound", 'configmaps "one" not found')


@pytest.mark.parametrize(
    ("path", "obj", "kind"),
    [
        ("/api/v1/namespaces/{}/secrets", {}, "Status"),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", {}, "Status"),
        ("/api/v1/namespaces/{}/serviceaccounts", {}, "ServiceAccount"),
        ("/api/v1/namespaces/{}/services", {"spec": {"ports": [{"port": 80}]}}, "Service"),
        ("/api/v1/namespaces/{}/resourcequotas", {}, "ResourceQuota"),
    ],
)
def test_a_delete_answers_with_a_status_or_with_the_object(
    plain: Plain, namespace: str, path: str, obj: Object, kind: str
) -> None:
    collection = Collection(plain, path.format(namespace))
    done(collection.create({"metadata": {"name": "one"}, **obj}))
    assert done(collection.delete("one"))["kind"] == kind
    assert collection.get("one").status == 404


def test_a_missing_object_cannot_be_deleted(config_maps: Collection) -> None:
    assert refusal(config_maps.delete("missing")) == (404, "NotFound", 'configmaps "missing" not found')


def test_a_delete_can_insist_on_a_uid(config_maps: Collection) -> None:
    uid = done(config_maps.create(config_map("one")))["metadata"]["uid"]
    answer = config_maps.delete("one", {"preconditions": {"uid": "other"}})
    why = (
        f"the UID in the precondition (other) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    assert refusal(answer) == (409, "Conflict", f'Operation cannot be fulfilled on ConfigMap "one": {why}')
    done(config_maps.delete("one", {"preconditions": {"uid": uid}}))


def test_a_delete_can_insist_on_a_version(config_maps: Collection) -> None:
    version = done(config_maps.create(config_map("one")))["metadata"]["resourceVersion"]
    answer = config_maps.delete("one", {"preconditions": {"resourceVersion": "1"}})
    why = (
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
        f"({version}). The object might have been modified"
    )
    assert refusal(answer) == (409, "Conflict", f'Operation cannot be fulfilled on ConfigMap "one": {why}')
    done(config_maps.delete("one", {"preconditions": {"resourceVersion": version}}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"propagationPolicy": "Sideways"},
            'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
    ],
    ids=["unknown", "both"],
)
def test_delete_options_are_validated(config_maps: Collection, options: Object, problem: str) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.delete("one", options)
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {problem}'
    assert refusal(answer) == (422, "Invalid", message)


@pytest.mark.parametrize(
    ("options", "query", "message"),
    [
        ({"kind": "ConfigMap", "apiVersion": "v1"}, "", 'no kind "ConfigMap" is registered for version "v1"'),
        (
            {"gracePeriodSeconds": "x"},
            "",
            "json: cannot unmarshal string into Go struct field DeleteOptions.",
        ),
        (None, "gracePeriodSeconds=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
    ids=["kind", "type", "query"],
)
def test_delete_options_that_cannot_be_read_are_refused(
    config_maps: Collection, options: Object | None, query: str, message: str
) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.delete("one", options, query)
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].startswith(message)


def test_a_finalizer_holds_an_object_until_it_is_removed(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=HELD)))
    answer = config_maps.delete("one")
    assert (answer.status, answer.json()["kind"]) == (200, "ConfigMap")
    metadata = answer.json()["metadata"]
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    again = done(config_maps.delete("one"))["metadata"]
    assert again == metadata
    changed = done(config_maps.patch("one", {"data": {"still": "here"}}))
    assert changed["data"] == {"still": "here"}
    release(config_maps, "one")
    assert config_maps.get("one").status == 404


def test_the_update_that_removes_the_last_finalizer_answers_with_the_object(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=HELD)))
    marked = done(config_maps.delete("one"))
    answer = config_maps.update({**marked, "metadata": {**marked["metadata"], "finalizers": []}})
    assert (answer.status, answer.json()["metadata"]["name"]) == (200, "one")
    assert config_maps.get("one").status == 404


def test_a_finalizer_added_later_holds_as_well(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    done(config_maps.patch("one", {"metadata": {"finalizers": HELD}}))
    done(config_maps.delete("one"))
    assert "deletionTimestamp" in done(config_maps.get("one"))["metadata"]
    release(config_maps, "one")
    assert config_maps.get("one").status == 404


def test_an_object_being_deleted_takes_no_new_finalizers(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=HELD)))
    done(config_maps.delete("one"))
    answer = config_maps.patch("one", {"metadata": {"finalizers": [*HELD, "podium.dev/late"]}})
    assert refusal(answer)[:2] == (422, "Invalid")
    why = "no new finalizers can be added if the object is being deleted, found new finalizers"
    message = f'Forbidden: {why} []string{{"podium.dev/late"}}'
    assert set(causes(answer)) == {("metadata.finalizers", "FieldValueForbidden", message)}
    release(config_maps, "one")


def test_a_deletion_cannot_be_taken_back(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=HELD)))
    marked = done(config_maps.delete("one"))
    kept = done(config_maps.patch("one", {"metadata": {"deletionTimestamp": None}}))
    assert kept["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    release(config_maps, "one")


def test_a_new_object_of_the_same_name_waits_for_the_old_one(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", finalizers=HELD)))
    done(config_maps.delete("one"))
    answer = config_maps.create(config_map("one"))
    why = 'object is being deleted: configmaps "one" already exists'
    assert refusal(answer) == (409, "AlreadyExists", why)
    release(config_maps, "one")
    done(config_maps.create(config_map("one")))


def seconds_left(obj: Object, since: Object) -> float:
    end = datetime.fromisoformat(obj["metadata"]["deletionTimestamp"])
    return (end - datetime.fromisoformat(since["metadata"]["creationTimestamp"])) / timedelta(seconds=1)


def test_a_pod_on_a_node_gets_its_grace_period(pods: Collection) -> None:
    made = done(pods.create(pod("one", nodeName="far-away", terminationGracePeriodSeconds=70)))
    deleted = done(pods.delete("one"))
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 70
    assert deleted["metadata"]["generation"] == made["metadata"]["generation"] + 1
    assert 70 <= seconds_left(deleted, made) <= 75
    assert done(pods.get("one"))["metadata"] == deleted["metadata"]
    done(pods.delete("one", query="gracePeriodSeconds=0"))


def test_a_second_delete_can_shorten_the_grace_period_but_not_prolong_it(pods: Collection) -> None:
    made = done(pods.create(pod("one", nodeName="far-away", terminationGracePeriodSeconds=70)))
    done(pods.delete("one"))
    for asked, kept in ((None, 70), (40, 40), (60, 40)):
        options = None if asked is None else {"gracePeriodSeconds": asked}
        deleted = done(pods.delete("one", options))
        assert deleted["metadata"]["deletionGracePeriodSeconds"] == kept
    assert 40 <= seconds_left(deleted, made) <= 45
    done(pods.delete("one", {"gracePeriodSeconds": 0}))
    assert pods.get("one").status == 404


def test_a_pod_without_a_node_goes_at_once(pods: Collection) -> None:
    done(pods.create(pod("one", terminationGracePeriodSeconds=70)))
    deleted = done(pods.delete("one"))
    assert (deleted["kind"], deleted["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert pods.get("one").status == 404


def test_a_finished_pod_goes_at_once(pods: Collection) -> None:
    done(pods.create(pod("one", nodeName="far-away")))
    done(pods.patch("one", {"status": {"phase": "Succeeded"}}, sub="status"))
    done(pods.delete("one"))
    assert pods.get("one").status == 404


def test_force_does_not_remove_a_finalizer(pods: Collection) -> None:
    made = pod("one", nodeName="far-away")
    made["metadata"]["finalizers"] = HELD
    done(pods.create(made))
    deleted = done(pods.delete("one", {"gracePeriodSeconds": 0}))
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    assert pods.get("one").status == 200
    release(pods, "one")
    assert pods.get("one").status == 404


def names_in(collection: Collection) -> list[str]:
    items = done(collection.plain.request("GET", collection.path))["items"]
    return [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]


def numbered(config_maps: Collection, count: int = 3) -> None:
    for number in range(count):
        labels = {"number": str(number), "all": "yes"}
        done(config_maps.create(config_map(f"c{number}", labels=labels)))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("labelSelector=number%3D1", ["c0", "c2"]),
        ("fieldSelector=metadata.name%3Dc0", ["c1", "c2"]),
        ("labelSelector=all,number%20notin%20(2)", ["c2"]),
        ("labelSelector=none", ["c0", "c1", "c2"]),
    ],
)
def test_a_collection_is_deleted_by_selector(config_maps: Collection, query: str, left: list[str]) -> None:
    numbered(config_maps)
    answer = config_maps.plain.request("DELETE", f"{config_maps.path}?{query}")
    deleted = done(answer)
    assert deleted["kind"] == "ConfigMapList"
    assert names_in(config_maps) == left
    assert sorted(item["metadata"]["name"] for item in deleted["items"]) == sorted(
        {"c0", "c1", "c2"} - {*left}
    )


def test_deleting_a_collection_leaves_what_finalizers_hold(config_maps: Collection) -> None:
    numbered(config_maps, 1)
    done(config_maps.create(config_map("held", labels={"all": "yes"}, finalizers=HELD)))
    done(config_maps.plain.request("DELETE", f"{config_maps.path}?labelSelector=all"))
    assert names_in(config_maps) == ["held"]
    release(config_maps, "held")
    assert names_in(config_maps) == []


def test_deleting_a_collection_stops_at_a_failed_precondition(config_maps: Collection) -> None:
    numbered(config_maps, 1)
    options = {"preconditions": {"uid": "other"}}
    answer = config_maps.plain.request("DELETE", f"{config_maps.path}?labelSelector=all", options)
    assert refusal(answer)[:2] == (409, "Conflict")
    assert names_in(config_maps) == ["c0"]


@pytest.mark.parametrize("path", ["/api/v1/configmaps", "/api/v1/namespaces"])
def test_some_collections_cannot_be_deleted(plain: Plain, path: str) -> None:
    answer = plain.request("DELETE", f"{path}?labelSelector=none")
    why = "the server does not allow this method on the requested resource"
    assert refusal(answer) == (405, "MethodNotAllowed", why)
