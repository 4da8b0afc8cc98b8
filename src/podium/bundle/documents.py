"""The first object of a file, as Kubernetes' own stream decoder finds it.

That decoder cuts a stream at lines that start with `---` before it looks at YAML, takes a leading `{` for
JSON, lets the last of two equal keys win, and every tool of the original reads one object per file with it.
Two surprises follow, and this module keeps both so that we judge the bytes that they judge: what follows the
first document is never seen, and a comment in front of `---` is a document of its own, an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.api.kinds import Object
from podium.bundle.model import Files, text
from podium.text import gojson, yaml


class DocumentError(ValueError):
    """The first document cannot be read; `line` counts from 1 in the file, 0 when unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class First:
    """The first document of a file: its value, and what was seen on the way."""

    value: Any
    more: bool = False  # documents follow that nobody reads
    duplicates: tuple[str, ...] = ()  # keys set twice


def first(data: bytes) -> First:
    """The value of the first document of a file; DocumentError if there is none or it cannot be read."""
    if data.lstrip()[:1] == b"{":
        try:
            value, rest = gojson.first(data)
        except gojson.JSONError:
            pass  # flow-style YAML also starts with a brace; how deep is too deep, the YAML reader says
        else:
            return First(value, more=bool(rest.strip()))
    return _first_yaml(data)


class Documents:
    """The first documents of files, each parsed once."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._known: dict[str, First | DocumentError] = {}

    def first(self, path: str) -> First:
        """The first document of a file; DocumentError if it cannot be read."""
        if path not in self._known:
            try:
                self._known[path] = first(self.files[path])
            except DocumentError as error:
                self._known[path] = error
        known = self._known[path]
        if isinstance(known, DocumentError):
            raise known
        return known

    def value(self, path: str) -> Any:
        """The value of the first document of a file; None if there is no such file or it cannot be read."""
        try:
            return self.first(path).value if path in self.files else None
        except DocumentError:
            return None

    def object(self, path: str) -> Object:
        """The Kubernetes object in the first document of a file; DocumentError if that is none."""
        value = self.first(path).value
        if not isinstance(value, dict):
            raise DocumentError(f"the first document is no object but {_described(value)}")
        if not text(value.get("kind")):
            raise DocumentError("Object 'Kind' is missing")
        if text(value.get("apiVersion")).count("/") > 1:
            raise DocumentError(f"unexpected GroupVersion string: {value['apiVersion']}")
        return value


def _described(value: Any) -> str:
    if value is None:
        return "empty (comments before `---` count as a document)"
    return "a list" if isinstance(value, list) else "a scalar"


def _first_yaml(data: bytes) -> First:
    document, more = _cut(data)
    if not document:
        raise DocumentError("the file is empty")
    duplicates: list[str] = []
    try:
        value = next(iter(yaml.load_all(document, duplicates)), None)
    except ValueError as error:  # not YAML, or not even text
        raise DocumentError(str(error), getattr(error, "line", 0) or 0) from None
    except RecursionError:
        raise DocumentError("the document is nested too deeply") from None
    return First(value, more, tuple(duplicates))


def _cut(data: bytes) -> tuple[bytes, bool]:
    """The first document's bytes and whether any other follows."""
    lines = [line.removesuffix(b"\r") for line in data.removesuffix(b"\n").split(b"\n")] if data else []
    kept: list[bytes] = []
    for number, line in enumerate(lines):
        if line.startswith(b"---"):
            after = line[3:].strip()
            if after and not after.startswith(b"#"):
                shown = after[:40].decode(errors="replace")
                raise DocumentError(f"text follows the document separator: {shown}", number + 1)
            if kept:
                return _joined(kept), any(rest.strip() for rest in lines[number + 1 :])
        kept.append(line)
    return _joined(kept), False


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
