"""JSON values as Go sees and prints them.

Error texts that clients match on were made with Go's `%v` and `%T`, and Go tells 1, 1.0 and true apart
where Python's `==` does not. Both facts are needed wherever upstream's behaviour is followed to the
letter.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal, telling booleans, integers and floats apart."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if len(left) != len(right):
            return False
        return all(key in right and same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def show(value: Any) -> str:
    """The value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{show(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(show, value)) + "]"
    if isinstance(value, float):
        return print_float(value)
    return str(value)


def print_float(value: float) -> str:
    """A float as Go's `%v` and `%g` print it: with an exponent from 1e+06 on and below 1e-04."""
    return _float(value, -4, 6)


def json_float(value: float) -> str:
    """A float as Kubernetes writes it in JSON: with an exponent from 1e+21 on and below 1e-06."""
    return _float(value, -6, 21)


def _float(value: float, lowest: int, highest: int) -> str:
    """The shortest digits that mean this float; plain if its power of ten is within these bounds."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1
    if value == 0 or lowest <= power < highest:
        return f"{Decimal(repr(value)).normalize():f}"
    mantissa = str(digits[0]) + ("." + "".join(map(str, digits[1:])) if len(digits) > 1 else "")
    return f"{'-' * sign}{mantissa}e{power:+03d}"


def type_name(value: Any) -> str:
    """The Go type that a decoded JSON value has."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {int: "int64", float: "float64"}.get(type(value), "string")
