"""Whether a custom resource fits its schema, in the words of the real server.

One walk per object. The path of a value is a chain of (parent, step) pairs that becomes text only when
something is wrong, so a valid object costs no string. On an update, faults of a value that has not changed
are forgiven (ratcheting): a schema may be tightened without locking out the objects that exist.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from podium.schema import embedded, formats, govalues
from podium.schema.crdschema import ABSENT, Checks, EnumValue, Logic, Structural
from podium.schema.fielderrors import Cause, FieldError, duplicate, invalid, required, type_invalid
from podium.schema.ratcheting import item_key, items_by_key, unchanged
from podium.text.quoting import quote

Path = tuple[Any, Any] | None
_NULL = type(None)


def validate(obj: Any, schema: Structural, old: Any = None, prefix: str = "") -> list[FieldError]:
    """Return what is wrong with an object: its values, its embedded resources, its sets and keyed lists.

    `prefix` is where `obj` stands if it is a part of an object (`status`). Rules are `cel.validate`'s matter.
    """
    errors: list[FieldError] = []
    walk = _Walk(prefix, errors)
    walk.check(schema, obj, None, ABSENT if old is None else old)
    if schema.has_embedded:
        errors += embedded.errors(obj, schema, prefix)
    if schema.has_lists:
        found = list_errors(obj, schema, prefix)
        if found and (old is None or not list_errors(old, schema, prefix)):
            errors += found
    return errors


def list_errors(value: Any, schema: Structural, path: str = "") -> list[FieldError]:
    """Report duplicates in lists of type set and map."""
    found: list[FieldError] = []
    _check_lists(value, schema, path, found)
    return found


class _Walk:
    """The state of one validation: where the object stands and what was found so far."""

    __slots__ = ("errors", "prefix")

    def __init__(self, prefix: str, errors: list[FieldError]) -> None:
        self.prefix = prefix
        self.errors = errors

    def check(self, node: Structural, value: Any, path: Path, old: Any) -> None:
        before = len(self.errors)
        kind = type(value)
        if node.accepts is not None and kind not in node.accepts:
            self._check_type(node, value, path)
        if kind is not _NULL:
            if node.logic is not None:
                self._check_logic(node.logic, value, path, old)
            if node.checks is not None:
                self._check_value(node, node.checks, value, path)
            if kind is dict:
                self._check_map(node, value, path, old)
            elif kind is list and node.items is not None and not node.items.plain:
                self._check_items(node, value, path, old)
            elif kind is list and node.items is not None:
                accepts = node.items.accepts
                for index, item in enumerate(value):
                    if accepts is not None and type(item) not in accepts:
                        self._check_type(node.items, item, (path, index))
        elif node.checks is not None and node.checks.enum:
            self._check_enum(node.checks, value, path)
        if old is not ABSENT and len(self.errors) > before and unchanged(node, value, old):
            del self.errors[before:]

    def _check_map(self, node: Structural, value: dict[str, Any], path: Path, old: Any) -> None:
        properties, additional = node.properties, node.additional
        old_map = old if type(old) is dict else None
        for key, child in value.items():
            sub = properties.get(key, additional)
            if sub is None:
                if node.additional_allowed is False:
                    text = f"{_text(path)}.{key} in body is a forbidden property"
                    self.errors.append(invalid(self._where(path), key, text))
            elif not (sub.plain and (sub.accepts is None or type(child) in sub.accepts)):
                was = ABSENT if old_map is None else old_map.get(key, ABSENT)
                if path is None and key in ("apiVersion", "kind"):
                    was = ABSENT  # both were converted to the same version, so a change would not show
                self.check(sub, child, (path, key), was)
        for key in node.required:
            if key not in value:
                self.errors.append(required(self._where((path, key))))

    def _check_items(self, node: Structural, value: list[Any], path: Path, old: Any) -> None:
        assert node.items is not None
        known = items_by_key(node, old) if old is not ABSENT else {}
        for index, item in enumerate(value):
            was = known.get(item_key(node, item), ABSENT) if known else ABSENT
            self.check(node.items, item, (path, index), was)

    def _check_type(self, node: Structural, value: Any, path: Path) -> None:
        wanted = "integer,string" if node.int_or_string else node.type
        actual = _TYPE_NAMES[type(value)]
        if actual == "number" and (node.int_or_string or node.type == "integer") and _is_integer(value):
            return
        if value is not None and node.checks and node.checks.format and actual not in ("string", "array"):
            # With a format, the complaint is about formats: a number for a date is an int64 for a date.
            wanted, actual = node.checks.format, {"integer": "int64", "number": "float64"}.get(actual, "")
        text = f"{_text(path)} in body must be of type {wanted}: {quote(actual)}"
        self.errors.append(type_invalid(self._where(path), actual, text))
        if node.type == "integer" and type(value) is float and node.checks is None:
            self._out_of_range("Checked", node.type, "", path)

    def _check_value(self, node: Structural, checks: Checks, value: Any, path: Path) -> None:
        kind = type(value)
        if kind is str:
            self._check_string(checks, value, path)
        elif kind is int or kind is float:
            self._check_number(node, checks, value, path)
        elif kind is list:
            if checks.min_items is not None and len(value) < checks.min_items:
                self._fault(path, len(value), f"should have at least {checks.min_items} items")
            if checks.max_items is not None and len(value) > checks.max_items:
                self._too_many(path, len(value), checks.max_items)
        elif kind is dict:
            if checks.min_properties is not None and len(value) < checks.min_properties:
                self._fault(path, len(value), f"should have at least {checks.min_properties} properties")
            if checks.max_properties is not None and len(value) > checks.max_properties:
                self._too_many(path, len(value), checks.max_properties)
        if checks.enum:
            self._check_enum(checks, value, path)

    def _check_string(self, checks: Checks, value: str, path: Path) -> None:
        if checks.max_length is not None and len(value) > checks.max_length:
            limit = checks.max_length
            detail = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
            self.errors.append(FieldError(Cause.TOO_LONG, self._where(path), detail=detail))
        elif checks.min_length is not None and len(value) < checks.min_length:
            self._fault(path, value, f"should be at least {checks.min_length} chars long")
        elif checks.pattern and formats.pattern(checks.pattern).search(value) is None:
            self._fault(path, value, f"should match '{checks.pattern}'")
        if checks.format and formats.known(checks.format) and not formats.matches(checks.format, value):
            text = f"{_text(path)} in body must be of type {checks.format}: {quote(value)}"
            self.errors.append(type_invalid(self._where(path), value, text))

    def _check_number(self, node: Structural, checks: Checks, value: float, path: Path) -> None:
        kind = "" if node.int_or_string else node.type
        if not _in_range(value, kind, checks.format):
            self._out_of_range("Checked", kind, checks.format, path)
        as_integer = type(value) is int
        if checks.multiple_of is not None:
            factor = self._bound(checks.multiple_of, kind, checks.format, "MultipleOf", path, as_integer)
            if factor <= 0:
                text = f"factor MultipleOf declared for {_text(path)} must be positive: {_number(factor)}"
                self.errors.append(invalid(self._where(path), factor, text))
            elif not _is_multiple(value, factor):
                self._fault(path, value, f"should be a multiple of {_number(factor)}")
        if checks.minimum is not None:
            low = self._bound(checks.minimum, kind, checks.format, "Minimum boundary", path, as_integer)
            if value < low or (checks.exclusive_minimum and value == low):
                word = "greater than" if checks.exclusive_minimum else "greater than or equal to"
                self._fault(path, value, f"should be {word} {_number(low)}")
        if checks.maximum is not None:
            high = self._bound(checks.maximum, kind, checks.format, "Maximum boundary", path, as_integer)
            if value > high or (checks.exclusive_maximum and value == high):
                word = "less than" if checks.exclusive_maximum else "less than or equal to"
                self._fault(path, value, f"should be {word} {_number(high)}")

    def _bound(self, bound: float, kind: str, format_: str, name: str, path: Path, as_integer: bool) -> float:
        if not _in_range(bound, kind, format_):
            self._out_of_range(name, kind, format_, path)
            return float(bound)
        return int(bound) if as_integer else float(bound)

    def _out_of_range(self, what: str, kind: str, format_: str, path: Path) -> None:
        fits = f"with format {format_}" if format_ else "(default format)"
        self._about_whole(f"{what} value must be of type {kind} {fits} in {_text(path)}")

    def _check_enum(self, checks: Checks, value: Any, path: Path) -> None:
        for allowed in checks.enum:
            if type(allowed) is EnumValue and _equal(allowed.value, value):
                return
        words = [
            a.value if type(a.value) is str else a.json.decode() for a in checks.enum if type(a) is EnumValue
        ]
        detail = "supported values: " + ", ".join(quote(w) for w in words)
        self.errors.append(FieldError(Cause.NOT_SUPPORTED, self._where(path), value, detail))

    def _check_logic(self, logic: Logic, value: Any, path: Path, old: Any) -> None:
        quoted = quote(_text(path))
        if logic.any_of:
            valid, best = self._try_all(logic.any_of, value, path, old, stop_at_first=True)
            if not valid:
                self._about_whole(f"{quoted} must validate at least one schema (anyOf)")
                self.errors += best
        if logic.one_of:
            valid, best = self._try_all(logic.one_of, value, path, old, stop_at_first=False)
            if valid != 1:
                found = f"Found {valid} valid alternatives" if valid else "Found none valid"
                self._about_whole(f"{quoted} must validate one and only one schema (oneOf). {found}")
                self.errors += best
        if logic.all_of:
            failed = 0
            for sub in logic.all_of:
                before = len(self.errors)
                self.check(sub, value, path, old)
                failed += len(self.errors) > before
            if failed:
                none = ". None validated" if failed == len(logic.all_of) else ""
                self._about_whole(f"{quoted} must validate all the schemas (allOf){none}")
        if logic.not_ is not None and not self._errors_of(logic.not_, value, path, old):
            self._about_whole(f"{quoted} must not validate the schema (not)")

    def _try_all(
        self, alternatives: tuple[Structural, ...], value: Any, path: Path, old: Any, stop_at_first: bool
    ) -> tuple[int, list[FieldError]]:
        """How many alternatives hold, and the faults of the one that came closest."""
        valid, most = 0, -1
        best: list[FieldError] = []
        for sub in alternatives:
            found = self._errors_of(sub, value, path, old)
            if not found:
                valid += 1
                best = []
                if stop_at_first:
                    break
            elif not valid and (count := _matches(sub, value)) > most:
                best, most = found, count
        return valid, best

    def _errors_of(self, node: Structural, value: Any, path: Path, old: Any) -> list[FieldError]:
        other = _Walk(self.prefix, [])
        other.check(node, value, path, old)
        return other.errors

    def _fault(self, path: Path, value: Any, text: str) -> None:
        self.errors.append(invalid(self._where(path), value, f"{_text(path)} in body {text}"))

    def _about_whole(self, text: str) -> None:
        # The real server reports these without a field: Go prints its nil path as <nil>.
        self.errors.append(invalid(self.prefix or "<nil>", "", text))

    def _too_many(self, path: Path, count: int, limit: int) -> None:
        detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
        self.errors.append(FieldError(Cause.TOO_MANY, self._where(path), count, detail))

    def _where(self, path: Path) -> str:
        text = _text(path)
        if not self.prefix:
            return text or "<nil>"
        return f"{self.prefix}.{text}" if text else self.prefix


def _text(path: Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if type(step) is int else f".{step}")
    return "".join(reversed(steps))[1:] if steps and steps[-1][0] == "." else "".join(reversed(steps))


_TYPE_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    _NULL: "null",
}
_LIMITS = {"int32": 2**31, "int64": 2**63, "": 2**63}


def _in_range(value: float, kind: str, format_: str) -> bool:
    if kind == "integer":
        limit = _LIMITS[format_]
        return value == math.floor(value) and -limit <= value < limit
    return format_ != "float" or abs(value) <= 3.4028234663852886e38


def _is_integer(value: float) -> bool:
    return (
        math.isfinite(value)
        and abs(value) <= 2**53 - 1
        and abs(value - round(value)) <= 1e-9 * max(1.0, abs(value))
    )


def _is_multiple(value: float, factor: float) -> bool:
    if type(value) is int and type(factor) is int:
        return value % factor == 0
    return _is_integer(1 / factor * value if factor < 1 else value / factor)


def _equal(allowed: Any, value: Any) -> bool:
    if type(allowed) in (int, float) and type(value) in (int, float):
        # Go converts the value to the type of the allowed one, so 1.5 counts as 1.
        return (
            bool(int(value) == allowed)
            if type(allowed) is int and math.isfinite(value)
            else bool(allowed == value)
        )
    return govalues.same(allowed, value)


def _number(value: float) -> str:
    return str(value) if type(value) is int else govalues.print_float(value)


def _matches(node: Structural, value: Any) -> int:
    """How many checks of a node applied to a value: the real server shows the faults of the alternative "
    "with the most."""
    kind = type(value)
    typed = node.accepts is not None
    if value is None:
        return int(typed and kind in (node.accepts or ()))
    count = 4  # the quantifiers and their own tally, the enum, and the node itself
    if typed or (node.checks and node.checks.format):
        count += 1 + int(node.accepts is None or kind in node.accepts)
    if node.logic is not None:
        count += sum(_matches(sub, value) for sub in node.logic.all_of)
    if kind is str:
        count += 1 + int(bool(node.checks and node.checks.format))
    elif kind is int or kind is float:
        count += 2
    elif kind is list:
        count += 2 + sum(_matches(node.items, item) for item in value if node.items is not None)
    elif kind is dict:
        subs = ((node.properties.get(key, node.additional), child) for key, child in value.items())
        count += 1 + sum(_matches(sub, child) for sub, child in subs if sub is not None)
    return count


def _check_lists(value: Any, schema: Structural, path: str, found: list[FieldError]) -> None:
    if type(value) is dict:
        for key, child in value.items():
            if (sub := schema.properties.get(key)) is not None:
                if sub.has_lists:
                    _check_lists(child, sub, f"{path}.{key}" if path else key, found)
            elif schema.additional is not None and schema.additional.has_lists:
                _check_lists(child, schema.additional, f"{path}[{key}]", found)
    elif type(value) is list:
        if schema.list_type == "set":
            encoded = [msgspec.json.encode(item, order="sorted") for item in value]
            found += [duplicate(f"{path}[{index}]", value[index]) for index in _repeated(encoded)]
        elif schema.list_type == "map":
            _check_keyed(value, schema, path, found)
        if schema.items is not None and schema.items.has_lists:
            for index, item in enumerate(value):
                _check_lists(item, schema.items, f"{path}[{index}]", found)


def _check_keyed(value: list[Any], schema: Structural, path: str, found: list[FieldError]) -> None:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            found.append(invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map"))
            return
    keys = [{k: item[k] for k in schema.map_keys if k in item} if item else {} for item in value]
    encoded = [msgspec.json.encode(key, order="sorted") for key in keys]
    found += [duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(encoded)]


def _repeated(keys: list[bytes]) -> list[int]:
    """The places where a key stands for the second time; further repetitions are not reported again."""
    if len(set(keys)) == len(keys):
        return []
    seen: dict[bytes, int] = {}
    places: list[int] = []
    for index, key in enumerate(keys):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            places.append(index)
    return places
