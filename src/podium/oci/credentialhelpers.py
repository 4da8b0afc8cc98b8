"""Credential helper programs: `docker-credential-<name> get`, a server on stdin, JSON on stdout.

The program has a time limit and a limit on what it may print. What it prints is never shown when it
succeeds, because it is the secret; when it fails, its message is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping

import msgspec

from podium.oci.errors import BadSetup

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_OUTPUT = 1 << 20
_SHOWN = 300
# What helpers of every make answer when they know nothing; Docker's own client compares the same texts.
_NOT_FOUND = (
    "credentials not found in native keychain",
    "no credentials server URL",
    "no credentials username",
)


class Stored(msgspec.Struct, rename="pascal"):
    """What a helper prints."""

    username: str = ""
    secret: str = ""

    def __repr__(self) -> str:
        return "Stored(...)"


async def ask(
    name: str, server: str, *, environ: Mapping[str, str], timeout: float, origin: str
) -> Stored | None:
    """What the helper has for a server, None if nothing; `origin` says who named the helper."""
    program = f"docker-credential-{name}"
    # A name, never a path: an auth file must not choose which file of this machine is run.
    if not _NAME.fullmatch(name):
        raise BadSetup(f"{origin}: {name!r} is not the name of a credential helper")
    found = shutil.which(program, path=environ.get("PATH", ""))
    if found is None:
        raise BadSetup(f"{origin}: {program} is not on the PATH; install it, or log in without a helper")
    output, code = await _run(found, server.encode(), environ, timeout, f"{origin}: {program}")
    text = output.decode("utf-8", "replace").strip()
    if code != 0:
        if any(words in text for words in _NOT_FOUND) or "credentials not found" in text:
            return None
        said = text[:_SHOWN] or "it says nothing"
        raise BadSetup(f"{origin}: {program} get failed for {server} with exit code {code}: {said}")
    try:
        stored = msgspec.json.decode(output, type=Stored)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadSetup(
            f"{origin}: {program} get did not print the JSON of a credential for {server}"
        ) from None
    return stored if stored.secret else None


async def _run(
    program: str, given: bytes, environ: Mapping[str, str], timeout: float, what: str
) -> tuple[bytes, int]:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "get",
            env=dict(environ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # A session of its own lets us end whatever it started, and keeps it off the terminal.
            start_new_session=True,
        )
    except OSError as error:
        raise BadSetup(f"{what} cannot be run: {error.strerror or error}") from error
    finished = False
    try:
        async with asyncio.timeout(timeout):
            output = await _conversation(process, given, what)
            code = await process.wait()
        finished = True
        return output, code
    except TimeoutError:
        raise BadSetup(f"{what} did not finish within {timeout:g} seconds") from None
    finally:
        if not finished:
            # It may have ended and left a child that holds the pipe open: then the session is still there.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # Otherwise asyncio would wait for such pipes; there is no public way to do this.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
            await process.wait()


async def _conversation(process: asyncio.subprocess.Process, given: bytes, what: str) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    # A helper that does not read its input has closed the pipe; its answer still counts.
    with contextlib.suppress(ConnectionError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()
    parts: list[bytes] = []
    size = 0
    while part := await process.stdout.read(1 << 16):
        size += len(part)
        if size > _MAX_OUTPUT:
            raise BadSetup(f"{what} printed more than {_MAX_OUTPUT} bytes")
        parts.append(part)
    return b"".join(parts)
