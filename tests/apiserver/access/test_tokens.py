from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.access.memory import Core
from podium.apiserver.access import certificates
from podium.apiserver.access.signing import ISSUER, SigningKey, TokenError, discovery_document
from podium.apiserver.access.tokens import ServiceAccountTokens, is_token_secret
from podium.apiserver.errors import StatusError

Object = dict[str, Any]
START = 1_800_000_000.0


class World:
    """A server with one service account, and a clock that tests turn."""

    def __init__(self, directory: Path) -> None:
        self.now = START
        self.core = Core()
        self.account = self.core.add("serviceaccounts", "ns", "bot")
        self.key = SigningKey(certificates.ensure(directory).service_account_key)
        self.tokens = ServiceAccountTokens(self.key, self.core, clock=lambda: self.now)

    def issue(self, **spec: Any) -> str:
        token: str = self.tokens.request("ns", "bot", {"spec": spec})["status"]["token"]
        return token


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def world(keys: Path) -> World:
    return World(keys)


def claims_of(token: str) -> Object:
    found: Object = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return found


def test_a_requested_token_is_its_service_accounts(world: World) -> None:
    answer = world.tokens.request("ns", "bot", {"spec": {}})
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["metadata"]["uid"] == "uid-of-bot"
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"
    verified = world.tokens.authenticate(answer["status"]["token"])
    assert verified is not None
    assert verified.identity.username == "system:serviceaccount:ns:bot"
    assert verified.identity.uid == "uid-of-bot"
    assert verified.identity.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    assert verified.audiences == (ISSUER,)


def test_a_token_has_the_claims_of_the_real_servers(world: World) -> None:
    token = world.issue()
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert set(header) == {"alg", "kid"}
    claims = claims_of(token)
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": START + 3600,
        "iat": START,
        "nbf": START,
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:bot",
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "bot", "uid": "uid-of-bot"}},
    }


def test_others_can_check_a_token_with_the_published_keys(world: World) -> None:
    (key,) = jwt.PyJWKSet.from_dict(world.key.jwks()).keys
    token = world.issue(audiences=["vault"])
    options: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
    found = jwt.decode(token, key, algorithms=["ES256"], audience="vault", issuer=ISSUER, options=options)
    assert found["sub"] == "system:serviceaccount:ns:bot"
    assert jwt.get_unverified_header(token)["kid"] == key.key_id
    document = discovery_document("https://127.0.0.1:6443/openid/v1/jwks")
    assert document["issuer"] == ISSUER
    assert document["id_token_signing_alg_values_supported"] == ["ES256"]


def refusal(world: World, token: str, audiences: list[str] | None = None) -> str:
    with pytest.raises(TokenError) as refused:
        world.tokens.authenticate(token, audiences)
    return str(refused.value)


def test_a_token_expires_after_a_minute_of_leeway(world: World) -> None:
    token = world.issue(expirationSeconds=600)
    world.now = START + 600 + 60
    assert world.tokens.authenticate(token)
    world.now += 1
    assert refusal(world, token) == "service account token has expired"


def test_a_token_of_the_future_is_not_valid_yet(world: World) -> None:
    token = world.issue()
    world.now = START - 61
    assert refusal(world, token) == "service account token is not valid yet"


def test_a_token_for_somebody_else_is_refused(world: World) -> None:
    token = world.issue(audiences=["vault", "other"])
    assert refusal(world, token) == (
        f'token audiences ["vault" "other"] is invalid for the target audiences ["{ISSUER}"]'
    )
    verified = world.tokens.authenticate(token, ["x", "vault"])
    assert verified is not None
    assert verified.audiences == ("vault",)


def test_a_deleted_service_account_takes_its_tokens_with_it(world: World) -> None:
    token = world.issue()
    world.core.remove("serviceaccounts", "ns", "bot")
    assert refusal(world, token) == 'serviceaccounts "bot" not found'
    world.core.add("serviceaccounts", "ns", "bot", metadata={"uid": "another"})
    assert refusal(world, token) == "service account UID (another) does not match claim (uid-of-bot)"


@pytest.mark.parametrize(("resource", "kind"), [("pods", "Pod"), ("secrets", "Secret"), ("nodes", "Node")])
def test_a_token_lives_as_long_as_the_object_it_is_bound_to(world: World, resource: str, kind: str) -> None:
    namespace = "" if kind == "Node" else "ns"
    world.core.add(resource, namespace, "it", spec={"serviceAccountName": "bot"})
    token = world.issue(boundObjectRef={"apiVersion": "v1", "kind": kind, "name": "it"})
    assert world.tokens.authenticate(token)
    world.core.add(resource, namespace, "it", metadata={"uid": "another"})
    assert refusal(world, token) == (
        f"{kind.lower()} UID (another) does not match service account {kind.lower()} ref claim (uid-of-it)"
    )
    deleted = {"deletionTimestamp": "2027-01-15T08:00:00Z"}
    world.core.add(resource, namespace, "it", metadata=deleted)
    world.now = START + 60
    assert world.tokens.authenticate(token)
    world.now = START + 61
    assert refusal(world, token) == "service account token has been invalidated"
    world.core.remove(resource, namespace, "it")
    assert refusal(world, token) == "service account token has been invalidated"


def test_a_token_bound_to_a_pod_tells_the_pod_and_its_node(world: World) -> None:
    world.core.add("pods", "ns", "it", spec={"serviceAccountName": "bot", "nodeName": "n1"})
    world.core.add("nodes", "", "n1")
    verified = world.tokens.authenticate(
        world.issue(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "it"})
    )
    assert verified is not None
    extra = {
        key.removeprefix("authentication.kubernetes.io/"): v for key, v in verified.identity.extra.items()
    }
    assert extra.pop("credential-id")
    assert extra == {
        "pod-name": ("it",),
        "pod-uid": ("uid-of-it",),
        "node-name": ("n1",),
        "node-uid": ("uid-of-n1",),
    }


BOUND = {"apiVersion": "v1", "kind": "Pod", "name": "other"}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 599}},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                "Invalid value: 599: may not specify a duration less than 10 minutes"
            ),
        ),
        (
            {"spec": {"expirationSeconds": 2**32 + 1}},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
                "Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"
            ),
        ),
        (
            {"metadata": {"name": "zz"}},
            422,
            (
                'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "zz": '
                "must match the service account name if specified"
            ),
        ),
        (
            {"metadata": {"uid": "zz"}},
            409,
            (
                'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "bot": '
                "the UID in the token request (zz) does not match the UID of the service account (uid-of-bot)"
            ),
        ),
        (
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            {"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Pod", "name": "x"}}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Pod",
        ),
        ({"spec": {"boundObjectRef": {**BOUND, "name": "nope"}}}, 404, 'pods "nope" not found'),
        (
            {"spec": {"boundObjectRef": BOUND}},
            400,
            'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
        ),
        (
            {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "bad"}}},
            409,
            (
                'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (bad) '
                "does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(world: World, body: Object, code: int, message: str) -> None:
    world.core.add("pods", "ns", "other", spec={"serviceAccountName": "default"})
    world.core.add("secrets", "ns", "s")
    with pytest.raises(StatusError) as refused:
        world.tokens.request("ns", "bot", body)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_a_token_for_an_unknown_account_cannot_be_had(world: World) -> None:
    with pytest.raises(StatusError, match='serviceaccounts "nope" not found'):
        world.tokens.request("ns", "nope", {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_a_changed_token_is_never_accepted(world: World, data: st.DataObject) -> None:
    token = world.issue()
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(min_codepoint=32, max_codepoint=126))
    changed = token[:at] + other + token[at + 1 :]
    # The last character of a base64 text has bits that mean nothing.
    if changed == token or at == len(token) - 1:
        return
    with suppress(TokenError):
        assert world.tokens.authenticate(changed) is None


def forged(claims: Object, header: Object, signature: str = "") -> str:
    def part(value: Object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(claims)}.{signature}"


def test_a_token_signed_by_nobody_or_by_another_key_is_refused(world: World, tmp_path: Path) -> None:
    token = world.issue()
    claims = claims_of(token)
    broken = "go-jose/go-jose: error in cryptographic primitive"
    assert refusal(world, forged(claims, {"alg": "none"})) == broken
    assert refusal(world, forged(claims, {"alg": "HS256"}, token.split(".")[2])) == broken
    other = SigningKey(certificates.ensure(tmp_path).service_account_key)
    assert refusal(world, other.sign(claims)) == "invalid signature, no keys found"


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "a.e30.c", "a.W10.c", "." * 2, "é.é.é", "x" * 100_000])
def test_what_is_no_token_of_ours_is_left_to_others(world: World, token: str) -> None:
    assert world.tokens.authenticate(token) is None


def test_a_signature_is_checked_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    token = world.issue()
    assert world.tokens.authenticate(token)
    monkeypatch.setattr(world.key, "verify", lambda _: pytest.fail("checked again"))
    assert world.tokens.authenticate(token)


def token_secret(world: World) -> Object:
    found = world.core.add("secrets", "ns", "bot-token", type="kubernetes.io/service-account-token")
    found["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "bot"}
    return found


def test_a_token_secret_is_filled_once(world: World) -> None:
    secret = token_secret(world)
    assert is_token_secret(secret, world.account)
    filled = world.tokens.fill_secret(secret, world.account, b"CA")
    assert filled is not None
    assert base64.b64decode(filled["data"]["ca.crt"]) == b"CA"
    assert base64.b64decode(filled["data"]["namespace"]) == b"ns"
    assert filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == "uid-of-bot"
    assert world.tokens.fill_secret(filled, world.account, b"CA") is None
    assert is_token_secret(filled, world.account)
    renewed = world.tokens.fill_secret(filled, world.account, b"new CA")
    assert renewed is not None
    assert renewed["data"]["token"] == filled["data"]["token"]


def test_the_token_in_a_secret_lives_as_long_as_the_secret(world: World) -> None:
    filled = world.tokens.fill_secret(token_secret(world), world.account, b"CA")
    assert filled is not None
    token = base64.b64decode(filled["data"]["token"]).decode()
    assert refusal(world, token) == "Token does not match server's copy"
    world.core.replace("secrets", filled)
    world.now += 10**9
    verified = world.tokens.authenticate(token)
    assert verified is not None
    assert verified.identity.username == "system:serviceaccount:ns:bot"
    assert refusal(world, token, ["vault"]).startswith("token audiences")
    world.core.remove("secrets", "ns", "bot-token")
    assert refusal(world, token) == "Token has been invalidated"
