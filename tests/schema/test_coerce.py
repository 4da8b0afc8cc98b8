"""What is left of an object after Go has decoded it, and Go's words for what it cannot decode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import facts
from podium.schema.coerce import Coerced, DecodeError, coerce
from podium.schema.quantity import MALFORMED

Object = dict[str, Any]


def coerced(group_version: str, kind: str, obj: Any) -> Coerced:
    group, _, version = group_version.rpartition("/")
    fact = facts.load().type_for(group, version, kind)
    assert fact is not None
    return coerce(obj, fact)


def pod(**container: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"} | container]}}


def container_of(**fields: Any) -> Object:
    result: Object = coerced("v1", "Pod", pod(**fields)).object["spec"]["containers"][0]
    return result


def test_an_empty_object_gets_the_fields_that_go_always_writes() -> None:
    assert coerced("v1", "ConfigMap", {}) == Coerced({"metadata": {}})
    assert coerced("apps/v1", "Deployment", {}).object == {
        "metadata": {},
        "spec": {
            "selector": None,
            "template": {"metadata": {}, "spec": {"containers": None}},
            "strategy": {},
        },
        "status": {},
    }
    assert coerced("rbac.authorization.k8s.io/v1", "Role", {}).object == {"metadata": {}, "rules": None}


def test_zero_values_go_where_go_omits_them_and_stay_behind_pointers() -> None:
    given_spec = {"replicas": 0, "minReadySeconds": 0, "paused": False, "revisionHistoryLimit": None}
    spec = coerced("apps/v1", "Deployment", {"spec": given_spec}).object["spec"]
    assert spec["replicas"] == 0
    assert {"minReadySeconds", "paused", "revisionHistoryLimit"}.isdisjoint(spec)
    assert container_of(image="", command=[], env=None, resources={"limits": {}}) == {
        "name": "c",
        "resources": {},
    }


def test_an_empty_list_that_is_always_written_is_null_after_storage_unless_stored_as_json() -> None:
    assert coerced("rbac.authorization.k8s.io/v1", "Role", {"rules": []}).object["rules"] is None
    crd = coerced("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": []}}).object
    assert crd["spec"]["versions"] == []


def test_an_unset_creation_time_is_left_out_and_other_unset_times_are_null() -> None:
    assert coerced("v1", "ConfigMap", {"metadata": {"creationTimestamp": None}}).object == {"metadata": {}}
    event = coerced("v1", "Event", {}).object
    assert (event["firstTimestamp"], event["eventTime"]) == (None, None)


def test_unknown_fields_are_dropped_and_listed_with_their_paths() -> None:
    obj = pod(foo=1, env=[{"name": "A"}, {"name": "B", "valu": "x"}]) | {"speck": {}}
    obj["metadata"]["Name"] = "case matters"
    obj["spec"]["volumes"] = [{"name": "v", "configMap": {"nam": "x"}}]
    result = coerced("v1", "Pod", obj)
    assert result.unknown == (
        "metadata.Name",
        "spec.containers[0].foo",
        "spec.containers[0].env[1].valu",
        "spec.volumes[0].configMap.nam",
        "speck",
    )
    assert result.object["spec"]["containers"] == [
        {"name": "c", "env": [{"name": "A"}, {"name": "B"}], "resources": {}}
    ]


def test_unknown_fields_in_the_values_of_maps_have_the_key_in_their_path() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "typo": 1}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    result = coerced("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": [version]}})
    assert result.unknown == ("spec.versions[0].schema.openAPIV3Schema.properties.a.typo",)


MISFITS: list[tuple[str, str, Object, str, str, str]] = [
    ("v1", "ConfigMap", {"metadata": {"name": 5}}, "number", "ObjectMeta.metadata.name", "string"),
    ("v1", "ConfigMap", {"data": {"a": 1}}, "number", "ConfigMap.data", "string"),
    ("v1", "ConfigMap", {"kind": True}, "bool", "ConfigMap.TypeMeta.kind", "string"),
    ("apps/v1", "Deployment", {"spec": {"replicas": "2"}}, "string", "DeploymentSpec.spec.replicas", "int32"),
    (
        "apps/v1",
        "Deployment",
        {"spec": {"replicas": 3000000000}},
        "number 3000000000",
        "DeploymentSpec.spec.replicas",
        "int32",
    ),
    (
        "apps/v1",
        "Deployment",
        {"spec": {"replicas": 1.5}},
        "number 1.5",
        "DeploymentSpec.spec.replicas",
        "int32",
    ),
    (
        "apps/v1",
        "Deployment",
        {"spec": {"template": {"spec": {"containers": {}}}}},
        "object",
        "PodSpec.spec.template.spec.containers",
        "[]v1.Container",
    ),
    (
        "v1",
        "Pod",
        pod(imagePullPolicy=[]),
        "array",
        "Container.spec.containers.imagePullPolicy",
        "v1.PullPolicy",
    ),
    # The path names inlined structs, although JSON does not show them.
    (
        "v1",
        "Pod",
        {"spec": {"volumes": [{"configMap": "x"}]}},
        "string",
        "Volume.spec.volumes.VolumeSource.configMap",
        "v1.ConfigMapVolumeSource",
    ),
    (
        "v1",
        "Pod",
        pod(livenessProbe={"httpGet": {"port": {}}}),
        "object",
        "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
        "int32",
    ),
]


@pytest.mark.parametrize(("group_version", "kind", "obj", "value", "field", "go_type"), MISFITS)
def test_a_value_of_the_wrong_type_is_refused_in_gos_words(
    group_version: str, kind: str, obj: Object, value: str, field: str, go_type: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        coerced(group_version, kind, obj)
    message = f"json: cannot unmarshal {value} into Go struct field {field} of type {go_type}"
    assert str(caught.value) == message


def test_what_is_no_object_at_all_is_refused_without_a_field() -> None:
    with pytest.raises(DecodeError) as caught:
        coerced("v1", "ConfigMap", [])
    assert str(caught.value) == "json: cannot unmarshal array into Go value of type v1.ConfigMap"


SECONDS, MICROS = "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("group_version", "kind", "obj", "message"),
    [
        ("v1", "Pod", pod(resources={"limits": {"cpu": "lots"}}), MALFORMED),
        ("v1", "Secret", {"data": {"a": "!"}}, "illegal base64 data at input byte 0"),
        ("v1", "Secret", {"data": {"a": "aGkhaGk"}}, "illegal base64 data at input byte 4"),
        (
            "v1",
            "ConfigMap",
            {"metadata": {"creationTimestamp": "yesterday"}},
            f'parsing time "yesterday" as "{SECONDS}": cannot parse "yesterday" as "2006"',
        ),
        (
            "v1",
            "ConfigMap",
            {"metadata": {"creationTimestamp": "2024-13-01T00:00:00Z"}},
            'parsing time "2024-13-01T00:00:00Z": month out of range',
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            {"spec": {"renewTime": "2024-01-01T00:00:00Z"}},
            f'parsing time "2024-01-01T00:00:00Z" as "{MICROS}": cannot parse "Z" as ".000000"',
        ),
    ],
)
def test_a_malformed_text_is_refused_in_the_words_of_its_parser(
    group_version: str, kind: str, obj: Any, message: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        coerced(group_version, kind, obj)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("500m", "500m"),
        ("0.5", "500m"),
        (0.5, "500m"),
        (2, "2"),
        (" 1 ", "1"),
        (None, "0"),
        ("1024Mi", "1Gi"),
    ],
)
def test_quantities_become_canonical(written: Any, read: str) -> None:
    assert container_of(resources={"limits": {"cpu": written}})["resources"]["limits"] == {"cpu": read}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.999Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05+02:00", "2024-01-02T01:04:05Z"),
        ("0999-01-02T03:04:05Z", "0999-01-02T03:04:05Z"),
    ],
)
def test_times_become_utc_and_whole_seconds(written: str, read: str) -> None:
    metadata = coerced("v1", "ConfigMap", {"metadata": {"creationTimestamp": written}}).object["metadata"]
    assert metadata == {"creationTimestamp": read}


def test_micro_times_keep_their_decimals() -> None:
    spec = {"renewTime": "2024-01-02T03:04:05.123456+01:00"}
    lease = coerced("coordination.k8s.io/v1", "Lease", {"spec": spec}).object
    assert lease["spec"]["renewTime"] == "2024-01-02T02:04:05.123456Z"


def test_ports_and_percentages_stay_numbers_or_texts() -> None:
    rolling = {"maxSurge": "25%", "maxUnavailable": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = coerced("apps/v1", "Deployment", {"spec": {"strategy": strategy}}).object["spec"]
    assert spec["strategy"] == strategy


def test_base64_is_written_the_standard_way() -> None:
    assert coerced("v1", "Secret", {"data": {"a": "aG\nk=", "b": ""}}).object["data"] == {
        "a": "aGk=",
        "b": "",
    }


def test_embedded_json_is_kept_verbatim() -> None:
    data = {"anything": [1, None, {"x": 0}], "empty": {}}
    assert coerced("apps/v1", "ControllerRevision", {"data": data}).object["data"] == data


def test_schemas_may_be_booleans_arrays_or_schemas() -> None:
    def read(schema: Object) -> Object:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        crd = coerced(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": [version]}}
        )
        assert crd.unknown == ()  # Go decodes these on their own, and forgets to be strict
        result: Object = crd.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return result

    assert read({"additionalProperties": False}) == {"additionalProperties": False}
    assert read({"additionalProperties": {"type": "string", "typo": 1}}) == {
        "additionalProperties": {"type": "string"}
    }
    assert read({"items": [{"type": "string", "nullable": False}]}) == {"items": [{"type": "string"}]}
    assert read({"default": {"a": None}}) == {"default": {"a": None}}
    with pytest.raises(DecodeError, match="boolean or JSON schema expected"):
        read({"additionalProperties": "yes"})


def test_an_endlessly_deep_schema_is_refused() -> None:
    schema: Object = {"type": "object"}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    with pytest.raises(DecodeError, match="exceeded max depth"):
        coerced("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": [version]}})


NAMES = ["metadata", "spec", "status", "name", "labels", "containers", "template", "replicas", "ports"]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=25,
)


@given(json_values)
def test_any_json_is_decoded_or_refused_and_decoding_twice_changes_nothing(value: Any) -> None:
    try:
        once = coerced("apps/v1", "Deployment", value)
    except DecodeError:
        return
    again = coerced("apps/v1", "Deployment", once.object)
    assert again == Coerced(once.object)
