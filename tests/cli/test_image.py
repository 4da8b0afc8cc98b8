"""`podium image`: look at images in registries and layouts, and copy them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import random
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness import fakeregistry
from harness.commandline import Outcome, podium, snapshot, start
from podium.cli.progress import Display
from podium.oci import build
from podium.oci.layout import Layout
from podium.oci.model import OCI_CONFIG, Descriptor, Platform, descriptor_of
from podium.text import yaml


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    asyncio.run(_fill(tmp_path / "images"))
    return tmp_path


async def _fill(path: Path) -> None:
    """A layout with an image for two platforms, and one for one."""
    layer = build.layer({"hello": b"world"})
    platforms = [Platform(os="linux", architecture=name) for name in ("amd64", "s390x")]
    both = [build.image([layer], labels={"for": each.architecture}, platform=each) for each in platforms]
    await build.write(Layout(path), build.index(both), "multi")
    await build.write(Layout(path), both[0], "single")


def inspected(name: str, *options: str) -> Any:
    return podium("image", "inspect", name, *options, "-o", "json").json


def test_tags_are_listed(here: Path) -> None:
    assert podium("image", "ls", "oci:images").out == "TAG\nmulti\nsingle\n"
    assert podium("image", "ls", "oci:images", "-o", "json").json == ["multi", "single"]
    assert yaml.load(podium("image", "ls", "oci:images", "-o", "yaml").out) == ["multi", "single"]


def test_an_image_is_described_with_platforms_labels_and_layers(here: Path) -> None:
    found = inspected("oci:images:multi", "--platform", "linux/s390x")
    assert set(found) == {"name", "digest", "mediaType", "platforms", "created", "labels", "layers"}
    assert found["platforms"] == ["linux/amd64", "linux/s390x"]
    assert found["labels"] == {"for": "s390x"}
    assert set(found["layers"][0]) == {"digest", "size", "mediaType"}
    table = podium("image", "inspect", "oci:images:single").out
    assert "Labels      for=amd64" in table
    by_digest = f"oci:images@{found['digest']}"
    assert inspected(by_digest, "--platform", "linux/s390x") == {**found, "name": by_digest}


def test_a_copy_has_the_same_digest_and_all_platforms(here: Path) -> None:
    digest = inspected("oci:images:multi", "--platform", "linux/amd64")["digest"]
    assert podium("image", "copy", "oci:images:multi", "oci:copy:1").out == f"oci:copy:1@{digest}\n"
    copied = inspected("oci:copy:1", "--platform", "linux/amd64")
    assert (copied["digest"], copied["platforms"]) == (digest, ["linux/amd64", "linux/s390x"])
    before = snapshot(here / "copy")
    again = podium("image", "copy", "oci:images:multi", "oci:copy:1", "-o", "json").json
    assert again == {"source": "oci:images:multi", "target": "oci:copy:1", "digest": digest}
    assert snapshot(here / "copy") == before


def test_one_platform_can_be_copied_alone(here: Path) -> None:
    podium("image", "copy", "oci:images:multi", "oci:copy:1", "--platform", "linux/s390x")
    assert inspected("oci:copy:1", "--platform", "linux/s390x")["platforms"] == ["linux/s390x"]


def test_a_target_may_name_the_digest_but_no_other(here: Path) -> None:
    digest = inspected("oci:images:single")["digest"]
    assert podium("image", "copy", "oci:images:single", f"oci:copy@{digest}").out == f"oci:copy@{digest}\n"
    assert podium("image", "ls", "oci:copy", "-o", "json").json == []
    wrong = f"oci:other@sha256:{'0' * 64}"
    assert "names another image" in podium("image", "copy", "oci:images:single", wrong, code=2).err
    assert not (here / "other").exists()


def test_a_damaged_image_is_not_copied(here: Path) -> None:
    layer = inspected("oci:images:single")["layers"][0]["digest"]
    blob = here / "images/blobs" / layer.replace(":", "/")
    blob.write_bytes(bytes(len(blob.read_bytes())))
    assert layer in podium("image", "copy", "oci:images:single", "oci:copy:1", code=1).err
    assert podium("image", "ls", "oci:copy", "-o", "json").json == []


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("inspect", "oci:images:gone"), 3, "it has: multi, single"),
        (("inspect", "oci:images"), 3, "say which: multi, single"),
        (("inspect", "oci:nowhere:x"), 3, "no OCI layout at nowhere"),
        (("inspect", "oci:images:multi", "--platform", "plan9/mips"), 3, "plan9/mips"),
        (("inspect", "oci:images:single", "--platform", "amd64"), 2, "not a platform"),
        (("inspect", "Not An Image"), 2, "does not name an image"),
        (("inspect", "oci:images:single@sha256:12"), 3, "has no tag"),
        (("inspect", "127.0.0.1:1/a:b", "--plain-http", "127.0.0.1:1"), 5, "refused"),
        (("inspect", "oci:images:single", "--auth-file", "missing"), 2, "does not exist"),
        (("ls", "oci:file"), 3, "no OCI layout at file"),
        (("ls", "http://localhost/x"), 2, "without a scheme"),
        (("copy", "oci:images:gone", "oci:copy:1"), 3, "has no tag 'gone'"),
        (("copy", "oci:images:single", "oci:"), 2, "path is missing"),
        (("copy", "oci:images:single"), 2, "Missing argument"),
        (("copy", "oci:images:single", "oci:file:1"), 1, "file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_work_is_said_with_an_exit_code_of_its_own(
    here: Path, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    (here / "file").write_text("not a directory")
    assert complaint in podium("image", *arguments, code=code).err
    assert not (here / "copy").exists()


@pytest.mark.parametrize("name", ["index.json", "oci-layout"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[]", b"{}", b'{"manifests": 1}', b"[" * 99999])
def test_a_layout_of_rubbish_is_refused_in_words(here: Path, name: str, content: bytes) -> None:
    (here / "images" / name).write_bytes(content)
    if (name, content) == ("index.json", b"{}"):
        return  # an index may be empty
    assert "oci:images" in podium("image", "inspect", "oci:images:single", code=1).err


# --- with a registry ---

Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


async def run(*arguments: str, code: int = 0) -> Outcome:
    return await asyncio.to_thread(podium, "image", *arguments, code=code)


@pytest.mark.parametrize(
    ("status", "code"), [(401, 6), (403, 6), (404, 3), (429, 5), (500, 1), (503, 1), (418, 1)]
)
async def test_every_refusal_of_a_registry_has_its_exit_code(status: int, code: int) -> None:
    async def refuses(request: web.Request) -> web.Response:
        headers = {"Retry-After": "86400"}  # longer than anybody waits
        return web.json_response({"errors": [{"message": "because"}]}, status=status, headers=headers)

    async with fakeregistry.running() as registry:
        registry.before = refuses
        done = await run("inspect", f"{registry.host}/a/b:1", "--plain-http", registry.host, code=code)
        assert registry.host in done.err


async def test_images_go_to_a_registry_and_back() -> None:
    async with fakeregistry.running() as registry:
        plain = ("--plain-http", registry.host)
        pushed = await run("copy", "oci:images:multi", f"{registry.host}/a/b:1", *plain, "-o", "json")
        assert registry.tag_names == {"1": pushed.json["digest"]}
        assert (await run("ls", f"docker://{registry.host}/a/b", *plain, "-o", "json")).json == ["1"]
        back = await run("copy", f"{registry.host}/a/b:1", "oci:back:1", *plain, "-o", "json")
        assert back.json["digest"] == pushed.json["digest"]


async def test_registries_conf_leads_to_another_place(here: Path) -> None:
    async with fakeregistry.running() as registry:
        config = registry.add_blob(b'{"os": "linux", "architecture": "amd64", "rootfs": {}}', OCI_CONFIG)
        digest = registry.add_manifest(fakeregistry.image_bytes(config), "1").digest
        conf = here / "registries.conf"
        location = f'location = "{registry.host}/mirrored"\ninsecure = true'
        conf.write_text(f'[[registry]]\nprefix = "docker.io/acme"\n{location}\n')
        name = f"docker.io/acme/b@{digest}"
        found = await run(
            "inspect", name, "--registries-conf", str(conf), "--platform", "linux/amd64", "-o", "json"
        )
        assert found.json["digest"] == digest
        assert f"/v2/mirrored/b/manifests/{digest}" in registry.paths()
        conf.write_text('[[registry]]\nlocation = "docker.io/acme"\nblocked = true\n')
        await run("inspect", name, "--registries-conf", str(conf), code=6)
        conf.write_text("[[registry")
        done = await run("inspect", name, "--registries-conf", str(conf), code=1)
        assert str(conf) in done.err


async def test_credentials_come_from_the_file_that_is_named(here: Path) -> None:
    async def asks(request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == "Basic YW5uOnNlY3JldA==":
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": "Basic realm=x"})

    async with fakeregistry.running() as registry:
        registry.before = asks
        registry.add_image("1")
        arguments = ("ls", f"{registry.host}/a/b", "--plain-http", registry.host)
        await run(*arguments, code=6)
        auth = here / "auth.json"
        auth.write_text(json.dumps({"auths": {registry.host: {"auth": "YW5uOnNlY3JldA=="}}}))
        assert "1" in (await run(*arguments, "--auth-file", str(auth))).out


# --- progress ---


def test_transfers_are_shown_on_one_line_that_is_drawn_anew() -> None:
    screen = io.StringIO()
    display = Display(screen)
    large = Descriptor(media_type="x", digest=descriptor_of(b"a", "x").digest, size=3 << 20)
    display.started(large, "push")
    display.advanced(large, 1 << 20)
    display.finished(large)
    shown = screen.getvalue()
    assert "1.0 MiB of 3.0 MiB" in shown or "1 MiB of 3 MiB" in shown
    assert shown.endswith("1/1 blobs, 3 MiB of 3 MiB\n")
    assert shown.count("\n") == 1


def test_progress_is_shown_on_a_terminal_only(here: Path) -> None:
    noise = random.Random(1).randbytes(300_000)
    asyncio.run(build.write(Layout(here / "images"), build.image([build.layer({"noise": noise})]), "large"))
    here_to = ("image", "copy", "oci:images:large")
    screen, keyboard = pty.openpty()
    process = start(*here_to, "oci:one:1", stdout=subprocess.DEVNULL, stderr=keyboard)
    assert process.wait(30) == 0
    os.close(keyboard)
    assert b"blobs, 293 KiB of 293 KiB" in os.read(screen, 10_000)
    os.close(screen)
    piped = start(*here_to, "oci:two:1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = piped.communicate(timeout=30)
    assert (piped.returncode, out[:13], err) == (0, b"oci:two:1@sha", b"")


def test_small_blobs_are_not_worth_a_line() -> None:
    screen = io.StringIO()
    display = Display(screen)
    small = descriptor_of(b"abc", "x")
    display.started(small, "push")
    display.finished(small)
    assert screen.getvalue() == ""
