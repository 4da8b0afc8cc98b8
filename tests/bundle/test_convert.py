"""A bundle turned into objects: which ones, in which order, and what they say."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from podium.bundle.convert import (
    Certificates,
    CertManager,
    Issued,
    Provided,
    ServiceCA,
    Serving,
    convert,
    servings,
    supported_install_modes,
)
from podium.bundle.model import PACKAGE_KEY, Bundle

Object = dict[str, Any]

ALL = [{"type": "AllNamespaces", "supported": True}]
EVERY_MODE = [
    {"type": mode, "supported": True}
    for mode in ("AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace")
]
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def deployment(name: str = "manager", pod: Object | None = None, **template: Any) -> Object:
    pod = pod or {"containers": [{"name": "manager", "image": "i"}]}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": {"spec": pod, **template}}
    return {"name": name, "spec": spec}


def bundle(
    *,
    deployments: list[Object] | None = None,
    permissions: list[Object] | None = None,
    cluster_permissions: list[Object] | None = None,
    webhooks: list[Object] | None = None,
    modes: list[Object] | None = None,
    annotations: dict[str, str] | None = None,
    crds: tuple[Object, ...] = (),
    others: tuple[Object, ...] = (),
    files: dict[str, bytes] | None = None,
) -> Bundle:
    strategy = {
        "deployments": [deployment()] if deployments is None else deployments,
        "permissions": permissions,
        "clusterPermissions": cluster_permissions,
    }
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "op.v1.0.0", "annotations": annotations},
        "spec": {
            "version": "1.0.0",
            "installModes": EVERY_MODE if modes is None else modes,
            "install": {"strategy": "deployment", "spec": strategy},
            "webhookdefinitions": webhooks,
            "customresourcedefinitions": {"owned": [{"name": crd["metadata"]["name"]} for crd in crds]},
        },
    }
    return Bundle(csv, crds, (csv, *crds, *others), {PACKAGE_KEY: "op"}, files=files or {})


def webhook(kind: str = "ValidatingAdmissionWebhook", **fields: Any) -> Object:
    usual = {"generateName": "hook.example.com", "deploymentName": "manager", "containerPort": 443}
    return usual | {"type": kind, "sideEffects": "None", "admissionReviewVersions": ["v1"]} | fields


def crd(name: str = "things.example.com", **spec: Any) -> Object:
    names = {"kind": "Thing", "plural": "things"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [], **spec},
    }


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [obj for obj in objects if obj["kind"] == kind]


def only(objects: list[Object], kind: str) -> Object:
    (obj,) = of_kind(objects, kind)
    return obj


def test_objects_come_in_the_order_in_which_they_are_needed() -> None:
    made = convert(
        bundle(
            permissions=[{"serviceAccountName": "a", "rules": [READ_PODS]}],
            cluster_permissions=[{"serviceAccountName": "b", "rules": [READ_PODS]}],
            webhooks=[webhook("MutatingAdmissionWebhook"), webhook()],
            crds=(crd(),),
            others=({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},),
        ),
        "sys",
        watch_namespaces=["there"],
        certificates=CertManager(),
    )
    assert [obj["kind"] for obj in made] == [
        "ServiceAccount",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "ConfigMap",
        "Deployment",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "Service",
        "Issuer",
        "Certificate",
    ]


def test_the_bundle_is_left_as_it_was() -> None:
    given = bundle(webhooks=[webhook()], crds=(crd(),), others=({"apiVersion": "v1", "kind": "Secret"},))
    before = copy.deepcopy(given)
    convert(given, "sys", certificates=ServiceCA(), deployment_config={"annotations": {"a": "b"}})
    assert given == before


def test_permissions_are_roles_in_each_watched_namespace() -> None:
    made = convert(
        bundle(permissions=[{"serviceAccountName": "a", "rules": [READ_PODS]}]),
        "sys",
        watch_namespaces=["one", "two"],
    )
    roles, bindings = of_kind(made, "Role"), of_kind(made, "RoleBinding")
    assert [role["metadata"]["namespace"] for role in roles] == ["one", "two"]
    assert len({role["metadata"]["name"] for role in (*roles, *bindings)}) == 1
    assert roles[0]["rules"] == [READ_PODS]
    assert bindings[0]["subjects"] == [{"kind": "ServiceAccount", "name": "a", "namespace": "sys"}]
    assert bindings[0]["roleRef"]["kind"] == "Role"
    assert of_kind(made, "ClusterRole") == []


def test_permissions_are_promoted_and_may_see_namespaces_when_everything_is_watched() -> None:
    made = convert(bundle(permissions=[{"serviceAccountName": "a", "rules": [READ_PODS]}]), "sys")
    role = only(made, "ClusterRole")
    see = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]}
    assert role["rules"] == [READ_PODS, see]
    assert of_kind(made, "Role") == []
    assert only(made, "ClusterRoleBinding")["metadata"] == role["metadata"]


def test_a_watched_namespace_named_twice_is_watched_once() -> None:
    given = bundle(permissions=[{"serviceAccountName": "a", "rules": []}])
    assert len(of_kind(convert(given, "sys", watch_namespaces=["one", "one"]), "Role")) == 1


def test_each_service_account_is_made_once_and_the_default_one_never() -> None:
    made = convert(
        bundle(
            permissions=[{"serviceAccountName": name, "rules": []} for name in ("a", "", "default", "a")],
            cluster_permissions=[{"serviceAccountName": "a", "rules": []}],
        ),
        "sys",
    )
    assert [
        (obj["metadata"]["name"], obj["metadata"]["namespace"]) for obj in of_kind(made, "ServiceAccount")
    ] == [("a", "sys")]
    accounts = [binding["subjects"][0]["name"] for binding in of_kind(made, "ClusterRoleBinding")]
    assert accounts == ["a", "a", "default", "default", "a"]


def test_the_caller_may_choose_the_names_of_roles() -> None:
    given = bundle(cluster_permissions=[{"serviceAccountName": "a", "rules": [READ_PODS]}])
    made = convert(given, "sys", unique_name=lambda base, value: f"{base}-{value['rules'][0]['verbs'][0]}")
    assert only(made, "ClusterRole")["metadata"]["name"] == "op.v1.0.0-a-get"


def test_pods_are_told_what_to_watch_and_carry_the_annotations_of_the_bundle() -> None:
    own = {"annotations": {"shared": "pod", "olm.operatorNamespace": "lie"}}
    made = convert(
        bundle(deployments=[deployment(metadata=own)], annotations={"shared": "csv", "more": "csv"}),
        "sys",
        watch_namespaces=["one", "two"],
    )
    spec = only(made, "Deployment")["spec"]
    assert spec["revisionHistoryLimit"] == 1
    assert spec["template"]["metadata"]["annotations"] == {
        "shared": "pod",
        "more": "csv",
        "olm.operatorNamespace": "sys",
        "olm.targetNamespaces": "one,two",
    }


def test_unknown_fields_of_a_deployment_are_dropped_and_quantities_made_canonical() -> None:
    container = {"name": "m", "resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}}, "sidecar": True}
    made = convert(bundle(deployments=[deployment(pod={"containers": [container]})]), "sys")
    assert only(made, "Deployment")["spec"]["template"]["spec"]["containers"] == [
        {"name": "m", "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}}
    ]


@pytest.mark.parametrize(
    ("annotation", "file", "expected"),
    [
        (None, None, None),
        (
            '[ {"value": {"b": 1.0, "a": "<"}, "type": "t"} ]',
            None,
            '[ {"value": {"b": 1.0, "a": "<"}, "type": "t"} ]',
        ),
        (
            None,
            b"properties: [{type: p, value: {z: 1, a: '&'}}]",
            r'[{"type":"p","value":{"a":"\u0026","z":1}}]',
        ),
        (
            '[ {"value": {"b": 1.0, "a": "<"}, "type": "t"} ]',
            b"properties: [{type: p, value: 1}]",
            r'[{"type":"t","value":{"b":1.0,"a":"\u003c"}},{"type":"p","value":1}]',
        ),
        (None, b"{}", "null"),
    ],
)
def test_properties_of_the_bundle_join_those_that_are_annotated(
    annotation: str | None, file: bytes | None, expected: str | None
) -> None:
    made = convert(
        bundle(
            annotations={"olm.properties": annotation} if annotation else None,
            files={"metadata/properties.yaml": file} if file else {},
        ),
        "sys",
    )
    annotations = only(made, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations.get("olm.properties") == expected


def test_other_objects_are_put_in_the_install_namespace_if_they_live_in_one() -> None:
    kinds = (
        "ConfigMap",
        "ClusterRole",
        "PriorityClass",
        "ServiceMonitor",
        "VerticalPodAutoscaler",
        "ConsoleLink",
    )
    others = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}} for kind in kinds]
    made = convert(bundle(deployments=[], others=tuple(others)), "sys")
    assert {obj["kind"]: obj["metadata"].get("namespace") for obj in made} == {
        "ConfigMap": "sys",
        "ClusterRole": None,
        "PriorityClass": None,
        "ServiceMonitor": "sys",
        "VerticalPodAutoscaler": "sys",
        "ConsoleLink": None,
    }


def test_an_admission_webhook_is_called_through_a_service() -> None:
    rules = [
        {
            "apiGroups": ["example.com"],
            "operations": ["CREATE"],
            "resources": ["things"],
            "apiVersions": ["v1"],
        }
    ]
    made = convert(
        bundle(
            webhooks=[
                webhook(generateName="hook.example.com", webhookPath="/v", rules=rules, targetPort=9443)
            ]
        ),
        "sys",
    )
    configuration = only(made, "ValidatingWebhookConfiguration")
    assert configuration["metadata"]["name"] == "hook.example.com"
    assert configuration["webhooks"] == [
        {
            "name": "hook.example.com",
            "clientConfig": {
                "service": {"name": "manager-service", "namespace": "sys", "path": "/v", "port": 443}
            },
            "rules": rules,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ]
    service = only(made, "Service")
    assert service["metadata"] == {"name": "manager-service", "namespace": "sys"}
    assert service["spec"] == {
        "ports": [{"name": "443", "port": 443, "targetPort": 9443}],
        "selector": {"app": "manager"},
    }


def test_a_webhook_that_names_no_port_is_called_on_the_port_that_its_service_has() -> None:
    made = convert(bundle(webhooks=[webhook(containerPort=0)]), "sys")
    called = only(made, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]["port"]
    assert called == only(made, "Service")["spec"]["ports"][0]["port"] == 443


def test_a_webhook_of_an_operator_that_watches_some_namespaces_is_called_for_those() -> None:
    made = convert(
        bundle(webhooks=[webhook("MutatingAdmissionWebhook")]), "sys", watch_namespaces=["one", "two"]
    )
    assert only(made, "MutatingWebhookConfiguration")["webhooks"][0]["namespaceSelector"] == {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["one", "two"]}
        ]
    }


def test_webhooks_of_one_deployment_share_a_service_and_its_ports_are_sorted() -> None:
    hooks = [
        webhook(generateName="a", containerPort=9443),
        webhook(generateName="b", containerPort=443, targetPort=2),
        webhook(generateName="c", containerPort=443, targetPort="1"),
        webhook(generateName="d", containerPort=9443),
    ]
    made = convert(bundle(webhooks=hooks), "sys")
    ports = [(port["port"], port["targetPort"]) for port in only(made, "Service")["spec"]["ports"]]
    assert ports == [(443, "1"), (443, 2), (9443, 9443)]


def converted_crd(certificates: Certificates | None = None, **fields: Any) -> Object:
    hook = webhook("ConversionWebhook", conversionCRDs=["things.example.com"], **fields)
    made = convert(bundle(webhooks=[hook], crds=(crd(),), modes=ALL), "sys", certificates=certificates)
    return only(made, "CustomResourceDefinition")


def test_a_conversion_webhook_is_written_into_its_definition() -> None:
    assert converted_crd()["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {"name": "manager-service", "namespace": "sys", "path": "/", "port": 443}
            },
            "conversionReviewVersions": ["v1"],
        },
    }


@pytest.mark.parametrize(
    ("certificates", "on_callers", "on_service"),
    [
        (None, None, None),
        (CertManager(), {"cert-manager.io/inject-ca-from": "sys/manager-service-cert"}, None),
        (
            ServiceCA(),
            {"service.beta.openshift.io/inject-cabundle": "true"},
            {"service.beta.openshift.io/serving-cert-secret-name": "manager-service-cert"},
        ),
    ],
)
def test_callers_are_told_whom_to_trust(
    certificates: Certificates | None, on_callers: Object | None, on_service: Object | None
) -> None:
    made = convert(bundle(webhooks=[webhook()]), "sys", certificates=certificates)
    assert only(made, "ValidatingWebhookConfiguration")["metadata"].get("annotations") == on_callers
    assert only(made, "Service")["metadata"].get("annotations") == on_service
    assert converted_crd(certificates)["metadata"].get("annotations") == on_callers


def test_cert_manager_is_asked_for_a_self_signed_certificate_of_two_years() -> None:
    made = convert(bundle(webhooks=[webhook()]), "sys", certificates=CertManager())
    issuer, certificate = only(made, "Issuer"), only(made, "Certificate")
    assert issuer["metadata"]["name"] == "manager-service-cert-selfsigned-issuer"
    assert certificate["metadata"] == {"name": "manager-service-cert", "namespace": "sys"}
    assert certificate["spec"] == {
        "secretName": "manager-service-cert",
        "commonName": "manager-service.sys",
        "dnsNames": [
            "manager-service.sys",
            "manager-service.sys.svc",
            "manager-service.sys.svc.cluster.local",
        ],
        "duration": "17520h0m0s",
        "renewBefore": "24h0m0s",
        "issuerRef": {"name": issuer["metadata"]["name"]},
        "usages": ["server auth"],
    }


def test_certificates_that_the_caller_has_issued_come_in_a_secret_with_their_authority_at_the_callers() -> (
    None
):
    given = bundle(webhooks=[webhook()])
    (wanted,) = servings(given, "sys")
    assert wanted == Serving("manager-service", "manager-service-cert", "sys")
    provided = Provided({wanted.service: Issued(b"authority", b"certificate", b"key")})
    made = convert(given, "sys", certificates=provided)
    secret = only(made, "Secret")
    assert secret["metadata"] == {"name": "manager-service-cert", "namespace": "sys"}
    assert {name: base64.b64decode(value) for name, value in secret["data"].items()} == {
        "tls.crt": b"certificate",
        "tls.key": b"key",
    }
    authority = base64.b64encode(b"authority").decode()
    called = only(made, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]
    assert called["caBundle"] == authority
    assert converted_crd(provided)["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == authority
    assert "key" not in repr(provided).replace("private_key", "")


def test_a_certificate_that_the_caller_forgot_is_missed_by_name() -> None:
    with pytest.raises(ValueError, match="no certificate was provided for the Service manager-service"):
        convert(bundle(webhooks=[webhook()]), "sys", certificates=Provided({}))


def test_the_certificate_is_mounted_in_place_of_what_the_author_had_there() -> None:
    served = "/tmp/k8s-webhook-server/serving-certs"
    pod = {
        "containers": [
            {
                "name": "m",
                "volumeMounts": [{"name": "cert", "mountPath": served}, {"name": "d", "mountPath": "/d"}],
            },
            {"name": "proxy", "volumeMounts": [{"name": "cert", "mountPath": "/elsewhere"}]},
        ],
        "volumes": [{"name": name, "emptyDir": {}} for name in ("cert", "d", "apiservice-cert")],
    }
    mounts = [
        {"name": "webhook-cert", "mountPath": served},
        {"name": "apiservice-cert", "mountPath": "/apiserver.local.config/certificates"},
    ]
    given = bundle(deployments=[deployment(pod=pod)], webhooks=[webhook()])
    made = only(convert(given, "sys", certificates=ServiceCA()), "Deployment")["spec"]["template"]["spec"]
    assert [c["volumeMounts"] for c in made["containers"]] == [
        [{"name": "d", "mountPath": "/d"}, *mounts],
        mounts,
    ]
    assert [volume["name"] for volume in made["volumes"]] == ["d", "webhook-cert", "apiservice-cert"]
    assert made["volumes"][2]["secret"] == {
        "secretName": "manager-service-cert",
        "items": [{"key": "tls.crt", "path": "apiserver.crt"}, {"key": "tls.key", "path": "apiserver.key"}],
    }


def test_nothing_is_mounted_without_a_source_of_certificates_or_without_webhooks() -> None:
    plain = convert(bundle(webhooks=[webhook()]), "sys")
    unhooked = convert(bundle(), "sys", certificates=CertManager())
    for made in (plain, unhooked):
        assert "volumes" not in only(made, "Deployment")["spec"]["template"]["spec"]
    assert of_kind(unhooked, "Issuer") == []


def test_supported_install_modes_are_those_declared_so() -> None:
    modes = [{"type": "OwnNamespace", "supported": True}, {"type": "AllNamespaces", "supported": False}]
    assert supported_install_modes(bundle(modes=modes)) == {"OwnNamespace"}
