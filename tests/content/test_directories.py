"""Catalogs and bundles read from directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import folders
from podium.content import directories
from podium.content.directories import UnreadableContent


def names(root: Path) -> list[str]:
    return [Path(path).relative_to(root).as_posix() for path, _ in directories.catalog_streams(root)]


def contents(root: Path) -> dict[str, bytes]:
    return {path: b"".join(chunks) for path, chunks in directories.catalog_streams(root)}


def test_every_file_is_read_in_the_order_of_a_walk(tmp_path: Path) -> None:
    folders.write(tmp_path, {"b/catalog.yaml": "", "a.yaml": "", "b.json": "", "a/z": "", "a/.hidden": ""})
    assert names(tmp_path) == ["a/.hidden", "a/z", "a.yaml", "b/catalog.yaml", "b.json"]


def test_ignore_files_hold_for_their_directory_and_below(tmp_path: Path) -> None:
    files = {
        ".indexignore": "*.md\n/drafts/\n",
        "README.md": "",
        "drafts/x.yaml": "",
        "pkg/.indexignore": "old.yaml",
        "pkg/old.yaml": "",
        "pkg/catalog.yaml": "",
        "old.yaml": "",
    }
    assert names(folders.write(tmp_path, files)) == ["old.yaml", "pkg/catalog.yaml"]


def test_links_to_files_are_followed_and_links_to_directories_are_not(tmp_path: Path) -> None:
    outside = folders.write(tmp_path / "outside", {"catalog.yaml": "x"})
    root = folders.write(tmp_path / "root", {"plain.yaml": ""})
    (root / "linked.yaml").symlink_to(outside / "catalog.yaml")
    (root / "folder").symlink_to(outside)
    found = contents(root)
    assert found[str(root / "linked.yaml")] == b"x"
    assert sorted(found) == [str(root / "linked.yaml"), str(root / "plain.yaml")]


def test_a_single_file_is_a_catalog(tmp_path: Path) -> None:
    file = folders.write(tmp_path, {"catalog.yaml": "schema: x"}) / "catalog.yaml"
    assert contents(file) == {str(file): b"schema: x"}


def test_a_bundle_is_told_by_its_two_folders_and_read_without_the_rest(tmp_path: Path) -> None:
    root = folders.write(
        tmp_path, {"manifests/a.yaml": "1", "metadata/annotations.yaml": "2", "ci.yaml": "3"}
    )
    assert directories.is_bundle(root)
    assert directories.bundle_files(root) == {"manifests/a.yaml": b"1", "metadata/annotations.yaml": b"2"}


def test_a_file_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "MAX_IGNORE_FILE", 10)
    folders.write(tmp_path, {".indexignore": "x" * 11})
    with pytest.raises(UnreadableContent, match="too large"):
        names(tmp_path)


def test_an_authors_files_are_neither_hidden_nor_in_a_layout(tmp_path: Path) -> None:
    files = {
        "podium.yaml": "",
        "config/a.yaml": "",
        ".git/HEAD": "",
        "config/.a.yaml.swp": "",
        "images/oci-layout": "{}",
        "images/blobs/sha256/x": "",
    }
    assert list(directories.WrittenFiles(folders.write(tmp_path, files))) == ["config/a.yaml", "podium.yaml"]


def test_an_authors_files_are_read_only_when_asked_for(tmp_path: Path) -> None:
    files = directories.WrittenFiles(
        folders.write(tmp_path, {"a.yaml": "1", "other/b.yaml": "2"}), without="other/"
    )
    (tmp_path / "a.yaml").write_text("changed")
    assert files["a.yaml"] == b"changed"
    assert dict(files) == {"a.yaml": b"changed"}
    with pytest.raises(KeyError):
        files["other/b.yaml"]


def test_a_bundle_holds_nothing_from_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    root = folders.write(tmp_path / "bundle", {"manifests/a.yaml": "1", "metadata/b.yaml": "2"})
    (root / "manifests" / "inside.yaml").symlink_to(root / "metadata" / "b.yaml")
    assert directories.bundle_files(root)["manifests/inside.yaml"] == b"2"
    (root / "manifests" / "outside.yaml").symlink_to(tmp_path / "secret")
    with pytest.raises(UnreadableContent, match="leads out of its folder"):
        directories.bundle_files(root)
