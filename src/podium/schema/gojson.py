"""How Go writes values of the built-in types as JSON: zero values, omitted fields, times, base64.

The real API server decodes every request into Go structs and answers with those structs encoded again, so a
field that was left out may come back as a zero value, and one that was given may be left out. `coerce` and
`protobuf` share these rules; `DecodeError` carries the messages of Go's decoder.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NoReturn

from podium.api.times import micro_timestamp, timestamp
from podium.schema import facts
from podium.schema.facts import FieldFact, Form, Type, TypeFact

# Stored as JSON; all else passes through protobuf, which cannot tell an empty list from none.
_JSON_STORAGE = ("apiextensions/", "apiregistration/")


class DecodeError(ValueError):
    """Bytes or JSON that cannot be decoded as the kind they claim to be."""


class TypeMismatch(DecodeError):
    """A JSON value of the wrong type; the Go struct field that the message names is found while unwinding."""

    def __init__(self, value: str, go_type: str) -> None:
        super().__init__(value, go_type)
        self.value = value
        self.go_type = go_type
        self.struct = ""
        self.fields: list[str] = []  # innermost first

    def __str__(self) -> str:
        if not self.fields:
            return f"json: cannot unmarshal {self.value} into Go value of type {self.go_type}"
        path = ".".join(reversed(self.fields))
        where = f"Go struct field {self.struct}.{path}"
        return f"json: cannot unmarshal {self.value} into {where} of type {self.go_type}"


def mismatch(value: Any, go_type: str, *, literal: bool = False) -> NoReturn:
    """Refuses a value; a number is named with its digits where Go would have tried to read them."""
    if isinstance(value, bool):
        word = "bool"
    elif isinstance(value, int | float):
        word = f"number {value}" if literal else "number"
    elif isinstance(value, str):
        word = "string"
    else:
        word = "array" if isinstance(value, list) else "object"
    raise TypeMismatch(word, go_type)


class Omit(IntEnum):
    """When a field is left out of the JSON."""

    NEVER = 0
    EMPTY = 1  # zero number, false, empty string, list or map
    ABSENT = 2  # a pointer to nothing


def omit(field: FieldFact) -> Omit:
    """When a field is left out."""
    form = field.type.form
    if field.omitzero and form in (Form.STRUCT, Form.CUSTOM):
        return Omit.ABSENT
    if not field.omitempty or form in (Form.STRUCT, Form.CUSTOM):
        return Omit.NEVER
    return Omit.ABSENT if form is Form.POINTER else Omit.EMPTY


def empty_becomes_null(owner: TypeFact, field: FieldFact) -> bool:
    """Whether an empty list or map that is always written comes back as null."""
    is_collection = field.type.form in (Form.LIST, Form.MAP)
    return is_collection and not field.omitempty and not owner.name.startswith(_JSON_STORAGE)


Make = Callable[[], Any]

_SCALAR_ZERO: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "bytes": None,
}
_CUSTOM_ZERO: dict[str, Any] = {
    "api/resource.Quantity": "0",
    "util/intstr.IntOrString": 0,
    "apiextensions/v1.JSONSchemaPropsOrBool": False,
}


def zero(type_: Type) -> Any:
    """What Go writes for a value of the type that nobody has set."""
    match type_.form:
        case Form.SCALAR:
            return _SCALAR_ZERO[type_.scalar]
        case Form.STRUCT:
            return {name: make() for name, make in always(facts.load().struct(type_.name))}
        case Form.CUSTOM:
            return _CUSTOM_ZERO.get(type_.name)
    return None


_always: dict[str, tuple[tuple[str, Make], ...]] = {}


def always(struct: TypeFact) -> tuple[tuple[str, Make], ...]:
    """The fields that Go writes even if nobody has set them, with what makes their value."""
    found = _always.get(struct.name)
    if found is None:
        found = tuple(
            (field.name, _maker(field.type)) for field, _ in struct.members() if omit(field) is Omit.NEVER
        )
        _always[struct.name] = found
    return found


def _maker(type_: Type) -> Make:
    if type_.form is not Form.STRUCT:
        value = zero(type_)
        return lambda: value
    pairs: list[tuple[tuple[str, Make], ...]] = []

    def make() -> dict[str, Any]:
        if not pairs:  # looked up late, because types recurse
            pairs.append(always(facts.load().struct(type_.name)))
        return {name: inner() for name, inner in pairs[0]}

    return make


_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"


def time(text: str) -> str | None:
    """A `metav1.Time` as Go writes it: UTC, whole seconds; the zero time is null."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise DecodeError(_time_message(text, _SECONDS))
    moment = _moment(text, match)
    return None if moment.timestamp() == _ZERO_TIME else timestamp(moment)


def micro_time(text: str) -> str | None:
    """A `metav1.MicroTime` as Go writes it: UTC, six decimals, which must be given."""
    match = _RFC3339.fullmatch(text)
    if match is None or not match[7] or len(match[7]) != 7 or match[7][0] != ".":
        raise DecodeError(_time_message(text, _MICROSECONDS))
    moment = _moment(text, match)
    if moment.timestamp() == _ZERO_TIME:
        return None
    return micro_timestamp(moment)


_ZERO_TIME = -62135596800.0  # the first second of year one


def time_of(seconds: int, microseconds: int | None = None) -> str | None:
    """The JSON of a time that is given in seconds since 1970."""
    if seconds == _ZERO_TIME and not microseconds:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds or 0)
    except (ValueError, OverflowError, OSError):
        raise DecodeError("time is out of range") from None
    return timestamp(moment) if microseconds is None else micro_timestamp(moment)


def _moment(text: str, match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    micro = int(match[7][1:7].ljust(6, "0")) if match[7] else 0
    if not 1 <= month <= 12:
        raise DecodeError(f'parsing time "{text}": month out of range')
    for name, value, limit in (("hour", hour, 23), ("minute", minute, 59), ("second", second, 59)):
        if value > limit:
            raise DecodeError(f'parsing time "{text}": {name} out of range')
    try:
        moment = datetime(year, month, day, hour, minute, second, micro, UTC)
    except ValueError:
        raise DecodeError(f'parsing time "{text}": day out of range') from None
    if match[8] == "Z":
        return moment
    hours, minutes = int(match[8][1:3]), int(match[8][4:6])
    if hours > 24 or minutes > 60:
        raise DecodeError(
            f'parsing time "{text}": time zone offset {"hour" if hours > 24 else "minute"} out of range'
        )
    sign = -1 if match[8][0] == "-" else 1
    try:
        return datetime.fromtimestamp(moment.timestamp() - sign * (hours * 3600 + minutes * 60), UTC).replace(
            microsecond=micro
        )
    except (ValueError, OverflowError, OSError):
        raise DecodeError("time is out of range") from None


_LAYOUT = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|.")
_PIECES = {
    "2006": r"\d{4}",
    "01": r"\d\d",
    "02": r"\d\d",
    "15": r"\d\d?",
    "04": r"\d\d",
    "05": r"\d\d(?:[.,]\d+(?=Z|[+-]|$))?",
    ".000000": r"\.\d{6}",
    "Z07:00": r"Z|[+-]\d\d:\d\d",
}


def _time_message(text: str, layout: str) -> str:
    """Go's words for the first place where a text departs from a layout."""
    rest = text
    for piece in _LAYOUT.findall(layout):
        pattern = _PIECES.get(piece, re.escape(piece))
        if piece == "05" and layout is _MICROSECONDS:
            pattern = r"\d\d"
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return f'parsing time {_quote(text)} as "{layout}": cannot parse {_quote(rest)} as "{piece}"'
        rest = rest[match.end() :]
    return f"parsing time {_quote(text)}: extra text: {_quote(rest)}"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def base64_text(text: str) -> str:
    """Checks base64 and writes it the standard way."""
    try:
        raw = binascii.a2b_base64(text.replace("\r", "").replace("\n", "").encode("ascii"), strict_mode=True)
    except ValueError:  # binascii.Error is one, and so is a character outside ASCII
        raise DecodeError(f"illegal base64 data at input byte {_bad_base64_byte(text.encode())}") from None
    return base64.b64encode(raw).decode("ascii")


def _bad_base64_byte(data: bytes) -> int:
    """The offset that Go's decoder names: the first byte that cannot stand where it stands."""
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    quantum = 0
    for at, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte in alphabet:
            quantum = (quantum + 1) % 4
            continue
        if byte != 0x3D or quantum < 2:
            return at
        rest = data[at + 1 :].replace(b"\r", b"").replace(b"\n", b"")
        if quantum == 2 and not rest:
            return len(data)
        if quantum == 2 and rest[:1] != b"=":
            return at + 1
        return data.index(rest[1:] if quantum == 2 else rest, at + 1)
    return len(data) - quantum if quantum else len(data)
