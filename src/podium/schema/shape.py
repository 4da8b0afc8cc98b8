"""How the value at one place of an object merges with another value at the same place.

A `Shape` is the common view that built-in types (`facts`) and custom resources (`structural`) offer to
strategic merge patch and to server-side apply, so that both know one kind of schema only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Merge(Enum):
    """What server-side apply does with a value (structured-merge-diff's words)."""

    SCALAR = "scalar"  # one owner for the whole value
    OBJECT = "object"  # each field or key is owned on its own
    ATOMIC = "atomic"  # a map or list that is replaced as a whole
    SET = "set"  # a list of distinct scalars, each owned on its own
    KEYED = "keyed"  # a list of objects told apart by `keys`
    UNTYPED = "untyped"  # nothing is declared: objects merge by field, lists are atomic


def _untyped(_: str = "") -> Shape:
    return UNTYPED


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: shapes of recursive types never end
class Shape:
    """The merge rules of one value; children are reached lazily because types recurse."""

    merge: Merge
    # The shape below a field of an OBJECT. A declared field answers its shape, a map answers its value
    # shape for any key, and an undeclared field answers None.
    field: Callable[[str], Shape | None] = _untyped
    # The shape of each element of a list (SET, KEYED or an ATOMIC list).
    items: Callable[[], Shape] = _untyped
    keys: tuple[str, ...] = ()
    # Defaults of key fields: `protocol` of a Service port is TCP when left out.
    key_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # Strategic merge patch has rules of its own, which differ from the above for a few fields.
    patch_merge_key: str | None = None
    patch_strategies: frozenset[str] = frozenset()  # of: merge, replace, retainKeys


UNTYPED = Shape(Merge.UNTYPED)
SCALAR = Shape(Merge.SCALAR)
