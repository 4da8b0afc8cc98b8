"""Every command in the publishing guide runs, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "publishing.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


@pytest.mark.timeout(180)
def test_the_publishing_guide_can_be_typed(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
    typed = commands()
    assert len(typed) > 10
    for command in typed:
        if " serve " in command:
            _serves(command.replace("50051", "0"), tmp_path, environment)
            continue
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")


def _serves(command: str, folder: Path, environment: dict[str, str]) -> None:
    """Starts it, waits until it says that it serves, and stops it as Ctrl-C does."""
    arguments = ["bash", "-c", f"exec {command}"]
    with subprocess.Popen(
        arguments, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
        assert "Serving" in said
        assert process.wait(20) == 0
