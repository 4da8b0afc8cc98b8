"""Cuts catalog streams into documents, holding no more than one document and the chunk it ends in.

A JSON stream is cut at the one thing that no valid object contains: `}`, a line break and `{` with only space
between. A YAML stream is cut at lines that start with `---`, whatever those are in the middle of, as in opm.
No byte is looked at twice, so a stream that never ends its document is refused as fast as it can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from podium.api.findings import Place
from podium.catalog.blobs import CatalogError

CHUNK = 1 << 20
MAX_DOCUMENT = 32 << 20  # decoded it takes up to six times as much

_BETWEEN = re.compile(rb"}[ \t\r]*+\n\s*+{")
_CONTENT = re.compile(rb"\S")
_REST_OF_LINE = re.compile(rb"[ \t\r]*+\n?")
_SEPARATOR = b"---"
_SHOWN = 60


def chunks_of(data: bytes) -> Iterator[bytes]:
    """Data that is there already, in chunks."""
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


class Stream:
    """The part of a stream that is not consumed yet; `line` is the number of the line it starts in."""

    def __init__(self, path: str, chunks: Iterable[bytes]) -> None:
        self.path = path
        self.line = 1
        self._chunks = iter(chunks)
        self._held = bytearray()

    def starts_with_brace(self) -> bool:
        """Whether the first character that is no space is a brace."""
        looked = 0
        while not (found := _CONTENT.search(self._held, looked)):
            looked = len(self._held)
            if not self._more():
                return False
        return found[0] == b"{"

    def json_pieces(self) -> Iterator[bytearray]:
        """Parts of a JSON stream such that no object reaches from one into the next.

        A piece is consumed when the next one is asked for: `line` is its own until then.
        """
        looked = 0
        while True:
            found = _BETWEEN.search(self._held, looked)
            if found:
                yield self._held[: found.start() + 1]
                self._drop(found.end() - 1)
                looked = 0
                continue
            looked = self._possible_end(looked)
            if not self._more_than_space():
                break
        yield self._held

    def yaml_documents(self) -> Iterator[tuple[bytes, int]]:
        """The documents of a YAML stream, with plain line breaks, and the line each starts at.

        A separator line ends a document if there is one, and otherwise becomes the first line of the next;
        so two of them in a row make an empty document, which opm refuses.
        """
        looked = 0
        while True:
            start = self._separator(looked)
            end = self._held.find(b"\n", start) if start >= 0 else -1
            if end < 0:
                looked = max(looked, len(self._held) - len(_SEPARATOR)) if start < 0 else max(start - 1, 0)
                if self._more():
                    continue
                if start < 0:
                    break
                end = len(self._held)
            self._check_separator(start, end)
            if start == 0:
                looked = end
                continue
            yield _plain_lines(self._held[:start]), self.line
            self._drop(end + 1)
            looked = 0
        if self._held:
            yield _plain_lines(self._held), self.line

    def rest_as_yaml(self, offset: int) -> Iterator[tuple[bytes, int]]:
        """What follows the line of an offset in the current piece, as `yaml_documents`."""
        while True:
            rest = _REST_OF_LINE.match(self._held, offset)
            end = rest.end() if rest else offset
            if end < len(self._held) or self._held.endswith(b"\n") or not self._more():
                break
        self._drop(end)
        return self.yaml_documents()

    def _more(self) -> bytes:
        """The next chunk, which is held now too; empty at the end of the stream."""
        if len(self._held) > MAX_DOCUMENT:
            problem = f"a document is larger than {MAX_DOCUMENT >> 20} MiB, or does not end"
            raise CatalogError(problem, Place(self.path, 0, self.line))
        for chunk in self._chunks:
            if chunk:
                self._held += chunk
                return chunk
        return b""

    def _more_than_space(self) -> bool:
        while chunk := self._more():
            if not chunk.isspace():
                return True
        return False

    def _possible_end(self, looked: int) -> int:
        """Where the end of an object may be that the next chunk shows to be one."""
        brace = self._held.rfind(b"}", looked)
        if brace < 0 or _CONTENT.search(self._held, brace + 1):
            return len(self._held)
        return brace

    def _separator(self, looked: int) -> int:
        """The start of the next line that separates documents; -1 if there is none yet."""
        if looked == 0 and self._held.startswith(_SEPARATOR):
            return 0
        found = self._held.find(b"\n" + _SEPARATOR, looked)
        return found + 1 if found >= 0 else -1

    def _check_separator(self, start: int, end: int) -> None:
        after = self._held[start + len(_SEPARATOR) : end].strip()
        if after and not after.startswith(b"#"):
            shown = after[:_SHOWN].decode(errors="replace")
            place = Place(self.path, 0, self.line + self._held.count(b"\n", 0, start))
            raise CatalogError(f"invalid YAML document separator: {shown}", place)

    def _drop(self, end: int) -> None:
        self.line += self._held.count(b"\n", 0, end)
        del self._held[:end]


def _plain_lines(text: bytearray) -> bytes:
    """The lines of a document, each with a line break: opm reads it so, which shows in block scalars."""
    lines = bytes(text)
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").removesuffix(b"\r")
    return lines if lines.endswith(b"\n") else lines + b"\n"
