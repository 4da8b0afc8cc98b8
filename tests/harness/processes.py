"""Server processes that never outlive the test run.

All processes of a `Group` share one process group with a guard, a shell that waits on a pipe whose
other end only this process holds. However the run ends (normally, interrupted, killed), the pipe
closes and the guard kills the whole group. This needs no signal handlers and no clean-up code to run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


class ProcessDied(RuntimeError):
    """A server ended by itself; the message holds the end of its log."""


class NotReady(RuntimeError):
    """A server did not become ready in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Server:
    """One running process and the file that receives what it prints."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def log_tail(self, lines: int = 25) -> str:
        """The last lines that the server printed, none of them longer than a few terminal lines."""
        text = self.log.read_text(errors="replace")
        return "\n".join(line[:500] for line in text.splitlines()[-lines:])

    def resident_mib(self) -> float:
        """The memory that the process holds now, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Group:
    """Processes that live and die together."""

    def __init__(self) -> None:
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", "cat >/dev/null; kill -KILL 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self.servers: dict[str, Server] = {}

    def start(self, command: Sequence[str], *, log: Path) -> Server:
        """Start a server that prints into the log; its name is that of its binary."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=self._guard.pid,
            )
        server = Server(Path(command[0]).name, process, log)
        self.servers[server.name] = server
        return server

    def wait_until(self, ready: Callable[[], bool], server: Server, *, timeout: float) -> None:
        """Ask every few milliseconds until the server is ready; give up at once if any has died."""
        deadline = time.monotonic() + timeout
        while not ready():
            for each in self.servers.values():
                if (code := each.process.poll()) is not None:
                    raise ProcessDied(f"{each.name} ended with code {code}; its log ends:\n{each.log_tail()}")
            if time.monotonic() > deadline:
                late = f"{server.name} is not ready after {timeout:.0f} s"
                raise NotReady(f"{late}; its log ends:\n{server.log_tail()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill every process and wait until they are gone; harmless when called twice."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        for process in (self._guard, *(server.process for server in self.servers.values())):
            process.wait()
        if self._guard.stdin:
            self._guard.stdin.close()
