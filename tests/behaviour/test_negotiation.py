"""Content negotiation: the media types in which the server answers, and compression."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml

from behaviour.collection import Collection, config_map, done
from behaviour.support import refusal
from harness.plain import Plain
from harness.plane import ControlPlane

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", JSON),
        ("*/*", JSON),
        (JSON, JSON),
        (f"{JSON};charset=utf-8", JSON),
        (YAML, YAML),
        ("image/png, */*;q=0.1", JSON),
        (f"{YAML};q=0.5, {JSON}", JSON),
        (f"*/*, {YAML}", YAML),
        (f"text/html, {YAML}", YAML),
        (f"{JSON};as=Table;g=meta.k8s.io;v=v9, {JSON}", JSON),
        (f"{JSON};as=Nothing;g=meta.k8s.io;v=v1, {YAML}", YAML),
    ],
)
def test_the_best_acceptable_type_is_answered(plain: Plain, accept: str, kind: str) -> None:
    answer = plain.request("GET", "/api/v1/namespaces/default", headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    decoded = json.loads(answer.body) if kind == JSON else yaml.safe_load(answer.body)
    assert decoded["metadata"]["name"] == "default"


def test_who_would_rather_have_protobuf_takes_json_where_there_is_none(
    plain: Plain, control_plane: ControlPlane
) -> None:
    accept = f"{PROTOBUF}, {JSON}"
    answer = plain.request("GET", "/api/v1/namespaces/default", headers={"Accept": accept})
    expected = JSON if control_plane.kind == "embedded" else PROTOBUF
    assert (answer.status, answer.headers["Content-Type"]) == (200, expected)


@pytest.mark.parametrize("accept", ["text/html", "application/*", "application/cbor", "nonsense"])
def test_a_type_that_built_in_kinds_do_not_have_is_not_acceptable(plain: Plain, accept: str) -> None:
    answer = plain.request("GET", "/api/v1/namespaces/default", headers={"Accept": accept})
    code, reason, message = refusal(answer)
    assert (code, reason) == (406, "NotAcceptable")
    available = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
    assert message.startswith(available)
    assert answer.json()["details"] == {}


@pytest.mark.parametrize("what", ["as=Nothing;g=meta.k8s.io;v=v1", "as=Table;g=meta.k8s.io;v=v9"])
def test_a_form_that_objects_do_not_have_is_not_acceptable(plain: Plain, what: str) -> None:
    answer = plain.request("GET", "/api/v1/namespaces/default", headers={"Accept": f"{JSON};{what}"})
    code, reason, message = refusal(answer)
    assert (code, reason) == (406, "NotAcceptable")
    accepted = "only the following media types are accepted: application/json, application/yaml"
    assert message.startswith(accepted)


def test_custom_resources_are_not_available_as_protobuf(widgets: Collection) -> None:
    answer = widgets.plain.request("GET", widgets.path, headers={"Accept": PROTOBUF})
    assert answer.status == 406


def test_custom_resources_accept_a_half_open_range(widgets: Collection) -> None:
    answer = widgets.plain.request("GET", widgets.path, headers={"Accept": "application/*"})
    assert (answer.status, answer.headers["Content-Type"]) == (200, JSON)


def test_nothing_is_created_when_the_answer_would_not_be_acceptable(config_maps: Collection) -> None:
    headers = {"Accept": "text/html"}
    answer = config_maps.plain.request("POST", config_maps.path, config_map("one"), headers=headers)
    assert refusal(answer)[:2] == (406, "NotAcceptable")
    assert config_maps.get("one").status == 404


def test_objects_go_in_and_come_out_as_yaml(config_maps: Collection) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  on: 'yes'\n"
    headers = {"Accept": YAML, "Content-Type": YAML}
    answer = config_maps.plain.request("POST", config_maps.path, body, headers=headers)
    assert (answer.status, answer.headers["Content-Type"]) == (201, YAML)
    assert yaml.safe_load(answer.body) == done(config_maps.get("one"))
    listed = config_maps.plain.request("GET", config_maps.path, headers={"Accept": YAML})
    assert yaml.safe_load(listed.body)["kind"] == "ConfigMapList"


def test_failures_and_deletions_come_as_yaml_too(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one")))
    for method, name, code in (("DELETE", "one", 200), ("GET", "one", 404)):
        answer = config_maps.plain.request(method, config_maps.at(name), headers={"Accept": YAML})
        assert (answer.status, answer.headers["Content-Type"]) == (code, YAML)
        assert yaml.safe_load(answer.body)["kind"] == "Status"


def test_discovery_comes_as_yaml_too(plain: Plain) -> None:
    answer = plain.request("GET", "/apis/apps/v1", headers={"Accept": YAML})
    assert answer.headers["Content-Type"] == YAML
    assert yaml.safe_load(answer.body)["kind"] == "APIResourceList"
    assert refusal(plain.request("GET", "/apis", headers={"Accept": "text/html"}))[:2] == (
        406,
        "NotAcceptable",
    )


def test_a_watch_is_not_available_as_yaml(plain: Plain) -> None:
    answer = plain.request("GET", "/api/v1/configmaps?watch=true", headers={"Accept": YAML})
    assert (answer.status, answer.headers["Content-Type"]) == (406, YAML)
    message = yaml.safe_load(answer.body)["message"]
    accepted = "only the following media types are accepted: application/json;stream=watch"
    assert message.startswith(accepted)


def test_large_answers_are_compressed_for_those_who_can_read_them(config_maps: Collection) -> None:
    for number in range(4):
        done(config_maps.create(config_map(f"large-{number}", {"text": "x" * 60_000})))
    headers = {"Accept-Encoding": "gzip"}
    answer = config_maps.plain.request("GET", config_maps.path, headers=headers)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.body) < 60_000
    as_it_is = config_maps.plain.request("GET", config_maps.path)
    assert "Content-Encoding" not in as_it_is.headers
    assert json.loads(gzip.decompress(answer.body))["items"] == as_it_is.json()["items"]


def test_small_answers_are_not_compressed(plain: Plain) -> None:
    answer = plain.request("GET", "/api/v1/namespaces/default", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer.headers
