"""The schemas inside a CRD: whether each may be used, down to its defaults and its rules.

The order is the real server's. A schema that is not structural is reported as such; its defaults are tried
out only when it is, and its rules are compiled only when everything else about it is right, because what they
would complain about is mostly a consequence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podium.schema import cel, crdrules, embedded, govalues, pruning, structuralrules
from podium.schema.crdschema import ABSENT, Structural, parse, supported_format
from podium.schema.fielderrors import Cause, FieldError, forbidden, invalid, not_supported, required
from podium.schema.schemavalidation import validate

Schema = Mapping[str, Any]
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")


@dataclass(frozen=True, slots=True)
class Leniency:
    """What an existing CRD does wrong, and may therefore go on doing."""

    may_lack_schema: bool = False
    any_type: bool = False
    not_structural: bool = False
    unpruned_defaults: bool = False
    any_set_items: bool = False
    any_map_keys: bool = False
    any_review_version: bool = False
    many_selectable_fields: frozenset[str] = frozenset()
    unchanged_schemas: frozenset[str] = frozenset()  # of these versions


def errors(
    schema: Schema | None, path: str, has_status: bool, leniency: Leniency, *, is_unchanged: bool = False
) -> list[FieldError]:
    """Return what is wrong with a schema; `path` is where its `openAPIV3Schema` stands."""
    if schema is None:
        return []
    path = f"{path}.openAPIV3Schema"
    found = _root_errors(schema, path, has_status)
    why_not = structuralrules.unsupported(schema)
    tree: Structural | None = None
    if not why_not:
        problems = structuralrules.check(schema, path) if not leniency.not_structural else []
        if not problems and not has_invalid_type(schema):
            tree = parse(schema)
            problems = _default_errors(tree, path, not leniency.unpruned_defaults)
        found += problems
        if problems:
            tree = None
    rules = crdrules.Rules(any_cost=is_unchanged)
    walk = _Walk(leniency, rules)
    walk.visit(schema, path, _Place(is_root=True), tree)
    found += walk.errors + rules.errors
    if why_not and not found:
        found.append(invalid(path, "", why_not))
    return found + rules.total_errors(path)


_AT_ROOT = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
]
_AT_ROOT_SHOWN = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields "
    "XValidations"
)


def _root_errors(schema: Schema, path: str, has_status: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if has_status:
        kind = schema.get("type", "")
        if kind and kind != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is '
                "enabled"
            )
            found.append(invalid(f"{path}.type", kind, words))
        elif any(_is_set(value) and key not in _AT_ROOT for key, value in schema.items()):
            words = (
                f"only [{_AT_ROOT_SHOWN}] fields are allowed at the root of the schema if the status "
                f"subresource is "
                "enabled"
            )
            found.append(invalid(path, dict(schema), words))
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return found


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value != ""


def _default_errors(schema: Structural, path: str, must_be_pruned: bool) -> list[FieldError]:
    """What defaults do wrong: they must be pruned, and valid values of their schema."""
    root = replace(schema, embedded=True, has_embedded=True)  # the whole object is a resource
    return _DefaultWalk(must_be_pruned).errors(root, path, root, (), False)


@dataclass(frozen=True, slots=True)
class _DefaultWalk:
    """Tries out every default of a schema."""

    must_be_pruned: bool

    def errors(
        self, node: Structural, path: str, resource: Structural, steps: tuple[str, ...], is_meta: bool
    ) -> list[FieldError]:
        """`steps` lead to the node from the resource that it is part of; an empty one enters a list."""
        if node.embedded:
            resource, steps, is_meta = node, (), False
        found: list[FieldError] = []
        if node.default is not ABSENT:
            where = f"{path}.default"
            found += self._meta_errors(node, where, resource, steps) if is_meta else self._errors(node, where)
        if node.items is not None:
            found += self.errors(node.items, f"{path}.items", resource, (*steps, ""), is_meta)
        for name, sub in node.properties.items():
            inside = is_meta or (node.embedded and name in _META)
            found += self.errors(sub, f"{path}.properties[{name}]", resource, (*steps, name), inside)
        return found

    def _errors(self, node: Structural, where: str) -> list[FieldError]:
        found: list[FieldError] = []
        value = node.default
        pruned = pruning.copy_json(value)
        pruning.prune_value(pruned, node)
        if self.must_be_pruned and not govalues.same(pruned, value):
            found.append(invalid(where, value, "must not have unknown fields"))
        faults = embedded.errors(value, node, where) if node.has_embedded else []
        return found + (faults or _value_errors(node, where))

    def _meta_errors(
        self, node: Structural, where: str, resource: Structural, steps: tuple[str, ...]
    ) -> list[FieldError]:
        """A default inside metadata, apiVersion or kind must leave an object whose metadata is valid."""
        inner: Any = node.default
        for step in reversed(steps):
            inner = {step: inner} if step else [inner]
        faults = embedded.errors({"apiVersion": "validation/v1", "kind": "Validation", **inner}, resource)
        if not faults:
            return _value_errors(node, where)
        texts = [str(fault) for fault in faults]
        joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return [invalid(where, node.default, f"must result in valid metadata: {joined}")]


def _value_errors(node: Structural, where: str) -> list[FieldError]:
    faults = validate(node.default, node, prefix=where)
    if not faults and node.has_rules:
        faults = cel.default_errors(node.default, node, where)
    return faults


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds at a place of a schema because of what is above it."""

    is_root: bool = False
    in_meta: bool = False
    no_defaults: str | None = None  # why defaults are forbidden here
    no_old_self: str = ""  # the path above which old and new values cannot be told to be the same
    occurrences: int | None = 1  # how often the place can be in one object; None if there is no limit


class _Walk:
    """Checks every schema inside a schema, each on its own terms."""

    def __init__(self, leniency: Leniency, rules: crdrules.Rules) -> None:
        self.leniency = leniency
        self.rules = rules
        self.errors: list[FieldError] = []

    def visit(self, schema: Any, path: str, place: _Place, node: Structural | None) -> None:
        if not isinstance(schema, Mapping):
            return
        before = len(self.errors)
        self.errors += _keyword_errors(schema, path, place, self.leniency)
        self._visit_children(schema, path, place, node)
        if schema.get("x-kubernetes-preserve-unknown-fields") is False:
            where = f"{path}.x-kubernetes-preserve-unknown-fields"
            self.errors.append(invalid(where, False, "must be true or undefined"))
        self.errors += _map_type_errors(schema, path)
        self.errors += _list_type_errors(schema, path, self.leniency)
        if schema.get("x-kubernetes-validations"):
            self.errors += crdrules.form_errors(schema, path)
            if node is not None and len(self.errors) == before:
                self.rules.check(node, path, place.is_root, place.no_old_self, place.occurrences)

    def _visit_children(self, schema: Schema, path: str, place: _Place, node: Structural | None) -> None:
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        often = crdrules.occurrences(place.occurrences, node)
        below = replace(place, is_root=False, occurrences=often)
        if additional is not None:
            if properties and additional is not True:
                words = "additionalProperties and properties are mutual exclusive"
                self.errors.append(forbidden(f"{path}.additionalProperties", words))
            why = (
                "inside additionalProperties applying to object metadata"
                if place.in_meta
                else place.no_defaults
            )
            inner = replace(below, no_defaults=why)
            self.visit(additional, f"{path}.additionalProperties", inner, node.additional if node else None)
        is_resource = place.is_root or bool(schema.get("x-kubernetes-embedded-resource"))
        for name, sub in properties.items():
            inner = below
            if is_resource and name in _META:
                why = f"in top-level {name}" if place.is_root else place.no_defaults
                inner = replace(below, in_meta=True, no_defaults=why)
            sub_node = node.properties.get(name) if node else None
            self.visit(sub, f"{path}.properties[{name}]", inner, sub_node)
        for key in ("allOf", "oneOf", "anyOf"):
            for index, sub in enumerate(schema.get(key) or ()):
                self.visit(sub, f"{path}.{key}[{index}]", below, None)
        self.visit(schema.get("not"), f"{path}.not", below, None)
        items = schema.get("items")
        if isinstance(items, Mapping):
            keyed = schema.get("x-kubernetes-list-type") == "map"
            inner = replace(below, no_old_self=place.no_old_self or ("" if keyed else path))
            self.visit(items, f"{path}.items", inner, node.items if node else None)


def _keyword_errors(schema: Schema, path: str, place: _Place, leniency: Leniency) -> list[FieldError]:
    found: list[FieldError] = []
    kind = schema.get("type", "")
    if kind and kind not in _TYPES and not leniency.any_type:
        found.append(not_supported(f"{path}.type", kind, _TYPES))
    if schema.get("default") is not None and place.no_defaults is not None:
        found.append(forbidden(f"{path}.default", f"must not be set {place.no_defaults}".rstrip()))
    unsupported = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
    found += [
        forbidden(f"{path}.{key}", f"{key} is not supported")
        for key in unsupported
        if schema.get(key) not in (None, "", {})
    ]
    if kind == "null":
        found.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list):
        found.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_meta and schema.get("x-kubernetes-embedded-resource"):
        where = f"{path}.x-kubernetes-embedded-resource"
        found.append(forbidden(where, "must not be used inside of resource meta"))
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(f"{path}.uniqueItems", words))
    return found


def _map_type_errors(schema: Schema, path: str) -> list[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return []
    found = _wrong_type(schema, path, "object", "x-kubernetes-map-type")
    if map_type not in ("atomic", "granular"):
        found.append(_unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return found


def _wrong_type(schema: Schema, path: str, wanted: str, key: str) -> list[FieldError]:
    kind, words = schema.get("type", ""), f"must be {wanted} if {key} is specified"
    if kind == wanted:
        return []
    return [invalid(f"{path}.type", kind, words) if kind else required(f"{path}.type", words)]


def _unsupported(path: str, value: Any, accepted: tuple[str, ...]) -> FieldError:
    """As `not_supported`, in the order in which the real server lists the values."""
    words = "supported values: " + ", ".join(f'"{a}"' for a in accepted)
    return FieldError(Cause.NOT_SUPPORTED, path, value, words)


def _list_type_errors(schema: Schema, path: str, leniency: Leniency) -> list[FieldError]:
    found: list[FieldError] = []
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    where = f"{path}.x-kubernetes-list-type"
    if list_type is not None:
        wrong = _wrong_type(schema, path, "array", "x-kubernetes-list-type")
        found += wrong
        if not wrong and list_type == "set" and not leniency.any_set_items:
            found += _set_item_errors(schema, path)
        if list_type not in ("atomic", "set", "map"):
            found.append(_unsupported(where, list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        words = "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(required(where, words) if list_type is None else invalid(where, list_type, words))
    if list_type == "map":
        found += _keyed_list_errors(schema, path, keys)
    if not leniency.any_map_keys:
        found += _map_key_errors(schema, path)
    return found


def _set_item_errors(schema: Schema, path: str) -> list[FieldError]:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return []
    words = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        return [invalid(f"{path}.items.x-kubernetes-list-type", inner, words)]
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.items.x-kubernetes-map-type", inner, words)]
    return []


def _keyed_list_errors(schema: Schema, path: str, keys: Any) -> list[FieldError]:
    found: list[FieldError] = []
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        found.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    items = schema.get("items")
    if items is None:
        found.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, Mapping):
        return found
    if items.get("type", "") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, invalid(f"{path}.items.type", items.get("type", ""), words)]
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            found.append(invalid(where, list(keys), "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(invalid(f"{path}.items.properties[{key}].type", items.get("type"), words))
        if key in keys[:index]:
            found.append(invalid(where, list(keys), "must not contain duplicate entries"))
    return found


def _map_key_errors(schema: Schema, path: str) -> list[FieldError]:
    """Items of sets and keyed lists are never null, and keys are always there."""
    items, list_type = schema.get("items"), schema.get("x-kubernetes-list-type")
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return []
    found: list[FieldError] = []
    if items.get("nullable"):
        words = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        found.append(forbidden(f"{path}.items.nullable", words))
    for key in (schema.get("x-kubernetes-list-map-keys") or ()) if list_type == "map" else ():
        sub = (items.get("properties") or {}).get(key)
        if sub is None:
            continue
        where, words = (
            f"{path}.items.properties[{key}]",
            "this property is in x-kubernetes-list-map-keys, so it",
        )
        if key not in (items.get("required") or ()) and sub.get("default") is None:
            found.append(
                required(f"{where}.default", f"{words} must have a default or be a required property")
            )
        if sub.get("nullable"):
            found.append(forbidden(f"{where}.nullable", f"{words} cannot be nullable"))
    return found


def _anywhere(schema: Schema, test: Callable[[Schema], bool]) -> bool:
    return test(schema) or any(_anywhere(sub, test) for sub in structuralrules.subschemas(schema))


def has_invalid_type(schema: Schema) -> bool:
    """Whether a type that OpenAPI does not have is used."""
    return _anywhere(schema, lambda s: bool(s.get("type")) and s["type"] not in _TYPES)


def unknown_formats(schema: Schema) -> set[str]:
    """The formats that the server does not check where they stand."""
    found: set[str] = set()

    def note(sub: Schema) -> bool:
        if sub.get("format") and not supported_format(sub.get("type", ""), sub["format"]):
            found.add(sub["format"])
        return False

    _anywhere(schema, note)
    return found


def has_non_atomic_set(schema: Schema) -> bool:
    """Whether a set has items that are not atomic."""
    return _anywhere(
        schema, lambda s: s.get("x-kubernetes-list-type") == "set" and bool(_set_item_errors(s, ""))
    )


def has_bad_map_keys(schema: Schema) -> bool:
    """Whether a keyed list has keys that may be missing."""
    return _anywhere(schema, lambda s: bool(_map_key_errors(s, "")))


def has_unpruned_defaults(schema: Schema) -> bool:
    """Whether a default has fields that its schema does not know."""
    if structuralrules.unsupported(schema) or structuralrules.check(schema, ""):
        return False
    tree = parse(schema)
    return any(e.detail == "must not have unknown fields" for e in _default_errors(tree, "", True))
