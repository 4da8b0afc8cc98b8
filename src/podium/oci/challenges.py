"""What a WWW-Authenticate header asks for (RFC 9110): schemes with their parameters.

A header may hold several challenges, separated by the same commas as their parameters, and may be hostile:
it is read with a limit, and what cannot be read is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

_MAX_HEADER = 16 << 10
_MAX_CHALLENGES = 16
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_SCHEME = re.compile(rf"({_TOKEN})(?=\s|,|$)\s*")
_PARAMETER = re.compile(rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """One scheme, in lower case, and its parameters."""

    scheme: str
    parameters: Mapping[str, str]


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """Every challenge in these header values, in order."""
    text = ", ".join(islice(headers, _MAX_CHALLENGES))
    return _read(text[:_MAX_HEADER])[:_MAX_CHALLENGES]


def _read(header: str) -> list[Challenge]:
    found: list[Challenge] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(header):
        if header[position] in ", \t":
            position += 1
        elif found and (match := _PARAMETER.match(header, position)):
            quoted = match[2]
            parameters[match[1].lower()] = match[3] if quoted is None else _ESCAPED.sub(r"\1", quoted)
            position = match.end()
        elif match := _SCHEME.match(header, position):
            parameters = {}
            found.append(Challenge(match[1].lower(), parameters))
            position = match.end()
        else:
            # Something like a token68 of another scheme: on to the next comma.
            comma = header.find(",", position)
            position = len(header) if comma < 0 else comma
    return found
