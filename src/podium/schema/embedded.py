"""Whole Kubernetes objects inside a custom resource (`x-kubernetes-embedded-resource`).

Their `metadata` is what it would be at the top of an object: fields that ObjectMeta does not have are
dropped, and the rest must be well formed. Their apiVersion and kind are required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.schema.crdschema import Structural
from podium.schema.fielderrors import FieldError, invalid, required


def coerce(value: Any, schema: Structural, dropped: list[str]) -> None:
    """Drop what ObjectMeta does not have from the metadata of embedded resources, adding the paths to "
    "`dropped`."""
    _walk(value, schema, "", lambda resource, path: _drop_unknown(resource, path, dropped), _dotted)


def errors(value: Any, schema: Structural, path: str = "") -> list[FieldError]:
    """What is wrong with the type and the metadata of embedded resources."""
    found: list[FieldError] = []
    _walk(
        value, schema, path, lambda resource, where: found.extend(_resource_errors(resource, where)), _keyed
    )
    return found


def _walk(
    value: Any,
    schema: Structural,
    path: str,
    visit: Callable[[Object, str], None],
    child_path: Callable[[str, str, bool], str],
) -> None:
    if type(value) is dict:
        if schema.embedded:
            visit(value, path)
        for key, child in value.items():
            sub = schema.properties.get(key)
            known = sub is not None
            sub = sub if known else schema.additional
            if sub is not None and sub.has_embedded:
                _walk(child, sub, child_path(path, key, known), visit, child_path)
    elif type(value) is list and schema.items is not None and schema.items.has_embedded:
        for index, child in enumerate(value):
            _walk(child, schema.items, f"{path}[{index}]", visit, child_path)


def _dotted(path: str, key: str, known: bool) -> str:
    return f"{path}.{key}" if path else key


def _keyed(path: str, key: str, known: bool) -> str:
    return _dotted(path, key, known) if known else f"{path}[{key}]"


_STRING, _INTEGER, _STRINGS = "string", "integer", "strings"
_OWNER = {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}
_MANAGER = {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"}
_OBJECT_META: dict[str, str | set[str]] = {
    "name": _STRING,
    "generateName": _STRING,
    "namespace": _STRING,
    "selfLink": _STRING,
    "uid": _STRING,
    "resourceVersion": _STRING,
    "generation": _INTEGER,
    "creationTimestamp": _STRING,
    "deletionTimestamp": _STRING,
    "deletionGracePeriodSeconds": _INTEGER,
    "labels": _STRINGS,
    "annotations": _STRINGS,
    "ownerReferences": _OWNER,
    "finalizers": "list",
    "managedFields": _MANAGER,
}


def _drop_unknown(resource: Object, path: str, dropped: list[str]) -> None:
    metadata = resource.get("metadata")
    if type(metadata) is not dict:
        return
    for key in [k for k in metadata if k not in _OBJECT_META]:
        dropped.append(_dotted(_dotted(path, "metadata", True), key, True))
        del metadata[key]
    for key in [k for k, v in metadata.items() if v is None or (v in ("", {}, []) and k != "name")]:
        del metadata[key]  # decoding and encoding again leaves empty fields out
    for key, known in _OBJECT_META.items():
        if isinstance(known, set) and type(metadata.get(key)) is list:
            for index, entry in enumerate(metadata[key]):
                for field in [f for f in entry if f not in known] if type(entry) is dict else ():
                    dropped.append(f"{_dotted(path, 'metadata', True)}.{key}[{index}].{field}")
                    del entry[field]


def _resource_errors(resource: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key, check in (("apiVersion", _api_version_fault), ("kind", _kind_fault)):
        where = _dotted(path, key, True)
        value = resource.get(key)
        if key not in resource:
            found.append(required(where))
        elif type(value) is not str:
            found.append(invalid(where, value, "must be a string"))
        elif not value:
            found.append(invalid(where, value, "must not be empty"))
        elif fault := check(value):
            found.append(invalid(where, value, fault))
    if "metadata" in resource:
        found += _metadata_errors(resource["metadata"], _dotted(path, "metadata", True))
    return found


def _api_version_fault(value: str) -> str:
    return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""


def _kind_fault(value: str) -> str:
    faults = names.dns_1035_label(value.lower())
    return "may have mixed case, but should otherwise match: " + ",".join(faults) if faults else ""


_GO_KINDS = {str: "string", bool: "bool", dict: "object", list: "array", int: "number", float: "number"}


def _metadata_errors(metadata: Any, path: str) -> list[FieldError]:
    if type(metadata) is not dict:
        return [invalid(path, metadata, _cannot_decode(metadata, "", "v1.ObjectMeta"))]
    for key, value in metadata.items():
        if fault := _type_fault(key, value):
            return [invalid(path, metadata, fault)]
    found: list[FieldError] = []
    for key in ("name", "generateName"):
        found += [
            invalid(f"{path}.{key}", metadata[key], f) for f in names.path_segment(metadata.get(key, ""))
        ]
    if metadata.get("namespace"):
        found += [
            invalid(f"{path}.namespace", metadata["namespace"], f)
            for f in names.dns_label(metadata["namespace"])
        ]
    for key, value in (metadata.get("labels") or {}).items():
        found += [invalid(f"{path}.labels", key, f) for f in names.qualified_name(key)]
        found += [invalid(f"{path}.labels", value, f) for f in names.label_value(value)]
    for key in metadata.get("annotations") or {}:
        found += [invalid(f"{path}.annotations", key, f) for f in names.qualified_name(key.lower())]
    return found


def _type_fault(key: str, value: Any) -> str:
    wanted = _OBJECT_META.get(key)
    if value is None or wanted is None:
        return ""
    if wanted == _STRING and type(value) is not str:
        return _cannot_decode(value, key, "string")
    if wanted == _INTEGER and type(value) is not int:
        return _cannot_decode(value, key, "int64")
    if wanted == _STRINGS:
        if type(value) is not dict:
            return _cannot_decode(value, key, "map[string]string")
        wrong = next((v for v in value.values() if type(v) is not str), None)
        return _cannot_decode(wrong, key, "string") if wrong is not None else ""
    if (wanted == "list" or isinstance(wanted, set)) and type(value) is not list:
        return _cannot_decode(
            value, key, "[]string" if wanted == "list" else f"[]v1.{key[:1].upper()}{key[1:-1]}"
        )
    return ""


def _cannot_decode(value: Any, key: str, go_type: str) -> str:
    kind = _GO_KINDS.get(type(value), "null")
    field = f"Go struct field ObjectMeta.{key} of type" if key else "Go value of type"
    return f"json: cannot unmarshal {kind} into {field} {go_type}"
