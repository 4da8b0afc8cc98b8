"""The `podium` command: one module per group of commands, loaded when the command is used.

Data goes to stdout, words about it to stderr. Errors say what is wrong and what to do, and end with an exit
code of their own: 1 failed, 2 wrong usage, 3 not found or not running, 4 conflict, 5 timed out or no answer,
6 access denied.
"""

from __future__ import annotations

import errno
import signal
from importlib import import_module
from typing import Any

import click

from podium import __version__

# command -> module and function; help is here so that `podium --help` loads none of them.
_COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("podium.cli.controlplane:up", "Start the embedded control plane."),
    "down": ("podium.cli.controlplane:down", "Stop it; its data stays."),
    "status": ("podium.cli.controlplane:status", "Show whether it runs, and where."),
    "kubeconfig": ("podium.cli.controlplane:kubeconfig", "Print the path of its kubeconfig."),
    "reset": ("podium.cli.controlplane:reset", "Stop it and delete its data."),
    "bundle": ("podium.cli.bundle:bundle", "Make, check and publish bundles."),
    "catalog": ("podium.cli.catalogs:catalog", "Make, check, look into and publish catalogs."),
    "image": ("podium.cli.image:image", "Look at images and copy them."),
    "publish": ("podium.cli.publish:publish", "Publish an operator: its bundle and its catalog, in one go."),
}


class _LazyGroup(click.Group):
    """A group whose commands are imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(128 + signal.SIGINT)  # as shells have it
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends quietly when nobody reads any more
            raise click.ClickException(str(error)) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="podium")
def cli() -> None:
    """An operator lifecycle manager for Kubernetes, with a control plane of its own.

    Start with `podium up`, then use kubectl with the kubeconfig it prints.
    """


def main() -> None:
    """Run the command line."""
    cli(prog_name="podium")
