"""DaemonSets: one Pod on every node that would take it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from podium.api.kinds import Object
from podium.simulator import revisions, scheduling
from podium.simulator.objects import (
    by_age,
    count_of,
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name,
    next_available,
    phase,
    pod_from,
    spec,
    status,
    without_empty,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Write, set_status
from podium.simulator.revisions import REVISION_LABEL

COMPONENT = "simulated-daemonset-controller"
GENERATION = "pod-template-generation"
_DEPRECATED_GENERATION = "deprecated.daemonset.template.generation"

# Daemons run where ordinary Pods would not be put.
_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


def decide(
    daemon_set: Object,
    pods: Sequence[Object],
    nodes: Sequence[Object],
    stored_revisions: Sequence[Object],
    now: datetime,
) -> Plan:
    """The next step of a DaemonSet."""
    found = revisions.history(daemon_set, stored_revisions)
    digest = revisions.hash_of(found.update)
    wanted = {name(node) for node in nodes if should_run(daemon_set, node)}
    by_node = _by_node(pods)
    new = _status(daemon_set, wanted, by_node, digest, now)
    if is_deleting(daemon_set):
        return Plan(set_status(daemon_set, new))
    if found.writes:
        return Plan(found.writes)
    writes = _place(daemon_set, wanted, by_node, digest) or _update(daemon_set, wanted, by_node, digest, now)
    plan = Plan(list(writes)).add(*set_status(daemon_set, new))
    if not writes:
        used = {labels_of(pod).get(REVISION_LABEL) for pod in pods}
        in_use = {name(r) for r in found.known if revisions.hash_of(r) in used}
        plan.add(*revisions.truncate(daemon_set, found, in_use))
    return plan.look_again(next_available(pods, spec(daemon_set).get("minReadySeconds") or 0, now))


def should_run(daemon_set: Object, node: Object) -> bool:
    """Whether the node is one for this DaemonSet, however full it is."""
    pod = _pod(daemon_set, name(node), "")
    return not is_deleting(node) and not scheduling.mismatches(pod, node)


def _by_node(pods: Sequence[Object]) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for pod in by_age(pods):
        found.setdefault(_target(pod), []).append(pod)
    return found


def _target(pod: Object) -> str:
    """The node that a Pod is on, or was made for."""
    if spec(pod).get("nodeName"):
        return str(spec(pod)["nodeName"])
    affinity = ((spec(pod).get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for expression in term.get("matchFields") or ():
            if expression.get("key") == "metadata.name" and expression.get("values"):
                return str(expression["values"][0])
    return ""


# --- steps ----------------------------------------------------------------------------------------------


def _place(
    daemon_set: Object, wanted: set[str], by_node: dict[str, list[Object]], digest: str
) -> list[Write]:
    """Pods for nodes without one, and the end of Pods that are ended, surplus or in the wrong place."""
    writes: list[Write] = []
    surplus: list[Object] = []
    for node in sorted(wanted):
        there = by_node.get(node, [])
        alive = [pod for pod in there if not is_finished(pod) and not is_deleting(pod)]
        ended = [pod for pod in there if is_finished(pod) and not is_deleting(pod)]
        surplus += ended + alive[1:]
        if not there:
            told = Note(daemon_set, "SuccessfulCreate", "Created pod: {}", COMPONENT)
            writes.append(Create(_pod(daemon_set, node, digest), told))
    for node, there in by_node.items():
        if node not in wanted:
            surplus += [pod for pod in there if not is_deleting(pod)]
    return writes + _deletions(daemon_set, surplus)


def _update(
    daemon_set: Object, wanted: set[str], by_node: dict[str, list[Object]], digest: str, now: datetime
) -> list[Write]:
    """Old Pods to replace now, within maxUnavailable."""
    strategy = spec(daemon_set).get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    allowed = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    budget = max(1, count_of(allowed, len(wanted), round_up=True))
    minimum = spec(daemon_set).get("minReadySeconds") or 0
    old, unavailable = [], 0
    for node in sorted(wanted):
        there = [pod for pod in by_node.get(node, []) if not is_deleting(pod)]
        available = bool(there) and is_available(there[0], minimum, now)
        unavailable += not available
        if there and labels_of(there[0]).get(REVISION_LABEL) != digest:
            old.append((available, there[0]))
    # Old Pods that serve nobody are replaced at no cost.
    useless = [pod for available, pod in old if not available]
    useful = [pod for available, pod in old if available]
    return _deletions(daemon_set, useless + useful[: max(0, budget - unavailable)])


def _deletions(daemon_set: Object, pods: Sequence[Object]) -> list[Write]:
    writes: list[Write] = [Delete(pod) for pod in pods]
    for pod in pods:
        what = f"Deleted pod: {name(pod)}"
        if phase(pod) == "Failed":
            told = f"Found failed daemon pod {pod['metadata']['namespace']}/{name(pod)} on node "
            told += f"{_target(pod)}, will try to kill it"
            writes.append(Note(daemon_set, "FailedDaemonPod", told, COMPONENT, warning=True))
        writes.append(Note(daemon_set, "SuccessfulDelete", what, COMPONENT))
    return writes


# --- Pods and status ------------------------------------------------------------------------------------

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod(daemon_set: Object, node: str, digest: str) -> Object:
    template = spec(daemon_set).get("template") or {}
    pod = pod_from(template, daemon_set, generateName=f"{name(daemon_set)}-")
    labels = {**(pod["metadata"].get("labels") or {}), REVISION_LABEL: digest}
    generation = (daemon_set["metadata"].get("annotations") or {}).get(_DEPRECATED_GENERATION)
    labels[GENERATION] = generation or str(daemon_set["metadata"].get("generation") or 1)
    pod["metadata"]["labels"] = labels
    given = pod["spec"]
    tolerations = list(given.get("tolerations") or ())
    tolerations += [t for t in _TOLERATIONS if t not in tolerations]
    if given.get("hostNetwork"):
        network = {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"}
        tolerations.append({**network, "effect": "NoSchedule"})
    pod["spec"] = {**given, "tolerations": tolerations, "affinity": _pinned(given.get("affinity"), node)}
    return pod


def _pinned(affinity: Object | None, node: str) -> Object:
    """The template's affinity, narrowed to one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    of_node = (affinity or {}).get("nodeAffinity") or {}
    terms = (of_node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    narrowed = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    return {**(affinity or {}), "nodeAffinity": {**of_node, _REQUIRED: narrowed}}


def _status(
    daemon_set: Object, wanted: set[str], by_node: dict[str, list[Object]], digest: str, now: datetime
) -> Object:
    minimum = spec(daemon_set).get("minReadySeconds") or 0
    # The oldest Pod of a node is the one that counts.
    first = [pods[0] for node, pods in by_node.items() if node in wanted]
    misplaced = sum(node not in wanted for node in by_node)
    available = sum(is_available(pod, minimum, now) for pod in first)
    counts = without_empty(
        {
            "observedGeneration": daemon_set["metadata"].get("generation"),
            "updatedNumberScheduled": sum(labels_of(p).get(REVISION_LABEL) == digest for p in first),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "collisionCount": status(daemon_set).get("collisionCount"),
            "conditions": status(daemon_set).get("conditions"),
        }
    )
    return {
        **counts,
        "currentNumberScheduled": len(first),
        "numberMisscheduled": misplaced,
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(is_ready(pod) for pod in first),
    }
