"""One document of a stream, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A document's value, its number in the stream and the line of its first content, both from 1."""

    value: Any
    index: int
    line: int
