"""One resource in one namespace over plain requests: short ways to write that keep every answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.plain import Answer, Plain

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects at one path; `query` goes behind the question mark, `sub` names a subresource."""

    plain: Plain
    path: str

    def at(self, name: str, sub: str = "", query: str = "") -> str:
        """The path of one object."""
        path = f"{self.path}/{name}" + (f"/{sub}" if sub else "")
        return f"{path}?{query}" if query else path

    def create(self, obj: object, query: str = "", content_type: str = "application/json") -> Answer:
        """POST, of an object or of raw bytes."""
        path = f"{self.path}?{query}" if query else self.path
        return self.plain.request("POST", path, obj, headers={"Content-Type": content_type})

    def get(self, name: str, sub: str = "") -> Answer:
        """GET of one object."""
        return self.plain.request("GET", self.at(name, sub))

    def update(self, obj: Object, query: str = "", sub: str = "") -> Answer:
        """PUT to the name that the object has."""
        return self.plain.request("PUT", self.at(obj["metadata"]["name"], sub, query), obj)

    def patch(self, name: str, patch: object, kind: str = MERGE, *, query: str = "", sub: str = "") -> Answer:
        """PATCH in one of the formats."""
        return self.plain.request("PATCH", self.at(name, sub, query), patch, headers={"Content-Type": kind})

    def apply(self, obj: Object, manager: str, query: str = "", sub: str = "") -> Answer:
        """Server-side apply of an object under the name that it has."""
        asked = f"fieldManager={manager}" + (f"&{query}" if query else "")
        return self.patch(obj["metadata"]["name"], obj, APPLY, query=asked, sub=sub)

    def delete(self, name: str, options: Object | None = None, query: str = "") -> Answer:
        """DELETE with options in the body, in the query, or without any."""
        return self.plain.request("DELETE", self.at(name, query=query), options)


def done(answer: Answer) -> Object:
    """The object that a request which must succeed answered with."""
    assert answer.status in (200, 201, 202), answer.body.decode()
    obj: Object = answer.json()
    return obj


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    """A ConfigMap with data and metadata."""
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return obj if data is None else {**obj, "data": data}


def pod(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Pod with one container, which no scheduler cares for."""
    fixed = {"containers": [{"name": "main", "image": "example.com/web:1"}], "schedulerName": "nobody"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": "web"}},
        "spec": {**fixed, **spec},
    }


def deployment(name: str, **spec: Any) -> Object:
    """A paused Deployment without replicas, which no controller does anything about."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example.com/web:1"}]},
    }
    selector = {"matchLabels": {"app": name}}
    fixed = {"replicas": 0, "paused": True, "selector": selector, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {**fixed, **spec},
    }


def owner(obj: Object, **more: Any) -> Object:
    """A reference that makes an object the owner of another."""
    metadata = obj["metadata"]
    named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
    return {**named, "uid": metadata["uid"], **more}
