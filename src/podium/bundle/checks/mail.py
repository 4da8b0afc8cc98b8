"""Mail addresses by RFC 5322, as far as Go's standard library understands it.

`name@domain`, or a display name followed by that in angle brackets; a local part and display names may be
quoted, a domain may be an IP address in brackets, and comments may stand at the end and in display names.
"""

from __future__ import annotations

import ipaddress
import re

_ATOM = re.compile(r"(?:[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|[^\x00-\x7f])+")
_DOMAIN_LITERAL = re.compile(r"\[([^\[\]\\\x00-\x20\x7f]*)\]")
_QUOTED = re.compile(r'"((?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*)"')


class AddressError(ValueError):
    """The text is no mail address."""


def check(text: str) -> None:
    """Raises AddressError unless the text is one address."""
    reader = _Reader(text)
    reader.address(may_be_group=True)
    reader.comments()
    if reader.rest:
        raise AddressError(f"expected a single address, found more: {reader.rest[:40]!r}")


class _Reader:
    def __init__(self, text: str) -> None:
        self.rest = text

    def address(self, may_be_group: bool) -> None:
        self._spaces()
        if not self.rest:
            raise AddressError("no address")
        before = self.rest
        try:
            self._plain_address()
            return
        except AddressError:
            self.rest = before
        if not self.rest.startswith("<"):
            self._display_name()
        self._spaces()
        if may_be_group and self._take(":"):
            self._group()
            return
        if not self._take("<"):
            raise AddressError("missing '@' or an address in angle brackets")
        self._plain_address()
        if not self._take(">"):
            raise AddressError("unclosed angle bracket")

    def _group(self) -> None:
        self.address(may_be_group=False)
        self.comments()
        if not self._take(";"):
            raise AddressError("a group must hold one address and end with a semicolon")

    def _plain_address(self) -> None:
        self._spaces()
        if self.rest.startswith('"'):
            if not self._quoted():
                raise AddressError("empty quoted string")
        else:
            self._atom()
        if not self._take("@"):
            raise AddressError("missing @")
        self._spaces()
        if self.rest.startswith("["):
            self._domain_literal()
        else:
            self._atom()

    def _domain_literal(self) -> None:
        found = _DOMAIN_LITERAL.match(self.rest)
        if found is None:
            raise AddressError("unclosed or bad domain literal")
        try:
            ipaddress.ip_address(found[1])
        except ValueError:
            raise AddressError(f"{found[1]!r} is no IP address") from None
        self.rest = self.rest[found.end() :]

    def _display_name(self) -> None:
        words = 0
        while True:
            if words:
                self.comments()
            self._spaces()
            try:
                if self.rest.startswith('"'):
                    self._quoted()
                else:
                    self._atom(dots_anywhere=True)
            except AddressError:
                break
            words += 1
        if not words:
            raise AddressError("no word where a name should be")

    def _atom(self, dots_anywhere: bool = False) -> None:
        found = _ATOM.match(self.rest)
        if found is None:
            raise AddressError(f"unexpected text: {self.rest[:40]!r}")
        atom = found.group()
        if not dots_anywhere and (atom.startswith(".") or atom.endswith(".") or ".." in atom):
            raise AddressError("a dot stands at an end or twice in a row")
        self.rest = self.rest[found.end() :]

    def _quoted(self) -> str:
        found = _QUOTED.match(self.rest)
        if found is None:
            raise AddressError("unclosed quotes, or a character that may not stand in them")
        self.rest = self.rest[found.end() :]
        return found[1]

    def comments(self) -> None:
        """Passes over white space and comments."""
        self._spaces()
        while self.rest.startswith("("):
            self._comment()
            self._spaces()

    def _comment(self) -> None:
        depth, position = 0, 0
        while position < len(self.rest):
            character = self.rest[position]
            if character == "\\" and position + 1 < len(self.rest):
                position += 1
            else:
                depth += (character == "(") - (character == ")")
            position += 1
            if depth == 0:
                self.rest = self.rest[position:]
                return
        raise AddressError("unclosed comment")

    def _spaces(self) -> None:
        self.rest = self.rest.lstrip(" \t")

    def _take(self, character: str) -> bool:
        taken = self.rest.startswith(character)
        self.rest = self.rest[1:] if taken else self.rest
        return taken
