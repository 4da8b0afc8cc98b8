"""The capability level that an operator claims: one of five."""

from __future__ import annotations

from podium.bundle.checks.context import Report, Subject

LEVELS = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")


def check(subject: Subject, report: Report) -> None:
    """Reports a capability level that does not exist."""
    level = subject.csv.annotations.get("capabilities")
    if level is not None and level not in LEVELS:
        report.error(
            "capability-unknown",
            f"{level!r} is not a valid capabilities level: use one of {', '.join(LEVELS)}",
            subject=subject.csv.name,
            file=subject.csv.manifest.path,
            path=("metadata", "annotations", "capabilities"),
        )
