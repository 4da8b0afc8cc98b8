"""A catalog put in order without being held in memory.

A catalog is written sorted, so all of it must have come before the first blob can leave. Meanwhile its bytes
lie in an unnamed temporary file, and memory holds what they are sorted by.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

from podium.catalog.blobs import Blob
from podium.catalog.write import is_written, position

_IN_MEMORY = 16 << 20


def in_order(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """The blobs that are written, in their order."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        kept = []
        start = 0
        for blob in filter(is_written, blobs):
            file.write(blob.raw)
            kept.append((position(blob), start, len(blob.raw), blob.schema, blob.package, blob.name))
            start += len(blob.raw)
        kept.sort()  # by position, then by when they came
        for _, start, length, schema, package, name in kept:
            file.seek(start)
            yield Blob(schema, package, name, file.read(length))
