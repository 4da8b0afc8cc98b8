"""Where the programs lie that `conformance/build` makes.

A test that asks for one which is not there fails and says what to do: a lane that skips what it
cannot find proves nothing.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def cache() -> Path:
    """The folder that `conformance/build` fills (it computes the same path)."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium"
    return Path(os.environ.get("PODIUM_CACHE") or default)


def uses_existing_cluster() -> bool:
    """Whether the caller brought a cluster in KUBECONFIG instead of having one built."""
    return os.environ.get("PODIUM_USE_CLUSTER") == "1"


def find(name: str) -> Path:
    """The binary of this name; fails the test with the remedy if it is missing."""
    binary = cache() / "bin" / name
    if binary.is_file():
        return binary
    if uses_existing_cluster() and (installed := shutil.which(name)):
        return Path(installed)
    pytest.fail(f"{name} is not at {binary}: run conformance/build (needs Go)", pytrace=False)
