"""`make bench`: run everything and write bench/results/<date and time>.md; every row, the losing ones too.

`bench/run servers|runtime|catalogs ...` runs only those parts.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import catalogs, runtime, servers

from podium import __version__

RESULTS = Path(__file__).parent / "results"
# Rows where more is better; in all others less is.
_RATES = ("per second",)


_PARTS = ("servers", "runtime", "catalogs")


def main(chosen: list[str]) -> None:
    unknown = set(chosen) - set(_PARTS)
    if unknown:
        sys.exit(f"bench: no such part: {', '.join(sorted(unknown))}; there are {', '.join(_PARTS)}")
    load = os.getloadavg()[0]
    sections = []
    for part in chosen or _PARTS:
        print(f"Measuring: {part} (several minutes)...", file=sys.stderr, flush=True)
        sections += _SECTIONS[part]()
    text = "\n".join([*head(load), *sections]) + "\n"
    RESULTS.mkdir(exist_ok=True)
    # With the time, so that a second run never takes the place of the first.
    path = RESULTS / f"{datetime.now(UTC):%Y-%m-%dT%H%M}.md"
    path.write_text(text)
    print(text)
    print(f"Written to {path.relative_to(Path.cwd())}", file=sys.stderr)


def head(load: float) -> list[str]:
    """What was measured, and where."""
    return [
        f"# Benchmarks of {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Podium {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores,",
        f"load average {load:.1f} at the start.",
        "Bytecode is compiled beforehand, as pip does on installation; without it the start takes longer.",
        "Medians of three rounds in which the two sides take turns.",
    ]


def of_servers() -> list[str]:
    """A ratio above 1 means that the embedded server does better."""
    lines = [
        "",
        "## Embedded server and the real pair (kube-apiserver 1.36.4, etcd 3.6.8)",
        "",
        "Client and server share the cores; both servers sync every write to disk.",
        "",
        "| Measure | Embedded | Real | Embedded is better by |",
        "|---|---|---|---|",
    ]
    for name, ours, theirs in servers.compare():
        more_is_better = any(word in name for word in _RATES)
        better = (ours / theirs if more_is_better else theirs / ours) if ours and theirs else None
        ratio = f"{better:.2f}×" if better is not None else "–"
        lines.append(f"| {name} | {_number(ours)} | {_number(theirs)} | {ratio} |")
    return lines


def of_runtime() -> list[str]:
    """The controller runtime alone."""
    lines = ["", "## Controller runtime", "", "| Measure | Value |", "|---|---|"]
    return lines + [f"| {name} | {_number(value)} |" for name, value in runtime.figures()]


def of_catalogs() -> list[str]:
    """A ratio above 1 means that podium does better."""
    lines = [
        "",
        "## Catalogs: podium and opm 1.73",
        "",
        "| Catalog | Work | podium s | opm s | faster by | podium MiB | opm MiB | smaller by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in catalogs.compare():
        ours, theirs = row.ours, row.theirs
        cells = (
            row.catalog,
            row.work,
            f"{ours.seconds:.2f}",
            f"{theirs.seconds:.2f}",
            f"{theirs.seconds / ours.seconds:.2f}×",
            f"{ours.peak:.0f}",
            f"{theirs.peak:.0f}",
            f"{theirs.peak / ours.peak:.2f}×",
        )
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


_SECTIONS = {"servers": of_servers, "runtime": of_runtime, "catalogs": of_catalogs}


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main(sys.argv[1:])
