"""Definitions of custom resources: accepted, established, refused, changed and deleted."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from behaviour.definitions import (
    ANYTHING,
    CRDS,
    Definitions,
    Objects,
    condition,
    definition,
    properties,
    version,
)
from behaviour.support import causes, eventually, refusal
from harness.plain import Plain

Object = dict[str, Any]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
IN_USE = "is already in use"


@pytest.fixture
def group() -> str:
    """A group that only this test uses."""
    return f"g{secrets.token_hex(4)}.example.com"


def faults(definitions: Definitions, crd: Object) -> list[tuple[str, str, str]]:
    """Why a definition is refused."""
    answer = definitions.attempt(crd, "?dryRun=All")
    assert answer.status == 422, answer.body.decode()
    return causes(answer)


def with_schema(group: str, schema: Object, **more: Any) -> Object:
    """A definition whose only version has this schema, or whose spec has one field of this schema."""
    return definition(group, "Widget", version("v1", schema, **more))


def test_a_new_definition_is_accepted_and_established(definitions: Definitions) -> None:
    kind = definitions.add("Accepted", shortNames=["acc"], categories=["all"])
    crd = definitions.established(kind.crd_name)
    assert condition(crd, "NamesAccepted") == ("True", "NoConflicts", "no conflicts found")
    accepted = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    assert condition(crd, "Established") == accepted
    assert crd["status"]["acceptedNames"] == {
        "plural": "accepteds",
        "singular": "accepted",
        "kind": "Accepted",
        "listKind": "AcceptedList",
        "shortNames": ["acc"],
        "categories": ["all"],
    }
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["metadata"]["generation"] == 1


def test_names_and_conversion_are_filled_in(definitions: Definitions, group: str) -> None:
    crd = definition(group, "Widget")
    del crd["spec"]["names"]["singular"]
    answer = definitions.attempt(crd, "?dryRun=All").json()
    assert answer["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert answer["spec"]["conversion"] == {"strategy": "None"}
    assert answer["status"]["acceptedNames"] == {"plural": "", "kind": ""}
    assert "finalizers" not in answer["metadata"]


def test_a_new_kind_appears_in_discovery(definitions: Definitions, plain: Plain) -> None:
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    one = version("v1", ANYTHING, subresources=subresources)
    kind = definitions.add("Discovered", one, shortNames=["dsc"], categories=["all"])
    path = f"/apis/{definitions.group}/v1"

    def found() -> dict[str, Object] | None:
        listed = plain.request("GET", path).json().get("resources") or ()
        names = {each["name"]: each for each in listed}
        return names if kind.plural in names else None

    resources = eventually(found)
    main = resources[kind.plural]
    assert (main["singularName"], main["kind"], main["namespaced"]) == ("discovered", "Discovered", True)
    assert (main["shortNames"], main["categories"]) == (["dsc"], ["all"])
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert sorted(main["verbs"]) == verbs
    assert resources[f"{kind.plural}/status"]["kind"] == "Discovered"
    scale = resources[f"{kind.plural}/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_a_new_group_appears_among_the_groups(definitions: Definitions, plain: Plain) -> None:
    definitions.add("Grouped", version("v1beta1", storage=False), version("v1"), version("v2", storage=False))

    def versions() -> list[str] | None:
        groups = {each["name"]: each for each in plain.request("GET", "/apis").json()["groups"]}
        found = groups.get(definitions.group, {"versions": []})["versions"]
        names = [each["version"] for each in found]
        return names if "v2" in names else None

    assert eventually(versions) == ["v2", "v1", "v1beta1"]


def test_the_schema_of_a_new_kind_appears_in_openapi(definitions: Definitions, plain: Plain) -> None:
    schema = properties(spec=properties(size={"type": "integer", "description": "How big."}))
    definitions.add("Described", version("v1", schema))
    path = f"/openapi/v3/apis/{definitions.group}/v1"
    name = ".".join(["com", "example", definitions.group.split(".")[0], "v1", "Described"])

    def document() -> Object | None:
        answer = plain.request("GET", path)
        schemas = answer.json()["components"]["schemas"] if answer.status == 200 else {}
        return schemas.get(name)

    found = eventually(document)
    assert found["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    kinds = [{"group": definitions.group, "kind": "Described", "version": "v1"}]
    assert found["x-kubernetes-group-version-kind"] == kinds


@pytest.mark.parametrize(
    ("names", "reason", "taken"),
    [
        ({"kind": "Owner", "listKind": "Owners"}, "KindConflict", "Owner"),
        ({"listKind": "OwnerList"}, "ListKindConflict", "OwnerList"),
        ({"singular": "owner"}, "SingularConflict", "owner"),
        ({"shortNames": ["own"]}, "ShortNamesConflict", "own"),
    ],
)
def test_a_name_that_is_taken_is_not_accepted(
    definitions: Definitions, group: str, names: Object, reason: str, taken: str
) -> None:
    owner = definition(group, "Owner", shortNames=["own"])
    definitions.attempt(owner)
    definitions.established(owner["metadata"]["name"])
    late = definition(group, "Late")
    late["spec"]["names"] |= names
    definitions.attempt(late)
    name = late["metadata"]["name"]
    found = eventually(lambda: condition(definitions.read(name), "NamesAccepted"))
    assert found == ("False", reason, f'"{taken}" {IN_USE}')
    not_established = ("False", "NotAccepted", "not all names are accepted")
    assert condition(definitions.read(name), "Established") == not_established


def test_a_name_that_was_freed_is_accepted_after_all(definitions: Definitions, group: str) -> None:
    owner, late = definition(group, "Owner"), definition(group, "Late", singular="owner")
    definitions.attempt(owner)
    definitions.established(owner["metadata"]["name"])
    definitions.attempt(late)
    eventually(lambda: condition(definitions.read(late["metadata"]["name"]), "NamesAccepted"))
    definitions.plain.request("DELETE", f"{CRDS}/{owner['metadata']['name']}")
    crd = definitions.established(late["metadata"]["name"])
    assert crd["status"]["acceptedNames"]["singular"] == "owner"


def test_a_group_without_definitions_is_gone(definitions: Definitions, plain: Plain, group: str) -> None:
    crd = definition(group, "Widget")
    definitions.attempt(crd)
    definitions.established(crd["metadata"]["name"])
    eventually(lambda: plain.request("GET", f"/apis/{group}/v1").status == 200)
    plain.request("DELETE", f"{CRDS}/{crd['metadata']['name']}")
    eventually(lambda: plain.request("GET", f"/apis/{group}/v1").status == 404)
    answer = plain.request("GET", f"/apis/{group}/v1/namespaces/default/widgets")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


def test_the_name_must_be_plural_and_group(definitions: Definitions, group: str) -> None:
    crd = definition(group, "Widget")
    crd["metadata"]["name"] = "other"
    text = 'Invalid value: "other": must be spec.names.plural+"."+spec.group'
    assert faults(definitions, crd) == [("metadata.name", "FieldValueInvalid", text)]


def test_a_group_needs_a_dot(definitions: Definitions) -> None:
    text = 'Invalid value: "nodot": should be a domain with at least one dot'
    crd = definition("nodot", "Widget")
    assert faults(definitions, crd) == [("spec.group", "FieldValueInvalid", text)]


def test_a_group_of_kubernetes_needs_approval(definitions: Definitions) -> None:
    text = (
        'Required value: protected groups must have approval annotation "api-approved.kubernetes.io", '
        "see https://github.com/kubernetes/enhancements/pull/1111"
    )
    field = "metadata.annotations[api-approved.kubernetes.io]"
    crd = definition("odd.k8s.io", "Widget")
    assert faults(definitions, crd) == [(field, "FieldValueRequired", text)]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, an experiment"}
    assert definitions.attempt(crd, "?dryRun=All").status == 201


def test_a_scope_is_one_of_two(definitions: Definitions, group: str) -> None:
    text = 'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'
    crd = definition(group, "Widget", scope="Galaxy")
    assert faults(definitions, crd) == [("spec.scope", "FieldValueNotSupported", text)]


def test_a_kind_and_its_list_have_different_names(definitions: Definitions, group: str) -> None:
    text = 'Invalid value: "Widget": kind and listKind may not be the same'
    crd = definition(group, "Widget", listKind="Widget")
    assert faults(definitions, crd) == [("spec.names.listKind", "FieldValueInvalid", text)]


@pytest.mark.parametrize("storing", [0, 2])
def test_exactly_one_version_is_stored(definitions: Definitions, group: str, storing: int) -> None:
    versions = [version("v1", storage=storing > 0), version("v2", storage=storing > 1)]
    answer = definitions.attempt(definition(group, "Widget", *versions), "?dryRun=All")
    text = "must have exactly one version marked as storage version"
    assert answer.status == 422
    assert "spec.versions: Invalid value: " in answer.json()["message"]
    assert text in answer.json()["message"]


def test_two_versions_have_different_names(definitions: Definitions, group: str) -> None:
    answer = definitions.attempt(
        definition(group, "Widget", version(), version(storage=False)), "?dryRun=All"
    )
    assert answer.status == 422
    assert "must contain unique version names" in answer.json()["message"]


def test_a_version_needs_a_schema(definitions: Definitions, group: str) -> None:
    crd = definition(group, "Widget", {"name": "v1", "served": True, "storage": True})
    field = "spec.versions[0].schema.openAPIV3Schema"
    assert faults(definitions, crd) == [(field, "FieldValueRequired", "Required value")]


ROOT = "spec.validation.openAPIV3Schema"
SPEC = f"{ROOT}.properties[spec]"
BAD_SCHEMAS: dict[str, tuple[Object, str, str, str]] = {
    "no type": (
        {},
        SPEC + ".type",
        "FieldValueRequired",
        "Required value: must not be empty for specified object fields",
    ),
    "an unknown type": (
        {"type": "text"},
        SPEC + ".type",
        "FieldValueNotSupported",
        (
            'Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", '
            '"string"'
        ),
    ),
    "a type only in anyOf": (
        {"type": "object", "anyOf": [{"type": "object"}]},
        SPEC + ".anyOf[0].type",
        "FieldValueForbidden",
        "Forbidden: must be empty to be structural",
    ),
    "a default in anyOf": (
        {"type": "object", "anyOf": [{"default": 1}]},
        SPEC + ".anyOf[0].default",
        "FieldValueForbidden",
        "Forbidden: must be undefined to be structural",
    ),
    "a default of the wrong type": (
        {"type": "integer", "default": "x"},
        SPEC + ".default",
        "FieldValueTypeInvalid",
        'Invalid value: "string":  in body must be of type integer: "string"',
    ),
    "a default with unknown fields": (
        {"type": "object", "default": {"a": 1}},
        SPEC + ".default",
        "FieldValueInvalid",
        'Invalid value: {"a":1}: must not have unknown fields',
    ),
    "unique items": (
        {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
        SPEC + ".uniqueItems",
        "FieldValueForbidden",
        "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ),
    "properties and additionalProperties": (
        {**properties(a={"type": "string"}), "additionalProperties": {"type": "string"}},
        SPEC + ".additionalProperties",
        "FieldValueForbidden",
        "Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    "a pattern that is none": (
        {"type": "string", "pattern": "("},
        SPEC + ".pattern",
        "FieldValueInvalid",
        (
            'Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: '
            "missing closing ): `(`"
        ),
    ),
    "a list type on an object": (
        {"type": "object", "x-kubernetes-list-type": "set"},
        SPEC + ".type",
        "FieldValueInvalid",
        'Invalid value: "object": must be array if x-kubernetes-list-type is specified',
    ),
    "an unknown list type": (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"},
        SPEC + ".x-kubernetes-list-type",
        "FieldValueNotSupported",
        'Unsupported value: "bag": supported values: "atomic", "set", "map"',
    ),
    "a keyed list without keys": (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
        SPEC + ".x-kubernetes-list-map-keys",
        "FieldValueRequired",
        "Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    "a key that may be missing": (
        {
            "type": "array",
            "items": properties(name={"type": "string"}),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        SPEC + ".items.properties[name].default",
        "FieldValueRequired",
        (
            "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be "
            "a required property"
        ),
    ),
    "a set of objects": (
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
        SPEC + ".items.x-kubernetes-map-type",
        "FieldValueInvalid",
        "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
    ),
    "an int-or-string that is an integer": (
        {"type": "integer", "x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]},
        SPEC + ".anyOf[0].type",
        "FieldValueForbidden",
        "Forbidden: must be empty to be structural",
    ),
    "preserve-unknown-fields set to false": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
        SPEC + ".x-kubernetes-preserve-unknown-fields",
        "FieldValueInvalid",
        "Invalid value: false: must be true or undefined",
    ),
    "an embedded string": (
        {"type": "string", "x-kubernetes-embedded-resource": True},
        SPEC + ".type",
        "FieldValueInvalid",
        'Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
    ),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_a_schema_is_refused_for(definitions: Definitions, group: str, case: str) -> None:
    schema, field, reason, message = BAD_SCHEMAS[case]
    found = faults(definitions, with_schema(group, properties(spec=schema)))
    assert (field, reason, message) in found


def test_metadata_may_only_be_restricted_by_name(definitions: Definitions, group: str) -> None:
    schema = properties(metadata=properties(labels={"type": "object"}))
    text = (
        "Forbidden: must not specify anything other than name and generateName, "
        "but metadata is implicitly specified"
    )
    assert (f"{ROOT}.properties[metadata]", "FieldValueForbidden", text) in faults(
        definitions, with_schema(group, schema)
    )


@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        ({"jsonPath": "odd"}, "JSONPath", "must be a simple json path starting with ."),
        ({"type": "odd"}, "type", "must be one of boolean,date,integer,number,string"),
        ({"format": "odd"}, "format", "must be one of byte,date,date-time,double,float,int32,int64,password"),
    ],
)
def test_a_printer_column_must_make_sense(
    definitions: Definitions, group: str, column: Object, field: str, message: str
) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"} | column]
    crd = with_schema(group, ANYTHING, additionalPrinterColumns=columns)
    where = f"spec.additionalPrinterColumns[0].{field}"
    assert faults(definitions, crd) == [(where, "FieldValueInvalid", f'Invalid value: "odd": {message}')]


def test_scale_paths_must_be_where_they_belong(definitions: Definitions, group: str) -> None:
    scale = {"specReplicasPath": ".status.n", "statusReplicasPath": "status.n"}
    crd = with_schema(group, ANYTHING, subresources={"scale": scale})
    assert faults(definitions, crd) == [
        (
            "spec.subresources.scale.specReplicasPath",
            "FieldValueInvalid",
            'Invalid value: ".status.n": should be a json path under .spec',
        ),
        (
            "spec.subresources.scale.statusReplicasPath",
            "FieldValueInvalid",
            'Invalid value: "status.n": must be a simple json path starting with .',
        ),
    ]


def test_a_selectable_field_must_be_a_known_scalar(definitions: Definitions, group: str) -> None:
    schema = properties(spec=properties(tags={"type": "array", "items": {"type": "string"}}))
    crd = with_schema(group, schema, selectableFields=[{"jsonPath": ".spec.tags"}, {"jsonPath": ".spec.odd"}])
    found = faults(definitions, crd)
    assert [field for field, _, _ in found] == [
        "spec.selectableFields[0].jsonPath",
        "spec.selectableFields[1].jsonPath",
    ]
    assert "must point to a field of type string, boolean or integer" in found[0][2]
    assert "is an invalid path" in found[1][2]


def test_an_unknown_format_earns_a_warning(definitions: Definitions, group: str) -> None:
    crd = with_schema(group, properties(spec={"type": "string", "format": "odd"}))
    answer = definitions.attempt(crd, "?dryRun=All")
    assert answer.status == 201
    assert answer.headers.get_all("Warning") == ['299 - "unrecognized format \\"odd\\""']


def test_an_unknown_field_of_a_definition_is_refused_if_asked(definitions: Definitions, group: str) -> None:
    crd = definition(group, "Widget", version("v1", {"type": "object", "propertees": {}}))
    answer = definitions.attempt(crd, "?dryRun=All&fieldValidation=Strict")
    field = "spec.versions[0].schema.openAPIV3Schema.propertees"
    text = (
        'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '
        f'strict decoding error: unknown field "{field}"'
    )
    assert refusal(answer) == (400, "BadRequest", text)


def test_a_definition_of_an_old_version_is_recognized(definitions: Definitions, group: str) -> None:
    crd = definition(group, "Widget") | {"apiVersion": "apiextensions.k8s.io/v1beta1"}
    text = (
        "the API version in the data (apiextensions.k8s.io/v1beta1) does not match the expected API version "
        "(apiextensions.k8s.io/v1)"
    )
    assert refusal(definitions.attempt(crd, "?dryRun=All")) == (400, "BadRequest", text)


@pytest.fixture(scope="module")
def changing(definitions: Definitions) -> Objects:
    """A kind whose definition tests try to change."""
    kind = definitions.add("Changing", version("v1"), version("v2", storage=False))
    definitions.established(kind.crd_name)
    return kind


@pytest.mark.parametrize(
    ("field", "value"), [("group", "other.example.com"), ("scope", "Cluster"), ("names/kind", "Other")]
)
def test_what_an_established_definition_cannot_change(
    definitions: Definitions, changing: Objects, field: str, value: str
) -> None:
    answer = definitions.change(
        changing.crd_name, [{"op": "replace", "path": f"/spec/{field}", "value": value}]
    )
    assert answer.status == 422
    where = f"spec.{field.replace('/', '.')}"
    wrong = (where, "FieldValueInvalid", f'Invalid value: "{value}": field is immutable')
    assert wrong in causes(answer)


def test_a_version_that_was_stored_cannot_be_removed(definitions: Definitions) -> None:
    kind = definitions.add("Migrating", version("v1"), version("v2", storage=False))
    moved = definitions.change(
        kind.crd_name,
        [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ],
    )
    assert moved.json()["status"]["storedVersions"] == ["v1", "v2"]
    answer = definitions.change(kind.crd_name, [{"op": "remove", "path": "/spec/versions/0"}])
    text = (
        'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must '
        "remain in spec.versions until a storage migration ensures no data remains persisted in v1 and "
        "removes v1 from status.storedVersions"
    )
    assert causes(answer) == [("status.storedVersions[0]", "FieldValueInvalid", text)]


def test_a_migrated_version_can_be_removed(definitions: Definitions) -> None:
    kind = definitions.add("Migrated", version("v1"), version("v2", storage=False))
    definitions.established(kind.crd_name)
    definitions.change(
        kind.crd_name,
        [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ],
    )
    status = [{"op": "replace", "path": "/status/storedVersions", "value": ["v2"]}]
    headers = {"Content-Type": "application/json-patch+json"}
    path = f"{CRDS}/{kind.crd_name}/status"
    assert definitions.plain.request("PATCH", path, status, headers=headers).status == 200
    answer = definitions.change(kind.crd_name, [{"op": "remove", "path": "/spec/versions/0"}])
    assert answer.status == 200
    assert answer.json()["status"]["storedVersions"] == ["v2"]


def test_only_a_changed_spec_raises_the_generation(definitions: Definitions, changing: Objects) -> None:
    before = definitions.read(changing.crd_name)["metadata"]["generation"]
    labelled = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    assert definitions.change(changing.crd_name, labelled).json()["metadata"]["generation"] == before
    named = [{"op": "add", "path": "/spec/names/shortNames", "value": ["chg"]}]
    assert definitions.change(changing.crd_name, named).json()["metadata"]["generation"] == before + 1


def test_an_update_needs_a_resource_version(definitions: Definitions, changing: Objects) -> None:
    crd = definitions.read(changing.crd_name)
    del crd["metadata"]["resourceVersion"]
    answer = definitions.plain.request("PUT", f"{CRDS}/{changing.crd_name}", crd)
    text = "Invalid value: 0: must be specified for an update"
    assert causes(answer) == [("metadata.resourceVersion", "FieldValueInvalid", text)]


def test_new_short_names_show_in_discovery(definitions: Definitions, plain: Plain) -> None:
    kind = definitions.add("Renamed", shortNames=["old"])
    definitions.established(kind.crd_name)
    definitions.change(kind.crd_name, [{"op": "replace", "path": "/spec/names/shortNames", "value": ["new"]}])

    def short_names() -> bool:
        listed = plain.request("GET", f"/apis/{definitions.group}/v1").json().get("resources") or ()
        return any(r["name"] == kind.plural and r.get("shortNames") == ["new"] for r in listed)

    eventually(short_names)


def test_deletion_is_announced_and_takes_the_objects_along(
    definitions: Definitions, plain: Plain, namespace: str
) -> None:
    kind = definitions.add("Doomed").within(namespace)
    assert kind.apply("one", "test").status == 201
    deleted = plain.request("DELETE", f"{CRDS}/{kind.crd_name}").json()
    assert deleted["metadata"]["finalizers"] == [CLEANUP]
    assert condition(deleted, "Terminating") == (
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    eventually(lambda: plain.request("GET", f"{CRDS}/{kind.crd_name}").status == 404)
    eventually(lambda: plain.request("GET", kind.path("one")).status == 404)


def test_a_finalizer_of_an_object_holds_the_definition(
    definitions: Definitions, plain: Plain, namespace: str
) -> None:
    kind = definitions.add("Held").within(namespace)
    kind.apply("one", "test", metadata={"finalizers": ["example.com/hold"]})
    plain.request("DELETE", f"{CRDS}/{kind.crd_name}")
    eventually(lambda: "deletionTimestamp" in kind.read("one")["metadata"])
    state = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    eventually(lambda: condition(definitions.read(kind.crd_name), "Terminating") == state)
    assert kind.patch("one", {"metadata": {"finalizers": None}}).status == 200
    eventually(lambda: plain.request("GET", f"{CRDS}/{kind.crd_name}").status == 404)


def test_nothing_is_created_while_the_definition_goes(
    definitions: Definitions, plain: Plain, namespace: str
) -> None:
    kind = definitions.add("Closing").within(namespace)
    kind.apply("one", "test", metadata={"finalizers": ["example.com/hold"]})
    plain.request("DELETE", f"{CRDS}/{kind.crd_name}")
    eventually(lambda: "deletionTimestamp" in kind.read("one")["metadata"])
    why = "create not allowed while custom resource definition is terminating"
    text = f'{kind.crd_name} "two" is forbidden: {why}'
    assert refusal(kind.attempt("two")) == (403, "Forbidden", text)
    assert refusal(kind.apply("two", "test")) == (403, "Forbidden", text)
    assert kind.patch("one", {"metadata": {"finalizers": None}}).status == 200


def test_a_definition_that_was_never_established_goes_at_once(
    definitions: Definitions, plain: Plain, group: str
) -> None:
    owner, late = definition(group, "Owner"), definition(group, "Late", singular="owner")
    definitions.attempt(owner)
    definitions.established(owner["metadata"]["name"])
    definitions.attempt(late)
    path = f"{CRDS}/{late['metadata']['name']}"
    eventually(lambda: condition(plain.request("GET", path).json(), "NamesAccepted"))
    assert plain.request("DELETE", path).status == 200
    eventually(lambda: plain.request("GET", path).status == 404)


def test_a_definition_can_be_made_again_without_its_old_objects(
    definitions: Definitions, plain: Plain, namespace: str
) -> None:
    kind = definitions.add("Reborn").within(namespace)
    kind.apply("one", "test")
    plain.request("DELETE", f"{CRDS}/{kind.crd_name}")
    eventually(lambda: plain.request("GET", f"{CRDS}/{kind.crd_name}").status == 404)
    again = definitions.add("Reborn").within(namespace)
    assert again.names() == []
