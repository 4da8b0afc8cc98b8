"""Where in a text a value stands: slow and exact, for the few findings that have a path and want a line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import yaml

from podium.text.yaml.errors import MAX_DEPTH, YAMLError
from podium.text.yaml.exact import line_of, parsed
from podium.text.yaml.scalars import key_text, resolve


def locate(text: str | bytes, path: Sequence[str | int], document: int = 1) -> int:
    """The line of the key or item that a path leads to, or of its nearest parent that exists; from 1."""
    events = parsed(text)
    line = 1
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                document -= 1
                if document == 0:
                    return _found(events, next(events), path)
                line = line_of(event)
    except YAMLError as error:
        return error.line or line
    return line


def _found(events: Iterator[yaml.Event], node: yaml.Event, path: Sequence[str | int]) -> int:
    line = line_of(node)
    for step in path:
        if isinstance(node, yaml.MappingStartEvent):
            entry = _entry(events, str(step))
        elif isinstance(node, yaml.SequenceStartEvent):
            entry = _item(events, step)
        else:
            return line
        if entry is None:
            return line
        line, node = entry
    return line


def _entry(events: Iterator[yaml.Event], wanted: str) -> tuple[int, yaml.Event] | None:
    """The line of a key in the mapping that has just started, and the event that starts its value."""
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            return None
        if isinstance(event, yaml.ScalarEvent) and _key(event) == wanted:
            return line_of(event), next(events)
        _skip(events, event)
        _skip(events, next(events))
    return None


def _item(events: Iterator[yaml.Event], wanted: str | int) -> tuple[int, yaml.Event] | None:
    for index in itertools.count():
        event = next(events)
        if isinstance(event, yaml.SequenceEndEvent):
            return None
        if str(index) == str(wanted):
            return line_of(event), event
        _skip(events, event)
    return None


def _key(event: yaml.ScalarEvent) -> str | None:
    text: str = event.value
    return key_text(resolve(text)) if event.implicit[0] else text


def _skip(events: Iterator[yaml.Event], event: yaml.Event) -> None:
    """Goes past the node that an event starts."""
    depth = 0
    while True:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth == 0:
            return
        if depth > MAX_DEPTH:  # the reader has refused it already; the parser would take ages to find its end
            raise YAMLError(f"yaml: exceeded max depth of {MAX_DEPTH}", line_of(event))
        event = next(events)
