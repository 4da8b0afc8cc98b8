"""The rules for any object's metadata, as the API server has them: names, labels, owners, finalizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podium.api import names
from podium.bundle.model import items, text

_LONGEST_ANNOTATIONS = 256 * 1024
_LONGEST_MANAGER, _LONGEST_SUBRESOURCE = 128, 256
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"

Problem = tuple[str, str]  # field below metadata, what is wrong


def problems(metadata: Mapping[str, Any], *, namespace_allowed: bool = False) -> Iterator[Problem]:
    """What is wrong with the metadata of an object that must not say its namespace; its name may be any."""
    if not text(metadata.get("name")):
        yield "name", "name is required"
    if not namespace_allowed and text(metadata.get("namespace")):
        yield "namespace", "not allowed on this type: the namespace is chosen when the bundle is installed"
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation < 0:
        yield "generation", "must be greater than or equal to 0"
    yield from _label_problems(string_map(metadata.get("labels")))
    yield from _annotation_problems(string_map(metadata.get("annotations")))
    yield from _owner_problems(items(metadata, "ownerReferences"))
    yield from _finalizer_problems(metadata.get("finalizers"))
    yield from _managed_problems(items(metadata, "managedFields"))


def string_map(value: Any) -> Mapping[str, str]:
    """A mapping whose values are all text; one with any other value counts as absent."""
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return value
    return {}


def _label_problems(labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        for fault in names.qualified_name(key):
            yield "labels", f"{key!r}: {fault}"
        for fault in names.label_value(value):
            yield "labels", f"{value!r}: {fault}"


def _annotation_problems(annotations: Mapping[str, str]) -> Iterator[Problem]:
    for key in annotations:
        for fault in names.qualified_name(key.lower()):
            yield "annotations", f"{key!r}: {fault}"
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _LONGEST_ANNOTATIONS:
        yield "annotations", f"may not be more than {_LONGEST_ANNOTATIONS} bytes, found {size}"


def _owner_problems(owners: Any) -> Iterator[Problem]:
    controllers = 0
    for owner in owners:
        if not isinstance(owner, dict):
            continue
        version = text(owner.get("apiVersion"))
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            yield "ownerReferences", "version must not be empty"
        for key in ("kind", "name", "uid"):
            if not text(owner.get(key)):
                yield "ownerReferences", f"{key} must not be empty"
        if (version, text(owner.get("kind"))) == ("v1", "Event"):
            yield "ownerReferences", "v1 Event is disallowed from being an owner"
        controllers += owner.get("controller") is True
        if owner.get("controller") is True and controllers > 1:
            yield "ownerReferences", "only one reference can have Controller set to true"


def _finalizer_problems(finalizers: Any) -> Iterator[Problem]:
    if not isinstance(finalizers, list) or not all(isinstance(each, str) for each in finalizers):
        return
    for each in finalizers:
        for fault in names.qualified_name(each):
            yield "finalizers", f"{each!r}: {fault}"
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        yield "finalizers", f"finalizers {_ORPHAN} and {_FOREGROUND} cannot be both set"


def _managed_problems(managed: Any) -> Iterator[Problem]:
    for entry in managed:
        if not isinstance(entry, dict):
            continue
        if entry.get("operation") not in ("Apply", "Update"):
            yield "managedFields", "operation must be Apply or Update"
        if entry.get("fieldsType") not in (None, "", "FieldsV1"):
            yield "managedFields", "fieldsType must be FieldsV1"
        manager = text(entry.get("manager"))
        if len(manager.encode()) > _LONGEST_MANAGER or not manager.isprintable():
            yield "managedFields", f"manager must be at most {_LONGEST_MANAGER} printable characters"
        if len(text(entry.get("subresource")).encode()) > _LONGEST_SUBRESOURCE:
            yield "managedFields", f"subresource must be at most {_LONGEST_SUBRESOURCE} characters"
