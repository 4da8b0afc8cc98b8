"""The annotation of client-side `kubectl apply`, and the way from there to server-side apply.

When the manager `kubectl` applies to an object that still carries the annotation, conflicts over fields
that the annotation proves to have come from kubectl are waived, and the annotation is brought up to date
so that an older kubectl can go on.
"""

from __future__ import annotations

import json

from podium.api.kinds import Object
from podium.schema import fieldset
from podium.schema.fieldset import FieldSet
from podium.schema.merging import check
from podium.schema.shape import Shape
from podium.schema.typedvalues import TypedValueError, compare, owned

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
# All annotations of an object together may not be larger; the annotation gives way.
_MAX_ANNOTATION_BYTES = 256 * 1024


def fields_in_effect(live: Object, api_version: str, shape: Shape) -> FieldSet | None:
    """The last applied fields that the live object still has as applied; None without a usable annotation."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return None
    try:
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return None
        check(last, shape)
        difference = compare(last, live, shape)
        fields = owned(last, shape)
    except (ValueError, TypedValueError):
        return None
    for changed in (difference.modified, difference.added, difference.removed):
        fields = fieldset.difference(fields, changed)
    return fields


def refreshed(obj: Object, applied: Object) -> Object:
    """The object with its annotation, if it has one, holding what was applied now."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    text = _encoded(applied)
    if annotations[ANNOTATION] == text:
        return obj
    annotations = {**annotations, ANNOTATION: text}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATION_BYTES:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _annotations(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _encoded(applied: Object) -> str:
    metadata = applied.get("metadata") or {}
    if ANNOTATION in (metadata.get("annotations") or {}):
        rest = {key: value for key, value in metadata["annotations"].items() if key != ANNOTATION}
        applied = {**applied, "metadata": {**metadata, "annotations": rest}}
    text = json.dumps(applied, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character, escape in fieldset.HTML_ESCAPES.items():
        text = text.replace(character, escape)
    return text + "\n"
