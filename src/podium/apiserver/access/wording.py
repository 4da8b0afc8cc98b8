"""Several errors as one text, as the Go server prints them."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(messages: Iterable[str]) -> str:
    """Several errors as one text: a single one as it is, more in brackets, repetitions dropped."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
