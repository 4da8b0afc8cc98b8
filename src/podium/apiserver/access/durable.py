"""Small files that survive a crash: either the old content is there or the new, never a part of one.

A file is written beside its final place, flushed to the disk, and renamed over the old one; the directory is
flushed too, because the rename itself lives there.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o600
PUBLIC = 0o644


def make_directory(path: Path) -> None:
    """Make a directory (and its parents) that only its owner can enter."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)


def write(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Put content at a path in one step; on any failure the old file stays as it was."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    _flush_directory(path.parent)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
