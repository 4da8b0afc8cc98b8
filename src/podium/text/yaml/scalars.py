"""What a plain scalar means: the rules of go-yaml v2, on which sigs.k8s.io/yaml stands.

`on` is true, `0777` is octal, `08` is the float 8, `1_000` is a number, `12:30:45` and dates are texts.
The writer asks the same rules, so that a text which would read as something else is quoted.
"""

from __future__ import annotations

import calendar
import math
import re
import struct
from typing import Any

from podium.text import gojson

CONSTANTS: dict[str, Any] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
CONSTANTS |= dict.fromkeys(("true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True)
CONSTANTS |= dict.fromkeys(
    ("false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"), False
)
CONSTANTS |= dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf)
CONSTANTS |= dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf)
CONSTANTS |= dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan)

_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_SIGNED_BINARY = re.compile(r"0b([-+][01]+)")  # a slip of the original: `0b-1` is minus one
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_POINT_FLOAT = re.compile(r"\.[0-9](_?[0-9])*([eE][-+]?[0-9](_?[0-9])*)?")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})([.,][0-9]+)?"
_TIMESTAMP = re.compile(
    rf"([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})([Tt]{_CLOCK}(Z|[-+]([0-9]{{2}}):([0-9]{{2}}))| +{_CLOCK})?"
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DECIMAL_DIGITS = 20  # of 2**64
_GENERAL_DIGITS = 6  # with more before the point, Go's 'g' format takes an exponent


def resolve(text: str) -> Any:
    """The value of a plain scalar without a tag."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    first = text[0]
    if first == ".":
        return text if (real := _point_float(text)) is None else real
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "") if "_" in text else text
    if (whole := _integer(plain)) is not None:
        return whole
    real = _float(plain)
    return text if real is None else real


def reads_as_text(text: str) -> bool:
    """Whether a plain scalar is a text to this reader and to those that know times and base 60."""
    if text in CONSTANTS:
        return False
    first = text[0]
    if first not in "+-.0123456789":
        return True
    if not isinstance(resolve(text), str):
        return False
    return not (_BASE_60.fullmatch(text) or is_timestamp(text))


def is_timestamp(text: str) -> bool:
    """Whether a text is one of the forms of date and time that go-yaml knows."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= _days(year, month)):
        return False
    hour, minute, second = (int(match[n] or match[n + 7] or 0) for n in (5, 6, 7))
    return (
        hour < 24 and minute < 60 and second < 60 and int(match[10] or 0) <= 24 and int(match[11] or 0) <= 60
    )


def _days(year: int, month: int) -> int:
    return 29 if month == 2 and calendar.isleap(year) else _DAYS[month - 1]


def _point_float(text: str) -> float | None:
    return _finite(text.replace("_", "")) if _POINT_FLOAT.fullmatch(text) else None


def _float(plain: str) -> float | None:
    return _finite(plain) if _FLOAT.fullmatch(plain) else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _integer(plain: str) -> int | None:
    match = _INTEGER.fullmatch(plain)
    if not match:
        signed = _SIGNED_BINARY.fullmatch(plain)
        number = int(signed[1], 2) if signed else 2**64
        return number if -(2**63) <= number < 2**63 else None
    number = _magnitude(match[1])
    if plain[0] == "-":
        number = -number
    unsigned = plain[0] not in "+-"
    return number if -(2**63) <= number < (2**64 if unsigned else 2**63) else None


def _magnitude(digits: str) -> int:
    if digits[0] != "0":
        return int(digits) if len(digits) <= _DECIMAL_DIGITS else 2**64
    kind = digits[1:2].lower()
    if kind in ("x", "b", "o"):
        return int(digits[2:], {"x": 16, "b": 2, "o": 8}[kind])
    return int(digits, 8)


def key_text(value: Any) -> str | None:
    """A resolved key as a key in JSON; None for what the original refuses: null, integers from 2**63 on."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value < 2**63 else None
    if isinstance(value, float):
        return _single_precision(value)
    return None


def _single_precision(value: float) -> str:
    """A float key: the original prints it as a float32 with the fewest digits."""
    if math.isnan(value):
        return ".nan"
    try:
        wanted = struct.pack("f", value)
    except OverflowError:
        wanted = struct.pack("f", math.copysign(math.inf, value))
    (rounded,) = struct.unpack("f", wanted)
    if math.isinf(rounded):
        return ".inf" if rounded > 0 else "-.inf"
    if rounded == 0:
        return "-0" if math.copysign(1, rounded) < 0 else "0"
    tries = (f"{rounded:.{digits}e}" for digits in range(17))
    shortest = next(text for text in tries if struct.pack("f", float(text)) == wanted)
    return general(float(shortest))


def general(value: float) -> str:
    """A finite float as Go's shortest 'g' format prints it."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    digits, exponent = gojson.shortest(value)
    if -4 <= exponent < _GENERAL_DIGITS:
        return sign + gojson.plain_digits(digits, exponent)
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
