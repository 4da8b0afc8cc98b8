"""`podium catalog build|push`: a catalog as an image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from podium.api.findings import failed
from podium.catalog.check import check
from podium.cli.catalogs.common import REFERENCES
from podium.cli.output import print_findings
from podium.cli.packing import PackingOptions, copied, packing_options, print_written, push_options
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run
from podium.content.sources import STANDARD_INPUT, Source, local_streams, open_source
from podium.oci.open import Images
from podium.oci.settings import Settings
from podium.operations.packing import catalog_image, put


@click.command("build", epilog=REFERENCES)
@click.argument("reference")
@packing_options
@image_options
@reports_errors
def build_(reference: str, to: str, options: PackingOptions, output: str, settings: Settings) -> None:
    """Make an image of a catalog: its files below /configs, on an empty base.

    The same catalog always gives the same digest. A catalog that is not valid is refused.

    \b
    Example:
      podium catalog build ./catalog --to oci:./images:docker.io/acme/catalog:1.2.0
    """
    run(_build(reference, to, options, output, settings))


@click.command("push", epilog=REFERENCES)
@click.argument("reference")
@click.argument("image")
@push_options
@image_options
@reports_errors
def push_(reference: str, image: str, options: PackingOptions, output: str, settings: Settings) -> None:
    """Push a catalog to a registry: a directory is made into an image first, a layout is copied.

    \b
    Example:
      podium catalog push ./catalog docker.io/acme/catalog:1.2.0
    """
    run(_build(reference, image, options, output, settings))


async def _build(reference: str, to: str, options: PackingOptions, output: str, settings: Settings) -> None:
    async with Images(settings, progress()) as images:
        source = await open_source(reference, images)
        if source.image is not None:
            print_written(await copied(source, to, options, images), output)
            return
        kept: dict[str, list[bytes]] = {}
        findings = check(_keeping(kept, local_streams(source)), lints=False, to_publish=True)
        if failed(findings):
            print_findings(findings, "table", reference)
        packing = await options.packing(images)
        built = catalog_image(((_below(path, source), b"".join(kept[path])) for path in kept), packing)
        print_written(await put(built, to, images), output)


def _keeping(
    kept: dict[str, list[bytes]], streams: Iterable[tuple[str, Iterable[bytes]]]
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Streams of which everything is kept that is read: so what is packed is what was checked."""
    for path, chunks in streams:
        kept[path] = []
        yield path, _kept(kept[path], chunks)


def _kept(parts: list[bytes], chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        parts.append(chunk)
        yield chunk


def _below(path: str, source: Source) -> str:
    """The path of a catalog file in the image: as in its directory; a single file lies at the top."""
    assert source.path is not None
    if source.name == STANDARD_INPUT:
        return "catalog.yaml"
    return Path(path).relative_to(source.path).as_posix() if source.path.is_dir() else Path(path).name


COMMANDS = (build_, push_)
