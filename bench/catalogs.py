"""Catalogs, side by side with opm: validate, render and list, wall time and peak memory.

Both programs are started from the command line on the same directory, in turn, and do the same work. Cold
means that no file of the catalog is in the page cache; warm, that all are. The catalogs: the real one of
PODIUM_CORPUS, the same replicated (to see growth, and to about 130 MB), and a generated one with many small
packages.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import binaries, corpus

_ROUNDS = 3
_GROWTH = (1, 2, 4, 8, 16)
_BIG = 11  # times the real catalog: about 130 MB
_PACKAGES, _BUNDLES_EACH = 5000, 10


@dataclass(frozen=True)
class Cost:
    """What one run of a program took."""

    seconds: float
    peak: float  # MiB


@dataclass(frozen=True)
class Row:
    """One measure of both programs."""

    catalog: str
    work: str
    ours: Cost
    theirs: Cost


def compare() -> Iterator[Row]:
    """Every row, as it is measured."""
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as scratch:
        root = Path(scratch)
        catalogs = {
            f"real, 1x ({_size(corpus.catalog())})": corpus.catalog(),
            f"real, {_BIG}x": replicated(root / "big", _BIG),
            f"generated, {_PACKAGES} packages": generated(root / "generated"),
        }
        for name, path in catalogs.items():
            label = name if "MB" in name else f"{name} ({_size(path)})"
            for work in ("validate", "render", "list"):
                ours, theirs = both(work, path, cold=True)
                yield Row(label, f"{work}, cold", ours, theirs)
                ours, theirs = both(work, path, cold=False)
                yield Row(label, f"{work}, warm", ours, theirs)
        for factor in _GROWTH:
            path = replicated(root / f"growth-{factor}", factor)
            ours, theirs = both("validate", path, cold=False)
            yield Row(f"growth, {factor}x ({_size(path)})", "validate, warm", ours, theirs)


def both(work: str, path: Path, *, cold: bool) -> tuple[Cost, Cost]:
    """The medians of some rounds in which the two take turns."""
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for _ in range(_ROUNDS):
        for costs, command in ((ours, _ours(work, path)), (theirs, _theirs(work, path))):
            if cold:
                _forget(path)
            costs.append(_run(command))
    return _median(ours), _median(theirs)


def _ours(work: str, path: Path) -> list[str]:
    start = [sys.executable, "-m", "podium", "catalog"]
    return (
        start
        + {
            # Lint is ours alone; equal work is opm's rules.
            "validate": ["validate", str(path), "--no-lint"],
            "render": ["render", str(path), "-o", "json"],
            "list": ["list", "bundles", str(path)],
        }[work]
    )


def _theirs(work: str, path: Path) -> list[str]:
    start = [str(binaries.find("opm"))]
    return (
        start
        + {
            "validate": ["validate", str(path)],
            "render": ["render", str(path), "-o", "json"],
            "list": ["alpha", "list", "bundles", str(path)],
        }[work]
    )


def _run(command: list[str]) -> Cost:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: {errors.decode()[-2000:]}")
    return Cost(seconds, usage.ru_maxrss / 1024)


def _median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(c.seconds for c in costs), statistics.median(c.peak for c in costs))


def _forget(path: Path) -> None:
    """Drops the files from the page cache."""
    for file in path.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _size(path: Path) -> str:
    return f"{sum(file.stat().st_size for file in path.rglob('*') if file.is_file()) / 1e6:.0f} MB"


def replicated(root: Path, times: int) -> Path:
    """The real catalog this many times, each time with other package names."""
    for file in sorted(corpus.catalog().glob("*/catalog.json")):
        blobs = [json.loads(line) for line in file.read_text().splitlines()]
        for copy in range(times):
            package = f"{file.parent.name[:58]}-{copy}"
            (root / package).mkdir(parents=True)
            with (root / package / "catalog.json").open("w") as output:
                for blob in blobs:
                    json.dump(_renamed(blob, package), output, separators=(",", ":"))
                    output.write("\n")
    return root


def _renamed(blob: dict[str, object], package: str) -> dict[str, object]:
    blob["name" if blob["schema"] == "olm.package" else "package"] = package
    properties = blob.get("properties")
    for item in properties if isinstance(properties, list) else ():
        if item["type"] == "olm.package":
            item["value"]["packageName"] = package
    return blob


def generated(root: Path) -> Path:
    """Many packages with a channel of a few small bundles each."""
    for number in range(_PACKAGES):
        package = f"generated-{number}"
        (root / package).mkdir(parents=True)
        names = [f"{package}.v1.{minor}.0" for minor in range(_BUNDLES_EACH)]
        entries = [{"name": names[0]}] + [
            {"name": name, "replaces": before} for before, name in itertools.pairwise(names)
        ]
        blobs: list[dict[str, object]] = [
            {"schema": "olm.package", "name": package, "defaultChannel": "stable"},
            {"schema": "olm.channel", "name": "stable", "package": package, "entries": entries},
        ]
        blobs += [_bundle(package, name, f"1.{minor}.0") for minor, name in enumerate(names)]
        (root / package / "catalog.json").write_text("".join(json.dumps(blob) + "\n" for blob in blobs))
    return root


def _bundle(package: str, name: str, version: str) -> dict[str, object]:
    metadata = {"displayName": package, "description": f"What {package} does. " * 20}
    api = {"group": f"{package}.example.com", "version": "v1", "kind": "Thing"}
    values = {
        "olm.csv.metadata": metadata,
        "olm.gvk": api,
        "olm.package": {"packageName": package, "version": version},
    }
    return {
        "schema": "olm.bundle",
        "name": name,
        "package": package,
        "image": f"registry.example.com/{package}@sha256:{hash_of(name)}",
        "properties": [{"type": kind, "value": value} for kind, value in values.items()],
    }


def hash_of(name: str) -> str:
    """Sixty-four hexadecimal digits that stand for an image's digest."""
    return hashlib.sha256(name.encode()).hexdigest()
