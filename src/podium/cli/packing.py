"""What the `build` and `push` commands share: options of an image, and how the result is told."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from podium.cli.output import output_option, print_data, say
from podium.cli.parameters import pairs
from podium.content.sources import Source
from podium.oci.images import parse_platform
from podium.oci.open import Images
from podium.oci.tarwrite import TIME_LIMIT
from podium.oci.transfer import copy
from podium.operations.packing import Packing, Written, base_image, published_digest, tag_for

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PackingOptions:
    """What the user said about the image."""

    base: str
    labels: tuple[str, ...]
    platforms: tuple[str, ...] = ()

    async def packing(self, images: Images) -> Packing:
        """The same, with the bases found."""
        labels = pairs(self.labels, "--label")
        epoch = source_date_epoch() or 0
        if not self.platforms:
            return Packing(labels, await base_image(self.base, images), epoch)
        platforms = [parse_platform(text) for text in self.platforms]
        bases = {platform: await base_image(self.base, images, platform) for platform in platforms}
        return Packing(labels, epoch=epoch, platforms=bases)


def source_date_epoch() -> int | None:
    """When things are said to be made, in seconds since 1970, if SOURCE_DATE_EPOCH says so."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 20 or int(text) >= TIME_LIMIT:
        raise click.UsageError(f"SOURCE_DATE_EPOCH must be seconds since 1970, up to 2242, not {text!r}")
    return int(text)


def packing_options(command: F) -> F:
    """Where to put the image, and what to build it of."""
    to = click.option(
        "--to",
        required=True,
        metavar="IMAGE",
        help="Where to: oci:PATH[:TAG] for a layout on disk, or the name of an image in a registry.",
    )
    return to(push_options(command))


def push_options(command: F) -> F:
    """What to build an image of."""

    @functools.wraps(command)
    def with_options(base: str, label: tuple[str, ...], platform: tuple[str, ...], **arguments: Any) -> Any:
        return command(options=PackingOptions(base, label, platform), **arguments)

    label_option = click.option("--label", metavar="KEY=VALUE", multiple=True, help="A label of the image.")
    base_option = click.option(
        "--base", metavar="IMAGE", default="scratch", show_default=True, help="The image to build upon."
    )
    platform_option = click.option(
        "--platform",
        metavar="OS/ARCH[/VARIANT]",
        multiple=True,
        help="Make an index of images for these platforms.  [default: one image for any]",
    )
    return base_option(platform_option(label_option(output_option(with_options))))  # type: ignore[return-value]


async def copied(source: Source, to: str, options: PackingOptions, images: Images) -> Written:
    """An image that exists already, for all its platforms, under a new name."""
    assert source.image is not None
    if options.labels or options.platforms or options.base not in ("", "scratch"):
        raise click.UsageError(
            f"{source.name} is an image already: only a directory is built with these options"
        )
    origin, name = images.store(source.name)
    store, tag = images.store(to)
    digest = (await origin.resolve(name)).digest
    size = sum(layer.size for layer in source.image.manifest.layers)
    before = await published_digest(to, images)
    if before != digest:
        await copy(origin, digest, store, tag_for(tag, digest, to))
    return Written(to, digest, size, before == digest, before if before != digest else "")


def print_written(written: Written, output: str) -> None:
    """Tell where an image is now, by digest."""
    if written.existed and output == "table":
        say(f"{written.name} is there already, unchanged.")
    if written.replaced:
        say(f"Warning: {written.name} was {written.replaced} before: whoever follows it gets this now.")
    if output == "table":
        click.echo(f"{written.name.partition('@')[0]}@{written.digest}")
    else:
        print_data(written, output, ())
