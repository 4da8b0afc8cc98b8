"""A custom resource with a schema, a status and a scale, for tests of writes to it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from behaviour.collection import Collection
from behaviour.support import eventually
from harness.plain import Plain

Object = dict[str, Any]

_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "color": {"type": "string"},
                "text": {"type": "string"},
            },
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}


class Widgets:
    """The kind as installed."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.api_version = f"{group}/v1"

    def collection(self, plain: Plain, namespace: str) -> Collection:
        """The Widgets of a namespace."""
        return Collection(plain, f"/apis/{self.api_version}/namespaces/{namespace}/widgets")

    def widget(self, name: str, **fields: Any) -> Object:
        """A Widget."""
        return {"apiVersion": self.api_version, "kind": "Widget", "metadata": {"name": name}, **fields}


@contextmanager
def installed(plain: Plain) -> Iterator[Widgets]:
    """Widgets of a group that nobody else uses, for as long as the context lasts."""
    group = f"w{secrets.token_hex(4)}.podium.dev"
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
        "subresources": {"status": {}, "scale": scale},
        "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}],
        "additionalPrinterColumns": [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        ],
    }
    names: Object = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    names |= {"shortNames": ["wd"], "categories": ["toys"]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = plain.request("POST", definitions, definition)
    assert answer.status == 201, answer.body.decode()
    widgets = Widgets(group)
    path = widgets.collection(plain, "default").path
    # Merging by schema starts a moment after the path is served, so apply is what to wait for.
    trial = widgets.widget("trial", spec={"size": 1})
    apply = {"Content-Type": "application/apply-patch+yaml"}
    eventually(lambda: plain.request("GET", path).status == 200)
    asked = f"{path}/trial?fieldManager=trial&dryRun=All"
    eventually(lambda: plain.request("PATCH", asked, trial, headers=apply).status == 201)
    try:
        yield widgets
    finally:
        plain.request("DELETE", f"{definitions}/widgets.{group}")
