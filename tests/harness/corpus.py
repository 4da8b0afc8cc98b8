"""Real operators, as data: the archives in the folder that PODIUM_CORPUS names, unpacked once per run."""

from __future__ import annotations

import functools
import os
import tarfile
import tempfile
from pathlib import Path

import pytest


def catalog() -> Path:
    """A file-based catalog of real packages: one directory for each."""
    return _unpacked("catalog-sample.tar.gz") / "catalog"


def bundles() -> list[Path]:
    """The directories of real bundles."""
    return sorted(path.parent for path in _unpacked("bundles-sample.tar.gz").glob("bundles/*/*/manifests"))


@functools.cache
def _unpacked(name: str) -> Path:
    folder = os.environ.get("PODIUM_CORPUS")
    if not folder or not (Path(folder) / name).is_file():
        pytest.skip(f"PODIUM_CORPUS names no folder with {name}")
    root = Path(_scratch().name) / name
    with tarfile.open(Path(folder) / name) as archive:
        archive.extractall(root, filter="data")
    return root


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="podium-corpus-")  # removed when the process ends
