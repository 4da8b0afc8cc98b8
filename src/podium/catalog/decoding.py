"""JSON into structs and out of them as Go does it, so that opm and we read the same catalog.

Go finds keys in any case, takes null for not set, leaves out what it does not know, and writes only some
fields if they are empty. msgspec is strict and fast. So texts are first decoded by msgspec, as tools write
them, and only what does not fit is looked at again with `fit`, which is as patient as Go.
"""

from __future__ import annotations

import binascii
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import msgspec

from podium.text import gojson


class Misfit(ValueError):
    """A value of the wrong type; the message names the field."""


def compact(value: Any) -> bytes:
    """A value in the form that `Blob.raw` has; it must have been read by `gojson.FLOATS`, for its numbers."""
    try:
        return gojson.escaped(msgspec.json.encode(value, order="sorted"), html=False)
    except UnicodeEncodeError:  # half a surrogate pair, which Go reads as U+FFFD
        return compact(gojson.without_surrogates(value))


def encoded(value: Any) -> bytes:
    """Compact JSON as opm writes it, with the keys in the order that they have."""
    return gojson.escaped(msgspec.json.encode(value), html=False)


def document(value: msgspec.Struct) -> dict[str, Any]:
    """The fields that opm writes, in its order: those that are set, and the struct's `always_written`."""
    always = getattr(value, "always_written", ())
    written = {}
    for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        field = getattr(value, name)
        if field or key in always:
            written[key] = _plain(field)
    return written


def _plain(value: Any) -> Any:
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is msgspec.Raw:
        return value if bytes(value) else None
    return document(value) if isinstance(value, msgspec.Struct) else value


# --- as Go decodes ---

Raw = Callable[[Any], bytes]


def fit(kind: Any, value: Any, where: str, raw: Raw = compact) -> Any:
    """The value as Go would decode it into this type; Misfit if it would not.

    `raw` writes what a field keeps as JSON.
    """
    if kind is msgspec.Raw:
        return msgspec.Raw(raw(value))
    kind = _without_none(kind)
    if value is None:
        return _empty(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fit_fields(kind, value, where, raw)
    origin, parameters = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _fit_number(parameters[1], value, where)
    if origin is list:
        _expect(list, value, where)
        return [fit(parameters[0], item, f"{where}[{index}]", raw) for index, item in enumerate(value)]
    if origin is dict:
        _expect(dict, value, where)
        return {key: fit(parameters[1], value[key], f"{where}.{key}", raw) for key in sorted(value)}
    if kind is bytes:
        return base64_data(value, where)
    _expect(kind, value, where)
    return value


def _fit_fields(kind: type[msgspec.Struct], value: Any, where: str, raw: Raw) -> Any:
    _expect(dict, value, where)
    found: dict[str, Any] = {}
    for key in sorted(value):
        known = _known_fields(kind).get(key.casefold())
        if known is None:
            continue
        name, inner, encoded_name = known
        if value[key] is not None or inner is msgspec.Raw:
            found[name] = fit(inner, value[key], f"{where}.{encoded_name}" if where else encoded_name, raw)
        elif typing.get_origin(inner) in (list, dict, types.UnionType):
            found.pop(name, None)  # null empties these, should the key be there twice; it changes no others
    return kind(**found)


@cache
def _known_fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str, Any, str]]:
    fields = msgspec.structs.fields(kind)
    return {each.encode_name.casefold(): (each.name, each.type, each.encode_name) for each in fields}


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) is types.UnionType:
        return next(each for each in typing.get_args(kind) if each is not types.NoneType)
    return kind


def _empty(kind: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return 0
    return origin() if origin else kind()


def _fit_number(limits: msgspec.Meta, value: Any, where: str) -> int:
    if type(value) is not int or not (limits.ge or 0) <= value <= (limits.le or 0):
        raise Misfit(f"{where} must be a whole number that fits")
    return value


def base64_data(value: Any, where: str) -> bytes:
    """The bytes that a base64 text stands for; it may be broken into lines."""
    _expect(str, value, where)
    try:
        return binascii.a2b_base64(value.replace("\r", "").replace("\n", ""), strict_mode=True)
    except ValueError as error:
        raise Misfit(f"{where} must be base64: {error}") from None


_WORDS = {bool: "a boolean", str: "a string", dict: "an object", list: "a list"}


def _expect(kind: type[Any], value: Any, where: str) -> None:
    if type(value) is not kind:
        found = "null" if value is None else _WORDS.get(type(value), "a number")
        raise Misfit(f"{where or 'it'} must be {_WORDS[kind]}, not {found}")
