"""`podium catalog init|render|template|convert|add|prune|migrate`: catalogs from other things."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

import click

from podium.catalog import edit, package, prune, render, templates, write
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.migrate import Level
from podium.catalog.streams import MAX_DOCUMENT
from podium.catalog.templates import convert, semver
from podium.cli.catalogs.common import (
    REFERENCES,
    WRITERS,
    blobs_of,
    format_option,
    level_option,
    print_catalog,
    some,
)
from podium.cli.output import CONFLICT, fail, say
from podium.cli.parameters import pairs
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run
from podium.content import directories
from podium.content.sources import SourceKind, bundle_files, catalog_blobs, open_source
from podium.oci.open import Images
from podium.oci.settings import Settings
from podium.operations import templates as templating
from podium.operations.files import replace_file


@click.command("init")
@click.argument("name")
@click.option("-c", "--default-channel", default="", help="The channel for users who name none.")
@click.option("-i", "--icon", type=click.File("rb"), help="A picture: SVG, PNG, JPEG or GIF.")
@click.option(
    "-d", "--description", type=click.File(), help="A file that describes the package; - for standard input."
)
@format_option
@reports_errors
def init_(
    name: str, default_channel: str, icon: BinaryIO | None, description: TextIO | None, output: str
) -> None:
    """Print the blob of a new package.

    \b
    Example:
      podium catalog init pantry-operator -c stable-v1 -d README.md > catalog/pantry-operator.yaml
    """
    picture = icon.read() if icon else None
    print_catalog(
        [package.new(name, default_channel, picture, description.read() if description else "")], output
    )


@click.command("render", epilog=REFERENCES)
@click.argument("references", nargs=-1, required=True)
@format_option
@level_option(Level.NONE)
@click.option(
    "--image-ref-template",
    metavar="TEMPLATE",
    help="Image of bundles from directories, with {{.Package}}, {{.Name}} and {{.Version}}.",
)
@image_options
@reports_errors
def render_(
    references: Sequence[str],
    output: str,
    migrate_level: str,
    image_ref_template: str | None,
    settings: Settings,
) -> None:
    """Print catalogs and bundles as one catalog, with opm's bytes.

    \b
    Example:
      podium catalog render ./bundle --image-ref-template "docker.io/acme/{{.Package}}-bundle:{{.Version}}"
    """
    blobs = run(_rendered(references, Level(migrate_level), image_ref_template, settings))
    print_catalog(blobs, output)


async def _rendered(
    references: Sequence[str], level: Level, image_template: str | None, settings: Settings
) -> Iterable[Blob]:
    found: list[Iterable[Blob]] = []
    async with Images(settings, progress()) as images:
        for reference in references:
            source = await open_source(reference, images)
            if source.kind is SourceKind.CATALOG:
                found.append(render.catalog(await catalog_blobs(source), level))
                continue
            files = await bundle_files(source)
            if image_template and not source.reference:
                found.append([render.with_image(files, image_template, level)])
            else:
                found.append([render.bundle_blob(files, source.reference, level)])
    return itertools.chain.from_iterable(found)  # directories are read while it is written


@click.command("template")
@click.argument("file", type=click.File("rb"), default="-")
@format_option
@level_option(Level.NONE)
@click.option(
    "--compat",
    metavar="OPM",
    default="head",
    show_default=True,
    help="Make the edges that this opm release made: 1.36, 1.51, 1.57, ...",
)
@click.option(
    "--bundle",
    "bundles",
    metavar="IMAGE=PATH",
    multiple=True,
    help="Take this image's bundle from a directory or layout.",
)
@image_options
@reports_errors
def template_(
    file: BinaryIO, output: str, migrate_level: str, compat: str, bundles: tuple[str, ...], settings: Settings
) -> None:
    """Print the catalog that a template makes: olm.semver, olm.template.basic or olm.template.substitutes.

    Bundles are read from their registry, or before any push from where --bundle says.

    \b
    Example:
      podium catalog template semver.yaml --bundle docker.io/acme/operator-bundle:1.2.0=./bundle
    """
    name = "standard input" if file is sys.stdin.buffer else file.name
    template = directories.joined(name, directories.chunks_from(file), MAX_DOCUMENT)
    places = _places(templates.images(template, name), pairs(bundles, "--bundle"))
    request = templating.Request(template, name, _generation(compat), Level(migrate_level), places)
    print_catalog(run(_from_template(request, settings)), output)


def _places(named: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Where the bundles that a template names are to be found, however either side spells their names."""
    places: dict[str, str] = {}
    for image, place in given.items():
        same = [name for name in named if name == image or _full_name(name) == _full_name(image)]
        if not same:
            raise click.UsageError(f"--bundle {image}: the template does not name it; it names {some(named)}")
        places |= dict.fromkeys(same, place)
    return places


def _full_name(image: str) -> str:
    try:
        return render.image_reference(image)
    except CatalogError:
        return image


def _generation(compat: str) -> semver.Generation:
    try:
        return semver.generation(compat)
    except CatalogError as error:
        raise click.BadParameter(str(error), param_hint="--compat") from None


async def _from_template(request: templating.Request, settings: Settings) -> list[Blob]:
    async with Images(settings, progress()) as images:
        return await templating.render(request, images)


@click.command("convert", epilog=REFERENCES)
@click.argument("kind", type=click.Choice(("basic", "substitutes")))
@click.argument("reference")
@format_option
@image_options
@reports_errors
def convert_(kind: str, reference: str, output: str, settings: Settings) -> None:
    """Print the template that makes a catalog: its bundles become references to their images.

    \b
    Example:
      podium catalog convert basic ./catalog > template.yaml
    """
    to = convert.to_basic if kind == "basic" else convert.to_substitutes
    write_as = convert.as_json if output == "json" else convert.as_yaml
    click.echo(write_as(to(run(blobs_of(reference, settings)))), nl=False)


@click.command("add")
@click.argument("template", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("image")
@click.option(
    "--from", "place", metavar="PATH", help="Read the bundle from a directory or layout, not its registry."
)
@click.option(
    "--archetype",
    "archetypes",
    type=click.Choice(semver.ARCHETYPES),
    multiple=True,
    help="Where it belongs in a semver template.  [default: stable]",
)
@click.option(
    "--channel",
    "channels",
    metavar="NAME",
    multiple=True,
    help="Channels of a basic template to append it to.",
)
@image_options
@reports_errors
def add_(
    template: Path,
    image: str,
    place: str | None,
    archetypes: tuple[str, ...],
    channels: tuple[str, ...],
    settings: Settings,
) -> None:
    """Add a bundle to a template, keeping its comments; adding it again changes nothing.

    \b
    Example:
      podium catalog add template.yaml docker.io/acme/operator-bundle:1.2.0 --archetype fast --from ./bundle
    """
    before = template.read_bytes()
    blob = run(_bundle(image, place, settings))
    after = edit.add(before, blob, archetypes=archetypes, channels=channels, file=str(template))
    if after == before:
        say(f"{template} has it already.")
        return
    replace_file(template, after)
    say(f"{template}: added {blob.name}")


async def _bundle(image: str, place: str | None, settings: Settings) -> Blob:
    async with Images(settings, progress()) as images:
        source = await open_source(place or image, images)
        return render.bundle_blob(await bundle_files(source), render.image_reference(image))


@click.command("prune", epilog=REFERENCES)
@click.argument("reference")
@click.option(
    "--keep",
    "kept",
    metavar="PACKAGE[/CHANNEL][>=VERSION]",
    multiple=True,
    required=True,
    help="What to keep; may be given several times.",
)
@click.option(
    "--default-channel", "defaults", metavar="PACKAGE=CHANNEL", multiple=True, help="If the old one goes."
)
@format_option
@image_options
@reports_errors
def prune_(
    reference: str, kept: tuple[str, ...], defaults: tuple[str, ...], output: str, settings: Settings
) -> None:
    """Print a part of a catalog: some packages, channels or versions.

    Whoever runs a version that goes can still upgrade.

    \b
    Example:
      podium catalog prune docker.io/acme/catalog:1 --keep "pantry-operator/stable-v1>=1.2.0"
    """
    try:
        keep = prune.parse(kept, pairs(defaults, "--default-channel"))
    except CatalogError as error:
        raise click.BadParameter(str(error), param_hint="--keep") from None
    print_catalog(prune.prune(run(blobs_of(reference, settings)), keep), output)


@click.command("migrate", epilog=REFERENCES)
@click.argument("reference")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@format_option
@level_option(Level.ALL)
@image_options
@reports_errors
def migrate_(reference: str, directory: Path, output: str, migrate_level: str, settings: Settings) -> None:
    """Write a catalog to a new directory, one folder for each package, in the newest form.

    \b
    Example:
      podium catalog migrate docker.io/acme/catalog:1 ./catalog
    """
    if directory.exists() and any(directory.iterdir()):
        fail(f"{directory} is not empty; name a new directory", CONFLICT)
    blobs = render.catalog(run(blobs_of(reference, settings)), Level(migrate_level))
    for path, pieces in write.tree(blobs, WRITERS[output], output):
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(pieces)
    say(f"Written to {directory}")


COMMANDS = (init_, render_, template_, convert_, add_, prune_, migrate_)
