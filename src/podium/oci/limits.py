"""How much of an image we are willing to read, and a tally of how much has been read.

Every number is checked before the bytes it speaks of are kept, so an archive that lies about its size
costs at most one chunk more than the limit. The defaults suit bundles, which are small; `CATALOG` suits
catalogs, which lie on top of base images of a gigabyte and more.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.oci.errors import Unacceptable

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What unpacking an image may cost, over all its layers unless said otherwise."""

    layers: int = 128
    compressed: int = 256 * MIB  # bytes of all layers as they are stored
    total: int = 256 * MIB  # bytes of all layers after decompression, wanted or not
    kept: int = 128 * MIB  # bytes of all wanted files, also of those that a later layer replaces
    file: int = 64 * MIB  # bytes of one wanted file
    files: int = 10_000  # wanted files
    directories: int = 10_000  # that wanted files, whiteouts and directories lie in, in each layer anew
    entries: int = 40_000  # headers in the archives, wanted or not; also compression frames
    depth: int = 32  # directories above a wanted file
    name: int = 1024  # bytes in the path of a wanted file
    ratio: int = 200  # decompressed bytes for one compressed byte, once `ratio_after` bytes have come out
    ratio_after: int = 32 * MIB


BUNDLE = Limits()
CATALOG = Limits(
    compressed=2048 * MIB,
    total=4096 * MIB,
    kept=1024 * MIB,
    file=512 * MIB,
    files=200_000,
    directories=50_000,
    entries=200_000,
)


class Tally:
    """What has been spent of some limits so far; Unacceptable as soon as one is crossed."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._total = self._kept = self._files = self._directories = 0
        self._entries = self._frames = self._records = 0

    def decompressed(self, count: int) -> None:
        """That many bytes came out of a layer."""
        self._total += count
        if self._total > self.limits.total:
            raise Unacceptable(f"more than {self.limits.total} bytes after decompression")

    def announced(self, count: int) -> None:
        """An entry says that it has this many bytes; refused now rather than after reading them."""
        if count > self.limits.total:
            raise Unacceptable(
                f"an entry of {count} bytes: more than {self.limits.total} bytes after decompression"
            )

    def ratio(self, compressed: int, decompressed: int) -> None:
        """So many bytes of one layer were read, and so many came out."""
        if decompressed > self.limits.ratio_after and decompressed > compressed * self.limits.ratio:
            raise Unacceptable(
                f"compressed more than {self.limits.ratio} times: {compressed} bytes became {decompressed}"
            )

    def entry(self) -> None:
        """One more header in an archive."""
        self._entries += 1
        if self._entries > self.limits.entries:
            raise Unacceptable(f"more than {self.limits.entries} entries")

    def frame(self) -> None:
        """One more gzip member or zstd frame."""
        self._frames += 1
        if self._frames > self.limits.entries:
            raise Unacceptable(f"more than {self.limits.entries} compression frames")

    def record(self) -> None:
        """One more PAX record; some ten for each entry are more than any tool writes."""
        self._records += 1
        if self._records > self.limits.entries * 10:
            raise Unacceptable(f"more than {self.limits.entries * 10} PAX records")

    def directory(self) -> None:
        """One more directory to remember; a short name of an entry may imply hundreds."""
        self._directories += 1
        if self._directories > self.limits.directories:
            raise Unacceptable(f"more than {self.limits.directories} directories")

    def kept(self, path: str, size: int) -> None:
        """A wanted file of this size is about to be kept."""
        if size > self.limits.file:
            raise Unacceptable(f"{path} has {size} bytes; at most {self.limits.file} are read")
        self._kept += size
        self._files += 1
        if self._kept > self.limits.kept:
            raise Unacceptable(f"the wanted files have more than {self.limits.kept} bytes")
        if self._files > self.limits.files:
            raise Unacceptable(f"more than {self.limits.files} wanted files")
