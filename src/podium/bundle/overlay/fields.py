"""Where objects hold labels, selectors, annotations, images and namespaces.

The tables of places are facts about Kubernetes' kinds and the same as kustomize's. A place is a path of keys;
lists on the way are walked through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podium.api.kinds import Object

Path = tuple[str, ...]

_TEMPLATE: Path = ("spec", "template")
_JOB: Path = ("spec", "jobTemplate")
_WORKLOADS = ("ReplicationController", "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job")

# Where each kind keeps the spec of its pods.
POD_SPECS: Mapping[str, Path] = {
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    **dict.fromkeys(_WORKLOADS, (*_TEMPLATE, "spec")),
    "CronJob": (*_JOB, "spec", "template", "spec"),
}

# Where kinds keep the metadata of objects that they make.
_INNER_METADATA: Mapping[str, tuple[Path, ...]] = {
    **dict.fromkeys(_WORKLOADS, ((*_TEMPLATE, "metadata"),)),
    "CronJob": ((*_JOB, "metadata"), (*_JOB, "spec", "template", "metadata")),
}

# Selectors that must be there, and so are made where they are missing; by kind.
_SELECTORS: Mapping[str, Path] = {
    "Service": ("spec", "selector"),
    "ReplicationController": ("spec", "selector"),
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet"), ("spec", "selector", "matchLabels")),
    "StatefulSet": ("spec", "selector", "matchLabels"),
}

_AFFINITIES: tuple[Path, ...] = tuple(
    ("spec", "template", "spec", "affinity", affinity, when, *term, "labelSelector", "matchLabels")
    for affinity in ("podAffinity", "podAntiAffinity")
    for when, term in (
        ("preferredDuringSchedulingIgnoredDuringExecution", ("podAffinityTerm",)),
        ("requiredDuringSchedulingIgnoredDuringExecution", ()),
    )
)
_SPREAD: Path = (*_TEMPLATE, "spec", "topologySpreadConstraints", "labelSelector", "matchLabels")

# Selectors that are only extended where an author wrote them.
_WRITTEN_SELECTORS: Mapping[str, tuple[Path, ...]] = {
    "Deployment": (*_AFFINITIES, _SPREAD),
    "StatefulSet": (*_AFFINITIES, _SPREAD),
    "Job": (("spec", "selector", "matchLabels"),),
    "CronJob": ((*_JOB, "spec", "selector", "matchLabels"),),
    "PodDisruptionBudget": (("spec", "selector", "matchLabels"),),
    "NetworkPolicy": (
        ("spec", "podSelector", "matchLabels"),
        ("spec", "ingress", "from", "podSelector", "matchLabels"),
        ("spec", "egress", "to", "podSelector", "matchLabels"),
    ),
}

# Groups of the kinds above, so that a custom kind of the same name is left alone.
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"), "apps"),
    **dict.fromkeys(("Job", "CronJob"), "batch"),
    **dict.fromkeys(("Service", "ReplicationController", "Pod", "PodTemplate"), ""),
    "PodDisruptionBudget": "policy",
    "NetworkPolicy": "networking.k8s.io",
}


def known_kind(obj: Object) -> str:
    """The object's kind if it is a built-in one of the tables here, else the empty string."""
    kind = str(obj.get("kind"))
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    return kind if _GROUPS.get(kind) == group else ""


def pod_spec(obj: Object) -> Object | None:
    """The spec of the pods that a workload makes; None if the object makes none."""
    path = POD_SPECS.get(known_kind(obj))
    found = next(at(obj, path), None) if path else None
    return found if isinstance(found, dict) else None


def at(value: Any, path: Path) -> Iterator[Any]:
    """Every value at a path; lists on the way are walked through."""
    if isinstance(value, list):
        for item in value:
            yield from at(item, path)
    elif not path:
        yield value
    elif isinstance(value, dict) and path[0] in value:
        yield from at(value[path[0]], path[1:])


def set_labels(obj: Object, pairs: Mapping[str, str], selectors: bool, templates: bool) -> None:
    """Adds labels to the object, on request also to what it makes and selects."""
    _extend(obj, ("metadata", "labels"), pairs)
    kind = known_kind(obj)
    if not kind or not (selectors or templates):
        return
    for path in _INNER_METADATA.get(kind, ()):
        _extend(obj, (*path, "labels"), pairs)
    if kind == "StatefulSet":
        for claim in at(obj, ("spec", "volumeClaimTemplates")):
            _extend(claim, ("metadata", "labels"), pairs)
    if not selectors:
        return
    if kind in _SELECTORS:
        _extend(obj, _SELECTORS[kind], pairs)
    for path in _WRITTEN_SELECTORS.get(kind, ()):
        for found in at(obj, path):
            if isinstance(found, dict):
                found.update(pairs)


def set_annotations(obj: Object, pairs: Mapping[str, str]) -> None:
    """Adds annotations to the object and to what it makes."""
    _extend(obj, ("metadata", "annotations"), pairs)
    for path in _INNER_METADATA.get(known_kind(obj), ()):
        _extend(obj, (*path, "annotations"), pairs)


def set_images(obj: Object, change: Callable[[str], str]) -> None:
    """Changes the image of every container, wherever the object keeps containers, and of image volumes."""
    if obj.get("kind") == "CustomResourceDefinition":
        return
    _set_container_images(obj, change)
    pods = pod_spec(obj)
    for volume in at(pods, ("volumes",)) if pods else ():
        source = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(source, dict) and isinstance(source.get("reference"), str):
            source["reference"] = change(source["reference"])


def _set_container_images(value: Any, change: Callable[[str], str]) -> None:
    if isinstance(value, list):
        for item in value:
            _set_container_images(item, change)
    elif isinstance(value, dict):
        for key, item in value.items():
            _set_container_images(item, change)
            if key in ("containers", "initContainers") and isinstance(item, list):
                for container in item:
                    if isinstance(container, dict) and isinstance(container.get("image"), str):
                        container["image"] = change(container["image"])


def set_namespace_inside(obj: Object, namespace: str) -> None:
    """Sets the namespaces that an object mentions besides its own and that no other object decides."""
    kind = obj.get("kind")
    if kind in ("RoleBinding", "ClusterRoleBinding"):
        for subject in at(obj, ("subjects",)):
            # Every namespace has this account, so there is no object to take the namespace from.
            if isinstance(subject, dict) and subject.get("name") == "default":
                subject["namespace"] = namespace
    elif kind == "APIService":
        for service in at(obj, ("spec", "service")):
            if isinstance(service, dict):
                service["namespace"] = namespace
    elif kind == "CustomResourceDefinition":
        for service in at(obj, ("spec", "conversion", "webhook", "clientConfig", "service")):
            if isinstance(service, dict) and "namespace" in service:
                service["namespace"] = namespace


def _extend(obj: Object, path: Path, pairs: Mapping[str, str]) -> None:
    for key in path:
        child = obj.get(key)
        if not isinstance(child, dict):
            child = obj[key] = {}
        obj = child
    obj.update(pairs)
