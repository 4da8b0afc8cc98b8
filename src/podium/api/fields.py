"""Reading a field deep in an object, of which any part may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def value_at(obj: Any, path: Iterable[str]) -> Any:
    """The value under these keys, one below the other; None where there is none."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj
