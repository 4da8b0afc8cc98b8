"""The CRDs and example objects of public operators, on both servers: the same answers, and the same objects.

Each definition is created on the embedded and on the real server, then each example is tried (dry run), and
then random distortions of both. The seed is fixed, so that a failure can be looked at again.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from behaviour.support import eventually
from conformance.crd_corpus import Object, bundles
from harness.embedded import EmbeddedControlPlane
from harness.plain import Answer, Plain
from harness.real import RealControlPlane

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DISTORTED_DEFINITIONS = int(os.environ.get("PODIUM_DISTORTED_DEFINITIONS", "300"))
DISTORTED_EXAMPLES = int(os.environ.get("PODIUM_DISTORTED_EXAMPLES", "1500"))
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
MERGE = {"Content-Type": "application/merge-patch+json"}
VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "generation")
VALUES: list[Any] = [
    "",
    "x",
    "A b",
    "10.0.0.0/8",
    "50%",
    "1Gi",
    "3s",
    "2020-01-01T00:00:00Z",
    "object",
    "array",
]
VALUES += [
    "string",
    "integer",
    "map",
    "set",
    "atomic",
    "date-time",
    "int32",
    "^a+$",
    "self.size() > 1",
    ".spec.x",
]
VALUES += [0, 1, -1, 80, 70000, 2**40, 0.5, -1.5, True, False, None, {}, [], {"x": 1}, [1], ["a", "a"]]
SCHEMA_KEYS: list[tuple[str, Any]] = [
    ("nullable", True),
    ("default", {}),
    ("default", "x"),
    ("default", 1),
    ("minimum", 1),
    ("maxLength", 1),
    ("pattern", "(["),
    ("enum", ["a", "b"]),
    ("type", "string"),
    ("uniqueItems", True),
    ("additionalProperties", True),
    ("additionalProperties", {"type": "string"}),
    ("items", {"type": "object"}),
    ("required", ["a"]),
    ("anyOf", [{"type": "string"}]),
    ("oneOf", [{"required": ["a"]}]),
    ("not", {"properties": {"a": {"minimum": 1}}}),
    ("x-kubernetes-list-type", "set"),
    ("x-kubernetes-list-type", "map"),
    ("x-kubernetes-map-type", "atomic"),
    ("x-kubernetes-int-or-string", True),
    ("x-kubernetes-embedded-resource", True),
    ("x-kubernetes-preserve-unknown-fields", True),
    ("x-kubernetes-validations", [{"rule": "self == oldSelf"}]),
    ("x-kubernetes-validations", [{"rule": "self.size() > 0", "message": "some"}]),
    ("x-kubernetes-validations", [{"rule": "has(self.a) || true"}]),
]


@dataclass(frozen=True, slots=True)
class Servers:
    """The two servers that must agree."""

    embedded: Plain
    real: Plain

    def difference(
        self, method: str, path: str, body: Object | None = None, headers: dict[str, str] | None = None
    ) -> Any:
        """How the answers to one request differ, or None."""
        ours, theirs = (
            outcome(plain.request(method, path, body, headers=headers))
            for plain in (self.embedded, self.real)
        )
        return difference(ours, theirs)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Both servers, with every definition of the corpus that they accept."""
    bundles()
    with EmbeddedControlPlane() as embedded, RealControlPlane(controller_manager=False) as real:
        yield Servers(Plain(embedded.kubeconfig), Plain(real.kubeconfig))


def test_every_definition_is_answered_alike(servers: Servers) -> None:
    found = {
        definition["metadata"]["name"]: servers.difference("POST", DEFINITIONS, definition)
        for definition in _definitions()
    }
    assert {name: each for name, each in found.items() if each} == {}


def test_every_example_is_answered_alike(servers: Servers) -> None:
    found = {
        f"{number} {example['kind']}": servers.difference("POST", f"{path}?dryRun=All", example)
        for number, (path, example) in enumerate(_served_examples(servers))
    }
    assert {name: each for name, each in found.items() if each} == {}
    assert len(found) > 100


def test_every_example_is_kept_and_shown_alike(servers: Servers) -> None:
    found = {}
    for number, (path, example) in enumerate(_served_examples(servers)):
        one = f"{path}/{example['metadata']['name']}"
        found[f"{number} created"] = servers.difference("POST", path, example)
        found[f"{number} read"] = servers.difference("GET", one)
        found[f"{number} shown"] = servers.difference("GET", one, headers=TABLE)
        patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"odd": 1}, "status": {"odd": 1}}
        found[f"{number} patched"] = servers.difference("PATCH", one, patch, headers=MERGE)
    assert {name: each for name, each in found.items() if each} == {}


def test_distorted_examples_are_answered_alike(servers: Servers) -> None:
    chance, served = _chance(), list(_served_examples(servers))
    found = []
    for _ in range(DISTORTED_EXAMPLES):
        path, example = chance.choice(served)
        distorted = _distorted(example, chance)
        if each := servers.difference("POST", f"{path}?dryRun=All", distorted):
            found.append((distorted, each))
    assert found == []


def test_distorted_definitions_are_answered_alike(servers: Servers) -> None:
    chance, found = _chance(), []
    small = [d for d in _definitions() if len(str(d)) < 40_000 and d["apiVersion"].endswith("/v1")]
    for _ in range(DISTORTED_DEFINITIONS):
        distorted = _distorted_definition(chance.choice(small), chance)
        if each := servers.difference("POST", f"{DEFINITIONS}?dryRun=All", distorted):
            found.append((distorted, each))
    assert found == []


def _chance() -> random.Random:
    return random.Random(int(os.environ.get("PODIUM_SEED", "1")))


def _definitions() -> list[Object]:
    """One definition of each name; what bundles share they have in different versions."""
    return list({d["metadata"]["name"]: d for bundle in bundles() for d in bundle.definitions}.values())


def _served_examples(servers: Servers) -> Iterator[tuple[str, Object]]:
    """Path and content of each example whose kind both servers have."""
    kinds: dict[tuple[str, str], Object] = {}
    for definition in _definitions():
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        if _is_served(servers.embedded, path) and _is_served(servers.real, path):
            kinds[definition["spec"]["group"], definition["spec"]["names"]["kind"]] = definition["spec"]
    for bundle in bundles():
        for example in bundle.examples:
            group, _, version = example["apiVersion"].partition("/")
            spec = kinds.get((group, example["kind"]))
            if spec is None or version not in _comparable_versions(spec):
                continue
            example = copy.deepcopy(example)
            scope = "" if spec["scope"] == "Cluster" else "/namespaces/default"
            example["metadata"].pop("namespace", None)
            yield f"/apis/{example['apiVersion']}{scope}/{spec['names']['plural']}", example


def _comparable_versions(spec: Object) -> set[str]:
    """The served versions; without webhooks, where their conversion would ask one, only the stored one."""
    by_webhook = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    return {v["name"] for v in spec["versions"] if v["served"] and (v["storage"] or not by_webhook)}


def _is_served(plain: Plain, path: str) -> bool:
    """Whether there is such a definition; if so, it is established when this answers."""

    def settled() -> int | None:
        answer = plain.request("GET", path)
        conditions = answer.json().get("status", {}).get("conditions") or () if answer.status == 200 else ()
        is_established = any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
        return answer.status if is_established or answer.status == 404 else None

    return eventually(settled) == 200


def outcome(answer: Answer) -> Object:
    """What of an answer must be the same on both servers."""
    body = answer.json()
    if isinstance(metadata := body.get("metadata"), dict):
        for field in VOLATILE:
            metadata.pop(field, None)
    if body.get("kind") == "Table":
        body["rows"] = [_without_age(row["cells"], body["columnDefinitions"]) for row in body["rows"]]
        for column in body["columnDefinitions"]:
            if column["name"] in ("Name", "Age"):
                del column["description"]  # upstream's words about metadata
    if isinstance(message := body.get("message"), str):
        # Of several wrong labels, Go names any one.
        body["message"] = re.sub(r"cannot unmarshal \w+ into (.*labels)", r"cannot unmarshal \1", message)
    details = body.get("details") if body.get("kind") == "Status" else None
    if isinstance(details, dict):
        details["causes"] = sorted(details.get("causes") or (), key=str)
        if details["causes"]:
            del body["message"]  # it repeats the causes, in the order in which Go walks a map
    for cause in details["causes"] if isinstance(details, dict) else ():
        # Types of rules are numbered at random, and a whole schema is shown as Go's internal struct.
        cause["message"] = re.sub(r"selfType\d*", "selfType", cause["message"])
        cause["message"] = re.sub(r".*(only \[.*\] fields are allowed)", r"\1", cause["message"])
    return {
        "status": answer.status,
        "warnings": sorted(answer.headers.get_all("Warning") or ()),
        "body": body,
    }


def _without_age(cells: list[Any], columns: list[Object]) -> list[Any]:
    return [cell for cell, column in zip(cells, columns, strict=True) if column["type"] != "date"]


def difference(ours: Any, theirs: Any) -> Any:
    """Only what differs, as pairs of ours and theirs at the ends of a tree; None where nothing does."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = {
            key: each
            for key in ours.keys() | theirs.keys()
            if (each := difference(ours.get(key, "(absent)"), theirs.get(key, "(absent)")))
        }
        return found or None
    if type(ours) is type(theirs) and ours == theirs:
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        return {
            "only ours": [each for each in ours if each not in theirs],
            "only theirs": [each for each in theirs if each not in ours],
        }
    return {"ours": ours, "theirs": theirs}


def _distorted(obj: Object, chance: random.Random) -> Object:
    """The same with one to three places removed, changed or added to."""
    result = copy.deepcopy(obj)
    for _ in range(chance.choice([1, 1, 2, 3])):
        places = [p for p in _places(result) if p[1] not in ("apiVersion", "kind", "name", "resourceVersion")]
        if not places:
            break
        holder, key = chance.choice(places)
        match chance.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder[key], dict):
                holder[key][chance.choice(["unknown", "metadata", "a-b", "name"])] = copy.deepcopy(
                    chance.choice(VALUES)
                )
            case 1 if isinstance(holder[key], list) and holder[key]:
                holder[key].append(copy.deepcopy(holder[key][0]))
            case _:
                holder[key] = copy.deepcopy(chance.choice(VALUES))
    return result


def _distorted_definition(definition: Object, chance: random.Random) -> Object:
    """The same with one or two faults, most of them in its schemas."""
    result = copy.deepcopy(definition)
    result["metadata"] = {"name": f"x{definition['metadata']['name']}"}
    result["spec"]["names"]["plural"] = f"x{definition['spec']['names']['plural']}"
    schemas = [v["schema"]["openAPIV3Schema"] for v in result["spec"].get("versions", ()) if "schema" in v]
    for _ in range(chance.choice([1, 1, 2])):
        if not schemas or chance.random() < 0.25:
            holder, key = chance.choice([place for place in _places(result["spec"]) if not _in_schema(place)])
            if chance.random() < 0.4:
                del holder[key]
            else:
                alike = [value for value in VALUES if type(value) is type(holder[key])]
                holder[key] = copy.deepcopy(chance.choice(alike or VALUES))
            continue
        node = chance.choice(list(_nodes(chance.choice(schemas))))
        if chance.random() < 0.2 and node:
            del node[chance.choice(list(node))]
        else:
            key, value = chance.choice(SCHEMA_KEYS)
            node[key] = copy.deepcopy(value)
    return result


def _in_schema(place: tuple[Any, Any]) -> bool:
    return isinstance(place[0], dict) and bool(place[0].keys() & {"type", "description", "properties"})


def _nodes(schema: Object) -> Iterator[Object]:
    yield schema
    for sub in (schema.get("properties") or {}).values():
        yield from _nodes(sub)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
