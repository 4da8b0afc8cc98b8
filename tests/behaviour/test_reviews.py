"""Access reviews: may somebody do this, what may I do, who am I."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.scratch import Scratch
from behaviour.subjects import Actor, binding, grant, review, role, rule, subject, whoami
from behaviour.support import eventually, refusal
from behaviour.tokens import review_token, token_of
from harness.plain import Plain

Object = dict[str, Any]
AUTHORIZATION = "authorization.k8s.io/v1"
ANN = subject("ann")


def post(server: Plain | Actor, kind: str, spec: Object, namespace: str = "") -> Any:
    where = f"namespaces/{namespace}/" if namespace else ""
    path = f"/apis/{AUTHORIZATION}/{where}{kind.lower()}s"
    return server.request("POST", path, {"apiVersion": AUTHORIZATION, "kind": kind, "spec": spec})


def test_a_review_names_the_binding_that_allows_it(scratch: Scratch) -> None:
    scratch.create(role("reader", rule("get", "pods")))
    scratch.create(binding("readers", ("Role", "reader"), ANN))
    spec = {
        "user": "ann",
        "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": scratch.namespace},
    }
    status = eventually(lambda: _allowed(scratch.plain, spec))
    reason = f'RBAC: allowed by RoleBinding "readers/{scratch.namespace}" of Role "reader" to User "ann"'
    assert status == {"allowed": True, "reason": reason}


def _allowed(server: Plain, spec: Object) -> Object | None:
    status = review(server, "SubjectAccessReview", spec)
    return status if status["allowed"] else None


def test_a_review_of_what_is_not_allowed_says_no_without_denying(plain: Plain) -> None:
    spec = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "nodes", "name": "n"}}
    answer = post(plain, "SubjectAccessReview", spec)
    assert answer.status == 201
    assert answer.json()["status"] == {"allowed": False}
    assert answer.json()["spec"] == spec


def test_a_review_is_not_stored(plain: Plain) -> None:
    assert plain.request("GET", f"/apis/{AUTHORIZATION}/subjectaccessreviews").status == 405


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"user": "ann"},
            (
                "spec.resourceAttributes: Invalid value: null: "
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            ),
        ),
        (
            {"resourceAttributes": {"verb": "get"}},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        (
            {
                "user": "a",
                "resourceAttributes": {"verb": "get"},
                "nonResourceAttributes": {"path": "/", "verb": "get"},
            },
            (
                'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: '
                "cannot be specified in combination with resourceAttributes"
            ),
        ),
    ],
)
def test_a_review_that_makes_no_sense_is_refused(plain: Plain, spec: Object, message: str) -> None:
    answer = post(plain, "SubjectAccessReview", spec)
    prefix = '.authorization.k8s.io "" is invalid: '
    assert refusal(answer) == (422, "Invalid", prefix + message)


def test_reviews_of_others_are_not_for_everybody(plain: Plain) -> None:
    spec = {"user": "ben", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    assert post(Actor(plain, "ann"), "SubjectAccessReview", spec).status == 403


def test_everybody_may_ask_about_themselves(scratch: Scratch) -> None:
    grant(scratch, ANN, rule("get", "pods"))
    ann = Actor(scratch.plain, "ann")
    asked = {"verb": "get", "resource": "pods", "namespace": scratch.namespace}
    assert review(ann, "SelfSubjectAccessReview", {"resourceAttributes": asked})["allowed"]
    elsewhere = asked | {"namespace": "default"}
    assert not review(ann, "SelfSubjectAccessReview", {"resourceAttributes": elsewhere})["allowed"]


def test_a_local_review_is_about_its_own_namespace(scratch: Scratch) -> None:
    grant(scratch, ANN, rule("get", "pods"))
    asked = {"verb": "get", "resource": "pods", "namespace": scratch.namespace}
    spec = {"user": "ann", "resourceAttributes": asked}
    answer = post(scratch.plain, "LocalSubjectAccessReview", spec, scratch.namespace)
    assert answer.json()["status"]["allowed"]
    spec = {"user": "ann", "resourceAttributes": asked | {"namespace": "default"}}
    refused = post(scratch.plain, "LocalSubjectAccessReview", spec, scratch.namespace)
    assert refused.status == 422


def test_a_user_can_read_the_rules_that_hold_in_a_namespace(scratch: Scratch) -> None:
    grant(scratch, ANN, rule("get", "pods", names=["p"]))
    status = review(Actor(scratch.plain, "ann"), "SelfSubjectRulesReview", {"namespace": scratch.namespace})
    assert rule("get", "pods", names=["p"]) in status["resourceRules"]
    own = rule("create", "selfsubjectreviews", "authentication.k8s.io")
    assert own in status["resourceRules"]
    assert any("/healthz" in found["nonResourceURLs"] for found in status["nonResourceRules"])
    assert status["incomplete"] is False


def test_a_rules_review_needs_a_namespace(plain: Plain) -> None:
    answer = post(plain, "SelfSubjectRulesReview", {})
    assert refusal(answer) == (400, "BadRequest", "no namespace on request")


def test_a_selector_in_a_review_is_accepted(plain: Plain) -> None:
    selector = {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}
    asked = {"verb": "list", "resource": "pods", "labelSelector": selector}
    answer = post(plain, "SelfSubjectAccessReview", {"resourceAttributes": asked})
    assert answer.json()["status"]["allowed"]


def test_a_token_review_tells_whose_token_it_is(plain: Plain, namespace: str) -> None:
    status = review_token(plain, token_of(plain, namespace, "default"))
    assert status["authenticated"]
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    assert status["audiences"] == ["https://kubernetes.default.svc.cluster.local"]


def test_a_token_review_of_nonsense_says_so(plain: Plain) -> None:
    assert review_token(plain, "nonsense") == {"user": {}, "error": "invalid bearer token"}


def test_a_token_review_needs_a_token(plain: Plain) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}
    answer = plain.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    message = "token is required for TokenReview in authentication"
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_user_can_ask_who_they_are(plain: Plain) -> None:
    user = whoami(Actor(plain, "ann", group="red"))
    assert (user["username"], user["groups"]) == ("ann", ["red", "system:authenticated"])
