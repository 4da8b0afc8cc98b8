"""APIs that a bundle's objects use and that Kubernetes has since removed.

A warning as long as the operator may run on older clusters; an error when it says, or the user says with the
option `k8s-version`, that it is for clusters which no longer have the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import CRD_V1BETA1, CSV_KIND, CSV_V1ALPHA1, items, member, text
from podium.bundle.typed import Path
from podium.text.semver import Version

OPTION = "k8s-version"

_REMOVED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "1.22.0": {
        "scheduling.k8s.io/v1beta1": ("PriorityClass",),
        "rbac.authorization.k8s.io/v1beta1": ("Role", "ClusterRoleBinding", "RoleBinding", "ClusterRole"),
        "apiregistration.k8s.io/v1beta1": ("APIService",),
        "authentication.k8s.io/v1beta1": ("TokenReview",),
        "authorization.k8s.io/v1beta1": (
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
        ),
        "admissionregistration.k8s.io/v1beta1": (
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ),
        "coordination.k8s.io/v1beta1": ("Lease",),
        "extensions/v1beta1": ("Ingress",),
        "networking.k8s.io/v1beta1": ("Ingress", "IngressClass"),
        "storage.k8s.io/v1beta1": ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"),
        "certificates.k8s.io/v1beta1": ("CertificateSigningRequest",),
        CRD_V1BETA1: ("CustomResourceDefinition",),
    },
    "1.25.0": {
        "batch/v1beta1": ("CronJob",),
        "discovery.k8s.io/v1beta1": ("EndpointSlice",),
        "events.k8s.io/v1beta1": ("Event",),
        "autoscaling/v2beta1": ("HorizontalPodAutoscaler",),
        "policy/v1beta1": ("PodDisruptionBudget", "PodSecurityPolicy"),
        "node.k8s.io/v1beta1": ("RuntimeClass",),
    },
    "1.26.0": {"autoscaling/v2beta2": ("HorizontalPodAutoscaler",)},
}
# A resource that was removed and has no successor in its group; a right to it can only be about the old API.
_REMOVED_RESOURCE = ("policy", "podsecuritypolicies")
_GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a removed API: what, and where."""

    kind: str
    name: str
    file: str
    path: Path
    only_warn: bool = False


def check(subject: Subject, report: Report) -> None:
    """Reports uses of removed APIs."""
    targets = [Version(0, 0, 0), Version(0, 0, 0)]
    asked = text(subject.options.get(OPTION))
    said = text(subject.csv.spec.get("minKubeVersion"))
    where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}
    for index, (value, rule, message) in enumerate(
        (
            (asked, "k8s-version-invalid", "invalid value informed via the k8s key option"),
            (
                said,
                "min-kube-version-unusable",
                "unable to use csv.Spec.MinKubeVersion to look for removed APIs",
            ),
        )
    ):
        if value:
            try:
                targets[index] = Version.parse_tolerant(value)
            except ValueError:
                path: Path = ("spec", "minKubeVersion") if index else ()
                report.error(rule, f"{message}: {value!r}", path=path, **where)
    for release in _REMOVED:
        removal = Version.parse(release)
        is_error = any(target >= removal for target in targets)
        for use in uses(subject, release):
            short = f"{removal.major}.{removal.minor}"
            add = report.error if is_error and not use.only_warn else report.warn
            add(
                "removed-api",
                f"this bundle is using APIs which were deprecated and removed in v{short}: migrate "
                f"{use.kind} {use.name} ({_GUIDE}#v{removal.major}-{removal.minor})",
                subject=f"{use.kind} {use.name}",
                file=use.file,
                path=use.path,
            )


def uses(subject: Subject, release: str) -> list[Use]:
    """The uses of APIs that a release removed."""
    removed = _REMOVED[release]
    found = []
    for manifest in subject.bundle.manifests:
        value = manifest.value
        kind, version = text(value["kind"]), text(value.get("apiVersion"))
        if kind in removed.get(version, ()):
            name = text(member(value, "metadata").get("name"))
            found.append(Use(kind, name, manifest.path, ("apiVersion",)))
        if release == "1.25.0" and kind == CSV_KIND and version == CSV_V1ALPHA1:
            found += _described(value, manifest.path, removed)
            found += _permitted(value, manifest.path)
    return found


def _described(csv: Mapping[str, Any], file: str, removed: Mapping[str, tuple[str, ...]]) -> list[Use]:
    found = []
    for path, resource in _resources(csv):
        kind, version = text(resource.get("kind")), text(resource.get("version"))
        if kind in removed.get(version, ()):
            found.append(Use(kind, f"listed as a resource of a CRD ({version})", file, path))
    return found


def _resources(csv: Mapping[str, Any]) -> list[tuple[Path, Mapping[str, Any]]]:
    found: list[tuple[Path, Mapping[str, Any]]] = []
    for group in ("owned", "required"):
        for i, crd in enumerate(items(csv, "spec", "customresourcedefinitions", group)):
            for j, resource in enumerate(items(crd, "resources")):
                if isinstance(resource, dict):
                    path: Path = ("spec", "customresourcedefinitions", group, i, "resources", j)
                    found.append((path, resource))
    return found


def _permitted(csv: Mapping[str, Any], file: str) -> list[Use]:
    described = {text(resource.get("kind")).lower() + "s" for _, resource in _resources(csv)}
    found = []
    for part in ("clusterPermissions", "permissions"):
        for i, permission in enumerate(items(csv, "spec", "install", "spec", part)):
            for j, rule in enumerate(items(permission, "rules")):
                group, resource = _REMOVED_RESOURCE
                named = group in items(rule, "apiGroups") and resource in items(rule, "resources")
                if named and resource not in described:
                    path: Path = ("spec", "install", "spec", part, i, "rules", j)
                    found.append(Use("a right to", resource, file, path, only_warn=True))
    return found
