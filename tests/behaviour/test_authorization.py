"""Authorization: which permission a request needs, however it is written."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.collection import APPLY
from behaviour.scratch import Scratch, named
from behaviour.subjects import Actor, grant, rule, subject
from behaviour.support import refusal
from harness.plain import Plain

Object = dict[str, Any]
ANN = subject("ann")


@pytest.fixture
def ann(plain: Plain) -> Actor:
    """A user who may do what the test grants."""
    return Actor(plain, "ann")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path", ["serviceaccounts/default/token", "pods/one/eviction", "pods/one/binding", "bindings"]
)
def test_what_can_only_be_created_answers_to_no_other_verb(
    scratch: Scratch, ann: Actor, method: str, path: str
) -> None:
    grant(scratch, ANN, rule("get list update patch delete deletecollection", "*"))
    answer = ann.request(method, f"/api/v1/namespaces/{scratch.namespace}/{path}", {"spec": {}})
    assert refusal(answer)[:2] == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    "selector",
    [
        "metadata.name%3Dmine",
        "metadata.name%3D%3Dmine",
        "type%21%3Dx%2Cmetadata.name%3Dmine",
    ],
    ids=["one", "double", "with another"],
)
def test_a_list_of_one_name_needs_only_that_name(scratch: Scratch, ann: Actor, selector: str) -> None:
    scratch.create(named("Secret", "v1", "mine"))
    scratch.create(named("Secret", "v1", "other"))
    grant(scratch, ANN, rule("list", "secrets", names=["mine"]))
    secrets = f"/api/v1/namespaces/{scratch.namespace}/secrets"
    found = ann.request("GET", f"{secrets}?fieldSelector={selector}")
    assert [item["metadata"]["name"] for item in found.json()["items"]] == ["mine"]


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "metadata.name%21%3Dmine",
        "type%21%3Dx%5C%2Cmetadata.name%3Dmine",
        "metadata.name%3Dmine%3D",
    ],
    ids=["none", "any other", "in a value", "broken"],
)
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_a_permission_for_one_name_does_not_list_the_others(
    scratch: Scratch, ann: Actor, selector: str, verb: str
) -> None:
    grant(scratch, ANN, rule("list watch", "secrets", names=["mine"]))
    secrets = f"/api/v1/namespaces/{scratch.namespace}/secrets"
    watching = "&watch=1&timeoutSeconds=1" if verb == "watch" else ""
    answer = ann.request("GET", f"{secrets}?fieldSelector={selector}{watching}")
    assert refusal(answer)[:2] == (403, "Forbidden")


def test_to_apply_something_new_one_must_be_allowed_to_create_it(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("get patch", "configmaps"))
    path = f"/api/v1/namespaces/{scratch.namespace}/configmaps/new?fieldManager=ann"
    applied = named("ConfigMap", "v1", "new", data={"a": "1"})
    answer = ann.request("PATCH", path, applied, headers={"Content-Type": APPLY})
    what = 'User "ann" cannot create resource "configmaps" in API group ""'
    message = f'configmaps "new" is forbidden: {what} in the namespace "{scratch.namespace}"'
    assert refusal(answer) == (403, "Forbidden", message)
    assert ann.request("GET", path.partition("?")[0]).status == 404


def test_to_apply_what_is_there_needs_no_permission_to_create(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("patch", "configmaps"))
    scratch.create(named("ConfigMap", "v1", "old"))
    path = f"/api/v1/namespaces/{scratch.namespace}/configmaps/old?fieldManager=ann"
    applied = named("ConfigMap", "v1", "old", data={"a": "1"})
    assert ann.request("PATCH", path, applied, headers={"Content-Type": APPLY}).status == 200


def test_to_put_something_new_one_must_be_allowed_to_create_it(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("get update", "leases", "coordination.k8s.io"))
    path = f"/apis/coordination.k8s.io/v1/namespaces/{scratch.namespace}/leases/new"
    lease = named("Lease", "coordination.k8s.io/v1", "new")
    answer = ann.request("PUT", path, lease)
    assert refusal(answer)[:2] == (403, "Forbidden")
    assert "cannot create resource" in refusal(answer)[2]


@pytest.mark.parametrize("name", ["there", "missing"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_refusal_does_not_tell_what_exists(scratch: Scratch, ann: Actor, method: str, name: str) -> None:
    scratch.create(named("Secret", "v1", "there"))
    answer = ann.request(method, f"/api/v1/namespaces/{scratch.namespace}/secrets/{name}", {"data": {}})
    verb = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
    what = f'User "ann" cannot {verb} resource "secrets" in API group ""'
    message = f'secrets "{name}" is forbidden: {what} in the namespace "{scratch.namespace}"'
    assert refusal(answer) == (403, "Forbidden", message)
