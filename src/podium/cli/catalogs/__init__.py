"""`podium catalog`: make, check, look into and publish file-based catalogs."""

from __future__ import annotations

import click

from podium.cli.catalogs import looking, making, publishing


@click.group()
def catalog() -> None:
    """Make, check, look into and publish file-based catalogs."""


for module in (making, looking, publishing):
    for command in module.COMMANDS:
        catalog.add_command(command)
