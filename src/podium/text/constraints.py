"""Version constraints as github.com/Masterminds/semver/v3 reads them: OLM v1's version fields and Helm's.

A constraint is a list of terms joined by commas or spaces, `||` between alternatives, with `~`, `^`,
wildcards and hyphen ranges. Pre-releases match only where the alternative itself names one. A term with a
number missing or wild is `loose`, and each operator has its own idea of what that means; the rules below are
the original's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from podium.text.semver import Version, compare, number

# The original's limits since v3.5, in bytes.
_LONGEST_VERSION = 256
_LONGEST_CONSTRAINT = 512
_MOST_ALTERNATIVES = 32

_PRERELEASE = r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*+))?+"
_BUILD = r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*+))?+"
_VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_PRERELEASE}{_BUILD}")

# Repetition is possessive: the grammar never needs to step back, so hostile text costs linear time.
_SPACE = r"[\t\n\f\r ]"
_PART = r"[0-9|xX*]++"
_LOOSE = rf"v?({_PART})(?:\.({_PART}))?+(?:\.({_PART}))?+{_PRERELEASE}{_BUILD}"
_SIGN = r"(!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)"
_TERM = re.compile(rf"{_SIGN}{_SPACE}*+({_LOOSE})")
_SEPARATOR = re.compile(rf"{_SPACE}*+,{_SPACE}*+|{_SPACE}++")
_BLANK = re.compile(rf"{_SPACE}*+")
_HYPHEN_RANGE = re.compile(rf"{_SPACE}*+({_LOOSE}){_SPACE}++-{_SPACE}++({_LOOSE}){_SPACE}*+")
_WILD = ("x", "X", "*")


class Precision(IntEnum):
    """How much of a term's version was given; what follows is wild."""

    NONE = 0
    MAJOR = 1
    MINOR = 2
    PATCH = 3


@dataclass(frozen=True, slots=True)
class Term:
    """One condition, such as `~1.2`; what was not given of the version is zero."""

    operator: str
    version: Version
    precision: Precision

    @property
    def loose(self) -> bool:
        """Whether a number is missing or wild."""
        return self.precision is not Precision.PATCH


@dataclass(frozen=True, slots=True)
class Constraint:
    """A set of versions: one alternative must hold, and of that one every term."""

    text: str
    alternatives: tuple[tuple[Term, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """The constraint that this text describes; ValueError if the original would refuse it."""
        if len(text.encode("utf-8", "surrogatepass")) > _LONGEST_CONSTRAINT:
            raise ValueError(f"constraint string is too long (max {_LONGEST_CONSTRAINT} bytes)")
        alternatives = _hyphens_rewritten(text).split("||")
        if len(alternatives) > _MOST_ALTERNATIVES:
            raise ValueError(f"constraint has too many OR groups (max {_MOST_ALTERNATIVES})")
        return cls(text, tuple(_terms(alternative) for alternative in alternatives))

    def matches(self, version: Version) -> bool:
        """Whether the version satisfies the constraint."""
        return any(_all_hold(terms, version) for terms in self.alternatives)

    def __str__(self) -> str:
        return self.text


def parse_version(text: str) -> Version:
    """A version read leniently: leading `v` or zeros and missing numbers are fine; ValueError otherwise."""
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST_VERSION:
        raise ValueError(f"version string is too long (max {_LONGEST_VERSION} bytes)")
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError("invalid semantic version")
    major, minor, patch, prerelease, build = found.groups()
    return Version(
        number(major),
        number(minor or "0"),
        number(patch or "0"),
        _prerelease(prerelease) if prerelease else (),
        tuple(build.split(".")) if build else (),
    )


def _prerelease(text: str) -> tuple[str, ...]:
    """Identifiers of which the numeric ones, of any length, have no leading zero."""
    parts = tuple(text.split("."))
    if any(len(part) > 1 and part[0] == "0" and part.isdecimal() for part in parts):
        raise ValueError("version segment starts with 0")
    return parts


def _hyphens_rewritten(text: str) -> str:
    """`1.2 - 2.3` as the two comparisons that it stands for."""
    rewritten = text
    for found in _HYPHEN_RANGE.finditer(text):
        low, high = found[1], found[7]
        rewritten = rewritten.replace(found[0], f">= {low}, <= {high} ", 1)
    return rewritten


def _terms(alternative: str) -> tuple[Term, ...]:
    terms = []
    blank = _BLANK.match(alternative)
    position = blank.end() if blank else 0
    while found := _TERM.match(alternative, position):
        terms.append(_term(found))
        position = found.end()
        separator = _SEPARATOR.match(alternative, position)
        if position == len(alternative) or (separator and separator.end() == len(alternative)):
            break
        if separator is None:
            raise ValueError(f"improper constraint: {alternative}")
        position = separator.end()
    if found is None or alternative[found.end() :].strip("\t\n\f\r "):
        raise ValueError(f"improper constraint: {alternative}")
    return tuple(terms)


def _term(found: re.Match[str]) -> Term:
    sign, whole, major, minor, patch, prerelease, _ = found.groups()
    suffix = f"-{prerelease}" if prerelease else ""
    if major in _WILD:
        version, precision = f"0.0.0{suffix}", Precision.NONE
    elif minor is None or minor in _WILD:
        version, precision = f"{major}.0.0{suffix}", Precision.MAJOR
    elif patch is None or patch in _WILD:
        version, precision = f"{major}.{minor}.0{suffix}", Precision.MINOR
    else:
        version, precision = whole, Precision.PATCH
    try:
        return Term(sign, parse_version(version), precision)
    except ValueError:
        raise ValueError("constraint parser error") from None


def _all_hold(terms: tuple[Term, ...], version: Version) -> bool:
    if version.prerelease and not any(term.version.prerelease for term in terms):
        return False
    return all(_OPERATORS[term.operator](version, term) for term in terms)


def _equal(version: Version, term: Term) -> bool:
    return _tilde(version, term) if term.loose else compare(version, term.version) == 0


def _not_equal(version: Version, term: Term) -> bool:
    wanted = term.version
    match term.precision:
        case Precision.MAJOR:
            return version.major != wanted.major
        case Precision.MINOR if (version.major, version.minor) == (wanted.major, wanted.minor):
            return version.prerelease != wanted.prerelease
        case _:
            return compare(version, wanted) != 0


def _greater(version: Version, term: Term) -> bool:
    if term.loose and version.major != term.version.major:
        return version.major > term.version.major
    match term.precision:
        case Precision.MAJOR:
            return False
        case Precision.MINOR:
            return version.minor > term.version.minor
        case _:
            return compare(version, term.version) > 0


def _at_most(version: Version, term: Term) -> bool:
    wanted = term.version
    if not term.loose:
        return compare(version, wanted) <= 0
    if version.major != wanted.major:
        return version.major < wanted.major
    return term.precision is Precision.MAJOR or version.minor <= wanted.minor


def _tilde(version: Version, term: Term) -> bool:
    wanted = term.version
    if compare(version, wanted) < 0:
        return False
    if (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0) and _no_number_or_all(term):
        return True
    if version.major != wanted.major:
        return False
    return term.precision is Precision.MAJOR or version.minor == wanted.minor


def _no_number_or_all(term: Term) -> bool:
    return term.precision in (Precision.NONE, Precision.PATCH)


def _caret(version: Version, term: Term) -> bool:
    wanted = term.version
    if compare(version, wanted) < 0:
        return False
    if version.major != wanted.major or wanted.major > 0 or term.precision is Precision.MAJOR:
        return version.major == wanted.major
    if version.minor != wanted.minor or wanted.minor > 0 or term.precision is Precision.MINOR:
        return version.minor == wanted.minor
    return version.patch == wanted.patch


_OPERATORS: dict[str, Callable[[Version, Term], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda version, term: compare(version, term.version) < 0,
    ">=": lambda version, term: compare(version, term.version) >= 0,
    "=>": lambda version, term: compare(version, term.version) >= 0,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}
