"""Laying an applied configuration over a live value, and checking that it fits its type.

`merge` removes nothing: objects unite, SET and KEYED lists unite in an order that respects both sides,
anything else is replaced. Where the configuration says what the live value already says, the very live
value is returned, so that `merge(live, applied, shape) is live` tells that nothing changed.
"""

from __future__ import annotations

from typing import Any

from podium.schema import govalues
from podium.schema.fieldset import show_element
from podium.schema.shape import UNTYPED, Merge, Shape
from podium.schema.typedvalues import TypedValueError, list_element


def merge(live: Any, applied: Any, shape: Shape) -> Any:
    """The live value with the applied one laid over it."""
    if live is applied:
        return live
    if shape.merge is Merge.SCALAR or shape.merge is Merge.ATOMIC:
        return _prefer_live(live, applied)
    if isinstance(applied, dict) and isinstance(live, dict) and (live or applied):
        return _merge_maps(live, applied, shape)
    if shape.merge is Merge.KEYED or shape.merge is Merge.SET:
        if (live or applied) and isinstance(live, list | None) and isinstance(applied, list | None):
            return _merge_lists(live or [], applied or [], shape, live)
    elif applied is None and isinstance(live, dict) and live:
        return live
    return _prefer_live(live, applied)


def check(value: Any, shape: Shape) -> None:
    """Raise unless an applied value fits its shape: only declared fields, no duplicates, keys present."""
    errors = _errors(value, shape)
    if len(errors) == 1:
        raise TypedValueError(errors[0])
    if errors:
        raise TypedValueError("\n".join(["errors:", *(f"  {error}" for error in errors)]))


def _prefer_live(live: Any, applied: Any) -> Any:
    return live if live == applied and isinstance(live, bool) == isinstance(applied, bool) else applied


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], shape: Shape) -> dict[str, Any]:
    out = live
    for key, value in applied.items():
        if key in live:
            before = live[key]
            merged = merge(before, value, shape.field(key) or UNTYPED)
            if merged is before:
                continue
        else:
            merged = value
        if out is live:
            out = dict(live)
        out[key] = merged
    return out


def _merge_lists(live: list[Any], applied: list[Any], shape: Shape, was: Any) -> Any:
    items = shape.items()
    wanted = {list_element(item, shape): item for item in applied}
    elements = [list_element(item, shape) for item in live]
    present: dict[str, Any] = {}
    for element, item in zip(elements, live, strict=True):
        # Duplicates are not merged with what is applied; the applied element takes the place of all of them.
        present[element] = None if element in present else item
    out = [
        live[place] if element is None else merge(present.get(element), wanted[element], items)
        for place, element in _merged_order(elements, list(wanted))
    ]
    unchanged = len(out) == len(live) and all(a is b for a, b in zip(out, live, strict=True))
    return was if unchanged else out or None


def _merged_order(live: list[str], applied: list[str]) -> list[tuple[int, str | None]]:
    """The order of a merged list: the place of each live-only element, the name of each applied one.

    Live-only elements keep their places among the others; elements that both sides have come in the applied
    order.
    """
    wanted, present = set(applied), set(live)
    shared = [element for element in applied if element in present]
    next_shared = 0
    merged: set[str] = set()
    out: list[tuple[int, str | None]] = []
    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live) and right < len(applied):
            element = live[left]
            if element == applied[right]:
                merged.add(element)
                out.append((0, element))
                left, right, next_shared = left + 1, right + 1, next_shared + 1
                continue
            if element in wanted and next_shared < len(shared) and shared[next_shared] != element:
                left += 1
                continue
        if left < len(live):
            element = live[left]
            if element not in wanted:
                out.append((left, None))
                left += 1
                continue
            if element in merged:
                left += 1
        if right < len(applied):
            element = applied[right]
            merged.add(element)
            out.append((0, element))
            right += 1
            if next_shared < len(shared) and shared[next_shared] == element:
                next_shared += 1
    return out


def _errors(value: Any, shape: Shape) -> list[str]:
    """What is wrong below a value; each message starts with the path from here, which may be empty."""
    kind = shape.merge
    if value is None or kind is Merge.SCALAR or kind is Merge.UNTYPED or kind is Merge.ATOMIC:
        return []
    if kind is Merge.OBJECT:
        if not isinstance(value, dict):
            return [f": expected map, got &{{{govalues.show(value)}}}"]
        return _map_errors(value, shape)
    if not isinstance(value, list):
        return [f": expected list, got &{{{govalues.show(value)}}}"]
    return _list_errors(value, shape)


def _map_errors(value: dict[str, Any], shape: Shape) -> list[str]:
    errors: list[str] = []
    for key, item in value.items():
        child = shape.field(key)
        if child is None:
            return [*errors, f".{key}: field not declared in schema"]
        if child.merge is Merge.SCALAR:
            continue
        errors += [f".{key}{error}" for error in _errors(item, child)]
    return errors


def _list_errors(value: list[Any], shape: Shape) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    items = shape.items()
    for place, item in enumerate(value):
        try:
            element = list_element(item, shape)
        except TypedValueError as error:
            return [*errors, f": element {place}: {error}"]
        shown = show_element(element)
        if element in seen:
            errors.append(f": duplicate entries for key {shown}")
        seen.add(element)
        errors += [f"{shown}{error}" for error in _errors(item, items)]
    return errors
