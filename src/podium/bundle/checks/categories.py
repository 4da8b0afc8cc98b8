"""The categories that an operator is listed under: from a fixed set, or from the user's own.

The option `categories` is the content of a file with the user's own: `{"categories": ["..."]}`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.bundle.checks.context import Report, Subject

OPTION = "categories"
STANDARD = (
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
)


def check(subject: Subject, report: Report) -> None:
    """Reports categories that are not in the set."""
    listed = subject.csv.annotations.get("categories")
    if listed is None:
        return
    where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}
    where["path"] = ("metadata", "annotations", "categories")
    allowed: Sequence[str] = STANDARD
    kind = "standard"
    if own := subject.options.get(OPTION):
        kind = "custom"
        try:
            allowed = _own(own)
        except ValueError as error:
            message = f"could not extract custom categories: {error}"
            report.error("categories-file-invalid", message, **where)
            return
    for category in listed.split(","):
        if category.strip() not in allowed:
            message = f"value {category!r} is not in the set of {kind} categories"
            report.error("category-unknown", message, **where)


def _own(content: Any) -> list[str]:
    try:
        value = json.loads(content)
    except TypeError:
        raise ValueError("expected the content of a JSON file") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    listed = value.get("categories")
    if listed is None:
        return []
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ValueError("expected an object with a list of strings under `categories`")
    return listed
