"""What Kubernetes' built-in kinds look like: fields, types, merge keys, protobuf numbers, resources.

The table `facts.jsonl` is generated (`tools/facts`). It is read once and kept as lines of bytes; a type is
decoded when somebody first asks for it, because a server meets a few dozen of the several hundred. Types
are named by package alias and Go name (`core/v1.Container`); a field's type is an expression over such
names, parsed to `Type`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec

from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape

# Kinds of the API machinery are known under every group and version.
_META_PACKAGE = "meta/v1"


class Form(Enum):
    """How a type is put together."""

    SCALAR = "scalar"  # string, bool, int32, int64, float64, bytes
    POINTER = "pointer"
    LIST = "list"
    MAP = "map"
    STRUCT = "struct"
    CUSTOM = "custom"  # reads and writes its own JSON: Time, Quantity, IntOrString, ...
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Type:
    """A type expression. A named type that is no struct has the form of what it stands for."""

    form: Form
    go: str  # as Go prints it: v1.PullPolicy, []v1.Container
    name: str = ""  # the type's name in the table, if it has one
    scalar: str = ""
    element: Type | None = None  # of a pointer, list or map
    enum: tuple[str, ...] = ()

    @property
    def of(self) -> Type:
        """What a pointer points at, and what a list or map holds."""
        assert self.element is not None
        return self.element

    def deref(self) -> Type:
        """The type without its pointer, if it is one."""
        return self.of if self.form is Form.POINTER else self


@dataclass(frozen=True, slots=True)
class FieldFact:
    """One field of a struct."""

    name: str  # as in JSON; of an inlined struct its Go name
    type: Type
    number: int  # of the protobuf field; 0 if it is not in protobuf
    inline: bool = False
    omitempty: bool = False
    omitzero: bool = False
    required: bool = False
    extra: Mapping[str, Any] = field(
        default_factory=dict
    )  # list, keys, map, strategy, mergeKey, default, format

    @property
    def default(self) -> Any:
        """The default that OpenAPI publishes, or None."""
        if "default" in self.extra:
            return self.extra["default"]
        if self.type.form is Form.STRUCT:
            return {}
        if self.type.form is Form.SCALAR and not self.omitempty and self.type.scalar != "bytes":
            return _ZERO[self.type.scalar]
        return None


_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


@dataclass(frozen=True, slots=True)
class TypeFact:
    """A struct, or a type with a JSON of its own; both may be the type of a whole object."""

    name: str  # core/v1.Container
    openapi: str  # io.k8s.api.core.v1.Container
    go: str  # v1.Container
    type: Type
    fields: tuple[FieldFact, ...] = ()
    map_type: str = ""  # atomic: server-side apply does not merge below
    unions: tuple[Any, ...] = ()

    def members(self) -> Iterator[tuple[FieldFact, tuple[str, ...]]]:
        """The fields as JSON has them, each with the Go names of the inlined structs that it comes from."""
        for each in self.fields:
            if each.inline:
                for inner, trail in load().struct(each.type.name).members():
                    yield inner, (each.name, *trail)
            else:
                yield each, ()


@dataclass(frozen=True, slots=True)
class SubresourceFact:
    """A subresource: `status`, `scale`, ..."""

    name: str
    group: str  # of the kind that requests and responses hold
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceFact:
    """A resource that the API server serves, as discovery tells it."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    subresources: tuple[SubresourceFact, ...]
    storage_version_hash: str


@cache
def load() -> Facts:
    """The table, read at the first call."""
    return Facts(Path(__file__).with_name("facts.jsonl").read_bytes())


class Facts:
    """The table of facts: resources, kinds and types."""

    def __init__(self, table: bytes) -> None:
        lines = table.splitlines()
        self._header: dict[str, Any] = msgspec.json.decode(lines[0])
        # A line of a type starts with `["core/v1.Container"`, a line of a resource with a brace.
        self._lines = {line[2 : line.index(b'"', 2)].decode(): line for line in lines if line[0] == 0x5B}
        self._resource_lines = [line for line in lines[1:] if line[0] == 0x7B]
        self._types: dict[str, Type] = {}
        self._structs: dict[str, TypeFact] = {}

    @property
    def kubernetes_version(self) -> str:
        """The release that the table describes, such as v1.36.4."""
        return str(self._header["kubernetes"])

    @cached_property
    def resources(self) -> tuple[ResourceFact, ...]:
        """Every resource of every built-in group and version."""
        return tuple(_resource(msgspec.json.decode(line)) for line in self._resource_lines)

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """The groups and versions that have built-in resources."""
        return tuple(dict.fromkeys((r.group, r.version) for r in self.resources))

    def type_for(self, group: str, version: str, kind: str) -> TypeFact | None:
        """The type of a kind; kinds of the API machinery are found under any group and version."""
        package = self._header["versions"].get(f"{group}/{version}" if group else version)
        for name in (f"{package}.{kind}", f"{_META_PACKAGE}.{kind}"):
            if self.is_kind(name):
                return self.struct(name)
        return None

    def kinds(self) -> Iterator[tuple[str, str, str]]:
        """Group, version and kind of every built-in kind; the API machinery's are in `meta.k8s.io`."""
        for group_version, package in self._header["versions"].items():
            group, _, version = group_version.rpartition("/")
            for name in self._lines:
                if name.rpartition(".")[0] == package and self.is_kind(name):
                    yield group, version, name.rpartition(".")[2]

    def is_kind(self, name: str) -> bool:
        """Whether a type, by its name in the table, is that of whole objects."""
        # WatchEvent is a kind without a TypeMeta: it is framed, not enveloped.
        return b'"TypeMeta"' in self._lines.get(name, b"") or name == f"{_META_PACKAGE}.WatchEvent"

    def openapi_names(self) -> dict[str, str]:
        """The names in the table by the names that OpenAPI documents use."""
        return {self._openapi(name): name for name in self._lines}

    def _openapi(self, name: str) -> str:
        package, _, short = name.rpartition(".")
        return f"{self._header['packages'].get(package, package)}.{short}"

    def struct(self, name: str) -> TypeFact:
        """The struct or custom type of that name."""
        fact = self._structs.get(name)
        if fact is None:
            fact = self._structs[name] = self._decode(name)
        return fact

    def _decode(self, name: str) -> TypeFact:
        line = msgspec.json.decode(self._lines[name])
        package, openapi = name.rpartition(".")[0], self._openapi(name)
        type_ = self._named(name)
        if type_.form is not Form.STRUCT:
            return TypeFact(name, openapi, type_.go, type_)
        fields = tuple(self._field(package, *entry) for entry in line[2])
        options = line[1]
        return TypeFact(
            name, openapi, type_.go, type_, fields, options.get("map", ""), tuple(options.get("unions", ()))
        )

    def _field(
        self,
        package: str,
        name: str,
        type_: str,
        number: int,
        flags: str,
        extra: dict[str, Any] | None = None,
    ) -> FieldFact:
        return FieldFact(
            name=name,
            type=self._parse(type_, package),
            number=number,
            inline="n" in flags,
            omitempty="e" in flags,
            omitzero="z" in flags,
            required="r" in flags,
            extra=extra or {},
        )

    def _parse(self, text: str, package: str) -> Type:
        """Reads a type expression: `*T`, `[]T`, `{K}T`, a scalar's name, or a type's name."""
        if text.startswith("*"):
            of = self._parse(text[1:], package)
            return Type(Form.POINTER, f"*{of.go}", element=of)
        if text.startswith("[]"):
            of = self._parse(text[2:], package)
            return Type(Form.LIST, f"[]{of.go}", element=of)
        if text.startswith("{"):
            key, _, value = text[1:].partition("}")
            of = self._parse(value, package)
            key_go = self._parse(key, package).go if key else "string"
            return Type(Form.MAP, f"map[{key_go}]{of.go}", element=of)
        if text in _SCALARS:
            return _SCALARS[text]
        return self._named(text if "." in text else f"{package}.{text}")

    def _named(self, name: str) -> Type:
        known = self._types.get(name)
        if known is not None:
            return known
        line = self._lines[name]
        go = name.rpartition("/")[2]
        if line.endswith((b"]]]", b",[]]")):
            made = Type(Form.STRUCT, go, name)
        elif line.startswith(f'["{name}"]'.encode()):
            made = Type(Form.CUSTOM, go, name)
        else:
            _, text, *enum = msgspec.json.decode(line)
            meant = self._parse(text, name.rpartition(".")[0])
            made = Type(meant.form, go, name, meant.scalar, meant.element, tuple(enum[0]) if enum else ())
        self._types[name] = made
        return made


_SCALARS = {
    name: Type(Form.SCALAR, name, scalar=name) for name in ("string", "bool", "int32", "int64", "float64")
}
_SCALARS["bytes"] = Type(Form.SCALAR, "[]uint8", scalar="bytes")
_SCALARS["interface"] = Type(Form.ANY, "interface {}")


def _resource(line: dict[str, Any]) -> ResourceFact:
    def subresource(name: str, kind: str, group_version: str, verbs: list[str]) -> SubresourceFact:
        group, slash, version = group_version.partition("/")
        if not slash:
            group, version = line["group"], line["version"]
        return SubresourceFact(name, group, version, kind, tuple(verbs))

    return ResourceFact(
        group=line["group"],
        version=line["version"],
        plural=line["plural"],
        singular=line["singular"],
        kind=line["kind"],
        namespaced=line["namespaced"],
        short_names=tuple(line.get("shortNames", ())),
        categories=tuple(line.get("categories", ())),
        verbs=tuple(line["verbs"]),
        subresources=tuple(subresource(*entry) for entry in line.get("subresources", ())),
        storage_version_hash=line.get("hash", ""),
    )


def shape_for(type_: TypeFact) -> Shape:
    """How objects of a built-in type merge."""
    return _struct_shape(type_.name)


# Custom types whose value is an object that nothing is declared about; the others are scalars.
_UNTYPED = re.compile(r"runtime\.RawExtension|meta/v1\.FieldsV1|apiextensions/v1\.JSON.*")


@cache
def _struct_shape(name: str) -> Shape:
    fact = load().struct(name)
    if fact.type.form is Form.CUSTOM:
        return UNTYPED if _UNTYPED.fullmatch(name) else SCALAR
    members = {each.name: each for each, _ in fact.members()}
    known: dict[str, Shape] = {}

    def child(field_name: str) -> Shape | None:
        shape = known.get(field_name)
        if shape is None and field_name in members:
            shape = known[field_name] = _field_shape(members[field_name])
        return shape

    return Shape(Merge.ATOMIC if fact.map_type == "atomic" else Merge.OBJECT, field=child)


def _field_shape(each: FieldFact) -> Shape:
    type_, extra = each.type.deref(), each.extra
    strategies = frozenset(extra["strategy"].split(",")) if "strategy" in extra else frozenset()
    patch: dict[str, Any] = {"patch_merge_key": extra.get("mergeKey"), "patch_strategies": strategies}
    if type_.form is Form.LIST:
        return _list_shape(type_, extra, patch)
    plain = _type_shape(type_)
    merge = Merge.ATOMIC if extra.get("map") == "atomic" else plain.merge
    if merge is plain.merge and not strategies:
        return plain
    return Shape(merge, field=plain.field, items=plain.items, **patch)


def _list_shape(type_: Type, extra: Mapping[str, Any], patch: dict[str, Any]) -> Shape:
    items: Callable[[], Shape] = cache(lambda: _type_shape(type_.of))
    declared, keys = extra.get("list"), tuple(extra.get("keys", ()))
    if declared is None and "merge" in patch["patch_strategies"]:
        # Lists that only say how to be patched are read as if they had said how to be applied.
        declared = "map" if patch["patch_merge_key"] else "set"
        keys = (patch["patch_merge_key"],) if patch["patch_merge_key"] else ()
    if declared == "map":
        defaults = _key_defaults(type_.of, keys)
        return Shape(Merge.KEYED, items=items, keys=keys, key_defaults=defaults, **patch)
    return Shape(Merge.SET if declared == "set" else Merge.ATOMIC, items=items, **patch)


def _key_defaults(element: Type, keys: tuple[str, ...]) -> dict[str, Any]:
    members = {each.name: each for each, _ in load().struct(element.deref().name).members()}
    return {key: members[key].default for key in keys if members[key].default is not None}


def _type_shape(type_: Type) -> Shape:
    match type_.form:
        case Form.POINTER:
            return _type_shape(type_.of)
        case Form.STRUCT | Form.CUSTOM:
            return _struct_shape(type_.name)
        case Form.MAP:
            value = cache(lambda: _type_shape(type_.of))
            return Shape(Merge.OBJECT, field=lambda _: value())
        case Form.LIST:
            return Shape(Merge.ATOMIC, items=lambda: _type_shape(type_.of))
        case Form.ANY:
            return UNTYPED
    return SCALAR
