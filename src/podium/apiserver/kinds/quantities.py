"""Resource quantities of objects that were decoded before, so that nothing here reports bad syntax.

What cannot be read counts as zero; whoever sets it has been told by then.
"""

from __future__ import annotations

from podium.schema.quantity import Format, Quantity, QuantityError, of_nanos, parse

_NANO = 10**9
_NOTHING = of_nanos(0)


def nano(text: str | int) -> int:
    """The quantity in billionths, rounded up."""
    return _read(text).nanos


def value(text: str | int) -> int:
    """The quantity as a whole number, rounded away from zero."""
    return _read(text).value


def is_whole(text: str | int) -> bool:
    return nano(text) % _NANO == 0


def rounded_up_to_milli(text: str) -> str:
    """Kubernetes keeps resources at a thousandth at the finest."""
    return text if not text.endswith(("n", "u")) else write(_read(text).milli * 10**6, binary=False)


def is_binary(text: str) -> bool:
    return text.endswith("i")


def write(billionths: int, *, binary: bool) -> str:
    """The canonical text: the largest suffix that leaves a whole number."""
    return of_nanos(billionths, Format.BINARY_SI if binary else Format.DECIMAL_SI).text


def _read(text: str | int) -> Quantity:
    try:
        return parse(str(text))
    except QuantityError:
        return _NOTHING
