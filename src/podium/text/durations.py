"""Durations in Go's notation, such as `1h30m` or `1.5s`, and what Go says about texts that are none."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LONGEST = 2**63 - 1
# Go counts in 64 bits; more digits than this overflow whatever the unit, and cost time to read.
_MOST_DIGITS = 19


class DurationError(ValueError):
    """The text is no duration; the message is that of Go's `time.ParseDuration`."""


def nanoseconds(text: str) -> int:
    """The length of a duration; DurationError if the text is none."""
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    total, position = 0, 0
    while position < len(body) or not body:
        found = _PART.match(body, position)
        if found is None or not (found[1] or found[2]):
            raise DurationError(f'time: invalid duration "{text}"')
        total += _part(found[1], found[2] or "", found[3], text)
        position = found.end()
    if total > _LONGEST:
        raise DurationError(f'time: invalid duration "{text}"')
    return -total if text[0] == "-" else total


def _part(whole: str, fraction: str, unit: str, text: str) -> int:
    if len(whole) > _MOST_DIGITS:
        raise DurationError(f'time: invalid duration "{text}"')
    if not unit:
        raise DurationError(f'time: missing unit in duration "{text}"')
    if unit not in _UNITS:
        raise DurationError(f'time: unknown unit "{unit}" in duration "{text}"')
    fraction = fraction[:_MOST_DIGITS]
    scale = _UNITS[unit]
    below: int = int(fraction or 0) * scale // 10 ** len(fraction)
    return int(whole or 0) * scale + below
