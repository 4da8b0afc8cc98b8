"""`podium bundle`: start an operator project, generate and check its bundle, make and push its image."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from podium.api.findings import Finding, failed
from podium.bundle import checks, scaffold
from podium.bundle.checks import categories, community, multiarch
from podium.bundle.model import Files, name_of
from podium.bundle.read import provided_apis, read_leniently
from podium.cli.output import (
    CONFLICT,
    fail,
    output_option,
    print_data,
    print_findings,
    print_table,
    say,
    titled,
)
from podium.cli.packing import (
    PackingOptions,
    copied,
    packing_options,
    print_written,
    push_options,
    source_date_epoch,
)
from podium.cli.parameters import pairs
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run
from podium.content.sources import bundle_files, open_source
from podium.oci.open import Images
from podium.oci.settings import Settings
from podium.operations import projects
from podium.operations.files import write_files
from podium.operations.lookups import digests_of, platforms_of
from podium.operations.packing import bundle_image, put

_REFERENCES = """
    \b
    A bundle is named by
      ./path or dir:path               a directory with manifests/ and metadata/
      oci:path[:tag]                   an image in an OCI layout on disk
      docker.io/acme/my-bundle:1.0     an image in a registry
"""


@click.group()
def bundle() -> None:
    """Start an operator project, generate and check its bundle, make and push its image."""


@bundle.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="The package's name.  [default: the folder's]")
@click.option("--kind", default="", help="The kind that the operator manages.  [default: from the name]")
@click.option("--group", default="example.com", show_default=True, help="Its API group.")
@click.option("--images", default="docker.io/example", show_default=True, help="Where the images will lie.")
@reports_errors
def init(folder: Path, name: str | None, kind: str, group: str, images: str) -> None:
    """Start an operator project: podium.yaml, manifests and a catalog template that work as they are.

    \b
    Example:
      podium bundle init pantry-operator --images docker.io/acme
    """
    files = scaffold.init(name or folder.resolve().name, kind=kind, group=group, images=images)
    present = [path for path in files if (folder / path).exists()]
    if present:
        fail(f"{folder} has {', '.join(present)} already; nothing was written", CONFLICT)
    write_files(folder, files)
    say(f"Created a project in {folder}. Next: podium bundle generate {folder}")


@bundle.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the bundle.  [default: bundle in the project's folder]",
)
@click.option(
    "--use-image-digests", is_flag=True, help="Name every image by digest, as its registry has it now."
)
@image_options
@reports_errors
def generate(folder: Path, to: Path | None, use_image_digests: bool, settings: Settings) -> None:
    """Generate the bundle of a project from its manifests, and check it.

    Nothing is written if nothing changes; the time of creation changes only with the content.

    \b
    Example:
      podium bundle generate ./pantry-operator
    """
    opened = projects.open_project(folder, source_date_epoch())
    made = projects.generate(opened)
    if use_image_digests or opened.project.use_image_digests:
        made = projects.generate(opened, run(_digests(made.images, settings)))
    target = to or folder / projects.BUNDLE
    findings = [*made.findings, *checks.check(made.files)]
    if failed(findings):
        say(f"{target}: not written")
        print_findings(findings, "table", str(folder))
    if to is not None:
        projects.require_empty_or_bundle(to)
    gone = projects.leftovers(target, made.files)
    written = projects.write_bundle(target, made.files)
    say(f"{target}: {'written' if written else 'unchanged'}, version {opened.project.version}")
    if gone:
        say(f"Removed what the project does not make: {', '.join(gone)}")
    print_findings(findings, "table", str(target))


async def _digests(names: tuple[str, ...], settings: Settings) -> dict[str, str]:
    async with Images(settings, progress()) as images:
        return await digests_of(names, images)


@bundle.command(epilog=_REFERENCES)
@click.argument("reference", required=False)
@click.option(
    "--select-optional",
    "select",
    metavar="name=NAME|suite=NAME",
    multiple=True,
    help="Also run these optional checks.",
)
@click.option(
    "--optional-values",
    "values",
    metavar="KEY=VALUE",
    multiple=True,
    help="Options of optional checks: k8s-version=1.25, categories=FILE, index-path=FILE.",
)
@click.option("--list-optional", is_flag=True, help="List the optional checks and end.")
@output_option
@image_options
@reports_errors
def validate(
    reference: str | None,
    select: tuple[str, ...],
    values: tuple[str, ...],
    list_optional: bool,
    output: str,
    settings: Settings,
) -> None:
    """Check a bundle; everything that is wrong is told at once, with file and line.

    \b
    Example:
      podium bundle validate ./bundle --select-optional suite=operatorframework
    """
    if list_optional:
        columns = {
            "NAME": lambda suite: suite.name,
            "SUITE": lambda suite: suite.suite,
            "DESCRIPTION": lambda suite: suite.description,
        }
        rows: list[Any] = list(checks.SUITES)
        if output != "table":
            rows = [{"name": s.name, "suite": s.suite, "description": s.description} for s in checks.SUITES]
        print_table(rows, output, columns)
        return
    if reference is None:
        raise click.UsageError("Missing argument 'REFERENCE'.")
    findings = run(_validate(reference, select, _options(values), settings))
    print_findings(findings, output, reference)


def _options(values: tuple[str, ...]) -> dict[str, Any]:
    """What `--optional-values` says; some values are files, of which the check wants the content."""
    options: dict[str, Any] = dict(pairs(values, "--optional-values"))
    if own := os.environ.get("OPERATOR_BUNDLE_CATEGORIES"):
        options.setdefault(categories.OPTION, own)
    if "index-path" in options:
        options[community.OPTION] = options.pop("index-path")
    for name in (categories.OPTION, community.OPTION):
        if name in options:
            options[name] = Path(options[name]).read_text()
    return options


async def _validate(
    reference: str, select: tuple[str, ...], options: dict[str, Any], settings: Settings
) -> list[Finding]:
    chosen = {suite.name for suite in checks.selected(select)}
    async with Images(settings, progress()) as images:
        files = await bundle_files(await open_source(reference, images))
        if "multiarch" in chosen:
            csv = read_leniently(files).csv
            options[multiarch.OPTION] = await platforms_of(multiarch.images(csv), images)
    return checks.check(files, select, options)


@bundle.command(epilog=_REFERENCES)
@click.argument("reference")
@output_option
@image_options
@reports_errors
def show(reference: str, output: str, settings: Settings) -> None:
    """Show what a bundle holds: package, version, channels, APIs, objects.

    \b
    Example:
      podium bundle show docker.io/acme/pantry-operator-bundle:1.0.0
    """
    found = read_leniently(run(_files(reference, settings)))
    provided = [f"{kind}.{version}.{group}" for group, version, kind, _ in provided_apis(found)]
    objects = [f"{obj.get('kind')}/{name_of(obj)}" for obj in found.objects]
    described = {
        "name": found.name,
        "package": found.package,
        "version": found.version,
        "channels": found.channels,
        "defaultChannel": found.default_channel,
        "provides": provided,
        "dependencies": [{"type": item.type, "value": item.value} for item in found.dependencies],
        "objects": objects,
    }
    rows = [
        ("Name", found.name),
        ("Package", found.package),
        ("Version", found.version),
        ("Channels", ", ".join(found.channels)),
        ("Default channel", found.default_channel),
        *titled("Provides", provided),
        *titled("Requires", [f"{item.type}: {item.value}" for item in found.dependencies]),
        *titled("Objects", objects),
    ]
    print_data(described, output, rows)


@bundle.command(epilog=_REFERENCES)
@click.argument("reference")
@packing_options
@image_options
@reports_errors
def build(reference: str, to: str, options: PackingOptions, output: str, settings: Settings) -> None:
    """Make an image of a bundle; the same bundle always gives the same digest.

    A bundle that fails its checks is refused.

    \b
    Example:
      podium bundle build ./bundle --to oci:./images:docker.io/acme/pantry-operator-bundle:1.0.0
    """
    run(_build(reference, to, options, output, settings))


@bundle.command(epilog=_REFERENCES)
@click.argument("reference")
@click.argument("image")
@push_options
@image_options
@reports_errors
def push(reference: str, image: str, options: PackingOptions, output: str, settings: Settings) -> None:
    """Push a bundle to a registry: a directory is made into an image first, a layout is copied.

    \b
    Example:
      podium bundle push ./bundle docker.io/acme/pantry-operator-bundle:1.0.0
    """
    run(_build(reference, image, options, output, settings))


async def _build(reference: str, to: str, options: PackingOptions, output: str, settings: Settings) -> None:
    async with Images(settings, progress()) as images:
        source = await open_source(reference, images)
        if source.image is not None:
            print_written(await copied(source, to, options, images), output)
            return
        files = await bundle_files(source)
        findings = checks.check(files)
        if failed(findings):
            print_findings(findings, "table", reference)
        built = bundle_image(files, await options.packing(images))
        print_written(await put(built, to, images), output)


async def _files(reference: str, settings: Settings) -> Files:
    async with Images(settings, progress()) as images:
        return await bundle_files(await open_source(reference, images))
