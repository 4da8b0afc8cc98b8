"""An operator published into the real registry: opm and skopeo read what we wrote as we do.

One project is published in three versions, in the way an author does it, with the `podium` command. What lies
in the registry then is shown to the original tools.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import binaries
from harness.commandline import Outcome, edit, podium, project, raise_version, snapshot, start
from harness.registry import RealRegistry, Skopeo, program, running
from podium.run import instance

pytestmark = pytest.mark.registry

VERSIONS = ("0.1.0", "0.2.0", "0.2.1")
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


@dataclass(frozen=True)
class Author:
    """A project, where its images are, and what publishing each version said."""

    folder: Path
    registry: RealRegistry
    published: list[Outcome]

    def bundle(self, version: str) -> str:
        return f"{self.registry.host}/acme/pantry-operator-bundle:{version}"

    def catalog(self, tag: str) -> str:
        return f"{self.registry.host}/acme/pantry-operator-catalog:{tag}"

    def podium(self, *arguments: str | Path, code: int = 0) -> Outcome:
        return podium(*arguments, "--plain-http", self.registry.host, code=code, env=EPOCH)


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Author]:
    root = tmp_path_factory.mktemp("author")
    with running(root / "registry") as registry:
        folder = project(root / "pantry", images=f"{registry.host}/acme")
        author = Author(folder, registry, [])
        for version in VERSIONS:
            raise_version(folder, version)
            author.published.append(author.podium("publish", folder, "--also-tag", "latest", "-o", "json"))
        yield author


def opm(author: Author, tmp_path: Path, *arguments: str) -> bytes:
    environ = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [str(binaries.find("opm")), *arguments, "--use-http"]
    done = subprocess.run(command, capture_output=True, check=False, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.oracle
@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("level", ["none", "bundle-object-to-csv-metadata"])
def test_opm_renders_our_bundles_as_we_do(author: Author, tmp_path: Path, output: str, level: str) -> None:
    for version in VERSIONS:
        arguments = ("render", author.bundle(version), "-o", output, "--migrate-level", level)
        theirs = opm(author, tmp_path, *arguments)
        assert theirs == author.podium("catalog", *arguments).bytes_out


@pytest.mark.oracle
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_opm_renders_our_catalogs_as_we_do(author: Author, tmp_path: Path, output: str) -> None:
    for tag in (*VERSIONS, "latest"):
        arguments = ("render", author.catalog(tag), "-o", output)
        assert opm(author, tmp_path, *arguments) == author.podium("catalog", *arguments).bytes_out


@pytest.mark.oracle
def test_opm_finds_our_catalog_valid(author: Author, tmp_path: Path) -> None:
    author.podium("catalog", "migrate", author.catalog("latest"), tmp_path / "catalog")
    opm(author, tmp_path, "validate", str(tmp_path / "catalog"))


@pytest.mark.oracle
@pytest.mark.parametrize("output", ["json", "yaml"])
def test_opm_makes_the_same_catalog_from_our_template(author: Author, tmp_path: Path, output: str) -> None:
    template = str(author.folder / "catalog/template.yaml")
    level = ("--migrate-level", "bundle-object-to-csv-metadata")
    theirs = opm(author, tmp_path, "alpha", "render-template", "semver", template, "-o", output, *level)
    assert theirs == author.podium("catalog", "template", template, "-o", output, *level).bytes_out
    (tmp_path / "catalog.yaml").write_bytes(theirs)
    same = author.podium("catalog", "diff", tmp_path / "catalog.yaml", author.catalog("latest"))
    assert "Nothing changes" in same.err


@pytest.mark.oracle
def test_opm_lists_our_catalog_as_we_do(author: Author, tmp_path: Path) -> None:
    theirs = opm(author, tmp_path, "alpha", "list", "channels", author.catalog("latest")).decode()
    ours = author.podium("catalog", "list", "channels", author.catalog("latest")).out
    assert [line.split() for line in theirs.splitlines()] == [line.split() for line in ours.splitlines()]


async def test_skopeo_inspects_what_we_published(author: Author, tmp_path: Path) -> None:
    skopeo = Skopeo(tmp_path)
    for version, told in zip(VERSIONS, author.published, strict=True):
        for kind, name in (("bundle", author.bundle(version)), ("catalog", author.catalog(version))):
            found = json.loads(await skopeo.run("inspect", "--tls-verify=false", f"docker://{name}"))
            arguments = ("image", "inspect", name, "--platform", "linux/amd64", "-o", "json")
            ours = (await asyncio.to_thread(author.podium, *arguments)).json
            assert found["Digest"] == told.json[kind]["digest"] == ours["digest"]
            assert found["Labels"] == ours["labels"]
            assert found["Layers"] == [layer["digest"] for layer in ours["layers"]]
            assert found["Created"] == "2023-11-14T22:13:20Z"
    repository = f"docker://{author.bundle('0.1.0').rpartition(':')[0]}"
    listed = json.loads(await skopeo.run("list-tags", "--tls-verify=false", repository))
    assert sorted(listed["Tags"]) == list(VERSIONS)


async def test_umoci_unpacks_our_bundle(author: Author, tmp_path: Path) -> None:
    name = f"docker://{author.bundle('0.2.1')}"
    await Skopeo(tmp_path).run("copy", "--src-tls-verify=false", name, f"oci:{tmp_path}/layout:1")
    command = [program("umoci"), "raw", "unpack", "--rootless", "--image", "layout:1", "unpacked"]
    await asyncio.to_thread(subprocess.run, command, cwd=tmp_path, check=True, capture_output=True)
    unpacked = {
        str(path.relative_to(tmp_path / "unpacked")): path for path in (tmp_path / "unpacked").rglob("*")
    }
    for path in (author.folder / "bundle").rglob("*"):
        below = str(path.relative_to(author.folder / "bundle"))
        assert below in unpacked
        if path.is_file():
            assert unpacked[below].read_bytes() == path.read_bytes()


def test_the_catalog_upgrades_through_all_versions(author: Author) -> None:
    rows = author.podium("catalog", "list", "bundles", author.catalog("latest"), "-o", "json").json
    stable = {
        row["version"]: (row["replaces"], row["skips"]) for row in rows if row["channel"] == "stable-v0"
    }
    assert stable == {
        "0.1.0": ("", []),
        "0.2.0": ("", []),
        "0.2.1": ("pantry-operator.v0.1.0", ["pantry-operator.v0.2.0"]),
    }


def test_publishing_again_changes_nothing_in_the_registry(author: Author) -> None:
    before = snapshot(author.registry.storage, author.folder)
    again = author.podium("publish", author.folder, "--also-tag", "latest", "-o", "json").json
    assert (again["bundle"]["existed"], again["catalog"]["existed"]) == (True, True)
    author.podium("publish", author.folder, "--dry-run")
    assert snapshot(author.registry.storage, author.folder) == before


def test_other_content_and_removed_versions_are_refused(author: Author, tmp_path: Path) -> None:
    before = snapshot(author.registry.storage)
    manifest, template = author.folder / "config/deployment.yaml", author.folder / "catalog/template.yaml"
    whole = template.read_text()
    try:
        edit(manifest, "replicas: 1", "replicas: 2")
        assert "raise the version" in author.podium("publish", author.folder, code=4).err
        edit(manifest, "replicas: 2", "replicas: 1")
        template.write_text("".join(line for line in whole.splitlines(True) if ":0.2.0" not in line))
        raise_version(author.folder, "0.3.0")
        assert "0.2.0 was published and is gone" in author.podium("publish", author.folder, code=1).out
    finally:
        template.write_text(whole)
        raise_version(author.folder, VERSIONS[-1])
    assert snapshot(author.registry.storage) == before


@pytest.mark.parametrize("sign", ["bundle/_uploads", "bundle/_manifests/tags", "catalog/_layers"])
def test_interrupted_at_any_time_and_run_again_it_ends_the_same(
    author: Author, tmp_path: Path, sign: str
) -> None:
    host, repository = author.registry.host, f"interrupted-{sign.replace('/', '').lower()}"
    folder = project(tmp_path / "pantry", images=f"{host}/{repository}")
    environ = {**os.environ, **EPOCH}
    process = start("publish", folder, "--plain-http", host, stderr=subprocess.PIPE, env=environ)
    begun = author.registry.storage / f"docker/registry/v2/repositories/{repository}/pantry-operator-{sign}"
    assert instance.wait_until(begun.exists, 30)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode in (0, 130)
    assert b"Traceback" not in complaint
    done = author.podium("publish", folder, "-o", "json").json
    told = author.podium("publish", folder, "--dry-run", "-o", "json").json
    assert (told["bundle"]["existed"], told["catalog"]["existed"]) == (True, True)
    assert told["bundle"]["digest"] == done["bundle"]["digest"]


def test_images_by_digest_are_those_that_the_registry_has(author: Author, tmp_path: Path) -> None:
    host = author.registry.host
    folder = project(tmp_path / "pantry", images=f"{host}/pinned")
    missing = author.podium("publish", folder, "--use-image-digests", code=3)
    assert "pinned/pantry-operator/manifests/0.1.0: not found" in missing.err
    operator = f"{host}/pinned/pantry-operator:0.1.0"
    digest = author.podium("image", "copy", author.bundle("0.1.0"), operator, "-o", "json").json["digest"]
    author.podium("publish", folder, "--use-image-digests")
    csv = (folder / "bundle/manifests/pantry-operator.clusterserviceversion.yaml").read_text()
    assert f"image: {host}/pinned/pantry-operator@{digest}" in csv
    assert "relatedImages:" in csv
    author.podium("image", "copy", author.bundle("0.2.0"), operator)
    moved = author.podium("publish", folder, "--use-image-digests", code=4)
    assert "published already with other content" in moved.err
