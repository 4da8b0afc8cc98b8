"""The OpenAPI v3 documents that clients read: one per group and version, for built-in and custom kinds.

kubectl takes from them what `explain` prints, whether a server knows `fieldValidation` and `dryRun`
(parameters of the PATCH operation of a kind), whether a kind may be patched strategically (a media type of
the same operation), and the merge keys that `apply` needs. So operations name their kind in
`x-kubernetes-group-version-kind`, and schemas carry list types and patch strategies; descriptions are not
kept. A document is built on demand and is not small: callers encode it once per fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from podium.schema import facts
from podium.schema.facts import FieldFact, Form, ResourceFact, Type, TypeFact

Document = dict[str, Any]
CustomSchemas = Mapping[str, Mapping[str, Any] | None]  # kind -> openAPIV3Schema

_META = "meta/v1"
_REF = "#/components/schemas/"
_STRATEGIC = "application/strategic-merge-patch+json"
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")


def path_of(group: str, version: str) -> str:
    """The key of a group and version in the index: `api/v1`, `apis/apps/v1`."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def index(fingerprints: Mapping[tuple[str, str], str]) -> Document:
    """The answer of /openapi/v3: where each group's and version's document is, with its fingerprint."""
    return {
        "paths": {
            path_of(group, version): {
                "serverRelativeURL": f"/openapi/v3/{path_of(group, version)}?hash={fingerprint}"
            }
            for (group, version), fingerprint in sorted(fingerprints.items())
        }
    }


def fingerprint(
    group: str, version: str, resources: Iterable[ResourceFact], crd_schemas: CustomSchemas | None = None
) -> str:
    """A text that changes whenever the document of a group and version would; cheaper than the document."""
    inputs = [facts.load().kubernetes_version, group, version, list(resources), crd_schemas or {}]
    return hashlib.sha256(msgspec.json.encode(inputs, order="deterministic")).hexdigest().upper()


def document(
    group: str, version: str, resources: Iterable[ResourceFact], crd_schemas: CustomSchemas | None = None
) -> Document:
    """The OpenAPI v3 document of one group and version; `crd_schemas` has an entry for each custom kind."""
    custom = crd_schemas or {}
    paths: dict[str, Any] = {f"/{path_of(group, version)}/": {"get": _discovery_operation(group, version)}}
    for resource in sorted(resources, key=lambda each: each.plural):
        paths.update(_paths(resource, resource.kind in custom))
    schemas: dict[str, Any] = {}
    for kind, schema in custom.items():
        schemas[_custom_name(group, version, kind)] = _custom_schema(group, version, kind, schema)
        schemas[_custom_name(group, version, f"{kind}List")] = _custom_list(group, version, kind)
    _add_references(schemas, paths)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": facts.load().kubernetes_version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "BearerToken": {
                    "description": "Bearer Token authentication",
                    "type": "apiKey",
                    "name": "authorization",
                    "in": "header",
                }
            },
        },
    }


# Schemas


def _add_references(schemas: dict[str, Any], paths: Mapping[str, Any]) -> None:
    """Adds every schema that paths or other schemas refer to, in turn."""
    waiting = [*_references(paths), *_references(schemas)]
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name] = schema_for(_by_openapi_name()[name]) if name != _PATCH else {"type": "object"}
            waiting.extend(_references(schemas[name]))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REF)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@cache
def _by_openapi_name() -> dict[str, str]:
    """Table names by OpenAPI name, of the types that OpenAPI knows."""
    return facts.load().openapi_names()


def schema_for(name: str) -> Document:
    """The schema of a built-in type, by its name in the table."""
    fact = facts.load().struct(name)
    if fact.type.form is Form.CUSTOM:
        return dict(_CUSTOM.get(name, {}))
    members = [member for member, _ in fact.members()]
    schema: Document = {"type": "object"}
    if required := [member.name for member in members if member.required]:
        schema["required"] = required
    if members:
        schema["properties"] = {member.name: property_schema(member) for member in members}
    if fact.map_type:
        schema["x-kubernetes-map-type"] = fact.map_type
    if fact.unions:
        schema["x-kubernetes-unions"] = list(fact.unions)
    if kinds := _kinds_of(fact):
        schema["description"] = (
            f"{kinds[0]['kind']}: described at https://kubernetes.io/docs/reference/kubernetes-api/"
        )
        schema["x-kubernetes-group-version-kind"] = kinds
    return schema


_CUSTOM: dict[str, Document] = {
    "api/resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "meta/v1.FieldsV1": {"type": "object"},
    "meta/v1.MicroTime": {"type": "string", "format": "date-time"},
    "meta/v1.Time": {"type": "string", "format": "date-time"},
    "runtime.RawExtension": {"type": "object"},
    "util/intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}


def _kinds_of(fact: TypeFact) -> list[dict[str, str]]:
    kind = fact.name.rpartition(".")[2]
    table = facts.load()
    if not table.is_kind(fact.name):
        return []
    versions: Iterable[tuple[str, str]] = [("", "v1")]
    if not fact.name.startswith(f"{_META}.") or kind in ("DeleteOptions", "WatchEvent"):
        versions = [gv for gv in table.group_versions if table.type_for(*gv, kind) is fact]
    return [_gvk(group, version, kind) for group, version in versions]


def property_schema(field: FieldFact) -> Document:
    """The schema of one field."""
    schema = _type_schema(field.type)
    default = field.default
    if default is None:
        schema.pop("default", None)
    else:
        schema["default"] = default
    for word, key in _EXTENSIONS.items():
        if word in field.extra:
            schema[key] = field.extra[word]
    return schema


_EXTENSIONS = {
    "format": "format",
    "list": "x-kubernetes-list-type",
    "keys": "x-kubernetes-list-map-keys",
    "map": "x-kubernetes-map-type",
    "mergeKey": "x-kubernetes-patch-merge-key",
    "strategy": "x-kubernetes-patch-strategy",
}
_SCALARS: dict[str, Document] = {
    "string": {"type": "string", "default": ""},
    "bool": {"type": "boolean", "default": False},
    "int32": {"type": "integer", "format": "int32", "default": 0},
    "int64": {"type": "integer", "format": "int64", "default": 0},
    "float64": {"type": "number", "format": "double", "default": 0},
    "bytes": {"type": "string", "format": "byte"},
}


def _type_schema(type_: Type) -> Document:
    """The schema of a value that is always there, such as an element of a list."""
    match type_.form:
        case Form.SCALAR:
            schema = dict(_SCALARS[type_.scalar])
            return schema | {"enum": list(type_.enum)} if type_.enum else schema
        case Form.LIST:
            return {"type": "array", "items": _type_schema(type_.of)}
        case Form.MAP:
            return {"type": "object", "additionalProperties": _type_schema(type_.of)}
        case Form.ANY:
            return {}
        case Form.POINTER:
            schema = _type_schema(type_.of)
            schema.pop("default", None)
            return schema
        case Form.STRUCT:
            return {"allOf": [_reference(type_)], "default": {}}
    return {"allOf": [_reference(type_)]}


def _reference(type_: Type) -> Document:
    return {"$ref": _REF + facts.load().struct(type_.name).openapi}


# Custom resources


def _custom_name(group: str, version: str, kind: str) -> str:
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def _custom_schema(group: str, version: str, kind: str, schema: Mapping[str, Any] | None) -> Document:
    if schema is None:
        # With properties, clients would take everything else as forbidden.
        return {"type": "object", "x-kubernetes-group-version-kind": [_gvk(group, version, kind)]}
    made: Document = _with_embedded(schema)
    made["properties"] = made.get("properties", {}) | _object_properties("ObjectMeta")
    made["x-kubernetes-group-version-kind"] = [_gvk(group, version, kind)]
    return made


def _object_properties(meta: str) -> Document:
    return {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [_reference(facts.load().struct(f"{_META}.{meta}").type)]},
    }


def _with_embedded(schema: Any) -> Any:
    """A copy of a structural schema in which embedded resources show their common fields."""
    if isinstance(schema, list):
        return [_with_embedded(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    verbatim = ("default", "enum", "example")
    made = {key: value if key in verbatim else _with_embedded(value) for key, value in schema.items()}
    if made.get("x-kubernetes-embedded-resource") is True:
        made["properties"] = made.get("properties", {}) | _object_properties("ObjectMeta")
        made["required"] = list(dict.fromkeys([*made.get("required", ()), "kind", "apiVersion"]))
    return made


def _custom_list(group: str, version: str, kind: str) -> Document:
    item = {"$ref": _REF + _custom_name(group, version, kind)}
    return {
        "type": "object",
        "description": f"{kind}List is a list of {kind}",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": item}} | _object_properties("ListMeta"),
        "x-kubernetes-group-version-kind": [_gvk(group, version, f"{kind}List")],
    }


# Paths

_PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
_METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
_WORDS = {"get": "read", "update": "replace", "deletecollection": "delete"}


def _parameters(**types: str) -> list[Document]:
    return [{"name": name, "in": "query", "schema": {"type": type_}} for name, type_ in types.items()]


_LIST = _parameters(
    **{"continue": "string"},  # a word of Python's
    allowWatchBookmarks="boolean",
    fieldSelector="string",
    labelSelector="string",
    limit="integer",
    resourceVersion="string",
    resourceVersionMatch="string",
    sendInitialEvents="boolean",
    timeoutSeconds="integer",
    watch="boolean",
)
_WRITE = _parameters(dryRun="string", fieldManager="string", fieldValidation="string")
_DELETE = _parameters(
    dryRun="string", gracePeriodSeconds="integer", orphanDependents="boolean", propagationPolicy="string"
)
_QUERY: dict[str, list[Document]] = {
    "list": _LIST,
    "create": _WRITE,
    "update": _WRITE,
    "patch": [*_WRITE, *_parameters(force="boolean")],
    "delete": _DELETE,
    "deletecollection": [*_LIST, *_DELETE],
}


def _paths(resource: ResourceFact, is_custom: bool) -> Iterator[tuple[str, Document]]:
    root = f"/{path_of(resource.group, resource.version)}"
    collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else None
    if collection and "list" in resource.verbs:
        everywhere = _operation(resource, "list", is_custom, suffix="ForAllNamespaces")
        yield f"{root}/{resource.plural}", {"get": everywhere}
    collection = collection or f"{root}/{resource.plural}"
    verbs = [verb for verb in resource.verbs if verb in ("list", "create", "deletecollection")]
    yield from _item(resource, collection, verbs, is_custom)
    verbs = [verb for verb in resource.verbs if verb in ("get", "update", "patch", "delete")]
    yield from _item(resource, f"{collection}/{{name}}", verbs, is_custom)
    for subresource in resource.subresources:
        kind = (subresource.group, subresource.version, subresource.kind)
        operations = {
            _METHODS[verb]: _operation(resource, verb, is_custom, kind=kind, suffix=subresource.name.title())
            for verb in subresource.verbs
            if verb in _METHODS
        }
        path = f"{collection}/{{name}}/{subresource.name}"
        yield path, operations | {"parameters": _path_parameters(path)}


def _item(
    resource: ResourceFact, path: str, verbs: list[str], is_custom: bool
) -> Iterator[tuple[str, Document]]:
    if verbs:
        operations = {_METHODS[verb]: _operation(resource, verb, is_custom) for verb in verbs}
        yield path, operations | {"parameters": _path_parameters(path)}


def _path_parameters(path: str) -> list[Document]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("namespace", "name")
        if f"{{{name}}}" in path
    ]


def _operation(
    resource: ResourceFact,
    verb: str,
    is_custom: bool,
    *,
    kind: tuple[str, str, str] | None = None,
    suffix: str = "",
) -> Document:
    group, version, name = kind or (resource.group, resource.version, resource.kind)
    method = _METHODS[verb]
    if kind and not is_custom and facts.load().type_for(*kind) is None:
        return _connection(resource, method, kind, suffix)
    answered = "Status" if method == "delete" else f"{name}List" if verb == "list" else name
    answer = {"schema": _body(group, version, answered, is_custom)}
    operation: Document = {
        "operationId": _operation_id(resource, verb, suffix),
        "tags": [f"{_camel(resource.group)}_{resource.version}"],
        "x-kubernetes-action": verb if verb in ("list", "deletecollection") else method,
        "x-kubernetes-group-version-kind": _gvk(group, version, name),
        "responses": {
            "200": {"description": "OK", "content": {"application/json": answer}},
            "401": {"description": "Unauthorized"},
        },
    }
    if verb in _QUERY:
        operation["parameters"] = _QUERY[verb]
    if verb in ("create", "update"):
        body = {"schema": _body(group, version, name, is_custom)}
        operation["requestBody"] = {"required": True, "content": {"*/*": body}}
    elif verb == "patch":
        medias = _PATCHES if is_custom else (*_PATCHES, _STRATEGIC)
        body = {"schema": {"$ref": _REF + _PATCH}}
        operation["requestBody"] = {"required": True, "content": dict.fromkeys(medias, body)}
    elif method == "delete":
        body = {"schema": _body("", "v1", "DeleteOptions", False)}
        operation["requestBody"] = {"content": {"*/*": body}}
    return operation


def _body(group: str, version: str, kind: str, is_custom: bool) -> Document:
    fact = facts.load().type_for(group, version, kind)
    if fact is not None:
        return _reference(fact.type)
    assert is_custom, kind
    return {"$ref": _REF + _custom_name(group, version, kind)}


def _connection(resource: ResourceFact, method: str, kind: tuple[str, str, str], suffix: str) -> Document:
    """An operation of `pods/exec` and its like: its kind holds options, and no objects flow."""
    read = _operation_id(resource, "connect", suffix)
    scope = "Namespaced" if resource.namespaced else ""
    at = len(read) - len(f"{scope}{resource.kind}{suffix}")
    return {
        "operationId": f"{read[:at]}{method.title()}{read[at:]}",
        "tags": [f"{_camel(resource.group)}_{resource.version}"],
        "x-kubernetes-action": "connect",
        "x-kubernetes-group-version-kind": _gvk(*kind),
        "responses": {
            "200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}},
            "401": {"description": "Unauthorized"},
        },
    }


def _discovery_operation(group: str, version: str) -> Document:
    fact = facts.load().struct(f"{_META}.APIResourceList")
    return {
        "description": "get available resources",
        "operationId": f"get{_title(group)}{version.title()}APIResources",
        "tags": [f"{_camel(group)}_{version}"],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": _reference(fact.type)}}},
            "401": {"description": "Unauthorized"},
        },
    }


def _operation_id(resource: ResourceFact, verb: str, suffix: str) -> str:
    scope = "Namespaced" if resource.namespaced and suffix != "ForAllNamespaces" else ""
    many = "Collection" if verb == "deletecollection" else ""
    versioned = f"{_title(resource.group)}{resource.version.title()}"
    return f"{_WORDS.get(verb, verb)}{versioned}{many}{scope}{resource.kind}{suffix}"


def _title(group: str) -> str:
    return "".join(part.title() for part in group.removesuffix(".k8s.io").split(".")) or "Core"


def _camel(group: str) -> str:
    title = _title(group)
    return title[0].lower() + title[1:]


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
