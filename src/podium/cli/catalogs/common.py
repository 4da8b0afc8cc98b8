"""What the commands about catalogs share: how a catalog is named, read and printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from podium.catalog import write
from podium.catalog.blobs import Blob
from podium.catalog.migrate import Level
from podium.cli.progress import progress
from podium.content.sources import catalog_blobs, open_source
from podium.content.spool import in_order
from podium.oci.open import Images
from podium.oci.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

REFERENCES = """
    \b
    A catalog is named by
      ./path or dir:path         a directory, or one file, on disk
      -                          standard input
      oci:path[:tag]             an image in an OCI layout on disk
      docker.io/acme/catalog:1   an image in a registry
"""

WRITERS = {"json": write.json, "yaml": write.yaml}


def format_option(command: F) -> F:
    """The `-o` option of commands that print a catalog."""
    kinds = click.Choice(tuple(WRITERS))
    option = click.option(
        "-o", "--output", type=kinds, default="yaml", show_default=True, help="Format of the catalog."
    )
    return option(command)


def level_option(default: Level) -> Callable[[F], F]:
    """How far to bring old forms up to date."""
    return click.option(
        "--migrate-level",
        type=click.Choice([level.value for level in Level]),
        default=default.value,
        show_default=True,
        help="Bring old forms of content up to date.",
    )


async def blobs_of(reference: str, settings: Settings) -> Iterable[Blob]:
    """The blobs of a catalog by name; those of a directory are read while they are taken."""
    async with Images(settings, progress()) as images:
        return await catalog_blobs(await open_source(reference, images))


def print_catalog(blobs: Iterable[Blob], output: str) -> None:
    """Print a catalog with opm's bytes."""
    written = write.as_json if output == "json" else write.as_yaml
    for blob in in_order(blobs):
        sys.stdout.buffer.write(written(blob))
    sys.stdout.buffer.flush()


def some(names: Iterable[str]) -> str:
    """A few names of many."""
    known = sorted(names)
    return ", ".join(known[:10]) + (", ..." if len(known) > 10 else "") if known else "none"
