"""Strategic merge patches as kustomize applies them.

They differ from the API server's (`podium.schema.strategic`) in one thing that authors see: elements that the
patch names come first in a merged list, in the patch's order, and the untouched ones follow.
"""

from __future__ import annotations

from typing import Any

from podium.api.kinds import Object
from podium.schema.shape import Merge, Shape

_DIRECTIVE = "$patch"


def strategic_merge(obj: Object, patch: Object, shape: Shape | None) -> Object | None:
    """The object after the patch; None if the patch says to delete it."""
    merged = _merge_maps(obj, patch, shape)
    return merged if isinstance(merged, dict) else None


def _merge(old: Any, new: Any, shape: Shape | None) -> Any:
    if isinstance(new, dict):
        return _merge_maps(old if isinstance(old, dict) else None, new, shape)
    if isinstance(new, list):
        return _merge_lists(old if isinstance(old, list) else None, new, shape)
    return new


def _merge_maps(old: Object | None, new: Object, shape: Shape | None) -> Any:
    directive = new.get(_DIRECTIVE)
    if directive == "delete":
        return None
    if directive == "replace":
        return _plain(new)
    if old is None:
        return _plain(new)
    result = dict(old)
    for key, value in new.items():
        if key == _DIRECTIVE:
            continue
        merged = _merge(result.get(key), value, shape.field(key) if shape else None)
        if merged is None:
            result.pop(key, None)
        else:
            result[key] = merged
    return result


def _merge_lists(old: list[Any] | None, new: list[Any], shape: Shape | None) -> Any:
    directives = [item[_DIRECTIVE] for item in new if isinstance(item, dict) and set(item) == {_DIRECTIVE}]
    if "replace" in directives:
        return [_plain(item) for item in new if not (isinstance(item, dict) and _DIRECTIVE in item)]
    if "delete" in directives:
        return None
    if old is None or shape is None or "merge" not in shape.patch_strategies:
        return [_plain(item) for item in new if not _deletes(item)]
    if all(isinstance(item, dict) for item in (*old, *new)) and shape.patch_merge_key:
        return _merge_keyed(old, new, shape)
    if any(isinstance(item, dict | list) for item in (*old, *new)):
        return [_plain(item) for item in new]
    return list(dict.fromkeys((*new, *old)))


def _merge_keyed(old: list[Any], new: list[Any], shape: Shape) -> list[Any]:
    keys = _keys(old, new, shape)
    result: list[Any] = []
    touched: set[int] = set()
    for item in new:
        index = next((i for i, each in enumerate(old) if i not in touched and _same(each, item, keys)), None)
        merged = _merge_maps(None if index is None else old[index], item, shape.items())
        if index is not None:
            touched.add(index)
        if merged is not None:
            result.append(merged)
    return result + [item for index, item in enumerate(old) if index not in touched]


def _keys(old: list[Any], new: list[Any], shape: Shape) -> tuple[str, ...]:
    """Keys that tell elements apart: the secondary ones (a port's protocol) only where anybody sets them."""
    assert shape.patch_merge_key is not None
    declared = shape.keys if shape.merge is Merge.KEYED and shape.patch_merge_key in shape.keys else ()
    return tuple(key for key in declared if any(key in item for item in (*old, *new))) or (
        shape.patch_merge_key,
    )


def _same(one: Object, other: Object, keys: tuple[str, ...]) -> bool:
    """Whether two elements are the same one; a key that one of them leaves out does not tell them apart."""
    common = [key for key in keys if key in one and key in other]
    return bool(common) and all(one[key] == other[key] for key in common)


def _deletes(item: Any) -> bool:
    return isinstance(item, dict) and item.get(_DIRECTIVE) == "delete"


def _plain(value: Any) -> Any:
    """A value to be set as it is: directives are no content, and nulls delete nothing here."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != _DIRECTIVE and item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value if not _deletes(item)]
    return value
