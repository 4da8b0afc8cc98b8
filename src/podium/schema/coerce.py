"""Reads JSON the way a Go struct would, and gives what that struct would be written as.

The API server never stores what a client sent, but what was left of it after decoding: unknown fields are
gone (and listed for field validation), zero values have come or gone by the rules of `gojson`, quantities
and times are in their canonical form. This runs for every write, so each type is compiled once into
closures, and the paths that errors and unknown fields need are put together only while there is something
to report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from podium.schema import facts, quantity
from podium.schema.facts import FieldFact, Form, Type, TypeFact
from podium.schema.gojson import (
    DecodeError,
    Make,
    Omit,
    TypeMismatch,
    always,
    base64_text,
    empty_becomes_null,
    micro_time,
    mismatch,
    omit,
    time,
)

__all__ = ["Coerced", "DecodeError", "coerce"]

# The strict decoder stops listing after so many.
_UNKNOWN_LIMIT = 100

Unknown = list[str]
Convert = Callable[[Any, Unknown], Any]


@dataclass(frozen=True, slots=True)
class Coerced:
    """An object after decoding, and the fields that the decoder did not know, as `spec.containers[0].foo`."""

    object: dict[str, Any]
    unknown: tuple[str, ...] = ()


def coerce(obj: Any, type_: TypeFact) -> Coerced:
    """Decodes into a built-in type and encodes again; the result may share values with `obj`."""
    unknown: Unknown = []
    try:
        result = _converter(type_.type)(obj, unknown)
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if not unknown:
        return Coerced(result)
    return Coerced(result, tuple(path.removeprefix(".") for path in dict.fromkeys(unknown[:_UNKNOWN_LIMIT])))


_structs: dict[str, Convert] = {}


def _converter(type_: Type) -> Convert:
    """What converts a value of a type; null gives the zero value."""
    match type_.form:
        case Form.STRUCT:
            return _structs.get(type_.name) or _late(type_.name)
        case Form.POINTER:
            return _pointer(_converter(type_.of))
        case Form.LIST:
            return _strings(type_) if _is_string(type_.of) else _list(type_, _converter(type_.of))
        case Form.MAP:
            return _string_map(type_) if _is_string(type_.of) else _map(type_, _converter(type_.of))
        case Form.CUSTOM:
            return _CUSTOM[type_.name]()
        case Form.ANY:
            return _verbatim()
    return _SCALARS[type_.scalar](type_)


def _is_string(type_: Type) -> bool:
    return type_.form is Form.SCALAR and type_.scalar == "string"


def _late(name: str) -> Convert:
    """Compiles a struct at its first use: types recurse, and most are never met."""

    def convert(value: Any, unknown: Unknown) -> Any:
        compiled = _structs.get(name)
        if compiled is None:
            compiled = _structs[name] = _struct(facts.load().struct(name))
        return compiled(value, unknown)

    return convert


@dataclass(slots=True)
class _Member:
    convert: Convert
    omit: Omit
    is_string: bool
    null_if_empty: bool
    trail: tuple[str, ...]


def _struct(fact: TypeFact) -> Convert:
    members = {field.name: _member(fact, field, trail) for field, trail in fact.members()}
    get = members.get
    present: tuple[tuple[str, Make], ...] = always(fact)
    never, empty = Omit.NEVER, Omit.EMPTY

    def convert(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is not dict:
            if value is None:
                value = {}
            else:
                mismatch(value, fact.go)
        result: dict[str, Any] = {}
        name = ""
        known = len(unknown)
        try:
            for name, item in value.items():
                member = get(name)
                if member is None:
                    unknown.append(f".{name}")
                    known += 1
                    continue
                if member.is_string and item.__class__ is str:
                    if item or member.omit is never:
                        result[name] = item
                    continue
                item = member.convert(item, unknown)
                if len(unknown) != known:
                    unknown[known:] = [f".{name}{path}" for path in unknown[known:]]
                    known = len(unknown)
                if member.omit is never:
                    result[name] = None if member.null_if_empty and not item else item
                elif item if member.omit is empty else item is not None:
                    result[name] = item
        except TypeMismatch as error:
            if not error.struct:
                error.struct = fact.go.rpartition(".")[2]
            error.fields.extend((name, *reversed(members[name].trail)))
            raise
        for name, make in present:
            if name not in result:
                result[name] = make()
        return result

    return convert


def _member(owner: TypeFact, field: FieldFact, trail: tuple[str, ...]) -> _Member:
    return _Member(
        _converter(field.type), omit(field), _is_string(field.type), empty_becomes_null(owner, field), trail
    )


def _pointer(convert: Convert) -> Convert:
    return lambda value, unknown: None if value is None else convert(value, unknown)


def _list(type_: Type, convert_item: Convert) -> Convert:
    def convert(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is not list:
            return None if value is None else mismatch(value, type_.go)
        result = []
        known = len(unknown)
        for index, item in enumerate(value):
            result.append(convert_item(item, unknown))
            if len(unknown) != known:
                unknown[known:] = [f"[{index}]{path}" for path in unknown[known:]]
                known = len(unknown)
        return result

    return convert


def _map(type_: Type, convert_item: Convert) -> Convert:
    def convert(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is not dict:
            return None if value is None else mismatch(value, type_.go)
        result = {}
        known = len(unknown)
        for key, item in value.items():
            result[key] = convert_item(item, unknown)
            if len(unknown) != known:
                unknown[known:] = [f".{key}{path}" for path in unknown[known:]]
                known = len(unknown)
        return result

    return convert


def _strings(type_: Type) -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value.__class__ is not list:
            return None if value is None else mismatch(value, type_.go)
        for item in value:
            if item.__class__ is not str:
                return [_text(each, type_.of.go) for each in value]
        return value

    return convert


def _string_map(type_: Type) -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value.__class__ is not dict:
            return None if value is None else mismatch(value, type_.go)
        for item in value.values():
            if item.__class__ is not str:
                return {key: _text(each, type_.of.go) for key, each in value.items()}
        return value

    return convert


def _text(value: Any, go_type: str) -> str:
    if value.__class__ is str:
        return str(value)
    return "" if value is None else mismatch(value, go_type)


def _string(type_: Type) -> Convert:
    return lambda value, _: _text(value, type_.go)


def _bool(type_: Type) -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value is True or value is False:
            return value
        return False if value is None else mismatch(value, type_.go)

    return convert


def _int(bits: int) -> Callable[[Type], Convert]:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def build(type_: Type) -> Convert:
        def convert(value: Any, _: Unknown) -> Any:
            if value.__class__ is int and lowest <= value <= highest:
                return value
            return 0 if value is None else mismatch(value, type_.go, literal=True)

        return convert

    return build


def _float(type_: Type) -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value.__class__ is float:
            # Go writes a whole number without its decimals.
            return int(value) if value.is_integer() and abs(value) < 1e21 else value
        if value.__class__ is int:
            return value
        return 0 if value is None else mismatch(value, type_.go)

    return convert


def _bytes(type_: Type) -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value.__class__ is str:
            return base64_text(value)
        return None if value is None else mismatch(value, type_.go)

    return convert


_SCALARS: dict[str, Callable[[Type], Convert]] = {
    "string": _string,
    "bool": _bool,
    "int32": _int(32),
    "int64": _int(64),
    "float64": _float,
    "bytes": _bytes,
}


def _verbatim() -> Convert:
    return lambda value, _: value


def _time(read: Callable[[str], str | None]) -> Callable[[], Convert]:
    def convert(value: Any, _: Unknown) -> Any:
        if value.__class__ is str:
            return read(value)
        return None if value is None else mismatch(value, "string")

    return lambda: convert


def _quantity() -> Convert:
    def convert(value: Any, _: Unknown) -> Any:
        if value is None:
            return "0"
        if value.__class__ is not str:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            value = str(value) if is_number else "{}"  # whatever it is, it is refused as malformed
        try:
            return quantity.canonical(value.strip())
        except quantity.QuantityError as error:
            raise DecodeError(str(error)) from None

    return convert


def _int_or_string() -> Convert:
    number = _int(32)(Type(Form.SCALAR, "int32", scalar="int32"))
    return lambda value, unknown: value if value.__class__ is str else number(value, unknown)


def _schema_or(fallback: Callable[[Any, Convert], Any]) -> Callable[[], Convert]:
    """A JSON schema, or something else. It is decoded on its own, so its unknown fields are not reported."""

    def build() -> Convert:
        schema = _late("apiextensions/v1.JSONSchemaProps")

        def convert(value: Any, _: Unknown) -> Any:
            try:
                return schema(value, []) if value.__class__ is dict else fallback(value, schema)
            except TypeMismatch as error:
                error.struct = ""  # the struct that holds this one is named instead
                raise

        return convert

    return build


def _or_bool(value: Any, _: Convert) -> Any:
    if value is True or value is False:
        return value
    raise DecodeError("boolean or JSON schema expected")


def _or_array(value: Any, schema: Convert) -> Any:
    return [schema(item, []) for item in value] or None if value.__class__ is list else None


def _or_strings(value: Any, _: Convert) -> Any:
    return [_text(item, "string") for item in value] or None if value.__class__ is list else None


_CUSTOM: dict[str, Callable[[], Convert]] = {
    "api/resource.Quantity": _quantity,
    "apiextensions/v1.JSON": _verbatim,
    "apiextensions/v1.JSONSchemaPropsOrArray": _schema_or(_or_array),
    "apiextensions/v1.JSONSchemaPropsOrBool": _schema_or(_or_bool),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": _schema_or(_or_strings),
    "meta/v1.FieldsV1": _verbatim,
    "meta/v1.MicroTime": _time(micro_time),
    "meta/v1.Time": _time(time),
    "runtime.RawExtension": _verbatim,
    "util/intstr.IntOrString": _int_or_string,
}
