"""`podium publish`: idempotent, reproducible, and nothing that users have is taken from them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.json import encode
from msgspec.structs import replace

from harness import fakeregistry
from harness.commandline import Outcome, edit, podium, project, raise_version, snapshot, start
from podium.oci.images import pull
from podium.oci.layout import Layout
from podium.oci.model import OCI_CONFIG, OCI_MANIFEST, descriptor_of

BUNDLE = "docker.io/acme/pantry-operator-bundle"
CATALOG = "docker.io/acme/pantry-operator-catalog"
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return project(tmp_path / "pantry")


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    return tmp_path / "layout"


def publish(folder: Path, layout: Path, *options: str, code: int = 0, **more: Any) -> Outcome:
    return podium("publish", folder, "--layout", layout, *options, code=code, **more)


def digests(done: Outcome) -> tuple[str, str]:
    return done.json["bundle"]["digest"], done.json["catalog"]["digest"]


def tags(layout: Path) -> list[str]:
    found: list[str] = podium("image", "ls", f"oci:{layout}", "-o", "json").json
    return found


def bundles(layout: Path, version: str) -> list[str]:
    rows = podium("catalog", "list", "bundles", f"oci:{layout}:{CATALOG}:{version}", "-o", "json").json
    return sorted({row["bundle"] for row in rows})


def test_a_fresh_project_is_published_with_bundle_and_catalog(folder: Path, layout: Path) -> None:
    done = publish(folder, layout)
    assert re.search(rf"Bundle +oci:{layout}:{BUNDLE}:0.1.0@sha256:[0-9a-f]{{64}} \(written\)", done.out)
    assert re.search(rf"Catalog +oci:{layout}:{CATALOG}:0.1.0@sha256:[0-9a-f]{{64}} \(written\)", done.out)
    assert tags(layout) == [f"{BUNDLE}:0.1.0", f"{CATALOG}:0.1.0"]
    podium("bundle", "validate", f"oci:{layout}:{BUNDLE}:0.1.0")
    podium("catalog", "validate", f"oci:{layout}:{CATALOG}:0.1.0")
    assert (folder / "bundle/metadata/annotations.yaml").is_file()


def test_the_outcome_as_data_has_names_as_kubernetes_has_them(folder: Path, layout: Path) -> None:
    done = publish(folder, layout, "-o", "json").json
    assert done["version"] == "0.1.0"
    assert done["channels"] == ["candidate-v0", "fast-v0", "stable-v0"]
    assert done["dryRun"] is False
    assert done["bundle"]["existed"] is False
    assert [(each["package"], each["kind"]) for each in done["changes"]] == [
        ("pantry-operator", "package added")
    ]
    as_yaml = publish(folder, layout, "-o", "yaml").out
    assert f"digest: {done['bundle']['digest']}" in as_yaml


def test_publishing_again_writes_nothing(folder: Path, layout: Path) -> None:
    first = publish(folder, layout, "-o", "json")
    before = snapshot(folder, layout)
    again = publish(folder, layout, "-o", "json")
    assert digests(again) == digests(first)
    assert again.json["bundle"]["existed"]
    assert again.json["catalog"]["existed"]
    assert again.json["changes"] == []
    assert snapshot(folder, layout) == before


def test_another_time_of_building_is_no_other_content(folder: Path, layout: Path) -> None:
    first = publish(folder, layout, "-o", "json", env={"SOURCE_DATE_EPOCH": "1000"})
    before = snapshot(folder, layout)
    assert digests(publish(folder, layout, "-o", "json", env={"SOURCE_DATE_EPOCH": "2000"})) == digests(first)
    os.utime(folder / "config/deployment.yaml")
    assert digests(publish(folder, layout, "-o", "json")) == digests(first)
    assert snapshot(folder, layout) == before


@pytest.mark.parametrize("versions", [("0.1.0",), ("0.1.0", "0.2.0")])
def test_a_dry_run_tells_the_digests_and_writes_nothing(
    folder: Path, layout: Path, versions: tuple[str, ...]
) -> None:
    *earlier, last = versions
    for version in earlier:
        raise_version(folder, version)
        publish(folder, layout)
    raise_version(folder, last)
    before = snapshot(folder, layout)
    there = layout.exists()
    told = publish(folder, layout, "--dry-run", "-o", "json")
    assert told.json["dryRun"] is True
    assert "would be written" in publish(folder, layout, "--dry-run").out
    assert snapshot(folder, layout) == before
    assert layout.exists() == there
    assert digests(publish(folder, layout, "-o", "json")) == digests(told)
    assert publish(folder, layout, "--dry-run").out.count("unchanged") == 2


def test_two_folders_with_the_same_content_give_the_same_digests(folder: Path, tmp_path: Path) -> None:
    other = project(tmp_path / "elsewhere/other")
    first = publish(folder, tmp_path / "one", "-o", "json", env=EPOCH)
    second = publish(other, tmp_path / "two", "-o", "json", env=EPOCH)
    assert digests(first) == digests(second)


def test_a_raised_version_joins_the_template_and_upgrades_the_one_before(folder: Path, layout: Path) -> None:
    publish(folder, layout)
    raise_version(folder, "0.2.0")
    done = publish(folder, layout)
    assert "stable-v0: newest version -> pantry-operator.v0.2.0" in done.out
    template = (folder / "catalog/template.yaml").read_text()
    assert template.count(f"- image: {BUNDLE}:0.2.0") == 3
    assert template.startswith("# The bundles in the catalog"), "comments stay"
    rows = podium(
        "catalog", "list", "bundles", f"oci:{layout}:{CATALOG}:0.2.0", "pantry-operator", "-o", "json"
    ).json
    edges = {(row["channel"], row["replaces"]) for row in rows if row["version"] == "0.2.0"}
    channels = ("candidate-v0", "fast-v0", "stable-v0")
    assert edges == {(channel, "pantry-operator.v0.1.0") for channel in channels}


def test_other_content_under_a_published_version_is_refused(folder: Path, layout: Path) -> None:
    publish(folder, layout)
    edit(folder / "config/deployment.yaml", "replicas: 1", "replicas: 2")
    before = snapshot(folder, layout)
    done = publish(folder, layout, code=4)
    assert "published already with other content" in done.err
    assert "raise the version" in done.err
    assert snapshot(folder, layout) == before


def test_a_version_that_left_the_template_is_refused_with_the_file_to_look_at(
    folder: Path, layout: Path
) -> None:
    publish(folder, layout)
    raise_version(folder, "0.2.0")
    template = folder / "catalog/template.yaml"
    edit(template, ":0.1.0", ":0.2.0")
    before = snapshot(folder, layout)
    done = publish(folder, layout, code=1)
    assert f"{template}: error: bundle pantry-operator.v0.1.0: version 0.1.0 was published" in done.out
    assert "Nothing was published" in done.err
    found = publish(folder, layout, "-o", "json", code=1).json
    assert found["passed"] is False
    assert "version-removed" in [finding["rule"] for finding in found["findings"]]
    assert snapshot(folder, layout) == before


def test_an_old_release_run_again_changes_nothing(folder: Path, layout: Path, tmp_path: Path) -> None:
    publish(folder, layout, "--also-tag", "latest")
    old = tmp_path / "old-checkout"
    shutil.copytree(folder, old)
    raise_version(folder, "0.2.0")
    publish(folder, layout, "--also-tag", "latest")
    before = snapshot(layout)
    assert publish(old, layout).out.count("unchanged") == 2
    moved_back = publish(old, layout, "--also-tag", "latest", code=1)
    assert "version 0.2.0 was published and is gone" in moved_back.out
    assert snapshot(layout) == before


def test_who_follows_a_moving_tag_keeps_what_it_had(folder: Path, layout: Path) -> None:
    publish(folder, layout)
    raise_version(folder, "0.2.0")
    publish(folder, layout)
    raise_version(folder, "0.1.1")
    publish(folder, layout, "--also-tag", "latest")
    raise_version(folder, "0.3.0")
    template = folder / "catalog/template.yaml"
    template.write_text("".join(x for x in template.read_text().splitlines(True) if ":0.1.1" not in x))
    done = publish(folder, layout, "--also-tag", "latest", code=1)
    assert "version 0.1.1 was published and is gone" in done.out


def test_a_patch_for_an_older_version_keeps_the_newer_ones(folder: Path, layout: Path) -> None:
    for version in ("0.1.0", "0.2.0", "0.1.1"):
        raise_version(folder, version)
        publish(folder, layout)
    assert bundles(layout, "0.1.1") == [f"pantry-operator.v{each}" for each in ("0.1.0", "0.1.1", "0.2.0")]


def test_a_catalog_under_another_tag_is_compared_as_well(folder: Path, layout: Path) -> None:
    publish(folder, layout, "--catalog-tag", "v0.1")
    raise_version(folder, "0.2.0")
    edit(folder / "catalog/template.yaml", ":0.1.0", ":0.2.0")
    assert "was published and is gone" in publish(folder, layout, "--catalog-tag", "v0.2", code=1).out


def test_further_tags_point_at_the_same_catalog(folder: Path, layout: Path) -> None:
    done = publish(folder, layout, "--also-tag", "latest", "--also-tag", "v0", "-o", "json")
    for tag in ("latest", "v0"):
        inspected = podium("image", "inspect", f"oci:{layout}:{CATALOG}:{tag}", "-o", "json").json
        assert inspected["digest"] == done.json["catalog"]["digest"]


def test_a_tag_that_is_taken_by_another_catalog_is_a_conflict(folder: Path, layout: Path) -> None:
    publish(folder, layout, "--catalog-tag", "stable")
    raise_version(folder, "0.2.0")
    done = publish(folder, layout, "--catalog-tag", "stable", code=4)
    assert "--catalog-tag" in done.err
    assert f"{BUNDLE}:0.2.0" not in tags(layout)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--also-tag", "b d"), "does not name an image"),
        (("--catalog-tag", ":"), "does not name an image"),
        (("--layout", "a:b"), "can have no colon"),
        (("-o", "xml"), "is not one of"),
        (("--cert-dir", "nowhere"), "does not exist"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_written(
    folder: Path, layout: Path, options: tuple[str, ...], complaint: str
) -> None:
    assert complaint in publish(folder, layout, *options, code=2).err
    assert not layout.exists()


@pytest.mark.parametrize("epoch", ["yesterday", "-1", "²", str(8**11), "9" * 30])
def test_a_wrong_time_is_wrong_usage(folder: Path, layout: Path, epoch: str) -> None:
    done = publish(folder, layout, code=2, env={"SOURCE_DATE_EPOCH": epoch})
    assert "SOURCE_DATE_EPOCH must be seconds since 1970" in done.err


def test_a_folder_without_a_project_says_how_to_start_one(tmp_path: Path, layout: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "podium bundle init" in publish(empty, layout, code=3).err


def test_all_mistakes_in_the_project_are_told_with_their_lines(folder: Path, layout: Path) -> None:
    edit(folder / "podium.yaml", "version: 0.1.0", "version: one")
    edit(folder / "podium.yaml", "channelsPer: major", "channelsPer: century")
    done = publish(folder, layout, code=1)
    assert re.search(r"podium\.yaml:\d+: error: version: 'one' is no semantic version", done.out)
    assert re.search(r"podium\.yaml:\d+: error: channelsPer", done.out)
    assert not layout.exists()


def test_images_that_are_missing_in_the_project_are_asked_for(folder: Path, layout: Path) -> None:
    file = folder / "podium.yaml"
    file.write_text(re.sub(r"(?m)^  catalog: docker.*\n", "", file.read_text()))
    assert "publishing needs images.catalog" in publish(folder, layout, code=1).out


def test_a_bundle_that_breaks_rules_is_not_published(folder: Path, layout: Path) -> None:
    edit(folder / "config/crd.yaml", "name: pantries.example.com", "name: wrong.example.com")
    done = publish(folder, layout, code=1)
    assert "error" in done.out
    assert not layout.exists()


def test_a_template_that_is_missing_is_named(folder: Path, layout: Path) -> None:
    (folder / "catalog/template.yaml").unlink()
    assert "catalog/template.yaml is missing" in publish(folder, layout, code=3).err


def test_a_bundle_that_the_template_names_but_nobody_has_is_named(folder: Path, layout: Path) -> None:
    with (folder / "catalog/template.yaml").open("a") as template:
        template.write(f"stable:\n  bundles:\n  - image: {BUNDLE}:0.0.9\n")
    assert f"template.yaml:8: {BUNDLE}:0.0.9: " in publish(folder, layout, code=3).err
    assert not layout.exists()


def test_a_template_may_name_bundles_by_digest(folder: Path, layout: Path, tmp_path: Path) -> None:
    digest = digests(publish(folder, layout, "-o", "json"))[0]
    other = tmp_path / "other"
    podium("image", "copy", f"oci:{layout}:{BUNDLE}:0.1.0", f"oci:{other}:{BUNDLE}:0.1.0")
    raise_version(folder, "0.2.0")
    edit(folder / "catalog/template.yaml", f"{BUNDLE}:0.1.0", f"{BUNDLE}@{digest}")
    publish(folder, other)
    assert bundles(other, "0.2.0") == ["pantry-operator.v0.1.0", "pantry-operator.v0.2.0"]


def test_what_users_have_is_not_fetched_again_however_the_template_spells_it(
    folder: Path, layout: Path
) -> None:
    publish(folder, layout)
    index = layout / "index.json"
    index.write_text(index.read_text().replace(f"{BUNDLE}:0.1.0", f"{BUNDLE}:gone"))
    raise_version(folder, "0.2.0")
    edit(folder / "catalog/template.yaml", f"{BUNDLE}:0.1.0", BUNDLE.removeprefix("docker.io/") + ":0.1.0")
    publish(folder, layout)
    assert bundles(layout, "0.2.0") == ["pantry-operator.v0.1.0", "pantry-operator.v0.2.0"]


def test_one_image_under_two_spellings_is_told(folder: Path, layout: Path) -> None:
    publish(folder, layout)
    edit(folder / "catalog/template.yaml", f"{BUNDLE}:0.1.0", BUNDLE.removeprefix("docker.io/") + ":0.1.0")
    assert "version 0.1.0 is there already, from acme/" in publish(folder, layout, code=1).err


@pytest.mark.parametrize("created", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "once"])
def test_a_bundle_that_another_tool_made_at_an_odd_time_is_a_conflict(
    folder: Path, layout: Path, created: str
) -> None:
    publish(folder, layout)
    _say_created(layout, f"{BUNDLE}:0.1.0", created)
    assert "published already with other content" in publish(folder, layout, code=4).err


def _say_created(layout: Path, tag: str, created: str) -> None:
    """Put the image under a tag in the place of the one that is the same but for its time."""

    async def rewrite() -> None:
        store = Layout(layout)
        image = await pull(store, tag)
        config = encode({**image.config, "created": created})
        described = descriptor_of(config, OCI_CONFIG)
        manifest = encode(replace(image.manifest, config=described))
        await store.put_blob(described, partial(_whole, config))
        await store.put_manifest(descriptor_of(manifest, OCI_MANIFEST), manifest, tag)

    asyncio.run(rewrite())


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def test_what_an_author_keeps_beside_the_bundle_stays(folder: Path, layout: Path) -> None:
    publish(folder, layout)
    kept = [folder / "bundle/ci.yaml", folder / "bundle/tests/scorecard/config.yaml"]
    for file in kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (folder / "bundle/manifests/stale.yaml").write_text("kind: Secret")
    raise_version(folder, "0.2.0")
    publish(folder, layout)
    assert [file.read_text() for file in kept] == ["mine", "mine"]
    assert not (folder / "bundle/manifests/stale.yaml").exists()
    before = snapshot(folder, layout)
    publish(folder, layout)
    assert snapshot(folder, layout) == before


# --- with a registry ---


async def run(*arguments: str | Path, code: int = 0, **more: Any) -> Outcome:
    return await asyncio.to_thread(podium, *arguments, code=code, **more)


def hosted(tmp_path: Path, registry: fakeregistry.FakeRegistry) -> Path:
    return project(tmp_path / "hosted", images=f"{registry.host}/acme")


async def test_images_go_to_the_registries_that_the_project_names(folder: Path, tmp_path: Path) -> None:
    async with fakeregistry.running() as registry:
        hosting = await asyncio.to_thread(hosted, tmp_path, registry)
        plain = ("--plain-http", registry.host)
        told = await run("publish", hosting, "--dry-run", "-o", "json", *plain)
        assert not [each for each in registry.seen if each.method not in ("GET", "HEAD")]
        done = await run("publish", hosting, "-o", "json", *plain, "--catalog-tag", "1")
        assert done.json["bundle"]["digest"] == told.json["bundle"]["digest"]
        assert set(registry.manifests) == set(digests(done))


async def test_plain_http_is_spoken_only_where_the_user_says_so(folder: Path, tmp_path: Path) -> None:
    async with fakeregistry.running() as registry:
        hosting = await asyncio.to_thread(hosted, tmp_path, registry)
        done = await run("publish", hosting, code=5)
        assert "--plain-http" in done.err or "TLS" in done.err
        assert not registry.manifests


async def test_a_registry_that_denies_ends_with_its_own_exit_code(folder: Path, tmp_path: Path) -> None:
    async def denied(request: web.Request) -> web.Response:
        return web.json_response({"errors": [{"code": "DENIED", "message": "no"}]}, status=403)

    async with fakeregistry.running() as registry:
        hosting = await asyncio.to_thread(hosted, tmp_path, registry)
        registry.before = denied
        assert registry.host in (await run("publish", hosting, "--plain-http", registry.host, code=6)).err


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_ctrl_c_ends_it_quickly_and_quietly(folder: Path, tmp_path: Path, method: str) -> None:
    reached = asyncio.Event()

    async def hangs(request: web.Request) -> None:
        if request.method == method:
            reached.set()
            await asyncio.Event().wait()

    async with fakeregistry.running() as registry:
        hosting = await asyncio.to_thread(hosted, tmp_path, registry)
        registry.before = hangs
        process = start("publish", hosting, "--plain-http", registry.host, stderr=subprocess.PIPE)
        await asyncio.wait_for(reached.wait(), 30)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, complaint = await asyncio.to_thread(process.communicate)
        assert process.returncode == 130
        assert time.monotonic() - begin < 5
        assert complaint.decode().strip() == "Interrupted."
        registry.before = None
        assert (await run("publish", hosting, "--plain-http", registry.host, "--catalog-tag", "1")).code == 0
