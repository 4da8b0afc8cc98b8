"""StatefulSets: numbered Pods with a name and volumes of their own, made and replaced in order.

With ordered management one Pod moves at a time and everything waits for it; in parallel nothing waits for
anything but updates, which always go from the highest ordinal down and one by one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from podium.api.kinds import Object
from podium.simulator import revisions
from podium.simulator.objects import (
    is_available,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name,
    namespace,
    next_available,
    phase,
    pod_from,
    spec,
    status,
    without_empty,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Write, set_status
from podium.simulator.revisions import REVISION_LABEL, History

COMPONENT = "simulated-statefulset-controller"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class _Set:
    """A StatefulSet with everything that its decisions look at."""

    object: Object
    pods: dict[int, Object]
    history: History
    claims: Collection[str]
    now: datetime

    @property
    def name(self) -> str:
        return name(self.object)

    @property
    def ordinals(self) -> range:
        start = (spec(self.object).get("ordinals") or {}).get("start") or 0
        return range(start, start + int(spec(self.object).get("replicas", 1)))

    @property
    def is_ordered(self) -> bool:
        return bool(spec(self.object).get("podManagementPolicy") != "Parallel")

    @property
    def update_name(self) -> str:
        return name(self.history.update)

    @property
    def current_name(self) -> str:
        """The revision from which Pods below the partition are made."""
        stored = status(self.object).get("currentRevision")
        known = {name(revision) for revision in self.history.known}
        return stored if stored in known else self.update_name

    @property
    def partition(self) -> int:
        strategy = spec(self.object).get("updateStrategy") or {}
        return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)

    @property
    def rolls(self) -> bool:
        strategy = spec(self.object).get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    def is_healthy(self, pod: Object) -> bool:
        minimum = spec(self.object).get("minReadySeconds") or 0
        return not is_deleting(pod) and phase(pod) == "Running" and is_available(pod, minimum, self.now)


def decide(
    stateful_set: Object,
    pods: Sequence[Object],
    stored_revisions: Sequence[Object],
    claims: Collection[str],
    now: datetime,
) -> Plan:
    """The next step of a StatefulSet; `claims` are the names of the claims in its namespace."""
    found = revisions.history(stateful_set, stored_revisions)
    view = _Set(stateful_set, _by_ordinal(stateful_set, pods), found, claims, now)
    if is_deleting(stateful_set):
        return Plan(set_status(stateful_set, _status(view)))
    if found.writes:
        return Plan(found.writes)
    writes = _populate(view)
    # Ordered management does nothing else while one of the Pods is not well.
    if not writes and (not view.is_ordered or _all_healthy(view)):
        writes = _condemn(view) or _update(view)
    plan = Plan(list(writes)).add(*set_status(stateful_set, _status(view)))
    if not writes:
        in_use = {labels_of(pod).get(REVISION_LABEL, "") for pod in pods} | {view.current_name}
        plan.add(*revisions.truncate(stateful_set, found, in_use))
    return plan.look_again(next_available(pods, spec(stateful_set).get("minReadySeconds") or 0, now))


def _by_ordinal(stateful_set: Object, pods: Sequence[Object]) -> dict[int, Object]:
    pattern = re.compile(re.escape(name(stateful_set)) + r"-(\d+)")
    matched = ((pattern.fullmatch(name(pod)), pod) for pod in pods)
    return {int(match[1]): pod for match, pod in matched if match}


# --- steps ----------------------------------------------------------------------------------------------


def _populate(view: _Set) -> list[Write]:
    """Pods that are missing or have ended, from the lowest ordinal; nothing if all are as they should be."""
    writes: list[Write] = []
    for ordinal in view.ordinals:
        pod = view.pods.get(ordinal)
        if pod is None:
            writes += _make(view, ordinal)
        elif is_finished(pod) and not is_deleting(pod):
            told = f"StatefulSet {view.object['metadata']['namespace']}/{view.name} is recreating "
            told += f"{phase(pod)} Pod {name(pod)}"
            writes += [Delete(pod), Note(view.object, "RecreatingTerminatedPod", told, COMPONENT)]
        elif not view.is_healthy(pod) and view.is_ordered:
            return writes
        if writes and view.is_ordered:
            return writes
    return writes


def _condemn(view: _Set) -> list[Write]:
    """Pods beyond the wanted ones, from the highest ordinal."""
    condemned = sorted((o for o in view.pods if o not in view.ordinals), reverse=True)
    writes: list[Write] = []
    for ordinal in condemned:
        pod = view.pods[ordinal]
        if is_deleting(pod):
            if view.is_ordered:
                return writes
            continue
        writes += _delete(view, pod)
        if view.is_ordered:
            return writes
    return writes


def _update(view: _Set) -> list[Write]:
    """The next Pod to replace by one of the new revision."""
    if not view.rolls or any(ordinal not in view.ordinals for ordinal in view.pods):
        return []
    first = max(view.ordinals.start, view.partition)
    for ordinal in reversed(range(first, view.ordinals.stop)):
        pod = view.pods.get(ordinal)
        if pod is None or is_deleting(pod):
            return []
        if labels_of(pod).get(REVISION_LABEL) != view.update_name:
            return _delete(view, pod)
        if not view.is_healthy(pod):
            return []
    return []


def _all_healthy(view: _Set) -> bool:
    wanted = [view.pods.get(ordinal) for ordinal in view.ordinals]
    return all(pod is not None and view.is_healthy(pod) for pod in wanted)


# --- Pods and claims ------------------------------------------------------------------------------------


def _make(view: _Set, ordinal: int) -> list[Write]:
    pod_name = f"{view.name}-{ordinal}"
    revision = _revision_for(view, ordinal)
    template = revisions.template_of(revision)
    pod = pod_from(template, view.object, name=pod_name, generateName=f"{view.name}-")
    pod["metadata"]["labels"] = {
        **(pod["metadata"].get("labels") or {}),
        POD_INDEX: str(ordinal),
        REVISION_LABEL: name(revision),
        POD_NAME: pod_name,
    }
    claimed = _claims(view, ordinal)
    pod["spec"] = {
        **pod["spec"],
        "hostname": pod_name,
        "subdomain": spec(view.object).get("serviceName") or "",
        "volumes": _volumes(pod["spec"], claimed),
    }
    writes: list[Write] = []
    for claim in claimed.values():
        if name(claim) not in view.claims:
            told = f"create Claim {name(claim)} Pod {pod_name} in StatefulSet {view.name} success"
            writes.append(Create(claim, Note(view.object, "SuccessfulCreate", told, COMPONENT)))
    told = f"create Pod {pod_name} in StatefulSet {view.name} successful"
    writes.append(Create(pod, Note(view.object, "SuccessfulCreate", told, COMPONENT)))
    return writes


def _delete(view: _Set, pod: Object) -> list[Write]:
    told = f"delete Pod {name(pod)} in StatefulSet {view.name} successful"
    return [Delete(pod), Note(view.object, "SuccessfulDelete", told, COMPONENT)]


def _revision_for(view: _Set, ordinal: int) -> Object:
    # A Pod that the rollout has not reached comes back as it was.
    if view.rolls and ordinal >= max(view.partition, view.ordinals.start):
        return view.history.update
    return next(r for r in view.history.known if name(r) == view.current_name)


def _claims(view: _Set, ordinal: int) -> dict[str, Object]:
    """The claims of one Pod by the name of their template."""
    made = {}
    for template in spec(view.object).get("volumeClaimTemplates") or ():
        metadata = template.get("metadata") or {}
        labels = {
            **((spec(view.object).get("selector") or {}).get("matchLabels") or {}),
            **(metadata.get("labels") or {}),
        }
        given: Object = {
            "name": f"{metadata['name']}-{view.name}-{ordinal}",
            "namespace": namespace(view.object),
            "labels": labels,
        }
        if metadata.get("annotations"):
            given["annotations"] = metadata["annotations"]
        made[metadata["name"]] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": given,
            "spec": template.get("spec") or {},
        }
    return made


def _volumes(pod_spec: Object, claimed: dict[str, Object]) -> list[Object]:
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": name(claim)}}
        for volume, claim in claimed.items()
    ]
    return [*own, *(v for v in pod_spec.get("volumes") or () if v["name"] not in claimed)]


# --- status ---------------------------------------------------------------------------------------------


def _status(view: _Set) -> Object:
    made = [pod for pod in view.pods.values() if not is_finished(pod)]
    minimum = spec(view.object).get("minReadySeconds") or 0
    wanted = len(view.ordinals)
    ready = sum(is_ready(pod) and not is_deleting(pod) for pod in made)

    def of_revision(revision: str) -> int:
        return sum(labels_of(p).get(REVISION_LABEL) == revision and not is_deleting(p) for p in made)

    current, updated = view.current_name, of_revision(view.update_name)
    complete = view.rolls and updated == wanted == ready == len(made)
    if complete:
        current = view.update_name
    counts = without_empty(
        {
            "observedGeneration": view.object["metadata"].get("generation"),
            "readyReplicas": ready,
            "currentReplicas": of_revision(current),
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": view.update_name,
            "conditions": status(view.object).get("conditions"),
        }
    )
    available = sum(is_available(pod, minimum, view.now) and not is_deleting(pod) for pod in made)
    collisions = status(view.object).get("collisionCount") or 0
    return {
        **counts,
        "replicas": len(made),
        "availableReplicas": available,
        "collisionCount": collisions,
    }
