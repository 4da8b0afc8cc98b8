"""Status conditions: found by type, and set so that one that holds on keeps the time of its transition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.api.kinds import Object


def condition(obj: Mapping[str, Any], kind: str) -> Object | None:
    """The condition of this type in the object's status."""
    return next((found for found in _conditions(obj) if found.get("type") == kind), None)


def is_true(obj: Mapping[str, Any], kind: str) -> bool:
    """Whether the condition of this type is there and True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def other_conditions(obj: Mapping[str, Any], *kinds: str) -> list[Object]:
    """The conditions of all types but these, in their order."""
    return [found for found in _conditions(obj) if found.get("type") not in kinds]


def new_condition(kind: str, value: bool, reason: str, message: str, now: str) -> Object:
    """A condition that holds, or does not, since now."""
    return {
        "type": kind,
        "status": "True" if value else "False",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def holds_since(old: Mapping[str, Any] | None, value: str, now: str) -> str:
    """The lastTransitionTime of a condition whose status is to be `value`."""
    if old is not None and old.get("status") == value:
        return str(old.get("lastTransitionTime") or now)
    return now


def with_condition(status: Mapping[str, Any] | None, new: Object) -> Object:
    """A status with a condition of now added or exchanged; one that held before keeps its time."""
    status = status or {}
    conditions = list(status.get("conditions") or ())
    for place, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            since = holds_since(old, new["status"], new["lastTransitionTime"])
            conditions[place] = {**new, "lastTransitionTime": since}
            return {**status, "conditions": conditions}
    return {**status, "conditions": [*conditions, new]}


def _conditions(obj: Mapping[str, Any]) -> list[Object]:
    status = obj.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    # Of a foreign kind, not even this much is certain.
    return [found for found in listed if isinstance(found, dict)] if isinstance(listed, list) else []
