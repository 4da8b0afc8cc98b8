"""Credential plugins: a command prints an ExecCredential, by the rules of client.authentication.k8s.io.

The plugin gets the cluster in KUBERNETES_EXEC_INFO if it asked for it, and a terminal only if its mode allows
one and there is one. It has a time limit and a limit on what it may print, and every failure is a ConfigError
that says what was run, how it ended, and how to install it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from podium.kube.config import ExecPlugin
from podium.kube.errors import ConfigError

_MAX_OUTPUT = 1 << 20
_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class Issued:
    """What a plugin gave: a token, a certificate with its key, or both; and until when."""

    token: str = field(repr=False)
    certificate: bytes
    key: bytes = field(repr=False)
    expires: datetime | None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


async def run_plugin(plugin: ExecPlugin) -> Issued:
    """Run the plugin and read the credentials that it prints."""
    interactive = _interactive(plugin)
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=_environment(plugin, interactive),
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            # A session of its own lets us end whatever it started; a terminal can only be had in ours.
            start_new_session=not interactive,
        )
    except OSError as error:
        raise ConfigError(_not_started(plugin, error)) from error
    output, complaint, code = await _finished(process, plugin)
    if code != 0:
        said = complaint.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise ConfigError(
            f"{_what(plugin)} failed with exit code {code}" + (f": {said}" if said else "") + _hint(plugin)
        )
    return parse_output(output, plugin)


def parse_output(output: bytes, plugin: ExecPlugin) -> Issued:
    """Read an ExecCredential; ConfigError if it is not one of the configured version with credentials."""
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{_what(plugin)} did not print an ExecCredential: {error}") from error
    if credential.kind != "ExecCredential":
        raise ConfigError(f"{_what(plugin)} printed a {credential.kind or 'thing'}, not an ExecCredential")
    if credential.api_version != plugin.api_version:
        raise ConfigError(
            f"{_what(plugin)} printed version {credential.api_version!r}, but the kubeconfig "
            f"says {plugin.api_version!r}; change apiVersion there or update the plugin"
        )
    status = credential.status or _Status()
    certificate, key = status.client_certificate_data or "", status.client_key_data or ""
    if not status.token and not certificate and not key:
        raise ConfigError(f"{_what(plugin)} printed neither a token nor a certificate; log in again?")
    if bool(certificate) != bool(key):
        raise ConfigError(f"{_what(plugin)} printed only a certificate or only a key, not both")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        raise ConfigError(f"{_what(plugin)} printed an expirationTimestamp without a time zone")
    return Issued(status.token or "", certificate.encode(), key.encode(), expires)


def _interactive(plugin: ExecPlugin) -> bool:
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise ConfigError(f"{_what(plugin)} needs a terminal to talk to you, and there is none here")
    return terminal and plugin.interactive_mode != "Never"


def _environment(plugin: ExecPlugin, interactive: bool) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster_info is not None:
        spec["cluster"] = plugin.cluster_info
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {
        **os.environ,
        **dict(plugin.env),
        "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
    }


async def _finished(process: asyncio.subprocess.Process, plugin: ExecPlugin) -> tuple[bytes, bytes, int]:
    """What the process printed and complained, and its exit code; afterwards nothing of it is left."""
    readers = [asyncio.ensure_future(_bounded(stream)) for stream in (process.stdout, process.stderr)]
    finished = False
    try:
        async with asyncio.timeout(plugin.timeout):
            output, complaint = await asyncio.gather(*readers)
            code = await process.wait()
        finished = True
        return output, complaint, code
    except TimeoutError:
        raise ConfigError(f"{_what(plugin)} did not finish within {plugin.timeout:g} seconds") from None
    except asyncio.LimitOverrunError as error:
        raise ConfigError(f"{_what(plugin)} printed more than {_MAX_OUTPUT} bytes") from error
    finally:
        if not finished:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            await _end(process, whole_session=process.stderr is not None)


async def _bounded(stream: asyncio.StreamReader | None) -> bytes:
    if stream is None:
        return b""
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(1 << 16):
        size += len(part)
        if size > _MAX_OUTPUT:
            raise asyncio.LimitOverrunError("too much output", size)
        parts.append(part)
    return b"".join(parts)


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if whole_session:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    # Otherwise asyncio would wait for pipes that a stray child holds open; there is no public way to do this.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    await process.wait()


def _not_started(plugin: ExecPlugin, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{_what(plugin)} is not installed or not on the PATH{_hint(plugin)}"
    return f"{_what(plugin)} cannot be run: {error.strerror or error}{_hint(plugin)}"


def _what(plugin: ExecPlugin) -> str:
    return f"the credential plugin {plugin.command!r}"


def _hint(plugin: ExecPlugin) -> str:
    return f"\n\n{plugin.install_hint.strip()}" if plugin.install_hint.strip() else ""
