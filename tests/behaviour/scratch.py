"""Objects that one test makes, by kind rather than by path; what is cluster-wide goes when the test ends."""

from __future__ import annotations

from functools import cache
from typing import Any

from harness.plain import Answer, Plain
from podium.schema import facts

Object = dict[str, Any]


class Scratch:
    """Makes objects in the namespace of a test, or cluster-wide with the namespace's name as prefix."""

    def __init__(self, plain: Plain, namespace: str) -> None:
        self.plain = plain
        self.namespace = namespace
        self._cluster_wide: list[str] = []

    def path(self, obj: Object, name: str = "") -> str:
        """Where objects of this one's kind are, or the one of this name."""
        collection = collection_path(obj["apiVersion"], obj["kind"], self.namespace)
        return f"{collection}/{name}" if name else collection

    def attempt(self, obj: Object, query: str = "") -> Answer:
        """Ask for the creation of an object, whatever the answer."""
        answer = self.plain.request("POST", f"{self.path(obj)}{query}", obj)
        if answer.status == 201 and "dryRun" not in query:
            created = answer.json()
            if "namespace" not in created["metadata"]:
                self._cluster_wide.append(self.path(obj, created["metadata"]["name"]))
        return answer

    def create(self, obj: Object, query: str = "") -> Object:
        """Create an object; the test fails if the server will not have it."""
        answer = self.attempt(obj, query)
        assert answer.status == 201, answer.body.decode()
        created: Object = answer.json()
        return created

    def read(self, obj: Object) -> Object:
        """The object of the same kind and name as it is now."""
        answer = self.plain.request("GET", self.path(obj, obj["metadata"]["name"]))
        assert answer.status == 200, answer.body.decode()
        found: Object = answer.json()
        return found

    def replace(self, obj: Object) -> Answer:
        """PUT an object in the place of the one with its name."""
        return self.plain.request("PUT", self.path(obj, obj["metadata"]["name"]), obj)

    def patch(self, obj: Object, change: Object, subresource: str = "") -> Answer:
        """A merge patch to the object of the same kind and name."""
        path = self.path(obj, obj["metadata"]["name"]) + (f"/{subresource}" if subresource else "")
        kind = {"Content-Type": "application/merge-patch+json"}
        return self.plain.request("PATCH", path, change, headers=kind)

    def delete(self, obj: Object) -> None:
        """Delete the object of the same kind and name at once."""
        path = self.path(obj, obj["metadata"]["name"])
        answer = self.plain.request("DELETE", f"{path}?gracePeriodSeconds=0")
        assert answer.status == 200, answer.body.decode()

    def clean_up(self) -> None:
        """Remove what is cluster-wide; the rest goes with the namespace."""
        for path in reversed(self._cluster_wide):
            self.plain.request("DELETE", path)


def collection_path(api_version: str, kind: str, namespace: str) -> str:
    """The path of all objects of a built-in kind; of one namespace if the kind has namespaces."""
    plural, namespaced = _resources()[api_version, kind]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"


def named(kind: str, api_version: str, name: str, **fields: Any) -> Object:
    """A minimal object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


@cache
def _resources() -> dict[tuple[str, str], tuple[str, bool]]:
    return {
        (f"{fact.group}/{fact.version}" if fact.group else fact.version, fact.kind): (
            fact.plural,
            fact.namespaced,
        )
        for fact in facts.load().resources
    }
