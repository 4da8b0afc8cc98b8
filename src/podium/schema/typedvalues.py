"""What server-side apply reads off a value: which fields it has, which differ, which to remove.

The walks follow structured-merge-diff: `owned` is the set an applied configuration claims, `compare`
tells what a write added, modified and removed, `remove_items` and `extract_items` cut a value along a
set. Equal parts are skipped by Python's own comparison before anything is walked, which is what makes
bookkeeping on every write affordable. Values are never changed; results share what was not cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.schema.fieldset import SELF, FieldSet, json_value, ordered
from podium.schema.shape import UNTYPED, Merge, Shape

# No field is called so; a shape that answers to it takes any key.
_ANY_KEY = "\x00"


class TypedValueError(ValueError):
    """A value does not fit its shape; says where, in structured-merge-diff's words."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one value differs from another."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def compare(old: Any, new: Any, shape: Shape) -> Comparison:
    """The fields that `new` removes, modifies and adds."""
    removed, modified, added = _compare_maps(old or {}, new or {}, shape)
    return Comparison(removed, modified, added)


def owned(value: Any, shape: Shape) -> FieldSet:
    """The fields that applying this value claims: its leaves, list elements and map keys."""
    return _owned(value, shape) or {}


def list_element(item: Any, shape: Shape) -> str:
    """The path element of one element of a SET or KEYED list."""
    if shape.merge is Merge.SET:
        if isinstance(item, dict):
            raise TypedValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise TypedValueError("not supported: associative list with lists as elements")
        if item is None:
            raise TypedValueError("associative list without keys has an element that's an explicit null")
        return "v:" + json_value(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise TypedValueError(f"associative list with keys may not have {what}")
    parts = []
    for name in sorted(shape.keys):
        if name in item:
            parts.append(f'"{name}":{json_value(item[name])}')
        elif shape.key_defaults.get(name) is not None:
            parts.append(f'"{name}":{json_value(shape.key_defaults[name])}')
    if not parts:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise TypedValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:{" + ",".join(parts) + "}"


def remove_items(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """The value without the members of a set; containers that lose all they had become None."""
    if isinstance(value, dict):
        return _remove_from_map(value, fields, shape)
    if isinstance(value, list):
        return _remove_from_list(value, fields, shape)
    return value if shape.merge in (Merge.SCALAR, Merge.UNTYPED) else None


def extract_items(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """Only the members of a set, with what leads to them."""
    if not value or shape.merge in (Merge.SCALAR, Merge.ATOMIC):
        return value
    if isinstance(value, dict):
        return _extract_from_map(value, fields, shape)
    if isinstance(value, list) and shape.merge is not Merge.UNTYPED:
        return _extract_from_list(value, fields, shape)
    return value


def with_named_fields(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set with every declared field that leads to a member made a member itself."""
    out: FieldSet = {}
    for key, node in fields.items():
        if not node:
            out[key] = node
            continue
        child = _child_of(key, shape)
        inner = with_named_fields(node, child) if child is not None else node
        named = key[0] == "f" and shape.merge is Merge.OBJECT and _is_declared(child, shape.field(_ANY_KEY))
        out[key] = {SELF: {}, **inner} if named and SELF not in inner else inner
    return out


def reconciled(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set after its type changed: fields below something that is atomic now become that one field."""
    out = fields
    if shape.merge is Merge.UNTYPED:
        return fields
    for key, node in fields.items():
        if not node or key == SELF:
            continue
        child = _child_of(key, shape)
        if child is None or child.merge is Merge.SCALAR:
            continue
        inner = {} if child.merge is Merge.ATOMIC else reconciled(node, child)
        if inner is not node:
            out = dict(fields) if out is fields else out
            out[key] = inner
    return out


def _is_declared(child: Shape | None, for_any_key: Shape | None) -> bool:
    """Whether a field of this shape is one that its type names, rather than a key of a map.

    A map answers any key alike; a type that keeps unknown fields answers UNTYPED for them and something
    better for its own.
    """
    if child is None:
        return False
    return for_any_key is None or (for_any_key is UNTYPED and child is not UNTYPED)


def _child_of(element: str, shape: Shape) -> Shape | None:
    """The shape at a path element, if the type has such a place."""
    if shape.merge is Merge.OBJECT:
        return shape.field(element[2:]) if element[0] == "f" else None
    if shape.merge is Merge.KEYED or shape.merge is Merge.SET:
        return shape.items() if element[0] != "f" else None
    return UNTYPED if shape.merge is Merge.UNTYPED and element[0] == "f" else None


# -- comparing ----------------------------------------


def whole(value: Any, shape: Shape) -> FieldSet:
    """The node of a value that appeared or vanished as a whole: it and everything in it are members."""
    if not value or shape.merge is Merge.ATOMIC or shape.merge is Merge.SCALAR:
        return {}
    if isinstance(value, dict):
        out: FieldSet = {SELF: {}}
        field = shape.field
        for key in sorted(value):
            item = value[key]
            if item and isinstance(item, dict | list):
                out["f:" + key] = whole(item, field(key) or UNTYPED)
            else:
                out["f:" + key] = {}
        return out
    if isinstance(value, list) and shape.merge is not Merge.UNTYPED:
        items = shape.items()
        found: FieldSet = {}
        for item in value:
            element = list_element(item, shape)
            found[element] = {} if element in found else whole(item, items)
        return {SELF: {}, **ordered(found)}
    return {}


def _compare_maps(
    old: dict[str, Any], new: dict[str, Any], shape: Shape
) -> tuple[FieldSet, FieldSet, FieldSet]:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    for key, value in new.items():
        if key not in old:
            added["f:" + key] = whole(value, shape.field(key) or UNTYPED)
            continue
        before = old[key]
        if before is value or (before == value and _same_kind(before, value)):
            continue
        gone, changed, came = _compare_values(before, value, shape.field(key) or UNTYPED)
        if gone is not None:
            removed["f:" + key] = gone
        if changed is not None:
            modified["f:" + key] = changed
        if came is not None:
            added["f:" + key] = came
    for key, before in old.items():
        if key not in new:
            removed["f:" + key] = whole(before, shape.field(key) or UNTYPED)
    return (
        ordered(removed) if len(removed) > 1 else removed,
        ordered(modified) if len(modified) > 1 else modified,
        ordered(added) if len(added) > 1 else added,
    )


def _same_kind(left: Any, right: Any) -> bool:
    """Python calls 1 and True equal, apply must not; 1 and 1.0 are equal to both."""
    return isinstance(left, bool) == isinstance(right, bool)


_Nodes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]


def _compare_values(old: Any, new: Any, shape: Shape) -> _Nodes:
    """The removed, modified and added nodes of a field that has unequal values."""
    if shape.merge is Merge.SCALAR or shape.merge is Merge.ATOMIC:
        return None, {}, None
    if not old and not new:  # null, empty and zero differ
        return None, {}, None
    old_is_map, new_is_map = isinstance(old, dict), isinstance(new, dict)
    if (old_is_map or old is None) and (new_is_map or new is None):
        removed, modified, added = _compare_maps(old or {}, new or {}, shape)
        return removed or None, modified or None, added or None
    if shape.merge is Merge.KEYED or shape.merge is Merge.SET:
        if (old is None or isinstance(old, list)) and (new is None or isinstance(new, list)):
            removed, modified, added = _compare_lists(old or [], new or [], shape)
            return removed or None, modified or None, added or None
        return None, {}, None
    # An untyped field became something else: what was below it went, what is below it came.
    gone = _below(whole(old, shape)) if old_is_map else None
    came = _below(whole(new, shape)) if new_is_map else None
    return gone, {}, came


def _below(node: FieldSet) -> FieldSet | None:
    return {key: child for key, child in node.items() if key != SELF} or None


def _compare_lists(old: list[Any], new: list[Any], shape: Shape) -> tuple[FieldSet, FieldSet, FieldSet]:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    before, after = _indexed(old, shape), _indexed(new, shape)
    items = shape.items()
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                added[element] = whole(right[0], items)
            elif not right:
                removed[element] = whole(left[0], items)
            elif left[0] is not right[0] and left[0] != right[0]:
                gone, changed, came = _compare_values(left[0], right[0], items)
                for fields, node in ((removed, gone), (modified, changed), (added, came)):
                    if node is not None:
                        fields[element] = node
        elif len(left) > 1 and len(right) > 1:
            if left != right:
                modified[element] = {}
        # Duplicates are owned as one: what was owned below a single element goes when it is duplicated.
        elif len(left) > 1:
            removed[element] = {}
            if right:
                added[element] = whole(right[0], items)
        else:
            added[element] = {}
            if left:
                removed[element] = whole(left[0], items)
    return ordered(removed), ordered(modified), ordered(added)


def _indexed(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(list_element(item, shape), []).append(item)
    return found


# -- claiming ----------------------------------------


def _owned(value: Any, shape: Shape) -> FieldSet | None:
    """The node of a value; None if it claims nothing by itself."""
    if shape.merge is Merge.SCALAR or shape.merge is Merge.ATOMIC:
        return {}
    if isinstance(value, dict):
        children: FieldSet = {}
        for_any_key = shape.field(_ANY_KEY)
        for key in sorted(value):
            item = value[key]
            child = shape.field(key)
            node = {} if item is None or item == {} else _owned(item, child or UNTYPED)
            if not _is_declared(child, for_any_key):
                children["f:" + key] = {SELF: {}, **node} if node and SELF not in node else node or {}
            elif node is not None:
                children["f:" + key] = node
        return children or None
    if isinstance(value, list) and shape.merge is not Merge.UNTYPED:
        return _owned_list(value, shape)
    return {} if shape.merge is Merge.UNTYPED and value is not None else None


def _owned_list(value: list[Any], shape: Shape) -> FieldSet | None:
    items = shape.items()
    found: FieldSet = {}
    seen: set[str] = set()
    for item in value:
        element = list_element(item, shape)
        node = None if element in seen else _owned(item, items)
        seen.add(element)
        found[element] = {SELF: {}, **node} if node else {}
    return ordered(found) or None


# -- cutting ----------------------------------------


def _remove_from_map(value: dict[str, Any], fields: FieldSet, shape: Shape) -> Any:
    if not value or shape.merge is Merge.ATOMIC:
        return None
    if shape.merge is Merge.SCALAR:
        return value
    out: dict[str, Any] = {}
    for key, item in value.items():
        node = fields.get("f:" + key)
        if node is None:
            out[key] = item
        elif node and SELF not in node:
            out[key] = remove_items(item, node, shape.field(key) or UNTYPED)
    return out or None


def _remove_from_list(value: list[Any], fields: FieldSet, shape: Shape) -> Any:
    if shape.merge is not Merge.KEYED and shape.merge is not Merge.SET:
        return None
    items = shape.items()
    out = []
    for item in value:
        node = fields.get(list_element(item, shape))
        if node is None:
            out.append(item)
        elif node and SELF not in node:
            out.append(remove_items(item, node, items))
    return out or None


def _extract_from_map(value: dict[str, Any], fields: FieldSet, shape: Shape) -> Any:
    out: dict[str, Any] = {}
    for key, item in value.items():
        node = fields.get("f:" + key)
        if node is None:
            continue
        # Below a member upstream goes on with the level above; callers extract leaves, so it makes no odds.
        inner = fields if not node or SELF in node else node
        out[key] = extract_items(item, inner, shape.field(key) or UNTYPED)
    return out or None


def _extract_from_list(value: list[Any], fields: FieldSet, shape: Shape) -> Any:
    items = shape.items()
    out = []
    for item in value:
        node = fields.get(list_element(item, shape))
        if node is None:
            continue
        below = {key: child for key, child in node.items() if key != SELF}
        out.append(extract_items(item, below, items) if below else item)
    return out or None
