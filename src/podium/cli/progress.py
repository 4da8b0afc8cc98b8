"""Shows transfers on a terminal as they happen; says nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from podium.oci.model import Descriptor
from podium.oci.store import Progress

_REDRAW = 0.1  # seconds
_WORTH_SHOWING = 64 << 10  # smaller blobs come and go before anybody could read a line about them


def progress() -> Progress | None:
    """A display of transfers if stderr is a terminal, else None."""
    return Display(sys.stderr) if sys.stderr.isatty() else None


class Display(Progress):
    """One line that is drawn anew: how many blobs and bytes have moved of those that were started."""

    def __init__(self, screen: TextIO) -> None:
        self._screen = screen
        self._sizes: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._done = 0
        self._drawn = 0.0

    def started(self, descriptor: Descriptor, what: str) -> None:
        """A blob begins to move."""
        self._sizes[descriptor.digest] = descriptor.size
        self._moved.setdefault(descriptor.digest, 0)

    def advanced(self, descriptor: Descriptor, count: int) -> None:
        """Bytes have moved."""
        self._moved[descriptor.digest] = self._moved.get(descriptor.digest, 0) + count
        self._draw()

    def finished(self, descriptor: Descriptor, *, skipped: bool = False) -> None:
        """A blob is there."""
        self._done += 1
        self._moved[descriptor.digest] = self._sizes.get(descriptor.digest, 0)
        self._draw(last=self._done >= len(self._sizes))

    def _draw(self, *, last: bool = False) -> None:
        total, now = sum(self._sizes.values()), time.monotonic()
        if total < _WORTH_SHOWING or (now - self._drawn < _REDRAW and not last):
            return
        self._drawn = now
        moved = min(sum(self._moved.values()), total)
        line = f"  {self._done}/{len(self._sizes)} blobs, {_size(moved)} of {_size(total)}"
        self._screen.write(f"\r\x1b[K{line}" + ("\n" if last else ""))
        self._screen.flush()


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
