"""How commands print: data as table, JSON or YAML on stdout, words on stderr.

What is printed for people may come from anybody's catalog or registry, so control characters are shown as
escapes: otherwise a name could clear the screen, set its title, or pretend to be another line.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from podium.api.findings import Finding, Severity

F = TypeVar("F", bound=Callable[..., Any])

FAILED, USAGE, NOT_FOUND, CONFLICT, TIMED_OUT, DENIED = 1, 2, 3, 4, 5, 6

# Control characters, those that turn the direction of writing around, and halves of characters.
_TURNING = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_HIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f{_TURNING}]")
_HIDDEN_IN_LINES = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f{_TURNING}]")


def visible(text: str) -> str:
    """A text for one line of a terminal, with escapes for what would not print as a character."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """A text of several lines, likewise."""
    return _HIDDEN_IN_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def output_option(command: F) -> F:
    """The `-o` option, the same everywhere."""
    kinds = click.Choice(("table", "json", "yaml"))
    return click.option("-o", "--output", type=kinds, default="table", show_default=True, help="Format.")(
        command
    )


def print_data(value: Any, output: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print a value as asked; `rows` are its lines for people."""
    if output != "table":
        _print_structured(value, output)
        return
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"{name:<{width}}  {visible(text)}")


def titled(title: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Several rows of which only the first has a title."""
    return [("" if number else title, text) for number, text in enumerate(texts)]


def print_table(values: Sequence[Any], output: str, columns: dict[str, Callable[[Any], str]]) -> None:
    """Print a list of values as asked; `columns` say what a person sees of each."""
    if output != "table":
        _print_structured(values, output)
        return
    rows = [tuple(columns)] + [tuple(visible(cell(value)) for cell in columns.values()) for value in values]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def print_findings(findings: Iterable[Finding], output: str, subject: str) -> None:
    """Print what a check found, worst first, and end with exit code 1 if there are errors."""
    ranks = list(Severity)
    ordered = sorted(findings, key=lambda finding: ranks.index(finding.severity))
    failed = any(finding.severity is Severity.ERROR for finding in ordered)
    if output == "table":
        for finding in _few_hints(ordered):
            click.echo(_finding_line(finding))
        counts = {severity: sum(f.severity is severity for f in ordered) for severity in Severity}
        summary = ", ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items() if count)
        say(f"{subject}: {summary or 'no findings'}{'' if failed else ' - valid'}")
    else:
        _print_structured({"passed": not failed, "findings": ordered}, output)
    if failed:
        sys.exit(FAILED)


_SHOWN_HINTS = 3


def _few_hints(findings: list[Finding]) -> Iterator[Finding]:
    """All errors and warnings, but only the first few hints of each kind: hundreds would bury the rest."""
    hints: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity is not Severity.INFO:
            yield finding
        else:
            hints.setdefault(finding.rule, []).append(finding)
    for rule, alike in hints.items():
        yield from alike[:_SHOWN_HINTS]
        more = len(alike) - _SHOWN_HINTS
        if more > 0:
            yield Finding(Severity.INFO, rule, f"{more} more of these; -o json shows all")


def _finding_line(finding: Finding) -> str:
    severity = click.style(finding.severity, fg=_COLOURS[finding.severity])
    where = f"{finding.place}: " if finding.place.file else ""
    about = f"{finding.subject}: " if finding.subject else ""
    return f"{visible(where)}{severity}: {visible(about + finding.message)} [{finding.rule}]"


def _print_structured(value: Any, output: str) -> None:
    plain = _plain(value)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        return
    from podium.text import yaml

    click.echo(yaml.dump(plain), nl=False)


def _plain(value: Any) -> Any:
    """A value of dicts and lists; fields are named in camel case, as everywhere in Kubernetes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(each.name): _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return msgspec.to_builtins(value)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def say(text: str) -> None:
    """A word to the person at the terminal."""
    click.echo(visible_lines(text), err=True)


def complain(findings: Iterable[Finding]) -> None:
    """Tell what is wrong with an input that cannot be used at all."""
    for finding in findings:
        click.echo(_finding_line(finding), err=True)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End with an error that says what to do."""
    click.echo(f"Error: {visible_lines(message)}", err=True)
    sys.exit(code)
