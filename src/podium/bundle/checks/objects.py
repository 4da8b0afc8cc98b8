"""The objects beside the ClusterServiceVersion and the CRDs: allowed kinds, sound metadata, no namespace."""

from __future__ import annotations

from podium.bundle.checks import metadata
from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import CRD_KIND, CSV_KIND, member, text

SUPPORTED_KINDS = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterServiceVersion",
        "ConfigMap",
        "ConsoleCLIDownload",
        "ConsoleLink",
        "ConsolePlugin",
        "ConsoleQuickStart",
        "ConsoleYAMLSample",
        "CustomResourceDefinition",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "PriorityClass",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
        "VerticalPodAutoscaler",
    }
)


def check(subject: Subject, report: Report) -> None:
    """Reports objects that a bundle must not hold, or not so."""
    for manifest in subject.bundle.manifests:
        kind = text(manifest.value["kind"])
        if kind in (CSV_KIND, CRD_KIND):
            continue
        meta = member(manifest.value, "metadata")
        about = f"{kind} {text(meta.get('name'))}".rstrip()
        if kind not in SUPPORTED_KINDS:
            report.error(
                "unsupported-kind",
                f"{kind} is not supported in a registry+v1 bundle",
                subject=about,
                file=manifest.path,
                path=("kind",),
            )
            continue
        for field, problem in metadata.problems(meta):
            rule = "namespace-forbidden" if field == "namespace" else "invalid-metadata"
            report.error(
                rule,
                f"metadata.{field}: {problem}",
                subject=about,
                file=manifest.path,
                path=("metadata", field),
            )
