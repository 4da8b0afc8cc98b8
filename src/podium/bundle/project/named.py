"""The files that a project names: icon, description, base, dependencies and properties.

All that is wrong with any of them is gathered, each at the line of the field that names the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle.generate.csv import Icon
from podium.bundle.model import CSV_KIND, Files
from podium.text import yaml

_MEDIATYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
}


class NamedFiles:
    """Reads files by the fields that name them; gathers findings."""

    def __init__(self, files: Files, place: Callable[[str], Place]) -> None:
        self._files = files
        self._place = place
        self.findings: list[Finding] = []

    def data(self, field: str, path: str) -> bytes:
        """A file's bytes; empty if the field names none, or one that is not there."""
        if path and path not in self._files:
            self._problem(field, f"there is no file {path} in the project")
            return b""
        return self._files[path] if path else b""

    def text(self, field: str, path: str) -> str:
        """A file's text."""
        try:
            return self.data(field, path).decode()
        except UnicodeDecodeError:
            self._problem(field, f"{path} is no text in UTF-8")
            return ""

    def icon(self, field: str, path: str) -> Icon | None:
        """A picture; its kind follows from the file's name."""
        mediatype = _MEDIATYPES.get(posixpath.splitext(path)[1].lower())
        if path and mediatype is None:
            self._problem(field, f"the icon {path} must be one of {', '.join(_MEDIATYPES)}")
        data = self.data(field, path) if mediatype else b""
        return Icon(data, mediatype) if data and mediatype else None

    def csv(self, field: str, path: str) -> Object | None:
        """A ClusterServiceVersion; None if the field names none."""
        data = self.data(field, path)
        value: Any = None
        try:
            value = yaml.load(data)
        except yaml.YAMLError as error:
            self._problem(field, f"{path} is no YAML: {error}")
            return None
        if isinstance(value, dict) and value.get("kind") == CSV_KIND:
            return value
        if path in self._files:
            self._problem(field, f"{path} holds no {CSV_KIND}")
        return None

    def _problem(self, field: str, message: str) -> None:
        self.findings.append(Finding(Severity.ERROR, "unusable-file", message, field, self._place(field)))
