"""CEL's functions on strings, with the formatting of `'%s is %d'.format([...])`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from podium.schema import cel_values as values
from podium.schema import govalues
from podium.schema.cel_functions import Definition, by_items, by_length
from podium.schema.cel_values import CelError, UInt


def definitions() -> Iterable[Definition]:
    """The functions of the strings extension."""
    yield "string::charAt(int) -> string", _char_at
    yield "string::indexOf(string) -> int", str.find, by_length
    yield "string::indexOf(string,int) -> int", _index_of, by_length
    yield "string::lastIndexOf(string) -> int", str.rfind, by_length
    yield "string::lastIndexOf(string,int) -> int", _last_index_of, by_length
    yield "string::lowerAscii() -> string", lambda a: a.translate(_LOWER), by_length
    yield "string::upperAscii() -> string", lambda a: a.translate(_UPPER), by_length
    yield "string::replace(string,string) -> string", lambda a, b, c: _replace(a, b, c, -1), _replaced_size
    yield "string::replace(string,string,int) -> string", _replace, _replaced_size
    yield "string::split(string) -> list<string>", lambda a, b: _split(a, b, -1), by_items
    yield "string::split(string,int) -> list<string>", _split, by_items
    yield "string::substring(int) -> string", lambda a, b: _substring(a, b, len(a)), by_length
    yield "string::substring(int,int) -> string", _substring, by_length
    yield "string::trim() -> string", lambda a: a.strip(_SPACES), by_length
    yield "list<string>::join() -> string", "".join, _joined_size
    yield "list<string>::join(string) -> string", lambda a, b: b.join(a), _joined_size
    yield "string::format(list<dyn>) -> string", _format, lambda a, b: len(a) + values.deep_size(b)
    yield "strings.quote(string) -> string", _quote, by_length


_SPACES = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def _joined_size(items: list[str], separator: str = "") -> int:
    return sum(values.size(item) + len(separator) for item in items) // 10 + len(items)


def _replaced_size(text: str, old: str, new: str, limit: int = -1) -> int:
    count = text.count(old) if limit < 0 else min(text.count(old), limit)
    return (len(text) + count * len(new)) // 10 + 1


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}


def _replace(text: str, old: str, new: str, limit: int) -> str:
    return text.replace(old, new, limit if limit >= 0 else -1)


def _split(text: str, separator: str, limit: int) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return (
            parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
        )
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


_QUOTED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def _quote(text: str) -> str:
    body = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_QUOTED.get(c, c) for c in body) + '"'


_VERB = re.compile(r"%(?:%|(?:\.(\d{1,3}))?(.?))", re.DOTALL)


def _format(text: str, arguments: list[Any]) -> str:
    remaining = iter(enumerate(arguments))
    used = 0

    def verb(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "%%":
            return "%"
        index, argument = next(remaining, (used, _MISSING))
        if argument is _MISSING:
            raise CelError(f"index {index} out of range")
        used += 1
        return _clause(found[2], argument, int(found[1]) if found[1] else None)

    return _VERB.sub(verb, text)


_MISSING = object()


def _clause(verb: str, value: Any, precision: int | None) -> str:
    kind = type(value)
    if verb == "s":
        return _show(value)
    if verb == "d" and kind in (int, UInt, float):
        return _show(value) if kind is float else str(int(value))
    if verb in ("f", "e") and kind in (int, UInt, float):
        return f"{float(value):.{6 if precision is None else precision}{verb}}"
    if verb == "b" and kind in (int, UInt, bool):
        return f"{int(value):b}"
    if verb in ("x", "X"):
        if kind in (int, UInt):
            return f"{int(value):{verb}}"
        if kind in (str, bytes):
            digits = (value.encode() if kind is str else bytes(value)).hex()
            return str(digits.upper() if verb == "X" else digits)
    if verb == "o" and kind in (int, UInt):
        return f"{int(value):o}"
    if verb not in "sdfebxXo" or not verb:
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    raise CelError(f"error during formatting: {verb} clause cannot be used on {values.type_name(value)}")


def _show(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, UInt):
        return str(int(value))
    if value is None:
        return "null"
    if kind is bytes:
        return str(value.decode(errors="replace"))
    if kind is list:
        return "[" + ", ".join(map(_show, value)) + "]"
    if kind is dict:
        return (
            "{"
            + ", ".join(f"{k}: {v}" for k, v in sorted((_show(k), _show(v)) for k, v in value.items()))
            + "}"
        )
    if kind is float:
        return govalues.print_float(value)
    if kind is values.Timestamp:
        return values.show_timestamp(value)
    if kind is values.Duration:
        return values.show_duration(value)
    if isinstance(value, values.TypeValue):
        return value.name
    raise CelError(f"error during formatting: string clause cannot be used on {values.type_name(value)}")
