"""Semantic versions, read as github.com/blang/semver reads them, which is what catalogs are judged by.

Order is precedence: build metadata does not count. Equality and hashing are exact and do count it, so that a
version can be a key; ask `compare` whether two versions rank the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

GO_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""What Go's `strings.TrimSpace` trims, which is not quite what Python's `str.strip` does."""

_LIMIT = 1 << 64  # the originals keep numbers in 64 bits and refuse longer ones
_NUMBER = r"(0|[1-9][0-9]*)"
_IDENTIFIERS = r"([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)"
_STRICT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_IDENTIFIERS})?(?:\+{_IDENTIFIERS})?")
_PLAIN = re.compile(r"[0-9A-Za-z-]*")


@dataclass(frozen=True, slots=True)
class Version:
    """One version: `prerelease` and `build` hold the identifiers between dots, `precedence` sorts."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    precedence: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "precedence", (self.major, self.minor, self.patch, _rank(self.prerelease)))

    @classmethod
    def parse(cls, text: str) -> Version:
        """The version that this text spells in full, without leading zeros or `v`; ValueError otherwise."""
        found = _STRICT.fullmatch(text)
        if found is None:
            _complain(text)
        major, minor, patch, prerelease, build = found.groups()
        return cls(
            number(major),
            number(minor),
            number(patch),
            prerelease_identifiers(prerelease) if prerelease else (),
            tuple(build.split(".")) if build else (),
        )

    @classmethod
    def parse_tolerant(cls, text: str) -> Version:
        """As `parse`, but forgives spaces around, a leading `v`, leading zeros and missing minor or patch."""
        parts = text.strip(GO_SPACE).removeprefix("v").split(".", 2)
        parts = [_without_leading_zeros(part) for part in parts]
        if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
            raise ValueError("Short version cannot contain PreRelease/Build meta data")
        return cls.parse(".".join(parts + ["0"] * (3 - len(parts))))

    def __str__(self) -> str:
        prerelease = "-" + ".".join(self.prerelease) if self.prerelease else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    def __lt__(self, other: Version) -> bool:
        return self.precedence < other.precedence

    def __le__(self, other: Version) -> bool:
        return self.precedence <= other.precedence

    def __gt__(self, other: Version) -> bool:
        return self.precedence > other.precedence

    def __ge__(self, other: Version) -> bool:
        return self.precedence >= other.precedence


def compare(left: Version, right: Version) -> int:
    """-1, 0 or 1 by precedence."""
    return (left.precedence > right.precedence) - (left.precedence < right.precedence)


def number(text: str) -> int:
    """A decimal number of at most 64 bits; ValueError otherwise."""
    if len(text.lstrip("0")) <= 20 and (value := int(text)) < _LIMIT:
        return value
    raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')


def _rank(prerelease: tuple[str, ...]) -> tuple[Any, ...]:
    """A key that sorts as the specification says: none last, numbers before words, shorter before longer."""
    if not prerelease:
        return (1,)
    return (0, tuple((0, int(part), "") if _is_small_number(part) else (1, 0, part) for part in prerelease))


def _is_small_number(part: str) -> bool:
    # A number of more than 64 bits only comes from the Masterminds grammar, which then compares it as a word.
    return part.isdecimal() and (len(part) < 20 or (len(part) == 20 and int(part) < _LIMIT))


def prerelease_identifiers(text: str) -> tuple[str, ...]:
    """The identifiers of a pre-release (or of a bundle's release); ValueError if one is not allowed."""
    parts = tuple(text.split("."))
    for part in parts:
        if not part:
            raise ValueError("Prerelease is empty")
        if part.isascii() and part.isdecimal():
            if len(part) > 1 and part[0] == "0":
                raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
            number(part)
        elif not _PLAIN.fullmatch(part):
            raise ValueError(f'Invalid character(s) found in prerelease "{part}"')
    return parts


def _without_leading_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest and rest[0] in "0123456789" else "0" + rest


def _complain(text: str) -> NoReturn:
    """Says what is wrong with a text that is no version, in the words that users of opm know."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, hyphen, prerelease = rest.partition("-")
    for name, part in (("Major", parts[0]), ("Minor", parts[1]), ("Patch", patch)):
        if not re.fullmatch("[0-9]*", part):
            raise ValueError(f'Invalid character(s) found in {name.lower()} number "{part}"')
        if len(part) > 1 and part[0] == "0":
            raise ValueError(f'{name} number must not contain leading zeroes "{part}"')
        if not part:
            raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
        number(part)
    if hyphen:
        prerelease_identifiers(prerelease)
    for part in build.split(".") if plus else ():
        if not part:
            raise ValueError("Build meta data is empty")
        if not _PLAIN.fullmatch(part):
            raise ValueError(f'Invalid character(s) found in build meta data "{part}"')
    raise ValueError(f'"{text}" is not a version')
