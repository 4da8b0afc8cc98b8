"""A project on disk: what belongs to it, when it changed; a bundle that is replaced whole or not at all."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.commandline import edit, project, snapshot
from podium.bundle.project import ProjectError
from podium.content import directories
from podium.operations import projects

OLD = {"manifests/a.yaml": b"old", "manifests/gone.yaml": b"old", "metadata/annotations.yaml": b"old"}
NEW = {"manifests/a.yaml": b"new", "metadata/annotations.yaml": b"new", "tests/x.yaml": b"new"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path / "pantry")


def test_generated_and_hidden_files_are_no_part_of_a_project(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    (folder / "config/.swp").write_text("x")
    projects.write_bundle(folder / "bundle", OLD)
    files = projects.open_project(folder).files
    assert "podium.yaml" in files
    assert not [path for path in files if path.startswith((".git", "bundle/")) or ".swp" in path]


def test_a_project_changed_when_its_newest_file_did(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (1000, 1000))
    os.utime(folder / "config/rbac.yaml", (2000, 2000))
    assert projects.open_project(folder).changed == datetime.fromtimestamp(2000, UTC)
    assert projects.open_project(folder, epoch=5).changed == datetime.fromtimestamp(5, UTC)


def test_a_folder_without_a_project_file_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="podium bundle init"):
        projects.open_project(tmp_path)


def test_mistakes_in_the_project_file_are_all_told(folder: Path) -> None:
    edit(folder / "podium.yaml", "version: 0.1.0", "version: one\nunknown: field")
    with pytest.raises(ProjectError) as caught:
        projects.open_project(folder)
    assert len(caught.value.findings) >= 2
    assert all(finding.place.line for finding in caught.value.findings)


def test_unchanged_content_keeps_its_time(folder: Path) -> None:
    first = projects.generate(projects.open_project(folder, epoch=1000))
    projects.write_bundle(folder / "bundle", first.files)
    assert projects.generate(projects.open_project(folder, epoch=2000)).files == first.files
    edit(folder / "config/deployment.yaml", "replicas: 1", "replicas: 2")
    changed = projects.generate(projects.open_project(folder, epoch=2000)).files
    assert b"1970-01-01T00:33:20Z" in changed["manifests/pantry-operator.clusterserviceversion.yaml"]


def test_a_bundle_is_replaced_with_everything_in_it(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    assert projects.write_bundle(bundle, OLD)
    assert projects.write_bundle(bundle, NEW)
    assert directories.bundle_files(bundle) == NEW
    assert not projects.write_bundle(bundle, NEW), "it is there already"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    projects.write_bundle(tmp_path / "bundle", OLD)
    other = tmp_path / "other"
    (other / "manifests").mkdir(parents=True)
    (other / "manifests" / "file").write_text("precious")
    with pytest.raises(FileExistsError, match="is not a bundle"):
        projects.write_bundle(other, NEW)
    assert (other / "manifests" / "file").read_text() == "precious"


def test_what_an_author_keeps_beside_a_bundle_stays(tmp_path: Path) -> None:
    (tmp_path / "bundle" / "ci").mkdir(parents=True)
    (tmp_path / "bundle" / "ci" / "file").write_text("precious")
    projects.write_bundle(tmp_path / "bundle", NEW)
    assert (tmp_path / "bundle" / "ci" / "file").read_text() == "precious"


@pytest.mark.parametrize("step", range(6))
def test_killed_at_any_step_the_old_or_the_new_bundle_is_there_after_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    bundle = tmp_path / "bundle"
    projects.write_bundle(bundle, OLD)
    left = [step]

    def dying(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", dying(Path.write_bytes))
        patch.setattr(Path, "rename", dying(Path.rename))
        try:
            projects.write_bundle(bundle, NEW)
        except KeyboardInterrupt:
            kept = [path for path in (bundle, tmp_path / ".bundle.old") if path.is_dir()]
            assert any(directories.bundle_files(path) in (OLD, NEW) for path in kept)
        else:
            assert step == 5, "three files and two renames"
    projects.write_bundle(bundle, NEW)
    assert directories.bundle_files(bundle) == NEW
    assert [path for path in snapshot(tmp_path) if "/.bundle" in path] == []
