"""Timestamps as Kubernetes writes them: RFC 3339, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """The metav1.Time form: whole seconds."""
    return f"{_seconds(moment)}Z"


def micro_timestamp(moment: datetime) -> str:
    """The metav1.MicroTime form: always six digits of a second."""
    return f"{_seconds(moment)}.{moment.microsecond:06d}Z"


def parse_timestamp(text: str) -> datetime:
    """The moment that a timestamp names; one without a zone is in UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
