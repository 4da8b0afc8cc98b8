"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, for `kubectl rollout`.

A revision's data is a patch that puts its template back. The newest template has the highest number; one that
comes back is not stored twice but gets a new number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from podium.api.kinds import Object
from podium.simulator.objects import annotations_of, name, namespace, owner_reference, short_hash, spec
from podium.simulator.plan import Create, Delete, Update, Write

# On Pods: the name of the revision they were made from (StatefulSets), or its hash (DaemonSets).
REVISION_LABEL = "controller-revision-hash"
# On revisions: their hash. The two kinds never agreed on a label for it.
_HASH_LABELS = {"StatefulSet": "controller.kubernetes.io/hash", "DaemonSet": REVISION_LABEL}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(slots=True)
class History:
    """The revisions of a workload, oldest first, and the writes that bring them up to date."""

    update: Object
    known: list[Object]
    writes: list[Write] = field(default_factory=list)


def history(owner: Object, stored: Iterable[Object]) -> History:
    """Find or make the revision of the owner's present template."""
    known = sorted(stored, key=lambda revision: (revision.get("revision", 0), name(revision)))
    data = _data(owner)
    highest = known[-1].get("revision", 0) if known else 0
    for revision in reversed(known):
        if revision.get("data") != data:
            continue
        if revision.get("revision", 0) == highest:
            return History(revision, known)
        renewed = {**revision, "revision": highest + 1}
        kept = [found for found in known if found is not revision]
        return History(renewed, [*kept, renewed], [Update(renewed)])
    made = _revision(owner, data, highest + 1)
    return History(made, [*known, made], [Create(made)])


def truncate(owner: Object, found: History, in_use: Collection[str]) -> list[Write]:
    """Deletions of the oldest revisions that nobody uses, beyond the owner's revisionHistoryLimit."""
    limit = spec(owner).get("revisionHistoryLimit", 10)
    unused = [r for r in found.known if name(r) not in in_use and name(r) != name(found.update)]
    return [Delete(revision) for revision in unused[: max(0, len(unused) - limit)]]


def hash_of(revision: Object) -> str:
    """The digest of a revision's template, which is part of its name."""
    return str(name(revision).rpartition("-")[2])


def template_of(revision: Object) -> Object:
    """The Pod template that a revision holds."""
    template = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}


def _data(owner: Object) -> Object:
    return {"spec": {"template": {**(spec(owner).get("template") or {}), "$patch": "replace"}}}


def _revision(owner: Object, data: Object, number: int) -> Object:
    digest = short_hash([data, (owner.get("status") or {}).get("collisionCount") or 0])
    labels = ((spec(owner).get("template") or {}).get("metadata") or {}).get("labels") or {}
    notes = {key: value for key, value in annotations_of(owner).items() if key != _LAST_APPLIED}
    metadata = {
        "name": f"{name(owner)}-{digest}",
        "namespace": namespace(owner),
        "labels": {**labels, _HASH_LABELS[owner["kind"]]: digest},
        "ownerReferences": [owner_reference(owner)],
    }
    if notes:
        metadata["annotations"] = notes
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": number,
    }
