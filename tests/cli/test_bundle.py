"""`podium bundle`: from an empty folder to an image, as an author goes, and what is said when it fails."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import folders, samplebundle
from harness.commandline import edit, podium, project, raise_version, snapshot

JUNK = bytes(range(256)) * 8
NAME = "docker.io/acme/pantry-operator-bundle:0.1.0"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def pantry(tmp_path: Path) -> Path:
    return project(tmp_path / "pantry")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return folders.write(tmp_path / "bundle", samplebundle.files())


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who owns nothing here, since root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# --- init, generate ---


def test_a_new_project_can_be_generated_checked_and_built_as_it_is(tmp_path: Path) -> None:
    told = podium("bundle", "init", "pantry-operator", "--images", "docker.io/acme").err
    assert "podium bundle generate pantry-operator" in told
    assert "written, version 0.1.0" in podium("bundle", "generate", "pantry-operator").err
    assert "valid" in podium("bundle", "validate", "pantry-operator/bundle").err
    built = podium("bundle", "build", "pantry-operator/bundle", "--to", f"oci:images:{NAME}")
    assert re.fullmatch(rf"oci:images:{NAME}@sha256:[0-9a-f]{{64}}\n", built.out)


def test_a_project_is_not_started_over_another(pantry: Path) -> None:
    before = snapshot(pantry)
    done = podium("bundle", "init", pantry, code=4)
    assert "podium.yaml" in done.err
    assert "nothing was written" in done.err
    assert snapshot(pantry) == before


@pytest.mark.parametrize(
    "options",
    [("--name", "Not A Name"), ("--kind", "lower"), ("--group", "under_score"), ("--images", "acme")],
)
def test_names_that_cannot_work_are_refused_at_the_start(tmp_path: Path, options: tuple[str, str]) -> None:
    assert podium("bundle", "init", "new", *options, code=1).err.startswith("Error: ")
    assert not (tmp_path / "new").exists()


def test_generating_again_writes_nothing(pantry: Path) -> None:
    podium("bundle", "generate", pantry)
    before = snapshot(pantry)
    times = {path: Path(path).stat().st_mtime_ns for path in before}
    os.utime(pantry / "config/rbac.yaml")
    times[str(pantry / "config/rbac.yaml")] = (pantry / "config/rbac.yaml").stat().st_mtime_ns
    assert "unchanged, version 0.1.0" in podium("bundle", "generate", pantry).err
    assert snapshot(pantry) == before
    assert {path: Path(path).stat().st_mtime_ns for path in before} == times


def test_a_raised_version_takes_the_place_of_the_old_bundle(pantry: Path) -> None:
    podium("bundle", "generate", pantry)
    raise_version(pantry, "0.2.0")
    podium("bundle", "generate", pantry)
    assert podium("bundle", "show", pantry / "bundle", "-o", "json").json["version"] == "0.2.0"
    assert sorted(path.name for path in pantry.iterdir() if path.name.startswith(".")) == []


def test_a_folder_that_is_no_bundle_is_never_replaced(pantry: Path, tmp_path: Path) -> None:
    precious = folders.write(tmp_path / "precious", {"thesis.txt": b"years"})
    assert "is not a bundle" in podium("bundle", "generate", pantry, "--to", precious, code=4).err
    assert (precious / "thesis.txt").read_bytes() == b"years"


def test_generation_says_what_is_wrong_with_the_manifests(pantry: Path) -> None:
    edit(pantry / "config/crd.yaml", "kind: CustomResourceDefinition", "kind: [")
    done = podium("bundle", "generate", pantry, code=1)
    assert "config/crd.yaml" in done.out + done.err


# --- validate, show ---


def test_all_findings_are_told_at_once_with_file_and_rule(bundle: Path) -> None:
    (bundle / samplebundle.CRD_FILE).write_bytes(JUNK)
    (bundle / samplebundle.ANNOTATIONS_FILE).unlink()
    done = podium("bundle", "validate", bundle, code=1)
    assert samplebundle.CRD_FILE in done.out
    assert "[annotations-missing]" in done.out
    assert re.search(rf"{bundle}: \d+ errors", done.err)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_findings_as_data_tell_the_verdict(bundle: Path, output: str) -> None:
    from podium.text import yaml

    good = yaml.load(podium("bundle", "validate", bundle, "-o", output).out)
    assert good["passed"] is True
    (bundle / samplebundle.ANNOTATIONS_FILE).unlink()
    bad = yaml.load(podium("bundle", "validate", bundle, "-o", output, code=1).out)
    assert bad["passed"] is False
    first = bad["findings"][0]
    assert set(first) == {"severity", "rule", "message", "subject", "place"}
    assert first["severity"] == "error"


def test_optional_checks_are_listed_and_run_when_asked_for(bundle: Path) -> None:
    listed = podium("bundle", "validate", "--list-optional", "-o", "json").json
    suites = {each["suite"] for each in listed}
    assert "operatorframework" in suites
    assert "operatorframework" in podium("bundle", "validate", "--list-optional").out
    podium("bundle", "validate", bundle, "--select-optional", "suite=operatorframework")
    done = podium("bundle", "validate", bundle, "--optional-values", "no-equals-sign", code=2)
    assert "expected KEY=VALUE" in done.err


def test_a_bundle_is_shown_alike_from_directory_and_image(bundle: Path) -> None:
    podium("bundle", "build", bundle, "--to", "oci:images:1")
    shown = podium("bundle", "show", bundle, "-o", "json")
    assert shown.json["name"] == "cache.v1.2.3"
    assert shown.json["channels"] == ["stable", "fast"]
    assert "Cache.v1.cache.example.com" in shown.json["provides"]
    assert podium("bundle", "show", "oci:images:1", "-o", "json").json == shown.json
    assert "Default channel  stable" in podium("bundle", "show", bundle).out


# --- build, push ---


def test_building_again_gives_the_same_digest_and_writes_nothing(bundle: Path, tmp_path: Path) -> None:
    first = podium("bundle", "build", bundle, "--to", "oci:images:1", "-o", "json").json
    assert first["existed"] is False
    before = snapshot(tmp_path)
    again = podium("bundle", "build", bundle, "--to", "oci:images:1", "-o", "json").json
    assert again == {**first, "existed": True}
    assert "is there already" in podium("bundle", "build", bundle, "--to", "oci:images:1").err
    assert snapshot(tmp_path) == before


def test_equal_content_elsewhere_and_later_gives_the_same_digest(bundle: Path, tmp_path: Path) -> None:
    other = folders.write(tmp_path / "deep/down", dict(reversed(samplebundle.files().items())))
    (other / samplebundle.CSV_FILE).chmod(0o600)
    os.utime(other / samplebundle.CSV_FILE, (0, 0))
    one = podium("bundle", "build", bundle, "--to", "oci:one:1", "-o", "json").json
    two = podium("bundle", "build", other, "--to", "oci:two:1", "-o", "json").json
    assert one["digest"] == two["digest"]
    dated = podium(
        "bundle", "build", bundle, "--to", "oci:one:2", "-o", "json", env={"SOURCE_DATE_EPOCH": "86400"}
    ).json
    assert dated["digest"] != one["digest"]
    inspected = podium("image", "inspect", "oci:one:2", "-o", "json").json
    assert inspected["created"] == "1970-01-02T00:00:00Z"


def test_annotations_and_own_labels_become_labels_of_the_image(bundle: Path) -> None:
    podium("bundle", "build", bundle, "--to", "oci:images:1", "--label", "team=kitchen")
    labels = podium("image", "inspect", "oci:images:1", "-o", "json").json["labels"]
    assert labels["team"] == "kitchen"
    assert labels["operators.operatorframework.io.bundle.package.v1"] == "cache"


def test_a_bundle_can_be_built_upon_a_base(bundle: Path) -> None:
    podium("bundle", "build", bundle, "--to", "oci:images:base", "--label", "base=yes")
    podium("bundle", "build", bundle, "--to", "oci:images:top", "--base", "oci:images:base")
    inspected = podium("image", "inspect", "oci:images:top", "-o", "json").json
    assert len(inspected["layers"]) == 2
    assert inspected["labels"]["base"] == "yes"
    assert "no tag 'gone'" in podium(
        "bundle", "build", bundle, "--to", "oci:x:y", "--base", "oci:images:gone", code=3
    ).err  # fmt: skip


def test_a_bundle_that_fails_its_checks_is_not_built(bundle: Path, tmp_path: Path) -> None:
    (bundle / samplebundle.ANNOTATIONS_FILE).write_bytes(JUNK)
    assert "error" in podium("bundle", "build", bundle, "--to", "oci:images:1", code=1).out
    assert not (tmp_path / "images").exists()


def test_an_image_is_pushed_as_it_is(bundle: Path) -> None:
    built = podium("bundle", "build", bundle, "--to", "oci:one:1", "-o", "json").json
    pushed = podium("bundle", "push", "oci:one:1", "oci:two:1", "-o", "json").json
    assert pushed["digest"] == built["digest"]
    assert podium("bundle", "push", "oci:one:1", "oci:two:1", "-o", "json").json["existed"] is True
    refused = podium("bundle", "push", "oci:one:1", "oci:two:2", "--label", "a=b", code=2)
    assert "is an image already" in refused.err


def test_a_directory_is_pushed_with_the_digest_that_building_gives(bundle: Path) -> None:
    built = podium("bundle", "build", bundle, "--to", "oci:one:1", "-o", "json").json
    assert podium("bundle", "push", bundle, "oci:two:1", "-o", "json").json["digest"] == built["digest"]


def test_a_name_with_the_digest_of_something_else_is_refused(bundle: Path, tmp_path: Path) -> None:
    other = "sha256:" + "0" * 64
    assert "names another image" in podium("bundle", "push", bundle, f"oci:two@{other}", code=2).err
    built = podium("bundle", "build", bundle, "--to", "oci:one:1", "-o", "json").json
    named = f"oci:two@{built['digest']}"
    assert podium("bundle", "push", "oci:one:1", named).out == f"{named}\n"
    assert podium("image", "ls", "oci:two", "-o", "json").json == []


# --- what cannot work ---


@pytest.mark.parametrize(
    ("reference", "code", "complaint"),
    [
        ("./missing", 3, "missing: no such file or directory"),
        ("dir:missing", 3, "missing: no such file or directory"),
        ("oci:missing:1", 3, "no OCI layout at missing"),
        ("oci:", 2, "the path is missing"),
        ("Bad Name!", 2, "does not name an image"),
        ("https://example.com/a/b", 2, "without a scheme"),
        ("docker-daemon:a/b", 2, "write a name"),
        ("./empty", 1, "lacks manifests/ or metadata/"),
        ("./file", 1, "lacks manifests/ or metadata/"),
        ("127.0.0.1:1/acme/bundle:1", 5, "refused"),
        ("", 2, "does not name an image"),
    ],
)
@pytest.mark.parametrize("command", [("validate",), ("show",), ("build", "--to", "oci:images:1")])
def test_a_reference_that_leads_nowhere_says_why(
    tmp_path: Path, command: tuple[str, ...], reference: str, code: int, complaint: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    assert complaint in podium("bundle", *command, reference, code=code).err
    assert not (tmp_path / "images").exists()


@pytest.mark.parametrize(
    "content", [JUNK, b"", b"\x00", b"- a\n- b\n", b"text", b"a: b: c", b"kind: [" * 999]
)
@pytest.mark.parametrize("file", [samplebundle.CSV_FILE, samplebundle.ANNOTATIONS_FILE])
def test_a_bundle_of_rubbish_is_refused_in_words(bundle: Path, file: str, content: bytes) -> None:
    (bundle / file).write_bytes(content)
    done = podium("bundle", "validate", bundle, code=1)
    assert "error" in done.out
    podium("bundle", "build", bundle, "--to", "oci:images:1", code=1)


@pytest.mark.parametrize(
    "content", [JUNK, b"", b"- a", b"text", b"version: {}\n", b"name: 1\nversion: 2\n", b"{" * 5000]
)
def test_a_project_file_of_rubbish_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    folder = folders.write(tmp_path / "project", {"podium.yaml": content})
    for command in (("bundle", "generate", folder), ("publish", folder, "--layout", tmp_path / "layout")):
        done = podium(*command, code=1)
        assert "podium.yaml" in done.out + done.err
    assert not (tmp_path / "layout").exists()


def test_files_that_may_not_be_read_or_written_are_access_denied(bundle: Path, tmp_path: Path) -> None:
    podium("bundle", "validate", bundle)
    closed = tmp_path / "closed"
    closed.mkdir()
    (bundle / samplebundle.CSV_FILE).chmod(0o000)
    closed.chmod(0o500)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)  # pytest's own folders are closed to others
    with without_rights():
        denied = podium("bundle", "validate", bundle, code=6)
        assert f"{samplebundle.CSV_FILE}: permission denied" in denied.err
        podium("bundle", "init", closed / "new", code=6)
    (bundle / samplebundle.CSV_FILE).chmod(0o644)
    with without_rights():
        podium("bundle", "build", bundle, "--to", f"oci:{closed}/layout:1", code=6)
    closed.chmod(0o700)
