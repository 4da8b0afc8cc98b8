"""The exact reader: libyaml's events, made values by the rules that sigs.k8s.io/yaml applies.

Duplicate keys, over-deep nesting and alias bombs are errors: an alias is counted each time it is used,
because the JSON that follows repeats it. A caller who wants to know of duplicate keys instead gets a list.
Merge keys work as in go-yaml v2: in the order of the text, so one that stands below a key overrides it.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from typing import Any

import yaml

from podium.text.gojson import without_surrogates
from podium.text.yaml.document import Document
from podium.text.yaml.errors import MAX_DEPTH, MAX_NODES, MalformedError, YAMLError
from podium.text.yaml.scalars import is_timestamp, key_text, resolve

_TAG = "tag:yaml.org,2002:"
_CHARACTERS_PER_NODE = 100  # how long a text that an alias repeats counts as one node


def documents(
    text: str | bytes, duplicates: list[str] | None = None, lines_before: int = 0
) -> Iterator[Document]:
    """Each document of a stream that starts below so many lines."""
    for index, (start, events) in enumerate(_starts(text, lines_before), 1):
        builder = _Builder(events, duplicates, lines_before)
        root = next(events)
        value = builder.value(root, 0)
        builder.refuse_infinity(value, root)
        empty = isinstance(root, yaml.ScalarEvent) and not root.value and not root.style
        yield Document(value, index, line_of(start if empty else root, lines_before))


def _starts(text: str | bytes, lines_before: int) -> Iterator[tuple[yaml.Event, Iterator[yaml.Event]]]:
    """The start of each document and the events from there on."""
    events = parsed(text, lines_before)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield event, events


def parsed(text: str | bytes, lines_before: int = 0) -> Iterator[yaml.Event]:
    """The parser's events; what it refuses is a MalformedError.

    Events rather than nodes: composing nodes recurses on the C stack, which deep nesting overflows.
    """
    try:
        yield from yaml.parse(text, yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 + lines_before if error.problem_mark else None
        where = f"line {line}: " if line else ""
        raise MalformedError(f"error converting YAML to JSON: yaml: {where}{error.problem}", line) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise MalformedError(f"error converting YAML to JSON: yaml: {error}") from None


class _Builder:
    """Builds one document from parser events."""

    def __init__(self, events: Iterator[yaml.Event], duplicates: list[str] | None, lines_before: int) -> None:
        self._events = events
        self._duplicates = duplicates
        self._lines_before = lines_before
        self._nodes = 0
        self._characters = 0
        self._deepest = 0
        self._anchors: dict[str, tuple[Any, int, int]] = {}  # value, weight in nodes, depth below it

    def value(self, event: yaml.Event, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._nodes += 1
        if depth > self._deepest or self._nodes > MAX_NODES:
            self._count(0)
            self._reach(depth)
        anchor: str | None = event.anchor  # type: ignore[attr-defined]  # all that reach this have one
        if anchor:
            self._anchors.pop(anchor, None)  # an alias inside its own anchor must not find an older one
            nodes, characters, deepest = self._nodes, self._characters, self._deepest
            self._deepest = depth
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        else:
            value = (
                self._mapping(depth) if isinstance(event, yaml.MappingStartEvent) else self._sequence(depth)
            )
        if anchor:
            weight = self._nodes - nodes + 1 + (self._characters - characters) // _CHARACTERS_PER_NODE
            self._anchors[anchor] = (value, weight, self._deepest - depth)
            self._deepest = max(deepest, self._deepest)
        return value

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YAMLError("yaml: document contains excessive aliasing or is too large")

    def _reach(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise YAMLError(f"yaml: exceeded max depth of {MAX_DEPTH}")
        self._deepest = max(self._deepest, depth)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Any:
        if event.anchor not in self._anchors:
            line = self._line(event)
            raise YAMLError(
                f"yaml: line {line}: unknown anchor '{event.anchor}' referenced, or one that contains itself",
                line,
            )
        value, weight, height = self._anchors[event.anchor]
        self._count(weight)
        self._reach(depth + height)
        return _copy(value)

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            value = self.value(event, depth + 1)
            if type(value) is float:
                self.refuse_infinity(value, event)
            items.append(value)
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: set[str] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if _is_merge(event):
                self._count(1)
                for mapping in self._merged(next(self._events), depth + 1):
                    result.update(mapping)
                    merged.update(mapping)
                continue
            key = self._key(event, depth + 1)
            if key in result and key not in merged:
                self._report_duplicate(key, event)
            event = next(self._events)
            value = self.value(event, depth + 1)
            if type(value) is float:
                self.refuse_infinity(value, event)
            result[key] = value
            merged.discard(key)
        return result

    def _merged(self, event: yaml.Event, depth: int) -> list[dict[str, Any]]:
        """The mappings to merge, the one that matters most last."""
        value = self.value(event, depth)
        mappings = value if isinstance(event, yaml.SequenceStartEvent) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            line = self._line(event)
            raise YAMLError(
                f"yaml: line {line}: map merge requires map or sequence of maps as the value", line
            )
        return mappings[::-1]

    def _key(self, event: yaml.Event, depth: int) -> str:
        # A collection is refused before it is read: keys within keys would nest without end.
        value = None if isinstance(event, yaml.CollectionStartEvent) else self.value(event, depth)
        key = key_text(value)
        if key is None:
            line = self._line(event)
            kind = "a collection" if isinstance(event, yaml.CollectionStartEvent) else repr(value)
            raise YAMLError(f"yaml: line {line}: unsupported map key: {kind}", line)
        return key

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        self._characters += len(text)
        if event.tag is None:
            return resolve(text) if event.implicit[0] else text
        try:
            return _tagged(event.tag, text)
        except ValueError as error:
            line = self._line(event)
            raise YAMLError(f"yaml: line {line}: {error}", line) from None

    def refuse_infinity(self, value: Any, event: yaml.Event) -> None:
        if type(value) is float and not math.isfinite(value):
            line = self._line(event)
            raise YAMLError(f"yaml: line {line}: json: unsupported value: {value}", line)

    def _report_duplicate(self, key: str, event: yaml.Event) -> None:
        line = self._line(event)
        what = f'line {line}: key "{key}" already set in map'
        if self._duplicates is None:
            raise YAMLError(f"yaml: {what}", line)
        self._duplicates.append(what)

    def _line(self, event: yaml.Event) -> int:
        return line_of(event, self._lines_before)


def line_of(event: yaml.Event, lines_before: int = 0) -> int:
    """The line, from 1, where an event starts."""
    return lines_before + (event.start_mark.line + 1 if event.start_mark else 0)


def _is_merge(event: yaml.Event) -> bool:
    return (
        isinstance(event, yaml.ScalarEvent)
        and event.value == "<<"
        and bool(event.implicit[0] or event.tag == _TAG + "merge")
    )


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _tagged(tag: str, text: str) -> Any:
    """A scalar with an explicit tag; ValueError where the text is not of that kind."""
    kind = tag.removeprefix(_TAG)
    if kind == "binary" and kind != tag:
        return _binary(text)
    if kind == tag or kind not in ("bool", "int", "float", "null", "timestamp"):
        return text
    value = resolve(text)
    found = _kind(value, text)
    if kind == "float" and found == "int" and value < 2**63:
        return float(value)
    if found != kind:
        raise ValueError(f"cannot decode !!{found} `{text}` as a !!{kind}")
    return value


def _kind(value: Any, text: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "timestamp" if is_timestamp(text) else "str"
    return {bool: "bool", int: "int", float: "float"}[type(value)]


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("!!binary value contains invalid base64 data") from None
    text = data.decode("utf-8", "surrogateescape")
    return str(without_surrogates(text))
