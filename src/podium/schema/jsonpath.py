"""JSONPath as Kubernetes reads it: the dialect of CRD printer columns and of `kubectl -o jsonpath`.

A path such as `.status.conditions[?(@.type=="Ready")].status` is parsed once (`parse` remembers) into steps
that each turn a list of values into the next. Known: fields, quoted keys, indexes, slices, unions, wildcards,
filters, recursive descent. Not known: templates, which put text and loops around paths.

The dialect's own ways are kept, since people's columns depend on them: a dot separates also inside a
quoted key unless it is escaped (`['app\\.kubernetes\\.io/name']`), keys take single quotes only, and a filter
compares only values of one type. The length of the text and the number of values visited are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

MAX_TEXT = 4096
MAX_VALUES = 100_000  # that one search may pass through


class JSONPathError(ValueError):
    """A path that cannot be read, or that does not fit the value it is applied to."""


class _Step(Protocol):
    def apply(self, values: list[Any], search: _Search) -> list[Any]: ...


class Path:
    """A parsed path; immutable, to be shared."""

    __slots__ = ("_keys", "_steps", "text")

    def __init__(self, text: str, steps: tuple[_Step, ...]) -> None:
        self.text = text
        self._steps = steps
        # Most paths are dotted names, which need none of the machinery.
        names = [step.name for step in steps if isinstance(step, _Field)]
        self._keys = names if len(names) == len(steps) else None

    def __repr__(self) -> str:
        return f"Path({self.text!r})"

    def find(self, data: Any, *, missing_ok: bool = True) -> list[Any]:
        """All values at the path; JSONPathError where the data has another form than the path expects."""
        if self._keys is None or not missing_ok:
            return _run(self._steps, [data], _Search(missing_ok))
        for key in self._keys:
            if type(data) is not dict or key not in data:
                return []
            data = data[key]
        return [data]


@lru_cache(maxsize=1024)
def parse(text: str) -> Path:
    """Read a path, as written between the braces of a template; JSONPathError if it is not one."""
    if len(text) > MAX_TEXT:
        raise JSONPathError(f"path is longer than {MAX_TEXT} characters")
    return Path(text, _Parser(text).steps())


# --- searching ------------------------------------------------------------------------------------------


class _Search:
    """What one search may still do."""

    __slots__ = ("left", "missing_ok")

    def __init__(self, missing_ok: bool) -> None:
        self.missing_ok = missing_ok
        self.left = MAX_VALUES

    def visit(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise JSONPathError(f"path leads through more than {MAX_VALUES} values")


def _run(steps: Iterable[_Step], values: list[Any], search: _Search) -> list[Any]:
    for step in steps:
        values = step.apply(values, search)
        search.visit(len(values))
    return values


@dataclass(frozen=True, slots=True)
class _Field:
    name: str

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        found = [value[self.name] for value in values if isinstance(value, dict) and self.name in value]
        if values and not found and not search.missing_ok:
            raise JSONPathError(f"{self.name} is not found")
        return found


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        return [self.value]


@dataclass(frozen=True, slots=True)
class _Word:
    """A bare word, which means something in templates only; upstream finds fault when it gets there."""

    word: str

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        raise JSONPathError(f"unrecognized identifier {self.word}")


@dataclass(frozen=True, slots=True)
class _Wildcard:
    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        return [inner for value in values for inner in _contents(value)]


@dataclass(frozen=True, slots=True)
class _Recursive:
    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        found: list[Any] = []
        waiting = values[::-1]  # a stack of our own: data may be nested deeper than Python may call
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict | list | str) and value:
                search.visit(1)
                found.append(value)
                waiting += _contents(value)[::-1]
        return found


def _contents(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class _Slice:
    start: int | None
    stop: int | None
    step: int | None
    single: bool  # `[3]` rather than `[3:4]`

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{_kind(value)} is not array or slice")
            start, stop = self._bounds(len(value))
            if start == stop:
                return found
            found += value[start : stop : self._stride()]
        return found

    def _bounds(self, length: int) -> tuple[int, int]:
        start = self.start or 0
        stop = start + 1 if self.single else self.stop if self.stop is not None else length
        start += length if start < 0 else 0
        if stop < 0 or (stop == 0 and self.single):
            stop += length
        if start != stop:
            if not 0 <= start < length:
                raise JSONPathError(f"array index out of bounds: index {start}, length {length}")
            if not 0 <= stop <= length:
                raise JSONPathError(f"array index out of bounds: index {stop - 1}, length {length}")
            if start > stop:
                raise JSONPathError(f"starting index {start} is greater than ending index {stop}")
        return start, stop

    def _stride(self) -> int:
        if self.step is not None and self.step <= 0:
            raise JSONPathError("step must be > 0")
        return self.step or 1


@dataclass(frozen=True, slots=True)
class _Union:
    branches: tuple[tuple[_Step, ...], ...]

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        return [found for branch in self.branches for found in _run(branch, values, search)]


@dataclass(frozen=True, slots=True)
class _Filter:
    left: tuple[_Step, ...]
    operator: str  # empty: the left side need only exist
    right: tuple[_Step, ...]

    COMPARE: ClassVar[dict[str, Callable[[Any, Any], bool]]] = {
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }

    def apply(self, values: list[Any], search: _Search) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if not isinstance(value, list):
                raise JSONPathError(f"{_kind(value)} is not array or slice and cannot be filtered")
            search.visit(len(value))
            found += [item for item in value if self._passes(item, search)]
        return found

    def _passes(self, item: Any, search: _Search) -> bool:
        if not self.operator:
            return self._exists(item, search)
        left = _run(self.left, [item], search)
        right = _run(self.right, [item], search) if left else []
        if not left or not right:
            return False
        if len(left) > 1 or len(right) > 1:
            raise JSONPathError("can only compare one element at a time")
        return self._compares(left[0], right[0])

    def _exists(self, item: Any, search: _Search) -> bool:
        try:
            return bool(_run(self.left, [item], search))
        except JSONPathError:
            # Upstream lets the item through when the question itself fails (`[?(@.a[7])]` of a short list).
            return search.missing_ok

    def _compares(self, left: Any, right: Any) -> bool:
        compare = self.COMPARE.get(self.operator)
        if compare is None:
            raise JSONPathError(f"unrecognized filter operator {self.operator}")
        ordered = self.operator not in ("==", "!=")
        for side in (left, right):
            if side is None or isinstance(side, dict | list) or (ordered and isinstance(side, bool)):
                raise JSONPathError("invalid type for comparison")
        if type(left) is not type(right):
            raise JSONPathError("incompatible types for comparison")
        return compare(left, right)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


# --- parsing --------------------------------------------------------------------------------------------

_NAME_END = " \t\r\n.,[]$@{}"
_FILTER = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?[\d.]*", re.ASCII)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


class _Parser:
    """Reads one text; brackets end at the first that closes, so parts nest only a few levels deep."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> tuple[_Step, ...]:
        """Everything up to the end of the text."""
        steps: list[_Step] = []
        while self._at < len(self._text):
            steps += self._next(bool(steps) and isinstance(steps[-1], _Recursive))
        return tuple(steps)

    def _inner(self, text: str) -> tuple[_Step, ...]:
        return _Parser(text).steps()

    def _next(self, after_recursive: bool) -> tuple[_Step, ...]:
        here = self._text[self._at]
        if self._text.startswith("[?(", self._at):
            return (self._filter(),)
        if self._text.startswith("..", self._at):
            return self._recursive(after_recursive)
        self._at += 1
        if here in " @$":
            return ()
        if here == "[":
            return self._brackets()
        if here in "\"'":
            return (_Literal(self._quoted(here)),)
        if here == ".":
            return (self._field(),)
        self._at -= 1
        if here in "+-" or here.isdigit():
            return (_Literal(self._number()),)
        if here == "_" or here.isalpha():
            return (self._word(),)
        if here in "\r\n":
            raise JSONPathError("unclosed action")
        raise JSONPathError(f"unrecognized character in action: U+{ord(here):04X} '{here}'")

    def _field(self) -> _Step:
        name = self._name()
        return _Wildcard() if name == "*" else _Field(name.replace("\\", ""))

    def _name(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _NAME_END:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))
        return self._text[start : self._at]

    def _recursive(self, after_recursive: bool) -> tuple[_Step, ...]:
        if after_recursive:
            raise JSONPathError("invalid multiple recursive descent")
        self._at += 2
        follower = self._text[self._at : self._at + 1]
        return (_Recursive(), self._field()) if follower == "_" or follower.isalnum() else (_Recursive(),)

    def _word(self) -> _Step:
        word = self._name()
        return _Literal(word == "true") if word in ("true", "false") else _Word(word)

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        try:
            return float(match[0]) if "." in match[0] else int(match[0])
        except ValueError:
            raise JSONPathError(f"cannot parse number {match[0]}") from None

    def _quoted(self, quote: str) -> str:
        start = self._at
        while True:
            end = self._text.find(quote, self._at)
            if end < 0 or "\n" in self._text[start:end]:
                raise JSONPathError("unterminated quoted string")
            self._at = end + 1
            if self._text[end - 1] != "\\":
                return _unescaped(self._text[start:end], quote)

    def _brackets(self) -> tuple[_Step, ...]:
        end = self._text.find("]", self._at)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise JSONPathError("unterminated array")
        inside = self._text[self._at : end]
        self._at = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            return (_Union(tuple(self._inner(f"[{part.strip(' ')}]") for part in parts)),)
        if key := _QUOTED_KEY.fullmatch(inside):
            return self._inner("." + key[1])
        return (_slice(":" if inside == "*" else inside),)

    def _filter(self) -> _Step:
        start = self._at + len("[?(")
        end = self._filter_end(start)
        if self._text[end + 1 : end + 2] != "]":
            raise JSONPathError("unclosed array expect ]")
        self._at = end + 2
        inside = self._text[start:end]
        comparison = _FILTER.fullmatch(inside)
        if comparison is None:
            return _Filter(self._inner(inside), "", ())
        left, operator, right = comparison.groups()
        return _Filter(self._inner(left), operator, self._inner(right))

    def _filter_end(self, start: int) -> int:
        """Where the closing parenthesis stands; one inside the first pair of quotes does not count."""
        quote, closed = "", False
        for at in range(start, len(self._text)):
            here = self._text[at]
            if here == "\n":
                break
            if here in "\"'":
                closed = closed or (here == quote and self._text[at - 1] != "\\")
                quote = quote or here
            elif here == ")" and bool(quote) == closed:
                return at
        raise JSONPathError("unterminated filter")


def _slice(text: str) -> _Step:
    match = _SLICE.fullmatch(text)
    if match is None:
        raise JSONPathError(f"invalid array index {text}")
    start, stop, step = match.groups()
    try:
        return _Slice(
            int(start) if start else None,
            int(stop[1:]) if stop and stop != ":" else None,
            int(step[1:]) if step and step != ":" else None,
            single=stop is None,
        )
    except ValueError:
        raise JSONPathError(f"array index {text} is not a number") from None


def _unescaped(text: str, quote: str) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        *hexadecimal, octal, simple = match.groups()
        code = int(octal, 8) if octal else int(next(filter(None, hexadecimal), "0"), 16)
        known = simple is None or simple == quote or simple in _SIMPLE_ESCAPES
        if not known or code > 0x10FFFF:
            raise JSONPathError(f"unquote string {quote}{text}{quote} error invalid syntax")
        return chr(code) if simple is None else _SIMPLE_ESCAPES.get(simple, simple)

    return _ESCAPE.sub(character, text)
