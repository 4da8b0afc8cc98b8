"""How the demo talks: a title for each step, and what to type for it."""

from __future__ import annotations

import sys


def step(title: str, command: str = "") -> None:
    """Announce what happens next."""
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}", flush=True)
    if command:
        print(f"  $ {command}", flush=True)


def shown(text: str) -> None:
    """Print what a command said, set in a little."""
    for line in text.splitlines():
        print(f"    {line}", flush=True)
