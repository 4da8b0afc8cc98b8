"""Adds to a YAML or JSON text in place: comments, order, quotes and indentation of everything else stay.

The text is parsed only to find where things stand; what is inserted are whole lines after the last line of a
block, or a few characters before a closing bracket. Whoever uses this compares values before and after.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml as pyyaml

from podium.text import yaml

Fields = dict[str, Any]


class Text:
    """A text being edited: find a node, add to it; positions are found anew after each change."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)

    def __str__(self) -> str:
        return "".join(self._lines)

    def documents(self) -> list[Node]:
        """The documents of the text; an empty one has no node."""
        loaded = pyyaml.compose_all(str(self), Loader=pyyaml.CSafeLoader)
        return [Node(each) for each in loaded if each is not None]

    def append_document(self, fields: Fields) -> None:
        """Adds a document after the last."""
        self._end_with_newline()
        self._lines += ["---\n", *_block(fields, "")]

    def append_item(self, parent: Node, key: str, item: Fields) -> None:
        """Adds an item to the list under a key of a mapping; the key is made if it is missing."""
        found = parent.get(key)
        if found is None:
            self._append_pair(parent, key, item)
        elif found.is_flow and (found.children or parent.is_flow):
            self._append_in_brackets(found.node, json.dumps(item), bool(found.children))
        elif found.children:
            last = found.children[-1]
            quote = last.quote()
            self._insert(last.last_line + 1, _item(item, " " * found.node.start_mark.column, quote))
        else:
            self._fill_empty_list(parent, key, item)

    def _append_pair(self, parent: Node, key: str, item: Fields) -> None:
        if parent.is_flow:
            pair = f"{json.dumps(key)}: [{json.dumps(item)}]"
            self._append_in_brackets(parent.node, pair, bool(parent.node.value))
            return
        pad = " " * parent.node.start_mark.column
        self._insert(parent.last_line + 1, [f"{pad}{key}:\n", *_item(item, pad + "  ", "")])

    def append_mapping(self, parent: Node, key: str, inner: str, item: Fields) -> None:
        """Adds a key that holds a mapping with a list of one item."""
        if parent.is_flow:
            pair = f"{json.dumps(key)}: {{{json.dumps(inner)}: [{json.dumps(item)}]}}"
            self._append_in_brackets(parent.node, pair, bool(parent.node.value))
            return
        pad = " " * parent.node.start_mark.column
        made = [f"{pad}{key}:\n", f"{pad}  {inner}:\n", *_item(item, pad + "  ", "")]
        self._insert(parent.last_line + 1, made)

    def _fill_empty_list(self, parent: Node, key: str, item: Fields) -> None:
        """Replaces `[]`, or the nothing after a key, by a block list."""
        key_node, value = parent.pair(key)
        line = key_node.end_mark.line
        if value.start_mark.index != value.end_mark.index:  # `[]`, `null` or `~` on the key's line
            start, end = value.start_mark.column, value.end_mark.column
            self._lines[line] = self._lines[line][:start].rstrip() + self._lines[line][end:]
        self._insert(line + 1, _item(item, " " * key_node.start_mark.column, ""))

    def _append_in_brackets(self, node: Any, text: str, more: bool) -> None:
        line, column = node.end_mark.line, node.end_mark.column - 1
        before = self._lines[line][:column]
        after = self._lines[line][column:]
        if before.strip() or not more:
            self._lines[line] = f"{before.rstrip() if more else before}{', ' if more else ''}{text}{after}"
            return
        previous = Node(node).last_child_line  # the bracket has a line of its own, so items have too
        indent = self._lines[previous][: len(self._lines[previous]) - len(self._lines[previous].lstrip())]
        self._lines[previous] = self._lines[previous].rstrip("\n").rstrip() + ",\n"
        self._lines.insert(line, f"{indent}{text}\n")

    def _insert(self, line: int, made: list[str]) -> None:
        if line >= len(self._lines):
            self._end_with_newline()
        self._lines[line:line] = made

    def _end_with_newline(self) -> None:
        if self._lines and not self._lines[-1].endswith("\n"):
            self._lines[-1] += "\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the text, with its position."""

    node: Any

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node, pyyaml.MappingNode)

    @property
    def is_flow(self) -> bool:
        """Whether it is written with brackets."""
        return bool(getattr(self.node, "flow_style", False))

    @property
    def children(self) -> list[Node]:
        """The items of a list; none for anything else."""
        return list(map(Node, self.node.value)) if isinstance(self.node, pyyaml.SequenceNode) else []

    @property
    def text(self) -> str:
        """The text of a scalar; empty for anything else."""
        return str(self.node.value) if isinstance(self.node, pyyaml.ScalarNode) else ""

    def keys(self) -> Iterator[str]:
        """The keys of a mapping as they are written."""
        if self.is_mapping:
            yield from (str(key.value) for key, _ in self.node.value)

    def key(self, name: str) -> str:
        """How a key is spelled here; empty if it is absent. Case does not matter."""
        return next((key for key in self.keys() if key.casefold() == name.casefold()), "")

    def pair(self, name: str) -> tuple[Any, Any]:
        """The nodes of a key and its value."""
        return next((key, value) for key, value in self.node.value if key.value == self.key(name))

    def get(self, name: str) -> Node | None:
        """The value of a key, None if it is absent. Case does not matter."""
        return Node(self.pair(name)[1]) if self.is_mapping and self.key(name) else None

    @property
    def last_line(self) -> int:
        """The line, from 0, where the last character of the node stands."""
        node = self.node
        if self.is_flow or isinstance(node, pyyaml.ScalarNode):
            mark = node.end_mark
            return int(mark.line - 1 if mark.column == 0 and mark.line > node.start_mark.line else mark.line)
        return self.last_child_line

    @property
    def last_child_line(self) -> int:
        """The line, from 0, where the last item or value ends."""
        last = self.node.value[-1]
        if isinstance(last, tuple):
            return max(Node(last[0]).last_line, Node(last[1]).last_line)
        return Node(last).last_line

    def quote(self) -> str:
        """The quotes that the last scalar inside has, if any."""
        node = self.node
        while not isinstance(node, pyyaml.ScalarNode):
            if not node.value:
                return ""
            node = node.value[-1][1] if isinstance(node, pyyaml.MappingNode) else node.value[-1]
        return node.style if node.style in ("'", '"') else ""


def _item(fields: Fields, pad: str, quote: str) -> list[str]:
    """The lines of a list item."""
    lines = _block(fields, pad + "  ", quote)
    return [f"{pad}- {lines[0].lstrip()}", *lines[1:]]


def _block(fields: Fields, pad: str, quote: str = "") -> list[str]:
    """The lines of a mapping; values are strings or lists of mappings."""
    lines = []
    for key, value in fields.items():
        if isinstance(value, list):
            lines.append(f"{pad}{key}:\n")
            for item in value:
                lines += _item(item, pad, quote)
        else:
            lines.append(f"{pad}{key}: {_scalar(value, quote if key != 'schema' else '')}\n")
    return lines


def _scalar(text: str, quote: str) -> str:
    if quote == "'" and "'" not in text:
        return f"'{text}'"
    if quote == '"' or yaml.dump({"k": text}) != f"k: {text}\n":
        return json.dumps(text)
    return text
