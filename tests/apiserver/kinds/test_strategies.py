"""What the tables cannot show: deletion, subresources, allocated addresses, broken objects, start-up."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.kinds.outcomes import CREATED, UID, Case, cases, coerced
from podium.apiserver.kinds import strategy_for
from podium.apiserver.kinds.certificates import CertificateSigningRequestStrategy
from podium.apiserver.kinds.cluster import NamespaceStrategy
from podium.apiserver.kinds.pods import PodStrategy
from podium.schema.coerce import DecodeError
from podium.schema.fielderrors import FieldError

Object = dict[str, Any]


def object_of(kind: str, api_version: str = "v1", **fields: Any) -> Object:
    meta = {
        "name": "x",
        "namespace": "default",
        "uid": UID,
        "creationTimestamp": CREATED,
        "resourceVersion": "1",
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def pod(**spec: Any) -> Object:
    obj = object_of("Pod", spec={"containers": [{"name": "c", "image": "a:1"}], **spec})
    strategy_for("", "Pod").default(obj)
    return obj


def texts(errors: list[FieldError]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "stays"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", 90, 90),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n"}, "Succeeded", 90, 0),
        ({"nodeName": "n"}, "Failed", None, 0),
        ({}, "Pending", 90, 0),
    ],
)
def test_a_deleted_pod_stays_as_long_as_its_node_needs(
    spec: Object, phase: str, asked: int | None, stays: int
) -> None:
    obj = {**pod(**spec), "status": {"phase": phase}}
    assert strategy_for("", "Pod").grace_seconds(obj, asked) == stays


def test_other_kinds_are_gone_at_once() -> None:
    assert strategy_for("apps", "Deployment").grace_seconds(object_of("Deployment", "apps/v1"), 30) == 0


def service(**spec: Any) -> Object:
    given = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}], **spec}
    obj = object_of("Service", spec=given)
    strategy_for("", "Service").default(obj)
    return obj


def test_an_allocated_cluster_ip_may_not_change() -> None:
    strategy, old = strategy_for("", "Service"), service()
    new = service(clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"])
    strategy.prepare_update(new, old)
    expected = 'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'
    assert texts(strategy.validate_update(new, old)) == [expected]


def test_a_client_that_knows_only_cluster_ip_changes_both_fields() -> None:
    strategy, old, new = strategy_for("", "Service"), service(), service(clusterIP="10.0.0.2")
    strategy.prepare_update(new, old)
    assert new["spec"]["clusterIPs"] == ["10.0.0.2"]


def test_a_service_that_becomes_external_gives_its_address_back() -> None:
    strategy, old = strategy_for("", "Service"), service()
    new = service(type="ExternalName", externalName="example.com")
    strategy.prepare_update(new, old)
    assert "clusterIP" not in new["spec"]
    assert "clusterIPs" not in new["spec"]
    assert strategy.validate_update(new, old) == []


def test_ephemeral_containers_can_be_added_but_not_taken_away() -> None:
    strategy, old = strategy_for("", "Pod"), pod()
    assert isinstance(strategy, PodStrategy)
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"not": "kept"}
    new["spec"] |= {"hostname": "not-kept", "ephemeralContainers": [{"name": "debug", "image": "busybox"}]}
    strategy.default(new)
    strategy.prepare_ephemeral_containers(new, old)
    assert strategy.validate_ephemeral_containers(new, old) == []
    assert "labels" not in new["metadata"]
    assert "hostname" not in new["spec"]
    expected = (
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n'
    )
    assert texts(strategy.validate_ephemeral_containers(old, new)) == [expected]


def test_finalize_lets_go_of_a_namespace() -> None:
    strategy = strategy_for("", "Namespace")
    assert isinstance(strategy, NamespaceStrategy)
    old = object_of("Namespace", spec={"finalizers": ["kubernetes"]}, status={"phase": "Terminating"})
    del old["metadata"]["namespace"]
    new = {**copy.deepcopy(old), "spec": {}, "status": {"phase": "Active"}}
    strategy.prepare_finalize(new, old)
    assert strategy.validate_finalize(new, old) == []
    assert new["status"] == {"phase": "Terminating"}


def test_approval_changes_conditions_only_and_cannot_be_taken_back() -> None:
    strategy = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
    assert isinstance(strategy, CertificateSigningRequestStrategy)
    [case] = [c for c in cases() if c.name == "a CertificateSigningRequest"]
    old = coerced(case, copy.deepcopy(case.object))
    old["metadata"] |= {"uid": UID, "resourceVersion": "1"}
    strategy.prepare_create(old)
    new = copy.deepcopy(old)
    new["status"] = {"certificate": "bm8=", "conditions": [{"type": "Approved", "status": "True"}]}
    strategy.prepare_approval(new, old)
    assert strategy.validate_approval(new, old) == []
    assert new["status"] == {"conditions": [{"type": "Approved", "status": "True"}]}
    removed = 'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    assert removed in texts(strategy.validate_approval(old, new))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "other", 'metadata.name: Invalid value: "other": field is immutable'),
        ("uid", "other", 'metadata.uid: Invalid value: "other": field is immutable'),
        (
            "resourceVersion",
            "",
            'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        ),
    ],
)
def test_an_update_may_not_change_who_the_object_is(field: str, value: str, message: str) -> None:
    old, new = object_of("ConfigMap"), object_of("ConfigMap")
    new["metadata"][field] = value
    assert texts(strategy_for("", "ConfigMap").validate_update(new, old)) == [message]


def test_a_deleted_object_gets_no_new_finalizers() -> None:
    old, new = object_of("ConfigMap"), object_of("ConfigMap")
    old["metadata"] |= {"deletionTimestamp": CREATED, "finalizers": ["a/b"]}
    new["metadata"] |= {"deletionTimestamp": CREATED, "finalizers": ["a/b", "c/d"]}
    text = (
        'no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}'
    )
    assert texts(strategy_for("", "ConfigMap").validate_update(new, old)) == [
        f"metadata.finalizers: Forbidden: {text}"
    ]


def test_annotations_have_a_total_size() -> None:
    obj = object_of("ConfigMap")
    obj["metadata"]["annotations"] = {"a": "x" * 200_000, "b": "y" * 70_000}
    expected = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert texts(strategy_for("", "ConfigMap").validate_create(obj)) == [expected]


def test_a_config_map_has_a_total_size() -> None:
    obj = object_of("ConfigMap", data={"a": "x" * 1_048_577})
    assert texts(strategy_for("", "ConfigMap").validate_create(obj)) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]


def test_an_unknown_kind_has_the_rules_of_all_objects() -> None:
    obj = object_of("ResourceSlice", "resource.k8s.io/v1")
    del obj["metadata"]["namespace"]
    assert strategy_for("resource.k8s.io", "ResourceSlice").validate_create(obj) == []
    obj["metadata"]["name"] = "a/b"
    expected = ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]
    assert texts(strategy_for("resource.k8s.io", "ResourceSlice").validate_create(obj)) == expected


def test_a_strategy_is_made_once() -> None:
    assert strategy_for("apps", "Deployment") is strategy_for("apps", "Deployment")


def test_asking_for_one_kind_loads_no_other_family() -> None:
    program = (
        "import sys; from podium.apiserver.kinds import strategy_for; strategy_for('', 'ConfigMap');"
        "families = ('pods', 'apps', 'batch', 'networking');"
        "print([f for f in families if f'podium.apiserver.kinds.{f}' in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    ["", "x", "A b", "1.2.3.4", "Odd", "50%", 0, -1, 80, True, {}, [], None, "1Gi", "../x"]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(cases()), st.data())
def test_no_object_of_the_right_shape_breaks_a_strategy(case: Case, data: st.DataObject) -> None:
    broken = copy.deepcopy(case.object)
    for _ in range(data.draw(st.integers(1, 3))):
        _break_somewhere(broken, data)
    try:
        obj = coerced(case, broken)
    except DecodeError:
        return
    strategy = strategy_for(case.group, case.kind)
    strategy.default(obj)
    obj.setdefault("metadata", {})["uid"] = UID
    strategy.prepare_create(obj)
    strategy.validate_create(obj)
    strategy.warnings(obj, None)
    old = coerced(case, copy.deepcopy(case.object))
    strategy.default(old)
    for prepare, validate in (
        (strategy.prepare_update, strategy.validate_update),
        (strategy.prepare_status, strategy.validate_status),
    ):
        new = copy.deepcopy(obj)
        prepare(new, old)
        assert all(error.body for error in validate(new, old))


def _break_somewhere(obj: Object, data: st.DataObject) -> None:
    holder: Any = obj
    while True:
        keys = (
            [k for k in holder if k not in ("apiVersion", "kind")]
            if isinstance(holder, dict)
            else range(len(holder))
        )
        if not keys:
            return
        key = data.draw(st.sampled_from(list(keys)))
        deeper = isinstance(holder[key], (dict, list)) and holder[key]
        if not deeper or data.draw(st.integers(0, 3)) == 0:
            holder[key] = data.draw(VALUES)
            return
        holder = holder[key]
