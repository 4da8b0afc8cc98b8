"""One data directory, at most one process: who holds it, how to reach it, how to stop it.

The holder keeps an exclusive lock on `lock` for as long as it lives, so a crash frees the directory by
itself and a stale `instance.json` is never believed: what counts is the lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

STATE, KUBECONFIG, LOG = "instance.json", "kubeconfig", "podium.log"
_LOOKERS_SECONDS = 0.5
# Only a directory that holds nothing but these is ever deleted by `reset`.
OURS = ("state.db", "state.db-wal", "state.db-shm", "pki", STATE, KUBECONFIG, LOG, "lock")


class Instance(msgspec.Struct, frozen=True):
    """A running control plane, as it describes itself."""

    pid: int
    url: str
    version: str
    started: str
    simulated: bool = True


class InUse(Exception):
    """Another process holds the data directory."""


class NotOurs(Exception):
    """The directory holds files that Podium did not write."""


def default_directory() -> Path:
    """Where data goes when nobody says: PODIUM_DATA, else the user's data directory."""
    chosen = os.environ.get("PODIUM_DATA")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "podium"


class Lock:
    """The exclusive hold on a data directory."""

    def __init__(self, data: Path) -> None:
        self._path = data / "lock"
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the hold, or raise InUse; those who only look (`is_held`) are soon out of the way."""
        data = self._path.parent
        if not wait_until(self._try, _LOOKERS_SECONDS, every=0.005):
            raise InUse(str(data))
        withdraw(data)  # what a crashed holder left says nothing of this one

    def _try(self) -> bool:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have erased the directory between the two steps above.
            held = self._is_in_place(file)
        except BlockingIOError:
            held = False
        if held:
            self._file = file
        else:
            file.close()
        return held

    def _is_in_place(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def is_held(data: Path) -> bool:
    """Whether some process holds the directory right now."""
    try:
        file = (data / "lock").open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return False
    with file:
        try:
            # Shared: any number may look at once without taking each other for the holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def announce(data: Path, instance: Instance) -> None:
    """Leave word for other processes; replaced as a whole, never half written."""
    temporary = data / f"{STATE}.{instance.pid}"
    temporary.write_bytes(msgspec.json.encode(instance))
    temporary.replace(data / STATE)


def withdraw(data: Path) -> None:
    (data / STATE).unlink(missing_ok=True)


def find(data: Path) -> Instance | None:
    """The instance that holds the directory and is ready, if any."""
    if not is_held(data):
        return None
    try:
        return msgspec.json.decode((data / STATE).read_bytes(), type=Instance)
    except (OSError, msgspec.MsgspecError):
        return None  # it is still starting


def wait_until(done: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Look until something is so or the time is up; for processes that cannot tell us."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def stop(data: Path, grace: float = 15) -> bool:
    """End the process that holds the directory, by force once the grace is over; False if there is none."""
    instance = find(data)
    if instance is None:
        return False
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.kill(instance.pid, number)
        except ProcessLookupError:
            return True
        if wait_until(lambda: not is_held(data), seconds):
            break
    return True


def erase(data: Path) -> None:
    """Delete a data directory that nobody holds, refusing one with foreign files in it."""
    if not data.exists():
        return
    check_ours(data)
    lock = Lock(data)
    lock.acquire()
    try:
        shutil.rmtree(data)
    finally:
        lock.release()


def check_ours(data: Path) -> None:
    """Raise NotOurs if a directory holds files that Podium did not write."""
    foreign = sorted(entry.name for entry in data.iterdir() if not _is_ours(entry.name))
    if foreign:
        raise NotOurs(f"{data} also holds {', '.join(foreign[:5])}")


def _is_ours(name: str) -> bool:
    """Whether a file is one of ours, or what a crash left of writing one."""
    return name in OURS or name.startswith((f".{KUBECONFIG}.", f"{STATE}."))
