"""Custom resources and their schemas: pruning, defaults, validation, ratcheting."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.definitions import ANYTHING, Definitions, Objects, properties, version
from behaviour.support import causes, eventually, refusal

Object = dict[str, Any]

STRING: Object = {"type": "string"}
INTEGER: Object = {"type": "integer"}
SPEC: dict[str, Object] = {
    "text": STRING,
    "count": INTEGER,
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "list": {"type": "array", "items": STRING},
    "map": {"type": "object", "additionalProperties": INTEGER},
    "object": properties(a=STRING),
    "enum": {"type": "string", "enum": ["a", "b"]},
    "low": {"type": "integer", "minimum": 2},
    "high": {"type": "integer", "maximum": 2},
    "above": {"type": "integer", "minimum": 2, "exclusiveMinimum": True},
    "below": {"type": "integer", "maximum": 2, "exclusiveMaximum": True},
    "even": {"type": "integer", "multipleOf": 2},
    "long": {"type": "string", "minLength": 2},
    "short": {"type": "string", "maxLength": 2},
    "pattern": {"type": "string", "pattern": "^a+$"},
    "many": {"type": "array", "items": STRING, "minItems": 2},
    "few": {"type": "array", "items": STRING, "maxItems": 2},
    "full": {"type": "object", "additionalProperties": STRING, "minProperties": 2},
    "sparse": {"type": "object", "additionalProperties": STRING, "maxProperties": 1},
    "needy": {**properties(a=STRING), "required": ["a"]},
    "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    "keyed": {
        "type": "array",
        "items": {**properties(name=STRING, port=INTEGER), "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "one": {**properties(a=INTEGER, b=INTEGER), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "any": {**properties(a=INTEGER, b=INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "all": {"type": "integer", "allOf": [{"minimum": 2}, {"multipleOf": 2}]},
    "not": {"type": "string", "not": {"enum": ["x"]}},
    "either": {"x-kubernetes-int-or-string": True},
    "int32": {"type": "integer", "format": "int32"},
    "nullable": {"type": "string", "nullable": True},
    "free": ANYTHING,
    "half": {**properties(known=STRING), "x-kubernetes-preserve-unknown-fields": True},
    "embedded": {**ANYTHING, "x-kubernetes-embedded-resource": True},
    "withDefault": {"type": "string", "default": "given"},
    "nested": {**properties(inner={"type": "integer", "default": 3}), "default": {}},
    "optional": properties(inner={"type": "integer", "default": 3}),
    "entries": {"type": "array", "items": properties(size={"type": "integer", "default": 1})},
    "nullDefault": {"type": "string", "nullable": True, "default": "given"},
}  # fmt: skip
FORMATS = (
    "date-time",
    "date",
    "duration",
    "email",
    "uri",
    "ipv4",
    "ipv6",
    "cidr",
    "uuid",
    "byte",
    "hostname",
    "mac",
)
SPEC |= {f"format-{name}": {"type": "string", "format": name} for name in FORMATS}


@pytest.fixture(scope="module")
def kinds(definitions: Definitions) -> dict[str, Objects]:
    """The kinds of this module, made together."""
    tightened = properties(spec=properties(size=INTEGER, other=STRING))
    return {
        "Sample": definitions.add("Sample", version("v1", properties(spec=properties(**SPEC)))),
        "Loose": definitions.add(
            "Loose", version("v1", {**properties(spec=properties(a=STRING)), **ANYTHING})
        ),
        "Tightened": definitions.add("Tightened", version("v1", tightened)),
        "Named": definitions.add(
            "Named", version("v1", properties(metadata=properties(name={"type": "string", "maxLength": 3})))
        ),
    }


@pytest.fixture
def samples(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects of the kind whose schema has a field for everything."""
    return kinds["Sample"].within(namespace)


def test_unknown_fields_are_pruned(samples: Objects) -> None:
    spec = {"text": "x", "odd": 1, "object": {"a": "x", "odd": 1}, "keyed": [{"name": "a", "odd": 1}]}
    created = samples.create("pruned", spec=spec, odd=1)
    assert "odd" not in created
    wanted = {"text": "x", "object": {"a": "x"}, "keyed": [{"name": "a"}]}
    assert {key: created["spec"][key] for key in spec if key != "odd"} == wanted
    assert "odd" not in created["spec"]


def test_unknown_fields_are_named_in_warnings(samples: Objects) -> None:
    answer = samples.attempt("warned", spec={"odd": 1, "keyed": [{"name": "a", "odd": 1}]})
    assert answer.status == 201
    warnings = ['299 - "unknown field \\"spec.keyed[0].odd\\""', '299 - "unknown field \\"spec.odd\\""']
    assert answer.headers.get_all("Warning") == warnings


def test_unknown_fields_are_refused_if_asked(samples: Objects) -> None:
    answer = samples.attempt("strict", "?fieldValidation=Strict", spec={"odd": 1}, more=2)
    problem = 'strict decoding error: unknown field "more", unknown field "spec.odd"'
    text = f'Sample in version "v1" cannot be handled as a Sample: {problem}'
    assert refusal(answer) == (400, "BadRequest", text)


def test_unknown_metadata_is_refused_if_asked(samples: Objects) -> None:
    answer = samples.attempt("strict", "?fieldValidation=Strict", metadata={"odd": 1})
    problem = 'strict decoding error: unknown field "metadata.odd"'
    text = f'Sample in version "v1" cannot be handled as a Sample: {problem}'
    assert refusal(answer) == (400, "BadRequest", text)


def test_duplicate_fields_are_refused_if_asked(samples: Objects) -> None:
    body = b'{"apiVersion":"%s/v1","kind":"Sample","metadata":{"name":"x"},"spec":{"text":"a","text":"b"}}'
    body %= samples.group.encode()
    answer = samples.plain.request("POST", f"{samples.path()}?fieldValidation=Strict", body)
    problem = 'strict decoding error: duplicate field "spec.text"'
    text = f'Sample in version "v1" cannot be handled as a Sample: {problem}'
    assert refusal(answer) == (400, "BadRequest", text)


def test_unknown_fields_stay_where_the_schema_preserves_them(samples: Objects) -> None:
    free = {"anything": {"goes": [1, {"here": None}]}}
    half = {"known": "x", "unknown": {"a": [1]}}
    created = samples.create("kept", spec={"free": free, "half": half})
    assert created["spec"]["free"] == free
    assert created["spec"]["half"] == half


def test_a_schema_that_preserves_at_the_root_keeps_everything(
    kinds: dict[str, Objects], namespace: str
) -> None:
    loose = kinds["Loose"].within(namespace)
    created = loose.create("kept", odd={"a": 1}, spec={"a": "x", "b": 1})
    assert (created["odd"], created["spec"]) == ({"a": 1}, {"a": "x"})


def test_an_embedded_resource_needs_a_kind_and_a_version(samples: Objects) -> None:
    answer = samples.attempt("embedded", spec={"embedded": {"metadata": {"name": "x"}}})
    assert causes(answer) == [
        ("spec.embedded.apiVersion", "FieldValueRequired", "Required value"),
        ("spec.embedded.kind", "FieldValueRequired", "Required value"),
    ]


def test_the_metadata_of_an_embedded_resource_is_checked_and_pruned(samples: Objects) -> None:
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}, "spec": {"a": 1}}
    created = samples.create("embedded", spec={"embedded": pod})
    assert created["spec"]["embedded"] == {**pod, "metadata": {"name": "x"}}
    pod["metadata"] = {"labels": {"a b": "c"}}
    answer = samples.attempt("other", spec={"embedded": pod})
    assert [field for field, _, _ in causes(answer)] == ["spec.embedded.metadata.labels"]


def test_defaults_are_filled_in(samples: Objects) -> None:
    created = samples.create("defaults", spec={"optional": {}, "entries": [{}, {"size": 2}]})
    assert created["spec"] == {
        "withDefault": "given",
        "nested": {"inner": 3},
        "optional": {"inner": 3},
        "entries": [{"size": 1}, {"size": 2}],
        "nullDefault": "given",
    }


def test_defaults_need_their_parent(samples: Objects) -> None:
    assert "spec" not in samples.create("bare")


def test_null_is_dropped_or_defaulted_unless_nullable(samples: Objects) -> None:
    spec = {"text": None, "withDefault": None, "nullable": None, "nullDefault": None}
    created = samples.create("nulls", spec=spec)
    wanted = {"withDefault": "given", "nullable": None, "nullDefault": None, "nested": {"inner": 3}}
    assert created["spec"] == wanted


def test_a_default_that_comes_later_shows_on_old_objects(definitions: Definitions, namespace: str) -> None:
    kind = definitions.add("Growing", version("v1", properties(spec=properties(a=STRING)))).within(namespace)
    before = kind.apply("old", "test", spec={"a": "x"}).json()
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b"
    change = {"op": "add", "path": path, "value": {"type": "string", "default": "late"}}
    assert definitions.change(kind.crd_name, [change]).status == 200
    eventually(lambda: kind.read("old")["spec"] == {"a": "x", "b": "late"})
    assert kind.read("old")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_field_that_goes_from_the_schema_goes_from_old_objects(
    definitions: Definitions, namespace: str
) -> None:
    schema = properties(spec=properties(a=STRING, b=STRING))
    kind = definitions.add("Shrinking", version("v1", schema)).within(namespace)
    kind.apply("old", "test", spec={"a": "x", "b": "y"})
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b"
    assert definitions.change(kind.crd_name, [{"op": "remove", "path": path}]).status == 200
    eventually(lambda: kind.read("old")["spec"] == {"a": "x"})


TYPE = "FieldValueTypeInvalid"
INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
TOO_MANY = "FieldValueTooMany"
WRONG_TYPES: list[tuple[str, Any, str, str, str]] = [
    ("text", 1, "text", "string", "integer"),
    ("count", "1", "count", "integer", "string"),
    ("count", 1.5, "count", "integer", "number"),
    ("ratio", "1", "ratio", "number", "string"),
    ("flag", "yes", "flag", "boolean", "string"),
    ("list", {}, "list", "array", "object"),
    ("list", [1], "list[0]", "string", "integer"),
    ("map", {"a": "x"}, "map.a", "integer", "string"),
    ("object", [], "object", "object", "array"),
    ("either", 1.5, "either", "integer,string", "number"),
]


@pytest.mark.parametrize(
    ("field", "value", "where", "wanted", "actual"), WRONG_TYPES, ids=[f"{t[0]}-{t[1]}" for t in WRONG_TYPES]
)
def test_a_value_of_the_wrong_type_is_refused(
    samples: Objects, field: str, value: Any, where: str, wanted: str, actual: str
) -> None:
    answer = samples.attempt("wrong", spec={field: value})
    text = f'Invalid value: "{actual}": spec.{where} in body must be of type {wanted}: "{actual}"'
    assert answer.status == 422, answer.body.decode()
    assert (f"spec.{where}", TYPE, text) in causes(answer)


FAULTS: list[tuple[str, Any, str, str, str]] = [
    ("enum", "c", "", "FieldValueNotSupported", 'Unsupported value: "c": supported values: "a", "b"'),
    ("low", 1, "", INVALID, "Invalid value: 1: spec.low in body should be greater than or equal to 2"),
    ("high", 3, "", INVALID, "Invalid value: 3: spec.high in body should be less than or equal to 2"),
    ("above", 2, "", INVALID, "Invalid value: 2: spec.above in body should be greater than 2"),
    ("below", 2, "", INVALID, "Invalid value: 2: spec.below in body should be less than 2"),
    ("even", 3, "", INVALID, "Invalid value: 3: spec.even in body should be a multiple of 2"),
    ("long", "x", "", INVALID, 'Invalid value: "x": spec.long in body should be at least 2 chars long'),
    ("short", "xyz", "", "FieldValueTooLong", "Too long: may not be more than 2 bytes"),
    ("pattern", "b", "", INVALID, "Invalid value: \"b\": spec.pattern in body should match '^a+$'"),
    ("many", ["x"], "", INVALID, "Invalid value: 1: spec.many in body should have at least 2 items"),
    ("few", ["x", "y", "z"], "", TOO_MANY, "Too many: 3: must have at most 2 items"),
    ("full", {"a": ""}, "", INVALID, "Invalid value: 1: spec.full in body should have at least 2 properties"),
    ("sparse", {"a": "x", "b": "y"}, "", TOO_MANY, "Too many: 2: must have at most 1 item"),
    ("needy", {}, ".a", REQUIRED, "Required value"),
    ("set", ["a", "b", "a"], "[2]", "FieldValueDuplicate", 'Duplicate value: "a"'),
    ("keyed", [{"name": "a"}, {"name": "a"}], "[1]", "FieldValueDuplicate", 'Duplicate value: {"name":"a"}'),
    ("keyed", [{"port": 1}], "[0].name", REQUIRED, "Required value"),
]


@pytest.mark.parametrize(
    ("field", "value", "where", "reason", "message"), FAULTS, ids=[f"{f[0]}-{f[1]}" for f in FAULTS]
)
def test_a_value_is_refused_with_its_reason(
    samples: Objects, field: str, value: Any, where: str, reason: str, message: str
) -> None:
    answer = samples.attempt("wrong", spec={field: value})
    assert answer.status == 422, answer.body.decode()
    assert causes(answer) == [(f"spec.{field}{where}", reason, message)]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("one", {}, '"spec.one" must validate one and only one schema (oneOf). Found none valid'),
        (
            "one",
            {"a": 1, "b": 1},
            '"spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        ("any", {}, '"spec.any" must validate at least one schema (anyOf)'),
        ("all", 1, '"spec.all" must validate all the schemas (allOf). None validated'),
        ("all", 3, '"spec.all" must validate all the schemas (allOf)'),
        ("not", "x", '"spec.not" must not validate the schema (not)'),
        ("int32", 2**31, "Checked value must be of type integer with format int32 in spec.int32"),
    ],
)
def test_a_value_is_refused_as_a_whole(samples: Objects, field: str, value: Any, message: str) -> None:
    answer = samples.attempt("wrong", spec={field: value})
    assert answer.status == 422, answer.body.decode()
    assert ("<nil>", INVALID, f'Invalid value: "": {message}') in causes(answer)


GOOD: list[tuple[str, Any]] = [
    ("count", 1.0),
    ("ratio", 1),
    ("ratio", 0.5),
    ("low", 2),
    ("high", 2),
    ("above", 3),
    ("even", -4),
    ("long", "äö"),
    ("short", "äö"),
    ("pattern", "aaa"),
    ("keyed", [{"name": "a"}, {"name": "b"}]),
    ("one", {"a": 1}),
    ("any", {"a": 1, "b": 2}),
    ("all", 4),
    ("not", "y"),
    ("either", 5),
    ("either", "50%"),
    ("int32", 2**31 - 1),
]


@pytest.mark.parametrize(("field", "value"), GOOD)
def test_a_value_at_the_edge_is_accepted(samples: Objects, field: str, value: Any) -> None:
    created = samples.create("right", spec={field: value})
    assert created["spec"][field] == value


BY_FORMAT: list[tuple[str, str, str]] = [
    ("date-time", "2024-02-29T12:00:00Z", "2024-02-30T12:00:00Z"),
    ("date", "2024-02-29", "2023-02-29"),
    ("duration", "1h30m", "soon"),
    ("email", "a@example.com", "example"),
    ("uri", "https://example.com/a", "not a uri"),
    ("ipv4", "10.0.0.1", "10.0.0.256"),
    ("ipv6", "fe80::1", "10.0.0.1"),
    ("cidr", "10.0.0.0/8", "10.0.0.0"),
    ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810"),
    ("byte", "aGVsbG8=", "a"),
    ("hostname", "a.example.com", "a b"),
    ("mac", "01:02:03:04:05:06", "01:02"),
]


@pytest.mark.parametrize(("name", "good", "bad"), BY_FORMAT)
def test_a_format_is_checked(samples: Objects, name: str, good: str, bad: str) -> None:
    field = f"format-{name}"
    assert samples.attempt("good", "?dryRun=All", spec={field: good}).status == 201
    answer = samples.attempt("bad", spec={field: bad})
    text = f'Invalid value: "{bad}": spec.{field} in body must be of type {name}: "{bad}"'
    assert causes(answer) == [(f"spec.{field}", TYPE, text)]


def test_the_message_names_the_object_and_everything_wrong(samples: Objects) -> None:
    status, reason, message = refusal(samples.attempt("wrong", spec={"low": 1, "text": 2}))
    assert (status, reason) == (422, "Invalid")
    assert message.startswith(f'Sample.{samples.group} "wrong" is invalid: [')
    assert "spec.low: Invalid value: 1: spec.low in body should be greater than or equal to 2" in message
    assert 'spec.text: Invalid value: "integer": spec.text in body must be of type string' in message


@pytest.fixture
def tightened(kinds: dict[str, Objects], definitions: Definitions, namespace: str) -> Objects:
    """A kind whose schema was loose when its object `old` was made, and now has a minimum of 10."""
    kind = kinds["Tightened"].within(namespace)
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size"
    definitions.change(kind.crd_name, [{"op": "replace", "path": path, "value": INTEGER}])
    eventually(lambda: kind.apply("old", "test", spec={"size": 1}).status in (200, 201))
    stricter = {"type": "integer", "minimum": 10}
    definitions.change(kind.crd_name, [{"op": "replace", "path": path, "value": stricter}])
    eventually(lambda: kind.attempt("new", "?dryRun=All", spec={"size": 1}).status == 422)
    return kind


def test_an_unchanged_value_may_stay_invalid(tightened: Objects) -> None:
    answer = tightened.patch("old", {"spec": {"other": "x"}})
    assert (answer.status, answer.json()["spec"]) == (200, {"size": 1, "other": "x"})


def test_a_changed_value_must_be_valid(tightened: Objects) -> None:
    text = "Invalid value: 2: spec.size in body should be greater than or equal to 10"
    assert causes(tightened.patch("old", {"spec": {"size": 2}})) == [("spec.size", INVALID, text)]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"a": "b c"}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": ""}]},
            "metadata.ownerReferences.name",
        ),
    ],
)
def test_metadata_follows_the_rules_of_all_objects(samples: Objects, metadata: Object, field: str) -> None:
    answer = samples.attempt("any", metadata=metadata)
    assert answer.status == 422
    assert field in [cause[0] for cause in causes(answer)]


def test_the_schema_may_restrict_names(kinds: dict[str, Objects], namespace: str) -> None:
    named = kinds["Named"].within(namespace)
    assert named.attempt("abc").status == 201
    text = "Too long: may not be more than 3 bytes"
    assert causes(named.attempt("abcd")) == [("metadata.name", "FieldValueTooLong", text)]


def test_a_name_is_missing_together_with_everything_else(samples: Objects) -> None:
    body = samples.new("", spec={"low": 1})
    answer = samples.plain.request("POST", samples.path(), body)
    assert causes(answer) == [
        ("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"),
        ("spec.low", INVALID, "Invalid value: 1: spec.low in body should be greater than or equal to 2"),
    ]


def test_names_are_generated(samples: Objects) -> None:
    created = samples.create("", metadata={"generateName": "made-"})
    assert created["metadata"]["name"].startswith("made-")
    assert len(created["metadata"]["name"]) == len("made-") + 5


def test_a_finalizer_without_a_domain_earns_a_warning(samples: Objects) -> None:
    answer = samples.attempt(
        "held", "?dryRun=All", metadata={"finalizers": ["plain", "example.com", "a.b/c"]}
    )
    better = "prefer a domain-qualified finalizer name"
    why = "to avoid accidental conflicts with other finalizer writers"
    assert answer.headers.get_all("Warning") == [
        f'299 - "metadata.finalizers: \\"example.com\\": {better} including a path (/) {why}"',
        f'299 - "metadata.finalizers: \\"plain\\": {better} {why}"',
    ]


def test_a_finalizer_holds_an_object_until_it_goes(samples: Objects) -> None:
    samples.create("held", metadata={"finalizers": ["example.com/hold"]})
    deleted = samples.delete("held").json()
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    assert deleted["metadata"]["generation"] == 2
    added = samples.patch("held", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert {field for field, _, _ in causes(added)} == {"metadata.finalizers"}
    assert samples.patch("held", {"metadata": {"finalizers": []}}).status == 200
    assert samples.plain.request("GET", samples.path("held")).status == 404


def test_an_object_says_what_it_is(samples: Objects) -> None:
    wrong_kind = samples.new("x") | {"kind": "Other"}
    text = f'Other.{samples.group} "x" is invalid: kind: Invalid value: "Other": must be Sample'
    assert refusal(samples.plain.request("POST", samples.path(), wrong_kind)) == (422, "Invalid", text)
    wrong_version = samples.new("x") | {"apiVersion": f"{samples.group}/v2"}
    text = (
        f"the API version in the data ({samples.group}/v2) does not match the expected API version "
        f"({samples.group}/v1)"
    )
    assert refusal(samples.plain.request("POST", samples.path(), wrong_version)) == (400, "BadRequest", text)


def test_metadata_must_be_an_object(samples: Objects) -> None:
    body = samples.new("x") | {"metadata": "x"}
    problem = "json: cannot unmarshal string into Go value of type v1.ObjectMeta"
    text = f'Sample in version "v1" cannot be handled as a Sample: {problem}'
    assert refusal(samples.plain.request("POST", samples.path(), body)) == (400, "BadRequest", text)


def test_big_integers_keep_every_digit(samples: Objects) -> None:
    big = 2**62 + 1
    assert samples.create("big", spec={"count": big, "free": {"n": big}})["spec"]["count"] == big
    assert samples.read("big")["spec"]["free"] == {"n": big}
