"""Strategic merge patch: JSON merge patch that knows which lists merge and by which key.

The rules come from a `Shape` (`patch_merge_key`, `patch_strategies`); the order of merged lists, the
directives (`$patch`, `$retainKeys`, `$setElementOrder/<field>`, `$deleteFromPrimitiveList/<field>`) and
the error texts are those of apimachinery's strategicpatch. Inputs are never changed; results share what
no directive touched.

A merge has two uses, told apart by `final`: applying a patch to an object (directives are obeyed and
vanish), and laying one patch over another while a three-way patch is made (directives and nulls are kept
for the server).
"""

from __future__ import annotations

from typing import Any, Literal

from podium.api.kinds import Object
from podium.schema import govalues
from podium.schema.patches import without_nulls
from podium.schema.shape import Merge, Shape
from podium.text.quoting import quote

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
ELEMENT_ORDER = "$setElementOrder"

Strategy = Literal["", "merge", "replace"]


class StrategicPatchError(ValueError):
    """The patch does not fit the object or the type; `status` is what kube-apiserver answers."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


def strategic_merge(obj: Object, patch: Object, shape: Shape) -> Object:
    """The object after a strategic merge patch of its type."""
    return merge_map(obj, patch, shape, final=True)


def merge_map(original: Object | None, patch: Object, shape: Shape, *, final: bool) -> Object:
    """One object with a patch laid over it (see the module docstring for `final`)."""
    if DIRECTIVE in patch:
        return _obey_map_directive(patch)
    out = dict(original or {})
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        _retain_keys(out, rest, final)
    for key in [key for key in rest if key.startswith(ELEMENT_ORDER)]:
        _merge_ordered_list(key, out, rest, shape, final)
    for key, value in rest.items():
        _merge_field(key, value, out, shape, final)
    return out


def element_kind(*lists: list[Any]) -> type:
    """The type that all elements of all lists have; an error if they differ, nest or are absent."""
    kind: type | None = None
    for item in (item for items in lists for item in items):
        if kind is None:
            kind = type(item)
            if kind is list:
                raise StrategicPatchError("lists of lists are not supported", 422)
        elif type(item) is not kind:
            raise StrategicPatchError(f"list element types are not identical: {govalues.show(list(lists))}")
    if kind is None:
        raise StrategicPatchError("no elements in any of the given slices")
    return kind


def field_shape(shape: Shape, key: str) -> Shape:
    """The shape of a field; an error if the type declares no such field."""
    found = shape.field(key)
    if found is None:
        raise StrategicPatchError(f"unable to find api field {quote(key)}")
    return found


def element_shape(child: Shape) -> Shape:
    """The shape of a list's elements; an untyped field may hold a list, too."""
    return child if child.merge is Merge.UNTYPED else child.items()


def strategy_of(shape: Shape) -> Strategy:
    """How values of this shape are patched, leaving `retainKeys` aside."""
    named = shape.patch_strategies
    return "merge" if "merge" in named else "replace" if "replace" in named else ""


def in_order(items: list[Any], order: list[Any], merge_key: str, kind: type) -> list[Any]:
    """Items sorted by their place in `order`; elements that only delete come last."""
    deletions: list[Any] = []
    if kind is dict:
        for item in [*items, *order]:
            require_merge_key(item, merge_key)
        deletions = [item for item in items if item.get(DIRECTIVE) == "delete"]
        items = [item for item in items if item.get(DIRECTIVE) != "delete"]
    places = _places(order, merge_key, kind)
    found = [places.get(_identity(item, merge_key, kind), -1) for item in items]
    if -1 not in found:
        ordered = [item for _, item in sorted(zip(found, items, strict=True), key=lambda pair: pair[0])]
    else:
        ordered = _insertion_sort(items, found)
    return ordered + deletions


def require_merge_key(item: Any, merge_key: str) -> Any:
    """The merge key's value of one list element; an error if it has none."""
    if not isinstance(item, dict):
        raise bad_type({}, item)
    if merge_key not in item:
        raise StrategicPatchError(
            f"map: {govalues.show(item)} does not contain declared merge key: {merge_key}"
        )
    return item[merge_key]


def bad_type(expected: Any, actual: Any) -> StrategicPatchError:
    """The error for a value of another JSON type than expected."""
    return StrategicPatchError(
        f"expected a {govalues.type_name(expected)}, but received a {govalues.type_name(actual)}"
    )


def _obey_map_directive(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Object) -> StrategicPatchError:
    return StrategicPatchError(
        f"unknown patch type: {govalues.show(directive)} in map: {govalues.show(patch)}"
    )


def _retain_keys(out: Object, rest: Object, final: bool) -> None:
    """Obey `$retainKeys`: fields of the object that it does not list are cleared."""
    listed = rest.pop(RETAIN_KEYS)
    if not final:
        if not govalues.same(out.setdefault(RETAIN_KEYS, listed), listed):
            raise StrategicPatchError(
                f"{govalues.show(out[RETAIN_KEYS])} and {govalues.show(listed)} are not deep equal: "
                "this may happen when calculating the 3-way diff patch"
            )
        return
    malformed = StrategicPatchError("invalid patch format of retainKeys", 400)
    if not isinstance(listed, list):
        raise malformed
    for key, value in rest.items():
        is_list_directive = key.startswith((DELETE_FROM_LIST, ELEMENT_ORDER))
        if value is not None and not is_list_directive and key not in listed:
            raise malformed
    for key in [key for key in out if key not in listed]:
        del out[key]


def _merge_ordered_list(order_key: str, out: Object, rest: Object, shape: Shape, final: bool) -> None:
    """Merge the list that `$setElementOrder/<field>` speaks of, and put it in that order."""
    order = rest.pop(order_key)
    malformed = StrategicPatchError("invalid patch format of setElementOrder list", 400)
    if not final and not govalues.same(out.setdefault(order_key, order), order):
        raise malformed
    if not isinstance(order, list):
        raise bad_type([], order)
    prefix, slash, key = order_key.partition("/")
    if not slash or prefix != ELEMENT_ORDER:
        raise malformed
    original, patch = _list_at(out, key), _list_at(rest, key)
    child = field_shape(shape, key)
    merge_key = child.patch_merge_key or ""
    _check_against_order(patch or [], order, merge_key)
    if original is None and patch is None:
        return
    if patch is None:
        merged = original or []
    elif original is None:
        merged = _without_directives(patch)
    else:
        merged = _merge_list(original, patch, child, strategy_of(child), False, final)
    kind = element_kind(original or [], patch or [])
    from_patch, server_only = _partition(merged, order, merge_key)
    live_order = original or []
    if kind is dict and original and patch and strategy_of(child) == "merge":
        live_order = _order_left_behind(original, patch, merge_key)
    out[key] = _interleave(from_patch, server_only, order, live_order, merge_key, kind)
    rest.pop(key, None)


def _order_left_behind(original: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    """The live order that upstream consults after a merge.

    It deletes and appends within one Go array, so that new elements take the places that deletions freed at
    the end and count as part of the live order. Clients see the difference, so it is kept.
    """
    named = [(_identity(item, merge_key, dict), item) for item in patch]
    doomed = {name for name, item in named if item.get(DIRECTIVE) == "delete"}
    kept = [item for item in original if _identity(item, merge_key, dict) not in doomed]
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return kept
    known = {_identity(item, merge_key, dict) for item in kept}
    appended = {name: item for name, item in named if DIRECTIVE not in item and name not in known}
    return kept + list(appended.values())[: len(original) - len(kept)]


def _list_at(container: Object, key: str) -> list[Any] | None:
    if key not in container:
        return None
    value = container[key]
    if not isinstance(value, list):
        raise bad_type([], value)
    return value


def _check_against_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch list must be a subsequence of the order list, deletions aside."""
    if not order or not patch:
        return
    kept = patch
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise bad_type({}, item)
        kept = [item for item in patch if item.get(DIRECTIVE) != "delete"]
    at = 0
    place = 0
    while at < len(kept) and place < len(order):
        if isinstance(kept[at], dict) and DIRECTIVE in kept[at]:
            at += 1
            continue
        if _same_key(kept[at], order[place], merge_key):
            at += 1
        place += 1
    if at < len(kept) and place >= len(order):
        raise StrategicPatchError(
            f"The order in patch list:\n{govalues.show(patch)}\n doesn't match {ELEMENT_ORDER} list:\n"
            f"{govalues.show(order)}\n"
        )


def _same_key(left: Any, right: Any, merge_key: str) -> bool:
    if not merge_key:
        return govalues.same(left, right)
    return govalues.same(require_merge_key(left, merge_key), require_merge_key(right, merge_key))


def _merge_field(key: str, value: Any, out: Object, shape: Shape, final: bool) -> None:
    deleting = key.startswith(DELETE_FROM_LIST)
    if deleting:
        if not final:
            out[key] = value
            return
        prefix, slash, key = key.partition("/")
        if not slash or prefix != DELETE_FROM_LIST:
            raise StrategicPatchError("invalid patch format of primitive list", 400)
    if value is None:
        out.pop(key, None)
        if final:
            return
    current = out.get(key)
    if key not in out or type(current) is not type(value):
        if not deleting:
            _set_new(key, value, out, final)
        return
    if isinstance(current, dict) and isinstance(value, dict):
        child = field_shape(shape, key)
        replacing = strategy_of(child) == "replace"
        out[key] = value if replacing else merge_map(current, value, child, final=final)
    elif isinstance(current, list) and isinstance(value, list):
        child = field_shape(shape, key)
        out[key] = _merge_list(current, value, child, strategy_of(child), deleting, final)
    else:
        out[key] = value


def _set_new(key: str, value: Any, out: Object, final: bool) -> None:
    """Take a patch value whole, without nulls (unless they must reach the server) and without directives."""
    if final:
        value = without_nulls(value)
    if isinstance(value, dict) and DIRECTIVE in value:
        out.pop(key, None)
    else:
        out[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not _has_directive(item)}
        return {key: _without_directives(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _merge_list(
    original: list[Any], patch: list[Any], child: Shape, strategy: Strategy, deleting: bool, final: bool
) -> list[Any]:
    if strategy != "merge" and not deleting:
        return patch
    if not original and not patch:
        return original
    merge_key = child.patch_merge_key or ""
    kind = element_kind(original, patch)
    if kind is dict:
        if not merge_key:
            raise StrategicPatchError("cannot merge lists without merge key for struct")
        original, patch = _obey_list_directives(original, patch, merge_key)
        merged = _merge_elements(original, patch, merge_key, element_shape(child), final)
    else:
        if final and deleting:
            doomed = {_identity(item, "", kind) for item in patch}
            return [item for item in original if _identity(item, "", kind) not in doomed]
        merged = list({_identity(item, "", kind): item for item in [*original, *patch]}.values())
    from_patch, server_only = _partition(merged, patch, merge_key)
    return _interleave(from_patch, server_only, patch, original, merge_key, kind)


def _obey_list_directives(
    original: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[Any]]:
    """Delete what elements with `$patch: delete` name, or start anew where one says `$patch: replace`."""
    plain: list[Any] = []
    replacing = False
    for element in patch:
        if DIRECTIVE not in element:
            plain.append(element)
            continue
        directive = element[DIRECTIVE]
        if directive == "delete":
            doomed = require_merge_key(element, merge_key)
            _require_maps(original)
            original = [
                item for item in original if merge_key not in item or not _equal(item[merge_key], doomed)
            ]
        elif directive == "replace":
            replacing = True
        elif directive == "merge":
            raise StrategicPatchError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, element)
    return (plain, []) if replacing else (original, plain)


def _merge_elements(
    original: list[Any], patch: list[Any], merge_key: str, shape: Shape, final: bool
) -> list[Any]:
    out = list(original)
    for element in patch:
        wanted = require_merge_key(element, merge_key)
        _require_maps(out)
        for place, item in enumerate(out):
            if merge_key in item and _equal(item[merge_key], wanted):
                out[place] = merge_map(item, element, shape, final=final)
                break
        else:
            out.append(element)
    return out


def _require_maps(items: list[Any]) -> None:
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise StrategicPatchError(f"value for key {place} is not a map")


def _equal(left: Any, right: Any) -> bool:
    """Go's == on two scalars: the types count."""
    return type(left) is type(right) and bool(left == right)


def _partition(merged: list[Any], by: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Elements that occur in `by`, and the others."""
    if merge_key:
        for item in merged:
            require_merge_key(item, merge_key)
        _require_maps(by)
    kind = dict if merge_key else object
    wanted = {_identity(item, merge_key, kind) for item in by}
    inside = [item for item in merged if _identity(item, merge_key, kind) in wanted]
    outside = [item for item in merged if _identity(item, merge_key, kind) not in wanted]
    return inside, outside


def _interleave(
    from_patch: list[Any],
    server_only: list[Any],
    patch_order: list[Any],
    server_order: list[Any],
    merge_key: str,
    kind: type,
) -> list[Any]:
    """Both parts in their own order, the server's elements slipped in where the live order allows."""
    right = in_order(from_patch, patch_order, merge_key, kind)
    left = in_order(server_only, server_order, merge_key, kind)
    places = _places(server_order, merge_key, kind)
    out: list[Any] = []
    at = 0
    for item in right:
        place = places.get(_identity(item, merge_key, kind), -1)
        while at < len(left) and 0 <= places.get(_identity(left[at], merge_key, kind), -1) < place:
            out.append(left[at])
            at += 1
        out.append(item)
    return out + left[at:]


def _places(order: list[Any], merge_key: str, kind: type) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for place, item in enumerate(order):
        places.setdefault(_identity(item, merge_key, kind), place)
    return places


def _identity(item: Any, merge_key: str, kind: type) -> Any:
    """What tells list elements apart: the merge key's value of objects, scalars themselves."""
    value = item.get(merge_key) if kind is dict and isinstance(item, dict) else item
    try:
        hash(value)
    except TypeError:
        return (type(value), govalues.show(value))
    return (type(value), value)


def _insertion_sort(items: list[Any], places: list[int]) -> list[Any]:
    """The order that Go's stable sort gives when some elements have no place: they float to the front."""
    out: list[tuple[int, Any]] = []
    for pair in zip(places, items, strict=True):
        at = len(out)
        while at > 0 and (pair[0] < 0 or out[at - 1][0] < 0 or pair[0] < out[at - 1][0]):
            at -= 1
        out.insert(at, pair)
    return [item for _, item in out]
