"""What commands that touch images share: options for reaching registries, errors as exit codes, running."""

from __future__ import annotations

import asyncio
import functools
import re
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from podium.bundle.model import BundleError
from podium.bundle.project import ProjectError
from podium.catalog.blobs import CatalogError
from podium.cli.output import CONFLICT, DENIED, FAILED, NOT_FOUND, TIMED_OUT, USAGE, complain, fail, say
from podium.content.directories import UnreadableContent
from podium.oci.errors import (
    AccessDenied,
    BadReference,
    Blocked,
    ImageNotFound,
    OCIError,
    RateLimited,
    Unreachable,
)
from podium.oci.settings import Settings

_PATIENCE = 3.0  # seconds

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_EXIT_CODES: dict[type[Exception], int] = {
    ImageNotFound: NOT_FOUND,
    FileNotFoundError: NOT_FOUND,
    AccessDenied: DENIED,
    PermissionError: DENIED,
    Blocked: DENIED,
    RateLimited: TIMED_OUT,
    Unreachable: TIMED_OUT,
    FileExistsError: CONFLICT,
    BadReference: USAGE,
}
_EXPECTED = (OCIError, CatalogError, UnreadableContent, ValueError, OSError)


def image_options(command: F) -> F:
    """The options that say how registries are reached; the command gets them as `settings`."""

    @functools.wraps(command)
    def with_settings(
        plain_http: tuple[str, ...],
        skip_tls_verify: tuple[str, ...],
        trusted_host: tuple[str, ...],
        auth_file: Path | None,
        registries_conf: Path | None,
        cert_dir: tuple[Path, ...],
        **arguments: Any,
    ) -> Any:
        settings = Settings(
            plain_http=frozenset(map(_host, plain_http)),
            insecure_skip_tls_verify=frozenset(map(_host, skip_tls_verify)),
            trusted_hosts=frozenset(map(_host, trusted_host)),
            auth_file=auth_file,
            registries_conf=registries_conf,
            cert_dirs=cert_dir,
        )
        return command(settings=settings, **arguments)

    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    directory = click.Path(exists=True, file_okay=False, path_type=Path)
    options = (
        click.option(
            "--plain-http", metavar="HOST", multiple=True, help="Speak HTTP, not HTTPS, with this registry."
        ),
        click.option(
            "--skip-tls-verify",
            metavar="HOST",
            multiple=True,
            help="Trust any certificate of this registry.",
        ),
        click.option(
            "--trusted-host",
            metavar="HOST",
            multiple=True,
            help="Let a registry send us to this host, though it is in a private network.",
        ),
        click.option(
            "--auth-file",
            type=file,
            help="Credentials, as docker and podman keep them.  [default: $REGISTRY_AUTH_FILE, or theirs]",
        ),
        click.option(
            "--registries-conf",
            type=file,
            help="Mirrors and blocked registries.  [default: $CONTAINERS_REGISTRIES_CONF, or podman's]",
        ),
        click.option(
            "--cert-dir",
            type=directory,
            multiple=True,
            help="CA certificates and client keys by host, as in /etc/containers/certs.d.",
        ),
    )
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), with_settings)  # type: ignore[return-value]


def _host(text: str) -> str:
    """A host as users write it, without the scheme and path that some add."""
    return re.sub(r"^[a-z]+://", "", text).partition("/")[0]


def reports_errors(command: F) -> F:
    """Ends a command that fails as expected with a message and an exit code instead of a stack trace."""

    @functools.wraps(command)
    def reporting(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            raise  # nobody reads any more: click ends quietly
        except (BundleError, ProjectError) as error:
            complain(error.findings)
            sys.exit(FAILED)
        except _EXPECTED as error:
            codes = (code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))
            fail(_words(error), next(codes, FAILED))
        except RecursionError:
            fail("the input is nested too deeply")

    return reporting  # type: ignore[return-value]


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


async def _saying_so(work: Coroutine[Any, Any, T]) -> T:
    """The work, with a word for whoever watches a terminal where nothing seems to happen."""
    notice = asyncio.get_running_loop().call_later(
        _PATIENCE, say, "Still at it (a registry may be slow to answer); Ctrl-C stops."
    )
    try:
        return await work
    finally:
        notice.cancel()


def run(work: Coroutine[Any, Any, T], *, forever: bool = False) -> T:
    """The result of asynchronous work; Ctrl-C cancels it and lets it clean up."""
    watched = sys.stderr.isatty() and not forever
    return asyncio.run(_saying_so(work) if watched else work)


def stop_requested() -> asyncio.Event:
    """Set by Ctrl-C or a request to terminate, from now on."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped
