"""What a user changes about deployments meets what the author wrote, each field in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from podium.bundle.convert import ConversionError, convert
from podium.bundle.model import PACKAGE_KEY, Bundle

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: Object = {"topologyKey": "zone"}
NODES: Object = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "k", "operator": "Exists"}]}]}}
PODS: Object = {REQUIRED: [TERM]}


def overridden(config: Object, pod: Object | None = None, metadata: Object | None = None) -> Object:
    pod = {"containers": [{"name": "m"}]} | (pod or {})
    deployment = {"name": "manager", "spec": {"template": {"spec": pod, "metadata": metadata}}}
    csv = {
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "op.v1.0.0"},
        "spec": {
            "installModes": [{"type": "AllNamespaces", "supported": True}],
            "install": {"spec": {"deployments": [deployment]}},
        },
    }
    (made,) = convert(Bundle(csv, annotations={PACKAGE_KEY: "op"}), "sys", deployment_config=config)
    return made


def container(**fields: Any) -> Object:
    return {"containers": [{"name": "m", **fields}]}


A, B, NEW_A = ({"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"})
FROM, FROM_OTHER = {"configMapRef": {"name": "c"}}, {"prefix": "p"}
MOUNT, NEW_MOUNT, OTHER_MOUNT = (
    {"name": "v", "mountPath": "/a"},
    {"name": "v", "mountPath": "/b"},
    {"name": "w", "mountPath": "/a"},
)


@pytest.mark.parametrize(
    ("field", "present", "given", "expected"),
    [
        ("env", [A, B], [NEW_A], [NEW_A, B]),
        ("env", [A], [B], [A, B]),
        ("env", None, [A], [A]),
        ("env", [A], [], [A]),
        ("envFrom", [FROM], [FROM, FROM_OTHER, FROM_OTHER], [FROM, FROM_OTHER]),
        ("volumeMounts", [MOUNT], [NEW_MOUNT, OTHER_MOUNT], [NEW_MOUNT, OTHER_MOUNT]),
        ("resources", {"limits": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, {"requests": {"cpu": "1"}}),
        ("resources", {"limits": {"cpu": "1"}}, {}, {}),
        ("resources", {"limits": {"cpu": "1"}}, None, {"limits": {"cpu": "1"}}),
    ],
)
def test_fields_of_every_container(field: str, present: Any, given: Any, expected: Any) -> None:
    pod = {"containers": [{"name": name, field: present} for name in "xy"], "initContainers": [{"name": "i"}]}
    made = overridden({field: given}, pod)["spec"]["template"]["spec"]
    assert [each.get(field) for each in made["containers"]] == [expected, expected]
    assert made["initContainers"] == [{"name": "i", "resources": {}}]


VOLUME, NEW_VOLUME = {"name": "v", "emptyDir": {}}, {"name": "v", "secret": {"secretName": "s"}}
TOLERATION = {"key": "k", "operator": "Exists"}


@pytest.mark.parametrize(
    ("field", "present", "given", "expected"),
    [
        ("volumes", [VOLUME], [NEW_VOLUME], [NEW_VOLUME]),
        ("volumes", None, [VOLUME], [VOLUME]),
        ("tolerations", [TOLERATION], [TOLERATION, {"key": "l"}], [TOLERATION, {"key": "l"}]),
        ("nodeSelector", {"a": "b"}, {"c": "d"}, {"c": "d"}),
        ("nodeSelector", {"a": "b"}, {}, None),
        ("nodeSelector", {"a": "b"}, None, {"a": "b"}),
        ("affinity", {"nodeAffinity": NODES}, None, {"nodeAffinity": NODES}),
        ("affinity", {"nodeAffinity": NODES}, {}, None),
        ("affinity", None, {"podAffinity": PODS}, {"podAffinity": PODS}),
        (
            "affinity",
            {"nodeAffinity": NODES, "podAffinity": PODS},
            {"nodeAffinity": {}, "podAntiAffinity": PODS},
            {"podAffinity": PODS, "podAntiAffinity": PODS},
        ),
        ("affinity", {"nodeAffinity": NODES}, {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}, None),
        ("affinity", {"podAffinity": PODS}, {"podAffinity": {REQUIRED: [], PREFERRED: []}}, None),
        ("affinity", {}, None, {}),
    ],
)
def test_fields_of_the_pod(field: str, present: Any, given: Any, expected: Any) -> None:
    made = overridden({field: given, "annotations": {"x": "y"}}, {field: present})
    assert made["spec"]["template"]["spec"].get(field) == expected


def test_annotations_are_added_to_deployment_and_pod_and_never_replace() -> None:
    made = overridden({"annotations": {"a": "user", "b": "user"}}, metadata={"annotations": {"a": "author"}})
    assert made["metadata"]["annotations"] == {"a": "user", "b": "user"}
    assert made["spec"]["template"]["metadata"]["annotations"] == {
        "a": "author",
        "b": "user",
        "olm.targetNamespaces": "",
        "olm.operatorNamespace": "sys",
    }


def test_the_selector_is_ignored_as_it_always_was() -> None:
    assert overridden({"selector": {"matchLabels": {"a": "b"}}}) == overridden({})


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"env": {}}, "deploymentConfig.env: "),
        ({"nodeSelector": {"a": 1}}, "deploymentConfig.nodeSelector.a: "),
        ({"resources": {"limits": {"cpu": "much"}}}, "deploymentConfig.resources: "),
        ({"tolerations": [{"tolerationSeconds": "1"}]}, "deploymentConfig.tolerations[0]: "),
    ],
)
def test_overrides_of_a_wrong_type_are_refused_with_their_path(config: Object, where: str) -> None:
    with pytest.raises(ConversionError) as error:
        overridden(config)
    (finding,) = error.value.findings
    assert finding.rule == "deployment-config"
    assert finding.message.startswith(where)
