"""The OpenAPI v3 documents, looked at the way kubectl looks at them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.schema import facts, openapi
from podium.schema.facts import ResourceFact, SubresourceFact

Object = dict[str, Any]
SCHEMAS = "#/components/schemas/"

WIDGETS = ResourceFact(
    group="example.com",
    version="v1",
    plural="widgets",
    singular="widget",
    kind="Widget",
    namespaced=True,
    short_names=("wd",),
    categories=(),
    verbs=("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
    subresources=(
        SubresourceFact("status", "example.com", "v1", "Widget", ("get", "patch", "update")),
        SubresourceFact("scale", "autoscaling", "v1", "Scale", ("get", "patch", "update")),
    ),
    storage_version_hash="",
)


def built_in(group: str, version: str) -> Object:
    resources = [each for each in facts.load().resources if (each.group, each.version) == (group, version)]
    return openapi.document(group, version, resources)


def custom(schema: Object | None) -> Object:
    return openapi.document("example.com", "v1", [WIDGETS], {"Widget": schema})


def schema_of(document: Object, group: str, version: str, kind: str) -> Object:
    """Finds a kind's schema as kubectl does."""
    wanted = {"group": group, "version": version, "kind": kind}
    schemas: list[Object] = list(document["components"]["schemas"].values())
    return next(each for each in schemas if wanted in each.get("x-kubernetes-group-version-kind", ()))


def resolve(document: Object, schema: Object) -> Object:
    while "allOf" in schema or "$ref" in schema:
        reference = schema["$ref"] if "$ref" in schema else schema["allOf"][0]["$ref"]
        schema = document["components"]["schemas"][reference.removeprefix(SCHEMAS)]
    return schema


def walk(document: Object, schema: Object, *path: str) -> Object:
    """The property at a path, with its own extensions and not those of what it refers to."""
    for name in path:
        resolved = resolve(document, schema)
        resolved = resolve(document, resolved["items"]) if "items" in resolved else resolved
        schema = resolved["properties"][name]
    return schema


@pytest.mark.parametrize(("group", "version"), facts.load().group_versions)
def test_every_reference_of_every_document_leads_somewhere(group: str, version: str) -> None:
    document = built_in(group, version)
    schemas = document["components"]["schemas"]
    for part in msgspec.json.encode(document).split(b'"$ref":"')[1:]:
        assert part[: part.index(b'"')].decode().removeprefix(SCHEMAS) in schemas


def test_the_index_names_each_document_with_its_fingerprint() -> None:
    assert openapi.index({("", "v1"): "AB", ("apps", "v1"): "CD"}) == {
        "paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=AB"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=CD"},
        }
    }


def test_a_fingerprint_changes_with_the_schema_and_with_nothing_else() -> None:
    one = openapi.fingerprint("example.com", "v1", [WIDGETS], {"Widget": {"type": "object"}})
    assert one == openapi.fingerprint("example.com", "v1", [WIDGETS], {"Widget": {"type": "object"}})
    assert one != openapi.fingerprint(
        "example.com", "v1", [WIDGETS], {"Widget": {"type": "object", "nullable": True}}
    )


def test_the_patch_of_a_kind_knows_field_validation_and_dry_run() -> None:
    patch = built_in("apps", "v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"][
        "patch"
    ]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert patch["x-kubernetes-action"] == "patch"
    queries = {each["name"] for each in patch["parameters"] if each["in"] == "query"}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= queries


def test_only_built_in_kinds_may_be_patched_strategically() -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    medias = built_in("apps", "v1")["paths"][path]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" in medias
    path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    medias = custom({"type": "object"})["paths"][path]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in medias
    assert "application/merge-patch+json" in medias


def test_schemas_carry_what_a_strategic_merge_needs() -> None:
    document = built_in("apps", "v1")
    deployment = schema_of(document, "apps", "v1", "Deployment")
    strategy = walk(document, deployment, "spec", "strategy")
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    ports = walk(document, deployment, "spec", "template", "spec", "containers", "ports")
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]


def test_schemas_say_types_required_fields_and_enumerations() -> None:
    document = built_in("", "v1")
    pod = schema_of(document, "", "v1", "Pod")
    containers = walk(document, pod, "spec", "containers")
    assert resolve(document, containers["items"])["required"] == ["name"]
    policy = walk(document, pod, "spec", "containers", "imagePullPolicy")
    assert policy == {"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}
    secret = schema_of(document, "", "v1", "Secret")
    assert walk(document, secret, "data")["additionalProperties"] == {"type": "string", "format": "byte"}


def test_a_custom_kind_keeps_its_schema_and_gets_the_common_fields() -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer", "description": "How big."}}}
    document = custom({"type": "object", "properties": {"spec": spec, "metadata": {"type": "object"}}})
    widget = schema_of(document, "example.com", "v1", "Widget")
    assert widget["properties"]["spec"] == spec
    assert "labels" in resolve(document, widget["properties"]["metadata"])["properties"]
    assert schema_of(document, "example.com", "v1", "WidgetList")["required"] == ["items"]
    assert "com.example.v1.Widget" in document["components"]["schemas"]


def test_a_custom_kind_without_a_schema_allows_anything() -> None:
    widget = schema_of(custom(None), "example.com", "v1", "Widget")
    assert "properties" not in widget


def test_embedded_resources_show_their_common_fields() -> None:
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    document = custom({"type": "object", "properties": {"template": template}})
    made = walk(document, schema_of(document, "example.com", "v1", "Widget"), "template")
    assert set(made["properties"]) == {"apiVersion", "kind", "metadata"}
    assert set(made["required"]) == {"apiVersion", "kind"}


def test_subresources_have_the_kind_that_they_carry() -> None:
    paths = custom({"type": "object"})["paths"]
    item = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    assert paths[f"{item}/scale"]["put"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"
    assert paths[f"{item}/status"]["put"]["x-kubernetes-group-version-kind"]["kind"] == "Widget"
    exec_ = built_in("", "v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/exec"]["post"]
    assert (exec_["x-kubernetes-action"], exec_["x-kubernetes-group-version-kind"]["kind"]) == (
        "connect",
        "PodExecOptions",
    )


def test_operations_have_names_of_their_own() -> None:
    for group, version in facts.load().group_versions:
        names = [
            operation["operationId"]
            for item in built_in(group, version)["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(names) == len(set(names))
