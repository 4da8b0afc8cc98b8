"""Follows one resource for ever: everything that exists, then every change, over any number of connections.

The invariant is `resume`: every change up to that resource version has reached the sink, none after it. A new
connection starts there, so nothing is lost or repeated; when the server has forgotten that version (410), the
reflector lists again and the sink works out what differs. Events move `resume`, and so do bookmarks, which
keep it young on a quiet resource.

The first list is a stream: a watch that begins with what exists and marks where that ends. Servers may refuse
this or, when old, send the objects and never the mark; then the list is read in pages.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

import msgspec

from podium.api.kinds import GVK
from podium.kube.backoff import CHANCE, RECONNECT, Backoff
from podium.kube.client import Page
from podium.kube.clock import Clock, QuietLimit, SystemClock
from podium.kube.errors import APIError, BadRequest, Gone, Invalid, KubeError
from podium.kube.metrics import Metrics
from podium.kube.store import Held, Listing, hold
from podium.kube.watchstream import WatchEvent

logger = logging.getLogger(__name__)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
PAGE = 500
# Servers end a watch by themselves after this long; chance keeps many clients from returning together.
WATCH_SECONDS = (300, 600)
# How long a streamed first list may be silent before it is taken for one that will never be marked as ended.
SILENT_LIST_SECONDS = 10.0
# A connection that outlives its own time limit by this much is dead, whatever TCP says.
OVERDUE_SECONDS = 30.0
# A watch that ends sooner and without an event has not worked, even if no error was reported.
USEFUL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Target:
    """What is watched. Two equal targets can share one watch."""

    gvk: GVK
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    @property
    def kind(self) -> str:
        """The kind alone, as a label for metrics: selectors would make a label of each object's name."""
        return f"{self.gvk.kind}.{self.gvk.group}" if self.gvk.group else self.gvk.kind

    def __str__(self) -> str:
        parts = [
            self.kind,
            self.namespace,
            self.labels,
            self.fields,
            "metadata" if self.metadata_only else "",
        ]
        return " ".join(part for part in parts if part)


class ListWatch(Protocol):
    """The two calls of the client that are used here."""

    def pages(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        metadata_only: bool = False,
    ) -> AsyncGenerator[Page, None]: ...

    def watch(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        metadata_only: bool = False,
        timeout_seconds: int | None = None,
    ) -> AsyncGenerator[WatchEvent, None]: ...


class Sink(Protocol):
    """Whoever holds the objects."""

    def replace(self, listing: Listing) -> None: ...

    def put(self, held: Held) -> None: ...

    def remove(self, last: Held) -> None: ...


class ServerAbilities:
    """What was learnt about a server, shared by all that follow its resources."""

    def __init__(self) -> None:
        self.streams_lists = True


class _NoStreamedList(KubeError):
    """The server does not know how to stream a list."""


class Reflector:
    """Keeps a sink equal to what the server has."""

    def __init__(
        self,
        client: ListWatch,
        target: Target,
        sink: Sink,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        backoff: Backoff = RECONNECT,
        abilities: ServerAbilities | None = None,
        chance: Callable[[], float] = CHANCE,
    ) -> None:
        self.target = target
        # Why the resource cannot be followed at the moment; None while it can.
        self.last_error: Exception | None = None
        self._client = client
        self._sink = sink
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._backoff = backoff
        self._abilities = abilities or ServerAbilities()
        self._chance = chance
        self._name = str(target)
        self._resume = ""
        self._worked = False

    async def run(self) -> None:
        """Follow until cancelled; failures are logged, waited out and tried again."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            self._worked = False
            error = await self._connect_once()
            if self._worked or (error is None and self._clock.monotonic() - began >= USEFUL_SECONDS):
                failures = 0
            elif not isinstance(error, _NoStreamedList):
                failures += 1
            self.last_error = error
            if failures:
                await self._clock.sleep(self._delay(failures, error))

    async def _connect_once(self) -> Exception | None:
        cause = "ended"
        error: Exception | None = None
        try:
            await self._follow()
        except Gone as gone:
            self._resume = ""
            cause, error = "expired", gone
        except _NoStreamedList as refused:
            self._abilities.streams_lists = False
            logger.info("%s: %s; listing in pages", self._name, refused)
            cause, error = "unsupported", refused
        except (KubeError, TimeoutError) as failure:
            cause, error = "failed", failure
            logger.warning("watching %s: %s", self._name, failure or type(failure).__name__)
        except Exception as bug:
            # Whatever it was, a cache that silently stops following would be worse.
            cause, error = "failed", bug
            logger.exception("watching %s", self._name)
        self._metrics.watch_restarts.inc(self.target.kind, cause)
        return error

    def _delay(self, failures: int, error: Exception | None) -> float:
        asked = error.retry_after if isinstance(error, APIError) else None
        return max(self._backoff.delay(failures, self._chance), asked or 0.0)

    async def _follow(self) -> None:
        if self._resume:
            await self._watch()
        elif self._abilities.streams_lists:
            await self._watch_with_list()
        else:
            await self._list_pages()
            await self._watch()

    async def _list_pages(self) -> None:
        self._metrics.lists.inc(self.target.kind)
        try:
            everything, version = await self._read_pages(PAGE)
        except Gone:
            # It took so long that the version of the first page was forgotten; one piece cannot expire.
            everything, version = await self._read_pages(0)
        self._take_list(everything, version)

    async def _read_pages(self, limit: int) -> tuple[Listing, str]:
        target = self.target
        everything: Listing = {}
        version = ""
        pages = self._client.pages(
            target.gvk,
            target.namespace,
            labels=target.labels,
            fields=target.fields,
            limit=limit,
            metadata_only=target.metadata_only,
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for item in page.items:
                    _collect(everything, self._hold(item))
        return everything, version

    async def _watch_with_list(self) -> None:
        """List and go on watching over one connection."""
        self._metrics.lists.inc(self.target.kind)
        everything: Listing = {}
        seconds = self._watch_seconds()
        listed = False
        try:
            async with (
                aclosing(self._open(seconds, initial=True)) as events,
                QuietLimit(self._clock, SILENT_LIST_SECONDS) as limit,
            ):
                async for event in events:
                    if listed:
                        limit.touch()
                        self._apply(event)
                    elif event.type == "BOOKMARK":
                        bookmark = hold(self.target.gvk, event.object, metadata_only=True).metadata
                        if bookmark.annotations.get(INITIAL_EVENTS_END) != "true":
                            continue
                        self._take_list(everything, bookmark.resource_version)
                        listed = True
                        limit.touch(seconds + OVERDUE_SECONDS)
                    else:
                        limit.touch()
                        held = self._hold(event.object)
                        if event.type == "DELETED":
                            everything.get(held.metadata.namespace, {}).pop(held.metadata.name, None)
                        else:
                            _collect(everything, held)
        except (Invalid, BadRequest) as refusal:
            if listed:
                raise
            raise _NoStreamedList(f"the server does not stream lists ({refusal})") from refusal
        except TimeoutError as silence:
            if listed:
                raise
            raise _NoStreamedList("the server began to stream a list and did not end it") from silence

    async def _watch(self) -> None:
        seconds = self._watch_seconds()
        async with (
            aclosing(self._open(seconds, initial=False)) as events,
            QuietLimit(self._clock, seconds + OVERDUE_SECONDS) as limit,
        ):
            async for event in events:
                limit.touch()
                self._apply(event)

    def _open(self, seconds: int, *, initial: bool) -> AsyncGenerator[WatchEvent, None]:
        target = self.target
        self._metrics.watches.inc(self.target.kind)
        return self._client.watch(
            target.gvk,
            target.namespace,
            labels=target.labels,
            fields=target.fields,
            resource_version=self._resume,
            send_initial_events=initial,
            metadata_only=target.metadata_only,
            timeout_seconds=seconds,
        )

    def _apply(self, event: WatchEvent) -> None:
        self._metrics.watch_events.inc(self.target.kind, event.type)
        self._worked = True
        self.last_error = None
        if event.type == "BOOKMARK":
            held = hold(self.target.gvk, event.object, metadata_only=True)
        else:
            held = self._hold(event.object)
            if event.type == "DELETED":
                self._sink.remove(held)
            else:
                self._sink.put(held)
        self._resume = held.metadata.resource_version or self._resume

    def _take_list(self, everything: Listing, version: str) -> None:
        self._sink.replace(everything)
        self._resume = version
        self.last_error = None

    def _hold(self, raw: msgspec.Raw) -> Held:
        return hold(self.target.gvk, raw, metadata_only=self.target.metadata_only)

    def _watch_seconds(self) -> int:
        low, high = WATCH_SECONDS
        return int(low + (high - low) * self._chance())


def _collect(everything: Listing, held: Held) -> None:
    everything.setdefault(held.metadata.namespace, {})[held.metadata.name] = held
