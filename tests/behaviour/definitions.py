"""CustomResourceDefinitions that a test module makes, and objects of the kinds that they define.

A real server holds back the first create of a kind for two seconds after it was established, so a module
makes its definitions together, once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

from behaviour.support import eventually
from harness.plain import Answer, Plain

Object = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def properties(**fields: Any) -> Object:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": fields}


def version(name: str = "v1", schema: Object | None = None, *, storage: bool = True, **more: Any) -> Object:
    """One served version of a definition; without a schema, anything goes."""
    content = {"openAPIV3Schema": schema or ANYTHING}
    return {"name": name, "served": True, "storage": storage, "schema": content, **more}


def definition(group: str, kind: str, *versions: Object, scope: str = "Namespaced", **names: Any) -> Object:
    """A definition whose other names follow from the kind."""
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind} | names,
            "versions": list(versions) or [version()],
        },
    }


def condition(crd: Object, kind: str) -> tuple[str, str, str] | None:
    """Status, reason and message of one condition."""
    for each in crd["status"].get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"], each["message"]
    return None


class Definitions:
    """Makes definitions in a group of their own, and removes them afterwards."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.group = f"g{secrets.token_hex(4)}.example.com"
        self._made: list[str] = []

    def add(self, kind: str, *versions: Object, scope: str = "Namespaced", **names: Any) -> Objects:
        """Create a definition; answers where its objects will be, in the namespace `default`."""
        crd = definition(self.group, kind, *versions, scope=scope, **names)
        answer = self.attempt(crd)
        assert answer.status == 201, answer.body.decode()
        first = crd["spec"]["versions"][0]["name"]
        return Objects(
            self.plain, self.group, first, crd["spec"]["names"]["plural"], kind, scope == "Namespaced"
        )

    def attempt(self, crd: Object, query: str = "") -> Answer:
        """Ask for the creation of a definition, whatever the answer."""
        if not query:
            self._made.append(crd["metadata"]["name"])
        return self.plain.request("POST", f"{CRDS}{query}", crd)

    def read(self, name: str) -> Object:
        """A definition as it is now."""
        answer = self.plain.request("GET", f"{CRDS}/{name}")
        assert answer.status == 200, answer.body.decode()
        crd: Object = answer.json()
        return crd

    def established(self, name: str) -> Object:
        """A definition as soon as it is established."""

        def probe() -> Object | None:
            crd = self.read(name)
            state = condition(crd, "Established")
            return crd if state is not None and state[0] == "True" else None

        return eventually(probe)

    def change(self, name: str, operations: list[Object]) -> Answer:
        """A JSON patch to a definition."""
        return self.plain.request("PATCH", f"{CRDS}/{name}", operations, headers=JSON_PATCH)

    def clean_up(self) -> None:
        """Ask for the deletion of every definition that was made."""
        for name in self._made:
            self.plain.request("DELETE", f"{CRDS}/{name}")


@dataclass(frozen=True)
class Objects:
    """The objects of one custom kind in one namespace, through one of its versions."""

    plain: Plain
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    namespace: str = "default"

    @property
    def crd_name(self) -> str:
        """The name of the definition."""
        return f"{self.plural}.{self.group}"

    def within(self, namespace: str) -> Objects:
        """The same in another namespace, once the kind is served."""
        there = replace(self, namespace=namespace)
        eventually(lambda: self.request("GET", there.path()).status == 200)
        return there

    def at(self, version: str) -> Objects:
        """The same through another version."""
        return replace(self, version=version)

    def path(self, name: str = "", subresource: str = "") -> str:
        """Where the objects are, or one of them, or a subresource of it."""
        scope = f"/namespaces/{self.namespace}" if self.namespaced else ""
        parts = [f"/apis/{self.group}/{self.version}{scope}/{self.plural}", name, subresource]
        return "/".join(part for part in parts if part)

    def new(self, name: str, **fields: Any) -> Object:
        """An object that has not been created."""
        metadata = {"name": name} | fields.pop("metadata", {})
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.kind,
            "metadata": metadata,
            **fields,
        }

    def request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Any request; again while a real server is busy with a definition that has just changed."""

        def ask() -> Answer | None:
            answer = self.plain.request(method, path, body, headers=headers)
            return answer if answer.status != 429 else None

        return eventually(ask)

    def attempt(self, name: str, query: str = "", **fields: Any) -> Answer:
        """Ask for the creation of an object, whatever the answer."""
        return self.request("POST", f"{self.path()}{query}", self.new(name, **fields))

    def create(self, name: str, query: str = "", **fields: Any) -> Object:
        """Create an object; the test fails if the server will not have it."""
        return _object(self.attempt(name, query, **fields), 201)

    def read(self, name: str) -> Object:
        """An object as it is now."""
        return _object(self.request("GET", self.path(name)), 200)

    def names(self, query: str = "") -> list[str]:
        """The names of all objects that a list answers."""
        listed = _object(self.request("GET", f"{self.path()}{query}"), 200)
        return [item["metadata"]["name"] for item in listed["items"]]

    def replace(self, obj: Object, subresource: str = "") -> Answer:
        """PUT an object in the place of the one with its name."""
        return self.request("PUT", self.path(obj["metadata"]["name"], subresource), obj)

    def patch(self, name: str, change: Object, subresource: str = "", query: str = "") -> Answer:
        """A merge patch."""
        path = self.path(name, subresource) + query
        return self.request("PATCH", path, change, headers=MERGE)

    def apply(self, name: str, manager: str, *, force: bool = False, **fields: Any) -> Answer:
        """Server-side apply."""
        query = f"?fieldManager={manager}&force={str(force).lower()}"
        return self.request("PATCH", self.path(name) + query, self.new(name, **fields), headers=APPLY)

    def delete(self, name: str) -> Answer:
        """Delete one object."""
        return self.request("DELETE", self.path(name))


def _object(answer: Answer, status: int) -> Object:
    assert answer.status == status, answer.body.decode()
    obj: Object = answer.json()
    return obj
