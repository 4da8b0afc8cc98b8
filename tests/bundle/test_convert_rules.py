"""What conversion refuses: every rule, all breaches at once, in the original's words."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from podium.api.findings import Severity
from podium.bundle.convert import ConversionError, check, convert
from podium.bundle.convert.installmodes import unsupported
from podium.bundle.model import PACKAGE_KEY, Bundle, Manifest

Object = dict[str, Any]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
TOO_LONG = "must be no more than 253 characters"
LONG = "X" * 254
DEPLOYMENT_NAME = "invalid cluster service version strategy deployment name"
CONVERSION = 'bundle contains conversion webhook "hook" and supports install modes'
ONLY_ALL = "conversion webhooks are only supported for bundles that only support AllNamespaces install mode"
VALIDATING = "webhook of type 'ValidatingAdmissionWebhook'"
MUTATING = "webhook of type 'MutatingAdmissionWebhook'"
OWNED = "cluster service definition references owned custom resource definition"
FORBIDDEN = 'webhook "hook" contains forbidden rule: admission webhook rules cannot reference'
UNKNOWN_FIELDS = (
    "must have .spec.preserveUnknownFields set to false to let API Server call webhook to do the conversion"
)


def bundle(
    *,
    deployments: tuple[str, ...] = ("manager",),
    webhooks: list[Object] | None = None,
    modes: tuple[str, ...] = ("AllNamespaces",),
    owned: tuple[str, ...] = (),
    crds: tuple[Object, ...] = (),
    others: tuple[Object, ...] = (),
    package: str = "op",
    **spec: Any,
) -> Bundle:
    strategy = {"deployments": [{"name": name, "spec": {"template": {}}} for name in deployments]}
    csv = {
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "op.v1.0.0"},
        "spec": {
            "installModes": [{"type": mode, "supported": True} for mode in modes],
            "install": {"spec": strategy},
            "customresourcedefinitions": {"owned": [{"name": name} for name in owned]},
            "webhookdefinitions": webhooks,
            **spec,
        },
    }
    return Bundle(csv, crds, (csv, *crds, *others), {PACKAGE_KEY: package})


def crd(name: str, **spec: Any) -> Object:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec}


def hook(
    name: str = "hook", kind: str = "ValidatingAdmissionWebhook", deployment: str = "manager", **fields: Any
) -> Object:
    return {"generateName": name, "type": kind, "deploymentName": deployment, **fields}


def converting(name: str = "hook", *crds: str) -> Object:
    return hook(name, "ConversionWebhook", conversionCRDs=list(crds))


def ruling(groups: list[str], resources: list[str]) -> Object:
    return hook(rules=[{"apiGroups": groups, "resources": resources}])


@pytest.mark.parametrize(
    ("rule", "given", "messages"),
    [
        (
            "deployment-unique",
            {"deployments": ("b", "a", "b", "a", "c")},
            [
                f"cluster service version contains duplicate strategy deployment spec '{name}'"
                for name in "ab"
            ],
        ),
        (
            "deployment-name",
            {"deployments": ("Bad", LONG, "fine.name")},
            [
                f"{DEPLOYMENT_NAME} 'Bad': {SUBDOMAIN}",
                f"{DEPLOYMENT_NAME} '{LONG}': {SUBDOMAIN}, {TOO_LONG}",
            ],
        ),
        (
            "crd-unique",
            {"crds": (crd("x"), crd("y"), crd("x"))},
            ["bundle contains duplicate custom resource definition 'x'"],
        ),
        (
            "owned-crd-missing",
            {"owned": ("y", "x", "y", "z"), "crds": (crd("z"),)},
            [f"{OWNED} '{name}' not found in bundle" for name in "xy"],
        ),
        ("package-name", {"package": ""}, ["package name is empty"]),
        (
            "conversion-install-mode",
            {"webhooks": [converting()], "modes": ("OwnNamespace", "AllNamespaces")},
            [f"{CONVERSION} [AllNamespaces OwnNamespace] - {ONLY_ALL}"],
        ),
        (
            "webhook-deployment",
            {"webhooks": [hook("b", deployment="no"), hook("a", deployment="no"), hook("c")]},
            [f"{VALIDATING} with name '{name}' references non-existent deployment 'no'" for name in "ab"],
        ),
        (
            "webhook-unique",
            {"webhooks": [hook(), hook(), hook(kind="MutatingAdmissionWebhook")]},
            ["duplicate webhook 'hook' of type 'ValidatingAdmissionWebhook'"],
        ),
        (
            "webhook-name",
            {"webhooks": [hook("Bad"), hook(LONG, "MutatingAdmissionWebhook")]},
            [
                f"{MUTATING} has invalid name '{LONG}': {SUBDOMAIN},{TOO_LONG}",
                f"{VALIDATING} has invalid name 'Bad': {SUBDOMAIN}",
            ],
        ),
        (
            "conversion-unique",
            {"webhooks": [converting("b", "x"), converting("a", "x")], "owned": ("x",), "crds": (crd("x"),)},
            ["conversion webhooks [a,b] reference same custom resource definition 'x'"],
        ),
        (
            "conversion-crd-owned",
            {"webhooks": [converting("hook", "y", "x")], "owned": ("x",), "crds": (crd("x"), crd("y"))},
            ["conversion webhook 'hook' references custom resource definition 'y' not owned bundle"],
        ),
        (
            "webhook-rule",
            {"webhooks": [ruling(["*", "apps", "olm.operatorframework.io"], ["things"])]},
            [f'{FORBIDDEN} API group "{group}"' for group in ("*", "olm.operatorframework.io")],
        ),
        (
            "webhook-rule",
            {
                "webhooks": [
                    ruling(["admissionregistration.k8s.io"], ["MutatingWebhookConfigurations", "*", "x"])
                ]
            },
            [
                f'{FORBIDDEN} resource "{resource}" for API group "admissionregistration.k8s.io"'
                for resource in ("MutatingWebhookConfigurations", "*")
            ],
        ),
        (
            "object-kind",
            {"others": ({"kind": "Pod", "metadata": {"name": "p"}}, {"kind": "Secret"})},
            ['unsupported resource "p" with kind "Pod"'],
        ),
        (
            "conversion-preserves-unknown",
            {
                "webhooks": [converting("hook", "x")],
                "owned": ("x",),
                "crds": (crd("x", preserveUnknownFields=True),),
            },
            [f"custom resource definition 'x' {UNKNOWN_FIELDS}"],
        ),
    ],
)
def test_a_rule_reports_every_breach(rule: str, given: Object, messages: list[str]) -> None:
    findings = check(bundle(**given), "sys")
    assert {finding.rule for finding in findings} == {rule}
    assert [finding.message for finding in findings] == messages
    assert {finding.severity for finding in findings} == {Severity.ERROR}


def test_everything_wrong_is_told_at_once_when_converting() -> None:
    wrong = bundle(package="", deployments=("Bad", "Bad"), modes=("OwnNamespace",), keywords="none")
    with pytest.raises(ConversionError) as error:
        convert(wrong, "sys", watch_namespaces=["there"], deployment_config={"env": "none"})
    assert [finding.rule for finding in error.value.findings] == [
        "csv-type",
        "deployment-unique",
        "deployment-name",
        "package-name",
        "watch-namespaces",
        "deployment-config",
    ]
    assert "package name is empty" in str(error.value)


ALL, OWN, SINGLE, MULTI = "AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace"
NOTHING = "exactly one target namespace must be specified"
NOTHING_AT_ALL = "at least one target namespace must be specified"


@pytest.mark.parametrize(
    ("supported", "watched", "reason"),
    [
        ((ALL,), [""], ""),
        ((OWN,), ["sys"], ""),
        ((SINGLE,), ["there"], ""),
        ((MULTI,), ["there", "far"], ""),
        ((MULTI, OWN), ["sys", "far"], ""),
        ((OWN, SINGLE), [], NOTHING),
        ((MULTI,), [], NOTHING_AT_ALL),
        ((), [], NOTHING),
        ((OWN,), [""], "[OwnNamespace] do not support targeting all namespaces"),
        ((SINGLE, ALL), ["sys"], "[AllNamespaces SingleNamespace] do not support targeting own namespace"),
        ((ALL,), ["there"], "[AllNamespaces] do not support target namespaces [there]"),
        ((MULTI,), ["there"], "[MultiNamespace] do not support target namespaces [there]"),
        ((SINGLE,), ["a", "b"], "[SingleNamespace] do not support target namespaces [a b]"),
        ((MULTI,), ["sys", "far"], "[MultiNamespace] do not support targeting own namespace"),
        ((ALL, MULTI), ["", "far"], "[AllNamespaces MultiNamespace] do not support target namespaces [ far]"),
    ],
)
def test_what_may_be_watched_follows_from_the_install_modes(
    supported: tuple[str, ...], watched: list[str], reason: str
) -> None:
    expected = f"supported install modes {reason}" if reason.startswith("[") else reason
    assert unsupported(supported, "sys", watched) == expected


@pytest.mark.parametrize("asked", [None, [], [""]])
def test_everything_is_watched_if_nothing_else_is_asked_for(asked: list[str] | None) -> None:
    assert check(bundle(modes=(ALL, OWN)), "sys", watch_namespaces=asked) == []
    (finding,) = check(bundle(modes=(OWN,)), "sys")
    assert finding.message == f"invalid target namespaces []: {NOTHING}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"keywords": ["a", 5]}, "spec.keywords[1]: cannot convert int64 to string"),
        ({"installModes": {}}, "spec.installModes: cannot restore slice from map"),
        ({"labels": {"a": True}}, "spec.labels.a: cannot convert bool to string"),
        ({"maintainers": ["me"]}, "spec.maintainers[0]: cannot restore struct from: string"),
        ({"webhookdefinitions": [hook(containerPort=2**31)]}, "containerPort: cannot convert int64 to int32"),
        (
            {"install": {"spec": {"deployments": [{"spec": {"replicas": "1"}}]}}},
            "spec.install.spec.deployments[0].spec: ",
        ),
        ({"version": "one"}, "spec.version: "),
        ({"Keywords": 5}, ""),  # no field of that name
    ],
)
def test_values_of_wrong_types_are_reported_with_their_path(spec: Object, message: str) -> None:
    findings = [finding for finding in check(bundle(**spec), "sys") if finding.rule == "csv-type"]
    assert len(findings) == bool(message)
    assert message in "".join(finding.message for finding in findings)


def test_definitions_and_other_objects_are_checked_for_their_types_too() -> None:
    wrong = bundle(crds=(crd("x", versions="v1"),), others=({"kind": "Secret", "metadata": {"name": 5}},))
    assert [finding.rule for finding in check(wrong, "sys")] == ["crd-type", "metadata-type"]


@pytest.mark.parametrize(
    ("annotation", "file"), [("{", b""), ('[{"type": 5}]', b""), ("[]", b"properties: 5"), ("[]", b"a: ]")]
)
def test_properties_that_cannot_be_read_are_reported(annotation: str, file: bytes) -> None:
    given = bundle()
    csv = given.csv | {"metadata": {"name": "op", "annotations": {"olm.properties": annotation}}}
    broken = Bundle(csv, annotations=given.annotations, files={"metadata/properties.yaml": file})
    assert [finding.rule for finding in check(broken, "sys")] == ["properties"]


def test_a_finding_names_the_file_that_it_is_about() -> None:
    given = bundle(deployments=("Bad",), crds=(crd("x", versions=5),), keywords=5)
    manifests = (Manifest("manifests/csv.yaml", given.csv), Manifest("manifests/crd.yaml", given.crds[0]))
    placed = {f.rule: f.place.file for f in check(dataclasses.replace(given, manifests=manifests), "sys")}
    assert placed == {
        "csv-type": "manifests/csv.yaml",
        "crd-type": "manifests/crd.yaml",
        "deployment-name": "manifests/csv.yaml",
    }
