"""The real kubectl, as a user of one kubeconfig runs it.

Each `Kubectl` has a home folder of its own, so that neither the caller's settings nor what another
test left in the discovery cache can change what it does.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import yaml

from harness import binaries

# Text goes to kubectl as it is; an object, or a list of them, as JSON.
Input: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """How one command ended."""

    code: int
    stdout: str
    stderr: str


class Kubectl:
    """Runs kubectl with this kubeconfig; `namespace` becomes the default one of its context."""

    def __init__(self, kubeconfig: Path, *, namespace: str = "", home: Path | None = None) -> None:
        self._binary = str(binaries.find("kubectl"))
        if home is None:
            home = Path(tempfile.mkdtemp(prefix="podium-kubectl-"))
            weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        # kubectl merges the files in KUBECONFIG, and the first to name a context decides about it.
        override = home / "namespace.kubeconfig"
        override.write_text(json.dumps(_context_override(kubeconfig, namespace)))
        self._environment = {
            "HOME": str(home),
            "KUBECONFIG": f"{override}{os.pathsep}{kubeconfig}",
            "PATH": os.environ.get("PATH", os.defpath),
        }

    def run(
        self,
        *args: str,
        input: Input | None = None,  # noqa: A002 - the name that subprocess gives it
        expect: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Result:
        """Run one command; an exit code other than `expect` fails the test (None allows any)."""
        done = subprocess.run(
            [self._binary, *args],
            input=None if input is None else _text(input),
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            env={**self._environment, **(env or {})},
            timeout=timeout,
            check=False,
        )
        if expect is not None and done.returncode != expect:
            raise AssertionError(
                f"kubectl {' '.join(args)} ended with {done.returncode}, want {expect}\n"
                f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
            )
        return Result(done.returncode, done.stdout, done.stderr)

    def json(self, *args: str) -> Any:
        """What a command prints with `-o json`, decoded."""
        return json.loads(self.run(*args, "-o", "json").stdout)

    @contextlib.contextmanager
    def stream(self, *args: str) -> Iterator[Stream]:
        """A command that keeps printing, such as `get -w`; it is ended with the context."""
        with subprocess.Popen(
            [self._binary, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        ) as process:
            assert process.stdout
            stream = Stream(process.stdout)
            try:
                yield stream
            finally:
                process.kill()
                stream.finish()


class Stream:
    """The lines of a running command (stdout and stderr), in order."""

    def __init__(self, output: IO[str]) -> None:
        self.lines: list[str] = []
        self._arriving: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._reader.start()

    def wait_for(self, text: str, *, timeout: float = 20) -> str:
        """The next line that holds the text; fails if the command ends or time runs out first."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._arriving.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no line with {text!r} came; the lines were:\n" + "\n".join(self.lines))
            self.lines.append(line)
            if text in line:
                return line

    def wait_for_end(self, *, timeout: float = 20) -> None:
        """Read on until the command ends by itself."""
        deadline = time.monotonic() + timeout
        try:
            while (line := self._arriving.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                self.lines.append(line)
        except queue.Empty:
            raise AssertionError("still running; the lines were:\n" + "\n".join(self.lines)) from None

    def finish(self) -> None:
        """Wait until the command's last line has been read."""
        self._reader.join()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self._arriving.put(line.rstrip("\n"))
        self._arriving.put(None)


def _text(given: Input) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return json.dumps(given)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(given)})


def _context_override(kubeconfig: Path, namespace: str) -> dict[str, Any]:
    """The current context as after `kubectl config set-context --current --namespace=...`."""
    config = yaml.safe_load(kubeconfig.read_text())
    name = config["current-context"]
    current = next(entry["context"] for entry in config["contexts"] if entry["name"] == name)
    context = {**current, "namespace": namespace} if namespace else current
    return {"apiVersion": "v1", "kind": "Config", "contexts": [{"name": name, "context": context}]}
