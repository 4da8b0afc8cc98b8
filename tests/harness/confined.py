"""Runs podium on hostile input in a process of its own and says what that cost.

Time is what the processor spent, so that a busy machine makes no difference; memory is the peak of a process.
A run that hangs is killed and fails the test, and one that would eat the machine cannot: see `confining`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
SECONDS = 2.0
MEMORY = 256 * MIB
_HANGING = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """What a command did and used."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int

    @property
    def words(self) -> str:
        """Everything it printed."""
        return self.out + self.err

    def assert_bounded(self) -> None:
        """It ended by itself, in words rather than with a stack trace, within the limits."""
        assert self.code in range(7), f"ended with {self.code}: {self.err[-2000:]}"
        assert self.seconds <= SECONDS, f"{self.seconds:.2f} s: {self.words[-300:]}"
        assert self.memory <= MEMORY, f"{self.memory / MIB:.0f} MiB: {self.words[-300:]}"

    def assert_refused(self, *words: str) -> None:
        """It ended with an error that says what is wrong, within the limits."""
        self.assert_bounded()
        assert self.code != 0, f"accepted: {self.out[:300]}"
        assert self.words.strip(), "refused without a word"
        for word in words:
            assert word in self.words, self.words[-500:]

    def assert_harmless(self) -> None:
        """It did what it was asked to, within the limits."""
        self.assert_bounded()
        assert self.code == 0, self.words[-500:]


def podium(
    *arguments: str | Path,
    stdin: Iterable[bytes] = (),
    cwd: Path | None = None,
    user: int = 0,
) -> Run:
    """A command line, fed with chunks through a pipe until it stops reading."""
    inputs, outputs, errors, reports = (os.pipe() for _ in range(4))
    request = {"arguments": list(map(str, arguments)), "folder": str(cwd or Path.cwd()), "user": user}
    theirs = [inputs[0], outputs[1], errors[1], reports[1]]
    socket.send_fds(_server(), [json.dumps(request).encode()], theirs)
    for descriptor in theirs:
        os.close(descriptor)
    texts = ["", ""]
    threads = [
        threading.Thread(target=_feed, args=(inputs[1], stdin)),
        threading.Thread(target=_drain, args=(outputs[0], texts, 0)),
        threading.Thread(target=_drain, args=(errors[0], texts, 1)),
    ]
    for thread in threads:
        thread.start()
    with os.fdopen(reports[0]) as report:
        killer = threading.Timer(_HANGING, os.kill, (int(report.readline()), signal.SIGKILL))
        killer.start()
        code, seconds, peak = (report.read() or "-1 inf 0").split()
        killer.cancel()
    for thread in threads:
        thread.join()
    return Run(int(code), texts[0], texts[1], float(seconds), int(peak) << 10)


def chunked(data: bytes) -> Iterator[bytes]:
    """Data for a pipe."""
    return (data[start : start + MIB] for start in range(0, len(data), MIB))


def repeated(unit: bytes, head: bytes = b"", size: int = 1 << 30) -> Iterator[bytes]:
    """A stream of this size that says the same again and again."""
    chunk = unit * max(1, MIB // len(unit))
    yield head
    for _ in range(-(-size // len(chunk))):
        yield chunk


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    program = Path(__file__).with_name("confining.py")
    process = subprocess.Popen([sys.executable, program, str(theirs.fileno())], pass_fds=(theirs.fileno(),))
    theirs.close()

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


def _feed(descriptor: int, chunks: Iterable[bytes]) -> None:
    try:
        with os.fdopen(descriptor, "wb") as pipe:
            for chunk in chunks:
                pipe.write(chunk)
    except BrokenPipeError:
        pass  # it has seen enough


def _drain(descriptor: int, texts: list[str], index: int) -> None:
    with os.fdopen(descriptor, "rb") as pipe:
        texts[index] = pipe.read().decode(errors="replace")
