"""Authentication: certificates, tokens and anonymous clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from behaviour.subjects import plain_as, whoami
from behaviour.support import refusal
from behaviour.tokens import request_token, token_of, unsigned
from harness.plain import Plain
from harness.plane import ControlPlane


@pytest.fixture
def anonymous(control_plane: ControlPlane, tmp_path: Path) -> Plain:
    """A client without any credentials."""
    return plain_as(control_plane.kubeconfig, tmp_path)


def test_a_client_certificate_names_the_user_and_its_groups(plain: Plain) -> None:
    user = whoami(plain)
    assert user["username"].endswith("admin")
    assert user["groups"] == ["system:masters", "system:authenticated"]
    [credential] = user["extra"]["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


def test_a_service_account_token_names_the_account_and_its_groups(
    control_plane: ControlPlane, plain: Plain, namespace: str, tmp_path: Path
) -> None:
    token = token_of(plain, namespace, "default")
    user = whoami(plain_as(control_plane.kubeconfig, tmp_path, token=token))
    account = plain.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default").json()
    assert user["username"] == f"system:serviceaccount:{namespace}:default"
    assert user["uid"] == account["metadata"]["uid"]
    assert user["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    ]
    [credential] = user["extra"]["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("JTI=")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_anybody_may_ask_for_health_and_version(anonymous: Plain, path: str) -> None:
    answer = anonymous.request("GET", path)
    assert answer.status == 200
    assert path == "/version" or answer.body == b"ok"


@pytest.mark.parametrize(
    ("method", "path", "what", "action"),
    [
        ("GET", "/api/v1/namespaces/x/pods", "pods is", 'list resource "pods" in API group ""'),
        ("GET", "/api/v1/namespaces/x/pods?watch=1", "pods is", 'watch resource "pods" in API group ""'),
        ("POST", "/api/v1/namespaces/x/pods", "pods is", 'create resource "pods" in API group ""'),
        (
            "PUT",
            "/apis/apps/v1/namespaces/x/deployments/b/scale",
            'deployments.apps "b" is',
            'update resource "deployments/scale" in API group "apps"',
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/x/deployments",
            "deployments.apps is",
            'deletecollection resource "deployments" in API group "apps"',
        ),
        (
            "GET",
            "/apis/no.such/v1/namespaces/x/t",
            "t.no.such is",
            'list resource "t" in API group "no.such"',
        ),
    ],
)
def test_anonymous_clients_are_told_which_resource_they_may_not_touch(
    anonymous: Plain, method: str, path: str, what: str, action: str
) -> None:
    message = f'{what} forbidden: User "system:anonymous" cannot {action} in the namespace "x"'
    assert refusal(anonymous.request(method, path)) == (403, "Forbidden", message)


def test_a_refusal_of_something_cluster_wide_says_so(anonymous: Plain) -> None:
    answer = anonymous.request("GET", "/api/v1/nodes/a")
    what = 'User "system:anonymous" cannot get resource "nodes" in API group "" at the cluster scope'
    assert refusal(answer) == (403, "Forbidden", f'nodes "a" is forbidden: {what}')
    assert answer.json()["details"] == {"name": "a", "kind": "nodes"}


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", "/", "get"),
        ("GET", "/api", "get"),
        ("GET", "/apis/apps/v1", "get"),
        ("GET", "/metrics", "get"),
        ("POST", "/nowhere", "post"),
        ("GET", "/api/v1/", "get"),
    ],
)
def test_anonymous_clients_are_told_which_path_they_may_not_read(
    anonymous: Plain, method: str, path: str, verb: str
) -> None:
    message = f'forbidden: User "system:anonymous" cannot {verb} path "{path}"'
    assert refusal(anonymous.request(method, path)) == (403, "Forbidden", message)


@pytest.mark.parametrize("authorization", ["Bearer nonsense", "Bearer a.b.c", "bearer nonsense"])
def test_a_bad_bearer_token_is_refused_even_where_anybody_may_go(
    anonymous: Plain, authorization: str
) -> None:
    answer = anonymous.request("GET", "/healthz", headers={"Authorization": authorization})
    assert refusal(answer) == (401, "Unauthorized", "Unauthorized")


@pytest.mark.parametrize("authorization", ["Basic YTpi", "Bearer", "Bearer ", "Token x"])
def test_what_is_no_bearer_token_is_ignored(anonymous: Plain, authorization: str) -> None:
    answer = anonymous.request("GET", "/api", headers={"Authorization": authorization})
    message = 'forbidden: User "system:anonymous" cannot get path "/api"'
    assert refusal(answer) == (403, "Forbidden", message)


def test_a_token_with_a_changed_signature_is_refused(anonymous: Plain, plain: Plain, namespace: str) -> None:
    head, payload, signature = token_of(plain, namespace, "default").split(".")
    forged = ".".join((head, payload, ("A" if signature[0] != "A" else "B") + signature[1:]))
    answer = anonymous.request("GET", "/api", headers={"Authorization": f"Bearer {forged}"})
    assert answer.status == 401


def test_an_unsigned_token_is_refused(anonymous: Plain, plain: Plain, namespace: str) -> None:
    token = unsigned(token_of(plain, namespace, "default"))
    answer = anonymous.request("GET", "/api", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 401


def test_a_certificate_goes_before_a_token(plain: Plain, namespace: str) -> None:
    token = token_of(plain, namespace, "default")
    answer = plain.request("GET", "/api/v1/nodes", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 200


def test_a_token_for_another_audience_is_refused(anonymous: Plain, plain: Plain, namespace: str) -> None:
    token = request_token(plain, namespace, "default", audiences=["elsewhere"])["status"]["token"]
    answer = anonymous.request("GET", "/api", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 401


def test_discovery_is_open_to_every_authenticated_user(
    anonymous: Plain, plain: Plain, namespace: str
) -> None:
    token = token_of(plain, namespace, "default")
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3", "/version"):
        assert anonymous.request("GET", path, headers=headers).status == 200, path


def test_the_keys_that_sign_tokens_are_published_to_accounts(
    anonymous: Plain, plain: Plain, namespace: str
) -> None:
    headers = {"Authorization": f"Bearer {token_of(plain, namespace, 'default')}", "Accept": "*/*"}
    answer = anonymous.request("GET", "/openid/v1/jwks", headers=headers)
    assert answer.headers["Content-Type"] == "application/jwk-set+json"
    assert {key["use"] for key in answer.json()["keys"]} == {"sig"}
    issuer = anonymous.request("GET", "/.well-known/openid-configuration", headers=headers).json()
    assert issuer["issuer"] == "https://kubernetes.default.svc.cluster.local"
    assert issuer["jwks_uri"].endswith("/openid/v1/jwks")
