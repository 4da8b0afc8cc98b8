"""An author's project on disk: its file, its manifests, and the bundle generated from them.

The bundle's time of creation is that of its inputs, so that generating twice gives the same bytes: the time
SOURCE_DATE_EPOCH says, or the newest change of any file of the project. While the content stays as it was, so
does the time (see `podium.bundle.generate`).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.bundle import project as projects
from podium.bundle.generate import Generated
from podium.bundle.model import Files
from podium.bundle.project import FILE, Project
from podium.content import directories
from podium.operations.files import write_files

BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class Opened:
    """A project and the files it is made of, by their paths below its folder."""

    folder: Path
    project: Project
    files: Files
    changed: datetime


def open_project(folder: Path, epoch: int | None = None) -> Opened:
    """The project in a folder; ProjectError or FileNotFoundError say what is wrong."""
    file = folder / FILE
    if not file.is_file():
        raise FileNotFoundError(f"{file} is missing: `podium bundle init` starts a project")
    files = directories.WrittenFiles(folder, without=f"{BUNDLE}/")
    project = projects.parse(files[FILE], str(file), files=files)
    # The catalog's template and what is only for readers do not change the bundle.
    inputs = [path for path in files if path != project.template and not path.endswith(".md")]
    newest = max((folder / path).stat().st_mtime for path in inputs)
    changed = datetime.fromtimestamp(int(newest) if epoch is None else epoch, UTC)
    return Opened(folder, project, files, changed)


def generate(
    opened: Opened, digests: Mapping[str, str] | None = None, previous: Files | None = None
) -> Generated:
    """The bundle of a project; unchanged content keeps the time of `previous`, or of the one on disk."""
    if previous is None:
        previous = bundle_on_disk(opened)
    return projects.bundle(
        opened.project, opened.files, now=opened.changed, previous=previous, digests=digests
    )


def bundle_on_disk(opened: Opened) -> Files:
    """The bundle that was generated last; empty if there is none."""
    folder = opened.folder / BUNDLE
    return directories.bundle_files(folder) if folder.is_dir() else {}


def require_place(folder: Path, *others: Path) -> None:
    """Makes sure, before anything is published, that a bundle and other files can be written."""
    if folder.exists() and (folder / "manifests").exists() != (folder / "metadata").exists():
        raise FileExistsError(f"{folder} exists and is not a bundle; remove it, or name another place")
    for path in (folder, *others):
        parent = next(above for above in path.absolute().parents if above.exists())
        if not os.access(parent, os.W_OK):
            raise PermissionError(errno.EACCES, "cannot be written to; nothing was published", str(parent))


def require_empty_or_bundle(folder: Path) -> None:
    """Refuses a folder that somebody named and that holds something else."""
    if folder.exists() and any(folder.iterdir()) and not directories.is_bundle(folder):
        raise FileExistsError(f"{folder} exists and is not a bundle; remove it, or name another place")


def write_bundle(folder: Path, files: Files) -> bool:
    """Put a bundle in the place of an older one, all at once; False if it is there already.

    What an author keeps beside it in the folder, such as tests that were not generated, stays.
    """
    if folder.is_dir() and _generated(directories.bundle_files(folder), files) == dict(files):
        return False
    require_place(folder)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old")
    if old.exists() and not folder.exists():
        old.rename(folder)  # an earlier run was interrupted between the two renames below
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    if folder.is_dir():
        ours = {folder / path.partition("/")[0] for path in files}
        shutil.copytree(
            folder,
            fresh,
            symlinks=True,
            ignore=lambda above, names: [name for name in names if Path(above, name) in ours],
        )
    write_files(fresh, files)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
    return True


def leftovers(folder: Path, files: Files) -> list[str]:
    """What lies in the generated folders of a bundle and will not be there when it is written anew."""
    there = directories.bundle_files(folder) if folder.is_dir() else {}
    return sorted(_generated(there, files).keys() - files.keys())


def _generated(there: Files, files: Files) -> Files:
    """What lies in the folders that are generated."""
    folders = {path.partition("/")[0] for path in files}
    return {path: data for path, data in there.items() if path.partition("/")[0] in folders}
