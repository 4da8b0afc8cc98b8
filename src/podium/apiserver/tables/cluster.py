"""Rows of nodes, namespaces, events, configuration, and the classes and quotas that a cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from podium.api.conditions import condition
from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Printer,
    age,
    column,
    flag,
    number,
    since,
    wide,
)


def name_and_age(obj: Object, now: datetime) -> list[Any]:
    """The cells of kinds that show nothing else."""
    return [obj["metadata"].get("name", ""), age(obj, now)]


# --- nodes and namespaces -------------------------------------------------------------------------------

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _node_cells(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    info, addresses = status.get("nodeInfo") or {}, status.get("addresses") or ()
    kernel = info.get("kernelVersion") or UNKNOWN
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        obj["metadata"].get("name", ""),
        _node_status(obj, status),
        ",".join(_roles(obj["metadata"].get("labels") or {})) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(addresses, "InternalIP"),
        _address(addresses, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel + architecture,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Object, status: Object) -> str:
    ready = ""
    for found in status.get("conditions") or ():  # of several, the last counts
        if found.get("type") == "Ready":
            ready = "Ready" if found.get("status") == "True" else "NotReady"
    cordoned = ",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else ""
    return (ready or "Unknown") + cordoned


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE, "")}) - {""})


def _address(addresses: Sequence[Object], kind: str) -> str:
    return next((found["address"] for found in addresses if found.get("type") == kind), NONE)


def _namespace_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _component_cells(obj: Object, now: datetime) -> list[Any]:
    for found in obj.get("conditions") or ():
        if found.get("type") == "Healthy":
            health = "Healthy" if found.get("status") == "True" else "Unhealthy"
            return [obj["metadata"].get("name", ""), health, found.get("message", ""), found.get("error", "")]
    return [obj["metadata"].get("name", ""), "Unknown", "", ""]


# --- events ---------------------------------------------------------------------------------------------


def _event_cells(obj: Object, now: datetime) -> list[Any]:
    # events.k8s.io gave the fields of core new names.
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    kind = about.get("kind", "").lower()
    reporter = (
        source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    )
    instance = source.get("host") or obj.get("reportingInstance")
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{reporter}, {instance}" if instance else reporter,
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first, now),
        count,
        obj["metadata"].get("name", ""),
    ]


_EVENT = Printer(
    (
        column("Last Seen", "Time since it last happened"),
        column("Type", "Normal or Warning"),
        column("Reason", "What happened, in one word for machines"),
        column("Object", "What it happened to"),
        wide("Subobject", "Which part of that object"),
        wide("Source", "Who reports it"),
        column("Message", "What happened, for people"),
        wide("First Seen", "Time since it first happened"),
        wide("Count", "How often it happened"),
        column("Name", "Name of the event", format_="name", priority=1),
    ),
    _event_cells,
)

# --- configuration --------------------------------------------------------------------------------------


def _secret_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _config_map_cells(obj: Object, now: datetime) -> list[Any]:
    size = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"].get("name", ""), size, age(obj, now)]


def _quota_cells(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown: dict[bool, list[str]] = {True: [], False: []}
    for resource in sorted(hard):
        text = f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
        shown[resource.startswith("limits.")].append(text)
    return [obj["metadata"].get("name", ""), ", ".join(shown[False]), ", ".join(shown[True]), age(obj, now)]


def _lease_cells(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"].get("name", ""),
        (obj.get("spec") or {}).get("holderIdentity") or "",
        age(obj, now),
    ]


def _priority_class_cells(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"].get("name", ""),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy") or "",
    ]


def _runtime_class_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), obj.get("handler", ""), age(obj, now)]


# --- devices --------------------------------------------------------------------------------------------


def _claim_cells(obj: Object, now: datetime) -> list[Any]:
    status, states = obj.get("status") or {}, []
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    if deleted:
        states.append("deleted")
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [obj["metadata"].get("name", ""), ",".join(states), age(obj, now)]


def _slice_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [
        obj["metadata"].get("name", ""),
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        pool,
        age(obj, now),
    ]


# --- aggregation ----------------------------------------------------------------------------------------


def _api_service_cells(obj: Object, now: datetime) -> list[Any]:
    service = (obj.get("spec") or {}).get("service")
    available = condition(obj, "Available")
    status = "Unknown" if available is None else available.get("status", "")
    if available is not None and status != "True" and available.get("reason"):
        status = f"{status} ({available['reason']})"
    shown = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    return [obj["metadata"].get("name", ""), shown, status, age(obj, now)]


_NODE = Printer(
    (
        NAME,
        column("Status", "Whether the node is ready, and whether it takes Pods"),
        column("Roles", "Roles that labels give to the node"),
        AGE,
        column("Version", "Version of the kubelet"),
        wide("Internal-IP", "Address within the cluster"),
        wide("External-IP", "Address from outside"),
        wide("OS-Image", "Operating system"),
        wide("Kernel-Version", "Kernel and architecture"),
        wide("Container-Runtime", "Container runtime and its version"),
    ),
    _node_cells,
)

_PRIORITY_CLASS = Printer(
    (
        NAME,
        number("Value", "Priority of Pods of the class"),
        flag("Global-Default", "Whether Pods without a class get this one"),
        AGE,
        column("PreemptionPolicy", "Whether Pods of the class may evict others"),
    ),
    _priority_class_cells,
)

PRINTERS = {
    ("", "nodes"): _NODE,
    ("", "namespaces"): Printer((NAME, column("Status", "Active or Terminating"), AGE), _namespace_cells),
    ("", "componentstatuses"): Printer(
        (
            NAME,
            column("Status", "Whether the component is healthy"),
            column("Message", "What it said when asked"),
            column("Error", "Why it could not be asked"),
        ),
        _component_cells,
    ),
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _EVENT,
    ("", "secrets"): Printer(
        (NAME, column("Type", "What the secret is for"), column("Data", "Number of entries"), AGE),
        _secret_cells,
    ),
    ("", "configmaps"): Printer((NAME, column("Data", "Number of entries"), AGE), _config_map_cells),
    ("", "serviceaccounts"): Printer((NAME, AGE), name_and_age),
    ("", "resourcequotas"): Printer(
        (
            NAME,
            column("Request", "What is used of each limited request"),
            column("Limit", "What is used of each limited limit"),
            AGE,
        ),
        _quota_cells,
    ),
    ("coordination.k8s.io", "leases"): Printer(
        (NAME, column("Holder", "Who holds the lease"), AGE), _lease_cells
    ),
    ("scheduling.k8s.io", "priorityclasses"): _PRIORITY_CLASS,
    ("node.k8s.io", "runtimeclasses"): Printer(
        (NAME, column("Handler", "Configuration of the container runtime"), AGE), _runtime_class_cells
    ),
    ("resource.k8s.io", "deviceclasses"): Printer((NAME, AGE), name_and_age),
    ("resource.k8s.io", "resourceclaimtemplates"): Printer((NAME, AGE), name_and_age),
    ("resource.k8s.io", "resourceclaims"): Printer(
        (NAME, column("State", "Whether devices are allocated and reserved"), AGE), _claim_cells
    ),
    ("resource.k8s.io", "resourceslices"): Printer(
        (
            NAME,
            column("Node", "Node that has the devices"),
            column("Driver", "Driver of the devices"),
            column("Pool", "Pool that the devices belong to"),
            AGE,
        ),
        _slice_cells,
    ),
    ("apiregistration.k8s.io", "apiservices"): Printer(
        (
            NAME,
            column("Service", "Service that answers for the group, or Local"),
            column("Available", "Whether it answers"),
            AGE,
        ),
        _api_service_cells,
    ),
}
