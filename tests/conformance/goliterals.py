"""Reads composite literals out of Go source, as far as test tables use them.

Upstream keeps its test cases as Go values. This reads such a value into plain Python: strings, numbers,
`Composite` for `T{...}` and `Call` for `f(...)`. Anything else (function literals, operators) raises, and
the caller decides what to do with that table.
"""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r"|(?P<raw>`[^`]*`)"
    r'|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<number>-?\d[\d_.eE+]*)"
    r"|(?P<name>[A-Za-z_][\w.]*)"
    r"|(?P<mark>[\[\]{}(),:&*=+.])",
    re.DOTALL,
)


class UnreadableError(ValueError):
    """The source uses Go beyond literals here."""


@dataclass(frozen=True)
class Composite:
    """`T{...}`: named fields (or map keys) and bare items."""

    type: str
    fields: dict[Any, Any] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """`f(...)`."""

    name: str
    args: list[Any]


@dataclass(frozen=True)
class Name:
    """An identifier that is neither called nor a constant."""

    text: str


def module_directory(module: str, go_mod_directory: Path) -> Path:
    """Where the Go module cache holds a module that a go.mod names."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    done = subprocess.run(command, cwd=go_mod_directory, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def read_value(source: str, start: int) -> Any:
    """The value of the expression that starts at an offset of the source."""
    return _Reader(source, start).expression()


def variable(source: str, name: str) -> Any:
    """The value of a package-level `var name = ...`."""
    found = re.search(rf"^var {name} = ", source, re.MULTILINE)
    if found is None:
        raise UnreadableError(f"no variable {name}")
    return read_value(source, found.end())


class _Reader:
    def __init__(self, source: str, at: int) -> None:
        self.source = source
        self.at = at
        self.kind = ""
        self.text = ""
        self.advance()

    def advance(self) -> None:
        while True:
            found = _TOKEN.match(self.source, self.at)
            if found is None:
                raise UnreadableError(self.source[self.at : self.at + 40])
            self.at = found.end()
            if found.lastgroup:
                self.kind, self.text = found.lastgroup, found[0]
                return

    def take(self, mark: str) -> None:
        if self.text != mark or self.kind != "mark":
            raise UnreadableError(f"wanted {mark} but found {self.text}")
        self.advance()

    def expression(self) -> Any:
        value = self.operand()
        while self.kind == "mark" and self.text == "+":
            self.advance()
            right = self.operand()
            if not isinstance(value, str) or not isinstance(right, str):
                raise UnreadableError("a sum of other things than strings")
            value += right
        return value

    def operand(self) -> Any:
        kind, text = self.kind, self.text
        if kind == "raw":
            self.advance()
            return text[1:-1]
        if kind in ("string", "number"):
            self.advance()
            return ast.literal_eval(text)
        if kind == "mark" and text == "{":
            return self.composite("")
        if kind == "mark" and text in "&*":
            self.advance()
            return self.operand()
        return self.named()

    def named(self) -> Any:
        name = self.type_name()
        if name == "func":
            raise UnreadableError("a function literal")
        if name in ("true", "false", "nil"):
            return {"true": True, "false": False, "nil": None}[name]
        if self.kind == "mark" and self.text == "{":
            return self.composite(name)
        if self.kind == "mark" and self.text == "(":
            self.advance()
            args = []
            while self.text != ")" or self.kind != "mark":
                args.append(self.expression())
                if self.text == "," and self.kind == "mark":
                    self.advance()
            self.advance()
            if name in ("[]byte", "string", "typed.YAMLObject", "float64", "int64"):
                return args[0]
            return Call(name, args)
        return Name(name)

    def type_name(self) -> str:
        """A type or a dotted name: `[]T`, `map[K]V`, `*pkg.T`."""
        if self.kind == "name":
            name = self.text
            self.advance()
            if name != "map" or self.text != "[":
                return name
            self.advance()
            key = self.type_name()
            self.take("]")
            return f"map[{key}]{self.type_name()}"
        if self.kind == "mark" and self.text in "[*":
            prefix = self.text
            self.advance()
            if prefix == "[":
                self.take("]")
                prefix = "[]"
            return prefix + self.type_name()
        raise UnreadableError(f"no expression: {self.text}")

    def composite(self, type_name: str) -> Composite:
        self.take("{")
        made = Composite(type_name)
        while self.text != "}" or self.kind != "mark":
            value = self.expression()
            if self.kind == "mark" and self.text == ":":
                self.advance()
                key = value.text if isinstance(value, Name) else value
                made.fields[key] = self.expression()
            else:
                made.items.append(value)
            if self.kind == "mark" and self.text == ",":
                self.advance()
        self.at_end_of_composite()
        return made

    def at_end_of_composite(self) -> None:
        """Step over the closing brace, which may be the last thing that this reader understands."""
        try:
            self.advance()
        except UnreadableError:
            self.kind, self.text = "end", ""
