"""Bundles from plain manifests: what goes where, what is reported, and that nothing but content matters."""

from __future__ import annotations

import copy
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import operatorfolder
from podium.api.findings import Finding, Severity
from podium.api.kinds import Object
from podium.bundle.generate import Details, Generated, Icon, Options, generate
from podium.bundle.generate.images import UnresolvedImageError
from podium.text import yaml

NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2025, 1, 1, tzinfo=UTC)
OPTIONS = Options(package="tool-operator", version="1.2.3")
CSV = "manifests/tool-operator.clusterserviceversion.yaml"


def made(objects: list[Object] | None = None, options: Options = OPTIONS, **arguments: Any) -> Generated:
    """The bundle of these objects, or of the whole operator."""
    data = operatorfolder.stream(operatorfolder.objects() if objects is None else objects)
    return generate({"all.yaml": data}, options, **({"now": NOW} | arguments))


def csv_of(bundle: Generated) -> Object:
    value = yaml.load(bundle.files[CSV])
    assert isinstance(value, dict)
    return value


def reported(bundle: Generated, rule: str) -> list[Finding]:
    return [finding for finding in bundle.findings if finding.rule == rule]


def named(objects: list[Object], kind: str, name: str) -> Object:
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))


def test_every_object_is_in_the_bundle_or_in_the_findings() -> None:
    bundle = made()
    assert sorted(bundle.files) == [
        "manifests/helper_rbac.authorization.k8s.io_v1_rolebinding.yaml",
        "manifests/helper_v1_serviceaccount.yaml",
        "manifests/important_scheduling.k8s.io_v1_priorityclass.yaml",
        "manifests/manager_policy_v1_poddisruptionbudget.yaml",
        "manifests/metrics_monitoring.coreos.com_v1_servicemonitor.yaml",
        "manifests/metrics_networking.k8s.io_v1_networkpolicy.yaml",
        "manifests/settings_v1_configmap.yaml",
        "manifests/token_v1_secret.yaml",
        CSV,
        "manifests/tools.example.com_tools.yaml",
        "manifests/viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml",
        "manifests/webhook-service_v1_service.yaml",
        "metadata/annotations.yaml",
    ]
    assert [(f.subject, f.severity) for f in bundle.findings] == [("Namespace system", Severity.INFO)]


def test_no_shipped_object_has_a_namespace_or_what_only_clusters_write() -> None:
    objects = operatorfolder.objects()
    for each in objects:
        each["metadata"] |= {"creationTimestamp": None, "resourceVersion": "7", "uid": "x"}
        each["status"] = {"some": "thing"}
    bundle = made(objects)
    for path, data in bundle.files.items():
        if path.startswith("manifests/"):
            value = yaml.load(data)
            assert not {"namespace", "creationTimestamp", "resourceVersion", "uid"} & set(
                value["metadata"]
            ), path
            assert "status" not in value, path


def test_rights_of_the_operators_account_go_into_the_csv() -> None:
    install = csv_of(made())["spec"]["install"]["spec"]
    assert [each["serviceAccountName"] for each in install["permissions"]] == ["manager"]
    assert install["permissions"][0]["rules"][0]["resources"] == ["leases"]
    assert [rule["resources"] for rule in install["clusterPermissions"][0]["rules"]] == [
        ["tools"],
        ["secrets"],
    ]


def test_a_role_that_others_have_too_is_in_the_csv_and_shipped_for_them() -> None:
    objects = operatorfolder.objects()
    binding = named(objects, "RoleBinding", "leader")
    binding["subjects"].append({"kind": "User", "name": "ann"})
    bundle = made(objects)
    assert csv_of(bundle)["spec"]["install"]["spec"]["permissions"]
    assert "manifests/leader_rbac.authorization.k8s.io_v1_role.yaml" in bundle.files
    shipped = yaml.load(bundle.files["manifests/leader_rbac.authorization.k8s.io_v1_rolebinding.yaml"])
    assert shipped["subjects"] == [{"kind": "User", "name": "ann"}]


def test_extra_accounts_get_their_rights_through_the_csv() -> None:
    bundle = made(
        options=Options(package="tool-operator", version="1.2.3", extra_service_accounts=("helper",))
    )
    accounts = [
        each["serviceAccountName"] for each in csv_of(bundle)["spec"]["install"]["spec"]["permissions"]
    ]
    assert accounts == ["helper", "manager"]
    assert "manifests/helper_v1_serviceaccount.yaml" not in bundle.files


def test_a_role_that_is_gathered_in_the_cluster_is_reported() -> None:
    objects = operatorfolder.objects()
    named(objects, "ClusterRole", "manager")["aggregationRule"] = {"clusterRoleSelectors": []}
    assert reported(made(objects), "aggregated-role")


def test_served_versions_are_owned_and_keep_what_an_author_wrote_about_them() -> None:
    written = {"name": "tools.tools.example.com", "kind": "Tool", "version": "v1", "description": "Mine"}
    gone = {"name": "gone.example.com", "kind": "Gone", "version": "v1"}
    required = {"name": "others.example.com", "kind": "Other", "version": "v1"}
    base = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "tool-operator.v0.0.0"},
        "spec": {"customresourcedefinitions": {"owned": [gone, written], "required": [required]}},
    }
    definitions = csv_of(made(base_csv=base))["spec"]["customresourcedefinitions"]
    assert [each["version"] for each in definitions["owned"]] == ["v1", "v1beta1"]
    assert definitions["owned"][0] == written
    assert definitions["required"] == [required]


def test_custom_resources_become_examples_with_the_bytes_that_go_writes() -> None:
    text = csv_of(made())["metadata"]["annotations"]["alm-examples"]
    assert json.loads(text)[0]["spec"]["motto"] == "a < b & c"
    assert r"a \u003c b \u0026 c" in text


def test_webhooks_name_the_deployment_and_ports_behind_their_service() -> None:
    definitions = csv_of(made())["spec"]["webhookdefinitions"]
    assert [(each["type"], each["generateName"]) for each in definitions] == [
        ("ConversionWebhook", "ctools.kb.io"),
        ("MutatingAdmissionWebhook", "mtool.kb.io"),
        ("ValidatingAdmissionWebhook", "vtool.kb.io"),
    ]
    for each in definitions:
        assert (each["deploymentName"], each["containerPort"], each["targetPort"]) == ("manager", 443, 9443)
    assert definitions[0]["conversionCRDs"] == ["tools.tools.example.com"]
    assert definitions[1]["reinvocationPolicy"] == "IfNeeded"


@pytest.mark.parametrize(
    ("change", "rule", "severity"),
    [
        ({"clientConfig": {"url": "https://example.com"}}, "webhook-without-service", Severity.ERROR),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "webhook-loses-field", Severity.WARNING),
        ({"matchConditions": [{"name": "x", "expression": "true"}]}, "webhook-loses-field", Severity.WARNING),
        (
            {"clientConfig": {"service": {"name": "far-service", "namespace": "far"}}},
            "webhook-without-deployment",
            Severity.ERROR,
        ),
    ],
)
def test_a_webhook_that_a_csv_cannot_describe_is_reported(
    change: Object, rule: str, severity: Severity
) -> None:
    objects = operatorfolder.objects()
    named(objects, "ValidatingWebhookConfiguration", "validating")["webhooks"][0] |= change
    assert [finding.severity for finding in reported(made(objects), rule)] == [severity]


def test_a_webhook_never_names_a_deployment_that_is_not_there() -> None:
    objects = [each for each in operatorfolder.objects() if each["kind"] != "Service"]
    bundle = made(objects)
    assert "webhookdefinitions" not in csv_of(bundle)["spec"]
    found = reported(bundle, "webhook-without-deployment")
    assert [each.severity for each in found] == [Severity.ERROR] * 2
    assert all("add the manifest of the Service webhook-service" in each.message for each in found)
    assert [each.severity for each in reported(bundle, "conversion-without-service")] == [Severity.ERROR]


def test_a_service_that_selects_no_pods_is_reported_with_its_selector() -> None:
    objects = operatorfolder.objects()
    named(objects, "Service", "webhook-service")["spec"]["selector"] = {"app": "tol"}
    found = reported(made(objects), "webhook-without-deployment")
    assert (
        "the selector of the Service webhook-service (app=tol) fits no Deployment's pods" in found[0].message
    )
    assert found[0].severity is Severity.ERROR


def test_a_deployment_that_is_called_like_its_missing_service_is_assumed_to_serve() -> None:
    objects = [each for each in operatorfolder.objects() if each["kind"] != "Service"]
    named(objects, "Deployment", "manager")["metadata"]["name"] = "webhook"
    bundle = made(objects)
    assert [each.severity for each in reported(bundle, "webhook-without-deployment")] == [
        Severity.WARNING
    ] * 2
    assert {each["deploymentName"] for each in csv_of(bundle)["spec"]["webhookdefinitions"]} == {"webhook"}


def test_an_account_that_has_neither_manifest_nor_rights_is_reported_with_those_there_are() -> None:
    objects = operatorfolder.objects()
    named(objects, "Deployment", "manager")["spec"]["template"]["spec"]["serviceAccountName"] = "manger"
    (found,) = reported(made(objects), "service-account-without-permissions")
    assert (found.severity, found.subject) == (Severity.WARNING, "Deployment manager")
    assert "manger" in found.message
    assert "did you mean `manager`?" in found.message
    assert "helper, manager" in found.message


@pytest.mark.parametrize("gone", ["ServiceAccount", "Binding"])
def test_an_account_with_a_manifest_or_rights_is_fine(gone: str) -> None:
    objects = [each for each in operatorfolder.objects() if not each["kind"].endswith(gone)]
    assert not reported(made(objects), "service-account-without-permissions")


def test_a_deployment_without_an_account_is_fine() -> None:
    objects = operatorfolder.objects()
    del named(objects, "Deployment", "manager")["spec"]["template"]["spec"]["serviceAccountName"]
    assert not reported(made(objects), "service-account-without-permissions")


def test_an_operator_that_asks_for_namespaces_is_told_those_of_its_installer() -> None:
    container = csv_of(made())["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"][
        "containers"
    ][0]
    assert container["env"][0] == {
        "name": "WATCH_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
    }


def test_images_in_the_environment_are_related_images() -> None:
    assert csv_of(made())["spec"]["relatedImages"] == [{"name": "data-base", "image": "quay.io/tools/db:1"}]


def test_related_images_that_an_author_lists_are_kept() -> None:
    base = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "tool-operator.v0.0.0"},
        "spec": {
            "relatedImages": [{"name": "mine", "image": "mine:1"}, {"name": "data-base", "image": "old:0"}]
        },
    }
    assert csv_of(made(base_csv=base))["spec"]["relatedImages"] == [
        {"name": "data-base", "image": "quay.io/tools/db:1"},
        {"name": "mine", "image": "mine:1"},
    ]


def digests(bundle: Generated) -> dict[str, str]:
    return {image: f"sha256:{index:064x}" for index, image in enumerate(bundle.images) if "@" not in image}


def test_pinned_bundles_name_every_image_by_digest_and_list_them_all() -> None:
    plain = made()
    known = digests(plain)
    pinned = made(options=Options(package="tool-operator", version="1.2.3", digests=known))
    assert all("@sha256:" in image for image in pinned.images)
    csv = csv_of(pinned)
    assert csv["spec"]["relatedImages"] == [
        {"name": "data-base", "image": f"quay.io/tools/db@{known['quay.io/tools/db:1']}"},
        {"name": "manager", "image": f"controller@{known['controller:latest']}"},
        {"name": "prepare", "image": f"busybox@{known['busybox']}"},
        {"name": "proxy", "image": "registry.example:5000/tools/proxy:2@sha256:aaaa"},
    ]
    containers = csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"]
    assert containers[0]["env"][1]["value"] == f"quay.io/tools/db@{known['quay.io/tools/db:1']}"


def test_an_image_without_a_digest_cannot_be_pinned() -> None:
    with pytest.raises(UnresolvedImageError) as caught:
        made(options=Options(package="tool-operator", version="1.2.3", digests={"busybox": "sha256:1"}))
    assert caught.value.images == ("controller:latest", "quay.io/tools/db:1")


def test_containers_of_one_name_and_several_images_are_told_apart_when_pinned() -> None:
    objects = operatorfolder.objects()
    other = copy.deepcopy(named(objects, "Deployment", "manager"))
    other["metadata"]["name"] = "second"
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "another:1"
    objects.append(other)
    bundle = made(objects)
    pinned = made(objects, Options(package="tool-operator", version="1.2.3", digests=digests(bundle)))
    names = [each["name"] for each in csv_of(pinned)["spec"]["relatedImages"]]
    assert names == ["data-base", "manager-manager", "prepare", "proxy", "second-manager"]


def test_a_related_image_that_comes_from_elsewhere_is_an_error() -> None:
    objects = operatorfolder.objects()
    environment = named(objects, "Deployment", "manager")["spec"]["template"]["spec"]["containers"][0]["env"]
    environment.append({"name": "RELATED_IMAGE_X", "valueFrom": {"fieldRef": {"fieldPath": "a"}}})
    assert "RELATED_IMAGE_X" in reported(made(objects), "related-image-by-reference")[0].message


def test_a_field_that_kubernetes_does_not_know_is_reported_with_its_place() -> None:
    objects = operatorfolder.objects()
    named(objects, "Deployment", "manager")["spec"]["template"]["spec"]["securityContext"] = {
        "runAsNonRot": True
    }
    (finding,) = reported(made(objects), "unknown-field")
    assert "spec.template.spec.securityContext.runAsNonRot" in finding.message
    assert finding.place.file == "all.yaml"


@pytest.mark.parametrize(
    ("extra", "rule", "severity"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}},
            "not-shipped",
            "warning",
        ),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}}, "not-shipped", "warning"),
        (
            {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "i"}},
            "not-shipped",
            "info",
        ),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, "object-without-name", "error"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "far"}},
            "namespace-lost",
            "warning",
        ),
        (
            {
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "ClusterServiceVersion",
                "metadata": {"name": "other.v1"},
            },
            "unused-csv",
            "warning",
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "webhook-service", "namespace": "system"},
            },
            "duplicate-object",
            "error",
        ),
    ],
)
def test_what_cannot_be_shipped_is_reported(extra: Object, rule: str, severity: str) -> None:
    # The operator's namespace is not shipped either, and reported with the same rule.
    found = reported(made([*operatorfolder.objects(), extra]), rule)
    assert [each.severity for each in found if each.subject != "Namespace system"] == [severity]


def test_equal_objects_count_once() -> None:
    objects = operatorfolder.objects()
    assert made([*objects, *objects]).files == made(objects).files


def test_every_file_that_cannot_be_read_is_reported_with_its_line() -> None:
    files = {
        "good.yaml": operatorfolder.stream(operatorfolder.objects()),
        "bad.yaml": b"a: b\nc: [\n",
        "list.yaml": b"- a\n",
        "notes.txt": b"[[[",
        "nothing.yaml": b"# only a comment\n---\n",
        "text.yaml": b"apiVersion: v1\n---\nkind: ConfigMap\n",
    }
    bundle = generate(files, OPTIONS, now=NOW)
    errors = [(f.place.file, f.rule) for f in bundle.findings if f.severity is Severity.ERROR]
    assert errors == [
        ("bad.yaml", "unreadable-manifest"),
        ("list.yaml", "not-an-object"),
        ("text.yaml", "not-an-object"),
        ("text.yaml", "not-an-object"),
    ]
    assert bundle.findings[0].place.line


def test_a_bundle_without_a_deployment_is_an_error() -> None:
    assert reported(made([]), "no-deployment")


def test_details_describe_the_operator_and_leave_the_rest_of_the_base() -> None:
    details = Details(
        display_name="Tool",
        description="Text",
        icon=Icon(b"<svg/>", "image/svg+xml"),
        provider={"name": "Me"},
        maintainers=[{"name": "Ann", "email": "ann@example.com"}],
        links=[{"name": "Home", "url": "https://example.com"}],
        keywords=["tool"],
        maturity="stable",
        min_kube_version="1.28.0",
        install_modes=["OwnNamespace"],
        replaces="tool-operator.v1.0.0",
        skips=["tool-operator.v1.1.0"],
        skip_range="<1.2.3",
        annotations={"categories": "Database"},
    )
    csv = csv_of(made(options=Options(package="tool-operator", version="1.2.3", details=details)))
    spec = csv["spec"]
    assert csv["metadata"]["name"] == "tool-operator.v1.2.3"
    assert csv["metadata"]["annotations"]["olm.skipRange"] == "<1.2.3"
    assert csv["metadata"]["annotations"]["categories"] == "Database"
    assert spec["icon"] == [{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}]
    assert [mode["type"] for mode in spec["installModes"] if mode["supported"]] == ["OwnNamespace"]
    assert (spec["version"], spec["replaces"], spec["skips"]) == (
        "1.2.3",
        "tool-operator.v1.0.0",
        ["tool-operator.v1.1.0"],
    )
    assert (spec["displayName"], spec["minKubeVersion"], spec["maturity"]) == ("Tool", "1.28.0", "stable")


def test_labels_of_the_image_are_the_annotations_of_the_bundle() -> None:
    scorecard = {
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
    }
    options = Options(package="tool-operator", version="1.2.3", channels=("a", "b"), default_channel="b")
    bundle = made([*operatorfolder.objects(), scorecard], options)
    assert yaml.load(bundle.files["metadata/annotations.yaml"]) == {"annotations": bundle.labels}
    assert bundle.labels["operators.operatorframework.io.bundle.channels.v1"] == "a,b"
    assert bundle.labels["operators.operatorframework.io.bundle.channel.default.v1"] == "b"
    assert bundle.labels["operators.operatorframework.io.test.mediatype.v1"] == "scorecard+v1"


def test_more_metadata_is_shipped_as_it_is() -> None:
    options = Options(
        package="tool-operator", version="1.2.3", metadata={"dependencies.yaml": b"dependencies: []\n"}
    )
    assert made(options=options).files["metadata/dependencies.yaml"] == b"dependencies: []\n"


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.02.3", ""])
def test_a_version_must_be_semantic(version: str) -> None:
    with pytest.raises(ValueError):
        made(options=Options(package="tool-operator", version=version))


def test_the_time_of_creation_changes_only_with_the_content() -> None:
    first = made()
    assert csv_of(first)["metadata"]["annotations"]["createdAt"] == "2024-01-02T03:04:05Z"
    assert made(previous=first.files, now=LATER).files == first.files
    objects = operatorfolder.objects()
    named(objects, "ConfigMap", "settings")["data"]["mode"] = "slow"
    changed = made(objects, previous=first.files, now=LATER)
    assert csv_of(changed)["metadata"]["annotations"]["createdAt"] == "2025-01-01T00:00:00Z"


def test_an_object_that_is_gone_is_a_change_of_content() -> None:
    first = made()
    objects = [each for each in operatorfolder.objects() if each["kind"] != "ConfigMap"]
    assert (
        csv_of(made(objects, previous=first.files, now=LATER))["metadata"]["annotations"]["createdAt"][:4]
        == "2025"
    )


def test_a_previous_bundle_that_cannot_be_read_does_not_matter() -> None:
    assert csv_of(made(previous={CSV: b"{{{"}))["metadata"]["annotations"]["createdAt"][:4] == "2024"


@given(st.randoms(use_true_random=False))
def test_neither_order_nor_files_matter(chance: random.Random) -> None:
    objects = operatorfolder.objects()
    chance.shuffle(objects)
    files: dict[str, list[Object]] = {}
    for each in objects:
        files.setdefault(f"{chance.choice('abc/')}{chance.randrange(3)}.yaml", []).append(each)
    names = list(files)
    chance.shuffle(names)
    shuffled = {name: operatorfolder.stream(files[name]) for name in names}
    assert generate(shuffled, OPTIONS, now=NOW).files == made().files


def test_a_bundle_is_made_of_itself() -> None:
    first = made()
    own = {name: data for name, data in first.files.items() if name.startswith("manifests/")}
    again = generate(own, OPTIONS, now=LATER, previous=first.files)
    assert again.files == first.files


def test_lists_count_as_what_they_list() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": operatorfolder.objects()}
    assert made([listed]).files == made().files
