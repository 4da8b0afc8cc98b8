"""Values as YAML with the bytes of sigs.k8s.io/yaml: block style, natural key order, folds at column 80.

The original writes JSON, reads that as YAML and emits the result, character by character. Here each text is
classified as a whole by one regular expression and folded by searching for the next space past the margin;
short texts and the key order of maps of one shape are remembered, because Kubernetes objects repeat them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from podium.text import gojson
from podium.text.yaml.errors import MAX_DEPTH, YAMLError
from podium.text.yaml.natural import natural_order
from podium.text.yaml.scalars import general, reads_as_text

_MARGIN = 80
_SHORT = 60  # longer texts seldom repeat
_SIMPLE_KEY = 128  # bytes; a longer key needs the explicit `? ` form

# Printable characters without the space, the colon and the line separators: their neighbours matter.
_INK = r"!-9;-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd"
_PLAIN = re.compile(
    r"(?!---|\.\.\.|[#,\[\]{}&*!|>'\"%@`]|[?:-](?: |\Z))"
    rf"(?:[{_INK}]++|:(?! |\Z))(?:[{_INK}]++|:(?! |\Z)|\ ++(?!\#|\Z))*+"
)
_ONE_LINE = re.compile(rf"[ :{_INK}]*+")
_PRINTABLE = re.compile(rf"[ :\n\u2028\u2029{_INK}]*+")
_SPACE_AT_BREAK = re.compile(r" (?:[\n\u2028\u2029]|\Z)")
_BREAK_AND_SPACE = re.compile(r" [\u2028\u2029]|[\u2028\u2029] ")
_LINE_START = re.compile(r"(?<=[\n\u2028\u2029])(?=[^\n\u2028\u2029])")
_KEY_BREAK = re.compile(r"[\r\n\x85\u2028\u2029]")
_BREAKS = ("\n", "\u2028", "\u2029")
_ESCAPED = re.compile(r"[^ !#-9:;-\[\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_SURROGATE = re.compile("[\ud800-\udfff]")  # in place of bytes that were no UTF-8
_ESCAPES = {
    "\0": r"\0", "\a": r"\a", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\v": r"\v", "\f": r"\f", "\r": r"\r",
    "\x1b": r"\e", '"': r"\"", "\\": r"\\", "\x85": r"\N", "\xa0": r"\_", "\u2028": r"\L", "\u2029": r"\P",
}  # fmt: skip

_Append = Callable[[str], None]


def dump(value: Any) -> str:
    """A value as sigs.k8s.io/yaml marshals it; tuples and other mappings count as lists and maps."""
    try:
        return _document(value)
    except TypeError:
        return _document(_builtin(value))


def _document(value: Any) -> str:
    parts: list[str] = []
    if type(value) is dict and value:
        _mapping(parts.append, value, "", "")
    elif type(value) is list and value:
        _sequence(parts.append, value, "", "")
    else:
        parts.append(_leaf(value, "  ", 0))
    return "".join(parts)


def dump_all(values: Iterable[Any]) -> str:
    """Values as a stream of documents, each after a `---` line."""
    return "".join([f"---\n{dump(value)}" for value in values])


def _mapping(append: _Append, mapping: Mapping[str, Any], pad: str, lead: str) -> None:
    """Each key at `pad`, the first after `lead`; every line is ended."""
    if len(pad) > 2 * MAX_DEPTH:
        raise YAMLError(f"yaml: exceeded max depth of {MAX_DEPTH}")
    inner = pad + "  "
    for key, label in _plan(mapping):
        value = mapping[key]
        kind = type(value)
        if label is None:
            _entry_with_long_key(append, key, value, pad, lead)
        elif kind is str:
            if (
                len(value) <= _SHORT
                and (text := _short(value))
                and len(pad) + len(label) + len(text) < _MARGIN
            ):
                append(f"{lead}{label} {text}\n")
            else:
                append(f"{lead}{label} {_text(value, inner, len(pad) + len(label) + 1)}")
        elif kind is dict and value:
            append(f"{lead}{label}\n")
            _mapping(append, value, inner, inner)
        elif kind is list and value:
            append(f"{lead}{label}\n")
            _sequence(append, value, pad, pad)
        else:
            append(f"{lead}{label} {_leaf(value, inner, len(pad) + len(label) + 1)}")
        lead = pad


def _sequence(append: _Append, items: Iterable[Any], pad: str, lead: str) -> None:
    if len(pad) > 2 * MAX_DEPTH:
        raise YAMLError(f"yaml: exceeded max depth of {MAX_DEPTH}")
    inner = pad + "  "
    for item in items:
        kind = type(item)
        if kind is dict and item:
            _mapping(append, item, inner, f"{lead}- ")
        elif kind is list and item:
            _sequence(append, item, inner, f"{lead}- ")
        else:
            append(f"{lead}- {_leaf(item, inner, len(inner))}")
        lead = pad


def _entry_with_long_key(append: _Append, key: str, value: Any, pad: str, lead: str) -> None:
    inner = pad + "  "
    append(f"{lead}? {_text(key, inner, len(inner))}")
    if type(value) is dict and value:
        _mapping(append, value, inner, f"{pad}: ")
    elif type(value) is list and value:
        _sequence(append, value, inner, f"{pad}: ")
    else:
        append(f"{pad}: {_leaf(value, inner, len(inner))}")


def _leaf(value: Any, pad: str, column: int) -> str:
    """A scalar or empty collection that starts at `column`, and the end of its line."""
    if isinstance(value, str):
        return _text(value, pad, column)
    if value is None:
        return "null\n"
    if value is True:
        return "true\n"
    if value is False:
        return "false\n"
    if isinstance(value, int):
        return f"{value}\n" if -(2**63) <= value < 2**64 else _float(float(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict) and not value:
        return "{}\n"
    if isinstance(value, list | tuple) and not value:
        return "[]\n"
    raise TypeError(f"a {type(value).__name__} cannot be written as YAML")


def _builtin(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_builtin_key(key): _builtin(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_builtin(item) for item in value]
    return value


def _builtin_key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int):
        return str(key)
    raise TypeError(f"a {type(key).__name__} cannot be a key in YAML")


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise YAMLError(f"json: unsupported value: {value}")
    written = gojson.number(value)
    if "." not in written and "e" not in written and len(written) < 21:
        # The original reads its own JSON again, and takes what has no fraction for an integer.
        whole = int(written)
        if -(2**63) <= whole < 2**64:
            return f"{whole}\n"
    return f"{general(value)}\n"


def _plan(mapping: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
    if len(mapping) <= 32:
        return _remembered_plan(tuple(mapping))
    return _new_plan(tuple(mapping))


def _new_plan(keys: tuple[str, ...]) -> list[tuple[str, str | None]]:
    return [(key, _label(key)) for key in natural_order(keys)]


_remembered_plan = lru_cache(4096)(_new_plan)


def _label(key: str) -> str | None:
    """A key and its colon on one line, or None if the key needs the explicit form."""
    if len(key.encode("utf-8", "replace")) > _SIMPLE_KEY or _KEY_BREAK.search(key):
        return None
    # The original writes this one plain, and then reads its own output as a merge.
    return '"<<":' if key == "<<" else _on_one_line(key) + ":"


@lru_cache(16384)
def _short(text: str) -> str:
    """A text on one line, whatever its length; empty if it must take several."""
    return "" if any(mark in text for mark in _BREAKS) else _on_one_line(text)


def _on_one_line(text: str) -> str:
    if text and _PLAIN.fullmatch(text):
        return text if reads_as_text(text) else f'"{text}"'
    if not text or not reads_as_text(text) or not _ONE_LINE.fullmatch(text):
        clean = _SURROGATE.sub("\ufffd", text)
        return f'"{_escape(text)}"' if clean == text else _on_one_line(clean)
    return "'" + text.replace("'", "''") + "'"


def _text(text: str, pad: str, column: int) -> str:
    """A text that starts at `column`, and the end of its line; its further lines start with `pad`."""
    if "\n" in text:
        if _PRINTABLE.fullmatch(text) and not _SPACE_AT_BREAK.search(text):
            return _literal(text, pad)
        if _SURROGATE.search(text):
            return _text(_SURROGATE.sub("\ufffd", text), pad, column)
        return _fold(f'"{_escape(text)}"', pad, column, "\\") + "\n"
    if "\u2028" in text or "\u2029" in text:
        return _with_separators(text, pad, column) + "\n"
    written = _on_one_line(text)
    return _fold(written, pad, column, "\\" if written[0] == '"' else "") + "\n"


def _literal(text: str, pad: str) -> str:
    hint = "2" if text[0] in " \n\u2028\u2029" else ""
    lead = "" if text[0] in _BREAKS else pad
    if text[-1] not in _BREAKS:
        chomp, end = "-", "\n"
    else:
        chomp, end = "+" if len(text) == 1 or text[-2] in _BREAKS else "", ""
    return f"|{hint}{chomp}\n{lead}{_LINE_START.sub(pad, text)}{end}"


def _fold(written: str, pad: str, column: int, mark: str) -> str:
    """Breaks a line at each space past the margin; not within several spaces, unless a mark can tell them."""
    if column + len(written) <= _MARGIN:
        return written
    quoted = written[0] in "'\""
    last = len(written) - 1 - quoted
    pieces: list[str] = []
    start = 0
    at = max(1 + quoted, _MARGIN + 1 - column)
    while 0 <= (space := written.find(" ", at)) < last:
        at = space + 1
        several = written[at] == " "
        if written[space - 1] == " " or (several and not mark):
            continue
        line_start = f"\n{pad}{mark}" if several else f"\n{pad}"
        pieces += (written[start:space], line_start)
        start = at
        at = max(start, start + _MARGIN + 2 - len(line_start))
    pieces.append(written[start:])
    return "".join(pieces)


def _escape(text: str) -> str:
    if text.startswith("\ufeff"):  # a slip of the original: it takes every character for the byte order mark
        return "".join(map(_escaped, text))
    return _ESCAPED.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    if known := _ESCAPES.get(character):
        return known
    code = ord(character)
    return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _with_separators(text: str, pad: str, column: int) -> str:
    """A text with line separators (U+2028, U+2029): the original indents after them, but breaks no line."""
    text = _SURROGATE.sub("\ufffd", text)
    if _BREAK_AND_SPACE.search(text) or not _PRINTABLE.fullmatch(text):
        return _fold(f'"{_escape(text)}"', pad, column, "\\")
    written = ["'"]
    column += 1
    spaced = broken = False
    for index, character in enumerate(text):
        if character == " ":
            if column > _MARGIN and not spaced and 0 < index < len(text) - 1 and text[index + 1] != " ":
                written.append(f"\n{pad}")
                column = len(pad)
            else:
                written.append(" ")
                column += 1
            spaced = True
        elif character in _BREAKS:
            written.append(character)
            column, broken = 0, True
        else:
            piece = (pad if broken else "") + (character if character != "'" else "''")
            written.append(piece)
            column += len(piece)
            spaced = broken = False
    return "".join([*written, "'"])
