"""Strings in double quotes, escaped as Go's `%q` and `strconv.Quote` escape them."""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = {'"': '\\"', "\\": "\\\\"} | dict(
    zip("\a\b\f\n\r\t\v", (f"\\{c}" for c in "abfnrtv"), strict=True)
)


def quote(text: str) -> str:
    """Text in double quotes, escaped as Go's %q does."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def quote_all(texts: Iterable[str]) -> str:
    """A list of strings as Go's %q prints it: `["a" "b"]`."""
    return f"[{' '.join(map(quote, texts))}]"


def _escaped(character: str) -> str:
    if known := _ESCAPES.get(character):
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
