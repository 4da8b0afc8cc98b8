"""Upstream's test tables for server-side apply: structured-merge-diff's Go literals as Python values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.goliterals import Call, Composite, Name, UnreadableError, module_directory, read_value
from podium.schema import fieldset
from podium.schema.fieldset import FieldSet
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape

GO_MOD = Path(__file__).parents[2] / "conformance" / "go" / "kubernetes"
ATOMIC = Shape(Merge.ATOMIC)


class Schema:
    """A structured-merge-diff schema, as shapes."""

    def __init__(self, text: str) -> None:
        self.types = {made["name"]: made for made in yaml.safe_load(text)["types"]}
        self._made: dict[str, Shape] = {}

    def shape(self, name: str) -> Shape:
        if name in ("__untyped_deduced_", "__untyped_atomic_"):
            return UNTYPED if name == "__untyped_deduced_" else ATOMIC
        if name not in self._made:
            self._made[name] = self._of(self.types[name])
        return self._made[name]

    def _of(self, atom: dict[str, Any]) -> Shape:
        if "elementRelationship" in atom:  # a field may overrule its type
            relation = {"elementRelationship": atom["elementRelationship"]}
            atom = self.types[atom["namedType"]] if "namedType" in atom else atom
            atom = {form: {**atom[form], **relation} for form in ("list", "map") if form in atom}
        elif "namedType" in atom:
            return self.shape(atom["namedType"])
        forms = [form for form in ("scalar", "list", "map") if form in atom]
        if len(forms) > 1:
            return ATOMIC if atom["map"].get("elementRelationship") == "atomic" else UNTYPED
        if "scalar" in atom:
            return SCALAR
        return self._of_list(atom["list"]) if "list" in atom else self._of_map(atom["map"])

    def _of_list(self, made: dict[str, Any]) -> Shape:
        if made["elementRelationship"] != "associative":
            return ATOMIC
        keys = tuple(made.get("keys") or ())
        items = self._of(made["elementType"])
        defaults = {}
        element = made["elementType"]
        element = self.types[element["namedType"]] if "namedType" in element else element
        for field in (element.get("map") or {}).get("fields") or ():
            if "default" in field:
                defaults[field["name"]] = field["default"]
        return Shape(
            Merge.KEYED if keys else Merge.SET, items=lambda: items, keys=keys, key_defaults=defaults
        )

    def _of_map(self, made: dict[str, Any]) -> Shape:
        if made.get("elementRelationship") == "atomic":
            return ATOMIC
        declared = {field["name"]: field["type"] for field in made.get("fields") or ()}
        element = made.get("elementType")

        def field(name: str) -> Shape | None:
            atom = declared.get(name, element)
            return None if atom is None else self._of(atom)

        return Shape(Merge.OBJECT, field=field)


def wrapped(shape: Shape) -> Shape:
    """The shape of an object whose one field `root` holds a value, so that any value can be tested."""
    return Shape(Merge.OBJECT, field=lambda name: shape if name == "root" else None)


def yaml_object(text: str) -> Any:
    """A YAML document that is indented by tabs, as upstream writes it."""
    lines = text.split("\n")
    if not lines[0]:
        lines = lines[1:]
    tabs = len(lines[0]) - len(lines[0].lstrip("\t")) if lines else 0
    document = "\n".join(line[tabs:] for line in lines)
    if document.count("{") < document.count("}"):  # Go's YAML reader does not mind a brace too many
        document = document.rstrip()[:-1]
    return yaml.safe_load(document)


def path_of(call: Any) -> fieldset.Path:
    """`_P("list", _KBF("name", "a"), _V(1))`."""
    return tuple(_element(argument) for argument in call.args)


def set_of(call: Any) -> FieldSet:
    """`_NS(_P(...), ...)`."""
    if not isinstance(call, Call) or call.name.rpartition(".")[2] not in ("_NS", "NewSet"):
        raise UnreadableError(f"not a set: {call}")
    return fieldset.from_paths(path_of(path) for path in call.args)


def _element(argument: Any) -> str:
    if isinstance(argument, str):
        return fieldset.field_element(argument)
    if isinstance(argument, bool) or not isinstance(argument, int | Call):
        raise UnreadableError(f"not a path element: {argument}")
    if isinstance(argument, int):
        return f"i:{argument}"
    name = argument.name.rpartition(".")[2]
    if name in ("_KBF", "KeyByFields"):
        return fieldset.key_element(dict(zip(argument.args[::2], argument.args[1::2], strict=True)))
    if name in ("_V", "NewValueInterface"):
        return fieldset.value_element(argument.args[0])
    raise UnreadableError(f"not a path element: {argument}")


@dataclass(frozen=True)
class Table:
    """The `map[string]TestCase` of one test function, with the type its cases are about."""

    test: str
    parser: str
    cases: dict[str, Composite]


class Upstream:
    """structured-merge-diff's sources."""

    def __init__(self) -> None:
        self.directory = module_directory("sigs.k8s.io/structured-merge-diff/v6", GO_MOD)
        self.parsers: dict[str, Schema] = {}
        self.roots: dict[str, str] = {}
        for path in sorted((self.directory / "merge").glob("*_test.go")):
            self._read_parsers(path.read_text())

    def source(self, path: str) -> str:
        return (self.directory / path).read_text()

    def _read_parsers(self, source: str) -> None:
        pattern = re.compile(
            r"var (\w+) = func\(\) \*?[\w.]+ \{\s+\w+, err := typed\.NewParser\(`([^`]*)`\)(.*?)\n\t?\}\(\)",
            re.DOTALL,
        )
        for found in pattern.finditer(source):
            root = re.search(r'parser\.Type\("(\w+)"\)', found[3])
            self.parsers[found[1]] = Schema(found[2])
            self.roots[found[1]] = root[1] if root else "v1"

    def shape(self, parser: str, version: str = "v1") -> Shape:
        if parser == "DeducedParser":
            return UNTYPED
        root = self.roots[parser]
        schema = self.parsers[parser]
        return schema.shape(version if root == "v1" and version in schema.types else root)

    def tables(self) -> Iterator[Table]:
        """Every table of merge tests that can be read and needs no conversion between versions."""
        for path in sorted((self.directory / "merge").glob("*_test.go")):
            source = path.read_text()
            starts = list(re.finditer(r"^func (Test\w+)\(t \*testing\.T\) \{", source, re.MULTILINE))
            for at, found in enumerate(starts):
                end = starts[at + 1].start() if at + 1 < len(starts) else len(source)
                table = self._table(found[1], source[found.start() : end])
                if table is not None:
                    yield table

    def _table(self, test: str, body: str) -> Table | None:
        opening = re.search(r"tests := map\[string\](?:fixture\.)?TestCase(?=\{)", body)
        parser = re.search(r"err := test\.Test\((\w+)\)", body)
        if opening is None or parser is None:
            return None
        made = read_value(body, opening.end())
        return Table(test, parser[1], made.fields)


def name_of(value: Any) -> str:
    """The last part of a Go name or type."""
    text = value.text if isinstance(value, Name) else value
    return str(text).rpartition(".")[2]
