from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.access.memory import Core
from podium.apiserver.access import certificates
from podium.apiserver.access.authentication import (
    Authenticator,
    administrator,
    bearer_token,
    from_certificate,
)
from podium.apiserver.access.identity import NOBODY, Identity, split_account, split_node
from podium.apiserver.access.signing import ISSUER, SigningKey, TokenError
from podium.apiserver.access.tokens import ServiceAccountTokens
from podium.apiserver.errors import StatusError

CERTIFIED = Identity("certified")


@pytest.fixture
def tokens(tmp_path: Path) -> ServiceAccountTokens:
    core = Core()
    core.add("serviceaccounts", "ns", "bot")
    return ServiceAccountTokens(SigningKey(certificates.ensure(tmp_path).service_account_key), core)


@pytest.fixture
def authenticator(tokens: ServiceAccountTokens) -> Authenticator:
    return Authenticator(tokens, {"letmein": administrator("kubernetes-admin")})


def test_a_static_token_is_its_users(authenticator: Authenticator) -> None:
    who = authenticator.authenticate(None, "Bearer letmein")
    assert who == Identity("kubernetes-admin", groups=("system:masters", "system:authenticated"))


def test_a_service_account_token_is_its_accounts(
    authenticator: Authenticator, tokens: ServiceAccountTokens
) -> None:
    token = tokens.request("ns", "bot", {})["status"]["token"]
    who = authenticator.authenticate(None, f"Bearer {token}")
    assert who.username == "system:serviceaccount:ns:bot"
    assert who.groups[-1] == "system:authenticated"


@pytest.mark.parametrize("header", [None, "", "Basic abc", "Bearer", "Bearer ", "Bearer  letmein"])
def test_a_request_without_a_token_is_anonymous(authenticator: Authenticator, header: str | None) -> None:
    assert authenticator.authenticate(None, header) == NOBODY


def test_a_wrong_token_is_refused_and_not_taken_for_anonymous(authenticator: Authenticator) -> None:
    with pytest.raises(StatusError) as refused:
        authenticator.authenticate(None, "Bearer wrong")
    assert (refused.value.code, refused.value.reason, refused.value.message) == (
        401,
        "Unauthorized",
        "Unauthorized",
    )


def test_a_certificate_goes_before_a_token(authenticator: Authenticator) -> None:
    assert authenticator.authenticate(CERTIFIED, "Bearer wrong") is CERTIFIED


def test_the_scheme_is_read_in_any_case() -> None:
    assert bearer_token(" bEaReR abc rest") == "abc"


def test_a_static_token_is_good_for_this_server_only(authenticator: Authenticator) -> None:
    assert authenticator.check_token("letmein", ["x", ISSUER]).audiences == (ISSUER,)
    with pytest.raises(TokenError, match=r"^invalid bearer token$"):
        authenticator.check_token("letmein", ["x"])


def test_a_certificate_names_user_groups_and_uid() -> None:
    subject = (
        (("organizationName", "devs"),),
        (("organizationName", "ops"), ("commonName", "alice")),
        (("1.3.6.1.4.1.57683.2", "u-1"),),
    )
    who = from_certificate({"subject": subject}, b"der")
    assert who is not None
    assert (who.username, who.uid, who.groups) == ("alice", "u-1", ("devs", "ops", "system:authenticated"))


def test_a_certificate_without_a_common_name_names_nobody() -> None:
    assert from_certificate({"subject": ((("organizationName", "devs"),),)}, b"der") is None


@pytest.mark.parametrize(
    ("username", "parts"),
    [
        ("system:serviceaccount:ns:bot", ("ns", "bot")),
        ("system:serviceaccount:ns:a.b", ("ns", "a.b")),
        ("system:serviceaccount:ns", None),
        ("system:serviceaccount::bot", None),
        ("system:serviceaccount:ns:", None),
        ("system:serviceaccount:ns:a:b", None),
        ("system:serviceaccount:a.b:bot", None),
        ("system:serviceaccount:NS:bot", None),
        ("ns:bot", None),
    ],
)
def test_the_username_of_a_service_account_is_read(username: str, parts: tuple[str, str] | None) -> None:
    assert split_account(username) == parts


def test_the_username_of_a_node_is_read() -> None:
    assert split_node("system:node:n1.example") == "n1.example"
    assert split_node("system:node:") is None
    assert split_node("n1") is None
