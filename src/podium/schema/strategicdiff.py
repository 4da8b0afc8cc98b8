"""Making strategic merge patches: from two objects, or from three as `kubectl apply` does.

A two-way patch turns `original` into `modified`. A three-way patch adds what `modified` has over the
live object and deletes what `original` (the last applied configuration) had and `modified` no longer
has, so that fields which others set survive. Patches are byte for byte those of apimachinery's
strategicpatch, quirks included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from podium.api.kinds import Object
from podium.schema import govalues
from podium.schema.shape import Shape
from podium.schema.strategic import (
    DELETE_FROM_LIST,
    DIRECTIVE,
    ELEMENT_ORDER,
    RETAIN_KEYS,
    StrategicPatchError,
    element_kind,
    element_shape,
    field_shape,
    in_order,
    merge_map,
    require_merge_key,
    strategy_of,
)


class PatchConflictError(StrategicPatchError):
    """The live object was changed in the same places, differently, and overwriting was not allowed."""


@dataclass(frozen=True, slots=True)
class _Want:
    """Which differences a patch is to hold."""

    order: bool = True
    changes: bool = True
    deletions: bool = True
    retain_keys: bool = False


def create_two_way(original: Object, modified: Object, shape: Shape) -> Object:
    """The patch that turns `original` into `modified`."""
    return _diff_maps(original, modified, shape, _Want())


def create_three_way(
    original: Object, modified: Object, current: Object, shape: Shape, overwrite: bool = True
) -> Object:
    """The patch that brings `current` to `modified`, deleting what left since `original`."""
    additions = _diff_maps(current, modified, shape, _Want(deletions=False))
    deletions = _diff_maps(original, modified, shape, _Want(changes=False))
    patch = merge_map(deletions, additions, shape, final=False)
    if not overwrite:
        changed = _diff_maps(original, current, shape, _Want(order=False))
        if _conflict(patch, changed, shape, "", ""):
            raise PatchConflictError(
                f"patch:\n{_yaml(patch)}\nconflicts with changes made from original to current:\n"
                f"{_yaml(changed)}\n",
                409,
            )
    return patch


def _diff_maps(original: Object, modified: Object, shape: Shape, want: _Want) -> Object:
    patch: Object = {}
    for key, value in modified.items():
        if key not in original:
            if want.changes:
                patch[key] = value
            continue
        before = original[key]
        if key == DIRECTIVE:
            _diff_directive(before, value, patch)
        elif type(before) is not type(value):
            if want.changes:
                patch[key] = value
        elif isinstance(value, dict):
            _diff_map_field(key, before, value, patch, shape, want)
        elif isinstance(value, list):
            _diff_list_field(key, before, value, patch, shape, want)
        elif want.changes and before != value:
            patch[key] = value
    if want.deletions:
        patch.update((key, None) for key in original if key not in modified)
    if want.retain_keys:
        listed = [key for key, value in modified.items() if value is not None]
        cleared = any(value is not None and key not in modified for key, value in original.items())
        if listed and (patch or cleared):
            patch[RETAIN_KEYS] = sorted(listed)
    return patch


def _diff_directive(before: Any, value: Any, patch: Object) -> None:
    if not isinstance(before, str) or not isinstance(value, str):
        raise StrategicPatchError(f"invalid value for special key: {DIRECTIVE}")
    if before != value:
        patch[DIRECTIVE] = value


def _diff_map_field(
    key: str, before: Object, value: Object, patch: Object, shape: Shape, want: _Want
) -> None:
    child = shape.field(key)
    if child is None:
        if not govalues.same(before, value):
            field_shape(shape, key)
        return
    if strategy_of(child) == "replace":
        if want.changes:
            patch[key] = value
        return
    want = replace(want, retain_keys="retainKeys" in child.patch_strategies)
    if inner := _diff_maps(before, value, child, want):
        patch[key] = inner


def _diff_list_field(
    key: str, before: list[Any], value: list[Any], patch: Object, shape: Shape, want: _Want
) -> None:
    child = shape.field(key)
    if child is None:
        if not govalues.same(before, value):
            field_shape(shape, key)
        return
    if strategy_of(child) != "merge":
        if want.changes and not govalues.same(before, value):
            patch[key] = value
        return
    want = replace(want, retain_keys="retainKeys" in child.patch_strategies)
    if not before:
        if value and want.changes:
            patch[key] = value
        return
    if element_kind(before, value) is dict:
        added, order = _diff_lists_of_maps(before, value, child, want)
        deleted: list[Any] = []
    else:
        added, deleted, order = _diff_lists_of_scalars(before, value, want)
    if added:
        patch[key] = added
    if deleted:
        patch[f"{DELETE_FROM_LIST}/{key}"] = deleted
    if order:
        patch[f"{ELEMENT_ORDER}/{key}"] = order


def _diff_lists_of_maps(
    original: list[Any], modified: list[Any], child: Shape, want: _Want
) -> tuple[list[Any], list[Any]]:
    """Elements added or changed followed by deletions, and the order list if one is called for."""
    merge_key = child.patch_merge_key or ""
    shape = element_shape(child)
    old, new = (_sorted_by_key(items, merge_key) for items in (original, modified))
    added: list[Any] = []
    deleted: list[Any] = []
    at = 0
    for name, element in new:
        while at < len(old) and old[at][0] < name:
            deleted.append(old[at][1])
            at += 1
        if at < len(old) and old[at][0] == name:
            if inner := _diff_maps(old[at][1], element, shape, want):
                added.append({**inner, merge_key: element[merge_key]})
            at += 1
        elif want.changes:
            added.append(element)
    deleted += [element for _, element in old[at:]]
    patch = in_order(added, modified, merge_key, dict)
    reordered = len(original) != len(modified) or any(
        not govalues.same(left[merge_key], right[merge_key])
        for left, right in zip(original, modified, strict=True)
    )
    if want.deletions:
        patch += [{merge_key: element[merge_key], DIRECTIVE: "delete"} for element in deleted]
    order: list[Any] = []
    if want.order and ((want.changes and (patch or reordered)) or (want.deletions and patch)):
        order = [{merge_key: element[merge_key]} for element in modified]
    return patch, order


def _sorted_by_key(items: list[Any], merge_key: str) -> list[tuple[str, Any]]:
    named = [(govalues.show(require_merge_key(item, merge_key)), item) for item in items]
    return sorted(named, key=lambda pair: pair[0])


def _diff_lists_of_scalars(
    original: list[Any], modified: list[Any], want: _Want
) -> tuple[list[Any], list[Any], list[Any]]:
    """Scalars added, scalars deleted, and the order list if one is called for."""
    old = sorted(((govalues.show(item), item) for item in original), key=lambda pair: pair[0])
    new = sorted(((govalues.show(item), item) for item in modified), key=lambda pair: pair[0])
    added: list[Any] = []
    deleted: list[Any] = []
    at = 0
    for name, item in new:
        while at < len(old) and old[at][0] < name:
            deleted.append(old[at][1])
            at += 1
        if at < len(old) and old[at][0] == name:
            at += 1
        elif want.changes:
            added.append(item)
    deleted += [item for _, item in old[at:]]
    deleted = _deduplicated(deleted) if want.deletions else []
    added = in_order(added, modified, "", str)
    # Upstream sorts `original` in place before it compares: a list that only needs sorting counts as equal.
    reordered = not govalues.same([item for _, item in old], modified)
    wants_order = want.order and (bool(deleted) or (want.changes and reordered))
    return added, deleted, modified if wants_order else []


def _deduplicated(items: list[Any]) -> list[Any]:
    """Distinct items, each duplicate's place taken by the last item, as upstream orders them."""
    out = list(items)
    at = 0
    while at < len(out):
        other = at + 1
        while other < len(out):
            if out[other] == out[at]:
                last = out.pop()
                if other < len(out):
                    out[other] = last
            else:
                other += 1
        at += 1
    return out


def _conflict(left: Any, right: Any, shape: Shape | None, strategy: str, merge_key: str) -> bool:
    """Whether two patches set the same place differently."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.get(DIRECTIVE) != right.get(DIRECTIVE):
            return True
        return strategy != "replace" and _maps_conflict(left, right, shape)
    if isinstance(left, list):
        return not isinstance(right, list) or _lists_conflict(left, right, shape, strategy, merge_key)
    return not govalues.same(left, right)


def _maps_conflict(left: Object, right: Object, shape: Shape | None) -> bool:
    for key, value in left.items():
        if key in (DIRECTIVE, RETAIN_KEYS) or key not in right:
            continue
        child: Shape | None = None
        if shape is not None and isinstance(value, dict | list):
            child = field_shape(shape, key)
        strategy = strategy_of(child) if child else ""
        merge_key = (child.patch_merge_key or "") if child else ""
        inner = element_shape(child) if child and isinstance(value, list) else child
        if _conflict(value, right[key], inner, strategy, merge_key):
            return True
    return False


def _lists_conflict(
    left: list[Any], right: list[Any], shape: Shape | None, strategy: str, merge_key: str
) -> bool:
    kind = element_kind(left, right)
    if strategy == "merge":
        if kind is not dict:
            return False
        by_key = {govalues.show(require_merge_key(item, merge_key)): item for item in right}
        pairs = [(item, by_key.get(govalues.show(require_merge_key(item, merge_key)))) for item in left]
        return any(other is not None and _conflict(item, other, shape, "", "") for item, other in pairs)
    if len(left) != len(right):
        return True
    if kind is not dict:
        left = sorted(_deduplicated(left), key=govalues.show)
        right = sorted(_deduplicated(right), key=govalues.show)
    return len(left) != len(right) or any(
        _conflict(a, b, shape, "", "") for a, b in zip(left, right, strict=True)
    )


def _yaml(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, default_flow_style=False))
