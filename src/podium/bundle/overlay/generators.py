"""ConfigMaps and Secrets that a kustomization makes from literals and files.

Their names end with a hash of their content, so that a change of content is a change of the pods that use it.
The hash is kustomize's, byte for byte: it covers kind, type and data.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from podium.api import names
from podium.api.findings import Place
from podium.api.kinds import Key, Object
from podium.bundle.authored import Authored
from podium.bundle.overlay.errors import OverlayError
from podium.text import gojson

_FIELDS = {"name", "namespace", "behavior", "literals", "files", "envs", "env", "options", "type"}
_OPTIONS = {"labels", "annotations", "disableNameSuffixHash", "immutable"}
# Hash characters that could spell a word, or be mistaken for another one.
_SAFE = str.maketrans("013ae", "ghkmt")

Read = Callable[[str], bytes]


def generate(objects: list[Authored], settings: Object, read: Read, path: str) -> list[Authored]:
    """The objects and what the kustomization's generators add to them or change in them."""
    common = settings.get("generatorOptions") or {}
    result = list(objects)
    for key, kind in (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")):
        for entry in settings.get(key) or ():
            made = _made(kind, entry, common, read, Place(path))
            result = _absorbed(result, made, str(entry.get("behavior") or "create"))
    return result


def with_hashed_names(objects: Iterable[Authored]) -> list[Authored]:
    """The objects with the hash of their content appended to the names of the generated ones."""
    result: list[Authored] = []
    for item in objects:
        if item.hashed:
            former = (*item.former, Key(item.namespace, item.name))
            obj = {**item.object, "metadata": {**item.metadata, "name": f"{item.name}-{_hash(item.object)}"}}
            item = replace(item, object=obj, former=former, hashed=False)
        result.append(item)
    return result


def _hash(obj: Object) -> str:
    # kustomize means to cover the name too, but looks for it in the wrong place and never finds one.
    content: Object = {"kind": obj["kind"], "name": "", "data": obj.get("data") or ""}
    if obj["kind"] == "Secret":
        content["type"] = obj.get("type", "")
    elif obj.get("binaryData"):
        content["binaryData"] = obj["binaryData"]
    return hashlib.sha256(gojson.compact(content)).hexdigest()[:10].translate(_SAFE)


def _made(kind: str, entry: Any, common: Object, read: Read, place: Place) -> Authored:
    if not isinstance(entry, dict) or not entry.get("name"):
        raise OverlayError(f"a {kind} generator needs a name", place)
    if unknown := set(entry) - _FIELDS:
        raise OverlayError(f"a {kind} generator has no field `{min(unknown)}`", place)
    options = entry.get("options") or {}
    if unknown := (set(options) | set(common)) - _OPTIONS:
        raise OverlayError(f"generator options have no field `{min(unknown)}`", place)
    metadata: Object = {"name": entry["name"]}
    if entry.get("namespace"):
        metadata["namespace"] = entry["namespace"]
    for key in ("labels", "annotations"):
        merged: Object = {**(common.get(key) or {}), **(options.get(key) or {})}
        if merged:
            metadata[key] = merged
    obj: Object = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    _fill(obj, _values(entry, read, place), str(entry.get("type") or "Opaque"))
    if options.get("immutable") or common.get("immutable"):
        obj["immutable"] = True
    plain = options.get("disableNameSuffixHash") or common.get("disableNameSuffixHash")
    return Authored(obj, place, hashed=not plain)


def _fill(obj: Object, values: dict[str, bytes], secret_type: str) -> None:
    if obj["kind"] == "Secret":
        obj["type"] = secret_type
        if values:
            obj["data"] = {key: base64.b64encode(value).decode() for key, value in values.items()}
        return
    for key, value in values.items():
        try:
            obj.setdefault("data", {})[key] = value.decode()
        except UnicodeDecodeError:
            obj.setdefault("binaryData", {})[key] = base64.b64encode(value).decode()


def _values(entry: Object, read: Read, place: Place) -> dict[str, bytes]:
    pairs: list[tuple[str, bytes]] = []
    env = [entry["env"]] if entry.get("env") else []
    for name in (*(entry.get("envs") or ()), *env):
        pairs += _lines(read(name))
    for text in entry.get("literals") or ():
        key, equals, value = str(text).partition("=")
        if not equals or not key:
            raise OverlayError(f"the literal {text!r} must be written as key=value", place)
        pairs.append((key, _unquoted(value).encode()))
    for text in entry.get("files") or ():
        key, equals, name = str(text).partition("=")
        pairs.append((key, read(name)) if equals else (posixpath.basename(key), read(key)))
    values: dict[str, bytes] = {}
    for key, content in pairs:
        if problems := names.config_key(key):
            raise OverlayError(f"the key {key!r} {problems[0]}", place)
        if key in values:
            raise OverlayError(f"the key {key!r} is given twice", place)
        values[key] = content
    return values


def _lines(data: bytes) -> list[tuple[str, bytes]]:
    pairs = []
    for line in data.decode("utf-8-sig", "replace").splitlines():
        key, _, value = line.lstrip().partition("=")
        if key and not key.startswith("#"):
            pairs.append((key, value.encode()))
    return pairs


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _absorbed(objects: Sequence[Authored], made: Authored, behavior: str) -> list[Authored]:
    index = next((i for i, item in enumerate(objects) if _same(item, made)), None)
    if behavior == "create":
        if index is not None:
            raise OverlayError(
                f"{made.title} exists already: set its behavior to merge or replace", made.place
            )
        return [*objects, made]
    if behavior not in ("merge", "replace"):
        raise OverlayError(
            f"a generator's behavior is create, merge or replace, not {behavior!r}", made.place
        )
    if index is None:
        raise OverlayError(f"there is no {made.title} to {behavior}", made.place)
    old = objects[index]
    obj = dict(made.object) if behavior == "replace" else _merged(old.object, made.object)
    # Labels and annotations of both stay, and so does the name that layers below may have given it.
    metadata: Object = {
        **made.metadata,
        **{key: old.metadata[key] for key in ("name", "namespace") if key in old.metadata},
    }
    for key in ("labels", "annotations"):
        both: Object = {**(old.metadata.get(key) or {}), **(made.metadata.get(key) or {})}
        if both:
            metadata[key] = both
    obj["metadata"] = metadata
    changed = replace(old, object=obj)
    return [changed if i == index else item for i, item in enumerate(objects)]


def _same(item: Authored, made: Authored) -> bool:
    names = {item.name, *(key.name for key in item.former)}
    return item.kind == made.kind and item.group == "" and made.name in names


def _merged(old: Object, new: Object) -> Object:
    result = {**old, **{key: value for key, value in new.items() if key not in ("data", "binaryData")}}
    for key in ("data", "binaryData"):
        both: Object = {**(old.get(key) or {}), **(new.get(key) or {})}
        if both:
            result[key] = both
    return result
