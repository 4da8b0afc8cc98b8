"""Tokens of service accounts, as the tests about access ask for them and take them apart."""

from __future__ import annotations

import base64
import json
from typing import Any

from harness.plain import Answer, Plain

Object = dict[str, Any]


def ask_for_token(server: Plain, namespace: str, account: str, **spec: Any) -> Answer:
    """Post a TokenRequest, whatever the answer."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return server.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", body)


def request_token(server: Plain, namespace: str, account: str, **spec: Any) -> Object:
    """The TokenRequest as answered."""
    answer = ask_for_token(server, namespace, account, **spec)
    assert answer.status == 201, answer.body.decode()
    answered: Object = answer.json()
    return answered


def token_of(server: Plain, namespace: str, account: str) -> str:
    """A token for the API server itself."""
    token: str = request_token(server, namespace, account)["status"]["token"]
    return token


def claims(token: str) -> Object:
    """What a token says, unchecked."""
    payload = token.split(".")[1]
    decoded: Object = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return decoded


def unsigned(token: str) -> str:
    """The same claims under the algorithm `none`."""
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    return f"{head}.{token.split('.')[1]}."


def review_token(server: Plain, token: str, *audiences: str) -> Object:
    """The status of a TokenReview."""
    spec: Object = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    answer = server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    assert answer.status == 201, answer.body.decode()
    status: Object = answer.json()["status"]
    return status
