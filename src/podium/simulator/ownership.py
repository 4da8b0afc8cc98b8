"""Who controls what: objects that match a workload's selector are adopted, others are let go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.api import selectors
from podium.api.kinds import Object
from podium.simulator.objects import (
    controller,
    is_controlled_by,
    is_deleting,
    labels_of,
    owner_reference,
    selector,
    uid,
    with_metadata,
)
from podium.simulator.plan import Update


@dataclass(slots=True)
class Claimed:
    """The objects that a workload controls, and the writes that make it so."""

    objects: list[Object] = field(default_factory=list)
    writes: list[Update] = field(default_factory=list)


def claim(owner: Object, candidates: Iterable[Object]) -> Claimed:
    """Sort out which candidates belong to the owner: its own, and those without a controller."""
    wanted, claimed = selector(owner), Claimed()
    for candidate in candidates:
        matches = selectors.matches(wanted, labels_of(candidate))
        if is_controlled_by(candidate, owner):
            if matches or is_deleting(owner):
                claimed.objects.append(candidate)
            elif not is_deleting(candidate):
                claimed.writes.append(Update(released(candidate, owner)))
        elif matches and controller(candidate) is None and not (is_deleting(owner) or is_deleting(candidate)):
            claimed.objects.append(candidate)
            claimed.writes.append(Update(adopted(candidate, owner)))
    return claimed


def adopted(obj: Object, owner: Object) -> Object:
    """The object with `owner` as its controller."""
    references = obj["metadata"].get("ownerReferences") or []
    return with_metadata(obj, ownerReferences=[*references, owner_reference(owner)])


def released(obj: Object, owner: Object) -> Object:
    """The object without its reference to `owner`."""
    kept = [ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("uid") != uid(owner)]
    return with_metadata(obj, ownerReferences=kept or None)
