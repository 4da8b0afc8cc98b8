"""Deployments: one ReplicaSet per template, replicas moved from the old ones to the new one within bounds.

The order of decisions follows the real controller: adopt, number the revisions, scale if the size changed,
else roll by one step, clean up, report. Each look makes the next step that is allowed now; the ReplicaSets'
progress brings the next look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from podium.api.kinds import Object
from podium.simulator import deploymentstatus, revisionnumbers
from podium.simulator.objects import (
    annotations_of,
    by_age,
    count_of,
    is_active,
    is_deleting,
    labels_of,
    name,
    namespace,
    owner_reference,
    short_hash,
    spec,
    status,
    with_annotations,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Update, Write

COMPONENT = "simulated-deployment-controller"
HASH_LABEL = "pod-template-hash"
DESIRED, MAXIMUM = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many Pods there may be too many, and how many too few, during a rollout."""

    surge: int
    unavailable: int

    @classmethod
    def of(cls, deployment: Object) -> Bounds:
        """The bounds that the Deployment's strategy sets for its size."""
        strategy = spec(deployment).get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return cls(0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        total = size(deployment)
        surge = count_of(rolling.get("maxSurge", "25%"), total, round_up=True)
        unavailable = count_of(rolling.get("maxUnavailable", "25%"), total, round_up=False)
        # Percentages of small numbers may both be nothing, and then nothing could ever move.
        if not surge and not unavailable:
            unavailable = 1
        return cls(surge, min(unavailable, total))


def size(deployment: Object) -> int:
    """How many replicas are asked for."""
    return int(spec(deployment).get("replicas", 1))


def decide(deployment: Object, replica_sets: Sequence[Object], pods: Sequence[Object], now: datetime) -> Plan:
    """The next step of a Deployment; `pods` are those of its ReplicaSets."""
    sets = by_age(replica_sets)
    current = current_set(deployment, sets)
    if is_deleting(deployment):
        return deploymentstatus.report(deployment, current, sets, Bounds.of(deployment), now)
    renumbered = revisionnumbers.renumber(deployment, current, sets)
    if renumbered:
        return Plan(renumbered)
    old = [found for found in sets if found is not current]
    if spec(deployment).get("paused") or _size_changed(deployment, sets):
        return _finish(deployment, current, sets, _scale(deployment, current, old), now)
    if is_recreate(deployment):
        return _finish(deployment, current, sets, _recreate(deployment, current, old, pods), now)
    if current is None:
        return _finish(deployment, None, sets, _new_set(deployment, sets), now)
    writes = _grow_new(deployment, current, sets) or _shrink_old(deployment, current, old)
    return _finish(deployment, current, sets, writes, now)


def is_recreate(deployment: Object) -> bool:
    """Whether all old Pods end before new ones are made."""
    return bool((spec(deployment).get("strategy") or {}).get("type") == "Recreate")


def current_set(deployment: Object, sets: Sequence[Object]) -> Object | None:
    """The oldest ReplicaSet whose template is the Deployment's."""
    wanted = spec(deployment).get("template")
    return next((found for found in sets if _plain_template(found) == wanted), None)


def _finish(
    deployment: Object, current: Object | None, sets: list[Object], writes: list[Write], now: datetime
) -> Plan:
    plan = Plan(list(writes))
    if not writes and current is not None:
        plan.add(*_clean_up(deployment, current, sets))
    return plan.join(
        deploymentstatus.report(
            deployment, current, sets, Bounds.of(deployment), now, created=_created(writes)
        )
    )


def _created(writes: list[Write]) -> str:
    return next((name(write.object) for write in writes if isinstance(write, Create)), "")


# --- ReplicaSets ----------------------------------------------------------------------------------------


def _plain_template(replica_set: Object) -> Object:
    template = spec(replica_set).get("template") or {}
    metadata = template.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": kept}}


def _new_set(deployment: Object, sets: list[Object]) -> list[Write]:
    template = spec(deployment)["template"]
    collisions = status(deployment).get("collisionCount") or 0
    digest = short_hash([template, collisions])
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    selector = spec(deployment).get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    bounds, total = Bounds.of(deployment), size(deployment)
    running = sum(size(found) for found in sets)
    first = total if is_recreate(deployment) else min(total, max(0, total + bounds.surge - running))
    replica_set: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name(deployment)}-{digest}",
            "namespace": namespace(deployment),
            "labels": labels,
            "annotations": revisionnumbers.annotations_for(deployment, sets) | _size_notes(deployment),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": first,
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    if spec(deployment).get("minReadySeconds"):
        replica_set["spec"]["minReadySeconds"] = spec(deployment)["minReadySeconds"]
    told = f"Scaled up replica set {name(replica_set)} from 0 to {first}"
    note = Note(deployment, "ScalingReplicaSet", told, COMPONENT) if first else None
    return [Create(replica_set, note)]


def _size_notes(deployment: Object) -> dict[str, str]:
    total = size(deployment)
    most = total + Bounds.of(deployment).surge
    return {DESIRED: str(total), MAXIMUM: str(most)}


def _resize(deployment: Object, replica_set: Object, count: int) -> list[Write]:
    """Give a ReplicaSet this size; none if it has it, and has it noted."""
    notes, before = _size_notes(deployment), size(replica_set)
    noted = all(annotations_of(replica_set).get(key) == value for key, value in notes.items())
    if before == count and noted:
        return []
    changed = with_annotations(replica_set, notes)
    writes: list[Write] = [Update({**changed, "spec": {**spec(replica_set), "replicas": count}})]
    if before != count:
        verb = "up" if count > before else "down"
        told = f"Scaled {verb} replica set {name(replica_set)} from {before} to {count}"
        writes.append(Note(deployment, "ScalingReplicaSet", told, COMPONENT))
    return writes


def _clean_up(deployment: Object, current: Object, sets: list[Object]) -> list[Write]:
    limit = spec(deployment).get("revisionHistoryLimit", 10)
    if not deploymentstatus.is_complete(deployment, status(deployment)):
        return []
    old = [found for found in sets if found is not current and not is_deleting(found)]
    old.sort(key=revisionnumbers.number)
    idle = [
        found
        for found in old[: max(0, len(old) - limit)]
        if not size(found)
        and not status(found).get("replicas")
        and (status(found).get("observedGeneration") or 0) >= (found["metadata"].get("generation") or 0)
    ]
    return [Delete(found) for found in idle]


# --- strategies -----------------------------------------------------------------------------------------


def _recreate(
    deployment: Object, current: Object | None, old: list[Object], pods: Sequence[Object]
) -> list[Write]:
    writes = [write for found in old if size(found) for write in _resize(deployment, found, 0)]
    if writes:
        return writes
    digest = labels_of(current).get(HASH_LABEL) if current is not None else None
    remaining = [pod for pod in pods if labels_of(pod).get(HASH_LABEL) != digest or current is None]
    if any(is_active(pod) or is_deleting(pod) for pod in remaining):
        return []
    if current is None:
        return _new_set(deployment, old)
    return _resize(deployment, current, size(deployment))


def _grow_new(deployment: Object, current: Object, sets: list[Object]) -> list[Write]:
    total, have = size(deployment), size(current)
    if have >= total:
        return _resize(deployment, current, total)
    room = total + Bounds.of(deployment).surge - sum(size(found) for found in sets)
    if room <= 0:
        return _resize(deployment, current, have)
    return _resize(deployment, current, have + min(room, total - have))


def _shrink_old(deployment: Object, current: Object, old: list[Object]) -> list[Write]:
    sizes = {name(found): size(found) for found in old if size(found)}
    if not sizes:
        return []
    least = size(deployment) - Bounds.of(deployment).unavailable
    new_unavailable = size(current) - (status(current).get("availableReplicas") or 0)
    surplus = sum(sizes.values()) + size(current) - least - new_unavailable
    if surplus <= 0:
        return []
    # Replicas that serve nobody go first, whatever their age.
    for found in old:
        unhealthy = sizes.get(name(found), 0) - (status(found).get("availableReplicas") or 0)
        taken = max(0, min(surplus, unhealthy))
        surplus -= taken
        if name(found) in sizes:
            sizes[name(found)] -= taken
    # A ReplicaSet that was just made smaller may still report Pods that are about to go.
    available = sum(min(size(s), status(s).get("availableReplicas") or 0) for s in [*old, current])
    removable = available - least
    for found in old:
        taken = max(0, min(removable, sizes.get(name(found), 0)))
        removable -= taken
        if name(found) in sizes:
            sizes[name(found)] -= taken
    return [
        write
        for found in old
        if name(found) in sizes and sizes[name(found)] != size(found)
        for write in _resize(deployment, found, sizes[name(found)])
    ]


# --- changes of size ------------------------------------------------------------------------------------


def _size_changed(deployment: Object, sets: list[Object]) -> bool:
    noted = [annotations_of(found).get(DESIRED) for found in sets if size(found)]
    return any(value is not None and value != str(size(deployment)) for value in noted)


def _scale(deployment: Object, current: Object | None, old: list[Object]) -> list[Write]:
    running = [found for found in [*old, *([current] if current else [])] if size(found)]
    total = size(deployment)
    if len(running) <= 1:
        # With none running the newest counts: it is the one that a resize is about.
        target = running[0] if running else current or (old[-1] if old else None)
        return [] if target is None else _resize(deployment, target, total)
    if current is not None and _is_saturated(deployment, current):
        return [write for found in old if size(found) for write in _resize(deployment, found, 0)]
    if is_recreate(deployment):
        return []
    allowed = total + Bounds.of(deployment).surge if total else 0
    shares = _proportional(running, allowed)
    return [write for found in running for write in _resize(deployment, found, shares[name(found)])]


def _is_saturated(deployment: Object, current: Object) -> bool:
    total = size(deployment)
    noted = annotations_of(current).get(DESIRED)
    return (
        size(current) == total and noted == str(total) and status(current).get("availableReplicas") == total
    )


def _proportional(running: list[Object], allowed: int) -> dict[str, int]:
    """Spread a changed size over the ReplicaSets by their shares; what is left over goes to the largest."""
    ordered = sorted(running, key=size, reverse=True)
    before = sum(size(found) for found in running)
    shares = {name(found): size(found) * allowed // before for found in ordered}
    shares[name(ordered[0])] += allowed - sum(shares.values())
    return shares
