"""The tree that an `openAPIV3Schema` of a CustomResourceDefinition becomes.

`parse` reads the schema once; pruning, defaulting, validation, CEL and server-side apply then walk
`Structural` nodes and never the schema's JSON. Nodes are immutable, and equal nodes are one object: a CRD
that embeds a pod template three times costs one copy, and the thousands of plain `{type: string}` fields of a
bundle cost one node. Descriptions and other texts are not kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.schema import formats

Schema = Mapping[str, Any]
PythonType = type


class _Absent:
    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


# Marks "no value", where None is a value (a null default, a null old value).
ABSENT: Any = _Absent()


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of `x-kubernetes-validations`."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True)
class Checks:
    """What a value must satisfy besides its type; None or empty means unchecked."""

    enum: tuple[Any, ...] = ()
    format: str = ""
    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None


@dataclass(frozen=True, slots=True)
class Logic:
    """The quantifiers of a node."""

    all_of: tuple[Structural, ...] = ()
    any_of: tuple[Structural, ...] = ()
    one_of: tuple[Structural, ...] = ()
    not_: Structural | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Structural:
    """One node of a schema. Compared by identity, as `parse` makes equal nodes the same object."""

    type: str = ""
    nullable: bool = False
    default: Any = ABSENT
    properties: Mapping[str, Structural] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    # `additionalProperties`: a schema is `additional`, true or false is `additional_allowed`, None is unset.
    additional: Structural | None = None
    additional_allowed: bool | None = None
    items: Structural | None = None
    preserve_unknown: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Rule, ...] = ()
    checks: Checks | None = None
    logic: Logic | None = None

    # Derived facts that keep the walks short.
    accepts: frozenset[PythonType] | None = None  # Python types of valid values; None means any
    plain: bool = False  # nothing to check but the Python type
    keeps_all: bool = False  # nothing below can be pruned
    has_defaults: bool = False  # at or below this node, counting the defaults of its own properties
    has_lists: bool = False  # lists of type set or map at or below
    has_embedded: bool = False  # embedded resources at or below
    has_rules: bool = False  # CEL rules at or below
    property_defaults: tuple[tuple[str, Any, bool], ...] = ()  # name, default, nullable


_ACCEPTS: dict[str, frozenset[type]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
}
_NULL = type(None)
_interned: weakref.WeakValueDictionary[tuple[Any, ...], Structural] = weakref.WeakValueDictionary()


def parse(schema: Schema) -> Structural:
    """Return the tree of an `openAPIV3Schema` that `structuralrules.check` found no fault with."""
    properties = {name: parse(sub) for name, sub in (schema.get("properties") or {}).items()}
    items = schema.get("items")
    additional = schema.get("additionalProperties")
    checks = _parse_checks(schema)
    logic = _parse_logic(schema)
    own = {
        "type": schema.get("type", ""),
        "nullable": bool(schema.get("nullable")),
        "default": schema.get("default", ABSENT),
        "properties": properties,
        "required": tuple(schema.get("required") or ()),
        "additional": parse(additional) if isinstance(additional, Mapping) else None,
        "additional_allowed": additional if isinstance(additional, bool) else None,
        "items": parse(items) if isinstance(items, Mapping) else None,
        "preserve_unknown": bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        "embedded": bool(schema.get("x-kubernetes-embedded-resource")),
        "int_or_string": bool(schema.get("x-kubernetes-int-or-string")),
        "list_type": schema.get("x-kubernetes-list-type") or "",
        "map_keys": tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        "map_type": schema.get("x-kubernetes-map-type") or "",
        "rules": tuple(_parse_rule(r) for r in schema.get("x-kubernetes-validations") or ()),
        "checks": checks,
        "logic": logic,
    }
    if own["default"] is None:
        own["default"] = ABSENT  # Kubernetes reads `default: null` as no default
    return _intern(own)


def _intern(own: dict[str, Any]) -> Structural:
    default = own["default"]
    key = (
        *(v for k, v in own.items() if k not in ("properties", "default", "logic")),
        tuple(own["properties"].items()),
        msgspec.json.encode(default) if default is not ABSENT else None,
        own["logic"],
    )
    node = _interned.get(key)
    if node is None:
        node = _interned[key] = Structural(**own, **_derived(own))
    return node


def _derived(own: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Structural] = own["properties"]
    children = [*properties.values(), *(c for c in (own["items"], own["additional"]) if c is not None)]
    checks: Checks | None = own["checks"]
    accepts = _accepts(own, checks)
    property_defaults = tuple(
        (name, child.default, child.nullable)
        for name, child in properties.items()
        if child.default is not ABSENT
    )
    return {
        "accepts": accepts,
        "plain": checks is None
        and own["logic"] is None
        and own["items"] is None
        and not (properties or own["required"] or own["additional"] or own["additional_allowed"] is False),
        "keeps_all": own["preserve_unknown"] and not children and own["additional_allowed"] is None,
        "has_defaults": bool(property_defaults)
        or own["default"] is not ABSENT
        or any(c.has_defaults for c in children),
        "has_lists": own["list_type"] in ("set", "map") or any(c.has_lists for c in children),
        "has_embedded": own["embedded"] or any(c.has_embedded for c in children),
        "has_rules": bool(own["rules"]) or any(c.has_rules for c in children),
        "property_defaults": property_defaults,
    }


def _accepts(own: dict[str, Any], checks: Checks | None) -> frozenset[type] | None:
    if own["int_or_string"]:
        kinds = frozenset({int, str})
    elif own["type"] in _ACCEPTS:
        kinds = _ACCEPTS[own["type"]]
    else:
        return None
    if own["nullable"]:
        kinds |= {_NULL}
    if checks and checks.format and str in kinds and int not in kinds:
        kinds |= {
            list
        }  # the real server lets a list through where a string has a format; nothing else checks it
    return kinds


def _parse_checks(schema: Schema) -> Checks | None:
    checks = Checks(
        enum=tuple(_hashable(v) for v in schema.get("enum") or ()),
        format=_supported_format(schema),
        pattern=schema.get("pattern") or "",
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        minimum=schema.get("minimum"),
        maximum=schema.get("maximum"),
        exclusive_minimum=bool(schema.get("exclusiveMinimum")),
        exclusive_maximum=bool(schema.get("exclusiveMaximum")),
        multiple_of=schema.get("multipleOf"),
        min_items=schema.get("minItems"),
        max_items=schema.get("maxItems"),
        min_properties=schema.get("minProperties"),
        max_properties=schema.get("maxProperties"),
    )
    return None if checks == _NO_CHECKS else checks


_NO_CHECKS = Checks()


def _hashable(value: Any) -> Any:
    """An enum value as it is kept: scalars with their type, as 1, 1.0 and true are equal in Python."""
    return EnumValue(msgspec.json.encode(value, order="sorted"), value) if value is not None else None


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One allowed value; told apart by its JSON."""

    json: bytes
    value: Any = field(compare=False)


def _supported_format(schema: Schema) -> str:
    """The format, or nothing where the server ignores it for this type."""
    name = schema.get("format") or ""
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    return name if supported_format(kind, name) else ""


def supported_format(kind: str, name: str) -> bool:
    """Whether the server checks a format of a type."""
    if kind in ("", "string"):
        return formats.known(name)
    if kind == "integer":
        return name in ("int32", "int64")
    return kind == "number" and name in ("float", "double")


def _parse_logic(schema: Schema) -> Logic | None:
    not_ = schema.get("not")
    logic = Logic(
        all_of=tuple(parse(s) for s in schema.get("allOf") or ()),
        any_of=tuple(parse(s) for s in schema.get("anyOf") or ()),
        one_of=tuple(parse(s) for s in schema.get("oneOf") or ()),
        not_=parse(not_) if isinstance(not_, Mapping) else None,
    )
    return logic if logic.all_of or logic.any_of or logic.one_of or logic.not_ is not None else None


def _parse_rule(rule: Schema) -> Rule:
    return Rule(
        rule=rule.get("rule", ""),
        message=rule.get("message", ""),
        message_expression=rule.get("messageExpression", ""),
        reason=rule.get("reason"),
        field_path=rule.get("fieldPath", ""),
        optional_old_self=rule.get("optionalOldSelf"),
    )
