"""The restricted JSON paths of CRDs (`.spec['a.b'].c`): where they lead in a schema."""

from __future__ import annotations

import re

from podium.schema.crdschema import Structural

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class PathError(ValueError):
    """The path leads nowhere; the message says why."""


def resolve(path: str, schema: Structural, allow_brackets: bool = True) -> tuple[str, Structural]:
    """Return the path as errors show it (`.spec.c`, `.map[key]`) and the schema it leads to."""
    tokens = _TOKEN.findall(path)
    shown = ""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token not in (".", "["):
            raise PathError(f"expected [ or . but got: {token}")
        if token == "[" and not allow_brackets:
            raise PathError("array notation is not allowed")
        if place + 1 >= len(tokens):
            raise PathError("unexpected end of JSON path")
        name = tokens[place + 1]
        place += 2
        if token == "[":
            name = _unquoted(name)
            if place >= len(tokens):
                raise PathError("unexpected end of JSON path")
            if tokens[place] != "]":
                raise PathError(f"expected ] but got {tokens[place]}")
            place += 1
        step, schema = _step(schema, name)
        shown += step
    return shown, schema


def _step(schema: Structural, name: str) -> tuple[str, Structural]:
    if schema.properties:
        if name not in schema.properties:
            raise PathError("does not refer to a valid field")
        return f".{name}", schema.properties[name]
    if schema.additional is None:
        raise PathError("does not refer to a valid field")
    return f"[{name}]", schema.additional


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        raise PathError(f"expected single quoted string but got {text}")

    def escape(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise PathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", escape, text[1:-1])
