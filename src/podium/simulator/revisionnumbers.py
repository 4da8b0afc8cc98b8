"""The numbers that `kubectl rollout history` shows: the newest template has the highest."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.kinds import Object
from podium.simulator.objects import annotations_of, spec, with_annotations
from podium.simulator.plan import Update, UpdateStatus, Write

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
# Annotations of a Deployment that are about itself and not about a revision of it.
_OWN = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    REVISION,
    HISTORY,
}


def number(replica_set: Object) -> int:
    """The revision of a ReplicaSet; 0 if it has none."""
    text = annotations_of(replica_set).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def annotations_for(deployment: Object, sets: Sequence[Object]) -> dict[str, str]:
    """The annotations of a new revision's ReplicaSet, its sizes excepted."""
    return {**_passed_on(deployment), REVISION: str(max(map(number, sets), default=0) + 1)}


def renumber(deployment: Object, current: Object | None, sets: Sequence[Object]) -> list[Write]:
    """The writes that give the current ReplicaSet the highest number and the Deployment the same.

    Other annotations, such as the cause of a change, and minReadySeconds follow the Deployment too.
    """
    if current is None:
        return []
    highest = max((number(found) for found in sets if found is not current), default=0)
    mine, known = number(current), annotations_of(current)
    changes = {key: value for key, value in _passed_on(deployment).items() if known.get(key) != value}
    if mine <= highest:
        if mine:
            # An old template that came back: it keeps the numbers it had.
            past = known.get(HISTORY, "")
            changes[HISTORY] = f"{past},{mine}" if past else str(mine)
        mine = highest + 1
        changes[REVISION] = str(mine)
    writes = list[Write]()
    wait = spec(deployment).get("minReadySeconds") or 0
    if changes or (spec(current).get("minReadySeconds") or 0) != wait:
        changed = with_annotations(current, changes)
        writes.append(Update({**changed, "spec": {**spec(current), "minReadySeconds": wait}}))
    if annotations_of(deployment).get(REVISION) != str(mine):
        # By way of the status, like the real controller: a plain update would count as a new generation.
        writes.append(UpdateStatus(with_annotations(deployment, {REVISION: str(mine)})))
    return writes


def _passed_on(deployment: Object) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in _OWN}
