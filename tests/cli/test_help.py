"""Every command explains itself, and every example in its help works when it is typed."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness import fakeregistry
from harness.commandline import podium, project, raise_version, start
from podium.cli import cli

REGISTRY = "docker.io"  # stands for the registry of the author; a fake one takes its place


def commands(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())
CONTROL_PLANE = ("up", "status", "kubeconfig", "down", "reset")


def examples(command: click.Command) -> list[str]:
    """The lines that the help tells a user to type."""
    _, _, block = (command.help or "").partition("Example:\n")
    return [line.strip() for line in block.split("\n\n")[0].splitlines() if line.strip()]


def named(path: tuple[str, ...]) -> str:
    return " ".join(path)


@pytest.mark.parametrize("path", COMMANDS, ids=named)
def test_every_command_has_help_with_an_example(path: tuple[str, ...]) -> None:
    told = podium(*path, "--help").out
    assert told == podium(*path, "-h").out
    assert f"Usage: podium {named(path)}" in told
    assert "Example:\n" in told
    lines = examples(COMMANDS[path])
    assert any(f"podium {named(path)}" in line for line in lines)
    assert all(line in told for line in lines), "not wrapped"


@pytest.mark.parametrize("path", COMMANDS, ids=named)
def test_every_option_says_what_it_does(path: tuple[str, ...]) -> None:
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_the_list_of_commands_has_them_all() -> None:
    told = podium("--help").out
    for name in {path[0] for path in COMMANDS}:
        assert re.search(rf"^  {name}  +\w", told, re.MULTILINE)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an author has lying around: a project, its bundle and catalog, templates, a layout."""
    root = tmp_path_factory.mktemp("author")
    folder = project(root / "pantry-operator", version="1.0.0")
    for version in ("1.0.0", "1.2.0"):
        raise_version(folder, version)
        podium("publish", folder, "--layout", root / "published")
    published = f"oci:{root}/published:docker.io/acme/pantry-operator"
    shutil.copytree(folder / "bundle", root / "bundle")
    (root / "catalog").mkdir()
    catalog = podium("catalog", "render", f"{published}-catalog:1.2.0").bytes_out
    (root / "catalog/catalog.yaml").write_bytes(catalog)
    template = "schema: olm.semver\ngenerateMajorChannels: true\nfast:\n  bundles:\n"
    (root / "semver.yaml").write_text(template + "  - image: docker.io/acme/operator-bundle:1.2.0\n")
    (root / "template.yaml").write_text(template + "  - image: docker.io/acme/operator-bundle:1.0.0\n")
    (root / "README.md").write_text("Keeps food.\n")
    podium("image", "copy", f"{published}-bundle:1.0.0", f"oci:{root}/images:1.0")
    return root


# What an example makes anew must not be there before.
MADE_ANEW = {
    ("bundle", "init"): "pantry-operator",
    ("publish",): "pantry-operator",
    ("catalog", "migrate"): "catalog",
}


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.mark.parametrize("path", [path for path in COMMANDS if path[0] not in CONTROL_PLANE], ids=named)
async def test_every_example_works_when_it_is_typed(here: Path, path: tuple[str, ...]) -> None:
    if path in MADE_ANEW:
        shutil.rmtree(here / MADE_ANEW[path])
    async with fakeregistry.running() as registry:
        for file in ("semver.yaml", "template.yaml"):
            (here / file).write_text((here / file).read_text().replace(REGISTRY, registry.host))
        await asyncio.to_thread(fill, registry, here)
        for line in examples(COMMANDS[path]):
            await asyncio.to_thread(typed, line.replace(REGISTRY, registry.host), registry.host)


def fill(registry: fakeregistry.FakeRegistry, here: Path) -> None:
    """Push what the examples pull."""
    for name in ("pantry-operator-bundle:1.0.0", "operator-bundle:1.0.0"):
        copied(f"oci:{here}/published:docker.io/acme/pantry-operator-bundle:1.0.0", f"acme/{name}", registry)
    for tag in ("1", "1.0", "latest"):
        catalog = f"oci:{here}/published:docker.io/acme/pantry-operator-catalog:1.2.0"
        copied(catalog, f"acme/catalog:{tag}", registry)
    copied(f"oci:{here}/images:1.0", "library/alpine:3", registry)


def copied(source: str, target: str, registry: fakeregistry.FakeRegistry) -> None:
    podium("image", "copy", source, f"{registry.host}/{target}", "--plain-http", registry.host)


def typed(line: str, host: str) -> None:
    """Run one line of an example as a shell would, in this process."""
    words = shlex.split(line)
    output = ""
    if ">" in words:
        *words, _, output = words
    assert words[0] == "podium"
    _, command = max(
        ((path, each) for path, each in COMMANDS.items() if tuple(words[1 : len(path) + 1]) == path),
        key=lambda found: len(found[0]),
    )
    if any(parameter.name == "plain_http" for parameter in command.params):
        words += ["--plain-http", host]
    if command.name == "serve":
        served(words)
        return
    done = podium(*words[1:])
    if output:
        assert done.bytes_out
        Path(output).write_bytes(done.bytes_out)


def served(words: list[str]) -> None:
    pytest.importorskip("grpc")
    words[words.index("--port") + 1] = "0"  # the usual one may be taken on this machine
    process = start(*words[1:], stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"Serving" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_examples_of_the_control_plane_work_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    try:
        for name in CONTROL_PLANE:
            for line in examples(COMMANDS[(name,)]):
                subprocess.run(["bash", "-ec", line], check=True, timeout=60, capture_output=True)
        assert not (tmp_path / "data").exists()
    finally:
        podium("down")
