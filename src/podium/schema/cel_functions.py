"""The functions and operators that every CEL expression may use.

Each overload is one line: its signature, its implementation, and what it costs where that depends on the size
of its arguments. `cel_library` adds what only Kubernetes has. The table is built when the first rule is
compiled.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from podium.schema import cel_syntax as syntax
from podium.schema import cel_values as values
from podium.schema import formats, govalues
from podium.schema.cel_types import Type, parse_type, split_top
from podium.schema.cel_values import (
    NONE,
    CelError,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    checked_int,
    checked_uint,
    equal,
)  # fmt: skip
from podium.text import durations

Weight = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function."""

    params: tuple[Type, ...]
    result: Type
    is_member: bool
    implementation: Callable[..., Any]
    weight: Weight | None = None


Definition = tuple[str, Callable[..., Any]] | tuple[str, Callable[..., Any], Weight | None]


@cache
def functions() -> Mapping[str, tuple[Overload, ...]]:
    """Every function by name, operators included (`_+_`)."""
    from podium.schema import cel_library, cel_strings

    return _table((*_standard(), *_times(), *cel_strings.definitions(), *cel_library.definitions()))


@cache
def standard_functions() -> Mapping[str, tuple[Overload, ...]]:
    """The functions of plain CEL alone, for expressions that are not about Kubernetes."""
    return _table((*_standard(), *_times()))


def _table(definitions: Iterable[Definition]) -> Mapping[str, tuple[Overload, ...]]:
    table: dict[str, list[Overload]] = {}
    for definition in definitions:
        name, overload = _read(definition)
        table.setdefault(name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in table.items()}


_SIGNATURE = re.compile(r"(?:(?P<target>[^:]+)::)?(?P<name>[^\s(]+)\((?P<params>.*)\) -> (?P<result>.+)")


def _read(definition: Definition) -> tuple[str, Overload]:
    found = _SIGNATURE.fullmatch(definition[0])
    assert found is not None, definition[0]
    target = (found["target"],) if found["target"] else ()
    params = tuple(parse_type(p) for p in (*target, *split_top(found["params"])))
    weight = definition[2] if len(definition) == 3 else None
    return found["name"], Overload(params, parse_type(found["result"]), bool(target), definition[1], weight)


def literal_fault(name: str, args: list[syntax.Node]) -> str:
    """What is wrong with a literal argument that can be judged before any value is known, or nothing."""
    if (
        name not in ("duration", "timestamp", "matches")
        or not args
        or not isinstance(args[0], syntax.Literal)
    ):
        return ""
    try:
        if name == "matches":
            formats.pattern(args[0].value)
        elif args[0].kind == "string":
            (_to_duration if name == "duration" else _to_timestamp)(args[0].value)
    except (CelError, formats.PatternError):
        return f"invalid {name} argument"
    return ""


def by_length(*arguments: Any) -> int:
    """The cost of reading strings: a tenth of their length."""
    return sum(values.size(argument) for argument in arguments) // 10


def by_items(items: Any, *others: Any) -> int:
    """The cost of going through a list."""
    return values.size(items)


def by_pattern(text: str, expression: str, *others: Any) -> int:
    """The cost of matching a regular expression."""
    return -(-(len(text) + 1) // 10) * -(-len(expression) // 4)


def by_product(left: Any, right: Any) -> int:
    """The cost of comparing every item of one list with every item of another."""
    return values.deep_size(left) * values.size(right)


def by_search(items: Any, item: Any) -> int:
    """The cost of looking for an item."""
    return values.deep_size(items) if type(item) in (list, dict) else values.size(items)


def by_search_in(item: Any, items: Any) -> int:
    """The cost of `item in items`."""
    return by_search(items, item)


def search(text: str, expression: str) -> bool:
    """Whether a regular expression matches somewhere in a text."""
    return regex(expression).search(text) is not None


def regex(expression: str) -> Any:
    """A compiled expression; a bad one is an evaluation error."""
    try:
        return formats.pattern(expression)
    except formats.PatternError as error:
        raise CelError(str(error)) from None


def _standard() -> Iterable[Definition]:
    yield from _arithmetic()
    yield from _comparisons()
    yield "!_(bool) -> bool", lambda a: not a
    yield "-_(int) -> int", lambda a: checked_int(-a)
    yield "-_(double) -> double", lambda a: -a
    yield (
        "@in(A,list<A>) -> bool",
        lambda a, b: any(equal(a, item) for item in b),
        by_search_in,
    )
    yield "@in(A,map<A,B>) -> bool", lambda a, b: a in b
    yield "_[_](list<A>,int) -> A", _index
    yield "_[_](map<A,B>,A) -> B", _lookup
    yield "_[?_](list<A>,int) -> optional<A>", _index_optional
    yield "_[?_](map<A,B>,A) -> optional<B>", _lookup_optional
    yield (
        "_[?_](optional<list<A>>,int) -> optional<A>",
        lambda a, b: _index_optional(a.inner, b) if a.has_value else NONE,
    )
    yield (
        "_[?_](optional<map<A,B>>,A) -> optional<B>",
        lambda a, b: _lookup_optional(a.inner, b) if a.has_value else NONE,
    )
    yield (
        "_[_](optional<list<A>>,int) -> optional<A>",
        lambda a, b: _index_optional(a.inner, b) if a.has_value else NONE,
    )
    yield (
        "_[_](optional<map<A,B>>,A) -> optional<B>",
        lambda a, b: _lookup_optional(a.inner, b) if a.has_value else NONE,
    )
    for kind in ("string", "bytes", "list<A>", "map<A,B>"):
        yield f"size({kind}) -> int", len
        yield f"{kind}::size() -> int", len
    yield (
        "string::contains(string) -> bool",
        lambda a, b: b in a,
        lambda a, b: len(a) // 10 * (len(b) // 10 + 1),
    )
    yield "string::startsWith(string) -> bool", str.startswith, lambda a, b: len(b) // 10
    yield "string::endsWith(string) -> bool", str.endswith, lambda a, b: len(b) // 10
    yield "string::matches(string) -> bool", search, by_pattern
    yield "matches(string,string) -> bool", search, by_pattern
    yield "type(A) -> type<A>", lambda a: TypeValue(values.type_name(a))
    yield "dyn(A) -> dyn", lambda a: a
    yield from _conversions()
    yield from _optionals()


def _conversions() -> Iterable[Definition]:
    for kind in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"):
        yield f"{kind}({kind}) -> {kind}", lambda a: a
    yield "bool(string) -> bool", _to_bool
    yield "int(uint) -> int", lambda a: checked_int(int(a))
    yield "int(double) -> int", _double_to_int
    yield "int(string) -> int", _string_to_int
    yield "int(timestamp) -> int", lambda a: a.nanoseconds // 1_000_000_000
    yield "int(duration) -> int", lambda a: a.nanoseconds
    yield "uint(int) -> uint", checked_uint
    yield "uint(double) -> uint", lambda a: checked_uint(int(a))
    yield "uint(string) -> uint", lambda a: checked_uint(_string_to_int(a))
    yield "double(int) -> double", float
    yield "double(uint) -> double", float
    yield "double(string) -> double", _string_to_double
    yield "string(int) -> string", str
    yield "string(uint) -> string", lambda a: str(int(a))
    yield "string(double) -> string", govalues.print_float
    yield "string(bool) -> string", lambda a: "true" if a else "false"
    yield "string(bytes) -> string", _bytes_to_string, by_length
    yield "string(timestamp) -> string", values.show_timestamp
    yield "string(duration) -> string", values.show_duration
    yield "bytes(string) -> bytes", str.encode, by_length
    yield "timestamp(string) -> timestamp", _to_timestamp
    yield "timestamp(int) -> timestamp", lambda a: Timestamp(a * 1_000_000_000)
    yield "duration(string) -> duration", _to_duration
    yield "duration(int) -> duration", Duration


def _arithmetic() -> Iterable[Definition]:
    yield "_+_(int,int) -> int", lambda a, b: checked_int(a + b)
    yield "_-_(int,int) -> int", lambda a, b: checked_int(a - b)
    yield "_*_(int,int) -> int", lambda a, b: checked_int(a * b)
    yield "_/_(int,int) -> int", _divide
    yield "_%_(int,int) -> int", _modulo
    yield "_+_(uint,uint) -> uint", lambda a, b: checked_uint(int(a) + int(b))
    yield "_-_(uint,uint) -> uint", lambda a, b: checked_uint(int(a) - int(b))
    yield "_*_(uint,uint) -> uint", lambda a, b: checked_uint(int(a) * int(b))
    yield "_/_(uint,uint) -> uint", lambda a, b: UInt(_divide(a, b))
    yield "_%_(uint,uint) -> uint", lambda a, b: UInt(_modulo(a, b))
    yield "_+_(double,double) -> double", operator.add
    yield "_-_(double,double) -> double", operator.sub
    yield "_*_(double,double) -> double", operator.mul
    yield "_/_(double,double) -> double", _divide_doubles
    yield "_+_(string,string) -> string", operator.add, by_length
    yield "_+_(bytes,bytes) -> bytes", operator.add, by_length
    yield "_+_(list<A>,list<A>) -> list<A>", operator.add, lambda a, b: len(a) + len(b)
    yield "_+_(duration,duration) -> duration", lambda a, b: _duration(a.nanoseconds + b.nanoseconds)
    yield "_+_(timestamp,duration) -> timestamp", lambda a, b: _timestamp(a.nanoseconds + b.nanoseconds)
    yield "_+_(duration,timestamp) -> timestamp", lambda a, b: _timestamp(a.nanoseconds + b.nanoseconds)
    yield "_-_(duration,duration) -> duration", lambda a, b: _duration(a.nanoseconds - b.nanoseconds)
    yield "_-_(timestamp,duration) -> timestamp", lambda a, b: _timestamp(a.nanoseconds - b.nanoseconds)
    yield "_-_(timestamp,timestamp) -> duration", lambda a, b: _duration(a.nanoseconds - b.nanoseconds)


def _comparisons() -> Iterable[Definition]:
    numbers = ("int", "uint", "double")
    pairs = [(kind, kind) for kind in ("bool", *numbers, "string", "bytes", "timestamp", "duration")]
    pairs += [(a, b) for a in numbers for b in numbers if a != b]
    for a, b in pairs:
        weight = _shorter if a in ("string", "bytes") else None
        yield f"_<_({a},{b}) -> bool", operator.lt, weight
        yield f"_<=_({a},{b}) -> bool", operator.le, weight
        yield f"_>_({a},{b}) -> bool", operator.gt, weight
        yield f"_>=_({a},{b}) -> bool", operator.ge, weight


def _shorter(left: Any, right: Any) -> int:
    return min(len(left), len(right)) // 10


def _optionals() -> Iterable[Definition]:
    yield "optional.of(A) -> optional<A>", lambda a: Optional(True, a)
    yield "optional.ofNonZeroValue(A) -> optional<A>", lambda a: NONE if _is_zero(a) else Optional(True, a)
    yield "optional.none() -> optional<A>", lambda: NONE
    yield "optional<A>::hasValue() -> bool", lambda a: a.has_value
    yield "optional<A>::value() -> A", _value
    yield "optional<A>::or(optional<A>) -> optional<A>", lambda a, b: a if a.has_value else b
    yield "optional<A>::orValue(A) -> A", lambda a, b: a.inner if a.has_value else b
    yield "list<A>::first() -> optional<A>", lambda a: Optional(True, a[0]) if a else NONE
    yield "list<A>::last() -> optional<A>", lambda a: Optional(True, a[-1]) if a else NONE
    yield (
        "optional.unwrap(list<optional<A>>) -> list<A>",
        lambda a: [x.inner for x in a if x.has_value],
        by_items,
    )
    yield "list<optional<A>>::unwrapOpt() -> list<A>", lambda a: [x.inner for x in a if x.has_value], by_items


_UNITS = {"getHours": 3600, "getMinutes": 60, "getSeconds": 1}


def _times() -> Iterable[Definition]:
    for name, part in _PARTS.items():
        yield f"timestamp::{name}() -> int", lambda a, part=part: part(a.nanoseconds)
        yield (
            f"timestamp::{name}(string) -> int",
            lambda a, zone, part=part: part(a.nanoseconds + _offset(zone)),
        )
    for name, unit in _UNITS.items():
        yield (
            f"duration::{name}() -> int",
            lambda a, unit=unit: _truncate(a.nanoseconds, unit * 1_000_000_000),
        )
    yield "duration::getMilliseconds() -> int", lambda a: _truncate(a.nanoseconds, 1_000_000)


_DAY = 86_400_000_000_000
_PARTS: dict[str, Callable[[int], int]] = {
    "getFullYear": lambda n: values.civil(n // _DAY)[0],
    "getMonth": lambda n: values.civil(n // _DAY)[1] - 1,
    "getDate": lambda n: values.civil(n // _DAY)[2],
    "getDayOfMonth": lambda n: values.civil(n // _DAY)[2] - 1,
    "getDayOfYear": lambda n: n // _DAY - values.days_since_epoch(f"{values.civil(n // _DAY)[0]:04d}-01-01"),
    "getDayOfWeek": lambda n: (n // _DAY + 4) % 7,
    "getHours": lambda n: n % _DAY // 3_600_000_000_000,
    "getMinutes": lambda n: n // 60_000_000_000 % 60,
    "getSeconds": lambda n: n // 1_000_000_000 % 60,
    "getMilliseconds": lambda n: n // 1_000_000 % 1000,
}


def _offset(zone: str) -> int:
    """The nanoseconds that a zone is ahead of UTC; named zones other than UTC need data that is not here."""
    if zone in ("UTC", "Z", ""):
        return 0
    found = re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", zone)
    if found is None:
        raise CelError(f"unknown time zone {zone}")
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return (-seconds if found[1] == "-" else seconds) * 1_000_000_000


def _truncate(number: int, unit: int) -> int:
    return number // unit if number >= 0 else -(-number // unit)


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise CelError("division by zero")
    quotient = abs(a) // abs(b)
    return checked_int(quotient if (a < 0) == (b < 0) else -quotient)


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    return int(math.fmod(a, b)) if abs(a) < 2**53 and abs(b) < 2**53 else a - b * _divide(a, b)


def _divide_doubles(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _index(items: list[Any], index: int) -> Any:
    if 0 <= index < len(items):
        return items[index]
    raise CelError(f"index out of bounds: {index}")


def _lookup(entries: dict[Any, Any], key: Any) -> Any:
    if key in entries:
        return entries[key]
    raise CelError(f"no such key: {key}")


def _index_optional(items: list[Any], index: int) -> Optional:
    return Optional(True, items[index]) if 0 <= index < len(items) else NONE


def _lookup_optional(entries: dict[Any, Any], key: Any) -> Optional:
    return Optional(True, entries[key]) if key in entries else NONE


def _value(optional: Optional) -> Any:
    if optional.has_value:
        return optional.inner
    raise CelError("optional.none() dereference")


def _is_zero(value: Any) -> bool:
    if isinstance(value, (Duration, Timestamp)):
        return value.nanoseconds == 0
    return value is None or (type(value) in (bool, int, UInt, float, str, bytes, list, dict) and not value)


def _timestamp(nanoseconds: int) -> Timestamp:
    if not -62_135_596_800 * 10**9 <= nanoseconds < 253_402_300_800 * 10**9:
        raise CelError("timestamp overflow")
    return Timestamp(nanoseconds)


def _duration(nanoseconds: int) -> Duration:
    if not values.INT_MIN <= nanoseconds <= values.INT_MAX:
        raise CelError("duration overflow")
    return Duration(nanoseconds)


def _conversion(wanted: str) -> str:
    return f"type conversion error from 'string' to '{wanted}'"


def _to_bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise CelError(_conversion("bool"))


def _double_to_int(value: float) -> int:
    if value != value or not -(2.0**63) < value < 2.0**63:
        raise CelError("integer overflow")
    return int(value)


def _string_to_int(text: str) -> int:
    if re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) and values.INT_MIN <= int(text) <= values.INT_MAX:
        return int(text)
    raise CelError(_conversion("int"))


def _string_to_double(text: str) -> float:
    if "_" not in text and text == text.strip():
        try:
            return float(text)
        except ValueError:
            pass
    raise CelError(_conversion("double"))


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _to_timestamp(text: str) -> Timestamp:
    has_zone = re.search(r"([Zz]|[+-]\d{2}:\d{2})$", text)
    found = values.parse_timestamp(text) if has_zone else None
    if found is None:
        raise CelError(_conversion("google.protobuf.Timestamp"))
    return found


def _to_duration(text: str) -> Duration:
    try:
        return Duration(durations.nanoseconds(text))
    except durations.DurationError:
        raise CelError(_conversion("google.protobuf.Duration")) from None
