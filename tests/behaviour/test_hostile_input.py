"""Input that no honest client sends: refused with a Status, and the server goes on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import pytest

from behaviour.collection import APPLY, JSON, MERGE, STRATEGIC, Collection, config_map, done
from behaviour.scratch import Scratch, named
from behaviour.support import eventually, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain

YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"
HEAD = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":'
TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@pytest.fixture(autouse=True)
def still_answers(plain: Plain) -> Iterator[None]:
    """Whatever a test sent, the server answers the next request."""
    yield
    assert plain.request("GET", "/readyz").body == b"ok"


def nested(depth: int) -> bytes:
    """Objects in each other."""
    return b'{"a":' * depth + b"1" + b"}" * depth


def alias_bomb() -> bytes:
    """A few hundred bytes of YAML that stand for 9^9 values."""
    letters = range(ord("b"), ord("j"))
    repeated = [b"%c: &%c [%s]" % (own, own, b",".join([b"*%c" % (own - 1)] * 9)) for own in letters]
    return b"\n".join([b"a: &a [x,x,x,x,x,x,x,x,x]", *repeated])


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NOT_JSON = f"{UNRECOGNIZED}couldn't get version/kind; json parse error: "
CANNOT = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", f"{NOT_JSON}unexpected end of JSON input (<empty>)", id="nothing"),
        pytest.param(b"{", f"{NOT_JSON}unexpected end of JSON input ({{)", id="cut off"),
        pytest.param(
            b'{"a":}',
            f"{NOT_JSON}invalid character '}}' looking for beginning of value ({{\"a\":}})",
            id="no value",
        ),
        pytest.param(
            b"[]",
            f"{NOT_JSON}json: cannot unmarshal array into Go value of type {TYPE_META} (5b5d)",
            id="array",
        ),
        pytest.param(
            b'"x"',
            f"{NOT_JSON}json: cannot unmarshal string into Go value of type {TYPE_META} (227822)",
            id="string",
        ),
        pytest.param(
            HEAD + b"NaN}", f"{NOT_JSON}invalid character 'N' looking for beginning of value", id="NaN"
        ),
        pytest.param(HEAD + b"{}} x", f"{NOT_JSON}invalid character 'x' after top-level value", id="more"),
        pytest.param(
            HEAD + b'{"a":3}}',
            f"{CANNOT}json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            id="number for text",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}',
            f"{CANNOT}json: cannot unmarshal string into Go struct field ConfigMap.metadata of type",
            id="text for metadata",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":3}',
            f"{NOT_JSON}json: cannot unmarshal number into Go struct field .kind of type string",
            id="number for kind",
        ),
        pytest.param(HEAD + nested(20_000) + b"}", NOT_JSON, id="deep objects"),
        pytest.param(b"[" * 200_000, NOT_JSON, id="deep arrays"),
    ],
)
def test_a_json_body_that_cannot_be_read_is_a_bad_request(
    config_maps: Collection, body: bytes, message: str
) -> None:
    code, reason, said = refusal(config_maps.create(body))
    assert (code, reason) == (400, "BadRequest")
    assert said.startswith(message)


@pytest.mark.parametrize("body", [b"null", b"{}"])
def test_a_body_that_says_nothing_lacks_a_name(config_maps: Collection, body: bytes) -> None:
    message = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert refusal(config_maps.create(body)) == (422, "Invalid", message)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(HEAD + b'{"a":"\xff\xfe"}}', "\ufffd\ufffd", id="not UTF-8"),
        pytest.param(HEAD + b'{"a":"\\ud800"}}', "\ufffd", id="half a surrogate pair"),
        pytest.param(HEAD + b'{"a":"\\ud83d\\ude00"}}', "\U0001f600", id="a whole surrogate pair"),
    ],
)
def test_text_that_is_not_unicode_is_replaced(config_maps: Collection, body: bytes, text: str) -> None:
    assert done(config_maps.create(body))["data"] == {"a": text}
    assert done(config_maps.get("one"))["data"] == {"a": text}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"a: [", id="cut off"),
        pytest.param(b"\ta: b", id="tab"),
        pytest.param(b"- a", id="list"),
        pytest.param(alias_bomb(), id="alias bomb"),
        pytest.param(b"[" * 100_000, id="deep lists"),
        pytest.param(b"a: &a\n  b: *a\n", id="alias of itself"),
    ],
)
def test_a_yaml_body_that_cannot_be_read_is_a_bad_request(config_maps: Collection, body: bytes) -> None:
    code, reason, message = refusal(config_maps.create(body, content_type=YAML))
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith(UNRECOGNIZED)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"abc", id="no prefix"),
        pytest.param(b"k8s\0", id="prefix alone"),
        pytest.param(b"k8s\0\xff\xff\xff", id="garbage"),
        pytest.param(b"k8s\0\x0a\xff\xff\xff\xff\x0f", id="length beyond the end"),
    ],
)
def test_a_protobuf_body_that_cannot_be_read_is_refused(config_maps: Collection, body: bytes) -> None:
    answer = config_maps.create(body, content_type=PROTOBUF)
    # An envelope with nothing in it is an object without a name.
    assert refusal(answer)[:2] in ((400, "BadRequest"), (422, "Invalid"))


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/cbor", ";;;"])
def test_a_body_of_an_unknown_type_is_unsupported(config_maps: Collection, kind: str) -> None:
    answer = config_maps.create(json.dumps(config_map("one")).encode(), content_type=kind)
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    assert refusal(answer) == (415, "UnsupportedMediaType", message)


def test_a_body_without_a_type_is_json(config_maps: Collection) -> None:
    made = json.dumps(config_map("one")).encode()
    assert done(config_maps.create(made, content_type=""))["metadata"]["name"] == "one"


def test_a_body_that_is_too_large_is_refused(config_maps: Collection) -> None:
    body = HEAD + b'{"a":"' + b"x" * (4 << 20) + b'"}}'
    message = "Request entity too large: limit is 3145728"
    assert refusal(config_maps.create(body)) == (413, "RequestEntityTooLarge", message)
    patch = b'{"data":{"a":"' + b"x" * (4 << 20) + b'"}}'
    assert refusal(config_maps.patch("one", patch)) == (413, "RequestEntityTooLarge", message)


def test_an_object_that_is_too_large_for_its_kind_is_invalid(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", {"a": "x" * (2 << 20)}))
    message = 'ConfigMap "one" is invalid: []: Too long: may not be more than 1048576 bytes'
    assert refusal(answer) == (422, "Invalid", message)


def test_a_key_that_stands_twice_is_refused_when_strict_and_warned_about_otherwise(
    config_maps: Collection,
) -> None:
    body = HEAD + b'{"a":"1","a":"2"}}'
    strict = config_maps.create(body, query="fieldValidation=Strict")
    message = f'{CANNOT}strict decoding error: duplicate field "data.a"'
    assert refusal(strict) == (400, "BadRequest", message)
    lenient = config_maps.create(body)
    assert lenient.headers["Warning"] == '299 - "duplicate field \\"data.a\\""'
    assert done(lenient)["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(MERGE, b"", id="merge: nothing"),
        pytest.param(MERGE, b"{", id="merge: cut off"),
        pytest.param(MERGE, b"[]", id="merge: array"),
        pytest.param(MERGE, b"null", id="merge: null"),
        pytest.param(MERGE, b'{"data":NaN}', id="merge: NaN"),
        pytest.param(MERGE, b'{"data":' + nested(20_000) + b"}", id="merge: deep"),
        pytest.param(JSON, b"", id="json: nothing"),
        pytest.param(JSON, b"{}", id="json: object"),
        pytest.param(JSON, b'[{"op":"add","path":"/data","value":' + nested(20_000) + b"}]", id="json: deep"),
        pytest.param(STRATEGIC, b"", id="strategic: nothing"),
        pytest.param(STRATEGIC, b"{", id="strategic: cut off"),
        pytest.param(STRATEGIC, b"[]", id="strategic: array"),
        pytest.param(STRATEGIC, b'{"data":' + nested(20_000) + b"}", id="strategic: deep"),
        pytest.param(APPLY, b"", id="apply: nothing"),
        pytest.param(APPLY, b"a: [", id="apply: cut off"),
        pytest.param(APPLY, b"- a", id="apply: list"),
        pytest.param(APPLY, b"{}", id="apply: empty"),
        pytest.param(APPLY, alias_bomb(), id="apply: alias bomb"),
        pytest.param(APPLY, HEAD + nested(20_000) + b"}", id="apply: deep"),
    ],
)
def test_a_patch_that_cannot_be_read_is_a_bad_request(plain: Plain, kind: str, patch: bytes) -> None:
    kube_root_ca = Collection(plain, "/api/v1/namespaces/default/configmaps")
    query = "fieldManager=me" if kind == APPLY else ""
    assert refusal(kube_root_ca.patch("kube-root-ca.crt", patch, kind, query=query))[:2] == (
        400,
        "BadRequest",
    )


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "destroy", "path": "/data"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "add", "value": 1},
        {"op": "replace", "path": "/data/missing/below", "value": 1},
    ],
    ids=lambda operation: str(operation["op"]),
)
def test_an_operation_that_cannot_be_done_is_invalid(
    config_maps: Collection, operation: dict[str, object]
) -> None:
    done(config_maps.create(config_map("one", {"a": "b"})))
    message = "the server rejected our request due to an error in our request"
    assert refusal(config_maps.patch("one", [operation], JSON)) == (422, "Invalid", message)


def test_a_patch_may_have_ten_thousand_operations_and_no_more(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "b"})))
    operations = [{"op": "add", "path": "/data/a", "value": str(number)} for number in range(10_001)]
    assert done(config_maps.patch("one", operations[:-1], JSON))["data"] == {"a": "9999"}
    message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    answer = config_maps.patch("one", operations, JSON)
    assert refusal(answer) == (413, "RequestEntityTooLarge", message)


def test_a_patch_of_an_unknown_type_is_unsupported(config_maps: Collection) -> None:
    answer = config_maps.patch("one", b"{}", "application/json")
    assert refusal(answer) == (415, "UnsupportedMediaType", "415: Unsupported Media Type")


@pytest.mark.parametrize("body", [b"garbage", b"[]", b'{"gracePeriodSeconds":"soon"}'])
def test_delete_options_that_cannot_be_read_delete_nothing(config_maps: Collection, body: bytes) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.plain.request("DELETE", config_maps.at("one"), body)
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert config_maps.get("one").status == 200


def test_a_custom_resource_that_is_no_object_is_refused(widgets: Collection, widget_kind: Widgets) -> None:
    for body in (b"", b"[]", b"null", b"{", b"{}", json.dumps(widget_kind.widget("one"))[:-1].encode()):
        code, reason, message = refusal(widgets.create(body))
        assert (code, reason) == (400, "BadRequest"), body
        assert message.startswith("the object provided is unrecognized (must be of type Widget): ")


def test_a_custom_resource_may_be_as_deep_as_its_schema_allows(
    widgets: Collection, widget_kind: Widgets
) -> None:
    body = json.dumps(widget_kind.widget("one", spec={"deep": "HERE"})).encode()
    answer = widgets.create(body.replace(b'"HERE"', nested(200)))
    assert done(answer)["spec"] == {}
    answer = widgets.create(body.replace(b'"HERE"', nested(20_000)))
    assert refusal(answer)[:2] == (400, "BadRequest")


def test_a_selector_of_many_terms_is_read(plain: Plain) -> None:
    selector = ",".join(["a%3Db"] * 25_000)
    answer = plain.request("GET", f"/api/v1/namespaces?labelSelector={selector}")
    assert (answer.status, answer.json()["items"]) == (200, [])


def test_headers_that_are_too_large_are_refused(plain: Plain) -> None:
    answer = plain.request("GET", "/api/v1/namespaces", headers={"X-Large": "x" * 2_000_000})
    assert (answer.status, answer.body.strip()) == (431, b"431 Request Header Fields Too Large")


@pytest.mark.parametrize("name", ["%00", "%ff", "x" * 300, "%E2%80%AE", "a%20b", "-", "A"])
def test_a_strange_name_is_not_found(plain: Plain, name: str) -> None:
    answer = plain.request("GET", f"/api/v1/namespaces/default/configmaps/{name}")
    assert refusal(answer)[:2] == (404, "NotFound")


def test_an_escaped_slash_is_a_slash(plain: Plain) -> None:
    answer = plain.request("GET", "/api/v1/namespaces/default/configmaps/a%2Fb")
    assert refusal(answer) == (404, "NotFound", "the server could not find the requested resource")


def test_a_query_that_cannot_be_decoded_is_ignored(plain: Plain) -> None:
    assert plain.request("GET", "/api/v1/namespaces?%zz=1").status == 200


def test_a_compressed_body_is_not_unpacked(config_maps: Collection, plain: Plain) -> None:
    body = gzip.compress(HEAD + b'{"a":"' + b"x" * 500_000 + b'"}}')
    answer = plain.request("POST", config_maps.path, body, headers={"Content-Encoding": "gzip"})
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert "invalid character" in refusal(answer)[2]


def test_warnings_are_cut_before_they_outgrow_the_headers(config_maps: Collection, plain: Plain) -> None:
    unknown = {f"unknown-{number}-{'x' * 300}": 1 for number in range(200)}
    answer = plain.request("POST", config_maps.path, config_map("one") | unknown)
    assert answer.status == 201
    warnings = answer.headers.get_all("Warning") or []
    texts = [text.removeprefix('299 - "').removesuffix('"').replace("\\", "") for text in warnings]
    assert {len(text) for text in texts} == {256}
    assert len(texts) == 16


@pytest.mark.parametrize(
    ("kind", "body", "given", "field"),
    [
        ("Eviction", {"deleteOptions": "x"}, "string", "deleteOptions of type v1.DeleteOptions"),
        ("Eviction", {"metadata": "x"}, "string", "metadata of type v1.ObjectMeta"),
        ("Binding", {"target": "x"}, "string", "target of type v1.ObjectReference"),
        ("Binding", {"metadata": []}, "array", "metadata of type v1.ObjectMeta"),
    ],
)
def test_a_subresource_of_another_form_is_a_bad_request(
    plain: Plain, namespace: str, kind: str, body: dict[str, object], given: str, field: str
) -> None:
    version = "policy/v1" if kind == "Eviction" else "v1"
    path = f"/api/v1/namespaces/{namespace}/pods/one/{kind.lower()}"
    answer = plain.request("POST", path, {"apiVersion": version, "kind": kind} | body)
    problem = f"json: cannot unmarshal {given} into Go struct field {kind}.{field}"
    message = f'{kind} in version "v1" cannot be handled as a {kind}: {problem}'
    assert refusal(answer) == (400, "BadRequest", message)


@pytest.mark.parametrize(("metadata", "shown"), [(True, "&{true}"), ([1], "&{[1]}"), ("x", "&{x}")])
def test_applied_metadata_of_another_form_is_refused(
    config_maps: Collection, plain: Plain, metadata: object, shown: str
) -> None:
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    path = f"{config_maps.path}/one?fieldManager=test"
    answer = plain.request("PATCH", path, applied, headers={"Content-Type": APPLY})
    where = "failed to create typed patch object (/; /v1, Kind=ConfigMap)"
    assert refusal(answer) == (500, "", f"{where}: .metadata: expected map, got {shown}")


@pytest.mark.parametrize("seconds", [2**40, 2**62])
def test_a_grace_period_beyond_all_calendars_is_taken(scratch: Scratch, seconds: int) -> None:
    spec = {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}
    pod = named("Pod", "v1", "one", spec=spec)
    eventually(lambda: scratch.attempt(pod).status == 201)
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": seconds}
    answer = scratch.plain.request("DELETE", scratch.path(pod, "one"), options)
    assert answer.status == 200
    assert answer.json()["metadata"]["deletionGracePeriodSeconds"] == seconds
