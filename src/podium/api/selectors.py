"""Label and field selectors: parsed from the query syntax or from a LabelSelector object, then matched.

A parsed selector is a tuple of requirements that must all hold; the empty tuple matches everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from podium.api import names


class SelectorError(ValueError):
    """The selector cannot be parsed; the message says where it went wrong."""


class Operator(Enum):
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    NOT_EXISTS = "!"
    GREATER = "gt"
    LESS = "lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.NOT_EXISTS:
                return self.key not in labels
            case Operator.GREATER | Operator.LESS:
                return self._compares(labels)

    def _compares(self, labels: Mapping[str, str]) -> bool:
        try:
            have, limit = int(labels[self.key]), int(next(iter(self.values)))
        except (KeyError, ValueError):
            return False
        return have > limit if self.operator is Operator.GREATER else have < limit

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.NOT_EXISTS:
                return f"!{self.key}"
            case Operator.GREATER:
                return f"{self.key}>{values}"
            case Operator.LESS:
                return f"{self.key}<{values}"
            case Operator.IN if len(self.values) == 1:
                return f"{self.key}={values}"
            case Operator.NOT_IN if len(self.values) == 1:
                return f"{self.key}!={values}"
            case _:
                return f"{self.key} {self.operator.value} ({values})"


LabelSelector = tuple[Requirement, ...]
# No label can have this key, so nothing matches.
NOTHING: LabelSelector = (Requirement("\0", Operator.EXISTS),)


def matches(selector: LabelSelector, labels: Mapping[str, str] | None) -> bool:
    """Whether labels satisfy every requirement."""
    labels = labels or {}
    return all(requirement.matches(labels) for requirement in selector)


def format_selector(selector: LabelSelector) -> str:
    """The query-string form, with requirements in key order."""
    return ",".join(str(r) for r in sorted(selector, key=lambda r: r.key))


def from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """A selector for objects that carry all these labels."""
    return tuple(Requirement(key, Operator.IN, frozenset({value})) for key, value in labels.items())


_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.NOT_EXISTS,
}


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The selector a LabelSelector object describes: null selects nothing, empty selects everything."""
    if selector is None:
        return NOTHING
    requirements = list(from_labels(selector.get("matchLabels") or {}))
    for expression in selector.get("matchExpressions") or ():
        operator = _OBJECT_OPERATORS.get(expression["operator"])
        if operator is None:
            raise SelectorError(f"{expression['operator']!r} is not a valid label selector operator")
        requirements.append(
            Requirement(expression["key"], operator, frozenset(expression.get("values") or ()))
        )
    return tuple(requirements)


_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_SYMBOLS = frozenset(("==", "!=", "=", "!", ",", "(", ")", "<", ">"))
_END = ""  # the token after the last one


def parse(text: str) -> LabelSelector:
    """Parse the `labelSelector` query syntax: `a=b,c!=d,e in (f,g),!h,i,j>3`; errors read as Kubernetes'."""
    tokens = [*reversed(_TOKEN.findall(text))]
    requirements: list[Requirement] = []
    if tokens and tokens[-1] in _SYMBOLS - {"!"}:
        raise SelectorError(f"found '{tokens[-1]}', expected: !, identifier, or 'end of string'")
    while tokens:
        try:
            requirements.append(_requirement(tokens))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        if not tokens:
            break
        if (token := tokens.pop()) != ",":
            raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
        if not _is_word(tokens) and _next(tokens) != "!":
            raise SelectorError(f"found '{_next(tokens)}', expected: identifier after ','")
    return tuple(requirements)


# The tokens that are left stand in reverse, so that the next one is at the end of the list.


def _next(tokens: list[str]) -> str:
    return tokens[-1] if tokens else _END


def _take(tokens: list[str]) -> str:
    return tokens.pop() if tokens else _END


def _is_word(tokens: list[str]) -> bool:
    return bool(tokens) and tokens[-1] not in _SYMBOLS


def _take_word(tokens: list[str]) -> str:
    if not _is_word(tokens):
        raise SelectorError(f"found '{_next(tokens)}', expected: identifier")
    return tokens.pop()


def _requirement(tokens: list[str]) -> Requirement:
    negated = _next(tokens) == "!"
    if negated:
        tokens.pop()
    key = _key(_take_word(tokens))
    if _next(tokens) in (_END, ","):
        return Requirement(key, Operator.NOT_EXISTS if negated else Operator.EXISTS)
    if negated:
        return Requirement(key, Operator.NOT_EXISTS)
    operator = _take(tokens)
    match operator:
        case "=" | "==" | "!=":
            kind = Operator.NOT_IN if operator == "!=" else Operator.IN
            return Requirement(key, kind, frozenset({_value(key, 0, _exact_value(tokens))}))
        case "in" | "notin":
            values = sorted(_value_set(tokens))
            checked = frozenset(_value(key, position, value) for position, value in enumerate(values))
            return Requirement(key, Operator(operator), checked)
        case "<" | ">":
            return Requirement(
                key, Operator.GREATER if operator == ">" else Operator.LESS, frozenset({_limit(tokens)})
            )
        case _:
            raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _exact_value(tokens: list[str]) -> str:
    return "" if _next(tokens) in (_END, ",") else _take_word(tokens)


def _limit(tokens: list[str]) -> str:
    value = _exact_value(tokens)
    if not re.fullmatch(r"[+-]?[0-9]+", value):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise SelectorError(f'values[0]: Invalid value: "{value}": {why}')
    return value


def _value_set(tokens: list[str]) -> set[str]:
    if (token := _take(tokens)) != "(":
        raise SelectorError(f"found '{token}' expected: '('")
    if not _is_word(tokens) and _next(tokens) not in (",", ")"):
        raise SelectorError(f"found '{_next(tokens)}', expected: ',', ')' or identifier")
    values = {""} if _next(tokens) in (",", ")") else set()
    while (token := _take(tokens)) != ")":
        if token == ",":
            if _next(tokens) in (",", ")"):
                values.add("")
        elif token == _END or token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: ',', or identifier")
        else:
            values.add(token)
            if _next(tokens) not in (",", ")"):
                raise SelectorError(f"found '{_next(tokens)}', expected: ',' or ')'")
    return values


def _key(text: str) -> str:
    if faults := names.qualified_name(text):
        raise SelectorError(f'<nil>: Invalid value: "{text}": {"; ".join(faults)}')
    return text


def _value(key: str, position: int, text: str) -> str:
    if faults := names.label_value(text):
        raise SelectorError(f'values[{position}][{key}]: Invalid value: "{text}": {"; ".join(faults)}')
    return text


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One `path=value` or `path!=value` condition of a field selector."""

    path: str
    value: str
    equal: bool = True


FieldSelector = tuple[FieldRequirement, ...]


def parse_fields(text: str) -> FieldSelector:
    """Parse the `fieldSelector` query syntax: `metadata.name=a,status.phase!=Running`."""
    requirements = []
    for term in re.split(r"(?<!\\),", text) if text else ():
        if not term:
            continue
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        value = re.sub(r"\\([\\,=])", r"\1", match.group(3))
        requirements.append(FieldRequirement(match.group(1), value, match.group(2) != "!="))
    return tuple(requirements)


def matches_fields(selector: FieldSelector, read: Callable[[str], str]) -> bool:
    """Whether an object matches; `read` answers the text of a field, empty where it is absent."""
    return all((read(term.path) == term.value) is term.equal for term in selector)
