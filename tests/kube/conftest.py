from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from kube.stub import Handler, StillClock, StubServer
from podium.kube import Client, Config

Serve = Callable[..., Awaitable[StubServer]]
Connect = Callable[..., Client]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a stub server with these routes."""
    started: list[StubServer] = []

    async def start(
        routes: dict[str, Handler] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> StubServer:
        server = StubServer(routes or {})
        await server.start(tls, host)
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
async def connect(clock: StillClock) -> AsyncIterator[Connect]:
    """A client of a stub server, or of any configuration."""
    clients: list[Client] = []

    def make(to: StubServer | Config, **options: Any) -> Client:
        config = to if isinstance(to, Config) else Config(to.url)
        client = Client(config, **{"clock": clock, **options})
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()
