"""CustomResourceDefinitions: what the real server fills in, refuses, and goes on tolerating."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from podium.schema import crd

Object = dict[str, Any]
STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}
ROOT = "spec.validation.openAPIV3Schema"
FIELD = f"{ROOT}.properties[spec].properties"


def obj(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def definition(schema: Object | None = None, **version: Any) -> Object:
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema or obj(spec=obj(a=STRING))},
            **version,
        }
    ]
    made: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
        },
    }
    return made


def errors(made: Object) -> list[str]:
    made = copy.deepcopy(made)
    crd.default_crd(made)
    return [str(e) for e in crd.validate_crd(made)]


def test_names_conversion_and_stored_versions_are_filled_in() -> None:
    made = definition()
    crd.default_crd(made)
    assert made["spec"]["names"] == {
        "plural": "things",
        "kind": "Thing",
        "singular": "thing",
        "listKind": "ThingList",
    }
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["storedVersions"] == ["v1"]


def test_the_port_of_a_conversion_webhook_is_filled_in() -> None:
    made = definition()
    service: Object = {"name": "a", "namespace": "b"}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
    crd.default_crd(made)
    assert service["port"] == 443


def test_a_good_definition_is_accepted() -> None:
    assert errors(definition()) == []


# Each text was read off kube-apiserver 1.36.
SCHEMAS: list[tuple[str, Object, list[str]]] = [
    (
        "a field without a type",
        obj(spec=obj(a={})),
        [f"{FIELD}[a].type: Required value: must not be empty for specified object fields"],
    ),
    (
        "a nullable root",
        {**obj(), "nullable": True},
        [f"{ROOT}.nullable: Forbidden: nullable cannot be true at the root"],
    ),
    (
        "a type that does not exist",
        obj(spec=obj(a={"type": "text"})),
        [
            (
                f'{FIELD}[a].type: Unsupported value: "text": supported values: "array", "boolean", '
                '"integer", "number", "object", "string"'
            )
        ],
    ),
    (
        "unique items",
        obj(spec=obj(a={"type": "array", "items": STRING, "uniqueItems": True})),
        [
            (
                f"{FIELD}[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
                "complexity becomes quadratic"
            )
        ],
    ),
    (
        "a reference",
        obj(spec=obj(a={"type": "object", "$ref": "#/x"})),
        [f"{FIELD}[a].$ref: Forbidden: $ref is not supported"],
    ),
    (
        "both kinds of properties",
        obj(spec={**obj(a=STRING), "additionalProperties": STRING}),
        [
            (
                f"{ROOT}.properties[spec].additionalProperties: Forbidden: additionalProperties and "
                "properties are mutual exclusive"
            )
        ],
    ),
    (
        "preserving set to false",
        obj(spec=obj(a={"type": "object", "x-kubernetes-preserve-unknown-fields": False})),
        [f"{FIELD}[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    ),
    (
        "a map type on a string",
        obj(spec=obj(a={**STRING, "x-kubernetes-map-type": "atomic"})),
        [f'{FIELD}[a].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified'],
    ),
    (
        "a list type that does not exist",
        obj(spec=obj(a={"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"})),
        [
            (
                f'{FIELD}[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", '
                '"set", "map"'
            )
        ],
    ),
    (
        "a set of objects",
        obj(spec=obj(a={"type": "array", "items": obj(), "x-kubernetes-list-type": "set"})),
        [
            (
                f"{FIELD}[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a "
                "list with x-kubernetes-list-type=set"
            )
        ],
    ),
    (
        "a keyed list without keys",
        obj(spec=obj(a={"type": "array", "items": obj(k=STRING), "x-kubernetes-list-type": "map"})),
        [
            (
                f"{FIELD}[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
                "x-kubernetes-list-type is map"
            )
        ],
    ),
    (
        "a key that may be missing",
        obj(
            spec=obj(
                a={
                    "type": "array",
                    "items": obj(k=STRING),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                }
            )
        ),
        [
            (
                f"{FIELD}[a].items.properties[k].default: Required value: this property is in "
                "x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
        ],
    ),
    (
        "a default of the wrong type",
        obj(spec=obj(a={**STRING, "default": 1})),
        [f'{FIELD}[a].default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    (
        "a default with unknown fields",
        obj(spec=obj(a={**obj(x=STRING), "default": {"y": 1}})),
        [f'{FIELD}[a].default: Invalid value: {{"y":1}}: must not have unknown fields'],
    ),
    (
        "a default that breaks a rule",
        obj(
            spec=obj(
                a={
                    **INTEGER,
                    "default": 3,
                    "x-kubernetes-validations": [{"rule": "self > 5", "message": "small"}],
                }
            )
        ),
        [f"{FIELD}[a].default: Invalid value: 3: small"],
    ),
    (
        "a default in the metadata",
        obj(metadata={"type": "object", "default": {}}),
        [f"{ROOT}.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
    ),
    (
        "a rule with an unknown field",
        obj(spec={**obj(a=INTEGER), "x-kubernetes-validations": [{"rule": "self.b == 1"}]}),
        [
            (
                f"{ROOT}.properties[spec].x-kubernetes-validations[0].rule: Invalid value: "
                '{"Rule":"self.b == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
                '"OptionalOldSelf":null}: compilation failed: '
                "ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^"
            )
        ],
    ),
    (
        "an empty rule",
        obj(spec=obj(a={**INTEGER, "x-kubernetes-validations": [{"rule": " "}]})),
        [f"{FIELD}[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    ),
    (
        "a rule of two lines without a message",
        obj(spec=obj(a={**INTEGER, "x-kubernetes-validations": [{"rule": "self\n== 1"}]})),
        [
            (
                f"{FIELD}[a].x-kubernetes-validations[0].message: Required value: message must be specified "
                "if rule contains line breaks"
            )
        ],
    ),
    (
        "a reason that does not exist",
        obj(spec=obj(a={**INTEGER, "x-kubernetes-validations": [{"rule": "self == 1", "reason": "X"}]})),
        [
            (
                f'{FIELD}[a].x-kubernetes-validations[0].reason: Unsupported value: "X": supported values: '
                '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
            )
        ],
    ),
    (
        "a field path that leads nowhere",
        obj(spec={**obj(a=INTEGER), "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".z"}]}),
        [
            (
                f'{ROOT}.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".z": must '
                "be a valid path"
            )
        ],
    ),
    (
        "oldSelf where values cannot be matched",
        obj(
            spec=obj(
                a={
                    "type": "array",
                    "items": {**INTEGER, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                }
            )
        ),
        [
            (
                f'{FIELD}[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": '
                f"oldSelf cannot be used on the uncorrelatable portion of the schema within {FIELD}[a]"
            )
        ],
    ),
    (
        "an optional oldSelf that is not used",
        obj(
            spec=obj(
                a={**INTEGER, "x-kubernetes-validations": [{"rule": "self == 1", "optionalOldSelf": True}]}
            )
        ),
        [
            (
                f"{FIELD}[a].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be "
                "set if oldSelf is not used in rule"
            )
        ],
    ),
]


@pytest.mark.parametrize(("schema", "expected"), [c[1:] for c in SCHEMAS], ids=[c[0] for c in SCHEMAS])
def test_a_schema_is_refused(schema: Object, expected: list[str]) -> None:
    assert errors(definition(schema)) == expected


def changed(**changes: Any) -> Object:
    made = definition()
    made["spec"] |= changes
    return made


def versions(change: Callable[[Object], None]) -> Object:
    made = definition()
    second = copy.deepcopy(made["spec"]["versions"][0]) | {"name": "v2", "storage": False}
    change(second)
    made["spec"]["versions"].append(second)
    return made


LABEL = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"  # noqa: E501
DEFINITIONS: list[tuple[str, Object, list[str]]] = [
    (
        "another name",
        {**definition(), "metadata": {"name": "x.example.com"}},
        ['metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group'],
    ),
    (
        "another scope",
        changed(scope="World"),
        ['spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'],
    ),
    (
        "a kind with an underscore",
        changed(names={"plural": "things", "kind": "Th_ing", "listKind": "L"}),
        [
            f'spec.names.singular: Invalid value: "th_ing": {LABEL}',
            (
                'spec.names.kind: Invalid value: "Th_ing": may have mixed case, but should otherwise match: '
                f"{LABEL}"
            ),
        ],
    ),
    (
        "a kind that is its own list",
        changed(names={"plural": "things", "kind": "Thing", "listKind": "Thing"}),
        ['spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same'],
    ),
    (
        "no schema",
        changed(versions=[{"name": "v1", "served": True, "storage": True}]),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"],
    ),
    (
        "preserving unknown fields",
        changed(preserveUnknownFields=True),
        [
            (
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
            )
        ],
    ),
    (
        "a scale path outside of the spec",
        definition(subresources={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".status.n"}}),
        ['spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec'],
    ),
    (
        "a column of no type",
        definition(additionalPrinterColumns=[{"name": "x", "type": "text", "jsonPath": "a"}]),
        [
            (
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
                "boolean,date,integer,number,string"
            ),
            (
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path '
                "starting with ."
            ),
        ],
    ),
    (
        "a selectable field that is an object",
        definition(selectableFields=[{"jsonPath": ".spec"}, {"jsonPath": ".spec.z"}]),
        [
            (
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type '
                "string, boolean or integer. Enum string fields and strings with formats are allowed."
            ),
            (
                'spec.selectableFields[1].jsonPath: Invalid value: ".spec.z": is an invalid path: does not '
                "refer to a valid field"
            ),
        ],
    ),
    (
        "a warning without deprecation",
        definition(deprecationWarning="x"),
        ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
    ),
    (
        "a conversion without a webhook",
        changed(conversion={"strategy": "Webhook"}),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ],
    ),
    (
        "a webhook that is not used",
        changed(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        [
            (
                "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not "
                "set to Webhook"
            )
        ],
    ),
    (
        "a schema of one of two versions",
        versions(lambda v: v.update(schema={"openAPIV3Schema": obj(spec={})})),
        [
            (
                "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be "
                "empty for specified object fields"
            )
        ],
    ),
    (
        "a group of Kubernetes",
        {**changed(group="x.k8s.io"), "metadata": {"name": "things.x.k8s.io"}},
        [
            (
                "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
                'have approval annotation "api-approved.kubernetes.io", see '
                "https://github.com/kubernetes/enhancements/pull/1111"
            )
        ],
    ),
    (
        "an approved group of Kubernetes",
        {
            **changed(group="x.k8s.io"),
            "metadata": {
                "name": "things.x.k8s.io",
                "annotations": {"api-approved.kubernetes.io": "https://github.com/x"},
            },
        },
        [],
    ),
]


@pytest.mark.parametrize(("made", "expected"), [c[1:] for c in DEFINITIONS], ids=[c[0] for c in DEFINITIONS])
def test_a_definition_is_judged(made: Object, expected: list[str]) -> None:
    assert errors(made) == expected


STORAGE = [
    ("two", lambda v: v.update(storage=True), "must have exactly one version marked as storage version"),
    ("the same name twice", lambda v: v.update(name="v1"), "must contain unique version names"),
]


@pytest.mark.parametrize(("change", "detail"), [c[1:] for c in STORAGE], ids=[c[0] for c in STORAGE])
def test_one_version_is_stored(change: Callable[[Object], None], detail: str) -> None:
    made = versions(change)
    crd.default_crd(made)
    assert ("spec.versions", detail) in [(e.path, e.detail) for e in crd.validate_crd(made)]


def updated(change: Callable[[Object], None], old: Object | None = None) -> list[str]:
    was = old or definition()
    crd.default_crd(was)
    was["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    new = copy.deepcopy(was)
    change(new)
    return [str(e) for e in crd.validate_crd_update(new, was)]


def test_scope_and_kind_of_an_established_definition_do_not_change() -> None:
    found = updated(lambda d: d["spec"].update(scope="Cluster"))
    assert found == ['spec.scope: Invalid value: "Cluster": field is immutable']


def test_a_stored_version_cannot_be_removed() -> None:
    found = updated(lambda d: d["spec"]["versions"][0].update(name="v2"))
    assert [e.partition(":")[0] for e in found] == ["status.storedVersions", "status.storedVersions[0]"]


BAD_KEYS = obj(spec=obj(a={"type": "array", "items": obj(k=STRING), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}))  # noqa: E501 # fmt: skip


def test_what_an_old_definition_did_wrong_a_new_one_may_do() -> None:
    assert errors(definition(BAD_KEYS))
    assert updated(lambda d: None, definition(BAD_KEYS)) == []


def test_what_an_old_definition_did_right_a_new_one_must_do() -> None:
    def spoil(d: Object) -> None:
        d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = BAD_KEYS

    assert len(updated(spoil)) == 1
