"""`podium image`: look at images in registries and layouts, and copy them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from podium.cli.output import output_option, print_data, print_table, titled
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run
from podium.oci import images as oci_images
from podium.oci.model import INDEXES, Index, decode
from podium.oci.open import Images
from podium.oci.settings import Settings
from podium.oci.transfer import copy
from podium.operations.packing import tag_for

_REFERENCES = """
    \b
    An image is named by
      docker.io/acme/operator:1.0    an image in a registry (docker:// in front is allowed)
      oci:path[:tag|@digest]         an image in an OCI layout on disk
"""


@click.group()
def image() -> None:
    """Look at images in registries and layouts, and copy them."""


@dataclass(frozen=True, slots=True)
class _Inspected:
    name: str
    digest: str
    media_type: str
    platforms: list[str]
    created: str
    labels: dict[str, str]
    layers: list[dict[str, Any]]


@image.command(epilog=_REFERENCES)
@click.argument("name")
@click.option(
    "--platform", metavar="OS/ARCH[/VARIANT]", help="Which image of several.  [default: this machine]"
)
@output_option
@image_options
@reports_errors
def inspect(name: str, platform: str | None, output: str, settings: Settings) -> None:
    """Show what an image is: digest, platforms, labels, layers.

    \b
    Example:
      podium image inspect docker.io/library/alpine:3
    """
    found = run(_inspect(name, platform, settings))
    rows = [
        ("Name", found.name),
        ("Digest", found.digest),
        ("Media type", found.media_type),
        ("Platforms", ", ".join(found.platforms)),
        ("Created", found.created),
        *titled("Labels", [f"{key}={value}" for key, value in sorted(found.labels.items())]),
        *titled("Layers", [f"{layer['digest']}  {layer['size']} bytes" for layer in found.layers]),
    ]
    print_data(found, output, rows)


async def _inspect(name: str, platform: str | None, settings: Settings) -> _Inspected:
    async with Images(settings) as images:
        store, tag = images.store(name)
        descriptor = await store.resolve(tag)
        platforms = []
        if descriptor.media_type in INDEXES:
            index = decode(await store.manifest(descriptor), descriptor.media_type)
            assert isinstance(index, Index)
            platforms = [
                str(entry.platform)
                for entry in index.manifests
                if entry.platform and not oci_images.is_attestation(entry)
            ]
        found = await oci_images.pull(store, descriptor.digest, platform)
        return _Inspected(
            name,
            descriptor.digest,
            descriptor.media_type,
            platforms or [str(found.platform)],
            str(found.config.get("created", "")),
            found.labels,
            [
                {"digest": layer.digest, "size": layer.size, "mediaType": layer.media_type}
                for layer in found.manifest.layers
            ],
        )


@image.command("copy", epilog=_REFERENCES)
@click.argument("source")
@click.argument("target")
@click.option(
    "--platform", metavar="OS/ARCH[/VARIANT]", help="Only the image for this platform.  [default: all]"
)
@output_option
@image_options
@reports_errors
def copy_(source: str, target: str, platform: str | None, output: str, settings: Settings) -> None:
    """Copy an image with all its platforms; its digest stays the same.

    \b
    Example:
      podium image copy oci:./images:1.0 docker.io/acme/operator:1.0
    """
    digest = run(_copy(source, target, platform, settings))
    if output == "table":
        click.echo(f"{target.partition('@')[0]}@{digest}")
    else:
        print_data({"source": source, "target": target, "digest": digest}, output, ())


async def _copy(source: str, target: str, platform: str | None, settings: Settings) -> str:
    async with Images(settings) as images:
        store, tag = images.store(source)
        to, to_tag = images.store(target)
        platforms = [platform] if platform else ()
        digest = (await store.resolve(tag)).digest
        to_tag = tag_for(to_tag, "" if platform else digest, target)
        descriptor = await copy(store, digest, to, to_tag, platforms=platforms, progress=progress())
        return descriptor.digest


@image.command(epilog=_REFERENCES)
@click.argument("repository")
@output_option
@image_options
@reports_errors
def ls(repository: str, output: str, settings: Settings) -> None:
    """List the tags of a repository or a layout.

    \b
    Example:
      podium image ls oci:./images
    """
    print_table(run(_tags(repository, settings)), output, {"TAG": str})


async def _tags(repository: str, settings: Settings) -> list[str]:
    async with Images(settings) as images:
        store, _ = images.store(repository)
        return await store.tags()
