"""Values of options that are more than a word."""

from __future__ import annotations

from collections.abc import Iterable

import click


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """What an option that was given as KEY=VALUE any number of times says; the last of equal keys counts."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"expected KEY=VALUE, got {text!r}", param_hint=option)
        found[key] = value
    return found
