"""Writes the table of facts about Kubernetes' built-in kinds (`src/podium/schema/facts.jsonl`).

Joins what reflection over the Go types knows (`go run ./dump`) with the OpenAPI v3 and discovery documents
that the same release of Kubernetes publishes. The table says nothing that the reader
(`podium.schema.facts`) can derive, holds one type per line, and comes out the same for the same inputs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "src" / "podium" / "schema" / "facts.jsonl"
# What the alias of a package leaves off its import path.
PREFIXES = (
    "k8s.io/api/",
    "k8s.io/apimachinery/pkg/apis/",
    "k8s.io/apimachinery/pkg/",
    "k8s.io/apiextensions-apiserver/pkg/apis/",
    "k8s.io/kube-aggregator/pkg/apis/",
)
REFERENCE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.\w+")


def main(output: Path) -> None:
    dump = json.loads(run("go", "run", "./dump"))
    module = json.loads(run("go", "list", "-m", "-json", "k8s.io/kubernetes"))
    published = Path(module["Dir"]) / "api"
    lines: list[Any] = [header(dump, module["Version"])]
    lines += resources(
        dump, json.loads((published / "discovery" / "aggregated_v2.json").read_text()), published
    )
    lines += types(dump, schemas(published / "openapi-spec" / "v3"))
    output.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def run(*command: str) -> str:
    return subprocess.run(command, cwd=HERE, check=True, text=True, stdout=subprocess.PIPE).stdout


def alias(name: str) -> str:
    """The short form of an import path, or of a type's name that starts with one."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def header(dump: Any, version: str) -> dict[str, Any]:
    packages = {}
    for name, described in dump["types"].items():
        if "OpenAPI" in described:
            packages[alias(name).rpartition(".")[0]] = described["OpenAPI"].rpartition(".")[0]
    versions = {}
    for kind in dump["kinds"]:
        package = alias(kind["Type"]).rpartition(".")[0]
        if package != "meta/v1" or kind["Group"] == "meta.k8s.io":
            versions[f"{kind['Group']}/{kind['Version']}".removeprefix("/")] = package
    return {"kubernetes": version, "packages": ordered(packages), "versions": ordered(versions)}


def resources(dump: Any, discovery: Any, published: Path) -> Iterator[dict[str, Any]]:
    """What discovery says of each resource, in its order."""
    core = json.loads((published / "discovery" / "api__v1.json").read_text())
    served = {(kind["Group"], kind["Version"]) for kind in dump["kinds"]}
    yield from plain_resources("", "v1", core)
    for group in sorted(discovery["items"], key=lambda item: str(item["metadata"]["name"])):
        name = group["metadata"]["name"]
        for version in group["versions"]:
            if (name, version["version"]) in served:
                document = published / "discovery" / f"apis__{name}__{version['version']}.json"
                yield from plain_resources(name, version["version"], json.loads(document.read_text()))


def plain_resources(group: str, version: str, document: Any) -> Iterator[dict[str, Any]]:
    subresources: dict[str, list[list[Any]]] = {}
    for resource in document["resources"]:
        parent, slash, name = resource["name"].partition("/")
        if slash:
            of = f"{resource.get('group', '')}/{resource['version']}" if "version" in resource else ""
            subresources.setdefault(parent, []).append([name, resource["kind"], of, resource["verbs"]])
    for resource in document["resources"]:
        if "/" in resource["name"]:
            continue
        fact = {
            "group": group,
            "version": version,
            "plural": resource["name"],
            "singular": resource["singularName"],
            "kind": resource["kind"],
            "namespaced": resource["namespaced"],
            "shortNames": resource.get("shortNames"),
            "categories": resource.get("categories"),
            "hash": resource.get("storageVersionHash"),
            "verbs": resource["verbs"],
            "subresources": subresources.pop(resource["name"], None),
        }
        yield {key: value for key, value in fact.items() if value is not None}
    # A subresource may stand alone: `pods/eviction` has a parent, but nothing promises that.
    assert not subresources, subresources


def schemas(folder: Path) -> dict[str, Any]:
    found = {}
    for document in sorted(folder.glob("api*__*v[0-9]_openapi.json")):
        found.update(json.loads(document.read_text())["components"]["schemas"])
    return found


def types(dump: Any, published: dict[str, Any]) -> Iterator[list[Any]]:
    described_types = dump["types"]
    fields = [(t, f) for t in described_types.values() for f in t["Fields"] or ()]
    enums = {base(f["Type"]): f["Enum"] for _, f in fields if "Enum" in f}
    # A type that others inline may have no schema of its own; its fields are described where it is inlined.
    outer = {
        f["Type"]: published[t["OpenAPI"]] for t, f in fields if "Inline" in f and t["OpenAPI"] in published
    }
    for name, described in sorted(described_types.items(), key=lambda item: alias(item[0])):
        short = alias(name)
        if described.get("Custom"):
            yield [short]
        elif "Underlying" in described:
            line = [short, relative(described["Underlying"], short)]
            yield [*line, enums[name]] if name in enums else line
        else:
            own = published.get(described["OpenAPI"], {})
            schema = own or outer.get(name, {})
            kinds = {f["Type"]: form(f["Type"], described_types) for f in described["Fields"]}
            yield [
                short,
                struct_options(own),
                [field(f, short, schema, kinds[f["Type"]]) for f in described["Fields"]],
            ]


def struct_options(schema: Any) -> dict[str, Any]:
    words = {"x-kubernetes-map-type": "map", "x-kubernetes-unions": "unions"}
    return {word: schema[key] for key, word in words.items() if key in schema}


def form(expression: str, described_types: Any) -> str:
    """What tells whether OpenAPI gives a field a default unasked: `struct`, a scalar's name, or nothing."""
    if expression.startswith(("*", "[]", "{")) or expression == "bytes":
        return ""
    described = described_types.get(expression)
    if described is None or "Underlying" in described:
        return form(described["Underlying"], described_types) if described else expression
    return "" if described.get("Custom") else "struct"


def field(dumped: Any, owner: str, schema: Any, kind: str) -> list[Any]:
    """[name, type, protobuf number, flags, what OpenAPI adds], cut off after the last that says something."""
    flags = "".join(
        letter
        for letter, present in {
            "n": "Inline" in dumped,
            "e": "OmitEmpty" in dumped,
            "z": "OmitZero" in dumped,
            "r": dumped["Name"] in schema.get("required", ()),
        }.items()
        if present
    )
    line = [dumped["Name"], relative(dumped["Type"], owner), dumped.get("Number", 0), flags]
    prop = schema.get("properties", {}).get(dumped["Name"], {})
    extra = {} if "Inline" in dumped else openapi_extra(dumped, prop, kind)
    return [*line, extra] if extra else line


ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def openapi_extra(dumped: Any, prop: Any, kind: str) -> dict[str, Any]:
    words = {
        "x-kubernetes-list-type": "list",
        "x-kubernetes-list-map-keys": "keys",
        "x-kubernetes-map-type": "map",
        "format": "format",
    }
    extra = {word: prop[key] for key, word in words.items() if key in prop}
    if extra.get("format") in ("int32", "int64", "double", "byte", "date-time", "int-or-string"):
        del extra["format"]  # follows from the type
    expected = {} if kind == "struct" else None if "OmitEmpty" in dumped else ZERO.get(kind)
    if prop and prop.get("default") != expected:
        extra["default"] = prop.get("default")
    for key, word in (("PatchStrategy", "strategy"), ("PatchMergeKey", "mergeKey")):
        if key in dumped:
            extra[word] = dumped[key]
    return extra


def base(expression: str) -> str:
    return re.sub(r"^(\*|\[\]|\{.*\})+", "", expression)


def relative(expression: str, owner: str) -> str:
    """A type expression with short names, and without the package of the type that uses it."""
    own = owner.rpartition(".")[0] + "."
    return REFERENCE.sub(lambda match: alias(match.group()).removeprefix(own), expression)


def ordered(mapping: dict[str, str]) -> dict[str, str]:
    return dict(sorted(mapping.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE)
