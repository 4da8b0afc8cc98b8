"""The Common Expression Language: from text to syntax tree.

A hand-written scanner and precedence climber, bounded in length and depth so that no rule can exhaust the
stack. Macros (`has`, `all`, `exists`, `map`, ...) become nodes of their own instead of the folds that other
implementations expand them to: the checker and the evaluator are simpler and faster that way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MAX_LENGTH = 100_000
MAX_DEPTH = 50


class CelSyntaxError(ValueError):
    """The text is no expression; `issues` are (offset, message) pairs."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.issues = [(offset, message)]


@dataclass(slots=True, eq=False)
class Node:
    """An expression; `at` is the offset that errors about it point to."""

    at: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    kind: str  # int, uint, double, string, bytes, bool, null_type
    value: Any


@dataclass(slots=True, eq=False)
class Ident(Node):
    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    operand: Node
    field: str
    test: bool = False  # has(operand.field)
    optional: bool = False  # operand.?field


@dataclass(slots=True, eq=False)
class Call(Node):
    function: str
    target: Node | None
    args: list[Node]


@dataclass(slots=True, eq=False)
class ListLiteral(Node):
    items: list[tuple[Node, bool]]  # expression, whether it is optional (`?x`)


@dataclass(slots=True, eq=False)
class MapLiteral(Node):
    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True, eq=False)
class Macro(Node):
    """A loop over `range` that binds one or two variables, or `optMap`, which binds at most once."""

    name: str
    range: Node
    variables: list[str]
    args: list[Node]


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<string>(?:[bB][rR]?|[rR][bB]?)?(?:\"{3}|'{3}|\"|'))
    |(?P<quoted>`[a-zA-Z0-9_.\-/ ]+`)
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<op>\[\?|\.\?|&&|\|\||<=|>=|==|!=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.ASCII,
)
RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_BINARY = {
    "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_FUNCTIONS = {op: f"_{op}_" for op in _BINARY} | {"in": "@in"}

Token = tuple[str, str, int]  # kind, text, offset


def parse(text: str) -> Node:
    """Return the syntax tree of an expression."""
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(
            0, f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_LENGTH}"
        )
    parser = _Parser(_scan(text))
    node = parser.expression()
    parser.expect_end()
    return node


def _scan(text: str) -> list[Token]:
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise CelSyntaxError(place, f"Syntax error: token recognition error at: '{text[place]}'")
        kind, start = str(found.lastgroup), place
        place = found.end()
        if kind == "string":
            place = _string_end(text, start, found[0])
            tokens.append((kind, text[start:place], start))
        elif kind != "space":
            tokens.append((kind, found[0], start))
    tokens.append(("end", "<EOF>", len(text)))
    return tokens


def _string_end(text: str, start: int, opening: str) -> int:
    quotes = opening.lstrip("bBrR")
    is_raw = "r" in opening[: -len(quotes)].lower()
    place = start + len(opening)
    while place < len(text):
        if text.startswith(quotes, place):
            return place + len(quotes)
        if text[place] == "\\" and not is_raw:
            place += 1
        elif text[place] in "\r\n" and len(quotes) == 1:
            break
        place += 1
    raise CelSyntaxError(start, f"Syntax error: token recognition error at: '{text[start:]}'")


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CelSyntaxError(self._at(), f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self._logical("||", 1)
        if self._take("?"):
            at = self.tokens[self.place - 1][2]
            yes = self._logical("||", 1)
            self._expect(":")
            node = Call(at, "_?_:_", None, [node, yes, self.expression()])
        self.depth -= 1
        return node

    def expect_end(self) -> None:
        if self.tokens[self.place][0] != "end":
            raise self._unexpected("<EOF>")

    def _logical(self, operator: str, level: int) -> Node:
        def operand() -> Node:
            return self._logical("&&", 2) if level == 1 else self._binary(3)

        terms = [operand()]
        at = self._at()
        while self._take(operator):
            terms.append(operand())
        return Call(at, f"_{operator}_", None, terms) if len(terms) > 1 else terms[0]

    def _binary(self, level: int) -> Node:
        node = self._unary()
        length = 0
        while True:
            kind, operator, at = self.tokens[self.place]
            power = _BINARY.get(operator, 0) if kind in ("op", "ident") else 0
            if power < level:
                return node
            length += 1
            if length > MAX_DEPTH * 2:
                raise CelSyntaxError(at, f"expression recursion limit exceeded: {MAX_DEPTH * 2}")
            self.place += 1
            node = Call(at, _FUNCTIONS[operator], None, [node, self._binary(power + 1)])

    def _unary(self) -> Node:
        at = self._at()
        for operator, function in (("!", "!_"), ("-", "-_")):
            count = 0
            while self._take(operator):
                count += 1
            if not count:
                continue
            if operator == "-" and self.tokens[self.place][0] in ("int", "double") and count % 2:
                return self._member(negative=True)
            node = self._member()
            return Call(at, function, None, [node]) if count % 2 else node
        return self._member()

    def _member(self, negative: bool = False) -> Node:
        node = self._primary(negative)
        steps = 0
        while True:
            steps += 1
            if steps > MAX_DEPTH * 2:
                raise CelSyntaxError(self._at(), f"expression recursion limit exceeded: {MAX_DEPTH * 2}")
            at = self._at()
            if self._take("."):
                node = self._dot(node, at)
            elif self._take(".?"):
                node = Select(at, node, self._name(), optional=True)
            elif self._take("[?"):
                node = Call(at, "_[?_]", None, [node, self.expression()])
                self._expect("]")
            elif self._take("["):
                node = Call(at, "_[_]", None, [node, self.expression()])
                self._expect("]")
            else:
                return node

    def _dot(self, node: Node, at: int) -> Node:
        name = self._name()
        open_at = self._at()
        if not self._take("("):
            return Select(at, node, name)
        args = self._arguments()
        return _expand(Call(open_at, name, node, args))

    def _primary(self, negative: bool) -> Node:
        kind, text, at = self.tokens[self.place]
        self.place += 1
        if kind in ("int", "uint", "double"):
            return _number(kind, text, at, negative)
        if kind == "string":
            return _string(text, at)
        if kind == "ident":
            return self._named(text, at)
        if text == "." and self.tokens[self.place][0] == "ident":
            self.place += 1
            return self._named(self.tokens[self.place - 1][1], at)
        if text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if text in ("[", "[?"):
            return self._list(at, text == "[?")
        if text == "{":
            return self._map(at)
        self.place -= 1
        raise self._unexpected(_OPERAND)

    def _named(self, name: str, at: int) -> Node:
        if name in ("true", "false"):
            return Literal(at, "bool", name == "true")
        if name == "null":
            return Literal(at, "null_type", None)
        if name in RESERVED or name == "in":
            raise CelSyntaxError(at, f"reserved identifier: {name}")
        open_at = self._at()
        if self._take("("):
            return _expand(Call(open_at, name, None, self._arguments()))
        return Ident(at, name)

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        while not self._take(")"):
            if args:
                self._expect(",")
            args.append(self.expression())
        return args

    def _list(self, at: int, optional: bool) -> Node:
        items: list[tuple[Node, bool]] = []
        while not self._take("]"):
            if items:
                self._expect(",")
                if self._take("]"):
                    break
                optional = self._take("?")
            items.append((self.expression(), optional))
        return ListLiteral(at, items)

    def _map(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            optional = self._take("?")
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
        return MapLiteral(at, entries)

    def _name(self) -> str:
        kind, text, _ = self.tokens[self.place]
        if kind == "quoted":
            self.place += 1
            return text[1:-1]
        if kind != "ident" or text in ("in", "true", "false", "null"):
            raise CelSyntaxError(self._at(), f"Syntax error: no viable alternative at input '.{text}'")
        self.place += 1
        return text

    def _at(self) -> int:
        return self.tokens[self.place][2]

    def _take(self, text: str) -> bool:
        kind, actual, _ = self.tokens[self.place]
        if kind == "op" and actual == text:
            self.place += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f"'{text}'")

    def _unexpected(self, expecting: str) -> CelSyntaxError:
        kind, text, at = self.tokens[self.place]
        word = "mismatched" if kind == "end" else "extraneous"
        return CelSyntaxError(at, f"Syntax error: {word} input '{text}' expecting {expecting}")


_OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}"
)


def _number(kind: str, text: str, at: int, negative: bool) -> Node:
    if kind == "double":
        return Literal(at, kind, -float(text) if negative else float(text))
    value = int(text.rstrip("uU"), 16 if text.startswith("0x") else 10)
    if kind == "uint":
        if value >= 2**64:
            raise CelSyntaxError(at, "invalid uint literal")
        return Literal(at, kind, value)
    value = -value if negative else value
    if not -(2**63) <= value < 2**63:
        raise CelSyntaxError(at, "invalid int literal")
    return Literal(at, kind, value)


_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    c: c for c in "\\'\"`?"
}
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.|$)", re.DOTALL
)


def _string(text: str, at: int) -> Node:
    quotes = next(q for q in ('"""', "'''", '"', "'") if text.endswith(q) and q in text[: len(q) + 2])
    prefix, _, rest = text.partition(quotes)
    body = rest[: -len(quotes)]
    is_bytes = "b" in prefix.lower()
    if "r" in prefix.lower():
        return Literal(at, "bytes", body.encode()) if is_bytes else Literal(at, "string", body)
    if is_bytes:
        return Literal(at, "bytes", _unescape_bytes(body, at))

    def unescape(found: re.Match[str]) -> str:
        code = found[1]
        if code[:1] in "xXuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if len(code) == 3 and code.isdigit():
            return chr(int(code, 8))
        if code not in _ESCAPES:
            raise CelSyntaxError(at, f"Syntax error: token recognition error at: '{text}'")
        return _ESCAPES[code]

    return Literal(at, "string", _ESCAPE.sub(unescape, body))


def _unescape_bytes(body: str, at: int) -> bytes:
    out, place = bytearray(), 0
    for found in _ESCAPE.finditer(body):
        out += body[place : found.start()].encode()
        place, code = found.end(), found[1]
        if code[:1] in "xX" and len(code) == 3:
            out.append(int(code[1:], 16))
        elif len(code) == 3 and code.isdigit():
            out.append(int(code, 8))
        elif code in _ESCAPES:
            out += _ESCAPES[code].encode()
        else:
            raise CelSyntaxError(at, "Syntax error: invalid escape in bytes literal")
    return bytes(out + body[place:].encode())


# Macros by name: the numbers of arguments they take, one- and two-variable forms.
_LOOPS = {
    "all": ((1, 2), (2, 3)),
    "exists": ((1, 2), (2, 3)),
    "exists_one": ((1, 2),),
    "existsOne": ((1, 2), (2, 3)),
    "filter": ((1, 2),),
    "map": ((1, 2), (1, 3)),
    "transformList": ((2, 3), (2, 4)),
    "transformMap": ((2, 3), (2, 4)),
    "transformMapEntry": ((2, 3), (2, 4)),
    "sortBy": ((1, 2),),
    "optMap": ((1, 2),),
    "optFlatMap": ((1, 2),),
}


def _expand(call: Call) -> Node:
    if call.target is None:
        if call.function == "has" and len(call.args) == 1:
            inner = call.args[0]
            if not isinstance(inner, Select) or inner.test:
                raise CelSyntaxError(inner.at, "invalid argument to has() macro")
            return Select(call.at, inner.operand, inner.field, test=True, optional=inner.optional)
        return call
    for bound, count in _LOOPS.get(call.function, ()):
        if len(call.args) == count:
            names = []
            for argument in call.args[:bound]:
                if not isinstance(argument, Ident):
                    raise CelSyntaxError(argument.at, _not_a_name(call, bound))
                names.append(argument.name)
            if len(set(names)) != len(names):
                raise CelSyntaxError(call.at, f"duplicate variable name: {names[0]}")
            return Macro(call.at, call.function, call.target, names, call.args[bound:])
    return call


def _not_a_name(call: Call, bound: int) -> str:
    if call.function in ("optMap", "optFlatMap"):
        return f"{call.function}() variable name must be a simple identifier"
    return "argument is not an identifier" if bound == 2 else "argument must be a simple name"
