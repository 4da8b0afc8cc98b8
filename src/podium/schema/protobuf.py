"""Decodes Kubernetes' protobuf (`application/vnd.kubernetes.protobuf`) into the JSON of the same object.

Go clients send request bodies in this form and have no fallback. A body is the four bytes `k8s\\0`, an
envelope that names the kind, and the message. Generated Go code writes scalars that are not pointers even
if they are zero, so zero values are left out or added by the rules of `gojson` and not by what stands in
the bytes. Messages that occur twice are merged, as protobuf wants: their bytes are joined before they are
decoded.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.schema import facts, quantity
from podium.schema.facts import FieldFact, Form, Type, TypeFact
from podium.schema.gojson import DecodeError, Omit, always, omit, time_of, zero

__all__ = ["MAGIC", "MAX_BYTES", "DecodeError", "MessageError", "decode"]

MAGIC = b"k8s\0"
MAX_BYTES = 3 * 1024 * 1024  # what kube-apiserver accepts as a body
MAX_DEPTH = 100
# A message can be two bytes long and a hundred times that in memory.
MAX_MESSAGES = 200_000

_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)


class MessageError(DecodeError):
    """The envelope names a kind, but what it holds is no object of it."""

    def __init__(self, api_version: str, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.api_version = api_version
        self.kind = kind


def decode(body: bytes, api_version: str = "", kind: str = "") -> dict[str, Any]:
    """The object in a protobuf body; raises DecodeError if there is none, or none of a built-in kind.

    An envelope that does not say what it holds is taken to hold the kind that is given.
    """
    if not body:
        raise DecodeError("empty data")
    if not body.startswith(MAGIC):
        raise DecodeError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if len(body) == len(MAGIC):
        raise DecodeError("empty body")
    if len(body) > MAX_BYTES:
        raise DecodeError(f"protobuf body is larger than {MAX_BYTES} bytes")
    named, kind_named, raw = _opened(body)
    api_version, kind = named or api_version, kind_named or kind
    try:
        return _decode(api_version, kind, raw, _Limits(MAX_MESSAGES, MAX_DEPTH))
    except DecodeError as error:
        raise MessageError(api_version, kind, str(error)) from error


def _opened(body: bytes) -> tuple[str, str, bytes]:
    """The apiVersion and kind that an envelope names, and the message in it."""
    envelope = _last_bytes(body[len(MAGIC) :])
    type_meta = _last_bytes(envelope.get(1, b""))
    return _text(type_meta.get(1, b"")), _text(type_meta.get(2, b"")), envelope.get(2, b"")


def _decode(api_version: str, kind: str, raw: bytes, limits: _Limits) -> dict[str, Any]:
    group, _, version = api_version.rpartition("/")
    fact = facts.load().type_for(group, version, kind)
    if fact is None:
        registry = 'in scheme "pkg/runtime/scheme.go:111"'
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}" {registry}')
    message: dict[str, Any] = _reader(fact.type)(raw, limits)
    return {"kind": kind, "apiVersion": api_version} | message


def _last_bytes(message: bytes) -> dict[int, bytes]:
    return {number: value for number, _, value in _parts(message) if isinstance(value, bytes)}


@dataclass(slots=True)
class _Limits:
    """What one body may still use; a hostile one must not cost more than its size suggests."""

    messages: int
    depth: int

    def enter(self) -> None:
        self.messages -= 1
        self.depth -= 1
        if self.depth < 0:
            raise DecodeError(f"protobuf messages are nested more than {MAX_DEPTH} deep")
        if self.messages < 0:
            raise DecodeError(f"protobuf body holds more than {MAX_MESSAGES} messages")

    def leave(self) -> None:
        self.depth += 1


def _parts(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message in order: number, wire type, and the integer or the bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= 0x1FFFFFFF:
            raise DecodeError(f"proto: illegal tag {number} (wire type {wire})")
        value: int | bytes
        if wire == _BYTES:
            length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        elif wire == _VARINT:
            value, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            value = data[at : at + size]
            at += size
        elif wire == _GROUP:
            value, at = b"", _skip_group(data, at)
        else:
            raise DecodeError(f"proto: illegal wireType {wire}")
        if at > end:
            raise DecodeError("unexpected EOF")
        yield number, wire, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift >= 64:
                raise DecodeError("proto: integer overflow")
    except IndexError:
        raise DecodeError("unexpected EOF") from None


def _skip_group(data: bytes, at: int) -> int:
    """Passes over an old-style group, which nothing of ours has but every parser must know."""
    depth = 1
    while depth:
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(data, at)
                at += length
            case 3:
                depth += 1
            case 4:
                depth -= 1
            case 5:
                at += 4
            case wire:
                raise DecodeError(f"proto: illegal wireType {wire}")
    return at


Read = Callable[[Any, _Limits], Any]


@dataclass(slots=True)
class _Slot:
    """Where a field of a message goes."""

    name: str
    wire: int  # of one value
    read: Read
    omit: Omit
    repeated: bool = False
    key: bool = False  # a map, whose entries are messages of key and value
    message: bool = False  # merged if it occurs more than once
    inline: bool = False


_messages: dict[str, Read] = {}


def _reader(type_: Type) -> Read:
    """What reads one value of a type off the wire."""
    match type_.form:
        case Form.SCALAR:
            return _SCALARS[type_.scalar]
        case Form.POINTER:
            return _reader(type_.of)
        case Form.STRUCT:
            return _late(type_.name)
        case Form.CUSTOM:
            return _CUSTOM[type_.name]
        case Form.LIST if _is_wrapped(type_):
            return _wrapped_strings
    raise AssertionError(f"{type_.go} has no protobuf form of its own")


def _is_wrapped(type_: Type) -> bool:
    """Protobuf has no named lists, so those of strings (ExtraValue, Verbs) became messages with one field."""
    return type_.form is Form.LIST and bool(type_.name) and type_.of.form is Form.SCALAR


def _late(name: str) -> Read:
    """Compiles a message at its first use: types recurse, and most are never met."""

    def read(data: Any, limits: _Limits) -> Any:
        compiled = _messages.get(name)
        if compiled is None:
            compiled = _messages[name] = _message(facts.load().struct(name))
        return compiled(data, limits)

    return read


def _message(fact: TypeFact) -> Read:
    slots = {field.number: _slot(field) for field in fact.fields if field.number}
    present = always(fact)

    def read(data: Any, limits: _Limits) -> Any:
        limits.enter()
        result: dict[str, Any] = {}
        merged: dict[int, list[Any]] = {}
        for number, wire, value in _parts(data):
            slot = slots.get(number)
            if slot is None:
                continue
            if wire != slot.wire and not (wire == _BYTES and slot.repeated):
                raise DecodeError(f"proto: wrong wireType = {wire} for field {slot.name}")
            if slot.message:
                merged.setdefault(number, []).append(value)
            elif slot.key:
                _put(result.setdefault(slot.name, {}), slot.read, value, limits)
            elif slot.repeated:
                items = result.setdefault(slot.name, [])
                packed = wire != slot.wire
                items.extend(_packed(value, slot, limits) if packed else (slot.read(value, limits),))
            else:
                _set(result, slot, slot.read(value, limits))
        for number, payloads in merged.items():
            slot = slots[number]
            value = slot.read(b"".join(payloads), limits)
            if slot.inline:
                result.update(value)
            else:
                _set(result, slot, value)
        for name, make in present:
            if name not in result:
                result[name] = make()
        limits.leave()
        return result

    return read


def _slot(field: FieldFact) -> _Slot:
    type_ = field.type.deref()
    # On the wire a pointer that points at nothing is not there at all, so one that is there is kept.
    when = Omit.NEVER if field.type.form is Form.POINTER else omit(field)
    if field.inline:
        return _Slot(field.name, _BYTES, _reader(type_), when, message=True, inline=True)
    if type_.form is Form.LIST and not _is_wrapped(type_):
        return _Slot(field.name, _wire(type_.of), _reader(type_.of), when, repeated=True)
    if type_.form is Form.MAP:
        return _Slot(field.name, _BYTES, _entry(type_.of), when, key=True)
    return _Slot(field.name, _wire(type_), _reader(type_), when, message=type_.form is not Form.SCALAR)


def _wire(type_: Type) -> int:
    if type_.form is Form.SCALAR and type_.scalar in ("bool", "int32", "int64"):
        return _VARINT
    return _FIXED64 if type_.form is Form.SCALAR and type_.scalar == "float64" else _BYTES


def _set(result: dict[str, Any], slot: _Slot, value: Any) -> None:
    is_kept = slot.omit is Omit.NEVER or (value if slot.omit is Omit.EMPTY else value is not None)
    if is_kept:
        result[slot.name] = value
    else:
        result.pop(slot.name, None)


def _entry(type_: Type) -> Read:
    """Reads an entry of a map, as a pair."""
    read, wire = _reader(type_), _wire(type_)
    # Generated code starts a list or bytes in a map from an empty value, not from none.
    missing: Callable[[], Any] = list if _is_wrapped(type_) else lambda: zero(type_)
    if type_.scalar == "bytes":
        missing = str

    def read_entry(data: Any, limits: _Limits) -> Any:
        key, value = "", b""
        has_value = False
        for number, part_wire, part in _parts(data):
            if number == 1 and isinstance(part, bytes):
                key = _text(part)
            elif number == 2:
                if part_wire != wire:
                    raise DecodeError(f"proto: wrong wireType = {part_wire} for a map's value")
                value, has_value = part, True  # type: ignore[assignment]
        if not has_value:
            return key, missing()
        read_value = read(value, limits)
        return key, missing() if read_value is None and _is_wrapped(type_) else read_value

    return read_entry


def _put(into: dict[str, Any], read: Read, value: Any, limits: _Limits) -> None:
    key, item = read(value, limits)
    into[key] = item


def _packed(data: Any, slot: _Slot, limits: _Limits) -> list[Any]:
    if slot.wire == _FIXED64:
        if len(data) % 8:
            raise DecodeError("unexpected EOF")
        return [slot.read(data[at : at + 8], limits) for at in range(0, len(data), 8)]
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(slot.read(value, limits))
    return values


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")  # as Go does when it writes JSON


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _float(data: Any, _: _Limits) -> float | int:
    value: float = struct.unpack("<d", data)[0]
    if value != value or value in (float("inf"), float("-inf")):
        raise DecodeError(f"json: unsupported value: {value}")
    return int(value) if value.is_integer() else value


_SCALARS: dict[str, Read] = {
    "string": lambda data, _: data.decode("utf-8", "replace"),
    "bool": lambda value, _: value != 0,
    "int32": lambda value, _: _signed(value, 32),
    "int64": lambda value, _: _signed(value, 64),
    "float64": _float,
    "bytes": lambda data, _: base64.b64encode(data).decode("ascii"),
}


def _wrapped_strings(data: Any, _: _Limits) -> Any:
    return [
        _text(value) for number, _, value in _parts(data) if number == 1 and isinstance(value, bytes)
    ] or None


def _integers(data: bytes) -> dict[int, int]:
    return {number: value for number, _, value in _parts(data) if isinstance(value, int)}


def _time(data: Any, _: _Limits) -> Any:
    return time_of(_signed(_integers(data).get(1, 0), 64)) if data else None


def _micro_time(data: Any, _: _Limits) -> Any:
    if not data:
        return None
    parts = _integers(data)
    nanos = _signed(parts.get(2, 0), 32)
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    carry, micros = divmod(micros, 1_000_000)
    return time_of(_signed(parts.get(1, 0), 64) + carry, micros)


def _quantity(data: Any, _: _Limits) -> Any:
    text = _last_bytes(data).get(1)
    try:
        return "0" if text is None else quantity.canonical(_text(text))
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(data: Any, _: _Limits) -> Any:
    kind, number, text = 0, 0, ""
    for field, _wire_type, value in _parts(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 2 and isinstance(value, int):
            number = _signed(value, 32)
        elif field == 3 and isinstance(value, bytes):
            text = _text(value)
    if kind not in (0, 1):
        raise DecodeError("impossible IntOrString.Type")
    return text if kind else number


def _json(data: Any, limits: _Limits) -> Any:
    """Embedded JSON: RawExtension, FieldsV1, JSON."""
    raw = _last_bytes(data).get(1, b"")
    if not raw:
        return None
    if raw.startswith(MAGIC):
        limits.enter()
        nested = _decode(*_opened(raw), limits)
        limits.leave()
        return nested
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(f"embedded JSON is malformed: {error}") from None


_JSON_SCHEMA = "apiextensions/v1.JSONSchemaProps"


def _schema_or(otherwise: Callable[[list[int | bytes], _Limits], Any]) -> Read:
    """A message with a schema in one field, and something else in the other."""

    def build(schema_field: int, other_field: int) -> Read:
        schema = _late(_JSON_SCHEMA)

        def read(data: Any, limits: _Limits) -> Any:
            parts = list(_parts(data))
            others = [value for number, _, value in parts if number == other_field]
            schemas = [
                value for number, _, value in parts if number == schema_field and isinstance(value, bytes)
            ]
            found = otherwise(others, limits)
            if schemas and (found is None or isinstance(found, bool)):
                return schema(b"".join(schemas), limits)
            return found

        return read

    return build(2, 1) if otherwise is _allows else build(1, 2)


def _allows(values: list[int | bytes], _: _Limits) -> Any:
    return bool(values and values[-1])


def _schemas(values: list[int | bytes], limits: _Limits) -> Any:
    return [_late(_JSON_SCHEMA)(value, limits) for value in values if isinstance(value, bytes)] or None


def _properties(values: list[int | bytes], _: _Limits) -> Any:
    return [_text(value) for value in values if isinstance(value, bytes)] or None


_CUSTOM: dict[str, Read] = {
    "api/resource.Quantity": _quantity,
    "apiextensions/v1.JSON": _json,
    "apiextensions/v1.JSONSchemaPropsOrArray": _schema_or(_schemas),
    "apiextensions/v1.JSONSchemaPropsOrBool": _schema_or(_allows),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": _schema_or(_properties),
    "meta/v1.FieldsV1": _json,
    "meta/v1.MicroTime": _micro_time,
    "meta/v1.Time": _time,
    "runtime.RawExtension": _json,
    "util/intstr.IntOrString": _int_or_string,
}
