"""Creating objects: names, what the server fills in, and which bodies it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from behaviour.collection import Collection, Object, config_map, deployment, done
from behaviour.support import causes, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain


def test_a_second_object_of_the_same_name_is_refused(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    answer = config_maps.create(config_map("one"))
    assert refusal(answer) == (409, "AlreadyExists", 'configmaps "one" already exists')
    assert answer.json()["details"] == {"name": "one", "kind": "configmaps"}


def test_the_server_gives_a_new_object_its_identity(config_maps: Collection, namespace: str) -> None:
    made = config_map("one", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", selfLink="/somewhere")
    answer = config_maps.create(made)
    assert answer.status == 201
    metadata = answer.json()["metadata"]
    assert metadata["namespace"] == namespace
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert not metadata["creationTimestamp"].startswith("2001")
    assert metadata["resourceVersion"].isdigit()
    assert "selfLink" not in metadata


def test_a_new_object_cannot_be_born_deleted(config_maps: Collection) -> None:
    made = config_map("one", deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=3)
    metadata = done(config_maps.create(made))["metadata"]
    assert not metadata.keys() & {"deletionTimestamp", "deletionGracePeriodSeconds"}


def test_a_resource_version_is_refused_on_create(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", resourceVersion="1"))
    assert refusal(answer) == (500, "", "resourceVersion should not be set on objects to be created")


def test_generate_name_makes_a_new_name_each_time(config_maps: Collection) -> None:
    prefix: Object = {"metadata": {"generateName": "made-"}}
    names = [done(config_maps.create(prefix))["metadata"]["name"] for _ in range(2)]
    assert all(re.fullmatch(r"made-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert names[0] != names[1]


def test_a_long_generate_name_is_cut_to_fit_a_label(config_maps: Collection) -> None:
    name = done(config_maps.create({"metadata": {"generateName": "x" * 100}}))["metadata"]["name"]
    assert (len(name), name[:58]) == (63, "x" * 58)


def test_a_name_counts_for_more_than_generate_name(config_maps: Collection) -> None:
    metadata = done(config_maps.create(config_map("named", generateName="made-")))["metadata"]
    assert (metadata["name"], metadata["generateName"]) == ("named", "made-")


def test_an_object_needs_a_name(config_maps: Collection) -> None:
    answer = config_maps.create({"apiVersion": "v1", "kind": "ConfigMap"})
    required = "Required value: name or generateName is required"
    assert refusal(answer) == (422, "Invalid", f'ConfigMap "" is invalid: metadata.name: {required}')
    assert causes(answer) == [("metadata.name", "FieldValueRequired", required)]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Upper", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"),
        ("under_score", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"),
        ("-dash", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"),
        ("a" * 254, "must be no more than 253 characters"),
    ],
)
def test_a_name_that_is_no_dns_name_is_refused(config_maps: Collection, name: str, problem: str) -> None:
    answer = config_maps.create(config_map(name))
    assert refusal(answer)[:2] == (422, "Invalid")
    [(field, reason, message)] = causes(answer)
    assert (field, reason) == ("metadata.name", "FieldValueInvalid")
    assert message.startswith(f'Invalid value: "{name}": {problem}')


def test_every_broken_rule_of_the_metadata_is_listed(config_maps: Collection) -> None:
    broken = config_map(
        "one", labels={"no spaces": "x", "fine": "not fine!"}, finalizers=["nodomain"], annotations={"?": "x"}
    )
    answer = config_maps.create(broken)
    fields = [field for field, _, _ in causes(answer)]
    assert fields == ["metadata.annotations", "metadata.finalizers[0]", "metadata.labels", "metadata.labels"]


def test_only_one_owner_can_be_the_controller(config_maps: Collection) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True}
        for name in ("a", "b")
    ]
    answer = config_maps.create(config_map("one", ownerReferences=owners))
    assert refusal(answer)[:2] == (422, "Invalid")
    why = 'Only one reference can have Controller set to true. Found "true" in references for'
    assert f"{why} ConfigMap/a and ConfigMap/b" in answer.json()["message"]


def test_the_namespace_of_the_body_must_be_that_of_the_path(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", namespace="elsewhere"))
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert refusal(answer) == (400, "BadRequest", why)


def test_nothing_is_created_in_a_namespace_that_is_not_there(plain: Plain) -> None:
    missing = Collection(plain, "/api/v1/namespaces/not-there/configmaps")
    answer = missing.create(config_map("one"))
    assert refusal(answer) == (404, "NotFound", 'namespaces "not-there" not found')
    assert answer.json()["details"] == {"name": "not-there", "kind": "namespaces"}


def test_kind_and_version_may_be_left_out_of_a_built_in_kind(config_maps: Collection) -> None:
    made = done(config_maps.create({"metadata": {"name": "one"}}))
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        (
            "v1",
            "Secret",
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to',
        ),
        (
            "v1",
            "Thing",
            'Thing in version "v1" cannot be handled as a ConfigMap: no kind "Thing" is registered',
        ),
        (
            "v2",
            "ConfigMap",
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap"',
        ),
        ("apps/v1", "ConfigMap", 'no kind "ConfigMap" is registered for version "apps/v1"'),
    ],
)
def test_a_body_of_another_kind_or_version_is_refused(
    config_maps: Collection, api_version: str, kind: str, message: str
) -> None:
    answer = config_maps.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}})
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert message in refusal(answer)[2]


def test_a_custom_resource_must_say_its_kind(widgets: Collection) -> None:
    answer = widgets.create({"metadata": {"name": "one"}})
    assert refusal(answer)[:2] == (400, "BadRequest")
    start = "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in"
    assert refusal(answer)[2].startswith(start)


def test_a_custom_resource_of_another_kind_is_refused(widgets: Collection, widget_kind: Widgets) -> None:
    answer = widgets.create({**widget_kind.widget("one"), "kind": "Gadget"})
    assert refusal(answer)[:2] == (422, "Invalid")
    assert causes(answer) == [("kind", "FieldValueInvalid", 'Invalid value: "Gadget": must be Widget')]


def test_a_custom_resource_of_another_version_is_refused(widgets: Collection, widget_kind: Widgets) -> None:
    version = widget_kind.api_version
    answer = widgets.create({**widget_kind.widget("one"), "apiVersion": f"{version}beta1"})
    why = f"the API version in the data ({version}beta1) does not match the expected API version ({version})"
    assert refusal(answer) == (400, "BadRequest", why)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"{", "unexpected end of JSON input ({)"),
        (b'{"a":}', "invalid character '}' looking for beginning of value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1}}', "invalid character '}' after top-level value"),
        (b"[]", "json: cannot unmarshal array into Go value of type struct"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(config_maps: Collection, body: bytes, problem: str) -> None:
    code, reason, message = refusal(config_maps.create(body))
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")
    assert problem in message


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"a": 1}, "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        (["a"], "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(config_maps: Collection, data: Any, problem: str) -> None:
    answer = config_maps.create({**config_map("one"), "data": data})
    message = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: {problem}'
    assert refusal(answer) == (400, "BadRequest", message)


def test_yaml_bodies_are_read_by_the_rules_of_yaml_1_1(config_maps: Collection) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n  off: text\n"
    made = done(config_maps.create(text, content_type="application/yaml"))
    assert made["data"] == {"a": "1", "false": "text"}
    answer = config_maps.create(b"metadata: {name: two}\ndata: {a: y}\n", content_type="application/yaml")
    assert "cannot unmarshal bool into Go struct field ConfigMap.data" in refusal(answer)[2]


def test_a_body_of_an_unknown_type_is_refused(config_maps: Collection) -> None:
    answer = config_maps.create(b"{}", content_type="text/plain")
    start = (
        "the body of the request was in an unknown format - accepted media types include: application/json"
    )
    assert refusal(answer)[:2] == (415, "UnsupportedMediaType")
    assert refusal(answer)[2].startswith(start)


def test_only_collections_of_a_namespace_take_a_post(config_maps: Collection, plain: Plain) -> None:
    why = (405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    assert refusal(plain.request("POST", config_maps.at("one"), config_map("one"))) == why
    assert refusal(plain.request("POST", "/api/v1/configmaps", config_map("one"))) == why


def test_generation_starts_at_one_and_status_is_not_the_creators(deployments: Collection) -> None:
    made = done(deployments.create({**deployment("one"), "status": {"replicas": 7}}))
    assert made["metadata"]["generation"] == 1
    assert "replicas" not in made["status"]


def test_a_kind_that_counts_no_generations_keeps_what_it_is_given(config_maps: Collection) -> None:
    assert done(config_maps.create(config_map("one", generation=7)))["metadata"]["generation"] == 7
    assert "generation" not in done(config_maps.create(config_map("two")))["metadata"]


def test_a_body_larger_than_three_mebibytes_is_refused(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", {"a": "x" * 3 * 1024 * 1024}))
    message = "Request entity too large: limit is 3145728"
    assert refusal(answer) == (413, "RequestEntityTooLarge", message)


def test_a_config_map_holds_at_most_one_mebibyte(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", {"a": "x" * (1024 * 1024 + 1)}))
    assert refusal(answer)[:2] == (422, "Invalid")
    assert causes(answer) == [("[]", "FieldValueTooLong", "Too long: may not be more than 1048576 bytes")]


def test_annotations_hold_at_most_a_quarter_of_a_mebibyte(config_maps: Collection) -> None:
    answer = config_maps.create(config_map("one", annotations={"a": "x" * 256 * 1024}))
    too_long = ("metadata.annotations", "FieldValueTooLong", "Too long: may not be more than 262144 bytes")
    assert causes(answer) == [too_long]


def test_an_object_too_large_to_store_is_refused(widgets: Collection, widget_kind: Widgets) -> None:
    # What the store says differs; that nothing was stored does not.
    answer = widgets.create(widget_kind.widget("huge", spec={"text": "x" * 2_200_000}))
    assert refusal(answer)[:2] == (500, "")
    assert widgets.get("huge").status == 404
