"""`podium catalog list|diff|graph|validate|serve`: what is in a catalog, and is it right?"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from podium.api.findings import Finding, failed
from podium.catalog import diff as catalog_diff
from podium.catalog import graph as catalog_graph
from podium.catalog import listing
from podium.catalog.blobs import PACKAGE
from podium.catalog.check import check
from podium.catalog.outline import outline
from podium.catalog.validate import validate
from podium.cli.catalogs.common import REFERENCES, blobs_of, some
from podium.cli.output import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    fail,
    output_option,
    print_findings,
    print_table,
    say,
)
from podium.cli.progress import progress
from podium.cli.registries import image_options, reports_errors, run, stop_requested
from podium.content.sources import catalog_blobs, catalog_streams, open_source
from podium.oci.open import Images
from podium.oci.settings import Settings


@click.command("list", epilog=REFERENCES)
@click.argument("what", type=click.Choice(("packages", "channels", "bundles")))
@click.argument("reference")
@click.argument("package", required=False)
@output_option
@image_options
@reports_errors
def list_(what: str, reference: str, package: str | None, output: str, settings: Settings) -> None:
    """List the packages, channels or bundles of a catalog.

    \b
    Example:
      podium catalog list channels ./catalog pantry-operator
    """
    content = outline(run(blobs_of(reference, settings)))
    if package:
        if package not in content:
            fail(f"the catalog has no package {package!r}; it has: {some(content)}", NOT_FOUND)
        content = {package: content[package]}
    if what == "packages":
        rows = list(listing.packages(content))
        columns = {
            "NAME": lambda r: r.name,
            "DISPLAY NAME": lambda r: r.display_name,
            "DEFAULT CHANNEL": lambda r: r.default_channel,
        }
        print_table(rows, output, columns)
    elif what == "channels":
        print_table(
            list(listing.channels(content)),
            output,
            {"PACKAGE": lambda r: r.package, "CHANNEL": lambda r: r.channel, "HEAD": lambda r: r.head},
        )
    else:
        print_table(
            list(listing.bundles(content)),
            output,
            {
                "PACKAGE": lambda r: r.package,
                "CHANNEL": lambda r: r.channel,
                "BUNDLE": lambda r: r.bundle,
                "REPLACES": lambda r: r.replaces,
                "SKIPS": lambda r: ",".join(r.skips),
                "SKIP RANGE": lambda r: r.skip_range,
                "IMAGE": lambda r: r.image,
            },
        )


@click.command("diff", epilog=REFERENCES)
@click.argument("before")
@click.argument("after")
@click.option("--exit-code", is_flag=True, help="End with exit code 1 if anything breaking changes.")
@output_option
@image_options
@reports_errors
def diff_(before: str, after: str, exit_code: bool, output: str, settings: Settings) -> None:
    """Show what a user of each channel would see change from one catalog to another.

    \b
    Example:
      podium catalog diff docker.io/acme/catalog:1.0 ./catalog
    """
    old = outline(run(blobs_of(before, settings)), contents=True)
    new = outline(run(blobs_of(after, settings)), contents=True)
    changes = catalog_diff.diff(old, new)
    columns = {
        "PACKAGE": lambda c: c.package,
        "CHANNEL": lambda c: c.channel,
        "CHANGE": lambda c: c.kind.value + (" (!)" if c.breaking else ""),
        "NAME": lambda c: c.name,
        "BEFORE": lambda c: c.before,
        "AFTER": lambda c: c.after,
    }
    if changes or output != "table":
        print_table(changes, output, columns)
    else:
        say("Nothing changes for the users of any channel.")
    if exit_code and any(change.breaking for change in changes):
        sys.exit(FAILED)


@click.command("graph", epilog=REFERENCES)
@click.argument("reference")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("mermaid", "svg")),
    default="mermaid",
    show_default=True,
    help="Format.",
)
@click.option("-p", "--package", default="", metavar="NAME", help="Draw only this package.")
@click.option("--minimum-edge", default="", metavar="BUNDLE", help="Leave out what is below this bundle.")
@click.option("--draw-v0-semantics", is_flag=True, help="Mark what OLM v0 would never install.")
@image_options
@reports_errors
def graph_(
    reference: str, output: str, package: str, minimum_edge: str, draw_v0_semantics: bool, settings: Settings
) -> None:
    """Draw the upgrade graph of a catalog.

    \b
    Example:
      podium catalog graph ./catalog -o svg > graph.svg
    """
    content = outline(run(blobs_of(reference, settings)))
    if package and package not in content:
        fail(f"the catalog has no package {package!r}; it has: {some(content)}", NOT_FOUND)
    view = catalog_graph.View(package, minimum_edge, draw_v0_semantics)
    draw = catalog_graph.svg if output == "svg" else catalog_graph.mermaid
    click.echo(draw(content, view), nl=False)


@click.command("validate", epilog=REFERENCES)
@click.argument("reference")
@click.option(
    "--lint/--no-lint",
    default=True,
    show_default=True,
    help="Also look for what opm accepts but users regret.",
)
@click.option(
    "--published",
    metavar="REFERENCE",
    help="The catalog that users have now: nothing in it may vanish or change.",
)
@output_option
@image_options
@reports_errors
def validate_(reference: str, lint: bool, published: str | None, output: str, settings: Settings) -> None:
    """Check a catalog by all of opm's rules, and by more that protect its users.

    Reports everything at once, with file and line. Exit code 1 if there are errors.

    \b
    Example:
      podium catalog validate ./catalog --published docker.io/acme/catalog:latest
    """
    print_findings(run(_check(reference, lint, published, settings)), output, reference)


async def _check(reference: str, lint: bool, published: str | None, settings: Settings) -> list[Finding]:
    async with Images(settings, progress()) as images:
        streams = await catalog_streams(await open_source(reference, images))
        before = await catalog_blobs(await open_source(published, images)) if published else None
        return check(streams, before, lints=lint)


@click.command("serve", epilog=REFERENCES)
@click.argument("reference")
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), default=50051, show_default=True, help="0 for any."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on; [::] for all.")
@image_options
@reports_errors
def serve_(reference: str, port: int, address: str, settings: Settings) -> None:
    """Serve a catalog over gRPC (api.Registry), as OLM v0 wants it; needs `pip install podium[grpc]`.

    \b
    Example:
      podium catalog serve ./catalog --port 50051
    """
    # Its C core would write to the terminal what we say better.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from podium.registry import server
    except ImportError:
        fail("serving needs gRPC: pip install 'podium[grpc]'")
    run(_serve(reference, f"{address}:{port}", settings, server), forever=True)


async def _serve(reference: str, address: str, settings: Settings, server: Any) -> None:
    from podium.registry.queries import Queries

    blobs = list(await blobs_of(reference, settings))
    findings = validate(blobs)
    if failed(findings):
        print_findings(findings, "table", reference)
    if not any(blob.schema == PACKAGE for blob in blobs):
        fail(f"{reference} has no packages; is it a template? `podium catalog template` makes the catalog")
    stopped = stop_requested()
    try:
        running, port = await server.start(Queries(blobs), address)
    except RuntimeError:
        fail(
            f"cannot listen on {address}: it is in use, or not this machine's; choose another with --port",
            CONFLICT,
        )
    say(f"Serving {reference} on {address.rpartition(':')[0]}:{port}; stop with Ctrl-C.")
    await stopped.wait()
    await running.stop(grace=5)


COMMANDS = (list_, diff_, graph_, validate_, serve_)
