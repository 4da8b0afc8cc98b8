"""The rules that make a schema structural, checked on the schema's JSON.

A structural schema says the type of every field outside of its quantifiers, so that a server can prune and
default without trying alternatives. Paths and texts are those of the real server; faults come sorted, as
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.schema import formats
from podium.schema.fielderrors import FieldError, forbidden, invalid, required

Schema = Mapping[str, Any]
_ROOT, _ITEM, _FIELD = "root", "item", "field"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = (
    "id",
    "$schema",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
)


def check(schema: Schema, path: str) -> list[FieldError]:
    """Return every violation of the structural-schema rules; `path` is where the schema stands in the CRD."""
    errors: list[FieldError] = []
    _check_node(schema, _ROOT, path, errors)
    _check_complete(schema, schema, path, path, errors)
    return sorted(errors, key=str)


def unsupported(schema: Any) -> str:
    """Why a schema cannot become a tree at all, or nothing."""
    if not isinstance(schema, Mapping):
        return ""
    for key in _UNSUPPORTED:
        if schema.get(key) not in (None, "", {}, []):
            return f"OpenAPIV3Schema '{'schema' if key == '$schema' else key}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return next((why for sub in subschemas(schema) if (why := unsupported(sub))), "")


def subschemas(schema: Schema) -> list[Schema]:
    """The schemas directly inside a schema."""
    found = list((schema.get("properties") or {}).values())
    found += [schema.get("items"), schema.get("additionalProperties"), schema.get("not")]
    for key in ("allOf", "anyOf", "oneOf"):
        found += schema.get(key) or ()
    return [s for s in found if isinstance(s, Mapping)]


def _check_node(schema: Schema, level: str, path: str, errors: list[FieldError]) -> None:
    kind = schema.get("type", "")
    items = schema.get("items")
    if kind == "array" and items is None:
        errors.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, Mapping):
        _check_node(items, _ITEM, f"{path}.items", errors)
    properties = schema.get("properties") or {}
    for name, sub in properties.items():
        _check_node(sub, _FIELD, f"{path}.properties[{name}]", errors)
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == _ROOT:
            errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, Mapping):
            _check_node(additional, _FIELD, f"{path}.additionalProperties", errors)
    _check_extensions(schema, path, errors)
    all_of = schema.get("allOf") or []
    _check_quantifiers(
        schema,
        path,
        errors,
        skip_any_of=schema.get("anyOf") == _INT_OR_STRING,
        skip_first_all_of=bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING,
    )
    _check_type(schema, kind, level, path, errors)
    _check_metadata(schema, properties, level, path, errors)


def _check_extensions(schema: Schema, path: str, errors: list[FieldError]) -> None:
    if schema.get("x-kubernetes-int-or-string"):
        errors += [
            invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
            for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
            if schema.get(name)
        ]


def _check_type(schema: Schema, kind: str, level: str, path: str, errors: list[FieldError]) -> None:
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if is_embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif not kind and not schema.get("x-kubernetes-int-or-string") and not preserves:
        text = {
            _ROOT: "at the root",
            _ITEM: "for specified array items",
            _FIELD: "for specified object fields",
        }[level]
        errors.append(required(f"{path}.type", f"must not be empty {text}"))
    if is_embedded and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(f"{path}.additionalProperties", text))
    if level == _ROOT and kind and kind != "object":
        errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
    if is_embedded and not preserves and not schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", text))


def _check_metadata(
    schema: Schema, properties: Schema, level: str, path: str, errors: list[FieldError]
) -> None:
    is_resource = level == _ROOT or bool(schema.get("x-kubernetes-embedded-resource"))
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type", "") != "string":
            where = f"{path}.properties[{name}].type"
            errors.append(invalid(where, properties[name].get("type", ""), "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if is_resource and metadata.get("type", "") != "object":
        errors.append(invalid(f"{where}.type", metadata.get("type", ""), "must be object"))
    if level == _ROOT and not _is_bare_metadata(metadata):
        text = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        errors.append(forbidden(where, text))


def _is_bare_metadata(metadata: Schema) -> bool:
    properties = metadata.get("properties") or {}
    rest = {k for k, v in metadata.items() if v not in (None, "", [], {}, False)} - {
        "type",
        "properties",
        "default",
    }
    return not rest and set(properties) <= {"name", "generateName"}


def _check_quantifiers(
    schema: Schema, path: str, errors: list[FieldError], skip_any_of: bool, skip_first_all_of: bool
) -> None:
    if not skip_any_of:
        for index, sub in enumerate(schema.get("anyOf") or ()):
            _check_nested(sub, f"{path}.anyOf[{index}]", errors)
    for index, sub in enumerate(schema.get("allOf") or ()):
        _check_nested(sub, f"{path}.allOf[{index}]", errors, skip_any_of=skip_first_all_of and index == 0)
    for index, sub in enumerate(schema.get("oneOf") or ()):
        _check_nested(sub, f"{path}.oneOf[{index}]", errors)
    if isinstance(schema.get("not"), Mapping):
        _check_nested(schema["not"], f"{path}.not", errors)
    if expression := schema.get("pattern"):
        try:
            formats.pattern(expression)
        except formats.PatternError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            errors.append(invalid(f"{path}.pattern", expression, text))


_NESTED_FORBIDDEN = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def _check_nested(schema: Schema, path: str, errors: list[FieldError], skip_any_of: bool = False) -> None:
    _check_quantifiers(schema, path, errors, skip_any_of=skip_any_of, skip_first_all_of=False)
    if isinstance(schema.get("items"), Mapping):
        _check_nested(schema["items"], f"{path}.items", errors)
    for name, sub in (schema.get("properties") or {}).items():
        _check_nested(sub, f"{path}.properties[{name}]", errors)
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) or additional is True:
        errors.append(forbidden(f"{path}.additionalProperties", "must be undefined to be structural"))
    for key, text in _NESTED_FORBIDDEN:
        if schema.get(key) not in (None, "", False, []):
            errors.append(forbidden(f"{path}.{key}", text))
    if "metadata" in (schema.get("properties") or {}):
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))


def _check_complete(nested: Schema, spine: Any, spine_path: str, path: str, errors: list[FieldError]) -> None:
    """Whatever a quantifier reasons about must stand outside of it too."""
    if isinstance(nested.get("not"), Mapping):
        _check_complete_nested(nested["not"], spine, spine_path, f"{path}.not", errors)
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(nested.get(key) or ()):
            _check_complete_nested(sub, spine, spine_path, f"{path}.{key}[{index}]", errors)


def _check_complete_nested(
    nested: Schema, spine: Any, spine_path: str, path: str, errors: list[FieldError]
) -> None:
    if not isinstance(spine, Mapping):
        errors.append(required(spine_path, f"because it is defined in {path}"))
        return
    _check_complete(nested, spine, spine_path, path, errors)
    if isinstance(nested.get("items"), Mapping):
        _check_complete_nested(
            nested["items"], spine.get("items"), f"{spine_path}.items", f"{path}.items", errors
        )
    known = spine.get("properties") or {}
    for name, sub in (nested.get("properties") or {}).items():
        where = f".properties[{name}]"
        _check_complete_nested(sub, known.get(name), spine_path + where, path + where, errors)
