"""Protobuf bodies: bytes that Go wrote, bytes that a small encoder writes, and bytes that nobody should."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.schema import facts, protobuf
from podium.schema.coerce import coerce
from podium.schema.facts import FieldFact, Form, Type
from podium.schema.protobuf import MAGIC, DecodeError, decode

Object = dict[str, Any]

# Written by Go's own encoder (`go run ./samples` in tools/facts).
CAPTURED: list[tuple[str, Object]] = [
    (
        (
            "6b3873000a150a07617070732f7631120a4465706c6f796d656e74125c0a100a0012001a0022002a00320038004200123a1a300a100a"
            "0012001a0022002a00320038004200121c1a00320042004a0052005800600068008201008a01009a0100c2010022020a00280038001a"
            "0c0800100018002000280038001a002200"
        ),
        {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {},
            "spec": {
                "selector": None,
                "template": {"metadata": {}, "spec": {"containers": None}},
                "strategy": {},
            },
            "status": {},
        },
    ),
    (
        (
            "6b3873000a0f0a0276311209436f6e6669674d617012630a4b0a0012001a0022002a003200380042004a0050005a090a056b65792d30"
            "120062090a056b65792d3012006a0c0a001a0022002a003000380072008a010e0a0012001a00220032003a00420012090a056b65792d"
            "3012001a070a056b65792d3020001a002200"
        ),
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "deletionTimestamp": None,
                "deletionGracePeriodSeconds": 0,
                "labels": {"key-0": ""},
                "annotations": {"key-0": ""},
                "ownerReferences": [
                    {
                        "apiVersion": "",
                        "kind": "",
                        "name": "",
                        "uid": "",
                        "controller": False,
                        "blockOwnerDeletion": False,
                    }
                ],
                "finalizers": [""],
                "managedFields": [{"time": None, "fieldsV1": None}],
            },
            "immutable": False,
            "data": {"key-0": ""},
            "binaryData": {"key-0": ""},
        },
    ),
    (
        (
            "6b3873000a1f0a0e6d6574612e6b38732e696f2f7631120d44656c6574654f7074696f6e73124c08fcffffffffffffffff0112170a09"
            "7465787420c3bc2039120a7465787420c3bc2031321801220a7465787420c3bc2031382a0a7465787420c3bc2032312a0a7465787420"
            "c3bc20323330011a002200"
        ),
        {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "gracePeriodSeconds": -4,
            "preconditions": {"uid": "text ü 9", "resourceVersion": "text ü 12"},
            "orphanDependents": True,
            "propagationPolicy": "text ü 18",
            "dryRun": ["text ü 21", "text ü 23"],
            "ignoreStoreReadErrorWithClusterBreakingPotential": True,
        },
    ),
]


@pytest.mark.parametrize(
    ("written", "obj"), CAPTURED, ids=lambda value: value.get("kind") if type(value) is dict else ""
)
def test_what_go_wrote_is_read(written: str, obj: Object) -> None:
    assert decode(bytes.fromhex(written)) == obj


# A small encoder, so that any object can be had as protobuf.


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def tagged(number: int, payload: int | bytes) -> bytes:
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    type_meta = tagged(1, api_version.encode()) + tagged(2, kind.encode())
    return MAGIC + tagged(1, type_meta) + tagged(2, message) + tagged(3, b"") + tagged(4, b"")


def encoded(obj: Object) -> bytes:
    group, _, version = obj["apiVersion"].rpartition("/")
    fact = facts.load().type_for(group, version, obj["kind"])
    assert fact is not None
    return enveloped(obj["apiVersion"], obj["kind"], message_of(fact.name, obj))


def message_of(name: str, obj: Object) -> bytes:
    out = b""
    for field in facts.load().struct(name).fields:
        if field.inline and field.number:
            out += tagged(field.number, message_of(field.type.name, obj))
        elif field.number and field.name in obj and obj[field.name] is not None:
            out += field_of(field, obj[field.name])
    return out


def field_of(field: FieldFact, value: Any) -> bytes:
    type_ = field.type.deref()
    if type_.form is Form.MAP:
        entries = (tagged(1, key.encode()) + value_of(2, type_.of, item) for key, item in value.items())
        return b"".join(tagged(field.number, entry) for entry in entries)
    if type_.form is Form.LIST and not type_.name.endswith(("ExtraValue", "Verbs")):
        return b"".join(value_of(field.number, type_.of, item) for item in value)
    return value_of(field.number, type_, value)


def value_of(number: int, type_: Type, value: Any) -> bytes:
    if type_.scalar == "float64":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if type_.form is Form.LIST:
        return tagged(number, b"".join(tagged(1, item.encode()) for item in value))
    if type_.form is Form.STRUCT:
        return tagged(number, message_of(type_.name, value))
    if type_.form is Form.CUSTOM:
        return tagged(number, custom_of(type_.name, value))
    if isinstance(value, str):
        return tagged(number, base64.b64decode(value) if type_.scalar == "bytes" else value.encode())
    return tagged(number, int(value))


def custom_of(name: str, value: Any) -> bytes:
    match name:
        case "util/intstr.IntOrString":
            parts = (1, 0, value.encode()) if isinstance(value, str) else (0, value, b"")
            return tagged(1, parts[0]) + tagged(2, parts[1]) + tagged(3, parts[2])
        case "meta/v1.Time":
            return tagged(1, 1704164645)
        case "meta/v1.MicroTime":
            return tagged(1, 1704164645) + tagged(2, 123456000)
        case "api/resource.Quantity":
            return tagged(1, value.encode())
        case "apiextensions/v1.JSONSchemaPropsOrBool":
            return tagged(1, int(value))
        case "apiextensions/v1.JSONSchemaPropsOrStringArray":
            return b"".join(tagged(2, item.encode()) for item in value)
        case "apiextensions/v1.JSONSchemaPropsOrArray":
            return tagged(1, message_of("apiextensions/v1.JSONSchemaProps", value))
    return tagged(1, json.dumps(value).encode())


CUSTOM_VALUES: dict[str, list[Any]] = {
    "util/intstr.IntOrString": [0, 80, -1, "http", ""],
    "meta/v1.Time": ["2024-01-02T03:04:05Z"],
    "meta/v1.MicroTime": ["2024-01-02T03:04:05.123456Z"],
    "api/resource.Quantity": ["0", "1", "1500m", "1024Mi"],
    "apiextensions/v1.JSONSchemaPropsOrBool": [True, False],
    "apiextensions/v1.JSONSchemaPropsOrStringArray": [["a", "b"]],
    "apiextensions/v1.JSONSchemaPropsOrArray": [{"type": "string"}],
    "apiextensions/v1.JSON": [{"a": [1, None]}, "text", 5],
}
SCALAR_VALUES: dict[str, list[Any]] = {
    "string": ["", "a", "ü" * 70],
    "bool": [False, True],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [0, 300, -1, 2**63 - 1, -(2**63)],
    "float64": [0, 0.5, -3],
    "bytes": ["", "AAH+/w=="],
}


def drawn(random: Random, type_: Type, depth: int) -> Any:
    """A random value of a type; objects get sparser the deeper they lie."""
    match type_.form:
        case Form.SCALAR:
            return random.choice(SCALAR_VALUES[type_.scalar])
        case Form.POINTER:
            return drawn(random, type_.of, depth)
        case Form.LIST:
            return [drawn(random, type_.of, depth + 1) for _ in range(random.randint(1, 3))]
        case Form.MAP:
            return {f"k{index}": drawn(random, type_.of, depth + 1) for index in range(random.randint(1, 3))}
        case Form.CUSTOM:
            return random.choice(CUSTOM_VALUES.get(type_.name, [{"any": {"thing": 1}}]))
    members = [each for each, trail in facts.load().struct(type_.name).members() if "TypeMeta" not in trail]
    chosen = [field for field in members if random.random() < 2.0 / (2 + depth)]
    return {field.name: drawn(random, field.type, depth + 1) for field in chosen}


KINDS = [
    ("apps/v1", "Deployment"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Event"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("v1", "DeleteOptions"),
]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(KINDS))
def test_an_object_read_from_protobuf_is_the_one_read_from_json(seed: int, kind: tuple[str, str]) -> None:
    group, _, version = kind[0].rpartition("/")
    fact = facts.load().type_for(group, version, kind[1])
    assert fact is not None
    obj = {"kind": kind[1], "apiVersion": kind[0]} | drawn(Random(seed), fact.type, 0)
    assert decode(encoded(obj)) == coerce(obj, fact).object


def config_map(message: bytes) -> Object:
    return decode(enveloped("v1", "ConfigMap", message))


def test_zero_values_are_kept_behind_pointers_and_dropped_elsewhere() -> None:
    deployment = facts.load().struct("apps/v1.DeploymentSpec")
    numbers = {field.name: field.number for field in deployment.fields}
    spec = tagged(numbers["replicas"], 0) + tagged(numbers["minReadySeconds"], 0)
    read = decode(enveloped("apps/v1", "Deployment", tagged(2, spec)))["spec"]
    assert read["replicas"] == 0
    assert "minReadySeconds" not in read


def test_a_message_that_occurs_twice_is_merged_and_a_scalar_is_replaced() -> None:
    named, labelled = tagged(1, b"a"), tagged(11, tagged(1, b"k") + tagged(2, b"v"))
    read = config_map(tagged(1, named) + tagged(1, labelled) + tagged(1, tagged(1, b"b")))
    assert read["metadata"] == {"name": "b", "labels": {"k": "v"}}


def test_unknown_fields_of_every_wire_type_are_passed_over() -> None:
    group = varint(100 << 3 | 3) + tagged(1, 5) + varint(100 << 3 | 4)
    fixed = varint(101 << 3 | 1) + bytes(8) + varint(102 << 3 | 5) + bytes(4)
    message = tagged(99, 7) + tagged(98, b"x") + group + fixed + tagged(1, tagged(1, b"a"))
    assert config_map(message)["metadata"] == {"name": "a"}


def test_numbers_may_be_packed() -> None:
    groups = facts.load().struct("core/v1.PodSecurityContext")
    number = next(field.number for field in groups.fields if field.name == "supplementalGroups")
    pod = facts.load().struct("core/v1.PodSpec")
    at = next(field.number for field in pod.fields if field.name == "securityContext")
    packed = tagged(number, varint(1) + varint(-2)) + tagged(number, 3)
    read = decode(enveloped("v1", "Pod", tagged(2, tagged(at, packed))))
    assert read["spec"]["securityContext"] == {"supplementalGroups": [1, -2, 3]}


def test_a_map_entry_may_leave_out_its_key_or_its_value() -> None:
    assert config_map(tagged(2, b""))["data"] == {"": ""}
    assert config_map(tagged(2, tagged(1, b"k")))["data"] == {"k": ""}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty data"),
        (b'{"kind":"Pod"}', "does not appear to be a protobuf message"),
        (MAGIC, "empty body"),
        (enveloped("", "", b""), 'no kind "" is registered'),
        (enveloped("v1", "Nothing", b""), 'no kind "Nothing" is registered for version "v1"'),
        (enveloped("v1", "Pod", b"\x0a\x7f"), "unexpected EOF"),
        (enveloped("v1", "Pod", b"\x0a"), "unexpected EOF"),
        (enveloped("v1", "Pod", b"\xff" * 11), "integer overflow"),
        (enveloped("v1", "Pod", b"\x07"), "illegal"),
        (enveloped("v1", "Pod", tagged(1, 5)), "wrong wireType = 0 for field metadata"),
        (enveloped("v1", "ConfigMap", tagged(1, tagged(8, tagged(1, 2**62)))), "time is out of range"),
        (
            enveloped("apps/v1", "ControllerRevision", tagged(2, tagged(1, b"{"))),
            "embedded JSON is malformed",
        ),
        (MAGIC + bytes(protobuf.MAX_BYTES), "larger than"),
        (enveloped("v1", "PodList", tagged(2, b"") * 300_000), "more than 200000 messages"),
    ],
    ids=range(14),
)
def test_bad_bytes_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(body)


def test_endless_nesting_is_refused() -> None:
    number = next(
        f.number for f in facts.load().struct("apiextensions/v1.JSONSchemaProps").fields if f.name == "not"
    )
    schema = b""
    for _ in range(5000):
        schema = tagged(number, schema)
    version = tagged(4, tagged(1, schema))
    with pytest.raises(DecodeError, match="nested more than"):
        decode(
            enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", tagged(2, tagged(7, version)))
        )


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for body in (MAGIC + data, enveloped("v1", "Pod", data)):
        with contextlib.suppress(DecodeError):
            assert isinstance(decode(body), dict)
