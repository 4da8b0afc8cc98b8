"""Service-account tokens: requests, bounds, binding and revocation."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path
from typing import Any

import pytest

from behaviour.scratch import Scratch, named
from behaviour.subjects import Actor, grant, plain_as, rule, subject, whoami
from behaviour.support import causes, eventually, refusal
from behaviour.tokens import ask_for_token, claims, request_token, review_token, token_of
from harness.plain import Plain
from harness.plane import ControlPlane

Object = dict[str, Any]
ISSUER = "https://kubernetes.default.svc.cluster.local"


def account(name: str) -> Object:
    return named("ServiceAccount", "v1", name)


def pod(name: str, **spec: Any) -> Object:
    return named("Pod", "v1", name, spec={"containers": [{"name": "c", "image": "x"}], **spec})


def token_secret(name: str, owner: str) -> Object:
    secret = named("Secret", "v1", name, type="kubernetes.io/service-account-token")
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": owner}
    return secret


def why_dead(server: Plain, token: str) -> str:
    """Why a token is no longer good; empty while it is."""
    # The real server keeps a good answer for ten seconds; for other audiences it looks again.
    status = review_token(server, token, ISSUER, secrets.token_hex(4))
    return "" if status.get("authenticated") else str(status["error"])


def test_a_token_says_who_it_is_for_and_until_when(scratch: Scratch) -> None:
    uid = scratch.create(account("bot"))["metadata"]["uid"]
    answered = request_token(scratch.plain, scratch.namespace, "bot", expirationSeconds=1200)
    said = claims(answered["status"]["token"])
    assert said["aud"] == [ISSUER]
    assert said["iss"] == ISSUER
    assert said["sub"] == f"system:serviceaccount:{scratch.namespace}:bot"
    assert said["exp"] - said["iat"] == 1200
    assert said["nbf"] == said["iat"]
    own = {"namespace": scratch.namespace, "serviceaccount": {"name": "bot", "uid": uid}}
    assert said["kubernetes.io"] == own
    assert answered["metadata"]["name"] == "bot"
    assert answered["metadata"]["namespace"] == scratch.namespace
    assert answered["spec"] == {"audiences": [ISSUER], "expirationSeconds": 1200, "boundObjectRef": None}


def test_a_token_lasts_an_hour_unless_told_otherwise(plain: Plain, namespace: str) -> None:
    assert request_token(plain, namespace, "default")["spec"]["expirationSeconds"] == 3600


@pytest.mark.parametrize(
    ("seconds", "detail"),
    [
        (599, "may not specify a duration less than 10 minutes"),
        (0, "may not specify a duration less than 10 minutes"),
        (2**32 + 1, "may not specify a duration larger than 2^32 seconds"),
    ],
)
def test_a_token_cannot_be_too_short_or_too_long_lived(
    plain: Plain, namespace: str, seconds: int, detail: str
) -> None:
    answer = ask_for_token(plain, namespace, "default", expirationSeconds=seconds)
    text = f"Invalid value: {seconds}: {detail}"
    message = f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: {text}'
    assert refusal(answer) == (422, "Invalid", message)
    assert causes(answer) == [("spec.expirationSeconds", "FieldValueInvalid", text)]


def test_a_token_of_an_account_that_is_not_there_cannot_be_had(plain: Plain, namespace: str) -> None:
    answer = ask_for_token(plain, namespace, "nobody")
    assert refusal(answer) == (404, "NotFound", 'serviceaccounts "nobody" not found')


def test_asking_for_a_token_is_a_permission_of_its_own(scratch: Scratch) -> None:
    actor = Actor(scratch.plain, "tim")
    grant(scratch, subject("tim"), rule("create", "serviceaccounts"))
    path = f"/api/v1/namespaces/{scratch.namespace}/serviceaccounts/default/token"
    assert actor.request("POST", path, {}).status == 403
    grant(scratch, subject("tim"), rule("create", "serviceaccounts/token", names=["default"]))
    assert actor.request("POST", path, {}).status == 201


def test_a_token_is_checked_against_the_wanted_audiences(plain: Plain, namespace: str) -> None:
    token = request_token(plain, namespace, "default", audiences=["a", "b"])["status"]["token"]
    assert review_token(plain, token, "b", "c")["audiences"] == ["b"]
    assert not review_token(plain, token).get("authenticated")
    refused = review_token(plain, token, "c")
    assert not refused.get("authenticated")
    assert 'token audiences ["a" "b"] is invalid for the target audiences ["c"]' in refused["error"]


def test_a_token_dies_with_its_account(scratch: Scratch) -> None:
    scratch.create(account("bot"))
    token = token_of(scratch.plain, scratch.namespace, "bot")
    assert review_token(scratch.plain, token)["authenticated"]
    scratch.delete(account("bot"))
    eventually(lambda: why_dead(scratch.plain, token))


def test_a_token_is_not_for_an_account_of_the_same_name_made_later(scratch: Scratch) -> None:
    scratch.create(account("bot"))
    token = token_of(scratch.plain, scratch.namespace, "bot")
    scratch.delete(account("bot"))
    scratch.create(account("bot"))
    eventually(lambda: why_dead(scratch.plain, token))
    assert review_token(scratch.plain, token_of(scratch.plain, scratch.namespace, "bot"))["authenticated"]


def test_a_token_can_be_bound_to_a_pod_and_dies_with_it(
    control_plane: ControlPlane, scratch: Scratch, tmp_path: Path
) -> None:
    uid = scratch.create(pod("p"))["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    answered = request_token(scratch.plain, scratch.namespace, "default", boundObjectRef=reference)
    token = answered["status"]["token"]
    assert claims(token)["kubernetes.io"]["pod"] == {"name": "p", "uid": uid}
    extra = whoami(plain_as(control_plane.kubeconfig, tmp_path, token=token))["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [uid]
    scratch.delete(pod("p"))
    why = eventually(lambda: why_dead(scratch.plain, token))
    assert "service account token has been invalidated" in why


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "absent"},
            (404, "NotFound", 'pods "absent" not found'),
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            (400, "BadRequest", "cannot bind token to object of type apps/v1, Kind=Deployment"),
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "other"},
            (
                400,
                "BadRequest",
                (
                    'cannot bind token for serviceaccount "default" to pod running with different '
                    "serviceaccount name."
                ),
            ),
        ),
    ],
)
def test_a_token_is_bound_only_to_what_fits(
    scratch: Scratch, reference: Object, expected: tuple[int, str, str]
) -> None:
    scratch.create(account("another"))
    scratch.create(pod("other", serviceAccountName="another"))
    answer = ask_for_token(scratch.plain, scratch.namespace, "default", boundObjectRef=reference)
    assert refusal(answer) == expected


def test_a_token_is_bound_to_one_incarnation_of_a_pod(scratch: Scratch) -> None:
    uid = scratch.create(pod("p"))["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "another"}
    answer = ask_for_token(scratch.plain, scratch.namespace, "default", boundObjectRef=reference)
    detail = (
        "the UID in the bound object reference (another) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    assert uid != "another"
    message = f'Operation cannot be fulfilled on Pod "p": {detail}'
    assert refusal(answer) == (409, "Conflict", message)


def test_a_token_secret_is_filled_in_and_its_token_works(
    control_plane: ControlPlane, scratch: Scratch, tmp_path: Path
) -> None:
    uid = scratch.create(account("bot"))["metadata"]["uid"]
    scratch.create(token_secret("bot-token", "bot"))
    secret = eventually(lambda: _filled(scratch, "bot-token"))
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == uid
    data = {key: base64.b64decode(value) for key, value in secret["data"].items()}
    assert data["namespace"] == scratch.namespace.encode()
    assert data["ca.crt"].startswith(b"-----BEGIN CERTIFICATE-----")
    user = whoami(plain_as(control_plane.kubeconfig, tmp_path, token=data["token"].decode()))
    assert user["username"] == f"system:serviceaccount:{scratch.namespace}:bot"


def _filled(scratch: Scratch, name: str) -> Object | None:
    secret = scratch.read(named("Secret", "v1", name))
    return secret if "token" in (secret.get("data") or {}) else None


def test_a_token_secret_goes_with_its_account_and_its_token_dies(scratch: Scratch) -> None:
    scratch.create(account("bot"))
    scratch.create(token_secret("bot-token", "bot"))
    secret = eventually(lambda: _filled(scratch, "bot-token"))
    token = base64.b64decode(secret["data"]["token"]).decode()
    scratch.delete(account("bot"))
    path = scratch.path(secret, "bot-token")
    eventually(lambda: scratch.plain.request("GET", path).status == 404)
    eventually(lambda: why_dead(scratch.plain, token))


def test_a_token_secret_of_an_account_that_is_not_there_is_removed(scratch: Scratch) -> None:
    scratch.create(token_secret("orphan", "nobody"))
    path = f"/api/v1/namespaces/{scratch.namespace}/secrets/orphan"
    eventually(lambda: scratch.plain.request("GET", path).status == 404)


def test_a_token_request_for_another_name_is_refused(plain: Plain, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    answer = plain.request("POST", path, {"metadata": {"name": "other"}, "spec": {}})
    text = 'Invalid value: "other": must match the service account name if specified'
    assert causes(answer) == [("metadata.name", "FieldValueInvalid", text)]


@pytest.mark.kubectl
def test_kubectl_creates_a_token(kubectl: Any, plain: Plain, namespace: str) -> None:
    token = kubectl.run("create", "token", "default", "--duration=20m").stdout.strip()
    assert review_token(plain, token)["user"]["username"] == f"system:serviceaccount:{namespace}:default"
