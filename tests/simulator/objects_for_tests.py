"""Objects as decisions observe them, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podium.api.kinds import Object
from podium.simulator.plan import Bind, Create, Delete, Note, Plan, Update, UpdateStatus

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def stamp(seconds: float = 0) -> str:
    """The timestamp of that moment."""
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def obj(kind: str, name: str, api: str = "v1", *, spec: Object | None = None, **more: Any) -> Object:
    """Any object; further arguments are its status and parts of its metadata."""
    status = more.pop("status", {})
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, **more}
    metadata.setdefault("creationTimestamp", stamp())
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status}


def pod(name: str, *, phase: str = "Running", ready: bool = True, since: float = -60, **more: Any) -> Object:
    """A Pod in some phase."""
    spec = {"containers": [{"name": "main", "image": "app:1"}], **more.pop("spec", {})}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(since)}
    status = {"phase": phase, "conditions": [condition], **more.pop("status", {})}
    return obj("Pod", name, spec=spec, status=status, **more)


def owned(child: Object, owner: Object) -> Object:
    """The child with `owner` as its controller."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {**child, "metadata": {**child["metadata"], "ownerReferences": [reference]}}


def created(plan: Plan) -> list[Object]:
    """What a plan makes."""
    return [write.object for write in plan.writes if isinstance(write, Create)]


def deleted(plan: Plan) -> list[str]:
    """The names of what a plan deletes."""
    return [write.object["metadata"]["name"] for write in plan.writes if isinstance(write, Delete)]


def updated(plan: Plan) -> list[Object]:
    """What a plan updates, statuses excepted."""
    return [write.object for write in plan.writes if isinstance(write, Update)]


def reported(plan: Plan) -> Object:
    """The last status that a plan writes; empty if none."""
    found = [write.object["status"] for write in plan.writes if isinstance(write, UpdateStatus)]
    return found[-1] if found else {}


def reasons(plan: Plan) -> list[str]:
    """The reasons of a plan's Events."""
    return [write.reason for write in plan.writes if isinstance(write, Note)]


def bound_to(plan: Plan) -> str:
    """The node that a plan binds a Pod to; empty if none."""
    return next((write.node for write in plan.writes if isinstance(write, Bind)), "")
