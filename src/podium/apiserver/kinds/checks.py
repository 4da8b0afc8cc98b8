"""Small checks that many kinds share, each giving a list of field errors."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from podium.api import names
from podium.api.kinds import Object
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import Cause, FieldError

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


def each(path: str, value: Any, messages: Sequence[str]) -> list[FieldError]:
    """One `Invalid value` error per sentence."""
    return [errors.invalid(path, value, message) for message in messages]


def not_negative(path: str, value: int | None) -> list[FieldError]:
    return [errors.invalid(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def not_negative_fields(path: str, obj: Object, fields: Iterable[str]) -> list[FieldError]:
    """`not_negative` for several numbers of one object."""
    found: list[FieldError] = []
    for name in fields:
        value = obj.get(name)
        if value is not None and value < 0:
            found.append(errors.invalid(f"{path}.{name}", value, NOT_NEGATIVE))
    return found


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value outside a closed set, with the supported values listed in the order given."""
    listed = ", ".join(f'"{v}"' for v in supported)
    return FieldError(Cause.NOT_SUPPORTED, path, value, f"supported values: {listed}" if listed else "")


def one_of(
    path: str, value: str | None, supported: Collection[str], *, required: bool = True
) -> list[FieldError]:
    """A string from a closed set; `required` says what an absent one is."""
    if value:
        return [] if value in supported else [unsupported(path, value, supported)]
    if value == "" and not required:
        return [unsupported(path, value, supported)]
    return [errors.required(path)] if required else []


def go_order(value: Any) -> Any:
    """A map the way Go shows it, by key; a LabelSelector keeps its fields in order and sorts its labels."""
    if isinstance(value, dict):
        if "matchLabels" in value or "matchExpressions" in value:
            labels = {"matchLabels": go_order(value["matchLabels"])} if value.get("matchLabels") else {}
            fields = ("key", "operator", "values")
            listed = [{f: e[f] for f in fields if f in e} for e in value.get("matchExpressions") or ()]
            return labels | ({"matchExpressions": listed} if listed else {})
        is_map = all(isinstance(v, str) for v in value.values())
        return dict(sorted(value.items())) if is_map else value
    return value


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if same(new, old) else [errors.invalid(path, go_order(new), IMMUTABLE)]


def int_or_percent(path: str, value: Any) -> list[FieldError]:
    """A count of Pods, as a number or as a share."""
    if isinstance(value, str):
        return each(path, value, names.percent(value))
    return not_negative(path, value)


def at_most_100_percent(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > 100:
        return [errors.invalid(path, value, "must not be greater than 100%")]
    return []


def int_or_percent_value(value: Any) -> int:
    """The number in an int-or-percent; what is neither counts as 0."""
    if isinstance(value, str):
        text = value[:-1] if not names.percent(value) else value
        return int(text) if text.removeprefix("-").isdecimal() else 0
    return int(value or 0)


def port_or_name(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, str):
        return each(path, value, names.port_name(value))
    return each(path, value or 0, names.port_number(value or 0))


def same(a: Any, b: Any) -> bool:
    """Whether two values mean the same: an absent list and an empty one are equal, as in Kubernetes."""
    if a == b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return all(same(a.get(key), b.get(key)) for key in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a in (None, []) and b in (None, [])


def restore(new: Object, old: Object, field: str) -> None:
    """Undo whatever a writer did to a top-level field, in place."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def difference(old: Any, new: Any) -> str:
    """The unified diff that Kubernetes appends to messages about forbidden changes."""
    before, after = (
        msgspec.json.format(msgspec.json.encode(v, order="sorted"), indent=1).decode().splitlines()
        for v in (old, new)
    )
    lines = difflib.unified_diff(before, after, lineterm="", n=3)
    return "".join(f"{line}\n" for line in list(lines)[2:])


def annotations_of(obj: Object) -> dict[str, str]:
    found: dict[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    return found
