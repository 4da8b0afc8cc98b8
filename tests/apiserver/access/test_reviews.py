from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.access.memory import Core, Roles, binding, role, rule, user
from podium.apiserver.access import certificates, reviews
from podium.apiserver.access.authentication import Authenticator
from podium.apiserver.access.identity import Identity
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.access.signing import ISSUER, SigningKey
from podium.apiserver.access.tokens import ServiceAccountTokens
from podium.apiserver.errors import StatusError

Object = dict[str, Any]
ALICE = Identity("alice", groups=("system:authenticated",))
RBAC = Rbac(
    Roles(
        role("r", rule("get", "pods"), rule("get", urls="/healthz")),
        binding("b", "r", user("alice")),
        binding("dangling", "nope", user("alice")),
    )
)
BY_B = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "alice"'
MISSING = 'clusterrole.rbac.authorization.k8s.io "nope" not found'
GET_PODS = {"verb": "get", "resource": "pods"}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"user": "alice", "resourceAttributes": GET_PODS}, {"allowed": True, "reason": BY_B}),
        (
            {"user": "alice", "resourceAttributes": {"verb": "list", "resource": "pods"}},
            {"allowed": False, "reason": f"RBAC: {MISSING}"},
        ),
        ({"user": "bob", "resourceAttributes": GET_PODS}, {"allowed": False}),
        ({"groups": ["system:masters"], "resourceAttributes": GET_PODS}, {"allowed": True}),
        (
            {"user": "alice", "nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
            {"allowed": True, "reason": BY_B},
        ),
    ],
)
def test_a_subject_access_review_says_whether_and_why(spec: Object, status: Object) -> None:
    review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
    assert reviews.subject_access(review, RBAC) == {**review, "status": status}


def test_a_self_subject_access_review_is_about_whoever_posts_it() -> None:
    review = {"spec": {"resourceAttributes": GET_PODS}}
    assert reviews.self_subject_access(review, ALICE, RBAC)["status"]["allowed"] is True
    assert reviews.self_subject_access(review, Identity("bob"), RBAC)["status"]["allowed"] is False


def test_a_local_review_is_about_its_namespace() -> None:
    spec = {"user": "alice", "resourceAttributes": {**GET_PODS, "namespace": "ns"}}
    done = reviews.local_subject_access({"spec": spec}, "ns", RBAC)
    assert done["metadata"] == {"namespace": "ns"}
    assert done["status"]["allowed"] is True


ONE_OF = (
    "spec.resourceAttributes: Invalid value: null: "
    "exactly one of nonResourceAttributes or resourceAttributes must be specified"
)
NO_USER = 'spec.user: Invalid value: "": at least one of user or group must be specified'


@pytest.mark.parametrize(
    ("review", "faults"),
    [
        ({}, f"[{ONE_OF}, {NO_USER}]"),
        ({"spec": {"groups": ["g"]}}, ONE_OF),
        ({"spec": {"resourceAttributes": GET_PODS}}, NO_USER),
        (
            {"spec": {"user": "a", "resourceAttributes": {}, "nonResourceAttributes": {"verb": "get"}}},
            (
                'spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":"get"}: '
                "cannot be specified in combination with resourceAttributes"
            ),
        ),
        (
            {"metadata": {"name": "x"}, "spec": {"user": "a", "resourceAttributes": {}}},
            'metadata: Invalid value: {"name":"x"}: must be empty',
        ),
        (
            {"spec": {"user": "a", "resourceAttributes": {"fieldSelector": {}}}},
            (
                "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
                "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"
            ),
        ),
        (
            {
                "spec": {
                    "user": "a",
                    "resourceAttributes": {
                        "labelSelector": {
                            "rawSelector": "a=b",
                            "requirements": [{"key": "a", "operator": "In"}],
                        },
                        "fieldSelector": {"requirements": [{"operator": "Exists", "values": ["x"]}]},
                    },
                }
            },
            (
                "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: "
                "must be specified, spec.resourceAttributes.fieldSelector.requirements[0].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist', "
                'spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": '
                "may not specified at the same time as requirements, "
                "spec.resourceAttributes.labelSelector.requirements[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn']"
            ),
        ),
    ],
)
def test_a_review_that_makes_no_sense_is_invalid(review: Object, faults: str) -> None:
    with pytest.raises(StatusError) as refused:
        reviews.subject_access(review, RBAC)
    assert (refused.value.code, refused.value.message) == (
        422,
        f'.authorization.k8s.io "" is invalid: {faults}',
    )


@pytest.mark.parametrize(
    ("review", "fault"),
    [
        (
            {"spec": {"user": "a", "resourceAttributes": {"namespace": "other"}}},
            'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
        ),
        (
            {"spec": {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/x"}}},
            (
                'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: '
                "disallowed on this kind of request"
            ),
        ),
        (
            {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"user": "a", "resourceAttributes": {"namespace": "ns"}},
            },
            (
                'metadata: Invalid value: {"namespace":"ns","labels":{"a":"b"}}: '
                "must be empty except for namespace"
            ),
        ),
    ],
)
def test_a_local_review_of_something_else_is_invalid(review: Object, fault: str) -> None:
    with pytest.raises(StatusError) as refused:
        reviews.local_subject_access(review, "ns", RBAC)
    assert refused.value.message == f'.authorization.k8s.io "" is invalid: {fault}'


@pytest.mark.parametrize(
    ("selectors", "error"),
    [
        ({"labelSelector": {"rawSelector": "a=b"}, "fieldSelector": {"rawSelector": "x=y"}}, None),
        (
            {"labelSelector": {"rawSelector": "&&&"}, "fieldSelector": {"rawSelector": "!"}},
            (
                "spec.resourceAttributes.fieldSelector ignored due to parse error; "
                "spec.resourceAttributes.labelSelector ignored due to parse error"
            ),
        ),
        (
            {
                "labelSelector": {
                    "requirements": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "New"}]
                }
            },
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
        (
            {"fieldSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
    ],
)
def test_selectors_that_are_not_understood_are_mentioned(selectors: Object, error: str | None) -> None:
    spec = {"user": "alice", "resourceAttributes": {**GET_PODS, **selectors}}
    assert reviews.subject_access({"spec": spec}, RBAC)["status"].get("evaluationError") == error


def test_the_rules_of_a_user_in_a_namespace_are_listed() -> None:
    done = reviews.self_subject_rules({"spec": {"namespace": "ns"}}, ALICE, RBAC)
    assert done["status"] == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        "incomplete": False,
        "evaluationError": MISSING,
    }
    with pytest.raises(StatusError, match="no namespace on request"):
        reviews.self_subject_rules({"spec": {}}, ALICE, RBAC)


def test_a_self_subject_review_says_who_one_is() -> None:
    done = reviews.self_subject(ALICE, clock=lambda: 0)
    assert done["metadata"] == {"creationTimestamp": "1970-01-01T00:00:00Z"}
    assert done["status"]["userInfo"] == {"username": "alice", "groups": ["system:authenticated"]}


@pytest.fixture
def authenticator(tmp_path: Path) -> Authenticator:
    tokens = ServiceAccountTokens(SigningKey(certificates.ensure(tmp_path).service_account_key), Core())
    return Authenticator(tokens, {"abc123": Identity("static-user", "uid1", ("g1",))})


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        (
            {"token": "abc123"},
            {
                "authenticated": True,
                "user": {"username": "static-user", "uid": "uid1", "groups": ["g1", "system:authenticated"]},
                "audiences": [ISSUER],
            },
        ),
        ({"token": "abc123", "audiences": ["x"]}, {"user": {}, "error": "invalid bearer token"}),
        ({"token": "nonsense"}, {"user": {}, "error": "invalid bearer token"}),
    ],
)
def test_a_token_review_says_whose_token_it_is(
    authenticator: Authenticator, spec: Object, status: Object
) -> None:
    assert reviews.token({"spec": spec}, authenticator) == {"spec": spec, "status": status}


def test_a_token_review_needs_a_token(authenticator: Authenticator) -> None:
    with pytest.raises(StatusError, match="token is required for TokenReview in authentication"):
        reviews.token({"spec": {}}, authenticator)
