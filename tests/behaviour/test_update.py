"""Replacing objects: optimistic concurrency, identity, generations, status and the other subresources."""

from __future__ import annotations

import pytest

from behaviour.collection import Collection, Object, config_map, deployment, done, pod
from behaviour.support import causes, eventually, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NO_METHOD = "the server does not allow this method on the requested resource"


def with_metadata(obj: Object, **metadata: object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def leases(plain: Plain, namespace: str) -> Collection:
    return Collection(plain, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")


def lease(name: str, **metadata: object) -> Object:
    named = {"name": name, **metadata}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": named, "spec": {}}


def test_an_update_of_a_stale_version_is_refused(config_maps: Collection) -> None:
    read = done(config_maps.create(config_map("one", {"a": "1"})))
    done(config_maps.update({**read, "data": {"a": "2"}}))
    answer = config_maps.update({**read, "data": {"a": "3"}})
    message = f'Operation cannot be fulfilled on configmaps "one": {MODIFIED}'
    assert refusal(answer) == (409, "Conflict", message)
    assert answer.json()["details"] == {"name": "one", "kind": "configmaps"}
    assert done(config_maps.get("one"))["data"] == {"a": "2"}


@pytest.mark.parametrize("version", [None, "", "0"])
def test_an_update_without_a_version_replaces_whatever_is_there(
    config_maps: Collection, version: str | None
) -> None:
    done(config_maps.create(config_map("one", {"a": "1"})))
    done(config_maps.update(config_map("one", {"a": "2"}, resourceVersion=version)))
    assert done(config_maps.get("one"))["data"] == {"a": "2"}


def test_a_version_that_is_no_number_is_refused(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.update(config_map("one", resourceVersion="new"))
    assert refusal(answer) == (500, "", 'strconv.ParseUint: parsing "new": invalid syntax')


def test_some_kinds_insist_on_a_version(
    plain: Plain, namespace: str, widgets: Collection, widget_kind: Widgets
) -> None:
    done(leases(plain, namespace).create(lease("one")))
    done(widgets.create(widget_kind.widget("one")))
    for answer in (
        leases(plain, namespace).update(lease("one")),
        widgets.update(widget_kind.widget("one", spec={})),
    ):
        assert refusal(answer)[:2] == (422, "Invalid")
        why = "Invalid value: 0: must be specified for an update"
        assert causes(answer) == [("metadata.resourceVersion", "FieldValueInvalid", why)]


def test_the_uid_of_the_body_must_be_that_of_the_object(config_maps: Collection) -> None:
    uid = done(config_maps.create(config_map("one")))["metadata"]["uid"]
    answer = config_maps.update(config_map("one", uid="other"))
    assert refusal(answer)[:2] == (409, "Conflict")
    why = f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    assert refusal(answer)[2].endswith(why)
    done(config_maps.update(config_map("one", {"a": "1"}, uid=uid)))


def test_the_name_and_namespace_of_the_body_must_be_those_of_the_path(
    config_maps: Collection, plain: Plain
) -> None:
    path = config_maps.at("one")
    done(config_maps.create(config_map("one")))
    answer = plain.request("PUT", path, config_map("two"))
    why = "the name of the object (two) does not match the name on the URL (one)"
    assert refusal(answer) == (400, "BadRequest", why)
    answer = plain.request("PUT", path, {"metadata": {}})
    why = "the name of the object (one based on URL) was undeterminable: name must be provided"
    assert refusal(answer) == (400, "BadRequest", why)
    answer = config_maps.update(config_map("one", namespace="elsewhere"))
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert refusal(answer) == (400, "BadRequest", why)


def test_an_update_to_another_kind_is_refused(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.update({**config_map("one"), "kind": "Secret"})
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].startswith('Secret in version "v1" cannot be handled as a ConfigMap')


def test_what_the_server_gave_an_object_cannot_be_changed(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one")))
    changed = with_metadata(
        made, creationTimestamp="2001-01-01T00:00:00Z", generation=9, selfLink="/x", generateName="made-"
    )
    metadata = done(config_maps.update(changed))["metadata"]
    assert metadata["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert not metadata.keys() & {"generation", "selfLink"}
    assert metadata["generateName"] == "made-"


def test_an_update_cannot_mark_an_object_as_deleted(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.update(config_map("one", deletionTimestamp="2001-01-01T00:00:00Z"))
    why = 'Invalid value: "2001-01-01T00:00:00Z": field is immutable'
    assert refusal(answer)[:2] == (422, "Invalid")
    assert set(causes(answer)) == {("metadata.deletionTimestamp", "FieldValueInvalid", why)}


def test_an_update_that_changes_nothing_keeps_the_version(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"a": "1"}), "fieldManager=first"))
    same = done(config_maps.update(made, "fieldManager=second"))
    assert same == made


def test_an_immutable_config_map_stays_as_it_is(config_maps: Collection) -> None:
    done(config_maps.create({**config_map("one", {"a": "1"}), "immutable": True}))
    why = "Forbidden: field is immutable when `immutable` is set"
    answer = config_maps.update({**config_map("one", {"a": "2"}), "immutable": True})
    assert causes(answer) == [("data", "FieldValueForbidden", why)]
    answer = config_maps.update({**config_map("one", {"a": "1"}), "immutable": False})
    assert causes(answer) == [("immutable", "FieldValueForbidden", why)]
    done(config_maps.update({**config_map("one", {"a": "1"}, labels={"x": "y"}), "immutable": True}))


def test_an_update_of_a_missing_object_is_refused(config_maps: Collection) -> None:
    answer = config_maps.update(config_map("missing"))
    assert refusal(answer) == (404, "NotFound", 'configmaps "missing" not found')


def test_a_put_creates_objects_of_the_kinds_that_allow_it(plain: Plain, namespace: str) -> None:
    answer = leases(plain, namespace).update(lease("one", resourceVersion="3"))
    assert answer.status == 201
    assert answer.json()["metadata"]["resourceVersion"] != "3"


def test_a_put_with_a_uid_never_creates(plain: Plain, namespace: str) -> None:
    answer = leases(plain, namespace).update(lease("one", uid="some"))
    assert refusal(answer)[:2] == (409, "Conflict")
    assert refusal(answer)[2].endswith("UID in precondition: some, UID in object meta: ")
    assert leases(plain, namespace).get("one").status == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_collection_cannot_be_changed(config_maps: Collection, plain: Plain, method: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = plain.request(method, config_maps.path, config_map("one"), headers=headers)
    assert refusal(answer) == (405, "MethodNotAllowed", NO_METHOD)


@pytest.mark.parametrize(
    ("change", "raised"),
    [
        ({"spec": {"minReadySeconds": 5}}, True),
        ({"spec": {"replicas": 0}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, False),
        # Annotations of a Deployment are copied to its ReplicaSets, so they count.
        ({"metadata": {"annotations": {"a": "b"}}}, True),
        ({"status": {"replicas": 3}}, False),
    ],
    ids=["spec", "same spec", "labels", "annotations", "status"],
)
def test_generation_counts_changes_of_the_desired_state(
    deployments: Collection, change: Object, raised: bool
) -> None:
    done(deployments.create(deployment("one")))
    changed = done(deployments.patch("one", change))
    assert changed["metadata"]["generation"] == (2 if raised else 1)


def test_generation_of_a_custom_resource_counts_everything_but_metadata_and_status(
    widgets: Collection, widget_kind: Widgets
) -> None:
    done(widgets.create(widget_kind.widget("one", spec={"size": 1})))
    changes: list[Object] = [
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"status": {"size": 1}},
        {"spec": {"size": 2}},
    ]
    generations = [done(widgets.patch("one", change))["metadata"]["generation"] for change in changes]
    assert generations == [1, 1, 1, 2]


def test_the_main_endpoint_cannot_change_status(widgets: Collection, widget_kind: Widgets) -> None:
    made = done(widgets.create(widget_kind.widget("one", spec={"size": 1}, status={"size": 1})))
    assert "status" not in made
    changed = done(widgets.update({**made, "spec": {"size": 2}, "status": {"size": 2}}))
    assert (changed["spec"], "status" in changed) == ({"size": 2}, False)


def test_the_status_endpoint_changes_nothing_but_status(widgets: Collection, widget_kind: Widgets) -> None:
    made = done(widgets.create(widget_kind.widget("one", spec={"size": 1})))
    sent = {**with_metadata(made, labels={"a": "b"}), "spec": {"size": 2}, "status": {"size": 2}}
    changed = done(widgets.update(sent, sub="status"))
    assert (changed["spec"], changed["status"]) == ({"size": 1}, {"size": 2})
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1


def test_the_status_endpoint_of_a_built_in_kind_keeps_the_spec(deployments: Collection) -> None:
    made = done(deployments.create(deployment("one")))
    sent = with_metadata({**made, "spec": {}}, labels={"a": "b"}, resourceVersion="")
    changed = done(deployments.update({**sent, "status": {"collisionCount": 4}}, sub="status"))
    assert changed["spec"] == made["spec"]
    assert changed["status"]["collisionCount"] == 4
    assert "labels" not in changed["metadata"]


def test_the_status_endpoint_guards_versions_too(widgets: Collection, widget_kind: Widgets) -> None:
    made = done(widgets.create(widget_kind.widget("one")))
    done(widgets.update({**made, "status": {"size": 1}}, sub="status"))
    answer = widgets.update({**made, "status": {"size": 2}}, sub="status")
    assert refusal(answer)[:2] == (409, "Conflict")
    assert refusal(answer)[2].endswith(MODIFIED)


def test_a_kind_without_status_has_no_such_path(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    why = "the server could not find the requested resource"
    assert refusal(config_maps.get("one", "status")) == (404, "NotFound", why)


def scale(name: str, replicas: int, **metadata: object) -> Object:
    named = {"name": name, **metadata}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": named,
        "spec": {"replicas": replicas},
    }


def test_a_scale_shows_and_sets_the_replicas_of_a_workload(deployments: Collection, namespace: str) -> None:
    made = done(deployments.create(deployment("one")))
    shown = done(deployments.get("one", "scale"))
    assert shown["spec"] == {}
    assert shown["status"] == {"replicas": 0, "selector": "app=one"}
    assert shown["metadata"]["uid"] == made["metadata"]["uid"]
    changed = done(deployments.update(scale("one", 2, namespace=namespace), sub="scale"))
    assert (changed["kind"], changed["spec"]) == ("Scale", {"replicas": 2})
    assert done(deployments.get("one"))["spec"]["replicas"] == 2


def test_a_scale_is_refused_as_its_object_would_be(deployments: Collection, namespace: str) -> None:
    done(deployments.create(deployment("one")))
    answer = deployments.patch("one", {"spec": {"replicas": -1}}, sub="scale")
    assert refusal(answer)[:2] == (422, "Invalid")
    assert answer.json()["details"]["kind"] == "Scale"
    why = "Invalid value: -1: must be greater than or equal to 0"
    assert causes(answer) == [("spec.replicas", "FieldValueInvalid", why)]
    stale = scale("one", 1, namespace=namespace, resourceVersion="1")
    answer = deployments.update(stale, sub="scale")
    message = f'Operation cannot be fulfilled on deployments.apps "one": {MODIFIED}'
    assert refusal(answer) == (409, "Conflict", message)
    answer = deployments.update({**deployment("one"), "kind": "Deployment"}, sub="scale")
    assert refusal(answer)[:2] == (400, "BadRequest")
    answer = deployments.update(scale("missing", 1, namespace=namespace), sub="scale")
    assert refusal(answer) == (404, "NotFound", 'deployments.apps "missing" not found')


def test_a_custom_resource_scales_by_the_paths_it_declares(widgets: Collection, widget_kind: Widgets) -> None:
    done(widgets.create(widget_kind.widget("one", spec={"size": 3})))
    assert done(widgets.get("one", "scale"))["spec"] == {"replicas": 3}
    done(widgets.patch("one", {"spec": {"replicas": 5}}, sub="scale"))
    assert done(widgets.get("one"))["spec"] == {"size": 5}


def binding(pod_name: str, **target: str) -> Object:
    metadata = {"name": pod_name, "annotations": {"bound": "yes"}}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def test_a_binding_puts_a_pod_on_a_node(pods: Collection) -> None:
    done(pods.create(pod("one")))
    answer = pods.plain.request("POST", pods.at("one", "binding"), binding("one", kind="Node", name="here"))
    assert (answer.status, answer.json()["status"]) == (201, "Success")
    bound = done(pods.get("one"))
    assert bound["spec"]["nodeName"] == "here"
    assert bound["metadata"]["annotations"] == {"bound": "yes"}
    [scheduled] = [c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert scheduled["status"] == "True"


def test_a_bound_pod_stays_where_it_is(pods: Collection) -> None:
    done(pods.create(pod("one", nodeName="here")))
    answer = pods.plain.request("POST", pods.at("one", "binding"), binding("one", kind="Node", name="there"))
    why = 'Operation cannot be fulfilled on pods/binding "one": pod one is already assigned to node "here"'
    assert refusal(answer) == (409, "Conflict", why)


def test_a_binding_must_name_its_pod_and_a_node(pods: Collection) -> None:
    done(pods.create(pod("one")))
    path = pods.at("one", "binding")
    answer = pods.plain.request("POST", path, binding("two", kind="Node", name="here"))
    assert refusal(answer) == (400, "BadRequest", "name in URL does not match name in Binding object")
    answer = pods.plain.request("POST", path, binding("one", kind="Node"))
    assert refusal(answer) == (500, "", "target.name: Required value")
    answer = pods.plain.request("POST", pods.at("two", "binding"), binding("two", name="here"))
    assert refusal(answer) == (404, "NotFound", 'pods "two" not found')


def eviction(name: str, **fields: object) -> Object:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **fields}


def test_an_eviction_deletes_a_pod_and_says_why(pods: Collection) -> None:
    done(pods.create(pod("one", nodeName="here")))
    answer = pods.plain.request("POST", pods.at("one", "eviction"), eviction("one"))
    assert (answer.status, answer.json()["status"]) == (201, "Success")
    evicted = done(pods.get("one"))
    assert "deletionTimestamp" in evicted["metadata"]
    [condition] = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")


def test_an_eviction_can_be_tried_out(pods: Collection) -> None:
    done(pods.create(pod("one", nodeName="here")))
    path = pods.at("one", "eviction")
    answer = pods.plain.request("POST", path, eviction("one", deleteOptions={"dryRun": ["All"]}))
    assert answer.status == 201
    assert "deletionTimestamp" not in done(pods.get("one"))["metadata"]


def test_an_eviction_must_name_its_pod(pods: Collection) -> None:
    done(pods.create(pod("one", nodeName="here")))
    answer = pods.plain.request("POST", pods.at("one", "eviction"), eviction("two"))
    assert refusal(answer) == (400, "BadRequest", "name in URL does not match name in Eviction object")
    answer = pods.plain.request("POST", pods.at("two", "eviction"), eviction("two"))
    assert refusal(answer) == (404, "NotFound", 'pods "two" not found')


def test_a_disruption_budget_stops_an_eviction(pods: Collection, plain: Plain, namespace: str) -> None:
    done(pods.create(pod("one", nodeName="here", labels={"app": "guarded"})))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    done(pods.patch("one", {"status": ready}, sub="status"))
    budgets = Collection(plain, f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    selector = {"matchLabels": {"app": "guarded"}}
    metadata = {"name": "guard"}
    done(budgets.create({"metadata": metadata, "spec": {"minAvailable": 1, "selector": selector}}))
    answer = plain.request("POST", pods.at("one", "eviction"), eviction("one"))
    why = "Cannot evict pod as it would violate the pod's disruption budget."
    assert refusal(answer) == (429, "TooManyRequests", why)
    [(_, reason, message)] = causes(answer)
    assert (reason, message.startswith("The disruption budget guard ")) == ("DisruptionBudget", True)


def test_a_disruption_budget_is_used_up_by_evictions(pods: Collection, plain: Plain, namespace: str) -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("one", "two"):
        done(pods.create(pod(name, nodeName="here", labels={"app": "guarded"})))
        done(pods.patch(name, {"status": ready}, sub="status"))
    budgets = Collection(plain, f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
    selector = {"matchLabels": {"app": "guarded"}}
    done(budgets.create({"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": selector}}))
    eventually(lambda: done(budgets.get("guard"))["status"].get("disruptionsAllowed") == 1)
    assert plain.request("POST", pods.at("one", "eviction"), eviction("one")).status == 201
    answer = plain.request("POST", pods.at("two", "eviction"), eviction("two"))
    assert refusal(answer)[:2] == (429, "TooManyRequests")
    assert "deletionTimestamp" not in done(pods.get("two"))["metadata"]
