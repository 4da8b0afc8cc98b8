"""The files of an OCI layout: read without leaving the layout, written so that a crash leaves old or new.

Every file is written under another name, synced and renamed. Only `index.json` is ever rewritten, and only
under a lock that all processes share, so no tag is lost when several write at once. Readers need no lock.
What is ours alone (the lock, unfinished files) lies in `.podium`, which other tools ignore.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from podium.oci.errors import Corrupt, ImageNotFound, Unacceptable
from podium.oci.model import Digest

LAYOUT_FILE = "oci-layout"
INDEX_FILE = "index.json"
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
EMPTY_INDEX = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}'


class LayoutFiles:
    """One layout directory, which need not exist before the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._scratch = root / ".podium"

    def exists(self) -> bool:
        """Whether a layout is there."""
        return (self.root / LAYOUT_FILE).is_file()

    def create(self) -> None:
        """Make an empty layout unless one is there."""
        if self.exists():
            return
        with self.lock():
            (self.root / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            for directory in (self.root / "blobs", self.root, self.root.absolute().parent):
                _sync_directory(directory)
            if not (self.root / INDEX_FILE).exists():
                self.write(INDEX_FILE, EMPTY_INDEX)
            self.write(LAYOUT_FILE, LAYOUT)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep every other writer of `index.json`, in any process, out; waits for its turn."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._scratch / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def open(self, name: str) -> BinaryIO:
        """A regular file of the layout; links are followed only as long as they stay inside it."""
        try:
            real = (self.root / name).resolve(strict=True)
            if not real.is_relative_to(self.root.resolve()):
                raise Unacceptable(f"{self.root / name} is a link that leaves the layout")
            # Not blocking, since opening a FIFO would wait for ever.
            descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise ImageNotFound(f"no such file in the layout: {self.root / name}") from None
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise Unacceptable(f"cannot read {self.root / name}: {error}") from None
        file = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise Unacceptable(f"{self.root / name} is not a regular file")
        return file

    def size(self, name: str) -> int | None:
        """How long a file of the layout is; None if there is none."""
        try:
            with self.open(name) as file:
                return os.fstat(file.fileno()).st_size
        except (ImageNotFound, Unacceptable):
            return None

    def read(self, name: str, limit: int) -> bytes:
        """A whole file of the layout."""
        with self.open(name) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise Unacceptable(f"{self.root / name} is larger than {limit} bytes")
        return data

    def renew(self, name: str) -> None:
        """Make a file look new, so that it is not swept away before something refers to it."""
        with contextlib.suppress(OSError):
            os.utime(self.root / name)

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file."""
        with self.writing(name) as file:
            file.write(data)

    def write_unless_there(self, name: str, data: bytes) -> None:
        """Write a whole file unless it holds just this already."""
        if self.size(name) == len(data) and self.read(name, len(data)) == data:
            self.renew(name)
        else:
            self.write(name, data)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A file to write to, which takes its name only when all is written and on disk."""
        file, temporary = self.begin()
        try:
            with file:
                yield file
                self.commit(file, temporary, name)
        finally:
            temporary.unlink(missing_ok=True)

    def begin(self) -> tuple[BinaryIO, Path]:
        """A new file without a name in the layout yet."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        temporary = self._scratch / secrets.token_hex(16)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.fdopen(os.open(temporary, flags, 0o666), "wb"), temporary

    def commit(self, file: BinaryIO, temporary: Path, name: str) -> None:
        """Give a written file its name."""
        file.flush()
        os.fsync(file.fileno())
        target = self.root / name
        if not target.parent.is_dir():  # of an algorithm that is new here
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync_directory(target.parent.parent)
        temporary.replace(target)
        _sync_directory(target.parent)

    def sweep(self, keep: set[Digest], grace: float) -> list[Digest]:
        """Delete blobs that are not to be kept, and files nobody finished, if older than `grace` seconds."""
        before = time.time() - grace
        removed = []
        for path in sorted((self.root / "blobs").glob("*/*")):
            digest = Digest(f"{path.parent.name}:{path.name}")
            if digest not in keep and _is_older(path, before):
                path.unlink(missing_ok=True)
                removed.append(digest)
        for path in self._scratch.iterdir():
            if path.name != "lock" and _is_older(path, before):
                path.unlink(missing_ok=True)
        return removed


def blob_name(digest: Digest) -> str:
    """Where a blob lies in a layout."""
    algorithm, _, encoded = digest.partition(":")
    if not encoded or "/" in digest:
        raise Corrupt(f"not a digest: {digest!r}")
    return f"blobs/{algorithm}/{encoded}"


def _is_older(path: Path, before: float) -> bool:
    try:
        return path.lstat().st_mtime <= before
    except FileNotFoundError:
        return False


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
