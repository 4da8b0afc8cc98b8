"""Objects that could harm the cluster they are installed in: disruption budgets, priorities, wide rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.bundle import typed
from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import Manifest, items, member, name_of, text
from podium.bundle.typed import Builtin

_DEFAULT_SCCS = frozenset(
    {
        "anyuid",
        "hostaccess",
        "hostmount-anyuid",
        "hostnetwork",
        "node-exporter",
        "nonroot",
        "privileged",
        "restricted",
    }
)
_SHAPES = {
    "PodDisruptionBudget": Builtin("policy/v1.PodDisruptionBudget"),
    "PriorityClass": Builtin("scheduling/v1.PriorityClass"),
    "Role": Builtin("rbac/v1.Role"),
    "ClusterRole": Builtin("rbac/v1.ClusterRole"),
}


def check(subject: Subject, report: Report) -> None:
    """Reports objects that a careful cluster would not want."""
    checks: dict[str, Callable[[Manifest, Any, Report], None]] = {
        "PodDisruptionBudget": _disruption_budget,
        "PriorityClass": _priority_class,
        "Role": _rules,
        "ClusterRole": _rules,
    }
    for manifest in subject.bundle.manifests:
        kind = text(manifest.value["kind"])
        if kind not in checks:
            continue
        decoded = typed.decode(manifest.value, _SHAPES[kind], coerce=False)
        for problem in decoded.problems:
            report.error(
                "object-undecodable",
                f"error unmarshaling {kind}: {problem.message}",
                file=manifest.path,
                path=problem.path,
                subject=_title(manifest),
            )
        if not decoded.problems:
            checks[kind](manifest, decoded.value, report)


def _title(manifest: Manifest) -> str:
    return f"{manifest.value['kind']} {name_of(manifest.value)}"


def _disruption_budget(manifest: Manifest, value: Any, report: Report) -> None:
    spec = member(value, "spec")
    where: dict[str, Any] = {"subject": _title(manifest), "file": manifest.path}
    if spec.get("maxUnavailable") in (0, "0%"):
        message = "maxUnavailable field cannot be set to 0 or 0%: nodes could not be drained"
        report.error("pdb-max-unavailable", message, path=("spec", "maxUnavailable"), **where)
    if spec.get("minAvailable") == "100%":
        message = "minAvailable field cannot be set to 100%: nodes could not be drained"
        report.error("pdb-min-available", message, path=("spec", "minAvailable"), **where)


def _priority_class(manifest: Manifest, value: Any, report: Report) -> None:
    if value.get("globalDefault"):
        report.error(
            "priority-class-global",
            "globalDefault field cannot be set to true: it would change the priority of others' pods",
            subject=_title(manifest),
            file=manifest.path,
            path=("globalDefault",),
        )


def _rules(manifest: Manifest, value: Any, report: Report) -> None:
    for index, rule in enumerate(items(value, "rules")):
        where: dict[str, Any] = {"subject": _title(manifest), "file": manifest.path, "path": ("rules", index)}
        groups, resources, verbs = (set(items(rule, key)) for key in ("apiGroups", "resources", "verbs"))
        if (
            "policy" in groups
            and "poddisruptionbudgets" in resources
            and verbs & {"*", "create", "update", "patch"}
        ):
            message = (
                "RBAC includes permission to create/update poddisruptionbudgets, which could impact stability"
            )
            report.warn("rbac-disruption-budgets", message, **where)
        if (
            "security.openshift.io" in groups
            and "securitycontextconstraints" in resources
            and verbs & {"*", "delete", "update", "patch"}
            and _DEFAULT_SCCS & set(items(rule, "resourceNames"))
        ):
            message = "RBAC includes permission to modify default securitycontextconstraints"
            report.error("rbac-default-sccs", message, **where)
