"""Logging in to registries: Basic, Bearer, anonymous, refresh; and what credentials are never sent to."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.fakeregistry import FakeRegistry, Waits, images, running
from harness.tls import Authority
from podium.oci import model
from podium.oci.auth import _token_request
from podium.oci.challenges import Challenge, challenges
from podium.oci.credentials import Credential
from podium.oci.errors import AccessDenied, RateLimited, RegistryError
from podium.oci.transport import Request

USER = "Basic " + base64.b64encode(b"user:s3cr:t").decode()


@dataclass
class TokenServer:
    """Gives tokens that name their scopes; the registry in front lets nobody in without one."""

    registry: FakeRegistry
    realm: str
    wants: str = USER
    lifetime: float = 300
    asked: list[web.Request] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    issued: dict[str, list[str]] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    answer: web.Response | None = None

    async def tokens(self, request: web.Request) -> web.StreamResponse | None:
        self.asked.append(request)
        if self.answer is not None:
            return self.answer
        if request.method == "POST":
            form = {name: str(text) for name, text in (await request.post()).items()}
            self.forms.append(form)
            if form.get("refresh_token") != "identity":
                return web.Response(status=401)
            scopes = form["scope"].split(" ")
        else:
            if self.wants and request.headers.get("Authorization") != self.wants:
                return web.Response(status=401)
            scopes = request.query.getall("scope")
        token = f"t{len(self.issued)}"
        self.issued[token] = scopes
        return web.json_response({"token": token, "expires_in": self.lifetime})

    async def guarding(self, request: web.Request) -> web.StreamResponse | None:
        if request.path == "/token":
            return await self.tokens(request)
        name = request.path.removeprefix("/v2/").partition("/")[0]
        action = "pull" if request.method in ("GET", "HEAD") else "push"
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        for scope in self.issued.get(token, []) if token not in self.revoked else []:
            kind, _, rest = scope.partition(":")
            if kind == "repository" and rest.rpartition(":")[0] == name and action in rest:
                return None
        challenge = f'Bearer realm="{self.realm}",service="reg, istry",scope="repository:{name}:{action}"'
        errors = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
        return web.json_response(errors, status=401, headers={"WWW-Authenticate": challenge})


@pytest.fixture
async def registry() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        registry.add_image("v1")
        yield registry


@pytest.fixture
def tokens(registry: FakeRegistry) -> TokenServer:
    server = TokenServer(registry, f"{registry.url}/token")
    registry.before = server.guarding
    return server


def auth_file(home: Path, registry: FakeRegistry, entry: dict[str, str] | None = None) -> Path:
    file = home / "auth.json"
    entry = {"username": "user", "password": "s3cr:t"} if entry is None else entry
    file.write_text(json.dumps({"auths": {registry.host: entry} if entry else {}}))
    return file


async def test_basic_credentials_are_sent_when_asked_for_and_not_before(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    async def basic(request: web.Request) -> web.StreamResponse | None:
        if request.headers.get("Authorization") == USER:
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="registry"'})

    registry.before = basic
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
        await store.tags()
    assert [each.headers.get("Authorization") for each in registry.seen] == [None, USER, USER]


async def test_an_open_registry_never_sees_credentials(registry: FakeRegistry, tmp_path: Path) -> None:
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert all("Authorization" not in each.headers for each in registry.seen)


async def test_a_token_is_fetched_once_for_a_scope(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        descriptor = await store.resolve(tag)
        await asyncio.gather(*(store.has(descriptor) for _ in range(20)))
        await store.tags()
    assert list(tokens.issued.values()) == [["repository:app:pull"]]
    assert tokens.asked[0].query["service"] == "reg, istry"
    assert tokens.asked[0].query["account"] == "user"


async def test_many_first_requests_share_one_token(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    blobs = [registry.add_blob(f"{number}".encode()) for number in range(20)]
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        assert all(await asyncio.gather(*(store.has(each) for each in blobs)))
    assert len(tokens.issued) == 1


async def test_pushing_and_mounting_ask_for_more(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    layer = model.descriptor_of(b"new layer", model.OCI_LAYER)
    registry.mountable.add(layer.digest)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"new layer"

    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        base, _ = opened.store(f"{registry.host}/base:v1")
        await store.put_blob(layer, chunks)
        assert await store.mount(layer, base)
    assert list(tokens.issued.values()) == [
        ["repository:app:pull"],
        ["repository:app:pull,push"],
        ["repository:app:pull,push", "repository:base:pull"],
    ]


async def test_a_token_is_renewed_before_it_expires(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    waits = Waits()
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry), waits=waits) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        for waits.time in (0, 280, 291, 570, 582):
            await store.tags()
    assert len(tokens.issued) == 3


@pytest.mark.parametrize(("lifetime", "renewed_at"), [(0, 51), (-5, 51), (1, 51), (1e12, 3591)])
async def test_odd_lifetimes_are_brought_within_reason(
    lifetime: float, renewed_at: float, registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    tokens.lifetime = lifetime
    waits = Waits()
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry), waits=waits) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        for waits.time in (0, renewed_at - 2, renewed_at):
            await store.tags()
    assert len(tokens.issued) == 2


async def test_a_token_that_the_registry_no_longer_takes_is_replaced(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        await store.tags()
        tokens.revoked.add("t0")
        await store.tags()
    assert list(tokens.issued) == ["t0", "t1"]


async def test_an_upload_survives_a_token_that_expires_on_the_way(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    layer = model.descriptor_of(b"layer" * 10_000, model.OCI_LAYER)

    async def expiring(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PUT" and not tokens.revoked:
            tokens.revoked.update(tokens.issued)
        return await tokens.guarding(request)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"layer"

    registry.before = expiring
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        await store.put_blob(layer, chunks)
    assert registry.blobs[layer.digest] == b"layer" * 10_000


async def test_many_first_requests_ask_a_helper_once(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    blobs = [registry.add_blob(f"{number}".encode()) for number in range(8)]
    program = tmp_path / "docker-credential-counting"
    answer = json.dumps({"Username": "user", "Secret": "s3cr:t"})
    program.write_text(f"#!/bin/sh\nread server\necho $server >> {tmp_path}/asked\necho '{answer}'\n")
    program.chmod(0o755)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"credsStore": "counting"}))
    async with images(tmp_path, registry, auth_file=file, environ={"PATH": str(tmp_path)}) as opened:
        store, _ = opened.store(f"{registry.host}/app:v1")
        await asyncio.gather(*(store.has(each) for each in blobs))
    assert (tmp_path / "asked").read_text() == f"{registry.host}\n"


async def test_without_credentials_an_anonymous_token_is_used(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    tokens.wants = ""
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert "Authorization" not in tokens.asked[0].headers
    assert "account" not in tokens.asked[0].query


async def test_an_identity_token_is_traded_by_post(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    file = auth_file(tmp_path, registry, {"identitytoken": "identity"})
    async with images(tmp_path, registry, auth_file=file) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert tokens.forms == [
        {
            "grant_type": "refresh_token",
            "service": "reg, istry",
            "client_id": "podium",
            "scope": "repository:app:pull",
            "refresh_token": "identity",
        }
    ]


async def test_a_registry_token_is_sent_as_it_is(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    tokens.issued["ready"] = ["repository:app:pull"]
    file = auth_file(tmp_path, registry, {"registrytoken": "ready"})
    async with images(tmp_path, registry, auth_file=file) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert tokens.asked == []


async def test_a_scope_of_the_registrys_own_is_asked_for_too(registry: FakeRegistry, tmp_path: Path) -> None:
    scopes: list[list[str]] = []

    async def own_scope(request: web.Request) -> web.StreamResponse | None:
        if request.path == "/token":
            scopes.append(request.query.getall("scope"))
            return web.json_response({"access_token": "t"})
        if request.headers.get("Authorization") == "Bearer t":
            return None
        challenge = f'bearer realm="{registry.url}/token?flavour=a%26b", scope=aws'
        return web.Response(status=401, headers={"WWW-Authenticate": challenge})

    registry.before = own_scope
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert scopes == [["repository:app:pull", "aws"]]
    assert any("flavour=a%26b" in path for path in registry.paths())


async def test_wrong_credentials_are_an_error_that_names_their_place_and_not_themselves(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    tokens.wants = "Basic other"
    file = auth_file(tmp_path, registry)
    async with images(tmp_path, registry, auth_file=file) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(AccessDenied) as caught:
            await store.resolve(tag)
    assert str(file) in str(caught.value)
    assert "s3cr" not in str(caught.value)
    assert len(tokens.asked) == 1, "wrong credentials are not tried again"


async def test_missing_credentials_are_an_error_that_says_where_they_may_be_put(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    async def basic(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})

    registry.before = basic
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(AccessDenied, match=r"no credentials found in .*auth\.json.*REGISTRY_AUTH_FILE"):
            await store.resolve(tag)


@pytest.mark.parametrize("status", [401, 403])
async def test_what_the_registry_does_not_allow_is_denied_in_its_words(
    status: int, registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    async def refusing(request: web.Request) -> web.StreamResponse | None:
        if request.path == "/token" or "Authorization" not in request.headers:
            return await tokens.guarding(request)
        return web.json_response({"errors": [{"message": "not yours"}]}, status=status)

    registry.before = refusing
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(AccessDenied, match="not yours"):
            await store.resolve(tag)


@pytest.mark.parametrize(
    "header",
    ["Negotiate", "Digest realm=x", "", "Bearer", 'Bearer service="x"', 'Bearer realm=""', "Bearer realm=x"],
)
async def test_challenges_that_cannot_be_met_are_errors(
    header: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    async def odd(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=401, headers={"WWW-Authenticate": header} if header else {})

    registry.before = odd
    async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises((AccessDenied, RegistryError)):
            await store.resolve(tag)
    assert all("Authorization" not in each.headers for each in registry.seen)


BAD_TOKENS = [
    "",
    "not json",
    "[]",
    "{}",
    '{"token": ""}',
    '{"token": 7}',
    '{"token": "a b"}',
    '{"token": "a\\r\\nX: y"}',
]


@pytest.mark.parametrize(
    "body",
    [
        *map(str.encode, BAD_TOKENS),
        '{"token": "ü"}'.encode(),
        b"x" * (2 << 20),
        b'{"token": "\xff"}',
        b"[" * 100_000,
        b'{"x": ' + b"[" * 100_000,
    ],
)
async def test_answers_that_are_no_token_are_errors(
    body: bytes, registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    tokens.answer = web.Response(body=body)
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RegistryError):
            await store.resolve(tag)


@pytest.mark.parametrize(
    ("status", "error", "asked"), [(429, RateLimited, 4), (500, RegistryError, 4), (404, RegistryError, 1)]
)
async def test_a_token_server_in_trouble_is_tried_again(
    status: int,
    error: type[Exception],
    asked: int,
    registry: FakeRegistry,
    tokens: TokenServer,
    tmp_path: Path,
) -> None:
    async def failing(request: web.Request) -> web.StreamResponse | None:
        if request.path != "/token":
            return await tokens.guarding(request)
        return web.Response(status=status)

    registry.before = failing
    async with images(tmp_path, registry) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(error):
            await store.resolve(tag)
    assert len([path for path in registry.paths() if path.startswith("/token")]) == asked


async def test_a_token_server_that_redirects_is_not_followed(
    registry: FakeRegistry, tokens: TokenServer, tmp_path: Path
) -> None:
    async with running() as other:
        tokens.answer = web.Response(status=307, headers={"Location": f"{other.url}/token"})
        async with images(tmp_path, registry, auth_file=auth_file(tmp_path, registry)) as opened:
            store, tag = opened.store(f"{registry.host}/app:v1")
            with pytest.raises(RegistryError, match="307 instead of a token"):
                await store.resolve(tag)
        assert other.seen == []


async def test_credentials_for_an_https_registry_are_not_sent_to_a_realm_over_http(
    tmp_path: Path, authority: Authority
) -> None:
    async with running(authority.server("localhost")) as secure, running() as plain:
        tokens = TokenServer(secure, f"{plain.url}/token")
        secure.before, plain.before = tokens.guarding, tokens.tokens
        environ = {"SSL_CERT_FILE": str(authority.file(tmp_path))}
        fields: dict[str, Any] = {"environ": environ, "auth_file": auth_file(tmp_path, secure)}
        # That plain HTTP is allowed for the token server's host does not help: it is about registries.
        async with images(tmp_path, plain, **fields) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            with pytest.raises(RegistryError, match="plain HTTP is refused"):
                await store.resolve(tag)
    assert plain.seen == []


async def test_a_token_server_of_its_own_gets_the_credentials_and_the_registry_the_token(
    tmp_path: Path, authority: Authority
) -> None:
    async with (
        running(authority.server("localhost")) as secure,
        running(authority.server("localhost")) as realm,
    ):
        tokens = TokenServer(secure, f"{realm.url}/token")
        secure.before, realm.before = tokens.guarding, tokens.tokens
        secure.add_image("v1")
        environ = {"SSL_CERT_FILE": str(authority.file(tmp_path))}
        async with images(tmp_path, environ=environ, auth_file=auth_file(tmp_path, secure)) as opened:
            store, tag = opened.store(f"{secure.host}/app:v1")
            await store.resolve(tag)
    assert [each.headers.get("Authorization") for each in realm.seen] == [USER]
    assert [each.headers.get("Authorization") for each in secure.seen] == [None, "Bearer t0"]


def test_no_secret_shows_in_a_repr() -> None:
    assert "hidden" not in repr(Request("GET", "https://x", {"Authorization": "hidden"}, b"hidden"))
    credential = Credential("user", "hidden-1", "hidden-2", "hidden-3", "file")
    assert "hidden" not in repr(credential)
    assert "hidden" not in _token_request("https://realm.example/t", "s", ["x"], credential).url


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["Basic"], [("basic", {})]),
        (['Bearer realm="https://x/t",service="s",scope="a:b:c,d"'],
         [("bearer", {"realm": "https://x/t", "service": "s", "scope": "a:b:c,d"})]),
        (["Basic realm=x, Bearer realm = \"y\" , service=z"],
         [("basic", {"realm": "x"}), ("bearer", {"realm": "y", "service": "z"})]),
        (["Negotiate, Basic realm=\"a, b\""], [("negotiate", {}), ("basic", {"realm": "a, b"})]),
        (["Negotiate dG9rZW4=, Basic realm=x"], [("negotiate", {}), ("basic", {"realm": "x"})]),
        (['Bearer realm="a\\"b\\\\c"'], [("bearer", {"realm": 'a"b\\c'})]),
        (['BEARER REALM="x"', "basic"], [("bearer", {"realm": "x"}), ("basic", {})]),
        (["Bearer realm=https://x/t,service=s"], [("bearer", {"realm": "https://x/t", "service": "s"})]),
        (['Bearer realm="unfinished'], [("bearer", {})]),
        (["", ",,,", '"', "=x"], []),
    ],
)  # fmt: skip
def test_challenges_are_read(headers: list[str], expected: list[tuple[str, dict[str, str]]]) -> None:
    assert challenges(headers) == [Challenge(scheme, parameters) for scheme, parameters in expected]


def test_a_hostile_challenge_takes_no_time() -> None:
    for text in ('a="' * 100_000, "x " * 100_000, "=," * 100_000, "a=b," * 100_000, '\\"' * 100_000):
        assert len(challenges([f"Bearer {text}"] * 50)) <= 16
