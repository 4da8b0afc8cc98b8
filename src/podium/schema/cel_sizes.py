"""How big the values of a schema can get, in the units that rule costs are estimated in.

Where a schema sets no limit, the limit is what fits into the largest request that the server accepts: as many
of the smallest possible values as there is room for. Upstream's figures, as they decide which definitions are
accepted.
"""

from __future__ import annotations

from podium.schema.cel_types import escape
from podium.schema.crdschema import ABSENT, Checks, Structural

_REQUEST = 3 * 1024 * 1024
_LONGEST = {"duration": 32, "date": 12, "date-time": 32}
_SHORTEST = {"duration": 3, "date": 12, "date-time": 21}
_SMALLEST = {"boolean": 4, "number": 1, "integer": 1, "array": 2}
_NO_CHECKS = Checks()
_TEXT = Structural(type="string")
_META = Structural(type="object", properties={"name": _TEXT, "generateName": _TEXT})


def size_at(schema: Structural, is_resource: bool, path: tuple[str, ...]) -> int | None:
    """The most elements that the value at a path may have; None where the schema knows no such value."""
    node: Structural | None = schema
    for step in path:
        assert node is not None
        if step == "@keys":
            return 0 if node.additional is not None else None
        if step in ("@items", "@values"):
            node = node.items if node.type == "array" else node.additional
        else:
            node = _field(node, step, is_resource)
        if node is None or not _is_declared(node):
            return None
        is_resource = node.embedded
    assert node is not None
    return most_elements(node)


def most_elements(schema: Structural) -> int:
    """The most characters, items or entries that a value of a schema may have; 0 for what has no length."""
    checks = schema.checks or _NO_CHECKS
    if schema.int_or_string:
        return _REQUEST - 2 if checks.max_length is None else _length(checks.max_length) * 4
    if schema.type == "array" and schema.items is not None:
        room = (_REQUEST - 2) // (smallest(schema.items) + 1)
        return room if checks.max_items is None else _length(checks.max_items)
    if schema.type == "object" and schema.additional is not None:
        room = (_REQUEST - 2) // (smallest(schema.additional) + 6)
        return room if checks.max_properties is None else _length(checks.max_properties)
    return _longest_text(checks) if schema.type == "string" else 0


def _longest_text(checks: Checks) -> int:
    if checks.format in _LONGEST:
        return _LONGEST[checks.format]
    if checks.max_length is not None:
        return _length(checks.max_length) * (1 if checks.format == "byte" else 4)
    if checks.enum and checks.format != "byte":
        texts = (each.value for each in checks.enum if each is not None)
        return max((len(text.encode()) for text in texts if isinstance(text, str)), default=0)
    return _REQUEST - 2


def _length(limit: int) -> int:
    return max(0, limit)


def smallest(schema: Structural) -> int:
    """The fewest bytes that a value of a schema takes in JSON."""
    if schema.int_or_string:
        return 1
    if schema.type == "string":
        return _SHORTEST.get((schema.checks or _NO_CHECKS).format, 2)
    if schema.type != "object" or schema.additional is not None:
        return _SMALLEST.get(schema.type, 2)
    size = 2
    for name in schema.required:
        sub = schema.properties.get(name)
        if sub is not None and sub.default is ABSENT and _is_declared(sub):
            size += len(name.encode()) + smallest(sub) + 4
    return size


def most_often(schema: Structural) -> int:
    """How often values of a schema can occur in one request."""
    return _REQUEST // (smallest(schema) + 1)


def times(schema: Structural) -> int | None:
    """By how much a list or map multiplies what is in it; None if there is no limit."""
    checks = schema.checks or _NO_CHECKS
    if schema.type == "array":
        return None if checks.max_items is None else _length(checks.max_items)
    if schema.type == "object" and (schema.additional is not None or schema.additional_allowed is not None):
        return None if checks.max_properties is None else _length(checks.max_properties)
    return 1


def _field(node: Structural, escaped: str, is_resource: bool) -> Structural | None:
    if node.type != "object" or node.additional is not None:
        return None
    if is_resource and escaped in ("apiVersion", "kind"):
        return _TEXT
    if is_resource and escaped == "metadata":
        declared = node.properties.get("metadata")
        named = declared is not None and {"name", "generateName"} <= set(declared.properties)
        return declared if named else _META
    return next((sub for name, sub in node.properties.items() if escape(name) == escaped), None)


def _is_declared(schema: Structural) -> bool:
    """Whether rules can see values of a schema at all."""
    if schema.int_or_string:
        return True
    if schema.type == "array":
        return schema.items is not None and _is_declared(schema.items)
    if schema.type == "object" and schema.additional is not None:
        return _is_declared(schema.additional)
    return schema.type in ("object", "string", "boolean", "number", "integer")
