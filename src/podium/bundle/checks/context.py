"""What every check gets: the bundle as far as it could be read, options, and a report to write findings into.

Findings are collected with the path of the field that they speak of; lines are looked up at the end, because
finding a line means parsing the file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle.model import Bundle, Files, Manifest
from podium.bundle.read import Metadata
from podium.bundle.typed import Path
from podium.text import yaml

# Finding a line costs a parse; a file with more findings than this gets the rest without lines.
_MOST_LOOKUPS = 40


@dataclass(frozen=True, slots=True)
class Decoded:
    """A manifest of a kind that the originals decode: the plain object and the decoded one."""

    manifest: Manifest
    value: Object

    @property
    def metadata(self) -> Mapping[str, Any]:
        found = self.value.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations; a null one is the empty text."""
        found = self.metadata.get("annotations")
        return {key: value or "" for key, value in found.items()} if isinstance(found, dict) else {}

    @property
    def spec(self) -> Mapping[str, Any]:
        found = self.value.get("spec")
        return found if isinstance(found, dict) else {}

    def objects(self, *path: str) -> list[tuple[int, Mapping[str, Any]]]:
        """The objects of a list in the spec, numbered; a null among them is an empty one."""
        found: Any = self.spec
        for key in path:
            found = (found or {}).get(key)
        return [(index, each or {}) for index, each in enumerate(found or ())]


@dataclass(frozen=True, slots=True)
class Subject:
    """The bundle under examination."""

    files: Files
    bundle: Bundle
    metadata: Metadata
    csv: Decoded
    crds: tuple[Decoded, ...]
    options: Mapping[str, Any]


@dataclass(slots=True)
class Report:
    """Collects findings, in the order in which checks report them."""

    files: Files
    _entries: list[tuple[Finding, Path]] = field(default_factory=list)

    def add(
        self,
        severity: Severity,
        rule: str,
        message: str,
        *,
        subject: str = "",
        file: str = "",
        path: Path = (),
        line: int = 0,
    ) -> None:
        """One more finding, about a field of the first document of a file if one is named."""
        place = Place(file, 1 if file else 0, line)
        self._entries.append((Finding(severity, rule, message, subject, place), path))

    def error(self, rule: str, message: str, **where: Any) -> None:
        self.add(Severity.ERROR, rule, message, **where)

    def warn(self, rule: str, message: str, **where: Any) -> None:
        self.add(Severity.WARNING, rule, message, **where)

    def extend(self, findings: tuple[Finding, ...]) -> None:
        """Findings that know their place already."""
        self._entries += [(finding, ()) for finding in findings]

    def findings(self) -> list[Finding]:
        """Everything reported, each once, with lines."""
        lookups: dict[str, int] = {}
        known: dict[tuple[str, Path], int] = {}
        found: dict[Finding, None] = {}
        for finding, path in self._entries:
            place = finding.place
            if place.file in self.files and path and not place.line:
                key = (place.file, path)
                if key not in known and lookups.get(place.file, 0) < _MOST_LOOKUPS:
                    lookups[place.file] = lookups.get(place.file, 0) + 1
                    known[key] = _line(self.files[place.file], path)
                line = known.get(key, 0)
                finding = Finding(
                    finding.severity,
                    finding.rule,
                    finding.message,
                    finding.subject,
                    Place(place.file, place.document, line),
                )
            found[finding] = None
        return list(found)


def _line(data: bytes, path: Path) -> int:
    try:
        return yaml.locate(data, path)
    except ValueError:
        return 0
