"""Reads values as Kubernetes' unstructured converter does, and lists every wrong type with its path.

It is stricter than the JSON decoder that other tools use (`bundle.typed`): names match to the letter, and a
number is no text. What the Go types have no field for is dropped, and what Go always writes is there, so that
deployments and CRDs leave conversion as the original would write them.
"""

from __future__ import annotations

from typing import Any

from podium.bundle.typed import Builtin, Custom, ListOf, MapOf, Scalar, Shape, Struct
from podium.schema import facts
from podium.schema.coerce import DecodeError, coerce

_SCALARS: dict[str, type] = {"string": str, "bool": bool, "int32": int}


def decode(shape: Shape, value: Any, path: str, problems: list[str]) -> Any:
    """The value read as a type; a wrong one is added to the problems and read as nothing."""
    if value is None:
        return None
    try:
        match shape:
            case Struct(fields):
                return _struct(fields, value, path, problems)
            case ListOf(of):
                return _list(of, value, path, problems)
            case MapOf(of):
                return _map(of, value, path, problems)
            case Builtin(name):
                return typed(name, value)
            case Scalar(name):
                return _scalar(name, value)
            case Custom(read):
                return read(value)
    except ValueError as error:
        problems.append(f"{path}: {error}")
        return None
    raise TypeError(shape)


def typed(name: str, value: Any) -> Any:
    """A value as one of Kubernetes' own types writes it after reading it; DecodeError if it cannot."""
    decoded = coerce(value, facts.load().struct(name)).object
    return decoded if name.startswith("apiextensions/") else _with_empty(decoded, value)


def _with_empty(decoded: Any, original: Any) -> Any:
    # What is coerced is meant to be stored, where an empty list is no list. Here it is written at once.
    if decoded is None and original in ([], {}):
        return original
    if isinstance(decoded, dict) and isinstance(original, dict):
        return {key: _with_empty(value, original.get(key)) for key, value in decoded.items()}
    if isinstance(decoded, list) and isinstance(original, list):
        return [_with_empty(*pair) for pair in zip(decoded, original, strict=True)]
    return decoded


def _struct(fields: Any, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore struct from: {_kind(value)}")
    found = {
        name: decode(shape, value.get(name), f"{path}.{name}" if path else name, problems)
        for name, shape in fields.items()
    }
    return {name: item for name, item in found.items() if item is not None}


def _list(of: Shape, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, list):
        raise DecodeError(f"cannot restore slice from {_kind(value)}")
    zero = _zero(of)
    found = [decode(of, item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
    return [zero if item is None else item for item in found]


def _map(of: Shape, value: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(value, dict):
        raise DecodeError(f"cannot restore map from {_kind(value)}")
    zero = _zero(of)
    found = {key: decode(of, item, f"{path}.{key}", problems) for key, item in value.items()}
    return {key: zero if item is None else item for key, item in found.items()}


def _scalar(name: str, value: Any) -> Any:
    if name == "int32" and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = type(value) is _SCALARS[name]
    if not fits or (name == "int32" and not -(2**31) <= int(value) < 2**31):
        raise DecodeError(f"cannot convert {_kind(value)} to {name}")
    return value


def _zero(shape: Shape) -> Any:
    """What a null in a list or map is read as."""
    match shape:
        case Scalar(name):
            return _SCALARS[name]()
        case Struct():
            return {}
        case Builtin(name):
            return typed(name, {})
    return None


def _kind(value: Any) -> str:
    """What Go calls the kind of a decoded JSON value."""
    names = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map"}
    return names[type(value)]
