"""`podium publish`: a project's bundle and catalog, in one go."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from podium.api.findings import Severity
from podium.bundle.project import ProjectError
from podium.catalog.diff import Change
from podium.cli.output import CONFLICT, FAILED, fail, output_option, print_data, print_findings, say, titled
from podium.cli.packing import source_date_epoch
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run
from podium.oci.open import Images
from podium.oci.settings import Settings
from podium.operations.packing import Written
from podium.operations.publish import AlreadyPublished, Published, Rejected, Request
from podium.operations.publish import publish as publish_project


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--layout",
    metavar="PATH",
    default="",
    help="Write images to an OCI layout on disk instead of their registries.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; print the digests that publishing would give.")
@click.option("--catalog-tag", metavar="TAG", default="", help="Tag of the catalog.  [default: the version]")
@click.option("--also-tag", metavar="TAG", multiple=True, help="Point this tag at the catalog, too.")
@click.option("--use-image-digests", is_flag=True, help="Name every image in the bundle by digest.")
@output_option
@image_options
@reports_errors
def publish(
    folder: Path,
    layout: str,
    dry_run: bool,
    catalog_tag: str,
    also_tag: tuple[str, ...],
    use_image_digests: bool,
    output: str,
    settings: Settings,
) -> None:
    """Publish an operator: generate and check its bundle, add it to its catalog, push both.

    Everything follows from podium.yaml in FOLDER. The version must be new: what is published never changes,
    and nothing that users have is taken from them. Running it again does nothing.

    \b
    Example:
      podium bundle init pantry-operator --images docker.io/acme
      podium publish pantry-operator --layout ./images --dry-run
    """
    if ":" in layout:
        raise click.BadParameter(f"{layout}: the path of a layout can have no colon", param_hint="--layout")
    request = Request(folder, layout, dry_run, catalog_tag, also_tag, use_image_digests, source_date_epoch())
    try:
        done = run(_publish(request, settings))
    except AlreadyPublished as error:
        fail(str(error), CONFLICT)
    except (Rejected, ProjectError) as error:
        say("Nothing was published:")
        print_findings(error.findings, output, str(folder))
        sys.exit(FAILED)
    _tell(done, output)


async def _publish(request: Request, settings: Settings) -> Published:
    async with Images(settings, progress()) as images:
        return await publish_project(request, images)


def _tell(done: Published, output: str) -> None:
    if output == "table":
        for finding in done.findings:
            if finding.severity is not Severity.INFO:
                say(str(finding))
    rows = [
        ("Version", done.version),
        ("Channels", ", ".join(done.channels)),
        ("Bundle", _line(done.bundle, done.dry_run)),
        ("Catalog", _line(done.catalog, done.dry_run)),
        *titled("Changes", map(_change, done.changes)),
    ]
    print_data(done, output, rows)


def _line(written: Written, dry_run: bool) -> str:
    state = "unchanged" if written.existed else "would be written" if dry_run else "written"
    return f"{written.name}@{written.digest} ({state})"


def _change(change: Change) -> str:
    words = (f"{change.channel or change.package}:", change.kind, change.name)
    return " ".join(filter(None, (*words, f"-> {change.after}" if change.after else "")))
