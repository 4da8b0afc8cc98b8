"""Which credentials are found for a repository, in the files and helpers of docker and podman."""

from __future__ import annotations

import base64
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.fakeregistry import settings
from podium.oci.credentials import Credential, Keychain
from podium.oci.errors import BadSetup
from podium.oci.settings import Settings, Timeouts


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def helper(directory: Path, name: str, code: str) -> None:
    """A credential helper: Python code that finds the server in `server`."""
    directory.mkdir(exist_ok=True)
    program = directory / f"docker-credential-{name}"
    head = f"#!{sys.executable} -S\nimport sys, json\nserver = sys.stdin.read()\n"
    program.write_text(f"{head}assert sys.argv[1:] == ['get']\n{code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def with_helpers(home: Path, **fields: Any) -> Settings:
    return settings(home, environ={"PATH": str(home / "bin")}, **fields)


async def found(config: Settings, repository: str = "reg.example/team/app") -> Credential | None:
    return await Keychain(config).find(repository)


AUTHS = {
    "reg.example/team/app": auth("repository:1"),
    "reg.example/team": auth("team:2"),
    "reg.example": auth("host:3"),
    "reg.example:5000": auth("port:4"),
    "https://old.example/v1/": auth("old:5"),
    "http://older.example": auth("older:6"),
    "https://index.docker.io/v1/": auth("hub:7"),
    "odd.example": auth("user:with:colons:8"),
    "empty.example/team": {},
    "empty.example": auth("parent:9"),
    "nul.example": {"auth": base64.b64encode(b"nul:10\x00\x00").decode()},
    "plain.example": {"username": "plain", "password": "11"},
    "Shouted.Example/team": auth("shouted:12"),
}


@pytest.mark.parametrize(
    ("repository", "username", "password"),
    [
        ("reg.example/team/app", "repository", "1"),
        ("reg.example/team/other", "team", "2"),
        ("reg.example/team/app/deeper", "repository", "1"),
        ("reg.example/teams", "host", "3"),
        ("reg.example/other", "host", "3"),
        ("reg.example:5000/team/app", "port", "4"),
        ("old.example/x", "old", "5"),
        ("older.example/x", "older", "6"),
        ("docker.io/library/alpine", "hub", "7"),
        ("odd.example/x", "user", "with:colons:8"),
        ("shouted.example/team/app", "shouted", "12"),
        ("empty.example/team/app", "parent", "9"),
        ("nul.example/x", "nul", "10"),
        ("plain.example/x", "plain", "11"),
    ],
)
async def test_the_most_specific_entry_counts(
    repository: str, username: str, password: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "auth.json", {"auths": AUTHS})
    credential = await found(settings(tmp_path, auth_file=file), repository)
    assert credential is not None
    assert (credential.username, credential.password) == (username, password)
    assert str(file) in credential.origin


@pytest.mark.parametrize("repository", ["unknown.example/x", "example/x", "reg.example:5001/team/app"])
async def test_others_credentials_are_not_used(repository: str, tmp_path: Path) -> None:
    file = write(tmp_path / "auth.json", {"auths": AUTHS})
    assert await found(settings(tmp_path, auth_file=file), repository) is None


@pytest.mark.parametrize(
    "key",
    [
        "docker.io",
        "index.docker.io",
        "https://index.docker.io/v1/",
        "registry-1.docker.io",
        "docker.io/library",
    ],
)
async def test_docker_hub_has_many_names(key: str, tmp_path: Path) -> None:
    file = write(tmp_path / "auth.json", {"auths": {key: auth("hub:x")}})
    credential = await found(settings(tmp_path, auth_file=file), "docker.io/library/alpine")
    assert credential is not None
    assert credential.username == "hub"


ORDER = ["docker/config.json", "run/containers/auth.json", ".config/containers/auth.json", ".dockercfg"]


@pytest.mark.parametrize("first", range(len(ORDER)))
async def test_the_first_file_with_something_wins(first: int, tmp_path: Path) -> None:
    for place in ORDER[first:]:
        entries = {"reg.example": auth(f"{place}:x")}
        write(tmp_path / place, entries if place == ".dockercfg" else {"auths": entries})
    for place in ORDER[:first]:
        write(tmp_path / place, {"auths": {"other.example": auth("other:x")}})
    config = settings(tmp_path, environ={"DOCKER_CONFIG": str(tmp_path / "docker")})
    credential = await found(config)
    assert credential is not None
    assert credential.username == ORDER[first]


async def test_dockers_own_place_is_used_without_docker_config(tmp_path: Path) -> None:
    write(tmp_path / ".docker/config.json", {"auths": {"reg.example": auth("docker:x")}})
    credential = await found(settings(tmp_path))
    assert credential is not None
    assert credential.username == "docker"


async def test_a_named_file_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path / ".docker/config.json", {"auths": {"reg.example": auth("docker:x")}})
    file = write(tmp_path / "named.json", {"auths": {}})
    assert await found(settings(tmp_path, environ={"REGISTRY_AUTH_FILE": str(file)})) is None
    assert await found(settings(tmp_path, auth_file=file)) is None
    missing = settings(tmp_path, environ={"REGISTRY_AUTH_FILE": str(tmp_path / "missing.json")})
    with pytest.raises(BadSetup, match="does not exist"):
        await found(missing)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not what docker or podman login writes"),
        ("{", "not what docker or podman login writes"),
        ("[]", "not what docker or podman login writes"),
        ({"auths": []}, "not what docker or podman login writes"),
        ({"auths": {"reg.example": {"auth": 7}}}, "not what docker or podman login writes"),
        ({"auths": {"reg.example": {"auth": "c2VjcmV0IHdpdGhvdXQgY29sb24="}}}, "no colon"),
        ({"auths": {"reg.example": {"auth": "!hidden!"}}}, "not base64"),
        ({"auths": {"reg.example": {"auth": "/////w=="}}}, "not base64"),
        ({"auths": {"reg.example": {"auth": "geheim\u00fc"}}}, "not base64"),
        (b'{"auths": {"reg.example": {"auth": "\xff"}}}', "not what docker or podman login writes"),
        ('{"auths": ' + "[" * 100_000, "not what docker or podman login writes"),
        ('{"x": ' + "[" * 100_000, "not what docker or podman login writes"),
        ({"auths": {"reg.example": {"registrytoken": "a\r\nsecret: b"}}}, "`registrytoken` is no token"),
        ({"auths": {"reg.example": {"registrytoken": "gehe\u00fc"}}}, "`registrytoken` is no token"),
        ({"credHelpers": {"reg.example": "a;b"}}, "not the name of a credential helper"),
        ({"credsStore": "a b"}, "not the name of a credential helper"),
        ({"credHelpers": {"reg.example": "../evil"}}, "not the name of a credential helper"),
        ({"credHelpers": {"reg.example": "/bin/sh"}}, "not the name of a credential helper"),
        ({"credHelpers": {"reg.example": "missing"}}, "docker-credential-missing is not on the PATH"),
        ({"credsStore": "missing"}, "docker-credential-missing is not on the PATH"),
    ],
)
async def test_files_that_cannot_be_used_say_so_without_secrets(
    content: Any, words: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "auth.json", content)
    with pytest.raises(BadSetup, match=words) as caught:
        await found(with_helpers(tmp_path, auth_file=file))
    assert str(file) in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [{}, {"auths": None}, {"auths": {}, "credHelpers": None, "HttpHeaders": {}}]
)
async def test_files_without_credentials_are_fine(content: Any, tmp_path: Path) -> None:
    assert await found(settings(tmp_path, auth_file=write(tmp_path / "auth.json", content))) is None


ECHO = 'print(json.dumps({"ServerURL": server, "Username": server, "Secret": "from helper"}))'


@pytest.mark.parametrize(
    ("repository", "username"),
    [
        ("reg.example/team/app", "reg.example"),
        ("stored.example/x", "stored.example"),
        ("docker.io/library/alpine", "docker.io"),
        ("auths.example/x", "in file"),
    ],
)
async def test_helpers_are_asked_for_their_registry_and_the_store_for_the_rest(
    repository: str, username: str, tmp_path: Path
) -> None:
    helper(tmp_path / "bin", "one", ECHO)
    helper(tmp_path / "bin", "store", ECHO)
    content = {
        "auths": {
            "auths.example": auth("in file:x"),
            "reg.example": auth("hidden by helper:x"),
            "stored.example": {},
        },
        "credHelpers": {"reg.example": "one"},
        "credsStore": "store",
    }
    file = write(tmp_path / "config.json", content)
    credential = await found(with_helpers(tmp_path, auth_file=file), repository)
    assert credential is not None
    assert credential.username == username


async def test_a_helper_gives_an_identity_token(tmp_path: Path) -> None:
    helper(tmp_path / "bin", "one", 'print(json.dumps({"Username": "<token>", "Secret": "t"}))')
    file = write(tmp_path / "config.json", {"credHelpers": {"reg.example": "one"}})
    assert await found(with_helpers(tmp_path, auth_file=file)) == Credential(
        "", "", identity_token="t", origin="docker-credential-one"
    )


async def test_a_store_that_keeps_docker_hub_under_its_old_name_is_understood(tmp_path: Path) -> None:
    code = (
        'print("credentials not found in native keychain") or sys.exit(1) if "://" not in server else ' + ECHO
    )
    helper(tmp_path / "bin", "store", code)
    file = write(tmp_path / "config.json", {"credsStore": "store"})
    credential = await found(with_helpers(tmp_path, auth_file=file), "docker.io/library/alpine")
    assert credential is not None
    assert credential.username == "https://index.docker.io/v1/"


async def test_a_helper_that_knows_nothing_is_no_error(tmp_path: Path) -> None:
    helper(tmp_path / "bin", "one", 'print("credentials not found in native keychain"); sys.exit(1)')
    file = write(tmp_path / "config.json", {"credHelpers": {"reg.example": "one"}})
    assert await found(with_helpers(tmp_path, auth_file=file)) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('print("the vault is locked"); sys.exit(1)', "exit code 1: the vault is locked"),
        ("sys.exit(3)", "exit code 3: it says nothing"),
        ('print("hidden secret")', "did not print the JSON"),
        ('print("[1, 2]")', "did not print the JSON"),
        ('print(\'{"x": \' + "[" * 100_000)', "did not print the JSON"),
        ('sys.stdout.buffer.write(b\'{"Secret": "\\xff"}\')', "did not print the JSON"),
        ("import time; time.sleep(60)", "did not finish within 0.3 seconds"),
        (
            "import os, time\nif os.fork(): os._exit(0)\nsys.stdout.flush(); time.sleep(60)",
            "did not finish within 0.3 seconds",
        ),
        ("while True: sys.stdout.write('x' * 65536)", "printed more than"),
    ],
)
async def test_a_helper_that_fails_is_told_with_its_words_but_never_its_secrets(
    code: str, words: str, tmp_path: Path
) -> None:
    helper(tmp_path / "bin", "one", code)
    file = write(tmp_path / "config.json", {"credHelpers": {"reg.example": "one"}})
    timeout = Timeouts(helper=0.3 if "0.3" in words else 30)
    with pytest.raises(BadSetup, match=words) as caught:
        await found(with_helpers(tmp_path, auth_file=file, timeouts=timeout))
    assert "hidden" not in str(caught.value)


async def test_a_helper_that_does_not_read_its_input_still_counts(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "docker-credential-deaf"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nexec 0<&-\necho \'{"Username": "u", "Secret": "s"}\'\n')
    program.chmod(0o755)
    file = write(tmp_path / "config.json", {"credHelpers": {"reg.example": "deaf"}})
    assert await found(with_helpers(tmp_path, auth_file=file)) == Credential(
        "u", "s", origin="docker-credential-deaf"
    )


async def test_helpers_from_registries_conf_come_in_their_order(tmp_path: Path) -> None:
    helper(tmp_path / "bin", "none", 'print("credentials not found in native keychain"); sys.exit(1)')
    helper(tmp_path / "bin", "one", ECHO)
    file = write(tmp_path / "auth.json", {"auths": {"reg.example": auth("in file:x")}})
    config = with_helpers(tmp_path, auth_file=file)
    usernames = []
    for helpers in (["none", "one", "containers-auth.json"], ["none", "containers-auth.json", "one"]):
        credential = await Keychain(config, helpers).find("reg.example/team/app")
        assert credential is not None
        usernames.append(credential.username)
    assert usernames == ["reg.example", "in file"]


@pytest.mark.parametrize("environ", [{"HOME": ""}, {"HOME": "", "XDG_RUNTIME_DIR": ""}])
async def test_a_user_without_a_home_has_no_credentials(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a container that runs under a number that no user has.
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    config = settings(tmp_path, environ=environ)
    assert config.home == Path("/")
    assert await found(config) is None
