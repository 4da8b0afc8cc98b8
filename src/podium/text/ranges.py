"""Version ranges as github.com/blang/semver reads them: `skipRange`, `versionRange` and dependencies.

Comparisons joined by spaces must all hold; `||` separates alternatives; `x` may stand for the last number.
The grammar is whatever the original accepts, oddities included, because catalogs in the field rely on its
verdict: a lone character between spaces is dropped, an unknown operator before a wildcard means equality,
and `1.x.x` spans one minor version.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from podium.text.semver import GO_SPACE, Version, compare

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "==": operator.eq,
    "!": operator.ne,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_MAX_INT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """One bound, such as `>= 1.2.0`."""

    operator: str
    version: Version

    def matches(self, version: Version) -> bool:
        """Whether this version lies on the right side of the bound."""
        return _OPERATORS[self.operator](compare(version, self.version), 0)


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions: one alternative must hold, and of that one every comparison."""

    text: str
    alternatives: tuple[tuple[Comparison, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        """The range that this text describes; ValueError if the original would refuse it."""
        alternatives = [
            tuple(comparison for part in parts for comparison in _comparisons(part))
            for parts in _alternatives(_words(text))
        ]
        return cls(text, tuple(alternatives))

    def matches(self, version: Version) -> bool:
        """Whether the version lies in the range."""
        return any(
            all(comparison.matches(version) for comparison in comparisons)
            for comparisons in self.alternatives
            if comparisons
        )

    def __str__(self) -> str:
        return self.text


def _words(text: str) -> list[str]:
    """The words between spaces; a space after a comparison sign does not end a word."""
    words, start, last = [], 0, ""
    for index, character in enumerate(text):
        if character != " ":
            last = character
        elif last not in (">", "<", "="):
            words.append(text[start:index])
            start = index + 1
    words.append(text[start:])
    return [word.replace(" ", "") for word in words if len(word) > 1 or not word.isascii()]


def _alternatives(words: list[str]) -> list[list[str]]:
    if words and words[0] == "||":
        raise ValueError("First element in range is '||'")
    if not words or words[-1] == "||":
        raise ValueError("Last element in range is '||'")
    groups: list[list[str]] = [[]]
    for word in words:
        if word == "||":
            groups.append([])
        else:
            groups[-1].append(word)
    return groups


def _comparisons(word: str) -> Iterator[Comparison]:
    for part in _expanded(word) if "x" in word else (word,):
        sign, version = _split(part)
        if sign not in _OPERATORS:
            raise ValueError(
                f'Could not parse Range "{part}": Could not parse comparator "{sign}" in "{part}"'
            )
        try:
            yield Comparison(sign, Version.parse(version))
        except ValueError as error:
            raise ValueError(
                f'Could not parse Range "{part}": Could not parse version "{version}" in "{part}": {error}'
            ) from None


def _split(word: str) -> tuple[str, str]:
    digit = re.search(r"\d", word)  # of any script, as in the original
    if digit is None:
        raise ValueError(f'Could not get version from string: "{word}"')
    return word[: digit.start()].strip(GO_SPACE), word[digit.start() :]


def _expanded(word: str) -> list[str]:
    """The comparisons that a word with an `x` stands for."""
    sign, version = _split(word)
    low, high = _floor(version), _ceiling(version)
    match sign:
        case "" | "=" | "==":
            return [f">={low}", f"<{high}"]
        case "!" | "!=":
            return [f"<{low}", f">={high}"]
        case ">":
            return [f">={high}"]
        case "<=":
            return [f"<{high}"]
        case ">=" | "<":
            return [sign + low]
        case _:
            return [low]


def _floor(version: str) -> str:
    """The lowest version that a wildcard covers."""
    flat = version.replace(".x.x", ".x", 1).replace(".x", ".0", 1)
    return flat + ".0" if flat.count(".") == 1 else flat


def _ceiling(version: str) -> str:
    """The lowest version beyond those that a wildcard covers; empty if there is none."""
    parts = version.split(".")
    if parts[-1] != "x" or len(parts) not in (2, 3):
        return ""
    numbers = _floor(version).split(".")
    raised = len(parts) - 2
    if not re.fullmatch("[0-9]+", numbers[raised]) or int(numbers[raised]) >= _MAX_INT:
        return ""
    numbers[raised] = str(int(numbers[raised]) + 1)
    return ".".join(numbers)
