from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.apiserver.loops.expiry import EventExpiry
from podium.apiserver.server import Server, Settings

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path)) as server:
        yield server


@pytest.mark.parametrize(
    ("created", "last", "kept"),
    [
        ("2026-05-01T11:30:00Z", None, True),
        ("2026-05-01T10:59:00Z", None, False),
        ("2026-05-01T08:00:00Z", "2026-05-01T11:30:00Z", True),
        ("2026-05-01T08:00:00Z", "2026-05-01T10:30:00Z", False),
        ("2026-05-01T08:00:00Z", "9999-12-31T23:59:59Z", False),
        ("2026-05-01T08:00:00Z", "0000-00-00T00:00:00Z", False),
    ],
)
async def test_an_event_is_dropped_an_hour_after_it_was_last_news(
    server: Server, created: str, last: str | None, kept: bool
) -> None:
    table = server.store.table("/events")
    metadata = {"name": "e", "namespace": "default", "uid": "u", "creationTimestamp": created}
    await server.store.put(table, "default/e", {"metadata": metadata, "lastTimestamp": last})[1]
    server.objects.now = lambda: NOON
    await EventExpiry(server.store, server.objects).sweep()
    assert ("default/e" in table.objects) is kept
