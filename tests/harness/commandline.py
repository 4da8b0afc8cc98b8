"""The `podium` command as a user types it, in this process or one of its own, and a project to use it on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from podium.cli import cli


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    bytes_out: bytes
    err: str

    @property
    def out(self) -> str:
        """What it printed."""
        return self.bytes_out.decode()

    @property
    def json(self) -> Any:
        """What it printed with `-o json`."""
        return json.loads(self.bytes_out)


def podium(
    *arguments: str | Path, code: int = 0, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> Outcome:
    """Run a command in this process; it must end with this exit code, and never by an exception."""
    done = CliRunner().invoke(
        cli, [str(each) for each in arguments], input=stdin, env=env, prog_name="podium"
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.stderr
    assert done.exit_code == code, f"podium {' '.join(map(str, arguments))}: {done.output}"
    return Outcome(done.exit_code, done.stdout_bytes, done.stderr)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command as a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "podium", *map(str, arguments)], **options)


def project(folder: Path, *, images: str = "docker.io/acme", version: str = "0.1.0") -> Path:
    """A fresh project of an operator for pantries."""
    podium("bundle", "init", folder, "--name", "pantry-operator", "--images", images)
    if version != "0.1.0":
        template = folder / "catalog/template.yaml"
        template.write_text(template.read_text().replace(":0.1.0", f":{version}"))
        raise_version(folder, version)
    return folder


def raise_version(folder: Path, version: str) -> None:
    """Give the project another version."""
    file = folder / "podium.yaml"
    file.write_text(re.sub(r"(?m)^version: .*$", f"version: {version}", file.read_text()))


def edit(file: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must be there."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def snapshot(*roots: Path) -> dict[str, bytes]:
    """Every file below some folders with its content: to tell whether anything was written."""
    files: Sequence[Path] = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in files}
