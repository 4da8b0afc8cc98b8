"""Manifests that several tests about kubectl apply; small, and valid on any server."""

from __future__ import annotations

from typing import Any

from behaviour.scratch import named

Object = dict[str, Any]


def config_map(name: str, *, labels: dict[str, str] | None = None, **data: str) -> Object:
    """A ConfigMap with these entries."""
    obj = named("ConfigMap", "v1", name, **({"data": data} if data else {}))
    if labels:
        obj["metadata"]["labels"] = labels
    return obj


def pod(name: str, **fields: Any) -> Object:
    """A Pod of one container; further fields go into its spec."""
    return named("Pod", "v1", name, spec={"containers": [{"name": "main", "image": "app:1"}], **fields})


def pod_template(app: str, **fields: Any) -> Object:
    """A Pod template with the label `app`; further fields go into its spec."""
    spec = {"containers": [{"name": "main", "image": "app:1"}], **fields}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def deployment(name: str, replicas: int = 1, **fields: Any) -> Object:
    """A Deployment whose Pods have the label `app` with its name."""
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": pod_template(name),
        **fields,
    }
    return named("Deployment", "apps/v1", name, spec=spec)


def service(name: str) -> Object:
    """A Service of one port."""
    return named("Service", "v1", name, spec={"selector": {"app": name}, "ports": [{"port": 80}]})


def widgets(group: str) -> Object:
    """The definition of a custom kind with defaults, columns, a status and a scale."""
    spec_schema = {
        "type": "object",
        "description": "What is wanted.",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "How large it is."},
            "note": {"type": "string", "default": "none"},
            "color": {"type": "string", "enum": ["red", "green"]},
            "replicas": {"type": "integer"},
        },
    }
    condition = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    status_schema = {
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "replicas": {"type": "integer"},
            "conditions": {"type": "array", "items": condition},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": "A widget of some size.",
                "required": ["spec"],
                "properties": {"spec": spec_schema, "status": status_schema},
            }
        },
    }
    names = {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "shortNames": ["wdg"],
        "categories": ["all", "gadgets"],
    }
    return named(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        f"widgets.{group}",
        spec={"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    )


def widget(group: str, name: str, **spec: Any) -> Object:
    """One object of the custom kind."""
    return named("Widget", f"{group}/v1", name, spec=spec)
