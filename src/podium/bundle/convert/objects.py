"""Whole objects: new ones, and those that the bundle brings beside its ClusterServiceVersion and CRDs."""

from __future__ import annotations

import copy
from typing import Any

from podium.api.kinds import Object

# The kinds that a registry+v1 bundle may hold, and whether their objects live in a namespace. The original
# takes a VerticalPodAutoscaler for one that does not.
SUPPORTED_KINDS = {
    "ClusterServiceVersion": True,
    "CustomResourceDefinition": False,
    "ClusterRole": False,
    "ClusterRoleBinding": False,
    "ConfigMap": True,
    "ConsoleCLIDownload": False,
    "ConsoleLink": False,
    "ConsolePlugin": False,
    "ConsoleQuickStart": False,
    "ConsoleYAMLSample": False,
    "NetworkPolicy": True,
    "PodDisruptionBudget": True,
    "PodMonitor": True,
    "PriorityClass": False,
    "PrometheusRule": True,
    "Role": True,
    "RoleBinding": True,
    "Secret": True,
    "Service": True,
    "ServiceAccount": True,
    "ServiceMonitor": True,
    "VerticalPodAutoscaler": True,
}


def new_object(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    """An object of this kind, name and namespace, with more fields at its top."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def annotated(obj: Object, annotations: dict[str, str]) -> Object:
    """The object with these annotations beside those it has."""
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {"annotations": (metadata.get("annotations") or {}) | annotations}}


def placed(obj: Object, namespace: str) -> Object:
    """A copy of an object; if it lives in a namespace, then in this one."""
    obj = copy.deepcopy(obj)
    if SUPPORTED_KINDS.get(obj["kind"]):
        if obj.setdefault("metadata", {}) is not None:
            obj["metadata"]["namespace"] = namespace
    elif obj.get("metadata") and not obj["metadata"].get("namespace"):
        obj["metadata"].pop("namespace", None)  # an empty one is none
    return obj
