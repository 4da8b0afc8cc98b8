"""Where a Pod goes: the first node, in order of free room, that its wishes and requests allow.

Honoured are cordons, taints, nodeSelector, required node affinity, resource requests, the number of Pods,
claims that wait for their first consumer, and the annotation that makes a node full. Preferences, Pod
(anti-)affinity, topology spread and preemption are not: every simulated node is as good as any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podium.api.conditions import condition, holds_since, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.schema import quantity
from podium.simulator import faults
from podium.simulator.objects import (
    annotations_of,
    labels_of,
    name,
    namespace,
    spec,
    status,
)
from podium.simulator.plan import Bind, Note, Plan, Update, UpdateStatus

COMPONENT = "simulated-scheduler"
DEFAULT_SCHEDULER = "default-scheduler"
SELECTED_NODE = "volume.kubernetes.io/selected-node"

Amounts = Mapping[str, int]  # thousandths by resource name


@dataclass(frozen=True, slots=True)
class Claims:
    """What the Pod's claims mean for its placement."""

    problem: str = ""  # why no node will do
    waiting: tuple[Object, ...] = ()  # unbound, and told to wait for a consumer
    bound: bool = True  # nothing stands in the way of binding


@dataclass(slots=True)
class Usage:
    """What the Pods of one node take."""

    pods: int = 0
    amounts: Counter[str] = field(default_factory=Counter)

    def add(self, pod_spec: Object) -> None:
        """Count one more Pod."""
        self.pods += 1
        self.amounts.update(requests(pod_spec))


def decide(
    pod: Object, nodes: Sequence[Object], usage: Mapping[str, Usage], claims: Claims, now: datetime
) -> Plan:
    """Bind the Pod, or say why that is impossible."""
    if claims.problem:
        return _refuse(pod, _unavailable(len(nodes), claims.problem, _USELESS), now)
    fitting, reasons = [], Counter[str]()
    for node in nodes:
        found = obstacles(pod, node, usage.get(name(node)) or Usage())
        reasons.update(found)
        if not found:
            fitting.append(node)
    if not fitting:
        return _refuse(pod, _explain(len(nodes), reasons), now)
    chosen = name(min(fitting, key=lambda node: _load(usage.get(name(node)) or Usage())))
    unclaimed = [c for c in claims.waiting if annotations_of(c).get(SELECTED_NODE) != chosen]
    if claims.waiting:
        # The provisioner acts on the annotation; its volumes bring us back here.
        return Plan([Update(_with_selected_node(claim, chosen)) for claim in unclaimed])
    if not claims.bound:
        return Plan()
    told = f"Successfully assigned {namespace(pod)}/{name(pod)} to {chosen}"
    return Plan([Bind(pod, chosen), Note(pod, "Scheduled", told, COMPONENT)])


def is_ours(pod: Object) -> bool:
    """Whether the Pod waits for the default scheduler."""
    wanted = spec(pod)
    return (
        not wanted.get("nodeName")
        and wanted.get("schedulerName", DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        and not wanted.get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and status(pod).get("phase") not in ("Succeeded", "Failed")
    )


def obstacles(pod: Object, node: Object, usage: Usage) -> list[str]:
    """Why the node cannot take the Pod, in kube-scheduler's words; empty if it can."""
    mismatched = mismatches(pod, node)
    if mismatched:
        return mismatched
    wanted = spec(pod)
    room = status(node).get("allocatable") or {}
    found = []
    full = annotations_of(node).get(faults.NODE_FULL) == "true"
    if full or usage.pods + 1 > quantity.parse(str(room.get("pods", "110"))).value:
        found.append("Too many pods")
    for resource, amount in requests(wanted).items():
        if amount and usage.amounts[resource] + amount > quantity.parse(str(room.get(resource, "0"))).milli:
            found.append(f"Insufficient {resource}")
    return found


def mismatches(pod: Object, node: Object) -> list[str]:
    """Why the node is none for this Pod, however empty it is."""
    wanted = spec(pod)
    if spec(node).get("unschedulable") and not _tolerates(wanted, _CORDON):
        return ["node(s) were unschedulable"]
    if not all(_tolerates(wanted, taint) for taint in spec(node).get("taints") or ()):
        return ["node(s) had untolerated taint(s)"]
    if not _matches_node(wanted, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return []


def requests(pod_spec: Object) -> Amounts:
    """What a Pod asks for: its containers together, or its greediest init container if that is more."""
    running, peak = Counter[str](), Counter[str]()
    for container in pod_spec.get("containers") or ():
        running.update(_requests(container))
    sidecars = Counter[str]()
    for container in pod_spec.get("initContainers") or ():
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars.update(asked)
        else:
            peak |= sidecars + asked
    total = (running + sidecars) | peak
    for resource, amount in (pod_spec.get("overhead") or {}).items():
        total[resource] += quantity.parse(str(amount)).milli
    return total


def claims_of(pod: Object, claims: Mapping[str, Object], classes: Mapping[str, Object]) -> Claims:
    """The state of the claims that a Pod uses; `claims` are those of its namespace."""
    waiting, unbound = [], False
    for claim_name in claim_names(pod):
        claim = claims.get(claim_name)
        if claim is None:
            return Claims(f'persistentvolumeclaim "{claim_name}" not found', bound=False)
        if claim["metadata"].get("deletionTimestamp"):
            return Claims(f'persistentvolumeclaim "{claim_name}" is being deleted', bound=False)
        if status(claim).get("phase") == "Bound":
            continue
        storage = classes.get(spec(claim).get("storageClassName") or "") or {}
        if spec(claim).get("volumeName"):
            unbound = True
        elif storage.get("volumeBindingMode") == "WaitForFirstConsumer":
            waiting.append(claim)
        else:
            return Claims("pod has unbound immediate PersistentVolumeClaims", bound=False)
    return Claims(waiting=tuple(waiting), bound=not unbound)


def claim_names(pod: Object) -> list[str]:
    """The claims that a Pod mounts, those of its generic ephemeral volumes included."""
    found = []
    for volume in spec(pod).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            found.append(f"{name(pod)}-{volume['name']}")
    return found


# --- how ------------------------------------------------------------------------------------------------

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_USELESS = "Preemption is not helpful for scheduling"
_HELPED_BY_PREEMPTION = ("Too many pods", "Insufficient ")


def _explain(total: int, reasons: Counter[str]) -> str:
    if not total:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    # No Pod here has a lower priority that matters, so preemption never helps.
    full = all(reason.startswith(_HELPED_BY_PREEMPTION) for reason in reasons)
    return _unavailable(total, listed, "No preemption victims found for incoming pod" if full else _USELESS)


def _unavailable(total: int, why: str, preemption: str) -> str:
    none = f"0/{total} nodes are available"
    return f"{none}: {why}. preemption: {none}: {total} {preemption}."


def _refuse(pod: Object, message: str, now: datetime) -> Plan:
    old = condition(pod, "PodScheduled")
    if old is not None and (old.get("reason"), old.get("message")) == ("Unschedulable", message):
        return Plan()
    since = holds_since(old, "False", timestamp(now))
    new = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "Unschedulable",
        "message": message,
    }
    others = other_conditions(pod, "PodScheduled")
    changed = {**pod, "status": {**status(pod), "conditions": [*others, new]}}
    return Plan([UpdateStatus(changed), Note(pod, "FailedScheduling", message, COMPONENT, warning=True)])


def _with_selected_node(claim: Object, node: str) -> Object:
    metadata = {**claim["metadata"], "annotations": {**annotations_of(claim), SELECTED_NODE: node}}
    return {**claim, "metadata": metadata}


def _load(usage: Usage) -> tuple[int, int]:
    return usage.amounts["cpu"], usage.pods


def _requests(container: Object) -> Counter[str]:
    asked = (container.get("resources") or {}).get("requests") or {}
    return Counter({resource: quantity.parse(str(amount)).milli for resource, amount in asked.items()})


def _tolerates(pod_spec: Object, taint: Object) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    return any(_covers(toleration, taint) for toleration in pod_spec.get("tolerations") or ())


def _covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def _matches_node(pod_spec: Object, node: Object) -> bool:
    selected = (pod_spec.get("nodeSelector") or {}).items()
    if any(labels_of(node).get(key) != value for key, value in selected):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def _matches_term(term: Object, node: Object) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return _all_match(expressions, labels_of(node)) and _all_match(fields, {"metadata.name": name(node)})


def _all_match(expressions: Iterable[Object], values: Mapping[str, str]) -> bool:
    return all(_matches_expression(expression, values.get(expression["key"])) for expression in expressions)


def _matches_expression(expression: Object, value: str | None) -> bool:
    given = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in given
        case "NotIn":
            return value not in given
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            if value is None or not value.lstrip("-").isdigit() or not given:
                return False
            return int(value) > int(given[0]) if operator == "Gt" else int(value) < int(given[0])
