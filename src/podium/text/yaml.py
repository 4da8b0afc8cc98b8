"""YAML the way Kubernetes reads it: a superset of JSON with go-yaml's scalar rules.

Plain scalars resolve as sigs.k8s.io/yaml resolves them (`on` is true, `0777` is octal, a date stays text).
Duplicate keys, over-deep nesting and alias bombs are errors: an alias is counted each time it is used,
because the JSON that follows repeats it. A caller who wants to know of duplicate keys instead gets a list.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

MAX_DEPTH = 250
MAX_NODES = 1_000_000

_CONSTANTS: dict[str, Any] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_CONSTANTS |= dict.fromkeys(("true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True)
_CONSTANTS |= dict.fromkeys(
    ("false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"), False
)
_CONSTANTS |= dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf)
_CONSTANTS |= dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf) | dict.fromkeys(
    (".nan", ".NaN", ".NAN"), math.nan
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)")

_LONGEST_INTEGER = len("-0b") + 64


class YAMLError(ValueError):
    """The text is not YAML, or is YAML that is refused; the message says where and why."""


def load(text: str | bytes, duplicates: list[str] | None = None) -> Any:
    """The one document in a text; an empty text is None, a second document is an error.

    With `duplicates`, a key that is set twice is no error: the last one counts, and the list says where.
    """
    documents = list(load_all(text, duplicates))
    if len(documents) > 1:
        raise YAMLError("expected one YAML document, found several")
    return documents[0] if documents else None


def load_all(text: str | bytes, duplicates: list[str] | None = None) -> Iterator[Any]:
    """Each document of a stream as plain values, in order."""
    try:
        # Events rather than nodes: composing nodes recurses on the C stack, which deep nesting overflows.
        events = yaml.parse(text, yaml.CSafeLoader)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield _Document(events, duplicates).value(next(events), 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise YAMLError(f"error converting YAML to JSON: yaml: {where}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YAMLError(f"error converting YAML to JSON: yaml: {error}") from None


class _Document:
    """Builds one document from parser events."""

    def __init__(self, events: Iterator[yaml.Event], duplicates: list[str] | None) -> None:
        self._events = events
        self._duplicates = duplicates
        self._nodes = 0
        self._anchors: dict[str, tuple[Any, int]] = {}  # value and how many nodes it is made of

    def value(self, event: yaml.Event, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._nodes
        self._count(1)
        if depth > MAX_DEPTH:
            raise YAMLError(f"yaml: exceeded max depth of {MAX_DEPTH}")
        anchor: str | None = getattr(event, "anchor", None)
        if anchor:
            self._anchors.pop(anchor, None)  # an alias inside its own anchor must not find an older one
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(depth)
        else:
            value = self._sequence(depth)
        if anchor:
            self._anchors[anchor] = (value, self._nodes - before)
        return value

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YAMLError("yaml: document contains excessive aliasing or is too large")

    def _alias(self, event: yaml.AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            line = _line(event)
            raise YAMLError(
                f"yaml: line {line}: unknown anchor '{event.anchor}' referenced, or one that contains itself"
            )
        value, nodes = self._anchors[event.anchor]
        self._count(nodes)
        return copy.deepcopy(value)

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self.value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            merge = isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = "" if merge else _key(self.value(event, depth + 1), event)
            if key in result:
                self._report_duplicate(f'line {_line(event)}: key "{key}" already set in map')
            value = self.value(next(self._events), depth + 1)
            if merge:
                merged += _mappings(value)
            else:
                result[key] = value
        for mapping in merged:
            result = mapping | result
        return result

    def _report_duplicate(self, what: str) -> None:
        if self._duplicates is None:
            raise YAMLError(f"yaml: {what}")
        self._duplicates.append(what)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _mappings(value: Any) -> list[dict[str, Any]]:
    mappings = value if isinstance(value, list) else [value]
    if not all(isinstance(mapping, dict) for mapping in mappings):
        raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
    return mappings


def _key(value: Any, event: yaml.Event) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise YAMLError(f"yaml: line {_line(event)}: unsupported map key: {value!r}")


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if not event.implicit[0] or event.tag == "tag:yaml.org,2002:str":
        return text
    return _plain_scalar(text)


def _plain_scalar(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "0123456789+-.":
        return text
    plain = text.replace("_", "")
    if len(plain) <= _LONGEST_INTEGER and _INTEGER.fullmatch(plain):
        number = _integer(plain)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(plain) and math.isfinite(real := float(plain)):
        return real
    return text


def _integer(plain: str) -> int:
    sign = -1 if plain[0] == "-" else 1
    digits = plain.lstrip("+-").lower()
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def dump(value: Any) -> str:
    """A value as block-style YAML with sorted keys."""
    return yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """Quotes the texts that the rules above take for something else, such as `0E0`; PyYAML's own differ."""

    def text(self, text: str) -> yaml.ScalarNode:
        style = None if isinstance(_plain_scalar(text), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.text)
