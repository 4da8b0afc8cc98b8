"""Sets of fields in the form in which managedFields stores them (`fieldsV1`).

A set is the nested dictionary itself: keys are path elements (`f:name`, `k:{"name":"a"}`, `v:"x"`,
`i:0`), a field is a member if its node is empty or holds `.`, and keys stand in upstream's order. No
other representation exists, so reading and writing cost nothing and a write's bookkeeping touches only
what the write changed.

Sets are immutable by agreement: no function changes its arguments, and results share nodes with them. All
functions expect canonical sets, which `parse` makes from anything a client sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from podium.schema import govalues
from podium.text.quoting import quote

FieldSet = dict[str, Any]
Path = tuple[str, ...]

SELF = "."
# What Go escapes in JSON strings beyond what JSON asks for.
HTML_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class FieldSetError(ValueError):
    """Not a set of fields."""


def field_element(name: str) -> str:
    """The path element of a field or map key."""
    return f"f:{name}"


def key_element(keys: dict[str, Any]) -> str:
    """The path element of a list element that is told apart by key fields."""
    return "k:{" + ",".join(f"{_string(name)}:{json_value(keys[name])}" for name in sorted(keys)) + "}"


def value_element(value: Any) -> str:
    """The path element of a scalar in a set-like list."""
    return f"v:{json_value(value)}"


def json_value(value: Any) -> str:
    """A scalar as it stands inside a path element: compact JSON with HTML characters escaped."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and not isinstance(value, bool):
        return govalues.json_float(value)
    return msgspec.json.encode(value).decode()


def parse(fields: Any) -> FieldSet:
    """The canonical set for a decoded `fieldsV1`; unknown kinds of elements are dropped, as upstream does."""
    if not isinstance(fields, dict):
        raise FieldSetError(f"expected an object, got {govalues.show(fields)}")
    node, _ = _parse_node(fields)
    return {} if node is None else node


def from_paths(paths: Iterable[Path]) -> FieldSet:
    """The set that has exactly these members."""
    out: FieldSet = {}
    for path in paths:
        out = union(out, _single(path))
    return out


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """All members; those of one level come before those below any of them."""
    for key, node in fields.items():
        if key != SELF and (not node or SELF in node):
            yield (*prefix, key)
    for key, node in fields.items():
        if node:
            yield from paths(node, (*prefix, key))


def has(fields: FieldSet, path: Path) -> bool:
    """Whether the path itself is a member."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
        if node is None:
            return False
    return bool(path) and node is not None and (not node or SELF in node)


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of either set."""
    if not left or left is right:
        return right
    if not right:
        return left
    out = dict(left)
    grown = False
    for key, node in right.items():
        mine = out.get(key)
        if mine is None:
            out[key] = node
            grown = True
        elif mine is not node and key != SELF:
            out[key] = _union_nodes(mine, node)
    return ordered(out) if grown else out


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of `left` that are not members of `right`; what lies below a member is not affected."""
    if not left or not right:
        return left
    out = left
    for key, node in right.items():
        mine = left.get(key)
        if mine is None:
            continue
        rest = _difference_nodes(mine, node)
        if rest is not mine:
            out = dict(left) if out is left else out
            if rest is None:
                del out[key]
            else:
                out[key] = rest
    return out


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What remains of `left` when every member of `right` is taken away with all below it."""
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key) if key != SELF else None
        if other is None:
            out[key] = node
        elif other and SELF not in other:
            rest = recursive_difference(node, other) if node else node
            # A leaf is a member by itself; a node whose children all went was none.
            if rest or not node:
                out[key] = _as_leaf(rest)
    return out


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The members of both sets."""
    out: FieldSet = {}
    for key, node in left.items():
        other = right.get(key)
        if key == SELF or other is None:
            continue
        inner = intersection(node, other)
        if (not node or SELF in node) and (not other or SELF in other):
            out[key] = {SELF: {}, **inner} if inner else inner
        elif inner:
            out[key] = inner
    return out


def leaves(fields: FieldSet) -> FieldSet:
    """The members that have no members below them."""
    return {key: leaves(node) for key, node in fields.items() if key != SELF}


def ordered(fields: FieldSet) -> FieldSet:
    """The same level with its elements in upstream's order."""
    if len(fields) < 2:
        return fields
    keys = sorted(fields)
    if keys[-1] >= "g":  # something else than `.` and `f:` is there
        keys.sort(key=_rank)
    return {key: fields[key] for key in keys}


def show_path(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="a"].image`."""
    return "".join(map(show_element, path))


def show_element(element: str) -> str:
    """One path element as conflicts name it."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        keys = json.loads(text)
        return "[" + ",".join(f"{name}={_show_value(value)}" for name, value in keys.items()) + "]"
    return f"[={_show_value(json.loads(text))}]" if kind == "v" else f"[{text}]"


def _show_value(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    return "null" if value is None else govalues.show(value)


def _string(text: str) -> str:
    if _PLAIN.issuperset(text):
        return f'"{text}"'
    encoded = msgspec.json.encode(text).decode()
    for character, escape in HTML_ESCAPES.items():
        encoded = encoded.replace(character, escape)
    return encoded


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./: ")


def _parse_node(fields: Any) -> tuple[FieldSet | None, bool]:
    """The children found in a decoded node (None if there are none), and whether the node is a member."""
    if not isinstance(fields, dict):
        raise FieldSetError(f"expected an object, got {govalues.show(fields)}")
    children: FieldSet = {}
    member = False
    for key, inner in fields.items():
        if key == SELF:
            member = True
            continue
        element = _parse_element(key)
        if element is None:
            continue
        node, is_member = _parse_node(inner)
        found: FieldSet = {SELF: {}, **node} if node and is_member else node or {}
        children[element] = _union_nodes(children[element], found) if element in children else found
    if not children:
        return None, True
    return ordered(children), member


def _parse_element(key: str) -> str | None:
    if len(key) < 2:
        raise FieldSetError("key must be 2 characters long:")
    if key[1] != ":":
        raise FieldSetError(f"missing colon: {key}")
    kind, text = key[0], key[2:]
    if kind == "f":
        return key
    try:
        if kind == "v":
            return value_element(json.loads(text))
        if kind == "k":
            keys = json.loads(text)
            if isinstance(keys, dict):
                return key_element(keys)
            raise FieldSetError(f"not an object: {key}")
        if kind == "i":
            return f"i:{int(text)}"
    except ValueError as error:
        raise FieldSetError(f"parsing key as path element: {error}") from None
    return None


def _single(path: Path) -> FieldSet:
    node: FieldSet = {}
    for element in reversed(path):
        node = {element: node}
    return node


def _union_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return right if not right or SELF in right else {SELF: {}, **right}
    if not right:
        return left if SELF in left else {SELF: {}, **left}
    return union(left, right)


def _difference_nodes(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """What remains of a node, or None if nothing does."""
    if not left:
        return left if right and SELF not in right else None
    if not right:
        return {key: node for key, node in left.items() if key != SELF} if SELF in left else left
    out = left
    for key, node in right.items():
        mine = left.get(key)
        if mine is None:
            continue
        rest = None if key == SELF else _difference_nodes(mine, node)
        if rest is not mine:
            out = dict(left) if out is left else out
            if rest is None:
                del out[key]
            else:
                out[key] = rest
    if out is left:
        return left
    return _as_leaf(out) if out else None


def _as_leaf(node: FieldSet) -> FieldSet:
    """A member without children in its canonical form."""
    return {} if len(node) == 1 and SELF in node else node


def _rank(element: str) -> tuple[Any, ...]:
    """Fields come first, then keyed elements, set values and indices, each in the order of its values."""
    kind, text = element[0], element[2:]
    if kind == SELF:
        return (-1,)
    if kind == "f":
        return (0, text)
    if kind == "i":
        return (3, int(text))
    value = msgspec.json.decode(text)
    if kind == "k":
        return (1, tuple((name, _rank_value(item)) for name, item in value.items()))
    return (2, _rank_value(value))


def _rank_value(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, json.dumps(value))
