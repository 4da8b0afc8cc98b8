"""How commands print: data as table, JSON or YAML on stdout, words on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])

FAILED, USAGE, NOT_FOUND, CONFLICT, TIMED_OUT = 1, 2, 3, 4, 5


def output_option(command: F) -> F:
    """The `-o` option, the same everywhere."""
    kinds = click.Choice(("table", "json", "yaml"))
    return click.option("-o", "--output", type=kinds, default="table", show_default=True, help="Format.")(
        command
    )


def print_data(value: Any, output: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a value as asked; `rows` are its lines for people."""
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    elif output == "yaml":
        from podium.text import yaml

        click.echo(yaml.dump(msgspec.to_builtins(value)), nl=False)
    else:
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            click.echo(f"{name:<{width}}  {text}")


def say(text: str) -> None:
    """A word to the person at the terminal."""
    click.echo(text, err=True)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End with an error that says what to do."""
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)
