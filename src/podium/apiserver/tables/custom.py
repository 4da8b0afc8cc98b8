"""Rows of custom resources: the columns that their definition declares, found by JSONPath.

A path that leads nowhere, or to a value of another type than its column's, gives an empty cell (null). If a
path cannot be read, the table ends before its column, as on the real server.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

from podium.api.kinds import Object
from podium.apiserver.registry import Column
from podium.apiserver.tables.printer import NAME, UNKNOWN, column, since
from podium.schema import govalues, jsonpath

_RFC3339 = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-\d\d[T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)
_MIN_INT64 = -(2**63)


def custom_columns(declared: tuple[Column, ...]) -> list[Object]:
    """The column definitions: the name, then what is declared."""
    return [NAME, *(_definition(item) for item in takewhile(_is_readable, declared))]


def custom_cells(declared: tuple[Column, ...], obj: Object, now: datetime) -> list[Any]:
    """The cells of one object under the declared columns."""
    cells: list[Any] = [obj["metadata"].get("name", "")]
    for item in declared:
        path = _path(item.json_path)
        if path is None:
            break
        cells.append(_cell(item.type, path, obj, now))
    return cells


@lru_cache(maxsize=1024)
def _path(text: str) -> jsonpath.Path | None:
    try:
        return jsonpath.parse(text)
    except jsonpath.JSONPathError:
        return None


def _is_readable(item: Column) -> bool:
    return _path(item.json_path) is not None


def _definition(item: Column) -> Object:
    description = (
        item.description or f"Custom resource definition column (in JSONPath format): {item.json_path}"
    )
    return column(item.name, description, item.type, format_=item.format, priority=item.priority)


def _cell(kind: str, path: jsonpath.Path, obj: Object, now: datetime) -> Any:
    try:
        found = path.find(obj)
    except jsonpath.JSONPathError:
        return None
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return value if isinstance(value, str) else _text(value)
    if kind == "date":
        return _age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "number":
        return _float(float(value))
    return _integer(value) if kind == "integer" else None


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    if isinstance(value, dict | list):
        return _go_json(value)
    return govalues.show(value)


def _go_json(value: Any) -> str:
    """JSON as Go writes it: keys in order, and safe to stand in HTML."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _float(value: float) -> float | int:
    # Go writes a whole float without a fraction.
    return int(value) if abs(value) < 1e21 and value == int(value) else value


def _integer(value: float) -> int:
    whole = int(value)
    return whole if _MIN_INT64 <= whole < -_MIN_INT64 else _MIN_INT64  # as Go does on most machines


def _age(text: str, now: datetime) -> str:
    if text in ("", "null"):
        return UNKNOWN
    if not _RFC3339.fullmatch(text):
        return "<invalid>"
    try:
        return since(text.replace(",", "."), now)
    except ValueError:
        return "<invalid>"
