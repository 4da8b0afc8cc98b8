"""The values of the Common Expression Language as Python objects.

bool, int, float, str, bytes, None, list and dict stand for themselves (int is CEL's int, float its double).
What JSON has no word for is here: unsigned integers, timestamps, durations, optionals, types, and the values
of the Kubernetes libraries. Python's `==` takes 1, 1.0 and True for equal and CEL does not, hence `equal`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from podium.schema import formats

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND


class CelError(Exception):
    """An evaluation failed; the message is what users read."""


class OverBudget(CelError):
    """An evaluation did more work than a rule may do."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970 in UTC."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what `type(x)` answers."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a Kubernetes library (an IP address, a URL, a quantity, ...): its type's name, and what it "
    "is."""

    type_name: str
    value: Any


class Optional:
    """A value that may be absent."""

    __slots__ = ("has_value", "inner")

    def __init__(self, has_value: bool, inner: Any = None) -> None:
        self.has_value = has_value
        self.inner = inner


NONE = Optional(False)

_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    """The name of a value's CEL type."""
    return value.type_name if type(value) is Opaque else _TYPE_NAMES.get(type(value), "dyn")


_NUMBERS = frozenset({int, float, UInt})
_SIMPLE = frozenset({bool, int, str, float, bytes, type(None), Timestamp, Duration, TypeValue, Opaque, UInt})


def equal(left: Any, right: Any) -> bool:
    """CEL's equality: numbers compare across types, everything else only with its own kind."""
    kind, other = type(left), type(right)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and bool(left == right)
    if kind in _SIMPLE:
        return bool(left == right)
    if kind is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if kind is dict:
        return len(left) == len(right) and all(k in right and equal(v, right[k]) for k, v in left.items())
    if kind is Optional:
        return left.has_value == right.has_value and (not left.has_value or equal(left.inner, right.inner))
    return False


def size(value: Any) -> int:
    """How long a value is."""
    return len(value) if type(value) in (str, bytes, list, dict) else 1


_COUNT_LIMIT = 1_000_001  # more than any rule may do
_SIZED = frozenset({list, dict, str, bytes})


def deep_size(value: Any) -> int:
    """How much work it is to look at all of a value, which a rule may have made of one part many times."""
    count, rest = 1, [value]
    while rest and count < _COUNT_LIMIT:
        part = rest.pop()
        if type(part) in (str, bytes):
            count += len(part) // 10
        elif type(part) in (list, dict):
            count += len(part)
            rest.extend([p for p in (part if type(part) is list else part.values()) if type(p) in _SIZED])
    return min(count, _COUNT_LIMIT)


def checked_int(value: int) -> int:
    """An int result, which must fit in 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> UInt:
    """A uint result, which must fit in 64 bits."""
    if 0 <= value < 2**64:
        return UInt(value)
    raise CelError("unsigned integer overflow")


def parse_timestamp(text: str) -> Timestamp | None:
    """A point in time written as in RFC 3339; a missing zone is UTC."""
    found = re.fullmatch(
        r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?([Zz]|[+-]\d{2}:\d{2})?", text, re.ASCII
    )
    if found is None or not formats.is_date(found[1]):
        return None
    hour, minute, second = int(found[2]), int(found[3]), int(found[4])
    if hour > 23 or minute > 59 or second > 59:
        return None
    seconds = hour * 3600 + minute * 60 + second
    if (zone := found[6]) and zone not in "Zz":
        seconds -= int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)
    fraction = int((found[5] or "0")[:9].ljust(9, "0"))
    return Timestamp((days_since_epoch(found[1]) * 86_400 + seconds) * _SECOND + fraction)


def parse_date(text: str) -> Timestamp | None:
    """Midnight of a date."""
    return Timestamp(days_since_epoch(text) * _DAY) if formats.is_date(text) else None


def days_since_epoch(date: str) -> int:
    """The number of days from 1970-01-01 to a valid date."""
    year, month, day = (int(part) for part in date.split("-"))
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def show_timestamp(value: Timestamp) -> str:
    """A timestamp in RFC 3339, with as many decimals as it needs."""
    days, rest = divmod(value.nanoseconds, _DAY)
    year, month, day = civil(days)
    seconds, nanoseconds = divmod(rest, _SECOND)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction}Z"


def show_duration(value: Duration) -> str:
    """A duration in seconds, as CEL's `string` writes it."""
    sign, total = ("-", -value.nanoseconds) if value.nanoseconds < 0 else ("", value.nanoseconds)
    seconds, nanoseconds = divmod(total, _SECOND)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{sign}{seconds}{fraction}s"
