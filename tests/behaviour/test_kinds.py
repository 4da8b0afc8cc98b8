"""Built-in kinds: what the server fills in and what it refuses."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from behaviour.scratch import Scratch, named
from behaviour.subjects import Actor, grant, rule, subject
from behaviour.support import causes, eventually, refusal
from harness.kubectl import Kubectl
from harness.plain import Plain

Object = dict[str, Any]

ROWS: dict[str, Object] = yaml.safe_load((Path(__file__).parent / "kinds.yaml").read_text())
# What every Pod template gets, besides its restart policy.
TEMPLATE = {
    "containers[0].imagePullPolicy": "Always",
    "containers[0].resources": {},
    "containers[0].terminationMessagePath": "/dev/termination-log",
    "containers[0].terminationMessagePolicy": "File",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
BY_STORE = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "namespace")
# What differs from one object to the next, and how the table shows it.
RANDOM = {
    r"kube-api-access-[a-z0-9]{5}": "kube-api-access-<random>",
    r"X509SHA256=[0-9a-f]{64}": "X509SHA256=<hash>",
    r'"username": "[^"]*"': '"username": "<me>"',
    r'"lastPhaseTransitionTime": "[^"]*"': '"lastPhaseTransitionTime": "<now>"',
}


@cache
def certificate_request(user: str = "ann") -> str:
    """A certificate request, as the API wants it."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, user)])
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


def filled_in(row: Any, namespace: str) -> Any:
    """A part of the table with the namespace and a certificate request in place."""
    text = json.dumps(row).replace("<ns>", namespace).replace("<csr>", certificate_request())
    return json.loads(text)


def added(sent: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Where an answer differs from what was sent: the topmost path of each difference, and the new value."""
    if isinstance(sent, dict) and isinstance(got, dict):
        for key in sorted(sent.keys() | got.keys()):
            below = f"{path}.{key}" if path else key
            if key in sent and key in got:
                yield from added(sent[key], got[key], below)
            else:
                yield below, got.get(key)
    elif isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        for i, (before, after) in enumerate(zip(sent, got, strict=True)):
            yield from added(before, after, f"{path}[{i}]")
    elif sent != got:
        yield path, got


def additions(sent: Object, got: Object) -> Object:
    """What the server added, without what differs from run to run."""
    text = json.dumps(got).replace(got["metadata"]["uid"], "<uid>")
    for pattern, shown in RANDOM.items():
        text = re.sub(pattern, shown, text)
    got = json.loads(text)
    got["metadata"] = {key: value for key, value in got["metadata"].items() if key not in BY_STORE}
    return dict(added(sent, got))


@pytest.mark.parametrize("kind", ROWS)
def test_a_minimal_object_gets_its_defaults(scratch: Scratch, kind: str) -> None:
    row = filled_in(ROWS[kind], scratch.namespace)
    answer = scratch.attempt(row["object"], "?dryRun=All")
    assert answer.status == 201, answer.body.decode()
    expected = row["added"]
    if "template" in row:
        expected |= {f"{row['template']}.{key}": value for key, value in TEMPLATE.items()}
    assert additions(row["object"], answer.json()) == expected


@pytest.mark.parametrize("kind", ROWS)
def test_an_invalid_object_is_refused_with_its_causes(scratch: Scratch, kind: str) -> None:
    row = filled_in(ROWS[kind], scratch.namespace)
    sent = {"apiVersion": row["object"]["apiVersion"], "kind": row["object"]["kind"], **row["invalid"]}
    answer = scratch.attempt(sent, "?dryRun=All")
    assert (answer.status, answer.json()["reason"]) == (422, "Invalid")
    assert sorted(map(list, causes(answer))) == sorted(row["causes"])


IMMUTABLE = "field is immutable"
OF_STATEFUL_SETS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
OF_CLAIMS = "spec is immutable after creation except resources.requests and volumeAttributesClassName"


@pytest.mark.parametrize(
    ("kind", "change", "field", "text"),
    [
        ("Deployment", {"spec": {"selector": {"matchLabels": {"app": "b"}}}}, "spec.selector", IMMUTABLE),
        ("ReplicaSet", {"spec": {"selector": {"matchLabels": {"app": "b"}}}}, "spec.selector", IMMUTABLE),
        ("DaemonSet", {"spec": {"selector": {"matchLabels": {"app": "b"}}}}, "spec.selector", IMMUTABLE),
        ("StatefulSet", {"spec": {"serviceName": "other"}}, "spec", OF_STATEFUL_SETS),
        ("Job", {"spec": {"completions": 7}}, "spec.completions", IMMUTABLE),
        ("StorageClass", {"provisioner": "q.example"}, "provisioner", IMMUTABLE),
        ("StorageClass", {"parameters": {"a": "b"}}, "parameters", IMMUTABLE),
        ("PriorityClass", {"value": 7}, "value", "may not be changed in an update."),
        ("RuntimeClass", {"handler": "i"}, "handler", IMMUTABLE),
        ("PersistentVolumeClaim", {"spec": {"accessModes": ["ReadOnlyMany"]}}, "spec", OF_CLAIMS),
        ("EndpointSlice", {"addressType": "IPv6"}, "addressType", IMMUTABLE),
        ("Secret", {"type": "other"}, "type", IMMUTABLE),
        ("CSIDriver", {"spec": {"attachRequired": False}}, "spec.attachedRequired", IMMUTABLE),
        ("IngressClass", {"spec": {"controller": "b.example/c"}}, "spec.controller", IMMUTABLE),
    ],
)
def test_what_is_immutable_cannot_change(
    scratch: Scratch, kind: str, change: Object, field: str, text: str
) -> None:
    sent = filled_in(ROWS[kind]["object"], scratch.namespace)
    sent["metadata"]["name"] = f"x-{scratch.namespace[-12:]}"
    scratch.create(sent)
    answer = scratch.patch(sent, change)
    assert answer.status == 422
    assert [at for at, _, message in causes(answer) if text in message] == [field]


def test_a_secret_takes_text_and_keeps_it_encoded(scratch: Scratch) -> None:
    secret = named("Secret", "v1", "s", data={"a": "MQ==", "b": "Mg=="}, stringData={"b": "3", "c": "4"})
    created = scratch.create(secret)
    assert created["data"] == {"a": "MQ==", "b": "Mw==", "c": "NA=="}
    assert "stringData" not in created
    patched = scratch.patch(secret, {"stringData": {"a": "5"}}).json()
    assert patched["data"] == {"a": "NQ==", "b": "Mw==", "c": "NA=="}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_is_marked_immutable_cannot_change_or_be_unmarked(scratch: Scratch, kind: str) -> None:
    sealed = named(kind, "v1", "sealed", data={"a": "MQ=="}, immutable=True)
    scratch.create(sealed)
    text = "Forbidden: field is immutable when `immutable` is set"
    answer = scratch.patch(sealed, {"data": {"a": "Mg=="}})
    assert causes(answer) == [("data", "FieldValueForbidden", text)]
    answer = scratch.patch(sealed, {"immutable": None})
    assert causes(answer) == [("immutable", "FieldValueForbidden", text)]
    assert scratch.patch(sealed, {"metadata": {"labels": {"a": "b"}}}).status == 200


SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def autoscaler(version: str, **spec: Any) -> Object:
    wanted = {"maxReplicas": 3, "scaleTargetRef": SCALED, **spec}
    return named("HorizontalPodAutoscaler", f"autoscaling/{version}", "h", spec=wanted)


def test_an_autoscaler_of_v1_is_one_of_v2(scratch: Scratch) -> None:
    scratch.create(autoscaler("v1", targetCPUUtilizationPercentage=50))
    newer = scratch.read(autoscaler("v2"))
    target = {"type": "Utilization", "averageUtilization": 50}
    assert newer["apiVersion"] == "autoscaling/v2"
    assert newer["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def test_what_only_v2_knows_of_an_autoscaler_survives_v1(scratch: Scratch) -> None:
    target = {"type": "AverageValue", "averageValue": "1Gi"}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 7}}
    before = scratch.create(autoscaler("v2", metrics=[memory], behavior=behavior))
    older = scratch.read(autoscaler("v1"))
    assert "targetCPUUtilizationPercentage" not in older["spec"]
    annotations = older["metadata"]["annotations"]
    assert (
        json.loads(annotations["autoscaling.alpha.kubernetes.io/metrics"])[0]["resource"]["name"] == "memory"
    )
    older["spec"]["maxReplicas"] = 4
    assert scratch.replace(older).status == 200
    after = scratch.read(autoscaler("v2"))
    assert after["spec"] == before["spec"] | {"maxReplicas": 4}
    assert "annotations" not in after["metadata"]


def test_an_event_of_one_group_is_there_in_the_other(scratch: Scratch) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": scratch.namespace}
    event = named("Event", "v1", "e", involvedObject=about, reason="R", message="M", type="Normal", count=2)
    event |= {"source": {"component": "c", "host": "h"}, "firstTimestamp": "2026-01-01T00:00:00Z"}
    event["lastTimestamp"] = "2026-01-02T00:00:00Z"
    scratch.create(event)
    newer = scratch.read(named("Event", "events.k8s.io/v1", "e"))
    assert newer["regarding"] == about
    assert (newer["reason"], newer["note"], newer["type"]) == ("R", "M", "Normal")
    assert newer["deprecatedSource"] == {"component": "c", "host": "h"}
    assert newer["deprecatedCount"] == 2
    assert newer["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    scratch.delete(newer)
    assert scratch.plain.request("GET", scratch.path(event, "e")).status == 404


def signing_request(name: str, signer: str = "a.example/s") -> Object:
    spec = {"request": certificate_request(), "signerName": signer, "usages": ["client auth"]}
    return named("CertificateSigningRequest", "certificates.k8s.io/v1", name, spec=spec)


def test_a_certificate_request_names_its_requester_whatever_it_says(scratch: Scratch) -> None:
    request = signing_request(f"{scratch.namespace}-r")
    request["spec"] |= {"username": "somebody", "groups": ["system:masters"], "uid": "7"}
    path, headers = scratch.path(request), {"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}
    answer = scratch.plain.request("POST", path, request, headers=headers)
    scratch.delete(request)
    spec = answer.json()["spec"]
    assert spec["username"] == "ann"
    assert spec["groups"] == ["system:masters", "system:authenticated"]
    assert "uid" not in spec


def test_a_certificate_request_is_approved_through_its_subresource_only(scratch: Scratch) -> None:
    request = signing_request(f"{scratch.namespace}-r")
    created = scratch.create(request)
    condition = {"type": "Approved", "status": "True", "reason": "Fine", "message": "m"}
    created["status"] = {"conditions": [condition]}
    assert "conditions" not in scratch.replace(created).json()["status"]
    created = scratch.read(request)
    created["status"] = {"conditions": [condition]}
    path = f"{scratch.path(request, created['metadata']['name'])}/approval"
    approved = scratch.plain.request("PUT", path, created).json()
    [found] = approved["status"]["conditions"]
    assert found | condition == found
    assert found["lastUpdateTime"]
    approved["status"]["conditions"].append(condition | {"type": "Denied"})
    refused = scratch.plain.request("PUT", path, approved)
    text = 'Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    assert causes(refused) == [("status.conditions", "FieldValueInvalid", text)]


@pytest.mark.kubectl
def test_kubectl_approves_a_certificate_request(kubectl: Kubectl, scratch: Scratch) -> None:
    name = scratch.create(signing_request(f"{scratch.namespace}-r"))["metadata"]["name"]
    assert kubectl.run("certificate", "approve", name).stdout.strip().endswith("approved")
    [condition] = kubectl.json("get", "csr", name)["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "KubectlApprove")
    assert "Approved" in kubectl.run("get", "csr", name).stdout


def test_approving_needs_a_permission_for_the_signer(scratch: Scratch) -> None:
    who = subject(f"{scratch.namespace}-pat")
    update = rule("update", "certificatesigningrequests/approval", "certificates.k8s.io")
    grant(scratch, who, update, cluster_wide=True)
    created = scratch.create(signing_request(f"{scratch.namespace}-r"))
    created["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "R"}]}
    path = f"{scratch.path(created, created['metadata']['name'])}/approval"
    pat = Actor(scratch.plain, who["name"])
    code, _, message = refusal(pat.request("PUT", path, created))
    assert code == 403
    assert message.endswith('user not permitted to approve requests with signerName "a.example/s"')
    approve = rule("approve", "signers", "certificates.k8s.io", names=["a.example/*"])
    grant(scratch, who, approve, cluster_wide=True)
    assert pat.request("PUT", path, created).status == 200


def test_signing_needs_a_permission_for_the_signer(scratch: Scratch) -> None:
    who = subject(f"{scratch.namespace}-pat")
    update = rule("patch", "certificatesigningrequests/status", "certificates.k8s.io")
    grant(scratch, who, update, cluster_wide=True)
    created = scratch.create(signing_request(f"{scratch.namespace}-r"))
    path = f"{scratch.path(created, created['metadata']['name'])}/status"
    kind = {"Content-Type": "application/merge-patch+json"}
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "R"}]}}
    pat = Actor(scratch.plain, who["name"])
    code, _, message = refusal(pat.request("PATCH", path, failed, headers=kind))
    assert code == 403
    assert message.endswith('user not permitted to sign requests with signerName "a.example/s"')
    grant(
        scratch, who, rule("sign", "signers", "certificates.k8s.io", names=["a.example/s"]), cluster_wide=True
    )
    assert pat.request("PATCH", path, failed, headers=kind).status == 200


def test_a_new_node_is_tainted_until_it_is_ready(scratch: Scratch) -> None:
    unready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    other = {"key": "a", "effect": "NoExecute"}
    node = named("Node", "v1", f"{scratch.namespace}-n", spec={"taints": [other]})
    assert scratch.create(node, "?dryRun=All")["spec"]["taints"] == [other, unready]


def claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return named("PersistentVolumeClaim", "v1", name, spec=spec)


def test_a_claim_in_use_is_kept_until_its_pod_is_gone(scratch: Scratch) -> None:
    scratch.create(claim("data"))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    pod = named("Pod", "v1", "p", spec={"containers": [{"name": "c", "image": "x"}], "volumes": [volume]})
    # Only a Pod on a node counts as a user.
    pod["spec"]["nodeName"] = "somewhere"
    scratch.create(pod)
    scratch.delete(claim("data"))
    kept = scratch.read(claim("data"))["metadata"]
    assert kept["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert kept["deletionTimestamp"]
    scratch.delete(pod)
    path = scratch.path(claim("data"), "data")
    eventually(lambda: scratch.plain.request("GET", path).status == 404)


def test_a_claim_nobody_uses_goes_at_once(scratch: Scratch) -> None:
    scratch.create(claim("data"))
    scratch.delete(claim("data"))
    path = scratch.path(claim("data"), "data")
    eventually(lambda: scratch.plain.request("GET", path).status == 404)


def test_a_claim_gets_the_default_storage_class(scratch: Scratch) -> None:
    marked = named("StorageClass", "storage.k8s.io/v1", f"{scratch.namespace}-s", provisioner="p.example")
    marked["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    scratch.create(marked)

    def with_class() -> bool:
        made = scratch.create(claim("c"), "?dryRun=All")
        return bool(made["spec"].get("storageClassName") == marked["metadata"]["name"])

    eventually(with_class)
    chosen = claim("d")
    chosen["spec"]["storageClassName"] = ""
    assert scratch.create(chosen, "?dryRun=All")["spec"]["storageClassName"] == ""


def test_a_namespace_starts_with_an_account_and_the_certificate_authority(
    plain: Plain, namespace: str
) -> None:
    authority = plain.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt").json()
    assert authority["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    assert plain.request("DELETE", path).status == 200
    eventually(lambda: plain.request("GET", path).status == 200)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/kube-system",
        "/api/v1/namespaces/kube-public",
        "/api/v1/namespaces/kube-node-lease",
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    ],
)
def test_a_cluster_starts_with_what_clients_rely_on(plain: Plain, path: str) -> None:
    assert plain.request("GET", path).status == 200


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_cannot_be_deleted(plain: Plain, name: str) -> None:
    answer = plain.request("DELETE", f"/api/v1/namespaces/{name}")
    message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert refusal(answer) == (403, "Forbidden", message)
