"""The errors of this package and the limits that lead to it."""

from __future__ import annotations

MAX_DEPTH = 250
MAX_NODES = 1_000_000


class YAMLError(ValueError):
    """The text is not YAML, or is YAML that is refused; the message says where and why.

    `line` counts from 1 and is None where no line can be named.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class MalformedError(YAMLError):
    """The text is not YAML; how the parser says so depends on what stands around it in the stream."""
