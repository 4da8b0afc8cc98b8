"""Resource quantities (`500m`, `1536Mi`, `2e3`): exact arithmetic, and the text Kubernetes would print.

A quantity is a decimal number and the family of suffixes it was written with. The API server rewrites a
quantity to its canonical form when it decodes one, except that a text which already looks canonical to a
cheap test is kept as it is (`+5`, `1.500`). That test is part of the behaviour, and therefore part of
`parse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, total_ordering

MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_SUFFIX = "unable to parse quantity's suffix"


class Format(Enum):
    """The family of suffixes that a quantity is written with."""

    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"


class QuantityError(ValueError):
    """A text that is no quantity; the message is the API server's."""


_TEXT = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent // 10: suffix for suffix, exponent in _BINARY.items()} | {0: ""}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_MAX_INT64 = 2**63 - 1
_NANO = -9
# An exponent is a 32-bit number to the API server. Beyond this one, numbers are not told apart when compared,
# so that nobody has to compute `1e2000000000`.
_LARGEST_EXPONENT = 400


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A number with a unit: `mantissa * 10**exponent`, remembered with its text."""

    mantissa: int
    exponent: int
    format: Format
    text: str

    @property
    def nanos(self) -> int:
        """The exact number, in billionths: nothing finer can be written."""
        return self.mantissa * int(10 ** (min(self.exponent, _LARGEST_EXPONENT) - _NANO))

    @property
    def milli(self) -> int:
        """The number in thousandths, rounded away from zero."""
        return _divide_up(self.nanos, 10**6)

    @property
    def value(self) -> int:
        """The number, rounded away from zero."""
        return _divide_up(self.nanos, 10**9)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __bool__(self) -> bool:
        return self.mantissa != 0

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the format of the left one unless that is zero."""
        return of_nanos(self.nanos + other.nanos, self.format if self else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return of_nanos(self.nanos - other.nanos, self.format if self else other.format)

    def __neg__(self) -> Quantity:
        return _written(-self.mantissa, self.exponent, self.format)


def of_nanos(nanos: int, written: Format = Format.DECIMAL_SI) -> Quantity:
    """The quantity of so many billionths."""
    return _written(nanos, _NANO, written)


def canonical(text: str) -> str:
    """The text that the API server answers with when it was given `text`."""
    return parse(text).text


@lru_cache(2048)
def parse(text: str) -> Quantity:
    """Reads a quantity; raises QuantityError if it is none."""
    if not text:
        raise QuantityError(MALFORMED)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise QuantityError(MALFORMED)
    sign, number, decimals, suffix = match.groups()
    number, decimals = number or "0", decimals or ""
    if suffix in _BINARY:
        return _binary(text, sign, number, decimals, _BINARY[suffix])
    if suffix in _DECIMAL:
        return _decimal(text, sign, number, decimals, _DECIMAL[suffix], Format.DECIMAL_SI)
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or abs(int(exponent[1][:20])) > _MAX_INT64:
        raise QuantityError(BAD_SUFFIX)
    wrapped = (int(exponent[1]) + 2**31) % 2**32 - 2**31
    return _decimal(text, sign, number, decimals, wrapped, Format.DECIMAL_EXPONENT)


def _decimal(text: str, sign: str, number: str, decimals: str, exponent: int, written: Format) -> Quantity:
    digits = number + decimals
    mantissa = -int(digits) if sign == "-" else int(digits)
    exponent -= len(decimals)
    if exponent < _NANO and mantissa:
        # Too fine: something asked for is never rounded to nothing.
        shift = min(_NANO - exponent, len(digits) + 1)
        return _written(_divide_up(mantissa, 10**shift), _NANO, written)
    looks_canonical = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if len(digits) <= 18 and looks_canonical:
        return Quantity(mantissa, exponent, written, text)
    return _written(mantissa, exponent, written)


def _binary(text: str, sign: str, number: str, decimals: str, power: int) -> Quantity:
    value = int(number + decimals) << power
    negative = -1 if sign == "-" else 1
    is_short = 15 - len(number) - power * 3 // 10 - 1 >= 0
    if not decimals and is_short and value <= _MAX_INT64:
        if int(number) & 7:
            return Quantity(negative * value, 0, Format.BINARY_SI, text)
        return _written(negative * value, 0, Format.BINARY_SI)
    shift = len(decimals) + _NANO
    exponent = -len(decimals)
    if shift > 0:
        value, exponent = _divide_up(value, 10**shift), _NANO
    unit = 10 ** max(-exponent, 0)
    if value > _MAX_INT64 * unit:
        value, exponent, unit = _MAX_INT64, 0, 1
    written = Format.DECIMAL_SI if 0 < value < unit else Format.BINARY_SI
    return _written(negative * value, exponent, written)


def _written(mantissa: int, exponent: int, written: Format) -> Quantity:
    return Quantity(mantissa, exponent, written, _text(mantissa, exponent, written))


def _text(mantissa: int, exponent: int, written: Format) -> str:
    if mantissa == 0:
        return "0"
    if written is Format.BINARY_SI:
        unit = int(10 ** max(-exponent, 0))
        whole = mantissa * int(10 ** min(max(exponent, 0), _LARGEST_EXPONENT)) // unit
        if mantissa % unit == 0 and abs(whole) >= 1024:
            number, times = _without_factors(whole, 1024)
            return f"{number}{_BINARY_SUFFIX.get(times, '')}"
        written = Format.DECIMAL_SI  # shown exactly rather than rounded
    number, times = _without_factors(mantissa, 10)
    exponent += times
    # The unit is a power of a thousand; what is left over goes back into the number.
    number *= 10 ** (exponent % 3)
    exponent -= exponent % 3
    if written is Format.DECIMAL_SI:
        return f"{number}{_DECIMAL_SUFFIX.get(exponent, '')}"
    return f"{number}e{exponent}" if exponent else str(number)


def _without_factors(number: int, base: int) -> tuple[int, int]:
    times = 0
    while abs(number) >= base and number % base == 0:
        number //= base
        times += 1
    return number, times


def _divide_up(number: int, divisor: int) -> int:
    """Divides, rounding away from zero."""
    quotient = -(-abs(number) // divisor)
    return -quotient if number < 0 else quotient
