"""Builds a program of ours as if it were part of another module, so that it may use internal packages.

Go lets nobody import `internal` packages from outside their module. So the module's sources are copied from
the module cache to a scratch folder, our Go files are put in a folder of that copy, and the program is built
there. Which module, in which version and with which checksum, is what the go.mod and go.sum beside our files
pin; the versions and checksums of all else are the copied module's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGE = Path("cmd", "podium-graft")
_NEEDLESS = shutil.ignore_patterns("*_test.go", "testdata", ".*")


def build(
    program: Path, module: str, output: Path, flags: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Build the Go files in `program` inside the module that its go.mod pins, copied beside `output`."""
    try:
        original = source(program, module)
    except subprocess.CalledProcessError as error:
        return subprocess.CompletedProcess(error.cmd, error.returncode, error.stdout, error.stderr)
    host = output.parent / "host"
    shutil.copytree(original, host, ignore=_NEEDLESS, copy_function=shutil.copyfile)
    for folder in (host, *host.rglob("*/")):
        folder.chmod(0o755)  # the module cache is read-only, and the copy is as it was
    (host / _PACKAGE).mkdir(parents=True)
    for path in program.glob("*.go"):
        shutil.copyfile(path, host / _PACKAGE / path.name)
    command = ["go", "build", *flags, "-o", str(output), f"./{_PACKAGE}"]
    return subprocess.run(command, cwd=host, capture_output=True, text=True, env=env, check=False)


def source(program: Path, module: str) -> Path:
    """Where the module cache holds the source of the module that `program` pins, downloaded if need be."""
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])
