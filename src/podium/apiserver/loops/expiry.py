"""Events are news: they are dropped an hour after they were last touched."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta

import msgspec

from podium.api.times import parse_timestamp
from podium.apiserver.objects import Objects
from podium.apiserver.store import Store, Stored, StoreFailed

log = logging.getLogger(__name__)

KEEP = timedelta(hours=1)
_EVERY_SECONDS = 60.0


class _Times(msgspec.Struct):
    metadata: _Metadata
    last: str | None = msgspec.field(default=None, name="lastTimestamp")
    event: str | None = msgspec.field(default=None, name="eventTime")


class _Metadata(msgspec.Struct):
    created: str = msgspec.field(default="", name="creationTimestamp")


_decode = msgspec.json.Decoder(_Times).decode


class EventExpiry:
    """Deletes old Events, without a trace in watches other than their deletion."""

    def __init__(self, store: Store, objects: Objects) -> None:
        self._store = store
        self._objects = objects

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await self.sweep()
            except StoreFailed as error:  # the next sweep may go better
                log.warning("old Events were not dropped: %s", error)
            except Exception:
                log.exception("old Events were not dropped")

    async def sweep(self) -> None:
        """Delete what is too old now."""
        table = self._store.table("/events")
        now = self._objects.now()
        old = [
            stored
            for stored in table.scan()
            if _touched(stored, now) < now - KEEP and table.latest(stored.key) is stored
        ]
        await asyncio.gather(*(self._store.delete(table, stored.key)[1] for stored in old))


def _touched(stored: Stored, now: datetime) -> datetime:
    """When an Event was last news: as its writer says, unless that is still to come or cannot be read."""
    times = _decode(stored.data)
    for text in (times.last, times.event):
        with contextlib.suppress(ValueError, OverflowError):
            if text and (moment := parse_timestamp(text)) <= now:
                return moment
    return parse_timestamp(times.metadata.created)
