"""What a custom resource loses and gains on its way in: unknown fields go, defaults come.

Both work in place on a decoded object, because the caller owns it and copying is what costs. A null where the
schema allows none counts as left out: it is dropped, or replaced by the default if there is one.
"""

from __future__ import annotations

from typing import Any

from podium.api.kinds import Object
from podium.schema import embedded
from podium.schema.crdschema import ABSENT, Structural

_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Object, schema: Structural) -> list[str]:
    """Remove the fields that the schema does not know, and return their paths, sorted."""
    dropped: list[str] = []
    _prune(obj, schema, "", dropped, is_resource=True)
    if schema.has_embedded:
        embedded.coerce(obj, schema, dropped)
    dropped.sort()
    return dropped


def prune_value(value: Any, schema: Structural) -> list[str]:
    """Remove unknown fields from a value inside an object, such as a default."""
    dropped: list[str] = []
    _prune(value, schema, "", dropped, schema.embedded)
    dropped.sort()
    return dropped


def default(obj: Object, schema: Structural) -> None:
    """Fill in the defaults that the schema declares."""
    if schema.has_defaults:
        _default(obj, schema)


def copy_json(value: Any) -> Any:
    """A copy of a JSON value that shares no list or map with it."""
    if type(value) is dict:
        return {k: copy_json(v) if type(v) in _CONTAINERS else v for k, v in value.items()}
    if type(value) is list:
        return [copy_json(v) if type(v) in _CONTAINERS else v for v in value]
    return value


_CONTAINERS = frozenset({dict, list})


def _prune(
    value: Any,
    schema: Structural | None,
    path: str,
    dropped: list[str],
    is_resource: bool,
    keep: bool = False,
) -> None:
    if schema is None:
        if not keep:
            _prune_all(value, path, dropped)
        return
    if schema.keeps_all:
        return
    # The items of a list that preserves unknown fields preserve theirs too, whatever their own schema says.
    keep = keep or schema.preserve_unknown
    if type(value) is dict:
        _prune_map(value, schema, path, dropped, is_resource, keep)
    elif type(value) is list:
        items = schema.items
        for index, child in enumerate(value):
            if type(child) in _CONTAINERS:
                is_resource = items is not None and items.embedded
                _prune(child, items, f"{path}[{index}]", dropped, is_resource, keep)


def _prune_map(
    value: Object, schema: Structural, path: str, dropped: list[str], is_resource: bool, keep: bool
) -> None:
    properties, additional = schema.properties, schema.additional
    closed = additional is None and schema.additional_allowed is None
    unknown: list[str] = []
    nulls: list[str] = []
    for key, child in value.items():
        if is_resource and key in _META:
            continue
        sub = properties.get(key, additional)
        if sub is None and closed:
            if not keep:
                unknown.append(key)
        elif child is None:
            if sub is not None and not sub.nullable and sub.default is ABSENT:
                nulls.append(key)
        elif type(child) in _CONTAINERS:
            _prune(child, sub, _child(path, key), dropped, sub is not None and sub.embedded)
    for key in nulls:
        del value[key]
    for key in unknown:
        del value[key]
        # At the top, apiVersion, kind and metadata are never reported, even where the schema leaves them out.
        if path or key not in _META:
            dropped.append(_child(path, key))


def _prune_all(value: Any, path: str, dropped: list[str]) -> None:
    if type(value) is dict:
        dropped.extend(_child(path, key) for key in value)
        value.clear()
    elif type(value) is list:
        for index, child in enumerate(value):
            _prune_all(child, f"{path}[{index}]", dropped)


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _default(value: Any, schema: Structural) -> None:
    if type(value) is dict:
        for key, default_value, nullable in schema.property_defaults:
            if key not in value or (value[key] is None and not nullable):
                value[key] = copy_json(default_value)
        properties, additional = schema.properties, schema.additional
        for key, child in value.items():
            sub = properties.get(key, additional)
            if sub is None or not sub.has_defaults:
                continue
            if child is None and key not in properties and not sub.nullable:
                child = value[key] = copy_json(sub.default) if sub.default is not ABSENT else None
            if type(child) in _CONTAINERS:
                _default(child, sub)
    elif type(value) is list and schema.items is not None and schema.items.has_defaults:
        items = schema.items
        for index, child in enumerate(value):
            if child is None and not items.nullable and items.default is not ABSENT:
                child = value[index] = copy_json(items.default)
            if type(child) in _CONTAINERS:
                _default(child, items)
