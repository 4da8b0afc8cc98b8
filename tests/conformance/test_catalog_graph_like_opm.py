"""Listings and graphs next to the real opm's, on upstream's test catalogs and on real packages."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import binaries, corpus
from podium.cli import cli

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]


def opm(*arguments: str | Path) -> str:
    done = subprocess.run([binaries.find("opm"), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def podium(*arguments: str | Path) -> str:
    done = CliRunner().invoke(cli, ["catalog", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def packages() -> list[Path]:
    """A sample of the real packages, the same each time."""
    return random.Random(3).sample(sorted(corpus.catalog().iterdir()), 12)


@pytest.mark.parametrize("options", [(), ("--draw-v0-semantics",)], ids=["v1", "v0"])
def test_graphs_of_real_packages_have_the_same_bytes(options: tuple[str, ...]) -> None:
    for package in packages():
        assert podium("graph", package, *options) == opm("alpha", "render-graph", package, *options)


def test_a_graph_from_a_minimum_edge_has_the_same_bytes() -> None:
    for package in packages():
        blobs = [json.loads(line) for line in (package / "catalog.json").read_text().splitlines()]
        entries = [entry["name"] for blob in blobs for entry in blob.get("entries", ())]
        chosen = random.Random(5).choice(entries)
        ours = podium("graph", package, "--minimum-edge", chosen)
        assert ours == opm("alpha", "render-graph", package, "--minimum-edge", chosen)


def test_the_graph_of_the_whole_catalog_has_the_same_bytes() -> None:
    assert podium("graph", corpus.catalog()) == opm("alpha", "render-graph", corpus.catalog())


@pytest.mark.parametrize("what", ["channels", "bundles"])
def test_listings_hold_the_same_cells(what: str) -> None:
    ours, theirs = podium("list", what, corpus.catalog()), opm("alpha", "list", what, corpus.catalog())
    assert [line.split() for line in ours.splitlines()] == [line.split() for line in theirs.splitlines()]


def test_package_listings_differ_only_in_display_names_that_opm_cannot_see() -> None:
    ours: list[dict[str, Any]] = json.loads(podium("list", "packages", corpus.catalog(), "-o", "json"))
    theirs = [line.split() for line in opm("alpha", "list", "packages", corpus.catalog()).splitlines()[1:]]
    assert [(row["name"], row["defaultChannel"]) for row in ours] == [(row[0], row[-1]) for row in theirs]
