"""`podium up`, `down`, `status`, `kubeconfig` and `reset`: the embedded control plane in a user's hands."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from podium.cli.output import CONFLICT, NOT_FOUND, TIMED_OUT, fail, output_option, print_data, say
from podium.run import instance
from podium.run.instance import Instance

F = TypeVar("F", bound=Callable[..., Any])

_SIMULATED = "Nodes and workloads are simulated: Pods become ready, but nothing runs in them."
_NOT_SIMULATED = "Nothing is simulated: it stores objects, and no workload controller acts on them."


class _Directory(click.Path):
    """A directory by name; an empty name is a variable that was not set, not the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty.", param, ctx)
        return super().convert(value, param, ctx)


def _data_option(command: F) -> F:
    return click.option(
        "--data",
        type=_Directory(file_okay=False, path_type=Path),
        default=instance.default_directory,
        help="Directory that holds the cluster: its objects, keys and kubeconfig.  "
        "[default: $PODIUM_DATA, or podium in the user's data directory]",
    )(command)


@click.command()
@_data_option
@click.option("--detach", "-d", is_flag=True, help="Return once it is ready and leave it running.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on the loopback address.  [default: the one of the last run, else any free one]",
)
@click.option(
    "--simulate/--no-simulate", default=True, show_default=True, help="Simulate nodes and workloads."
)
@click.option("--verbose", "-v", is_flag=True, help="Log what the controllers do.")
def up(data: Path, detach: bool, port: int, simulate: bool, verbose: bool) -> None:
    """Start the embedded control plane: a Kubernetes API server with simulated nodes and workloads.

    It listens on the loopback address only and keeps everything in one directory. Starting it again on the
    same directory continues where it stopped; starting it while it runs shows where it is.

    \b
    Example:
      podium up --detach
    """
    data = data.absolute()
    running = instance.find(data)
    if running is not None:
        say(f"Already running (pid {running.pid}).")
        if simulate != running.simulated or port not in (0, urlsplit(running.url).port):
            say(f"It keeps its own options; `podium down{_data_hint(data)}` first to change them.")
        _tell(data, running)
        return
    if instance.is_held(data):
        fail(f"{data} is in use by a control plane that is starting or stopping; try again.", CONFLICT)
    if detach:
        _start_detached(data, port, simulate, verbose)
        return
    from podium.apiserver.store import StoreFailed, StoreUnreadable
    from podium.run import controlplane

    options = controlplane.Options(data=data, port=port, simulate=simulate)
    controlplane.configure_logging(verbose)
    try:
        controlplane.run(options, on_ready=lambda started: _tell(data, started))
    except instance.InUse:
        fail(f"{data} is in use by another control plane; see `podium status`.", CONFLICT)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fail(f"port {port} is taken; choose another with --port, or any free one with --port 0.")
        fail(f"cannot start on {data}: {error}")
    except StoreUnreadable as error:
        hint = f"put a copy of the file in its place, or start anew with `podium reset{_data_hint(data)}`."
        fail(f"{error}\n{hint}")
    except StoreFailed as error:
        fail(f"cannot start on {data}: {error}")
    say("Stopped; the data stays in " + str(data))


def _start_detached(data: Path, port: int, simulate: bool, verbose: bool) -> None:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = data / instance.LOG
    command = [sys.executable, "-m", "podium", "up", "--data", str(data), "--port", str(port)]
    command += ["--simulate" if simulate else "--no-simulate", *(["--verbose"] if verbose else [])]
    with log.open("ab") as output:
        before = output.tell()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    # Somebody else may have been faster; then theirs is the one to wait for, and ours must not start later.
    ready = instance.wait_until(
        lambda: bool(instance.find(data)) or (process.poll() is not None and not instance.is_held(data)), 30
    )
    started = instance.find(data)
    if started is None or started.pid != process.pid:
        process.terminate()
        process.wait()
    if started is None:
        told = log.read_bytes()[before:].decode(errors="replace")
        tail = "\n".join(told.splitlines()[-5:])
        code = TIMED_OUT if not ready else 1
        fail(f"the control plane did not start; the end of {log}:\n{tail}", code)
    _tell(data, started)


def _tell(data: Path, running: Instance) -> None:
    kubeconfig = data / instance.KUBECONFIG
    say(f"The control plane is ready at {running.url}")
    say(_SIMULATED if running.simulated else _NOT_SIMULATED)
    say("\n  export KUBECONFIG=" + _shell(kubeconfig))
    say("  kubectl get " + ("nodes" if running.simulated else "namespaces"))
    say("\nStop it with `podium down" + _data_hint(data) + "` (or Ctrl-C where it runs in the foreground).")


def _shell(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _data_hint(data: Path) -> str:
    return "" if data == instance.default_directory().absolute() else f" --data {_shell(data)}"


@click.command()
@_data_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=15.0,
    show_default=True,
    help="Seconds before it is killed.",
)
def down(data: Path, timeout: float) -> None:
    """Stop the control plane; its data stays for the next `podium up`.

    \b
    Example:
      podium down
    """
    data = data.absolute()
    if not instance.stop(data, timeout):
        say(f"Not running in {data}.")
        return
    if instance.is_held(data):
        fail(f"the control plane in {data} does not stop; see {data / instance.LOG}", TIMED_OUT)
    say("Stopped.")


@click.command()
@_data_option
@output_option
def status(data: Path, output: str) -> None:
    """Show whether the control plane runs; exits with 3 if it does not.

    \b
    Example:
      podium status -o json
    """
    data = data.absolute()
    running = instance.find(data)
    described: dict[str, Any] = {"running": running is not None, "data": str(data)}
    rows = [("Running", "yes" if running else "no"), ("Data", str(data))]
    if running is not None:
        kubeconfig = str(data / instance.KUBECONFIG)
        described |= {
            "url": running.url,
            "pid": running.pid,
            "version": running.version,
            "started": running.started,
            "kubeconfig": kubeconfig,
        }
        rows += [
            ("URL", running.url),
            ("Process", str(running.pid)),
            ("Version", running.version),
            ("Started", running.started),
            ("Kubeconfig", kubeconfig),
        ]
    print_data(described, output, rows)
    if running is None:
        say("Start it with `podium up" + _data_hint(data) + "`.")
        sys.exit(NOT_FOUND)


@click.command()
@_data_option
@click.option("--raw", is_flag=True, help="Print the file itself rather than its path.")
def kubeconfig(data: Path, raw: bool) -> None:
    """Print the path of the kubeconfig.

    \b
    Example:
      export KUBECONFIG=$(podium kubeconfig)
    """
    path = data.absolute() / instance.KUBECONFIG
    if not path.exists():
        hint = _data_hint(data.absolute())
        fail(f"there is no kubeconfig in {data} yet; run `podium up{hint}` first.", NOT_FOUND)
    click.echo(path.read_text() if raw else str(path), nl=not raw)


@click.command()
@_data_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def reset(data: Path, yes: bool) -> None:
    """Stop the control plane and delete everything in it.

    \b
    Example:
      podium reset --yes
    """
    data = data.absolute()
    if not data.exists():
        say(f"Nothing to delete: {data} does not exist.")
        return
    if not yes:
        if not sys.stdin.isatty():
            fail("this deletes the whole cluster; say --yes to do it without being asked.", 2)
        click.confirm(f"Delete the cluster in {data}?", abort=True, err=True)
    try:
        instance.check_ours(data)  # before it is stopped for nothing
        instance.stop(data)
        if instance.is_held(data):
            fail(f"the control plane in {data} does not stop; nothing was deleted.", TIMED_OUT)
        instance.erase(data)
    except instance.NotOurs as error:
        fail(f"{error}, which Podium did not write; nothing was deleted.", CONFLICT)
    except instance.InUse:
        fail(f"{data} is in use again; nothing was deleted.", CONFLICT)
    say(f"Deleted {data}.")
