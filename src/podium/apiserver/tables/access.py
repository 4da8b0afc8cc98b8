"""Rows of what decides over requests: role bindings, certificates, admission, and flow control."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from podium.api.conditions import condition
from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Printer,
    age,
    column,
    human_duration,
    number,
    wide,
)


def _binding_cells(obj: Object, now: datetime) -> list[Any]:
    role = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.setdefault(kind, []).append(name)
    return [
        obj["metadata"].get("name", ""),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        ", ".join(subjects["User"]),
        ", ".join(subjects["Group"]),
        ", ".join(subjects["ServiceAccount"]),
    ]


def _signing_request_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"].get("name", ""),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human_duration(seconds),
        _signing_status(obj),
    ]


def _signing_status(obj: Object) -> str:
    status = "Approved" if condition(obj, "Approved") else "Pending"
    if condition(obj, "Denied"):
        status = "Denied"
    if condition(obj, "Failed"):
        status += ",Failed"
    return f"{status},Issued" if (obj.get("status") or {}).get("certificate") else status


def _webhooks_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy_cells(rules: str) -> Callable[[Object, datetime], list[Any]]:
    def cells(obj: Object, now: datetime) -> list[Any]:
        spec = obj.get("spec") or {}
        kind, shown = spec.get("paramKind"), UNSET
        if kind is not None:
            shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [obj["metadata"].get("name", ""), len(spec.get(rules) or ()), shown, age(obj, now)]

    return cells


def _policy_binding_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    reference, shown = spec.get("paramRef") or {}, UNSET
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference.get("selector") is not None:
        shown = _go_selector(reference["selector"])
    return [obj["metadata"].get("name", ""), spec.get("policyName", ""), shown, age(obj, now)]


def _go_selector(selector: Object) -> str:
    """A LabelSelector as Go's debug output has it, which is what the real server shows here."""
    labels = selector.get("matchLabels") or {}
    pairs = "".join([f"{key}: {labels[key]}," for key in sorted(labels)])
    requirements = "".join(
        [
            f"LabelSelectorRequirement{{Key:{item['key']},Operator:{item['operator']},"
            f"Values:[{' '.join(item.get('values') or ())}],}},"
            for item in selector.get("matchExpressions") or ()
        ]
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def _flow_schema_cells(obj: Object, now: datetime) -> list[Any]:
    spec, dangling = obj.get("spec") or {}, condition(obj, "Dangling")
    method = spec.get("distinguisherMethod")
    return [
        obj["metadata"].get("name", ""),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method.get("type", ""),
        age(obj, now),
        "?" if dangling is None else dangling.get("status", ""),
    ]


def _priority_level_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited")
    shares: int | str = NONE
    queues: list[int | str] = [NONE, NONE, NONE]
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares") or 0
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            queues = [queuing.get(field, 0) for field in ("queues", "handSize", "queueLengthLimit")]
    return [obj["metadata"].get("name", ""), spec.get("type", ""), shares, *queues, age(obj, now)]


_BINDING = Printer(
    (
        NAME,
        column("Role", "Role that is given"),
        AGE,
        wide("Users", "Users who have it"),
        wide("Groups", "Groups who have it"),
        wide("ServiceAccounts", "Service accounts that have it"),
    ),
    _binding_cells,
)

_SIGNING_REQUEST = Printer(
    (
        NAME,
        AGE,
        column("SignerName", "Who is asked to sign"),
        column("Requestor", "Who asks"),
        column("RequestedDuration", "For how long the certificate should be valid"),
        column("Condition", "What became of the request"),
    ),
    _signing_request_cells,
)

_WEBHOOKS = Printer((NAME, number("Webhooks", "Number of webhooks"), AGE), _webhooks_cells)
_PARAM_KIND = column("ParamKind", "Kind of the objects that parametrize the policy")

_POLICY_BINDING = Printer(
    (
        NAME,
        column("PolicyName", "Policy that is put in force"),
        column("ParamRef", "Objects that parametrize it"),
        AGE,
    ),
    _policy_binding_cells,
)

_FLOW_SCHEMA = Printer(
    (
        NAME,
        column("PriorityLevel", "Priority level of the requests that match"),
        column("MatchingPrecedence", "Lower numbers are tried first"),
        column("DistinguisherMethod", "What tells flows apart"),
        AGE,
        column("MissingPL", "Whether the priority level does not exist"),
    ),
    _flow_schema_cells,
)

_PRIORITY_LEVEL = Printer(
    (
        NAME,
        column("Type", "Exempt or Limited"),
        column("NominalConcurrencyShares", "Share of the requests that run at once"),
        column("Queues", "Number of queues"),
        column("HandSize", "Queues that one flow is spread over"),
        column("QueueLengthLimit", "Requests that may wait in one queue"),
        AGE,
    ),
    _priority_level_cells,
)

_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"

PRINTERS = {
    (_RBAC, "rolebindings"): _BINDING,
    (_RBAC, "clusterrolebindings"): _BINDING,
    ("certificates.k8s.io", "certificatesigningrequests"): _SIGNING_REQUEST,
    (_ADMISSION, "mutatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies"): Printer(
        (NAME, number("Validations", "Number of rules"), _PARAM_KIND, AGE), _policy_cells("validations")
    ),
    (_ADMISSION, "mutatingadmissionpolicies"): Printer(
        (NAME, number("Mutations", "Number of mutations"), _PARAM_KIND, AGE), _policy_cells("mutations")
    ),
    (_ADMISSION, "validatingadmissionpolicybindings"): _POLICY_BINDING,
    (_ADMISSION, "mutatingadmissionpolicybindings"): _POLICY_BINDING,
    (_FLOW_CONTROL, "flowschemas"): _FLOW_SCHEMA,
    (_FLOW_CONTROL, "prioritylevelconfigurations"): _PRIORITY_LEVEL,
}
