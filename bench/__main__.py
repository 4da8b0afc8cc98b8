"""`make bench`: run everything and write bench/results/<date and time>.md; every row, the losing ones too."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import runtime, servers

from podium import __version__

RESULTS = Path(__file__).parent / "results"
# Rows where more is better; in all others less is.
_RATES = ("per second",)


def main() -> None:
    load = os.getloadavg()[0]
    print("Comparing the servers (several minutes)...", file=sys.stderr, flush=True)
    compared = servers.compare()
    print("Measuring the runtime...", file=sys.stderr, flush=True)
    alone = runtime.figures()
    text = render(compared, alone, load)
    RESULTS.mkdir(exist_ok=True)
    # With the time, so that a second run never takes the place of the first.
    path = RESULTS / f"{datetime.now(UTC):%Y-%m-%dT%H%M}.md"
    path.write_text(text)
    print(text)
    print(f"Written to {path.relative_to(Path.cwd())}", file=sys.stderr)


def render(compared: list[tuple[str, float, float]], alone: list[tuple[str, float]], load: float) -> str:
    """The report; a ratio above 1 means that the embedded server does better."""
    cores = os.cpu_count()
    lines = [
        f"# Benchmarks of {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Podium {__version__}, Python {platform.python_version()}, {cores} cores, load average {load:.1f}.",
        "Client and server share the cores; both servers sync every write to disk.",
        "Bytecode is compiled beforehand, as pip does on installation; without it the start takes longer.",
        "Medians of three rounds that alternate between the servers.",
        "",
        "## Embedded server and the real pair (kube-apiserver 1.36.4, etcd 3.6.8)",
        "",
        "| Measure | Embedded | Real | Embedded is better by |",
        "|---|---|---|---|",
    ]
    for name, ours, theirs in compared:
        more_is_better = any(word in name for word in _RATES)
        better = (ours / theirs if more_is_better else theirs / ours) if ours and theirs else None
        ratio = f"{better:.2f}×" if better is not None else "–"
        lines.append(f"| {name} | {_number(ours)} | {_number(theirs)} | {ratio} |")
    lines += ["", "## Controller runtime", "", "| Measure | Value |", "|---|---|"]
    lines += [f"| {name} | {_number(value)} |" for name, value in alone]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
