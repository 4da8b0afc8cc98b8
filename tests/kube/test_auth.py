from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from kube.conftest import Connect, Serve
from kube.stub import NAMESPACE, Handler, StillClock, answer, failure
from podium.kube import PEM, Config, ExecPlugin, Impersonation, errors
from podium.kube.auth import credentials
from podium.kube.execplugin import parse_output

V1 = "client.authentication.k8s.io/v1"
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
ROUTE = "GET /api/v1/namespaces/default"


def accepting(*tokens: str) -> Handler:
    """Lets in who shows one of these tokens."""

    async def handle(request: web.Request) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return answer(SPACE) if shown in tokens else failure(401, "Unauthorized")

    return handle


def shown(server: Any) -> list[str]:
    return [seen.headers.get("Authorization", "") for seen in server.calls]


async def test_a_static_token_is_shown_with_every_request(serve: Serve, connect: Connect) -> None:
    server = await serve({ROUTE: accepting("t")})
    await connect(Config(server.url, token="t")).get(NAMESPACE, "default")
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer t"}


async def test_a_password_is_shown_as_basic_authorization(serve: Serve, connect: Connect) -> None:
    server = await serve()
    with pytest.raises(errors.NotFound):
        await connect(Config(server.url, username="jane", password="p:ä")).get(NAMESPACE, "x")
    assert server.seen[0].headers["Authorization"] == "Basic amFuZTpwOsOk"


async def test_impersonation_is_asked_for_in_headers(serve: Serve, connect: Connect) -> None:
    server = await serve({ROUTE: accepting("")})
    someone = Impersonation("jane", "u7", ("a", "b"), (("Scopes/x%", ("1", "2")),))
    await connect(Config(server.url, impersonate=someone)).get(NAMESPACE, "default")
    headers = server.calls[0].headers
    assert (headers["Impersonate-User"], headers["Impersonate-Uid"]) == ("jane", "u7")
    assert headers.getall("Impersonate-Group") == ["a", "b"]
    assert headers.getall("Impersonate-Extra-Scopes%2Fx%25") == ["1", "2"]


async def test_a_token_file_is_read_again_after_a_minute(
    serve: Serve, connect: Connect, clock: StillClock, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("old", "new")})
    token = tmp_path / "token"
    token.write_text("old\n")
    client = connect(Config(server.url, token_file=str(token)))
    await client.get(NAMESPACE, "default")
    token.write_text("new\n")
    clock.now += 59
    await client.get(NAMESPACE, "default")
    clock.now += 2
    await client.get(NAMESPACE, "default")
    assert shown(server) == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_rotated_token_is_found_after_a_401(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    server = await serve({ROUTE: accepting("new")})
    token = tmp_path / "token"
    token.write_text("old")
    client = connect(Config(server.url, token_file=str(token)))
    await client.discovery.resources()
    token.write_text("new")
    assert await client.get(NAMESPACE, "default") == SPACE
    assert shown(server) == ["Bearer old", "Bearer new"]


async def test_a_watch_is_begun_again_with_a_rotated_token(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        accepted = request.headers["Authorization"] == "Bearer new"
        return web.Response() if accepted else failure(401, "Unauthorized")

    server = await serve({"GET /api/v1/namespaces": handle})
    token = tmp_path / "token"
    token.write_text("old")
    client = connect(Config(server.url, token_file=str(token)))
    await client.discovery.resources()
    token.write_text("new")
    assert [change async for change in client.watch(NAMESPACE)] == []
    assert shown(server) == ["Bearer old", "Bearer new"]


async def test_an_unchanged_token_is_not_tried_twice(serve: Serve, connect: Connect, tmp_path: Path) -> None:
    server = await serve({ROUTE: accepting()})
    (tmp_path / "token").write_text("old")
    with pytest.raises(errors.Unauthorized):
        await connect(Config(server.url, token_file=str(tmp_path / "token"))).get(NAMESPACE, "default")
    assert shown(server) == ["Bearer old"]


async def test_a_token_file_that_vanishes_leaves_the_last_token(clock: StillClock, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    login = credentials(Config("https://x", token_file=str(token)), clock)
    first = await login.login()
    token.unlink()
    clock.now += 61
    assert await login.login() == first


@pytest.mark.parametrize("content", [None, "", "a\nb", "ümlaut"])
async def test_a_token_file_without_a_token_is_explained(
    clock: StillClock, tmp_path: Path, content: str | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    with pytest.raises(errors.ConfigError, match=str(token)):
        await credentials(Config("https://x", token_file=str(token)), clock).login()


# TLS


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def pem(ca: trustme.CA) -> PEM:
    return PEM(data=ca.cert_pem.bytes())


def server_tls(ca: trustme.CA, *names: str, clients: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def identity(ca: trustme.CA, name: str) -> tuple[bytes, bytes]:
    issued = ca.issue_cert(f"{name}@example.com", common_name=name)
    return b"".join(part.bytes() for part in issued.cert_chain_pems), issued.private_key_pem.bytes()


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_a_client_certificate_given_as_data_is_shown_and_leaves_no_file(
    serve: Serve, connect: Connect, ca: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server = await serve({ROUTE: accepting("")}, tls=server_tls(ca, "127.0.0.1", clients=ca))
    certificate, key = identity(ca, "jane")
    config = Config(server.url, ca=pem(ca), client_certificate=PEM(certificate), client_key=PEM(key))
    await connect(config).get(NAMESPACE, "default")
    assert server.calls[0].peer == "jane"
    assert files_in(tmp_path) == []


async def test_certificate_files_work_as_well(
    serve: Serve, connect: Connect, ca: trustme.CA, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("")}, tls=server_tls(ca, "127.0.0.1", clients=ca))
    files = [tmp_path / name for name in ("crt", "key", "ca")]
    for file, content in zip(files, (*identity(ca, "joe"), ca.cert_pem.bytes()), strict=True):
        file.write_bytes(content)
    certificate, key, authority = (PEM(file=str(file)) for file in files)
    config = Config(server.url, ca=authority, client_certificate=certificate, client_key=key)
    await connect(config).get(NAMESPACE, "default")
    assert server.calls[0].peer == "joe"


async def test_a_server_that_is_not_trusted_is_a_matter_of_set_up(
    serve: Serve, connect: Connect, ca: trustme.CA
) -> None:
    server = await serve({ROUTE: accepting("")}, tls=server_tls(ca, "127.0.0.1"))
    stranger = Config(server.url, ca=pem(trustme.CA()), origin="somewhere")
    with pytest.raises(errors.ConfigError, match=r"cannot trust https.*certificate-authority.* in somewhere"):
        await connect(stranger).get(NAMESPACE, "default")
    assert await connect(Config(server.url, insecure_skip_tls_verify=True)).get(NAMESPACE, "default")


async def test_the_tls_server_name_replaces_the_host(serve: Serve, connect: Connect, ca: trustme.CA) -> None:
    server = await serve({ROUTE: accepting("")}, tls=server_tls(ca, "api.example.com"))
    assert await connect(Config(server.url, ca=pem(ca), tls_server_name="api.example.com")).get(
        NAMESPACE, "default"
    )
    with pytest.raises(errors.ConfigError, match="cannot trust"):
        await connect(Config(server.url, ca=pem(ca))).get(NAMESPACE, "default")


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (Config("https://127.0.0.1:1", ca=PEM(b"no pem")), "certificate-authority: not a PEM certificate"),
        (Config("https://127.0.0.1:1", ca=PEM(file="/missing/ca")), "cannot read /missing/ca: No such file"),
        (
            Config("https://127.0.0.1:1", client_certificate=PEM(b"x"), client_key=PEM(b"y")),
            "the client certificate and key do not fit or are not PEM",
        ),
    ],
)
async def test_broken_certificates_are_explained(connect: Connect, config: Config, complaint: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        await connect(config).get(NAMESPACE, "default")
    assert complaint in str(caught.value)


# Plugins


def plugin(tmp_path: Path, program: str, **options: Any) -> ExecPlugin:
    """A plugin in Python; each run leaves a line in `runs`."""
    script = tmp_path / "plugin.py"
    script.write_text(
        f"import json, os, sys\nruns = {str(tmp_path / 'runs')!r}\nopen(runs, 'a').write('run\\n')\n"
        f"count = len(open(runs).readlines())\n"
        f"def give(**status):\n"
        f"    print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': status}}))\n"
        + program
    )
    return ExecPlugin(sys.executable, (str(script),), **{"interactive_mode": "Never", **options})


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


async def test_a_plugins_token_is_used_until_it_expires(
    serve: Serve, connect: Connect, clock: StillClock, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("t1", "t2")})
    expiry = (clock.wall() + timedelta(seconds=100)).isoformat()
    program = f"give(token=f't{{count}}', expirationTimestamp={expiry!r} if count == 1 else None)"
    client = connect(Config(server.url, exec=plugin(tmp_path, program)))
    await client.get(NAMESPACE, "default")
    clock.now += 99
    await client.get(NAMESPACE, "default")
    clock.now += 2
    await client.get(NAMESPACE, "default")
    clock.now += 1e6
    await client.get(NAMESPACE, "default")
    assert shown(server) == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]
    assert runs(tmp_path) == 2


async def test_many_requests_at_once_run_the_plugin_once(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("t1")})
    client = connect(Config(server.url, exec=plugin(tmp_path, "give(token=f't{count}')")))
    await asyncio.gather(*(client.get(NAMESPACE, "default") for _ in range(5)))
    assert runs(tmp_path) == 1


async def test_after_a_401_the_plugin_is_run_once_more_for_all(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("t2")})
    client = connect(Config(server.url, exec=plugin(tmp_path, "give(token=f't{count}')")))
    await client.discovery.resources()
    await asyncio.gather(*(client.get(NAMESPACE, "default") for _ in range(4)))
    assert runs(tmp_path) == 2


async def test_credentials_that_stay_refused_are_given_up(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting()})
    client = connect(Config(server.url, exec=plugin(tmp_path, "give(token=f't{count}')")))
    with pytest.raises(errors.Unauthorized):
        await client.get(NAMESPACE, "default")
    assert shown(server) == ["Bearer t1", "Bearer t2"]


async def test_a_plugins_certificate_is_shown_and_rotated(
    serve: Serve, connect: Connect, ca: trustme.CA, clock: StillClock, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("")}, tls=server_tls(ca, "127.0.0.1", clients=ca))
    for number in (1, 2):
        certificate, key = identity(ca, f"robot{number}")
        (tmp_path / f"crt{number}").write_bytes(certificate)
        (tmp_path / f"key{number}").write_bytes(key)
    expiry = (clock.wall() + timedelta(seconds=100)).strftime("%Y-%m-%dT%H:%M:%SZ")
    program = (
        f"read = lambda name: open(os.path.join({str(tmp_path)!r}, name + str(count))).read()\n"
        "give(clientCertificateData=read('crt'), clientKeyData=read('key'),"
        f" expirationTimestamp={expiry!r} if count == 1 else None)"
    )
    client = connect(Config(server.url, ca=pem(ca), exec=plugin(tmp_path, program)))
    await client.get(NAMESPACE, "default")
    clock.now += 101
    await client.get(NAMESPACE, "default")
    assert [seen.peer for seen in server.calls] == ["robot1", "robot2"]


async def test_a_plugin_gets_its_arguments_environment_and_cluster(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve({ROUTE: accepting("t")})
    program = (
        f"seen = [sys.argv[1:], os.environ['HUE'], os.environ['KUBERNETES_EXEC_INFO'], sys.stdin.read()]\n"
        f"json.dump(seen, open({str(tmp_path / 'seen')!r}, 'w'))\n"
        "give(token='t')"
    )
    made = plugin(
        tmp_path, program, env=(("HUE", "red"),), cluster_info={"server": "https://x", "config": {"a": 1}}
    )
    made = ExecPlugin(
        made.command,
        (*made.args, "--x", "y z"),
        made.env,
        cluster_info=made.cluster_info,
        interactive_mode="Never",
    )
    await connect(Config(server.url, exec=made)).get(NAMESPACE, "default")
    arguments, hue, info, stdin = json.loads((tmp_path / "seen").read_text())
    assert (arguments, hue, stdin) == (["--x", "y z"], "red", "")
    assert json.loads(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x", "config": {"a": 1}}},
    }


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (
            "sys.exit('no session: run login')",
            "failed with exit code 1: no session: run login\n\nget it here",
        ),
        ("print('hello')", "did not print an ExecCredential"),
        ("print('{}')", "printed a thing, not an ExecCredential"),
        ("give()", "printed neither a token nor a certificate"),
        ("give(clientKeyData='x')", "printed only a certificate or only a key"),
        ("print('x' * (2 << 20))", "printed more than 1048576 bytes"),
        ("give(token='a b')", "the token has characters that no token can have"),
    ],
)
async def test_a_plugin_that_fails_is_explained(
    connect: Connect, tmp_path: Path, program: str, complaint: str
) -> None:
    client = connect(
        Config("https://127.0.0.1:1", exec=plugin(tmp_path, program, install_hint="get it here"))
    )
    with pytest.raises(errors.ConfigError) as caught:
        await client.get(NAMESPACE, "default")
    assert complaint in str(caught.value)


PAUSE = "import signal; signal.pause()"


@pytest.mark.parametrize(
    "program",
    [PAUSE, f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {PAUSE!r}])\ngive(token='t')"],
)
async def test_a_plugin_that_hangs_is_ended_with_its_children(
    connect: Connect, tmp_path: Path, program: str
) -> None:
    hanging = plugin(tmp_path, program, timeout=0.05)
    with pytest.raises(errors.ConfigError, match=r"did not finish within 0\.05 seconds"):
        await connect(Config("https://127.0.0.1:1", exec=hanging)).get(NAMESPACE, "default")


async def test_a_plugin_that_is_not_installed_says_how_to_get_it(connect: Connect) -> None:
    missing = ExecPlugin("no-such-plugin", install_hint="brew install it", interactive_mode="Never")
    with pytest.raises(errors.ConfigError, match=r"not on the PATH\n\nbrew install it"):
        await connect(Config("https://127.0.0.1:1", exec=missing)).get(NAMESPACE, "default")


async def test_a_plugin_that_must_talk_needs_a_terminal(connect: Connect, tmp_path: Path) -> None:
    talking = plugin(tmp_path, "give(token='t')", interactive_mode="Always")
    with pytest.raises(errors.ConfigError, match="needs a terminal"):
        await connect(Config("https://127.0.0.1:1", exec=talking)).get(NAMESPACE, "default")


@pytest.mark.parametrize(
    ("printed", "complaint"),
    [
        (
            {"apiVersion": f"{V1}beta1", "kind": "ExecCredential"},
            "change apiVersion there or update the plugin",
        ),
        ({"apiVersion": V1, "kind": "Secret"}, "printed a Secret"),
        (
            {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": 7}},
            "did not print an ExecCredential",
        ),
        (
            {
                "apiVersion": V1,
                "kind": "ExecCredential",
                "status": {"token": "t", "expirationTimestamp": "x"},
            },
            "did not print an ExecCredential",
        ),
    ],
)
def test_what_a_plugin_prints_is_checked(printed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        parse_output(json.dumps(printed).encode(), ExecPlugin("login"))
    assert complaint in str(caught.value)
