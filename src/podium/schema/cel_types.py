"""The static types of the Common Expression Language, and the types that a schema gives its values.

A schema's objects become types with declared fields, so that a misspelt field is an error when a CRD is
created, not when an object is. Values without a type of their own (`x-kubernetes-preserve-unknown-fields`
without a type) are not visible to rules at all; `x-kubernetes-int-or-string` is dynamic and judged at run
time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.schema import cel_syntax as syntax
from podium.schema import cel_values as values
from podium.schema import formats
from podium.schema.crdschema import Structural


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a kind, the types inside it, and for objects a name, the fields, and the schema."""

    kind: str
    params: tuple[Type, ...] = ()
    name: str = ""
    fields: Mapping[str, Type] = field(default_factory=dict, compare=False)
    schema: Structural | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.kind in ("list", "map"):
            return f"{self.kind}({', '.join(map(str, self.params))})"
        if self.kind == "optional":
            return f"optional_type({self.params[0]})"
        if self.kind == "type":
            return f"type({self.params[0]})" if self.params else "type"
        return self.name or {"null_type": "null"}.get(self.kind, self.kind)


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, DYN = Type("string"), Type("bytes"), Type("null_type"), Type("dyn")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
_NAMED = {t.kind: t for t in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DYN, TIMESTAMP, DURATION)}
_LIBRARY = ("URL", "IP", "CIDR", "Quantity", "Semver", "NamedFormat")


def list_of(item: Type) -> Type:
    """A list type."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """A map type."""
    return Type("map", (key, value))


def optional_of(inner: Type) -> Type:
    """An optional type."""
    return Type("optional", (inner,))


def library_type(name: str) -> Type:
    """The type of a Kubernetes library's values."""
    return Type("opaque", name={"IP": "net.IP", "CIDR": "net.CIDR"}.get(name, f"kubernetes.{name}"))


def parse_type(text: str) -> Type:
    """Read a type of a function's signature: `list<A>`, `map<string,B>`, `Quantity`."""
    found = re.fullmatch(r"(list|map|optional|type)<(.*)>", text)
    if found:
        return Type(found[1], tuple(parse_type(part) for part in split_top(found[2])))
    if text in _NAMED:
        return _NAMED[text]
    if text in _LIBRARY:
        return library_type(text)
    return Type("type") if text == "type" else Type("param", name=text)


def split_top(text: str) -> list[str]:
    """Split at the commas that are not inside angle brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def assignable(wanted: Type, actual: Type, bound: dict[str, Type]) -> bool:
    """Whether a value of one type may stand where another is wanted; binds the type parameters of "
    "`wanted`."""
    if wanted.kind == "param":
        held = bound.get(wanted.name)
        if held is None or held.kind == "dyn":
            bound[wanted.name] = actual
            return True
        if assignable(held, actual, bound):
            return True
        if assignable(actual, held, bound):
            bound[wanted.name] = actual
            return True
        return False
    if wanted.kind == "dyn" or actual.kind == "dyn":
        for param in wanted.params:
            assignable(param, DYN, bound)
        return True
    if actual.kind == "null_type" and wanted.kind in (
        "object",
        "opaque",
        "optional",
        "timestamp",
        "duration",
    ):
        return True
    if wanted.kind != actual.kind or wanted.name != actual.name:
        return False
    return wanted.kind == "type" or all(
        assignable(w, a, bound) for w, a in zip(wanted.params, actual.params, strict=True)
    )


def substitute(type_: Type, bound: Mapping[str, Type]) -> Type:
    """A type with its parameters replaced by what they are bound to; unbound ones are dynamic."""
    if type_.kind == "param":
        return bound.get(type_.name, DYN)
    if not type_.params:
        return type_
    return Type(type_.kind, tuple(substitute(p, bound) for p in type_.params), type_.name)


_RESERVED = syntax.RESERVED | {"true", "false", "null", "in"}
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """A property's name as rules write it, or None if they cannot."""
    if not re.fullmatch(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[-./]", lambda found: _ESCAPED[found[0]], name)


def unescape(name: str) -> str:
    """The property that a rule's name stands for."""
    if name.startswith("__") and name.endswith("__") and name[2:-2] in _RESERVED:
        return name[2:-2]
    return re.sub(r"__(underscores|dot|dash|slash)__", lambda found: _UNESCAPED[found[0]], name)


_UNESCAPED = {escaped: plain for plain, escaped in _ESCAPED.items()}
_META = Structural(type="object", properties={n: Structural(type="string") for n in ("name", "generateName")})


def declare(schema: Structural, is_resource: bool, name: str = "selfType") -> Type | None:
    """The type of the values of a schema, or None where rules cannot see them."""
    if schema.int_or_string:
        return DYN
    if schema.type == "array":
        if schema.items is None:
            return None
        item = declare(schema.items, schema.items.embedded, f"{name}.@idx")
        return None if item is None else Type("list", (item,), schema=schema)
    if schema.type == "object":
        return _declare_object(schema, is_resource, name)
    if schema.type == "string":
        kinds = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
        return kinds.get(schema.checks.format if schema.checks else "", STRING)
    return {"boolean": BOOL, "number": DOUBLE, "integer": INT}.get(schema.type)


def _declare_object(schema: Structural, is_resource: bool, name: str) -> Type | None:
    if schema.additional is not None:
        value = declare(schema.additional, schema.additional.embedded, f"{name}.@elem")
        return None if value is None else Type("map", (STRING, value), schema=schema)
    properties = dict(schema.properties)
    if is_resource:
        properties |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _metadata(properties.get("metadata"))}
    fields: dict[str, Type] = {}
    for key, sub in properties.items():
        escaped = escape(key)
        type_ = declare(sub, sub.embedded, f"{name}.{escaped}") if escaped is not None else None
        if escaped is not None and type_ is not None:
            fields[escaped] = type_
    return Type("object", name=name, fields=fields, schema=schema)


_TEXT = Structural(type="string")


def _metadata(declared: Structural | None) -> Structural:
    names = {"name", "generateName"}
    return declared if declared is not None and names <= set(declared.properties) else _META


Converter = Callable[[Any], Any]


def converter(schema: Structural) -> Converter | None:
    """What turns a JSON value into the CEL value of its schema; None where they are the same."""
    if schema.int_or_string:
        return None
    if schema.type == "string":
        return _STRINGS.get(schema.checks.format if schema.checks else "")
    if schema.type == "number":
        return lambda value: float(value) if type(value) is int else value
    if schema.type == "integer":
        return lambda value: int(value) if type(value) is float and value.is_integer() else value
    if schema.type == "array" and schema.items is not None:
        item = converter(schema.items)
        return None if item is None or schema.items.type == "integer" else lambda value: _each(value, item)
    if schema.type == "object":
        return _object_converter(schema)
    return None


def _each(value: Any, convert: Converter) -> Any:
    if type(value) is not list:
        return value
    return [convert(v) if v is not None else None for v in value]


def _object_converter(schema: Structural) -> Converter | None:
    if schema.additional is not None:
        convert = converter(schema.additional)
        if convert is None:
            return None
        return lambda value: {k: convert(v) if v is not None else None for k, v in value.items()}
    converters = {
        key: convert
        for key, sub in schema.properties.items()
        if sub.type != "integer" and (convert := converter(sub)) is not None
    }
    if not converters:
        return None

    def change(value: Any) -> Any:
        if type(value) is not dict:
            return value
        changed = {k: c(value[k]) for k, c in converters.items() if value.get(k) is not None}
        return value | changed if changed else value

    return change


def _bytes(text: Any) -> Any:
    try:
        return base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return text


def _duration(text: Any) -> Any:
    nanoseconds = formats.duration_nanoseconds(text) if type(text) is str else None
    return text if nanoseconds is None else values.Duration(nanoseconds)


_STRINGS: dict[str, Converter] = {
    "byte": _bytes,
    "duration": _duration,
    "date": lambda text: values.parse_date(text) or text,
    "date-time": lambda text: values.parse_timestamp(text) or text,
}
