"""Watches: every change after a revision, as a stream of events, with nothing lost and nothing twice.

A watch is a cursor into its table's history, so an idle or slow watcher costs no memory of its own; one that
falls behind the history that is kept ends with 410 and lists again. An event line is made once and shared by
all watchers that want it in the same form.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.chance import CHANCE
from podium.apiserver.reading import ListOptions, check_not_future, selector_for
from podium.apiserver.registry import Resource
from podium.apiserver.store import Change, Compacted, Store, Stored, Table, encode
from podium.apiserver.views import Plain, View

BOOKMARK_SECONDS = 60.0
_BATCH_BYTES = 1024 * 1024  # what a watcher who does not read can make the server hold for it
_EXPIRED = "The resourceVersion for the provided watch is too old."


def open_watch(store: Store, resource: Resource, namespace: str, options: ListOptions, view: View) -> Watch:
    """Find where the watch starts; a revision that is gone or to come is an ERROR event, the only one."""
    table = store.table(resource.table)
    watch = Watch(store, table, resource, namespace, options, view)
    from_scratch = options.resource_version in ("", "0")
    try:
        if options.send_initial_events or (options.send_initial_events is None and from_scratch):
            if not from_scratch:
                check_not_future(store, int(options.resource_version))
            watch.initial = True
        elif not from_scratch:
            watch.after = int(options.resource_version)
            watch.cursor = table.cursor(watch.after)
    except Compacted:
        message = f"too old resource version: {options.resource_version} ({table.compacted})"
        watch.failure = errors.expired(message)
    except errors.StatusError as error:
        watch.failure = error
    return watch


class Watch:
    """One open watch; iterate `lines` until it ends."""

    def __init__(
        self,
        store: Store,
        table: Table,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        view: View,
    ) -> None:
        self._store = store
        self._table = table
        self._resource = resource
        self._prefix = f"{namespace}/" if resource.namespaced and namespace else ""
        self._selected = selector_for(resource, options)
        self._options = options
        self._view = view
        self.cursor = table.end
        self.after = 0  # changes up to this revision are not shown, even if they are still to come
        self.initial = False  # whether it begins with what is there
        self.failure: errors.StatusError | None = None
        self._shared = isinstance(view, Plain)

    async def lines(self, stop: asyncio.Event) -> AsyncIterator[bytes]:
        """Batches of event lines until the time is up, the server stops or the history is lost."""
        loop = asyncio.get_running_loop()
        seconds = self._options.timeout_seconds or CHANCE.uniform(1800, 3600)
        deadline = loop.time() + seconds
        if self.failure is not None:
            yield _line(b"ERROR", encode(self.failure.status))
            return
        if self.initial:
            yield self._initial_lines()
        next_bookmark = loop.time() + BOOKMARK_SECONDS * CHANCE.uniform(0.75, 1.25)
        while not stop.is_set():
            try:
                batch = self._pending()
            except Compacted:
                yield _line(b"ERROR", encode(errors.expired(_EXPIRED).status))
                return
            if batch:
                yield batch
                continue
            if self._table.closed:
                return
            now = loop.time()
            if now >= deadline:
                if self._options.bookmarks:
                    yield self._bookmark()
                return
            if now >= next_bookmark:
                if self._options.bookmarks:
                    yield self._bookmark()
                next_bookmark = now + BOOKMARK_SECONDS * CHANCE.uniform(0.75, 1.25)
            await self._wait(min(deadline, next_bookmark) - now, stop)

    async def _wait(self, seconds: float, stop: asyncio.Event) -> None:
        if stop.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._table.changed(self.cursor)
        except TimeoutError:
            pass

    def _initial_lines(self) -> bytes:
        lines = [
            _line(b"ADDED", self._view.event(self._resource, self._resource.codec.serve(stored)))
            for stored in self._table.scan(self._prefix)
            if self._selected is None or self._selected(stored)
        ]
        if self._options.bookmarks:
            lines.append(self._bookmark({"k8s.io/initial-events-end": "true"}))
        return b"".join(lines)

    def _bookmark(self, annotations: Object | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self._store.revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        data = encode(obj)
        return _line(b"BOOKMARK", data if self._shared else self._view.event(self._resource, data))

    def _pending(self) -> bytes:
        lines, size = [], 0
        for change in self._table.since(self.cursor):
            self.cursor += 1
            if line := self._event(change):
                lines.append(line)
                size += len(line)
                if size > _BATCH_BYTES:
                    break
        return b"".join(lines)

    def _event(self, change: Change) -> bytes | None:
        if change.revision <= self.after or not change.key.startswith(self._prefix):
            return None
        was, is_now = self._sees(change.old), self._sees(change.new)
        if is_now:
            assert change.new is not None
            return self._rendered(b"MODIFIED" if was else b"ADDED", change, change.new)
        if not was:
            return None
        if change.new is not None:
            # It left the selection: watchers get its last selected state at the revision it left.
            assert change.old is not None
            last = change.old.object
            last["metadata"]["resourceVersion"] = str(change.revision)
            return self._rendered(b"DELETED", change, _with_data(change.old, encode(last)))
        assert change.old is not None
        return self._rendered(b"DELETED", change, _with_data(change.old, change.tombstone))

    def _sees(self, stored: Stored | None) -> bool:
        return stored is not None and (self._selected is None or self._selected(stored))

    def _rendered(self, kind: bytes, change: Change, stored: Stored) -> bytes:
        data = self._resource.codec.serve(stored)
        return _line(kind, data if self._shared else self._view.event(self._resource, data))


def _with_data(stored: Stored, data: bytes) -> Stored:
    copy = Stored.__new__(Stored)
    for name in Stored.__slots__:
        setattr(copy, name, getattr(stored, name))
    copy.data = data
    return copy


def _line(kind: bytes, data: bytes) -> bytes:
    return b"".join((b'{"type":"', kind, b'","object":', data.rstrip(), b"}\n"))
