"""Whether a value is the one that was there before: what was wrong before is then forgiven (ratcheting).

Old and new values are matched the way the schema allows: fields and map entries by name, items of keyed lists
by their keys in any order, other lists only as a whole. Data that the schema does not describe cannot be
matched at all, so a value that holds some never counts as unchanged. That is the real server's rule, and
tests hold us to it.
"""

from __future__ import annotations

from typing import Any

from podium.schema.crdschema import Structural
from podium.schema.govalues import same


def unchanged(node: Structural, value: Any, old: Any) -> bool:
    """Whether a value equals the old one, field by field of its schema."""
    if value is None or old is None:
        return value is old
    if type(value) is not type(old):
        return False
    if type(value) is dict:
        if len(value) != len(old):
            return False
        for key, child in value.items():
            sub = node.properties.get(key, node.additional)
            if sub is None or key not in old or not unchanged(sub, child, old[key]):
                return False
        return True
    if type(value) is list and node.items is not None and is_keyed(node):
        if len(value) != len(old):
            return False
        by_key = items_by_key(node, old)
        items = node.items
        return all((k := item_key(node, i)) in by_key and unchanged(items, i, by_key[k]) for i in value)
    return same(value, old)


def is_keyed(node: Structural) -> bool:
    """Whether the items of a list are told apart by keys."""
    return node.list_type == "map" and bool(node.map_keys)


def items_by_key(node: Structural, items: Any) -> dict[Any, Any]:
    """The items of a keyed list; the first of those with the same keys counts, and one without keys does "
    "not."""
    found: dict[Any, Any] = {}
    if is_keyed(node) and type(items) is list:
        for item in items:
            if (key := item_key(node, item)) is not None:
                found.setdefault(key, item)
    return found


def item_key(node: Structural, item: Any) -> tuple[Any, ...] | None:
    """What tells an item of a keyed list from its siblings, or None where it lacks a key."""
    if type(item) is not dict:
        return None
    values = [item.get(key) for key in node.map_keys]
    if any(type(v) not in (str, int, float, bool) for v in values):
        return None
    return tuple((type(v), v) for v in values)
