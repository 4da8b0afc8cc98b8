"""Rows of `kubectl get`: ours, made of the very object that the real server answers, equal the real ones.

The objects are in `tabled_objects.yaml`, at least one of every kind that we serve; custom resources are
compared under columns with all sorts of JSONPaths. Nothing but the API server runs, so states stay as set.
Ages are compared too: ours are made for the moments before and after the request.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.plain import Plain
from harness.real import RealControlPlane
from podium.apiserver import builtin, customresources, tables
from podium.apiserver.registry import Resource

pytestmark = pytest.mark.real

Object = dict[str, Any]
NAMESPACE = "tables"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MERGE = {"Content-Type": "application/merge-patch+json"}
RESOURCES = {(r.api_version, r.kind): r for r in builtin.resources() if "list" in r.verbs}
DOCUMENTS: list[Object] = list(
    yaml.safe_load_all((Path(__file__).parent / "tabled_objects.yaml").read_text())
)


@pytest.fixture(scope="module")
def real() -> Iterator[Plain]:
    # The default admission would ask for a ServiceAccount, which only the controller manager makes.
    flags = ["--disable-admission-plugins=ServiceAccount,CertificateApproval"]
    with RealControlPlane(controller_manager=False, apiserver_flags=flags) as plane:
        plain = Plain(plane.kubeconfig)
        _create(plain, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield plain


def test_the_objects_cover_every_kind_that_we_serve() -> None:
    covered = {(document["apiVersion"], document["kind"]) for document in DOCUMENTS}
    # A ComponentStatus cannot be made, and a definition is made below.
    made_otherwise = {("v1", "ComponentStatus"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")}
    assert covered | made_otherwise == set(RESOURCES)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: f"{d['kind']}-{d['metadata']['name']}")
def test_the_row_of_a_built_in_object_is_the_real_one(real: Plain, document: Object) -> None:
    resource = RESOURCES[document["apiVersion"], document["kind"]]
    body = _filled_in(document)
    path = f"{_collection(resource)}/{body['metadata']['name']}"
    annotations = body["metadata"].get("annotations") or {}
    if "then" in annotations:
        body["metadata"]["finalizers"] = ["example.com/keep"]
    _create(real, _collection(resource), body)
    if "approve" in annotations:
        _approve(real, path)
    if "status" in body:
        _succeeds(real, "PATCH", f"{path}/status", {"status": body["status"]}, MERGE)
    if "then" in annotations:
        _succeeds(real, "DELETE", path, None, {})
    _compare(real, resource, path)


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("v1", "Namespace", "default"),
        ("v1", "ComponentStatus", "etcd-0"),
        ("v1", "Service", "kubernetes"),
        ("apiregistration.k8s.io/v1", "APIService", "v1.apps"),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "probes"),
        ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "exempt"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "cluster-admin"),
        ("scheduling.k8s.io/v1", "PriorityClass", "system-node-critical"),
    ],
)
def test_the_row_of_an_object_that_a_new_cluster_has_is_the_real_one(
    real: Plain, api_version: str, kind: str, name: str
) -> None:
    resource = RESOURCES[api_version, kind]
    _compare(real, resource, f"{_collection(resource, 'default')}/{name}")


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Service", "LimitRange"])
def test_the_row_of_a_bookmark_is_the_real_one(real: Plain, kind: str) -> None:
    resource = RESOURCES["v1", kind]
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    path = f"{_collection(resource, 'default')}?{query}&timeoutSeconds=1"
    lines = real.request("GET", path, headers=TABLE).body.splitlines()
    (bookmark,) = [event for event in map(json.loads, lines) if event["type"] == "BOOKMARK"]
    (row,) = bookmark["object"]["rows"]
    assert tables.cells(resource, row["object"], datetime.now(UTC)) == row["cells"]


# --- custom resources -----------------------------------------------------------------------------------

SPEC: Object = {
    "text": "hello",
    "empty": "",
    "count": 3,
    "big": 9007199254740993,
    "ratio": 0.5,
    "whole": 2.0,
    "tiny": 1.5e-7,
    "huge": 1e30,
    "yes": True,
    "no": False,
    "null": None,
    "time": "ago(5000)",
    "zoned": "2020-01-02T03:04:05.678+01:00",
    "future": "2120-01-02T03:04:05Z",
    "day": "2020-01-02",
    "names": ["a", "b", "c"],
    "matrix": [[1, 2], [3, 4]],
    "markup": {"b": "<&>", "a": [1, None, True]},
    "keys": {"app.kubernetes.io/name": "dotted", "a b": "spaced", "x-y": "dashed", "a": {"b": "nested"}},
    "conditions": [
        {"type": "Ready", "status": "True", "weight": 1, "on": True, "share": 0.5},
        {"type": "Synced", "status": "False", "weight": 2, "on": False, "share": 1.5, "extra": ["x"]},
        {"type": "it's", "status": "Unknown", "weight": 3},
    ],
}
PATHS = (Path(__file__).parent / "column_paths.txt").read_text().splitlines()
TYPES = ["string", "integer", "number", "boolean", "date"]


@pytest.mark.parametrize("type_", TYPES)
def test_the_columns_of_a_custom_resource_are_evaluated_as_the_real_server_does(
    real: Plain, type_: str
) -> None:
    # What Go makes of a float too large for an integer depends on the machine.
    paths = [path for path in PATHS if (type_, path) != ("integer", ".spec.huge")]
    columns: list[Object] = [
        {"name": f"C{i}", "type": type_, "jsonPath": path} for i, path in enumerate(paths)
    ]
    columns[0] |= {"description": "A text", "priority": 3, "format": "password"}
    _compare_custom(real, f"{type_}s", columns)


def test_a_custom_resource_without_columns_shows_its_age(real: Plain) -> None:
    _compare_custom(real, "plains", [])


@pytest.mark.parametrize(
    ("plural", "path"),
    [
        ("doublequoted", '.spec["text"]'),
        ("named", ".spec.names[x]"),
        ("unclosed", ".spec.names["),
        ("dotty", ".spec....a"),
        ("strange", ".spec %"),
    ],
)
def test_columns_end_before_one_that_cannot_be_read(real: Plain, plural: str, path: str) -> None:
    columns = [
        {"name": name, "type": "string", "jsonPath": json_path}
        for name, json_path in [("a", ".kind"), ("b", path), ("c", ".kind")]
    ]
    _compare_custom(real, plural, columns)


def _compare_custom(real: Plain, plural: str, columns: list[Object]) -> None:
    definition: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                    **({"additionalPrinterColumns": columns} if columns else {}),
                }
            ],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    _create(real, definitions, definition)
    established = _established(real, f"{definitions}/{plural}.example.com")
    body = _filled_in(
        {
            "apiVersion": "example.com/v1",
            "kind": plural.capitalize(),
            "metadata": {"name": "one", "labels": {"team": "blue"}, "annotations": {"podium.dev/x": "y"}},
            "spec": SPEC,
        }
    )
    _create(real, f"/apis/example.com/v1/{plural}", body, patiently=True)
    (resource,) = customresources.resources(established, changed_at=1)
    _compare(real, resource, f"/apis/example.com/v1/{plural}/one")
    _compare(
        real,
        RESOURCES["apiextensions.k8s.io/v1", "CustomResourceDefinition"],
        f"{definitions}/{plural}.example.com",
    )


def _established(real: Plain, path: str) -> Object:
    for _ in range(500):
        definition: Object = real.request("GET", path).json()
        conditions = {c["type"]: c["status"] for c in definition["status"].get("conditions") or ()}
        if conditions.get("Established") == "True":
            return definition
    raise AssertionError(f"{path} is not established")


# --- comparing ------------------------------------------------------------------------------------------


def _compare(real: Plain, resource: Resource, path: str) -> None:
    before = datetime.now(UTC)
    answer = real.request("GET", f"{path}?includeObject=Object", headers=TABLE)
    after = datetime.now(UTC)
    assert answer.status == 200, answer.body.decode()
    table = answer.json()
    (row,) = table["rows"]

    assert _shown(tables.columns(resource)) == _shown(table["columnDefinitions"])
    ours = [tables.cells(resource, row["object"], now) for now in (before, after)]
    assert row["cells"] in _either(ours, row["cells"]), f"ours: {ours[0]}"
    for own, real_cell in zip(ours[0], row["cells"], strict=True):
        assert type(own) is type(real_cell), (own, real_cell)
    assert tables.row_conditions(resource, row["object"]) == row.get("conditions", [])


def _shown(columns: list[Object]) -> list[tuple[Any, ...]]:
    return [(c["name"], c["type"], c["format"], c["priority"]) for c in columns]


def _either(ours: list[list[Any]], real: list[Any]) -> list[list[Any]]:
    """Ours, each cell from before or after the request, whichever agrees."""
    before, after = ours
    mixed = [b if b == cell else a for b, a, cell in zip(before, after, real, strict=True)]
    return [before, after, mixed]


# --- making ---------------------------------------------------------------------------------------------


def _collection(resource: Resource, namespace: str = NAMESPACE) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return (
        f"{prefix}/namespaces/{namespace}/{resource.plural}"
        if resource.namespaced
        else f"{prefix}/{resource.plural}"
    )


def _create(real: Plain, path: str, body: Object, *, patiently: bool = False) -> None:
    for _ in range(500 if patiently else 1):
        answer = real.request("POST", path, body)
        if answer.status != 404:  # which an established resource may still be for a moment
            break
    assert answer.status in (201, 409), answer.body.decode()


def _succeeds(real: Plain, method: str, path: str, body: Object | None, headers: dict[str, str]) -> None:
    answer = real.request(method, path, body, headers=headers)
    assert answer.status in (200, 202), answer.body.decode()


def _approve(real: Plain, path: str) -> None:
    condition = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
    _succeeds(real, "PATCH", f"{path}/approval", {"status": {"conditions": [condition]}}, MERGE)


def _filled_in(value: Any) -> Any:
    """A copy with its placeholders replaced: times, the namespace, a certificate request."""
    if isinstance(value, dict):
        return {key: _filled_in(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled_in(item) for item in value]
    if isinstance(value, str) and (match := re.fullmatch(r"(ago|micro)\((\d+)\)", value)):
        when = datetime.now(UTC) - timedelta(seconds=int(match[2]))
        return when.strftime("%Y-%m-%dT%H:%M:%SZ" if match[1] == "ago" else "%Y-%m-%dT%H:%M:%S.%fZ")
    return (
        {"NAMESPACE": NAMESPACE, "REQUEST": _REQUEST, "CERTIFICATE": _CERTIFICATE}.get(value, value)
        if isinstance(value, str)
        else value
    )


def _signed() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return (
        base64.b64encode(request.public_bytes(pem)).decode(),
        base64.b64encode(certificate.public_bytes(pem)).decode(),
    )


_REQUEST, _CERTIFICATE = _signed()
