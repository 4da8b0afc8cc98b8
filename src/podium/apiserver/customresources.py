"""Custom resources: how a CustomResourceDefinition becomes served resources.

Each served version of a definition gets a `Resource` whose codec prunes by its schema and whose strategy
defaults and validates by it. Objects are stored in the storage version; conversion is None, so the other
versions differ in `apiVersion` alone, which is exchanged at the head of the stored bytes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.kinds import metadata
from podium.apiserver.registry import Column, Resource, ScalePaths, version_priority
from podium.apiserver.store import Stored, decode, encode
from podium.apiserver.strategy import Strategy
from podium.schema import cel, coerce, facts, govalues, schemavalidation, structural
from podium.schema.fielderrors import FieldError, invalid
from podium.schema.shape import Shape
from podium.schema.structural import Structural

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def resources(definition: Object, changed_at: int) -> list[Resource]:
    """The resources that an established definition serves, one per served version.

    `changed_at` is the revision of its last change: what was stored before is read by the new schema.
    """
    served = [version for version in definition["spec"]["versions"] if version["served"]]
    return [_resource(definition, version, changed_at) for version in served]


def table_name(definition: Object) -> str:
    """Where the objects of a definition are stored."""
    return f"{definition['spec']['group']}/{definition['spec']['names']['plural']}"


def _resource(definition: Object, version: Object, changed_at: int) -> Resource:
    spec = definition["spec"]
    accepted = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
    group, name = spec["group"], version["name"]
    subresources = version.get("subresources") or {}
    schema = _schema_of(version)
    storage = next(v for v in spec["versions"] if v["storage"])
    namespaced = spec["scope"] == "Namespaced"
    has_status = "status" in subresources
    codec = CustomCodec(
        f"{group}/{name}",
        schema,
        f"{group}/{storage['name']}",
        schema if storage is version else _schema_of(storage),
        changed_at,
    )
    scale = _scale(subresources.get("scale"))
    strategy = CustomStrategy(schema, namespaced, has_status, scale)
    return Resource(
        group=group,
        version=name,
        plural=accepted["plural"],
        singular=accepted.get("singular") or accepted["kind"].lower(),
        kind=accepted["kind"],
        list_kind=accepted.get("listKind") or f"{accepted['kind']}List",
        namespaced=namespaced,
        verbs=_VERBS,
        short_names=tuple(accepted.get("shortNames") or ()),
        categories=tuple(accepted.get("categories") or ()),
        subresources=_subresources(group, name, accepted["kind"], subresources),
        table=table_name(definition),
        codec=codec,
        load_strategy=lambda: strategy,
        scale=scale,
        columns=_columns(version.get("additionalPrinterColumns")),
        selectable_fields=frozenset(
            field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()
        ),
        custom=True,
        deprecation=_deprecation(spec, version),
        terminating=bool(definition["metadata"].get("deletionTimestamp")),
        extra={"schema": (version.get("schema") or {}).get("openAPIV3Schema") or {}},
    )


def _deprecation(spec: Object, version: Object) -> str:
    """What clients of a deprecated version are told: the author's words, or which version to use instead."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    text = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    own = version_priority(version["name"])
    better = [v["name"] for v in spec["versions"] if v["served"] and not v.get("deprecated")]
    better = sorted((name for name in better if version_priority(name) < own), key=version_priority)
    return f"{text}; use {spec['group']}/{better[0]} {spec['names']['kind']}" if better else text


def _subresources(group: str, version: str, kind: str, declared: Object) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if "status" in declared:
        found["status"] = {"group": group, "version": version, "kind": kind, "verbs": _SUBRESOURCE_VERBS}
    if "scale" in declared:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": _SUBRESOURCE_VERBS}
        found["scale"] = scale
    return found


def _scale(declared: Object | None) -> ScalePaths | None:
    if declared is None:
        return None
    selector = declared.get("labelSelectorPath") or ""
    return ScalePaths(
        _path(declared["specReplicasPath"]),
        _path(declared["statusReplicasPath"]),
        _path(selector) if selector else (),
    )


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.removeprefix(".").split("."))


def _columns(declared: list[Object] | None) -> tuple[Column, ...]:
    if not declared:
        return (Column("Age", "date", ".metadata.creationTimestamp"),)
    return tuple(
        Column(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("format", ""),
            column.get("description", ""),
            column.get("priority", 0),
        )
        for column in declared
    )


def _schema_of(version: Object) -> _Schema:
    return _Schema((version.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING)


class _Schema:
    """A version's schema, parsed on first use: most definitions of a cluster are never written to."""

    def __init__(self, source: Object) -> None:
        self._source = source

    @cached_property
    def structural(self) -> Structural:
        return structural.parse(self._source)

    def problems(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        """What the schema has against an object."""
        return schemavalidation.validate(obj, self.structural, old)

    def status_problems(self, obj: Object, old: Object) -> list[FieldError]:
        """What the schema has against a new status; the rest is not looked at again."""
        found: list[FieldError] = []
        schema, status = self.structural.properties.get("status"), obj.get("status")
        if schema is not None and "status" in obj:
            found = schemavalidation.validate(status, schema, old.get("status"), "status")
        return found

    def rule_problems(self, obj: Object, old: Object | None, found: list[FieldError]) -> list[FieldError]:
        """What the rules have against an object in which these problems were found so far."""
        return cel.rule_errors(obj, self.structural, old, found)


class CustomCodec:
    """Reads and stores custom resources of one version."""

    zero: Object | None = None

    def __init__(
        self,
        api_version: str,
        schema: _Schema,
        storage_version: str,
        storage_schema: _Schema,
        definition_revision: int,
    ) -> None:
        self._api_version = api_version
        self._schema = schema
        self._storage_version = storage_version
        self._storage_schema = storage_schema
        self._definition_revision = definition_revision
        self._head = b'{"apiVersion":"%s"' % api_version.encode()
        self._storage_head = b'{"apiVersion":"%s"' % storage_version.encode()

    @cached_property
    def shape(self) -> Shape:
        return structural.shape_for(self._schema.structural, _metadata_shape())

    def admit(self, obj: Object) -> tuple[Object, list[str]]:
        kind = obj["kind"]
        version = self._api_version.rpartition("/")[2]
        try:
            given = obj.get("metadata")
            coerced = coerce.coerce({} if given is None else given, _metadata_type())
        except coerce.DecodeError as error:
            what = f'{kind} in version "{version}" cannot be handled as a {kind}'
            raise errors.bad_request(f"{what}: {error}") from None
        unknown = [f"metadata.{path}" for path in coerced.unknown]
        # apiVersion goes first, where `serve` exchanges it.
        head = {"apiVersion": obj["apiVersion"], "kind": kind, "metadata": coerced.object}
        admitted = head | {key: value for key, value in obj.items() if key not in head}
        return admitted, unknown + structural.prune(admitted, self._schema.structural)

    def serve(self, stored: Stored) -> bytes:
        if not self._is_current(stored):
            return encode(self.decode(stored))
        if self._head == self._storage_head:
            return stored.data
        if self._has_own_schema:
            return encode(self.decode(stored))
        return self._head + stored.data[len(self._storage_head) :]

    def decode(self, stored: Stored) -> Object:
        obj = decode(stored.data)
        if not self._is_current(stored):
            # Written under an older definition: readers see it as the present one would have stored it.
            structural.prune(obj, self._storage_schema.structural)
            structural.default(obj, self._storage_schema.structural)
        obj["apiVersion"] = self._api_version
        if self._has_own_schema:
            structural.prune(obj, self._schema.structural)
        return obj

    def to_storage(self, obj: Object) -> Object:
        converted = {**obj, "apiVersion": self._storage_version}
        if self._has_own_schema:
            # What the stored version does not know is lost at once, not only when it is read again.
            converted = structural.copy_json(converted)
            structural.prune(converted, self._storage_schema.structural)
            structural.default(converted, self._storage_schema.structural)
        return converted

    def is_settled(self, stored: Stored) -> bool:
        # Not after its definition changed: writing it back is how objects move to a new storage version.
        return self.to_storage(self.decode(stored)) == decode(stored.data)

    @cached_property
    def _has_own_schema(self) -> bool:
        """Whether the version differs from the stored one in more than its name; equal schemas are one."""
        if self._schema is self._storage_schema:
            return False
        return self._schema.structural is not self._storage_schema.structural

    def _is_current(self, stored: Stored) -> bool:
        return stored.revision > self._definition_revision and stored.data.startswith(self._storage_head)


def _metadata_type() -> facts.TypeFact:
    return facts.load().struct("meta/v1.ObjectMeta")


def _metadata_shape() -> Shape:
    return facts.shape_for(_metadata_type())


class CustomStrategy(Strategy):
    """The rules of one version of a custom resource, all of them from its schema."""

    unconditional_update = False

    def __init__(self, schema: _Schema, namespaced: bool, has_status: bool, scale: ScalePaths | None) -> None:
        self._schema = schema
        self._namespaced = namespaced
        self._has_status = has_status
        self._scale = scale

    @property
    def has_generation(self) -> bool:
        return True

    def raises_generation(self, new: Object, old: Object) -> bool:
        ignored = {"metadata", "status"} if self._has_status else {"metadata"}
        return {k: v for k, v in new.items() if k not in ignored} != {
            k: v for k, v in old.items() if k not in ignored
        }

    def default(self, obj: Object) -> None:
        structural.default(obj, self._schema.structural)

    def prepare_create(self, obj: Object) -> None:
        if self._has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        if self._has_status:
            _restore(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        managed = new["metadata"].get("managedFields")
        status = new.get("status")
        new.clear()
        new.update(old)
        new["metadata"] = {**old["metadata"]}
        if managed:
            new["metadata"]["managedFields"] = managed
        if status is None:
            new.pop("status", None)
        else:
            new["status"] = status

    def validate_create(self, obj: Object) -> list[FieldError]:
        problems = metadata.validate(obj, self._namespaced, names.dns_subdomain, standard_finalizers=False)
        problems += self._schema.problems(obj)
        problems += scale_problems(obj, self._scale)
        return problems + self._schema.rule_problems(obj, None, problems)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        problems = metadata.validate(new, self._namespaced, names.path_segment, standard_finalizers=False)
        problems += metadata.validate_update(new, old)
        problems += self._schema.problems(new, old)
        problems += scale_problems(new, self._scale)
        return problems + self._schema.rule_problems(new, old, problems)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        problems = metadata.validate_update(new, old)
        problems += self._schema.status_problems(new, old)
        problems += scale_problems(new, self._scale, status_only=True)
        return problems + self._schema.rule_problems(new, old, problems)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        known = (old or {}).get("metadata", {}).get("finalizers") or ()
        added = sorted(set(obj["metadata"].get("finalizers") or ()) - set(known))
        return [text for finalizer in added for text in _finalizer_advice(finalizer)]


_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")
_LARGEST_SCALE = 2**31 - 1


def _finalizer_advice(finalizer: str) -> list[str]:
    """Finalizers of custom resources may be called anything; a good name is only recommended."""
    path = f'metadata.finalizers: "{finalizer}"'
    advice = [f"{path}: {fault}" for fault in names.qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        form = "including a path (/) " if "." in finalizer else ""
        better = f"prefer a domain-qualified finalizer name {form}to avoid accidental conflicts"
        advice.append(f"{path}: {better} with other finalizer writers")
    return advice


def scale_problems(obj: Object, scale: ScalePaths | None, *, status_only: bool = False) -> list[FieldError]:
    """What is wrong with the numbers and the selector that the scale subresource would show."""
    if scale is None:
        return []
    found = [] if status_only else _replica_problems(obj, scale.spec_replicas)
    found += _replica_problems(obj, scale.status_replicas)
    if scale.selector:
        _, fault = _nested(obj, scale.selector, str)
        found += [invalid(f".{'.'.join(scale.selector)}", "", fault)] if fault else []
    return found


def _replica_problems(obj: Object, path: tuple[str, ...]) -> list[FieldError]:
    value, fault = _nested(obj, path, int)
    where = f".{'.'.join(path)}"
    if fault:
        return [invalid(where, 0, fault)]
    if value is not None and value < 0:
        return [invalid(where, value, "should be a non-negative integer")]
    if value is not None and value > _LARGEST_SCALE:
        return [invalid(where, value, f"should be less than or equal to {_LARGEST_SCALE}")]
    return []


def _nested(obj: Object, path: tuple[str, ...], kind: type) -> tuple[Any, str]:
    """The value at a path, or None where there is none; and what is wrong with it, as Go says it."""
    value: Any = obj
    for depth, step in enumerate(path):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            return None, _not_of_type(path[: depth + 1], value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if type(value) is not kind:
        return None, _not_of_type(path, value, "int64" if kind is int else "string")
    return value, ""


def _not_of_type(path: tuple[str, ...], value: Any, wanted: str) -> str:
    actual = "<nil>" if value is None else govalues.type_name(value)
    shown = govalues.show(value)
    return f".{'.'.join(path)} accessor error: {shown} is of the type {actual}, expected {wanted}"


def _restore(new: Object, old: Object, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
