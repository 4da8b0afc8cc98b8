"""Protobuf: request bodies as typed Go clients send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest

from behaviour.scratch import Scratch, named
from behaviour.support import refusal
from harness.kubectl import Kubectl
from harness.plain import Answer, Plain

Object = dict[str, Any]
# A message: numbers of fields to values. A list repeats a field, a dict with text keys is a map.
Message: TypeAlias = Mapping[int, Any]
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}
MAGIC = b"k8s\x00"


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: Any) -> bytes:
    """One field of a message; repeated ones one after the other."""
    if isinstance(value, list):
        return b"".join(field(number, each) for each in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, Mapping) and any(isinstance(key, str) for key in value):
        return field(number, [{1: key, 2: text} for key, text in value.items()])
    if isinstance(value, Mapping):
        value = message(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(fields: Message) -> bytes:
    return b"".join(field(number, value) for number, value in fields.items())


def envelope(api_version: str, kind: str, fields: Message | bytes) -> bytes:
    """An object as it goes over the wire."""
    raw = fields if isinstance(fields, bytes) else message(fields)
    return MAGIC + message({1: {1: api_version, 2: kind}, 2: raw, 3: "", 4: ""})


def config_map(name: str, data: Mapping[str, str], **metadata: str) -> bytes:
    numbers = {"generate_name": 2, "namespace": 3, "uid": 5, "resource_version": 6}
    meta = {1: name} | {numbers[key]: value for key, value in metadata.items()}
    return envelope("v1", "ConfigMap", {1: meta, 2: data or []})


def post(server: Plain, path: str, body: bytes) -> Answer:
    return server.request("POST", path, body, headers=PROTOBUF)


@pytest.fixture
def config_maps(namespace: str) -> str:
    """The path of the test's ConfigMaps."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def test_an_object_can_be_created_from_protobuf(plain: Plain, config_maps: str) -> None:
    answer = post(plain, config_maps, config_map("c", {"a": "ö", "b": ""}))
    assert answer.status == 201
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["data"] == {"a": "ö", "b": ""}


def test_an_object_can_be_replaced_from_protobuf(plain: Plain, config_maps: str) -> None:
    created = post(plain, config_maps, config_map("c", {"a": "b"})).json()["metadata"]
    body = config_map("c", {"a": "c"}, uid=created["uid"], resource_version=created["resourceVersion"])
    answer = plain.request("PUT", f"{config_maps}/c", body, headers=PROTOBUF)
    assert (answer.status, answer.json()["data"]) == (200, {"a": "c"})
    stale = plain.request("PUT", f"{config_maps}/c", body, headers=PROTOBUF)
    assert refusal(stale)[:2] == (409, "Conflict")


def test_nested_messages_and_numbers_arrive(plain: Plain, namespace: str) -> None:
    container: Message = {1: "c", 2: "x", 6: [{1: "web", 3: 8080}]}
    template: Message = {1: {11: {"app": "a"}}, 2: {2: [container]}}
    spec: Message = {1: 3, 2: {1: {"app": "a"}}, 3: template, 5: 0}
    body = envelope("apps/v1", "Deployment", {1: {1: "d"}, 2: spec})
    found = post(plain, f"/apis/apps/v1/namespaces/{namespace}/deployments", body).json()["spec"]
    assert found["replicas"] == 3
    assert found["selector"] == {"matchLabels": {"app": "a"}}
    [container_found] = found["template"]["spec"]["containers"]
    assert container_found["ports"] == [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]


def test_bytes_and_quantities_arrive(plain: Plain, namespace: str) -> None:
    body = envelope("v1", "Secret", {1: {1: "s"}, 2: {1: "k", 2: b"\x00\xff"}, 3: "Opaque"})
    assert post(plain, f"/api/v1/namespaces/{namespace}/secrets", body).json()["data"] == {"k": "AP8="}
    quota = envelope("v1", "ResourceQuota", {1: {1: "q"}, 2: {1: {1: "cpu", 2: {1: "1500m"}}}})
    found = post(plain, f"/api/v1/namespaces/{namespace}/resourcequotas", quota).json()
    assert found["spec"] == {"hard": {"cpu": "1500m"}}


def test_a_name_can_be_generated(plain: Plain, config_maps: str) -> None:
    answer = post(plain, config_maps, config_map("", {}, generate_name="c-"))
    assert answer.json()["metadata"]["name"].startswith("c-")


def test_an_invalid_object_gets_the_same_causes(plain: Plain, config_maps: str) -> None:
    answer = post(plain, config_maps, config_map("C", {}))
    assert refusal(answer)[:2] == (422, "Invalid")
    assert answer.json()["details"]["causes"][0]["field"] == "metadata.name"


def test_delete_options_can_be_protobuf(plain: Plain, config_maps: str) -> None:
    uid = post(plain, config_maps, config_map("c", {})).json()["metadata"]["uid"]
    wrong = envelope("v1", "DeleteOptions", {2: {1: "another"}})
    assert refusal(plain.request("DELETE", f"{config_maps}/c", wrong, headers=PROTOBUF))[:2] == (
        409,
        "Conflict",
    )
    dry = envelope("v1", "DeleteOptions", {5: ["All"]})
    assert plain.request("DELETE", f"{config_maps}/c", dry, headers=PROTOBUF).status == 200
    right = envelope("v1", "DeleteOptions", {1: 0, 2: {1: uid}, 4: "Background"})
    assert plain.request("DELETE", f"{config_maps}/c", right, headers=PROTOBUF).status == 200
    assert plain.request("GET", f"{config_maps}/c").status == 404


def test_delete_options_may_come_in_the_version_of_the_group(scratch: Scratch) -> None:
    lease = named("Lease", "coordination.k8s.io/v1", "l")
    scratch.create(lease)
    options = envelope("coordination.k8s.io/v1", "DeleteOptions", {4: "Background"})
    answer = scratch.plain.request("DELETE", scratch.path(lease, "l"), options, headers=PROTOBUF)
    assert answer.status == 200


def test_a_review_can_be_protobuf(plain: Plain) -> None:
    attributes: Message = {2: "get", 5: "pods"}
    body = envelope(
        "authorization.k8s.io/v1", "SelfSubjectAccessReview", {1: {}, 2: {1: attributes}, 3: {1: 0}}
    )
    answer = post(plain, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer.status == 201
    assert answer.json()["status"]["allowed"]
    assert answer.json()["spec"] == {"resourceAttributes": {"verb": "get", "resource": "pods"}}


def test_a_token_request_can_be_protobuf(plain: Plain, namespace: str) -> None:
    spec: Message = {1: ["a"], 4: 700}
    body = envelope("authentication.k8s.io/v1", "TokenRequest", {1: {}, 2: spec, 3: {}})
    answer = post(plain, f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token", body)
    assert answer.status == 201
    assert answer.json()["spec"]["expirationSeconds"] == 700
    assert answer.json()["spec"]["audiences"] == ["a"]


def test_fields_of_a_newer_client_are_ignored(plain: Plain, config_maps: str) -> None:
    body = envelope("v1", "ConfigMap", {1: {1: "c", 99: "new"}, 2: {"a": "b"}, 77: {1: "x"}, 78: 5})
    assert post(plain, config_maps, body).json()["data"] == {"a": "b"}


def test_the_last_of_a_field_sent_twice_counts(plain: Plain, config_maps: str) -> None:
    body = envelope("v1", "ConfigMap", message({1: {1: "first"}, 4: 0}) + message({1: {1: "second"}, 4: 1}))
    found = post(plain, config_maps, body).json()
    assert (found["metadata"]["name"], found["immutable"]) == ("second", True)


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", f"{UNRECOGNIZED}empty data (<empty>)"),
        (b"nonsense", f"{UNRECOGNIZED}{NO_PREFIX} (6e6f6e73656e7365)"),
        (b"{}", f"{UNRECOGNIZED}{NO_PREFIX} ({{}})"),
        (MAGIC, f"{UNRECOGNIZED}empty body (6b387300)"),
        (MAGIC + b"\xff\xff\xff", f"{UNRECOGNIZED}unexpected EOF (6b387300ffffff)"),
    ],
)
def test_a_body_that_is_not_protobuf_is_refused(
    plain: Plain, config_maps: str, body: bytes, message: str
) -> None:
    assert refusal(post(plain, config_maps, body)) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("version", "kind", "content", "problem"),
    [
        ("v1", "ConfigMap", b"\x0a\xff", "unexpected EOF"),
        ("v1", "ConfigMap", b"\x08\x01", "proto: wrong wireType = 0 for field "),
        ("v1", "Nonsense", b"", 'no kind "Nonsense" is registered for version "v1" in scheme '),
        ("v7", "ConfigMap", b"", 'no kind "ConfigMap" is registered for version "v7" in scheme '),
        ("v1", "Secret", b"", "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    ],
)
def test_an_envelope_with_the_wrong_content_is_refused(
    plain: Plain, config_maps: str, version: str, kind: str, content: bytes, problem: str
) -> None:
    code, reason, text = refusal(post(plain, config_maps, envelope(version, kind, content)))
    assert (code, reason) == (400, "BadRequest")
    assert text.startswith(f'{kind} in version "{version}" cannot be handled as a ConfigMap: {problem}')


def test_an_envelope_that_does_not_name_its_kind_holds_that_of_the_path(
    plain: Plain, config_maps: str
) -> None:
    answer = post(plain, config_maps, envelope("", "", {1: {1: "c"}, 2: {"a": "b"}}))
    assert (answer.status, answer.json()["data"]) == (201, {"a": "b"})


@pytest.mark.kubectl
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("namespace", "namespace"),
        ("configmap x --from-literal=a=b", "configmap"),
        ("secret generic x --from-literal=a=b", "secret"),
        ("secret docker-registry x --docker-username=u --docker-password=p", "secret"),
        ("serviceaccount x", "serviceaccount"),
        ("deployment x --image=i --replicas=2", "deployment"),
        ("job x --image=i", "job"),
        ("cronjob x --image=i --schedule=@hourly", "cronjob"),
        ("service clusterip x --tcp=80:8080", "service"),
        ("service nodeport x --tcp=80", "service"),
        ("service externalname x --external-name=a.example", "service"),
        ("ingress x --rule=a.example/=s:80", "ingress"),
        ("quota x --hard=pods=2,requests.cpu=1", "resourcequota"),
        ("poddisruptionbudget x --selector=a=b --min-available=50%", "pdb"),
        ("role x --verb=get --resource=pods", "role"),
        ("rolebinding x --clusterrole=view --user=u --serviceaccount=n:s", "rolebinding"),
    ],
)
def test_kubectl_creates(kubectl: Kubectl, scratch: Scratch, command: str, kind: str) -> None:
    if kind == "namespace":
        command = f"namespace {scratch.namespace}-x"
    kubectl.run("create", *command.split())
    name = f"{scratch.namespace}-x" if kind == "namespace" else "x"
    assert kubectl.json("get", kind, name)["metadata"]["name"] == name
    kubectl.run("delete", kind, name, "--wait=false")
