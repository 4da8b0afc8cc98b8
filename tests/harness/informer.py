"""Our client-go program (conformance/go/informer), run against a server."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness import binaries


class Check(msgspec.Struct, frozen=True):
    """What the program found out about one behaviour."""

    name: str
    ok: bool
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """The checks of one run, and the client's own log for when one of them failed."""

    checks: tuple[Check, ...]
    log: str

    @property
    def failures(self) -> list[str]:
        """One line for each check that failed."""
        return [f"{check.name}: {check.detail}" for check in self.checks if not check.ok]


def run(kubeconfig: Path, *, check_timeout: int = 20) -> Report:
    """Run every check against the server that the kubeconfig names, each for at most so many seconds."""
    command = [str(binaries.find("informer")), f"--kubeconfig={kubeconfig}", f"--timeout={check_timeout}s"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    checks = tuple(msgspec.json.decode(line, type=Check) for line in done.stdout.splitlines())
    report = Report(checks, done.stderr.decode(errors="replace"))
    # A crash prints no check that failed; the exit code must then speak for it.
    assert bool(report.failures) == bool(done.returncode), f"exit code {done.returncode}:\n{report.log}"
    return report
