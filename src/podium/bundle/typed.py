"""Reads plain values as the Go types of the originals read them, and says everything that does not fit.

The original tools decode a manifest twice: as a plain object, and into a Go struct. The second decoding has
rules of its own that decide what they see: field names match whatever their case, numbers and booleans become
text where text is wanted, null is as good as absent. `decode` follows these rules and returns the value with
its fields under their proper names, so that checks need not care. What it cannot read it leaves out and
reports; the originals stop at the first such value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from podium.bundle.annotations import as_text
from podium.schema import facts, quantity
from podium.schema.facts import Form
from podium.schema.gojson import DecodeError, base64_text, micro_time, time

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, bool, int32, int64, float64 or bytes."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape."""

    of: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from strings to one shape."""

    of: Shape


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by name; those of structs that Go inlines are `inlined`, and nothing becomes text in them."""

    fields: Mapping[str, Shape]
    inlined: frozenset[str] = frozenset()
    by_folded_name: dict[str, str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_folded_name", {name.casefold(): name for name in self.fields})


@dataclass(frozen=True, slots=True)
class Builtin:
    """A struct of Kubernetes, by its name in the table of facts; looked up when first used."""

    name: str


@dataclass(frozen=True, slots=True)
class Custom:
    """A type that reads its own JSON; `null` says whether it is asked even about null."""

    read: Callable[[Any], Any]
    null: bool = False


@dataclass(frozen=True, slots=True)
class AnySchema:
    """JSON schema in one of its either-or places: a schema, or a list of schemas, strings or a bool."""

    alternative: str  # list, strings, bool


Shape = Scalar | ListOf | MapOf | Struct | Builtin | Custom | AnySchema

STRING, BOOL, INT32, INT64 = (Scalar(name) for name in ("string", "bool", "int32", "int64"))
STRINGS, STRING_MAP = ListOf(STRING), MapOf(STRING)
ANY = Custom(lambda value: value)


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that does not fit its type."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value after decoding, with what did not fit and what was bent to fit."""

    value: Any
    problems: tuple[Problem, ...]
    miscased: tuple[tuple[Path, str], ...]  # fields found under a name of another case, and their own names
    coerced: tuple[Path, ...]  # numbers and booleans that became text


def decode(value: Any, shape: Shape, *, coerce: bool = True, fold: bool = True) -> Decoded:
    """Reads a value as a type; what does not fit is left out and reported.

    Where the originals go through JSON instead of YAML, nothing becomes text: that is `coerce=False`. Where
    they use Kubernetes' own decoder, case matters: `fold=False`.
    """
    walk = _Walk(fold)
    result = walk.value(value, shape, (), coerce)
    return Decoded(result, tuple(walk.problems), tuple(walk.miscased), tuple(walk.coerced))


@dataclass(slots=True)
class _Walk:
    fold: bool
    problems: list[Problem] = field(default_factory=list)
    miscased: list[tuple[Path, str]] = field(default_factory=list)
    coerced: list[Path] = field(default_factory=list)

    def value(self, value: Any, shape: Shape, path: Path, coerce: bool) -> Any:
        if isinstance(shape, Builtin):
            shape = _builtin(shape.name)
        if value is None and not (isinstance(shape, Custom) and shape.null):
            return None
        match shape:
            case Struct():
                return self._struct(value, shape, path, coerce)
            case ListOf(of):
                if not isinstance(value, list):
                    return self._misfit(value, "a list", path)
                return [self.value(item, of, (*path, i), coerce) for i, item in enumerate(value)]
            case MapOf(of):
                if not isinstance(value, dict):
                    return self._misfit(value, "a mapping", path)
                return {key: self.value(item, of, (*path, key), coerce) for key, item in value.items()}
            case Scalar(name):
                return self._scalar(value, name, path, coerce)
            case AnySchema(alternative):
                return self._any_schema(value, alternative, path)
            case Custom(read):
                return self._custom(value, read, path)

    def _struct(self, value: Any, shape: Struct, path: Path, coerce: bool) -> Any:
        if not isinstance(value, dict):
            return self._misfit(value, "an object", path)
        result: dict[str, Any] = {}
        for key in sorted(value) if any(key not in shape.fields for key in value) else value:
            name = key if key in shape.fields else shape.by_folded_name.get(key.casefold())
            if name is None or (name != key and not self.fold):
                continue
            if name != key:
                self.miscased.append(((*path, key), name))
            found = self.value(
                value[key], shape.fields[name], (*path, key), coerce and name not in shape.inlined
            )
            if found is not None:
                result[name] = found
        return result

    def _scalar(self, value: Any, name: str, path: Path, coerce: bool) -> Any:
        if name == "string":
            if isinstance(value, str):
                return value
            text = as_text(value) if coerce else None
            if text is None:
                return self._misfit(value, "a string", path)
            self.coerced.append(path)
            return text
        if name == "bool":
            return value if isinstance(value, bool) else self._misfit(value, "true or false", path)
        if name == "bytes":
            return self._custom(value, _base64, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._misfit(value, "a number", path)
        if name == "float64":
            return value
        limit = 2**31 if name == "int32" else 2**63
        if value != int(value) or not -limit <= value < limit:
            return self._misfit(value, f"an integer of {name[3:]} bits", path)
        return int(value)

    def _any_schema(self, value: Any, alternative: str, path: Path) -> Any:
        if isinstance(value, dict):
            return self.value(value, _SCHEMA, path, coerce=False)
        if alternative == "bool":
            return value if isinstance(value, bool) else self._misfit(value, "a schema or a boolean", path)
        if isinstance(value, list):
            of: Shape = _SCHEMA if alternative == "list" else STRING
            return self.value(value, ListOf(of), path, coerce=False)
        return None

    def _custom(self, value: Any, read: Callable[[Any], Any], path: Path) -> Any:
        try:
            return read(value)
        except (DecodeError, ValueError) as error:
            self.problems.append(Problem(path, str(error)))
            return None

    def _misfit(self, value: Any, wanted: str, path: Path) -> None:
        self.problems.append(Problem(path, f"expected {wanted}, found {_described(value)}"))


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
    return {bool: "a boolean", str: f"the text {shown}"}.get(type(value), f"the number {shown}")


def is_zero(value: Any, shape: Shape) -> bool:
    """Whether a decoded value is Go's zero value: an empty list or map that was written down is none."""
    if isinstance(shape, Builtin):
        shape = _builtin(shape.name)
    if value is None:
        return True
    if isinstance(shape, Struct):
        return all(is_zero(each, shape.fields[name]) for name, each in value.items())
    return isinstance(shape, Scalar) and not value


def text_or_number(value: Any) -> Any:
    """An IntOrString: text, or an integer of 32 bits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError(f"expected a string or an integer, found {_described(value)}")
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"the number {value} does not fit 32 bits")
    return int(value)


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a quantity, found {_described(value)}")
    return quantity.canonical(as_text(value) or "")


def _text_of_time(read: Callable[[str], str | None]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError(f"expected a time, found {_described(value)}")
        return read(value)

    return convert


def _base64(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected base64 text, found {_described(value)}")
    return base64_text(value)


TIME = Custom(_text_of_time(time))
_CUSTOM: dict[str, Shape] = {
    "api/resource.Quantity": Custom(_quantity),
    "apiextensions/v1.JSON": ANY,
    "apiextensions/v1.JSONSchemaPropsOrArray": AnySchema("list"),
    "apiextensions/v1.JSONSchemaPropsOrBool": AnySchema("bool"),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": AnySchema("strings"),
    "meta/v1.FieldsV1": ANY,
    "meta/v1.MicroTime": Custom(_text_of_time(micro_time)),
    "meta/v1.Time": TIME,
    "runtime.RawExtension": ANY,
    "util/intstr.IntOrString": Custom(text_or_number),
}
_SCHEMA = Builtin("apiextensions/v1.JSONSchemaProps")


@cache
def _builtin(name: str) -> Struct:
    fact = facts.load().struct(name)
    fields: dict[str, Shape] = {}
    inlined: set[str] = set()
    for member, trail in fact.members():
        fields[member.name] = _shape(member.type)
        if trail:
            inlined.add(member.name)
    return Struct(fields, frozenset(inlined))


def _shape(type_: facts.Type) -> Shape:
    match type_.form:
        case Form.POINTER:
            return _shape(type_.of)
        case Form.LIST:
            return ListOf(_shape(type_.of))
        case Form.MAP:
            return MapOf(_shape(type_.of))
        case Form.STRUCT:
            return Builtin(type_.name)
        case Form.CUSTOM:
            return _CUSTOM[type_.name]
        case Form.ANY:
            return ANY
    return Scalar(type_.scalar)
