"""What a check reports: every rule broken, with how bad it is and where to look.

Bundles, catalogs and templates are checked by functions that return findings instead of raising at the
first, so that an author sees all there is to mend at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is: only errors make a check fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the input: file, document in it (from 1) and line (from 1); zero or empty means unknown."""

    file: str = ""
    document: int = 0
    line: int = 0

    def __str__(self) -> str:
        """`file:line`, as editors and terminals know it."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken by one thing; `rule` is a stable name that scripts may match on."""

    severity: Severity
    rule: str
    message: str
    subject: str = ""
    place: Place = Place()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place.file else ""
        about = f"{self.subject}: " if self.subject else ""
        return f"{where}{self.severity}: {about}{self.message} [{self.rule}]"


def failed(findings: Iterable[Finding]) -> bool:
    """Whether any finding is an error."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def quoted(names: Iterable[str]) -> str:
    """Names in a message, each in quotes."""
    return ", ".join(map(repr, names))
