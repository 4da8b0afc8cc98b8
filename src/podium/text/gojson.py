"""JSON with the bytes of Go's encoding/json: sorted keys, its escapes, its way to print numbers.

The work is done by msgspec; what Go does otherwise is rare, so it is looked for first (escapes in the
finished bytes, fractions in the value) and put right only where it occurs. Numbers print as Go prints an
int64, a uint64 or a float64 (`1`, `0.000001`, `1e-7`, `1e+21`). A program that decodes into a generic map
turns every number into a float64 first, which shows beyond 2**53: `floats=True` gives what that would print.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

_encode = msgspec.json.Encoder(order="sorted").encode
_NOT_FOR_MSGSPEC = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_EXACT = (-(2**53), 2**53)  # the integers that a float64 tells apart
_WHOLE = (-(2**63), 2**64 - 1)  # those that Go has integers for
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\r\n]*+")


class JSONError(ValueError):
    """The text is not JSON; the message and `.line` say where."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


def compact(value: Any, *, html: bool = True, floats: bool = False) -> bytes:
    """What json.Marshal writes for a value; with `html=False`, an Encoder with SetEscapeHTML(false)."""
    return escaped(_encoded(value, floats), html=html)


def pretty(value: Any, indent: int = 4, html: bool = False, *, floats: bool = False) -> bytes:
    """What an Encoder with SetIndent("", indent spaces) writes for a value, without the final newline."""
    data = escaped(_encoded(value, floats), html=html)
    return msgspec.json.format(data, indent=indent) if indent else data


def decode(raw: bytes) -> Any:
    """One JSON value as Go decodes it into a generic value, save that integers stay integers.

    Bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD; the last of equal keys counts.
    JSONError if the text is no JSON, or more than one value.
    """
    try:
        return msgspec.json.decode(raw)
    except _NOT_FOR_MSGSPEC:
        value, rest = first(raw)
        if rest:
            raise JSONError("more than one value", 1 + raw.count(b"\n") - rest.count(b"\n")) from None
        return value


def first(raw: bytes) -> tuple[Any, bytes]:
    """The first JSON value of a text, as `decode` gives it, and what follows it but for space."""
    text = raw.decode("utf-8", "surrogateescape")
    value, end = _scanned(text, _space_ends(text, 0))
    rest = text[_space_ends(text, end) :].encode("utf-8", "surrogateescape")
    return without_surrogates(value), rest


def escaped(data: bytes, *, html: bool = True) -> bytes:
    """JSON with Go's escapes: line separators always, and the characters that mean something in HTML."""
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
    if html:
        data = data.replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")
    return data


def number(value: float) -> str:
    """A float64 as encoding/json prints it; ValueError for what is no number in JSON."""
    if not math.isfinite(value):
        raise ValueError(f"json: unsupported value: {value}")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    digits, exponent = shortest(value)
    if 1e-6 <= abs(value) < 1e21:
        return sign + plain_digits(digits, exponent)
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent)}"


def shortest(value: float) -> tuple[str, int]:
    """The fewest digits that name a finite float other than zero, and the power of ten of the first one."""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    zeros = len(fraction) - len(fraction.lstrip("0"))
    exponent = int(power or 0) + (len(whole) - 1 if whole != "0" else -zeros - 1)
    return (whole + fraction).strip("0"), exponent


def plain_digits(digits: str, exponent: int) -> str:
    """Digits whose first has this power of ten, written without an exponent."""
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def without_surrogates(value: Any) -> Any:
    """A value whose texts have U+FFFD for each byte that was no UTF-8 (decoded with `surrogateescape`)."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


def with_floats(value: Any) -> Any:
    """A value whose numbers are written as a float64 prints them, whoever encodes it; see `FLOATS`."""
    return _with_go_numbers(value, floats=True)


def within(value: Any, lowest: int, highest: int) -> Any:
    """A value with floats for the integers that a Go program's own integers do not reach."""
    if isinstance(value, dict):
        return {key: within(item, lowest, highest) for key, item in value.items()}
    if isinstance(value, list):
        return [within(item, lowest, highest) for item in value]
    return float(value) if type(value) is int and not lowest <= value <= highest else value


def _encoded(value: Any, floats: bool) -> bytes:
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        return _encoded_with_invalid_bytes(value, floats)
    return _encode(_with_go_numbers(value, floats)) if _has_rare_numbers(value, floats) else data


def _encoded_with_invalid_bytes(value: Any, floats: bool) -> bytes:
    """A value with texts that were no UTF-8 (decoded with `surrogateescape`): each such byte is an escape."""
    if isinstance(value, str):
        return b'"%s"' % rb"\ufffd".join(_encode(part)[1:-1] for part in _SURROGATE.split(value))
    if isinstance(value, dict):
        keys = sorted(value, key=_original_bytes)
        entries = ((_encoded_with_invalid_bytes(part, floats) for part in (key, value[key])) for key in keys)
        return b"{%s}" % b",".join(map(b":".join, entries))
    if isinstance(value, list | tuple):
        return b"[%s]" % b",".join([_encoded_with_invalid_bytes(item, floats) for item in value])
    return _encoded(value, floats)


def _original_bytes(key: str) -> bytes:
    try:
        return key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair of surrogates, which was no byte
        return key.encode("utf-8", "surrogatepass")


def _has_rare_numbers(value: Any, floats: bool) -> bool:
    """Whether there is a number that Go prints otherwise than msgspec."""
    lowest, highest = _EXACT if floats else _WHOLE
    seen = [value]
    for item in seen:
        kind = type(item)
        if kind is str:
            continue
        if kind is dict:
            seen += item.values()
        elif kind is list or kind is tuple:
            seen += item
        elif kind is float or (kind is int and not lowest <= item <= highest):
            return True
    return False


def _with_go_numbers(value: Any, floats: bool) -> Any:
    if isinstance(value, dict):
        return {key: _with_go_numbers(item, floats) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_go_numbers(item, floats) for item in value]
    if isinstance(value, float):
        return msgspec.Raw(number(value).encode())
    lowest, highest = _EXACT if floats else _WHOLE
    if isinstance(value, int) and not lowest <= value <= highest:
        return msgspec.Raw(number(float(value)).encode())
    return value


def _scanned(text: str, start: int) -> tuple[Any, int]:
    """The value at a position, and where it ends."""
    try:
        return _SCANNER.raw_decode(text, start)
    except RecursionError:
        raise JSONError("nested too deeply", 1 + text.count("\n", 0, start)) from None
    except json.JSONDecodeError as error:
        raise JSONError(error.msg, error.lineno) from None
    except ValueError as error:  # a constant or a number that only Python has
        raise JSONError(str(error), 1 + text.count("\n", 0, start)) from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_SCANNER = json.JSONDecoder(parse_constant=_refuse)


def _read_as_float(text: str) -> Any:
    """A number as a float64 holds it and Go prints it: an int where that makes no difference."""
    if len(text) < 16 and text != "-0" and text.lstrip("-").isdigit():
        return int(text)
    real = float(text)
    if math.isinf(real):
        raise ValueError(f"number {text[:40]} does not fit a float64")
    return msgspec.Raw(number(real).encode())


# Reads JSON as a program that knows no integers: what msgspec then writes has the numbers it would print.
FLOATS = json.JSONDecoder(parse_int=_read_as_float, parse_float=_read_as_float, parse_constant=_refuse)


def _space_ends(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start
