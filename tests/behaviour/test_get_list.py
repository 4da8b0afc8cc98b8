"""Reading objects: get, list, and the resourceVersion that a reader may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.collection import Collection, Object, config_map, deployment, done
from behaviour.expiry import expire_history
from behaviour.support import causes, eventually, refusal
from behaviour.widgets import Widgets
from harness.plain import Plain
from harness.plane import ControlPlane

FUTURE = 999_999_999


def listed(collection: Collection, query: str = "") -> Object:
    """The list that a query gives, which must succeed."""
    return done(collection.plain.request("GET", f"{collection.path}?{query}"))


def names(found: Object) -> list[str]:
    """The names in a list, without what every namespace has."""
    return [
        item["metadata"]["name"] for item in found["items"] if item["metadata"]["name"] != "kube-root-ca.crt"
    ]


def make(collection: Collection, *wanted: str) -> list[Object]:
    """ConfigMaps of these names, in this order."""
    return [done(collection.create(config_map(name))) for name in wanted]


def test_an_object_is_read_as_it_was_answered_when_written(config_maps: Collection) -> None:
    made = done(config_maps.create(config_map("one", {"key": "value"}, labels={"a": "b"})))
    assert done(config_maps.get("one")) == made


def test_a_missing_object_is_not_found_with_its_kind_and_name(config_maps: Collection) -> None:
    answer = config_maps.get("nothing")
    assert refusal(answer) == (404, "NotFound", 'configmaps "nothing" not found')
    assert answer.json()["details"] == {"name": "nothing", "kind": "configmaps"}


def test_a_missing_object_of_a_named_group_is_not_found_with_its_group(deployments: Collection) -> None:
    answer = deployments.get("nothing")
    assert refusal(answer) == (404, "NotFound", 'deployments.apps "nothing" not found')
    assert answer.json()["details"] == {"name": "nothing", "group": "apps", "kind": "deployments"}


def test_a_missing_custom_resource_is_not_found(widgets: Collection, widget_kind: Widgets) -> None:
    message = f'widgets.{widget_kind.group} "nothing" not found'
    assert refusal(widgets.get("nothing")) == (404, "NotFound", message)


def test_a_subresource_that_a_custom_resource_does_not_have_is_not_found(widgets: Collection) -> None:
    answer = widgets.get("one", "nothing")
    assert refusal(answer)[:2] == (404, "NotFound")
    assert answer.json()["details"]["name"] == "one"


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_is_a_step_in_a_path_is_refused(config_maps: Collection, name: str) -> None:
    message = f"Name parameter invalid: \"{name}\": may not be '{name}'"
    assert refusal(config_maps.get(name)) == (400, "BadRequest", message)


def test_a_list_has_its_kind_and_the_version_of_the_newest_state(config_maps: Collection) -> None:
    first, second = make(config_maps, "one", "two")
    found = listed(config_maps)
    assert (found["kind"], found["apiVersion"], names(found)) == ("ConfigMapList", "v1", ["one", "two"])
    assert int(found["metadata"]["resourceVersion"]) >= int(second["metadata"]["resourceVersion"])
    assert first["metadata"] in [item["metadata"] for item in found["items"]]


def test_a_list_is_in_the_order_of_names(config_maps: Collection) -> None:
    make(config_maps, "b", "a-b", "a", "a.b", "c")
    assert names(listed(config_maps)) == sorted(["b", "a-b", "a", "a.b", "c"])


def test_an_empty_list_has_items(plain: Plain, namespace: str) -> None:
    found = done(plain.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments"))
    assert (found["kind"], found["items"]) == ("DeploymentList", [])


def test_a_list_in_a_namespace_that_does_not_exist_is_empty(plain: Plain, namespace: str) -> None:
    assert done(plain.request("GET", f"/api/v1/namespaces/{namespace}-not/configmaps"))["items"] == []


def test_items_of_custom_lists_say_their_kind(widgets: Collection, widget_kind: Widgets) -> None:
    done(widgets.create(widget_kind.widget("one")))
    found = listed(widgets)
    assert (found["kind"], found["apiVersion"]) == ("WidgetList", widget_kind.api_version)
    assert [(item["kind"], item["apiVersion"]) for item in found["items"]] == [
        ("Widget", widget_kind.api_version)
    ]


def test_a_list_across_namespaces_holds_those_of_each(plain: Plain, config_maps: Collection) -> None:
    make(config_maps, "one")
    everywhere = done(plain.request("GET", "/api/v1/configmaps"))
    mine = config_maps.path.split("/")[4]
    found = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in everywhere["items"]]
    assert {(mine, "one"), ("kube-system", "kube-root-ca.crt")} <= set(found)
    assert found == sorted(found)


def test_a_cluster_wide_kind_has_no_namespaces(plain: Plain) -> None:
    assert plain.request("GET", "/api/v1/namespaces/default/nodes").status == 404
    assert "default" in [
        item["metadata"]["name"] for item in done(plain.request("GET", "/api/v1/namespaces"))["items"]
    ]


@pytest.mark.parametrize("query", ["", "resourceVersion=", "resourceVersion=0"])
def test_a_list_without_a_version_shows_what_was_just_written(config_maps: Collection, query: str) -> None:
    make(config_maps, "one")
    # Version 0 allows any state, so it is only sure to come.
    eventually(lambda: names(listed(config_maps, query)) == ["one"])


@pytest.mark.parametrize("match", ["", "&resourceVersionMatch=NotOlderThan"])
def test_a_list_not_older_than_a_version_shows_at_least_that_state(
    config_maps: Collection, match: str
) -> None:
    first, second = make(config_maps, "one", "two")
    found = listed(config_maps, f"resourceVersion={first['metadata']['resourceVersion']}{match}")
    assert "one" in names(found)
    found = listed(config_maps, f"resourceVersion={second['metadata']['resourceVersion']}{match}")
    assert names(found) == ["one", "two"]
    assert int(found["metadata"]["resourceVersion"]) >= int(second["metadata"]["resourceVersion"])


def test_a_list_at_an_exact_version_shows_that_state_and_no_other(config_maps: Collection) -> None:
    first, second = make(config_maps, "one", "two")
    done(config_maps.patch("one", {"data": {"changed": "yes"}}))
    done(config_maps.delete("two"))
    for made, expected in ((first, ["one"]), (second, ["one", "two"])):
        version = made["metadata"]["resourceVersion"]
        found = listed(config_maps, f"resourceVersion={version}&resourceVersionMatch=Exact")
        assert names(found) == expected
        assert found["metadata"]["resourceVersion"] == version
        assert first["metadata"] in [item["metadata"] for item in found["items"]]


@pytest.mark.parametrize("match", ["", "&resourceVersionMatch=Exact"])
def test_a_version_that_is_still_to_come_times_out_with_a_cause(config_maps: Collection, match: str) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?resourceVersion={FUTURE}{match}")
    code, reason, message = refusal(answer)
    assert (code, reason) == (504, "Timeout")
    assert message.startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    assert causes(answer) == [("", "ResourceVersionTooLarge", "Too large resource version")]
    assert (answer.json()["details"]["retryAfterSeconds"], answer.headers["Retry-After"]) == (1, "1")


def test_one_object_at_a_version_that_is_still_to_come_times_out_too(config_maps: Collection) -> None:
    make(config_maps, "one")
    answer = config_maps.plain.request("GET", config_maps.at("one", query=f"resourceVersion={FUTURE}"))
    assert refusal(answer)[:2] == (504, "Timeout")
    assert causes(answer) == [("", "ResourceVersionTooLarge", "Too large resource version")]


@pytest.mark.parametrize("version", ["abc", "-1", "1.5"])
def test_a_version_that_is_no_number_is_refused(config_maps: Collection, version: str) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?resourceVersion={version}")
    parsing = f'strconv.ParseUint: parsing "{version}": invalid syntax'
    message = f'invalid resource version: resourceVersion: Invalid value: "{version}": {parsing}'
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_version_that_is_no_number_fails_a_get_without_a_reason(config_maps: Collection) -> None:
    make(config_maps, "one")
    answer = config_maps.plain.request("GET", config_maps.at("one", query="resourceVersion=abc"))
    assert refusal(answer)[:2] == (500, "")


@pytest.mark.parametrize(
    ("query", "reason", "why"),
    [
        (
            "resourceVersionMatch=Exact",
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            "FieldValueForbidden",
            'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            "resourceVersion=5&resourceVersionMatch=Exact&continue=abc",
            "FieldValueForbidden",
            "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            "resourceVersion=5&resourceVersionMatch=Newest",
            "FieldValueNotSupported",
            'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
    ],
)
def test_a_match_that_makes_no_sense_is_invalid(
    config_maps: Collection, query: str, reason: str, why: str
) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?{query}")
    message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {why}'
    assert refusal(answer) == (422, "Invalid", message)
    assert causes(answer) == [("resourceVersionMatch", reason, why)]


def test_initial_events_are_forbidden_for_a_list(config_maps: Collection) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?sendInitialEvents=true")
    assert refusal(answer)[:2] == (422, "Invalid")
    why = "Forbidden: sendInitialEvents is forbidden for list"
    assert causes(answer) == [("sendInitialEvents", "FieldValueForbidden", why)]


@pytest.mark.parametrize("option", ["limit", "timeoutSeconds"])
def test_an_option_that_is_no_number_is_a_bad_request(config_maps: Collection, option: str) -> None:
    answer = config_maps.plain.request("GET", f"{config_maps.path}?{option}=many")
    assert refusal(answer) == (400, "BadRequest", 'strconv.ParseInt: parsing "many": invalid syntax')


def test_a_list_at_a_version_that_is_forgotten_has_expired(
    control_plane: ControlPlane, widgets: Collection
) -> None:
    expire_history(control_plane, widgets.plain)
    query = "resourceVersion=1&resourceVersionMatch=Exact"
    answer = widgets.plain.request("GET", f"{widgets.path}?{query}")
    assert refusal(answer) == (410, "Expired", "The resourceVersion for the provided list is too old.")


def test_events_are_one_store_with_two_faces(plain: Plain, namespace: str) -> None:
    core = Collection(plain, f"/api/v1/namespaces/{namespace}/events")
    about: dict[str, Any] = {"kind": "Pod", "name": "web", "namespace": namespace}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1"}, "involvedObject": about}
    done(core.create({**event, "reason": "Started", "message": "on its way", "type": "Normal"}))
    newer = Collection(plain, f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    seen = done(newer.get("web.1"))
    assert (seen["regarding"], seen["note"], seen["reason"]) == (about, "on its way", "Started")


def test_versions_of_one_object_rise_with_every_change(deployments: Collection) -> None:
    versions = [done(deployments.create(deployment("web")))["metadata"]["resourceVersion"]]
    for number in range(3):
        changed = done(deployments.patch("web", {"metadata": {"labels": {"n": str(number)}}}))
        versions.append(changed["metadata"]["resourceVersion"])
    assert [int(v) for v in versions] == sorted({int(v) for v in versions})
