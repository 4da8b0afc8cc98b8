"""A fast reader for the YAML that Kubernetes tools write: one document of block mappings and sequences.

One regular expression takes all lines apart at once; what follows walks over the pieces and reads only what
it is sure of: plain, quoted, literal and folded scalars, comments, flat flow collections. For anything else
(anchors, tags, nested flow, tabs, odd indentation, duplicate keys, errors of any kind) it raises Unsure, and
the caller asks the exact reader, whose answer this one must always equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from podium.text.yaml.errors import MAX_NODES
from podium.text.yaml.scalars import key_text, resolve

_MAX_SIZE = 16 * 2**20
_MAX_LINES = 250_000  # the pieces of one take some 300 bytes
_MAX_COLUMN = 200  # each level takes at least one column, so that the limit of depth is kept
_CHARACTERS_PER_NODE = 1.5  # at least: `a:` and a line break are two nodes

_SHORT = 40
_REMEMBERED = 16384
_SAFE = bytes([9, 10, *range(0x20, 0x7F)])
_ODD_BEYOND_ASCII = re.compile(r"[^\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_KEY = r"[\w./$][\w./$@+~()=-]{0,200}+(?::[\w./$@+~()=-]{1,200}+)*+|'[^'\n]{0,200}+'|\"[^\"\\\n]{0,200}+\""
# Indentation, the dash of an item, the key, and the rest of the line.
_LINE = re.compile(rf"([ ]*+)(-(?:[ ]++|(?=\n)))?(?:({_KEY})[ ]*+:(?=[ \n])[ ]*+)?([^\n]*+)\n")
_END = ("", "", "", "")
_COMMENT = r"[ ]*+(?:(?<=[ ])#.*+)?"
_SINGLE = re.compile(rf"'((?:[^']++|'')*+)'{_COMMENT}")
_DOUBLE = re.compile(rf'"((?:[^"\\]++|\\[\s\S])*+)"{_COMMENT}')
_ESCAPED = re.compile(r"\\[\s\S]")
_FOLD = re.compile(r"[ \t]*+\n[ \t\n]*+")
_FOLD_OR_ESCAPE = re.compile(
    r"[ \t]*+\n[ \t\n]*+|\\(?:\n[ \t\n]*+|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)"
)
_HEADER = re.compile(rf"([|>])([+-]?)([1-9]?)([+-]?){_COMMENT}")
_PLAIN_FLOW = re.compile(rf"[\[{{]([^\[\]{{}}#&*!|>%@`\"'\\?\t]*+)[\]}}]{_COMMENT}")
_FLOW_KEY = re.compile(r"[A-Za-z_][\w./-]*+")
_NOT_LIKE_JSON = re.compile(r"[\\{}]|[0-9]{16}")
_ESCAPES = dict(zip('0abt\tnvfre "/\\N_LP', '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029', strict=True))
_NOT_PLAIN = frozenset("'\"|>[{")


class Unsure(Exception):
    """This document is for the exact reader."""


def is_ordinary(data: bytes) -> bool:
    """Whether a text is UTF-8 without line breaks but \\n, byte order marks and what no YAML may hold."""
    beyond_ascii = data.translate(None, _SAFE)
    try:
        return not beyond_ascii or not _ODD_BEYOND_ASCII.search(beyond_ascii.decode())
    except UnicodeDecodeError:
        return False


def parse(text: str) -> Any:
    """The value of one ordinary document without its `---` line; raises Unsure rather than to guess."""
    if len(text) > _MAX_SIZE or text.count("\n") > _MAX_LINES:
        raise Unsure
    ended = text.endswith("\n")
    value = _Reader(text if ended else text + "\n", ended).document()
    if len(text) > MAX_NODES * _CHARACTERS_PER_NODE and _nodes(value) > MAX_NODES:
        raise Unsure
    return value


class _Reader:
    """The lines of one document; each function reads what starts at an index and returns the next one too."""

    def __init__(self, text: str, ended: bool) -> None:
        self.text = text
        self.ended = ended  # whether the last line had a line break
        self.pieces: list[tuple[str, str, str, str]] = _LINE.findall(text)
        self.count = len(self.pieces)
        self.pieces.append(_END)
        self.lines: list[str] = []

    def document(self) -> Any:
        index = self.significant(0)
        if index == self.count:
            return None
        value, index = self.block(index, -1)
        if index != self.count:
            raise Unsure
        return value

    def significant(self, index: int) -> int:
        """The first line from here on that is neither blank nor a comment."""
        pieces = self.pieces
        while index < self.count:
            _, dash, key, rest = pieces[index]
            if key or dash or (rest and rest[0] != "#"):
                break
            index += 1
        return index

    def block(self, index: int, column: int) -> tuple[Any, int]:
        """The value on lines of its own, deeper than the collection at this column."""
        spaces, dash, key, rest = self.pieces[index]
        if dash:
            return self.sequence(index, len(spaces))
        if key:
            return self.mapping(index, len(spaces))
        if column < 0:
            raise Unsure
        return self.scalar(rest, index, column)

    def mapping(self, index: int, column: int) -> tuple[dict[str, Any], int]:
        if column > _MAX_COLUMN:
            raise Unsure
        pieces = self.pieces
        result: dict[str, Any] = {}
        _, _, key, rest = pieces[index]
        while True:
            key = _KEYS[key]
            if key in result:
                raise Unsure
            if rest and rest[0] != "#":
                if rest[0] in _NOT_PLAIN:
                    result[key], index = self.scalar(rest, index, column)
                    spaces, dash, next_key, next_rest = pieces[index]
                else:
                    result[key] = _PLAINS[rest]
                    start = index
                    index += 1
                    spaces, dash, next_key, next_rest = pieces[index]
                    if not next_key and not dash:
                        index = self.significant(index)
                        spaces, dash, next_key, next_rest = pieces[index]
                    if len(spaces) > column:
                        result[key], index = self.long_plain(rest, start, column)
                        spaces, dash, next_key, next_rest = pieces[index]
            else:
                index += 1
                spaces, dash, next_key, next_rest = pieces[index]
                if not next_key and not dash:
                    index = self.significant(index)
                    spaces, dash, next_key, next_rest = pieces[index]
                if len(spaces) > column:
                    result[key], index = self.block(index, column)
                    spaces, dash, next_key, next_rest = pieces[index]
                elif dash and len(spaces) == column:
                    result[key], index = self.sequence(index, column)
                    spaces, dash, next_key, next_rest = pieces[index]
                else:
                    result[key] = None
            if len(spaces) != column or dash or not next_key:
                break
            key, rest = next_key, next_rest
        if len(spaces) > column or (len(spaces) == column and not dash and index < self.count):
            raise Unsure
        return result, index

    def sequence(self, index: int, column: int) -> tuple[list[Any], int]:
        if column > _MAX_COLUMN:
            raise Unsure
        pieces = self.pieces
        items: list[Any] = []
        spaces, dash, key, rest = pieces[index]
        while dash and len(spaces) == column:
            if key:
                value, index = self.mapping(index, column + len(dash))
            elif rest and rest[0] != "#":
                value, index = self.scalar(rest, index, column)
            else:
                index = self.significant(index + 1)
                value = None
                if len(pieces[index][0]) > column:
                    value, index = self.block(index, column)
            items.append(value)
            spaces, dash, key, rest = pieces[index]
        if len(spaces) > column:
            raise Unsure
        return items, index

    def scalar(self, rest: str, index: int, column: int) -> tuple[Any, int]:
        """The scalar that starts with `rest`, in a collection at this column."""
        first = rest[0]
        value: Any
        if first == "'" or first == '"':
            value, index = self.quoted(rest, index)
        elif first in "|>":
            value, index = self.block_scalar(rest, index, column)
        elif first in "[{":
            value = _flow(rest)
        else:
            value = _PLAINS[rest]
            after = self.significant(index + 1)
            if len(self.pieces[after][0]) > column:
                return self.long_plain(rest, index, column)
        after = self.significant(index + 1)
        if len(self.pieces[after][0]) > column:
            raise Unsure
        return value, after

    def line(self, index: int) -> str:
        self.lines = self.lines or self.text.split("\n")
        return self.lines[index]

    def quoted(self, rest: str, index: int) -> tuple[str, int]:
        """A text in quotes, and the line in which it ends."""
        quote = rest[0]
        pattern = _SINGLE if quote == "'" else _DOUBLE
        match = pattern.fullmatch(rest)
        if not match:
            rest, index = self.to_closing_quote(rest, index)
            match = pattern.fullmatch(rest)
        if not match:
            raise Unsure
        body = match[1]
        if quote == '"':
            if "\\" in body or "\n" in body:
                body = _FOLD_OR_ESCAPE.sub(_folded_or_unescaped, body)
            return body, index
        if "''" in body:
            body = body.replace("''", "'")
        return (_FOLD.sub(_folded, body) if "\n" in body else body), index

    def to_closing_quote(self, rest: str, index: int) -> tuple[str, int]:
        quote = rest[0]
        lines = [rest]
        is_open = _quotes(rest, quote) % 2
        while is_open:
            index += 1
            if index >= self.count:
                raise Unsure
            lines.append(self.line(index))
            is_open ^= _quotes(lines[-1], quote) % 2
        return "\n".join(lines), index

    def long_plain(self, rest: str, index: int, column: int) -> tuple[str, int]:
        """A plain scalar that goes on below the line of this index."""
        if " #" in rest:
            raise Unsure
        words = [rest.rstrip(" ")]
        blank = 0
        following = index = index + 1
        while index < self.count:
            line = self.line(index).strip(" ")
            if not line:
                blank += 1
            elif len(self.pieces[index][0]) <= column or line[0] == "#":
                break
            elif ": " in line or line[-1] == ":" or " #" in line or "\t" in line:
                raise Unsure
            else:
                words += ("\n" * blank if blank else " ", line)
                blank = 0
                following = index + 1
            index += 1
        after = self.significant(following)
        if len(self.pieces[after][0]) > column:
            raise Unsure
        return "".join(words), after

    def block_scalar(self, rest: str, index: int, column: int) -> tuple[str, int]:
        """A literal or folded text, and its last line."""
        header = _HEADER.fullmatch(rest)
        if not header or (header[2] and header[4]):
            raise Unsure
        start = index + 1
        index = self.block_end(start, column)
        if index == self.count and not self.ended:
            raise Unsure
        self.line(0)
        lines = self.lines[start:index]
        indent = column + int(header[3]) if header[3] else _indent(lines)
        content, trailing = _content(lines, indent)
        text = "\n".join(content) if header[1] == "|" else _fold_lines(content)
        chomp = header[2] or header[4]
        if chomp != "-":
            text += "\n" * (1 + trailing) if chomp == "+" else "\n"
        return text, index - 1

    def block_end(self, index: int, column: int) -> int:
        """The first line from here on that is not blank and no deeper than a column."""
        pieces = self.pieces
        while index < self.count:
            spaces, dash, key, rest = pieces[index]
            if len(spaces) <= column and (rest or key or dash):
                break
            index += 1
        return index


def _key(key: str) -> str:
    if key[0] in "'\"":
        return key[1:-1]
    text = key_text(resolve(key))
    if text is None:
        raise Unsure
    return text


def _plain(rest: str) -> Any:
    if " #" in rest:
        rest = rest[: rest.index(" #")]
    rest = rest.rstrip(" ")
    if ": " in rest or rest[-1] == ":" or "\t" in rest or rest[0] in "&*!%@`#,]}":
        raise Unsure
    if rest[0] in "-?" and (len(rest) == 1 or rest[1] == " "):
        raise Unsure
    value = resolve(rest)
    if type(value) is float and not math.isfinite(value):
        raise Unsure
    return value


class _Remembered(dict[str, Any]):
    """What a function gave for texts: Kubernetes objects repeat their keys and short values."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> Any:
        value = self._function(text)
        if len(text) <= _SHORT:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[text] = value
        return value


_KEYS = _Remembered(_key)
_PLAINS = _Remembered(_plain)


def _flow(rest: str) -> list[Any] | dict[str, Any]:
    """A flow collection on one line: of plain scalars only, or a list that is JSON."""
    if match := _PLAIN_FLOW.fullmatch(rest):
        items = [item.strip(" ") for item in match[1].split(",")] if match[1].strip(" ") else []
        closed = rest[match.end(1)]
        if rest[0] == "{" and closed == "}":
            return _flow_mapping(items)
        if rest[0] == "[" and closed == "]" and all(items) and ":" not in match[1]:
            return [_PLAINS[item] for item in items]
        raise Unsure
    if rest[0] == "{" or _NOT_LIKE_JSON.search(rest):
        raise Unsure
    try:
        return msgspec.json.decode(rest, type=list[Any])
    except (msgspec.DecodeError, RecursionError):
        raise Unsure from None


def _flow_mapping(items: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for item in items:
        key, colon, value = item.partition(": ")
        value = value.strip(" ")
        if not colon or not value or ":" in value or not _FLOW_KEY.fullmatch(key) or key in result:
            raise Unsure
        result[_KEYS[key]] = _PLAINS[value]
    if len(result) != len(items):
        raise Unsure
    return result


def _quotes(line: str, quote: str) -> int:
    """How many quotes a line has, without escaped ones; the end of a line may be escaped too."""
    if quote == '"' and "\\" in line:
        line = _ESCAPED.sub("", line)
    return line.count(quote)


def _nodes(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_nodes, value.values()))
    return 1 + sum(map(_nodes, value)) if isinstance(value, list) else 1


def _indent(lines: list[str]) -> int:
    """The indentation of a block scalar: that of its first line that is not blank."""
    for line in lines:
        content = line.lstrip(" ")
        if content:
            return len(line) - len(content)
    raise Unsure


def _content(lines: list[str], indent: int) -> tuple[list[str], int]:
    """The lines without their indentation and without blank ones at the end, and the number of these."""
    first = True
    margin = " " * indent
    for line in lines:
        if not line.startswith(margin):
            if line.strip(" "):
                raise Unsure
        elif first and len(line) > indent:
            first = False
            if line[indent] == "\t" or not line.strip(" "):
                raise Unsure
    content = [line[indent:] for line in lines]
    kept = len(content)
    while kept and not content[kept - 1]:
        kept -= 1
    if not kept:
        raise Unsure
    return content[:kept], len(content) - kept


def _fold_lines(lines: list[str]) -> str:
    """The lines of a folded block: a break between two is a space, unless one of them starts with a blank."""
    pieces: list[str] = []
    blank = 0
    before_is_indented = True
    for line in lines:
        if not line:
            blank += 1
            continue
        indented = line[0] in " \t"
        if pieces and (indented or before_is_indented):
            pieces.append("\n")
        elif pieces and not blank:
            pieces.append(" ")
        pieces += ("\n" * blank, line)
        blank = 0
        before_is_indented = indented
    return "".join(pieces)


def _folded(match: re.Match[str]) -> str:
    return "\n" * (match[0].count("\n") - 1) or " "


def _folded_or_unescaped(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] != "\\":
        return _folded(match)
    kind = found[1]
    if kind == "\n":
        return "\n" * (found.count("\n") - 1)
    if kind in "xuU" and len(found) > 2:
        digits = found[2:]
        code = int(digits, 16)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            raise Unsure
        return chr(code)
    if kind not in _ESCAPES:
        raise Unsure
    return _ESCAPES[kind]
