"""A load generator that costs little: keep-alive HTTP/1.1 over TLS, one connection per client.

The machine has few cores and the generator shares them with the server, so its own cost is part of every
figure; a full client would hide the difference between the servers.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podium.kube import load_config
from podium.kube.auth import Certificate
from podium.kube.tls import tls_context


@dataclass(frozen=True)
class Target:
    """A server to measure."""

    host: str
    port: int
    tls: ssl.SSLContext


def target(kubeconfig: Path) -> Target:
    """The address of a kubeconfig's server, and TLS with its client certificate."""
    config = load_config(kubeconfig)
    pair = Certificate(config.client_certificate.read("certificate"), config.client_key.read("key"))
    host, _, port = config.server.removeprefix("https://").rpartition(":")
    return Target(host, int(port), tls_context(config, pair))


class Connection:
    """One keep-alive connection."""

    def __init__(self, to: Target) -> None:
        self._to = to

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(
            self._to.host, self._to.port, ssl=self._to.tls, limit=1 << 26
        )
        return self

    async def request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> bytes:
        """Send a request and read the whole answer; anything but 2xx is an error."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._to.host}\r\nAccept: application/json\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        status, headers = await self._head()
        answer = await self._body(headers)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    async def lines(self, path: str) -> asyncio.StreamReader:
        """Open a watch; chunk headers are left in the stream and skipped by the caller."""
        self._writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {self._to.host}\r\nAccept: application/json\r\n\r\n".encode()
        )
        status, _ = await self._head()
        assert status == 200, status
        return self._reader

    async def _head(self) -> tuple[int, dict[bytes, bytes]]:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:] if b": " in line)
        return int(lines[0].split(b" ", 2)[1]), headers

    async def _body(self, headers: dict[bytes, bytes]) -> bytes:
        if b"content-length" in headers:
            return await self._reader.readexactly(int(headers[b"content-length"]))
        chunks = []
        while size := int(await self._reader.readline(), 16):
            chunks.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(chunks)

    def close(self) -> None:
        self._writer.transport.abort()


@dataclass(frozen=True)
class Rate:
    """What a run of equal requests gave."""

    per_second: float
    p50_ms: float
    p95_ms: float


async def measure(
    to: Target, clients: int, total: int, one: Callable[[Connection, int], Awaitable[object]]
) -> Rate:
    """Run `one(connection, number)` for every number below total, spread over so many connections."""
    times: list[float] = []

    async def work(first: int) -> None:
        connection = await Connection(to).open()
        await connection.request("GET", "/version")
        await ready.wait()
        for number in range(first, total, clients):
            begin = time.perf_counter()
            await one(connection, number)
            times.append(time.perf_counter() - begin)
        connection.close()

    ready = asyncio.Event()
    tasks = [asyncio.create_task(work(first)) for first in range(clients)]
    await asyncio.sleep(0.2)
    begin = time.perf_counter()
    ready.set()
    await asyncio.gather(*tasks)
    elapsed = time.perf_counter() - begin
    percentiles = statistics.quantiles(times, n=20)
    return Rate(total / elapsed, percentiles[9] * 1000, percentiles[18] * 1000)


def config_map(name: str, value: str = "x" * 600) -> bytes:
    """A ConfigMap of about a kilobyte, as stored."""
    metadata = {"name": name, "namespace": "default", "labels": {"app": "bench"}}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
    )
