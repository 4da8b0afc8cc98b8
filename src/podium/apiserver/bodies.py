"""Request bodies: JSON, YAML and protobuf in, plain objects out, with limits and strict-decoding findings.

Duplicate keys are found while parsing; unknown fields only later, against the kind's schema. Both end in the
same place: `fieldValidation=Strict` refuses the request, `Warn` sends a Warning header, `Ignore` drops them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.store import decode as decode_object

MAX_BODY_BYTES = 3 * 1024 * 1024
MAX_DEPTH = 250  # as for YAML; whatever walks an object later may recurse this deep
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_TYPES = (JSON, YAML, PROTOBUF)


# What a body is decoded into when nothing is known of it yet, in the words of Go's decoder.
TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_SUMMARY_BYTES = 30


class Undecodable(errors.StatusError):
    """The body cannot be read; what Go's decoder would say of it is the message."""

    def __init__(self, problem: str) -> None:
        super().__init__(400, "BadRequest", problem)


@dataclass(slots=True)
class Body:
    """A decoded body, and what was said in it twice, worded as for a Warning header."""

    object: Object
    findings: list[str] = field(default_factory=list)
    is_yaml: bool = False

    @property
    def strict_findings(self) -> list[str]:
        """The findings as strict decoding words them."""
        if self.is_yaml and self.findings:
            return ["yaml: unmarshal errors:\n  " + "\n  ".join(self.findings)]
        return self.findings


def media_type(header: str) -> str:
    """The media type of a Content-Type header, without parameters; JSON where it is absent."""
    return header.partition(";")[0].strip().lower() if header else JSON


def decode(
    data: bytes, content_type: str, *, find_duplicates: bool = True, into: str = "map[string]interface {}"
) -> Body:
    """Decode a body that must be an object; `into` is what Go calls the type that it is to become."""
    kind = media_type(content_type)
    if kind == JSON:
        return _decode_json(data, find_duplicates, into)
    if kind == YAML:
        return _decode_yaml(data, into)
    if kind == PROTOBUF:
        from podium.schema import protobuf

        try:
            return Body(protobuf.decode(data))
        except protobuf.DecodeError as error:
            raise errors.bad_request(str(error)) from None
    raise errors.unsupported_media_type(_TYPES)


def decode_protobuf(data: bytes, api_version: str, kind: str) -> Body:
    """Decode a protobuf body that should hold an object of this kind."""
    from podium.schema import protobuf

    try:
        return Body(protobuf.decode(data, api_version, kind))
    except protobuf.MessageError as error:
        version = error.api_version.rpartition("/")[2]
        what = f'{error.kind} in version "{version}" cannot be handled as a {kind}'
        raise errors.bad_request(f"{what}: {error}") from None
    except protobuf.DecodeError as error:
        raise unrecognized(kind, str(error), data) from None


def unrecognized(kind: str, problem: str, data: bytes) -> errors.StatusError:
    """The refusal of a body that does not even say of which kind it is."""
    shown = data[:_SUMMARY_BYTES]
    text = shown.decode("utf-8", "replace") if data.startswith(b"{") else shown.hex()
    summary = (text + " ..." * (len(data) > _SUMMARY_BYTES)) or "<empty>"
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {problem} ({summary})"
    )


def decode_json_value(data: bytes) -> Any:
    """Decode JSON of any type (a patch may be a list)."""
    try:
        text = data.decode("utf-8", "replace")
        value = _clean(text, json.loads(text, parse_constant=_refuse_constant))
        _check_depth(data, value)
        return value
    except RecursionError:
        raise Undecodable("exceeded max depth") from None
    except ValueError as error:
        raise Undecodable(_go_problem(error)) from None


def _decode_json(data: bytes, find_duplicates: bool, into: str) -> Body:
    try:
        if not find_duplicates:
            decoded = decode_object(data)
            _check_depth(data, decoded)
            return Body(_mapping(decoded, into))
        twice: list[str] = []

        def pairs(items: list[tuple[str, Any]]) -> Object:
            result = dict(items)
            if len(result) != len(items):
                seen: set[str] = set()
                twice.extend(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            return result

        text = data.decode("utf-8", "replace")  # as Go reads it
        value = _clean(text, json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse_constant))
        _check_depth(data, value)
        body = Body(_mapping(value, into))
        if twice:
            body.findings = [f'duplicate field "{path}"' for path in duplicate_paths(text)]
        return body
    except RecursionError:
        raise Undecodable("exceeded max depth") from None
    except json.JSONDecodeError as error:
        raise Undecodable(_go_problem(error)) from None
    except ValueError:
        # The fast decoder and the text decoder have other words; the standard one finds the place.
        return Body(_mapping(decode_json_value(data), into))


def _decode_yaml(data: bytes, into: str) -> Body:
    from podium.text import yaml

    twice: list[str] = []
    try:
        value = yaml.load(data, twice)
    except yaml.YAMLError as error:
        raise Undecodable(str(error)) from None
    return Body({} if value is None else _mapping(value, into), twice, is_yaml=True)


_AFTER = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}


def _go_problem(error: ValueError) -> str:
    """A syntax error as Go's decoder words it."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    rest = error.doc[error.pos :].lstrip()
    if not rest or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    return f"invalid character {rest[0]!r} {_AFTER.get(error.msg, 'in string literal')}"


def _check_depth(data: bytes, value: Any) -> None:
    """Refuse values in values in values; most bodies have too few brackets to need a look."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for above in level
            for below in (above.values() if isinstance(above, dict) else above)
            if isinstance(below, dict | list)
        ]
        if not level:
            return
    raise Undecodable("exceeded max depth")


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _clean(text: str, value: Any) -> Any:
    """The value without halves of surrogate pairs, which no UTF-8 can hold; Go replaces them too."""
    return _without_surrogates(value) if _SURROGATE.search(text) else value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(below) for key, below in value.items()}
    return [_without_surrogates(below) for below in value] if isinstance(value, list) else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


def _mapping(value: Any, into: str) -> Object:
    if value is None and into == TYPE_META:
        return {}  # Go leaves a struct as it is
    if not isinstance(value, dict):
        raise Undecodable(f"json: cannot unmarshal {_json_type(value)} into Go value of type {into}")
    for name in ("apiVersion", "kind") if into == TYPE_META else ():
        if not isinstance(value.get(name, ""), str | None):
            where = f"Go struct field .{name} of type string"
            raise Undecodable(f"json: cannot unmarshal {_json_type(value[name])} into {where}")
    return value


def _json_type(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object that still has its duplicate keys."""


def duplicate_paths(text: str) -> list[str]:
    """The paths of keys that stand twice in one object of a JSON text."""
    found: dict[str, None] = {}

    def visit(value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, below in value:
                child = f"{path}.{key}" if path else key
                if key in seen:
                    found[child] = None
                seen.add(key)
                visit(below, child)
        elif isinstance(value, list):
            for position, below in enumerate(value):
                visit(below, f"{path}[{position}]")

    visit(json.loads(text, object_pairs_hook=_Pairs), "")
    return list(found)
