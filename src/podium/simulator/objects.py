"""Small readings of Kubernetes objects that every decision here needs; nothing changes its arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from podium.api import selectors
from podium.api.conditions import condition, is_true
from podium.api.kinds import GVK, Object
from podium.api.times import parse_timestamp

POD = GVK("", "v1", "Pod")
NODE = GVK("", "v1", "Node")
NAMESPACE = GVK("", "v1", "Namespace")
SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")
CLAIM = GVK("", "v1", "PersistentVolumeClaim")
VOLUME = GVK("", "v1", "PersistentVolume")
REPLICATION_CONTROLLER = GVK("", "v1", "ReplicationController")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
REPLICA_SET = GVK("apps", "v1", "ReplicaSet")
STATEFUL_SET = GVK("apps", "v1", "StatefulSet")
DAEMON_SET = GVK("apps", "v1", "DaemonSet")
REVISION = GVK("apps", "v1", "ControllerRevision")
JOB = GVK("batch", "v1", "Job")
CRON_JOB = GVK("batch", "v1", "CronJob")
SLICE = GVK("discovery.k8s.io", "v1", "EndpointSlice")
STORAGE_CLASS = GVK("storage.k8s.io", "v1", "StorageClass")
BUDGET = GVK("policy", "v1", "PodDisruptionBudget")

# No vowels, so that no words arise; the alphabet that Kubernetes uses for generated names.
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


def name(obj: Object) -> str:
    """metadata.name."""
    return str(obj["metadata"]["name"])


def namespace(obj: Object) -> str:
    """metadata.namespace, empty for cluster-scoped objects."""
    return obj["metadata"].get("namespace") or ""


def uid(obj: Object) -> str:
    """metadata.uid."""
    return obj["metadata"].get("uid") or ""


def labels_of(obj: Object) -> dict[str, str]:
    """The labels; possibly the object's own mapping, so only to be read."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    """The annotations; possibly the object's own mapping, so only to be read."""
    return obj["metadata"].get("annotations") or {}


def spec(obj: Object) -> Object:
    """The spec, empty if absent."""
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    """The status, empty if absent."""
    return obj.get("status") or {}


def is_deleting(obj: Object) -> bool:
    """Whether the object is marked for deletion."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def born(obj: Object) -> str:
    """The creation timestamp: text that sorts by time."""
    return obj["metadata"].get("creationTimestamp") or ""


def by_age(objects: Iterable[Object]) -> list[Object]:
    """Oldest first."""
    return sorted(objects, key=lambda obj: (born(obj), name(obj)))


def with_metadata(obj: Object, **fields: Any) -> Object:
    """A copy whose metadata has other values; None removes a field."""
    metadata = {**obj["metadata"], **fields}
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def with_annotations(obj: Object, changes: Mapping[str, str]) -> Object:
    """A copy with more annotations."""
    return with_metadata(obj, annotations={**annotations_of(obj), **changes})


# --- owners ---------------------------------------------------------------------------------------------


def owner_reference(owner: Object) -> Object:
    """The reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller(obj: Object) -> Object | None:
    """The owner reference of the object's controller, if it has one."""
    return next((ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("controller")), None)


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Whether `owner` is the object's controller."""
    reference = controller(obj)
    return reference is not None and reference.get("uid") == uid(owner)


# --- selectors and hashes -------------------------------------------------------------------------------


def selector(obj: Object) -> selectors.LabelSelector:
    """What a workload selects: a LabelSelector, or plain labels in the oldest kinds."""
    given = spec(obj).get("selector")
    if obj["kind"] in ("ReplicationController", "Service"):
        return selectors.from_labels(given) if given else selectors.NOTHING
    return selectors.from_object(given)


def short_hash(value: Any, length: int = 10) -> str:
    """A name-safe digest of a JSON value; equal values have equal digests."""
    number = int.from_bytes(hashlib.sha256(_encode_sorted(value)).digest()[:12], "big")
    text = ""
    for _ in range(length):
        number, digit = divmod(number, len(_SAFE))
        text += _SAFE[digit]
    return text


# --- time -----------------------------------------------------------------------------------------------


def moment(text: str | None) -> datetime | None:
    """The moment that a timestamp names."""
    return parse_timestamp(text) if text else None


def seconds_since(text: str | None, now: datetime) -> float:
    """How long ago that was; 0 for a moment that is unknown or to come."""
    then = moment(text)
    return max(0.0, (now - then).total_seconds()) if then else 0.0


# --- status ---------------------------------------------------------------------------------------------


def without_empty(fields: Mapping[str, Any]) -> Object:
    """Leave out what a server would not store: zeros, empty texts and lists, nulls."""
    return {key: value for key, value in fields.items() if value not in (0, "", None) and value != []}


# --- Pods -----------------------------------------------------------------------------------------------


def phase(pod: Object) -> str:
    """The Pod's phase."""
    return status(pod).get("phase") or "Pending"


def is_finished(pod: Object) -> bool:
    """Whether the Pod ended, well or badly."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Whether the Pod counts as a replica: neither ended nor being deleted."""
    return not is_finished(pod) and not is_deleting(pod)


def is_ready(pod: Object) -> bool:
    """Whether the Pod's Ready condition is True."""
    return is_true(pod, "Ready")


def unavailable_for(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until a ready Pod is available: 0 if it is, None if it is not even ready."""
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    return max(0.0, min_ready_seconds - seconds_since(ready.get("lastTransitionTime"), now))


def is_available(pod: Object, min_ready_seconds: int, now: datetime) -> bool:
    """Whether the Pod has been ready for long enough."""
    return unavailable_for(pod, min_ready_seconds, now) == 0


def next_available(pods: Iterable[Object], min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until the next ready Pod becomes available, if one is on its way."""
    waits = (unavailable_for(pod, min_ready_seconds, now) for pod in pods)
    return min((wait for wait in waits if wait), default=None)


def pod_from(template: Object, owner: Object, **metadata: Any) -> Object:
    """A new Pod of a template, controlled by `owner`; further metadata such as its name."""
    given = template.get("metadata") or {}
    made: Object = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    made |= {"namespace": namespace(owner), "ownerReferences": [owner_reference(owner)], **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template.get("spec") or {}}


def count_of(value: int | str | None, total: int, *, round_up: bool) -> int:
    """What a number or percentage such as maxSurge means for so many replicas."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%")) * total
    return -(-percent // 100) if round_up else percent // 100
