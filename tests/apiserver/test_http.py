"""The server on a socket, with clients that do not keep to the rules."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from podium.apiserver import http
from podium.apiserver.server import Server, Settings

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path)) as server:
        yield server


async def connected(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls = ssl.create_default_context(cafile=str(server.settings.data / "pki" / "ca.crt"))
    address = urlsplit(server.url)
    return await asyncio.open_connection(address.hostname, address.port, ssl=tls, limit=2**16)


def head(server: Server, method: str, path: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.admin_token}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


async def status_of(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(10):
        return int((await reader.readline()).split()[1])


async def test_a_chunked_body_without_end_is_refused_once_it_is_too_large(server: Server) -> None:
    reader, writer = await connected(server)
    writer.write(head(server, "POST", CONFIG_MAPS, "Transfer-Encoding: chunked"))
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    for _ in range(4):
        writer.write(chunk)
        await writer.drain()
    assert await status_of(reader) == 413
    writer.transport.abort()


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.1)
    reader, writer = await connected(server)
    writer.write(head(server, "POST", CONFIG_MAPS, "Content-Length: 100") + b"{")
    assert await status_of(reader) == 504
    writer.transport.abort()


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not so():  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)


async def watching(server: Server) -> asyncio.StreamWriter:
    """A client that has opened a watch and reads nothing of it."""
    _, writer = await connected(server)
    writer.write(head(server, "GET", f"{CONFIG_MAPS}?watch=1"))
    await until(lambda: bool(server.store.table("/configmaps")._waiters))
    return writer


def nobody_watches(server: Server) -> bool:
    assert server._http is not None
    return not server._http._watchers and not server.store.table("/configmaps")._waiters


async def test_a_watcher_that_does_not_read_is_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_STALLED_SECONDS", 0.2)
    writer = await watching(server)
    for number in range(40):
        metadata = {"name": f"big-{number}", "namespace": "default", "uid": f"u{number}"}
        big = {"metadata": metadata, "data": {"a": "x" * 1_000_000}}
        await server.store.put(server.store.table("/configmaps"), f"default/big-{number}", big)[1]
    await until(lambda: nobody_watches(server))
    writer.transport.abort()


async def test_a_watcher_that_goes_away_leaves_nothing_behind(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    writer = await watching(server)
    writer.transport.abort()
    await until(lambda: nobody_watches(server))
    assert caplog.records == []
