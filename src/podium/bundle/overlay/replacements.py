"""Values copied from one object into others, as a kustomization's `replacements` say.

Operator projects use them to put the name of a service into certificates, after names have changed. Field
paths are keys with dots between them; `[name=x]` and `*` choose list elements, `[a.b/c]` is a key with dots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from podium.api.findings import Place
from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.overlay import TARGET_FIELDS, Target
from podium.bundle.overlay.errors import OverlayError


def replace_values(objects: list[Authored], replacements: Iterable[tuple[Object, Place]]) -> list[Authored]:
    """The objects after all replacements, changed in place."""
    for replacement, place in replacements:
        value = _source(objects, replacement, place)
        targets = replacement.get("targets")
        if not isinstance(targets, list) or not targets:
            raise OverlayError("a replacement needs `targets`", place)
        for target in targets:
            _apply(objects, target, value, place)
    return objects


def _source(objects: Sequence[Authored], replacement: Object, place: Place) -> Any:
    if "sourceValue" in replacement:
        return replacement["sourceValue"]
    source = replacement.get("source")
    if not isinstance(source, dict):
        raise OverlayError("a replacement needs a `source`", place)
    wanted = Target.parse({key: value for key, value in source.items() if key in TARGET_FIELDS}, place)
    found = [item for item in objects if wanted.matches(item)]
    if len(found) != 1:
        count = "no object" if not found else f"{len(found)} objects"
        raise OverlayError(f"the replacement's source is {count} ({wanted}), it must be exactly one", place)
    path = str(source.get("fieldPath") or "metadata.name")
    values = [holder[key] for holder, key in _fields(found[0].object, split(path), create=False)]
    if not values or values[0] in (None, "", [], {}):
        raise OverlayError(f"{found[0].title} has no {path} to copy", place)
    options = source.get("options") or {}
    if not options.get("delimiter"):
        return values[0]
    parts = str(values[0]).split(options["delimiter"])
    index = int(options.get("index") or 0)
    if not 0 <= index < len(parts):
        raise OverlayError(f"{path} of {found[0].title} has no part {index}: {values[0]!r}", place)
    return parts[index]


def _apply(objects: Sequence[Authored], target: Any, value: Any, place: Place) -> None:
    if not isinstance(target, dict) or not isinstance(target.get("select"), dict):
        raise OverlayError("a replacement's target needs `select`", place)
    chosen = Target.parse(target["select"], place)
    rejected = [Target.parse(each, place) for each in target.get("reject") or ()]
    options = target.get("options") or {}
    for item in objects:
        if not chosen.matches(item) or any(each.matches(item) for each in rejected):
            continue
        for path in target.get("fieldPaths") or ("metadata.name",):
            fields = list(_fields(item.object, split(path), create=bool(options.get("create"))))
            if not fields:
                raise OverlayError(f"{item.title} has no {path} to replace", place)
            for holder, key in fields:
                holder[key] = _new(
                    holder.get(key) if isinstance(holder, dict) else holder[key], value, options
                )


def _new(old: Any, value: Any, options: Object) -> Any:
    delimiter = options.get("delimiter")
    if delimiter:
        parts = ("" if old is None else str(old)).split(delimiter)
        index = int(options.get("index") or 0)
        if index < 0:
            parts.insert(0, str(value))
        elif index >= len(parts):
            parts.append(str(value))
        else:
            parts[index] = str(value)
        return delimiter.join(parts)
    return str(value) if isinstance(old, str) and not isinstance(value, dict | list) else value


def split(path: str) -> list[str]:
    """The keys of a field path; dots inside brackets or after a backslash belong to a key."""
    parts: list[str] = []
    current, depth, index = "", 0, 0
    while index < len(path):
        char = path[index]
        if char == "\\" and path[index + 1 : index + 2] == ".":
            current, index = current + ".", index + 2
            continue
        depth += (char == "[") - (char == "]")
        if char == "." and not depth:
            parts.append(current)
            current = ""
        else:
            current += char
        index += 1
    return [each[1:-1] if _is_bracketed_key(each) else each for each in (*parts, current)]


def _is_bracketed_key(part: str) -> bool:
    return part.startswith("[") and part.endswith("]") and "=" not in part


def _fields(value: Any, path: Sequence[str], *, create: bool) -> Iterator[tuple[Any, Any]]:
    """The containers and keys that a path leads to."""
    step, rest = path[0], path[1:]
    for key in list(_keys(value, step, create=create)):
        if not rest:
            yield value, key
            continue
        if isinstance(value, dict) and value.get(key) is None:
            value[key] = {}
        yield from _fields(value[key], rest, create=create)


def _keys(value: Any, step: str, *, create: bool) -> Iterator[Any]:
    if isinstance(value, list):
        if step == "*":
            yield from range(len(value))
        elif step.startswith("["):
            field, _, wanted = step[1:-1].partition("=")
            for index, item in enumerate(value):
                if isinstance(item, dict) and str(item.get(field)) == wanted:
                    yield index
        elif step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            yield int(step)
    elif isinstance(value, dict) and (step in value or create):
        yield step
