"""Custom resources with several versions (conversion None)."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.definitions import CRDS, Definitions, Objects, properties, version
from behaviour.streams import watching
from behaviour.support import eventually, refusal
from harness.plain import Plain

Object = dict[str, Any]

STRING: Object = {"type": "string"}
FIRST = properties(spec=properties(a=STRING, b=STRING, added={"type": "string", "default": "one"}))
SECOND = properties(spec=properties(a=STRING, c=STRING, added={"type": "string", "default": "two"}))


@pytest.fixture(scope="module")
def kinds(definitions: Definitions) -> dict[str, Objects]:
    """The kinds of this module, made together."""
    return {
        "Versioned": definitions.add("Versioned", version("v1", FIRST), version("v2", SECOND, storage=False)),
        "Retired": definitions.add(
            "Retired", version("v1"), {**version("v0", storage=False), "served": False}
        ),
        "Moved": definitions.add("Moved", version("v1"), version("v2", storage=False)),
        "Deprecated": definitions.add(
            "Deprecated",
            version("v1", storage=True),
            version("v1beta1", storage=False, deprecated=True),
            version("v1alpha1", storage=False, deprecated=True, deprecationWarning="do not"),
        ),
    }


@pytest.fixture
def versioned(kinds: dict[str, Objects], namespace: str) -> Objects:
    """Objects with two versions, of which v1 is stored."""
    return kinds["Versioned"].within(namespace)


def test_an_object_can_be_read_through_each_version(versioned: Objects) -> None:
    versioned.create("one", spec={"a": "x"})
    other = versioned.at("v2").read("one")
    assert other["apiVersion"] == f"{versioned.group}/v2"
    assert other["metadata"]["uid"] == versioned.read("one")["metadata"]["uid"]
    assert other["spec"]["a"] == "x"


def test_the_version_of_the_writer_prunes_and_defaults(versioned: Objects) -> None:
    created = versioned.at("v2").create("one", spec={"a": "x", "b": "y"})
    assert created["spec"] == {"a": "x", "added": "two"}
    assert versioned.read("one")["spec"] == {"a": "x", "added": "two"}


def test_a_version_shows_only_what_its_own_schema_knows(versioned: Objects) -> None:
    versioned.create("one", spec={"a": "x", "b": "y"})
    assert versioned.at("v2").read("one")["spec"] == {"a": "x", "added": "one"}
    listed = versioned.plain.request("GET", versioned.at("v2").path()).json()
    assert listed["items"][0]["spec"] == {"a": "x", "added": "one"}


def test_what_the_stored_version_does_not_know_is_lost(versioned: Objects) -> None:
    created = versioned.at("v2").create("one", spec={"a": "x", "c": "z"})
    assert created["spec"] == {"a": "x", "added": "two"}
    assert versioned.at("v2").read("one")["spec"] == {"a": "x", "added": "two"}


def test_a_list_has_the_version_that_was_asked_for(versioned: Objects) -> None:
    versioned.create("one")
    versioned.at("v2").create("two")
    listed = versioned.plain.request("GET", versioned.at("v2").path()).json()
    assert listed["apiVersion"] == f"{versioned.group}/v2"
    assert {item["apiVersion"] for item in listed["items"]} == {f"{versioned.group}/v2"}
    assert sorted(item["metadata"]["name"] for item in listed["items"]) == ["one", "two"]


def test_a_watch_has_the_version_that_was_asked_for(versioned: Objects) -> None:
    start = versioned.plain.request("GET", versioned.path()).json()["metadata"]["resourceVersion"]
    versioned.create("one", spec={"a": "x"})
    with watching(versioned.plain, versioned.at("v2").path(), f"resourceVersion={start}") as stream:
        event = stream.next()
        assert (event.type, event.object["apiVersion"]) == ("ADDED", f"{versioned.group}/v2")
        versioned.patch("one", {"spec": {"a": "y"}})
        event = stream.next()
        assert (event.type, event.object["spec"]["a"]) == ("MODIFIED", "y")


def test_an_update_through_one_version_shows_in_the_other(versioned: Objects) -> None:
    versioned.create("one", spec={"a": "x", "b": "keep"})
    second = versioned.at("v2")
    obj = second.read("one")
    obj["spec"]["a"] = "y"
    assert second.replace(obj).status == 200
    assert versioned.read("one")["spec"]["a"] == "y"


def test_a_body_of_another_version_is_refused(versioned: Objects) -> None:
    answer = versioned.plain.request("POST", versioned.path(), versioned.at("v2").new("one"))
    text = (
        f"the API version in the data ({versioned.group}/v2) does not match the expected API version "
        f"({versioned.group}/v1)"
    )
    assert refusal(answer) == (400, "BadRequest", text)


def test_managers_keep_the_version_that_they_wrote(versioned: Objects) -> None:
    assert versioned.apply("one", "first", spec={"a": "x"}).status == 201
    assert versioned.at("v2").apply("one", "second", spec={"a": "x"}).status == 200
    entries = versioned.read("one")["metadata"]["managedFields"]
    found = {entry["manager"]: entry["apiVersion"] for entry in entries}
    assert found == {"first": f"{versioned.group}/v1", "second": f"{versioned.group}/v2"}


def test_managers_conflict_across_versions(versioned: Objects) -> None:
    versioned.apply("one", "first", spec={"a": "x"})
    answer = versioned.at("v2").apply("one", "second", spec={"a": "y"})
    text = 'Apply failed with 1 conflict: conflict with "first": .spec.a'
    assert refusal(answer) == (409, "Conflict", text)


def test_a_version_that_is_not_served_is_not_found(
    kinds: dict[str, Objects], plain: Plain, namespace: str
) -> None:
    retired = kinds["Retired"].within(namespace)
    answer = plain.request("GET", retired.at("v0").path())
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


def test_the_storage_version_can_change(
    kinds: dict[str, Objects], definitions: Definitions, namespace: str
) -> None:
    moved = kinds["Moved"].within(namespace)
    moved.create("old", spec={"a": 1})
    definitions.change(
        moved.crd_name,
        [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ],
    )
    assert definitions.read(moved.crd_name)["status"]["storedVersions"] == ["v1", "v2"]
    eventually(lambda: moved.at("v2").apply("new", "test", spec={"a": 2}).status in (200, 201))
    for each in (moved, moved.at("v2")):
        assert [each.read(name)["spec"]["a"] for name in ("old", "new")] == [1, 2]
        assert each.read("old")["apiVersion"] == f"{moved.group}/{each.version}"


def test_an_object_moves_to_the_new_storage_version_when_it_is_written_back(
    definitions: Definitions, namespace: str
) -> None:
    kind = definitions.add("Rewritten", version("v1"), version("v2", storage=False)).within(namespace)
    kind.apply("old", "test", spec={"a": 1})
    before = kind.read("old")
    assert kind.replace(before).json()["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    definitions.change(
        kind.crd_name,
        [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ],
    )

    def moved() -> bool:
        answer = kind.replace(before)
        assert answer.status == 200, answer.body.decode()
        return bool(answer.json()["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"])

    eventually(moved)


def test_a_version_that_is_added_serves_old_objects(definitions: Definitions, namespace: str) -> None:
    kind = definitions.add("Extended").within(namespace)
    kind.apply("old", "test", spec={"a": 1})
    added = {"op": "add", "path": "/spec/versions/-", "value": version("v2", storage=False)}
    assert definitions.change(kind.crd_name, [added]).status == 200
    later = kind.at("v2").within(namespace)
    assert later.read("old")["spec"] == {"a": 1}


def test_a_version_that_is_no_longer_served_disappears(
    definitions: Definitions, plain: Plain, namespace: str
) -> None:
    kind = definitions.add("Reduced", version("v1"), version("v2", storage=False)).within(namespace)
    second = kind.at("v2").within(namespace)
    off = {"op": "replace", "path": "/spec/versions/1/served", "value": False}
    assert definitions.change(kind.crd_name, [off]).status == 200
    eventually(lambda: plain.request("GET", second.path()).status == 404)
    assert kind.names() == []


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("v1", None),
        ("v1beta1", "{group}/v1beta1 Deprecated is deprecated; use {group}/v1 Deprecated"),
        ("v1alpha1", "do not"),
    ],
)
def test_a_deprecated_version_earns_a_warning(
    kinds: dict[str, Objects], namespace: str, name: str, warning: str | None
) -> None:
    kind = kinds["Deprecated"].at(name).within(namespace)
    wanted = [f'299 - "{warning.format(group=kind.group)}"'] if warning else None
    answers = [kind.attempt("one"), kind.patch("one", {"spec": {}}), kind.request("GET", kind.path())]
    assert [answer.headers.get_all("Warning") for answer in answers] == [wanted] * 3


def test_a_webhook_must_say_where_it_is(definitions: Definitions) -> None:
    name = definitions.add("Hooked").crd_name
    webhook = {"op": "replace", "path": "/spec/conversion", "value": {"strategy": "Webhook"}}
    answer = definitions.plain.request(
        "PATCH",
        f"{CRDS}/{name}?dryRun=All",
        [webhook],
        headers={"Content-Type": "application/json-patch+json"},
    )
    assert answer.status == 422
    message = answer.json()["message"]
    assert (
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"
        in message
    )
    assert "spec.conversion.conversionReviewVersions: Required value" in message
