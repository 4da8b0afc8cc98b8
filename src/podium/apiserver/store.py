"""Every object of the cluster: in memory to read, in SQLite to survive, with the recent changes to watch.

One event loop owns the store. A writer reads the newest version (`latest`), decides and stages the result
without giving up the loop in between, so that no lock is needed; it then awaits the commit. Staged writes
are invisible to readers and watchers until they are on disk: one thread commits whatever has been staged
since its last commit in one transaction (group commit, full sync), so many writers share the cost of a sync.
If a commit fails, everything staged is rolled back and every waiting writer is told.

Revisions are one counter for the whole store, like etcd's. The changes behind the current state are kept
within limits; `snapshot` undoes them to answer a list at an older revision, and watches read them from a
cursor. What has been dropped is gone: asking for it raises `Compacted`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from podium.api.kinds import Object

log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (resource, key)
);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_FORMAT = 1  # of the database; a later Podium that changes it migrates by this number
_CHECKPOINT_BYTES = 8 * 1024 * 1024
_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"


class Compacted(Exception):
    """The revision asked for is older than the changes that are kept."""


class ObjectTooLarge(ValueError):
    """The object is larger than the store is asked to take; nothing was staged."""


class StoreFailed(Exception):
    """The database did not take the write; nothing was changed."""


class StoreUnreadable(StoreFailed):
    """The database cannot be opened, or is not what was written."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """One owner reference, as the garbage collector needs it."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    blocks: bool | None = msgspec.field(default=None, name="blockOwnerDeletion")


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""
    labels: dict[str, str] | None = None
    owners: tuple[Owner, ...] | None = msgspec.field(default=None, name="ownerReferences")
    deleted: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _Envelope(msgspec.Struct, gc=False):
    metadata: _Metadata


_decode_metadata = msgspec.json.Decoder(_Envelope).decode
decode: Callable[[bytes], Object] = msgspec.json.Decoder(dict[str, Any]).decode
encode = msgspec.json.Encoder().encode


class Stored:
    """One version of one object: its JSON as served, and what selectors and owners need without decoding."""

    __slots__ = ("data", "key", "labels", "owners", "revision", "uid")

    def __init__(self, key: str, revision: int, data: bytes, metadata: _Metadata) -> None:
        self.key = key
        self.revision = revision
        self.data = data
        self.uid = metadata.uid
        self.labels = metadata.labels or None
        self.owners = metadata.owners or ()

    @property
    def object(self) -> Object:
        """A fresh copy that the caller may change."""
        return decode(self.data)

    @property
    def is_marked(self) -> bool:
        """Whether it is marked for deletion; the word alone may stand anywhere in an object."""
        return (
            b'"deletionTimestamp"' in self.data and _decode_metadata(self.data).metadata.deleted is not None
        )

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Change:
    """What one write did to one object; created objects have no `old`, deleted ones no `new`."""

    revision: int
    table: Table
    key: str
    old: Stored | None
    new: Stored | None
    # A deleted object as watchers get it: its last state with the resourceVersion of the deletion.
    tombstone: bytes = b""


class Table:
    """The objects of one resource, and its recent changes."""

    def __init__(self, name: str, revision: int, limits: Limits) -> None:
        self.name = name
        self.objects: dict[str, Stored] = {}
        self.staged: dict[str, Change] = {}
        self._keys: list[str] = []
        self._limits = limits
        self._history: list[Change] = []
        self._history_bytes = 0
        self._dropped = 0  # how many changes have left the history; a cursor counts from the first ever
        self.compacted = revision  # every change up to this revision is gone
        self._waiters: set[asyncio.Future[None]] = set()
        self.closed = False  # its resource is gone; watches end

    def latest(self, key: str) -> Stored | None:
        """The newest version, staged writes included: what a writer must base its decision on."""
        staged = self.staged.get(key)
        return staged.new if staged is not None else self.objects.get(key)

    def scan(self, prefix: str = "", after: str = "") -> Iterator[Stored]:
        """Objects in key order, below a prefix (`namespace/`), starting after a key."""
        keys, objects = self._keys, self.objects
        position = bisect_right(keys, after) if after else bisect_left(keys, prefix)
        while position < len(keys):
            key = keys[position]
            if not key.startswith(prefix):
                return
            yield objects[key]
            position += 1

    def count(self, prefix: str = "", after: str = "") -> int:
        """How many objects `scan` would give."""
        start = bisect_right(self._keys, after) if after else bisect_left(self._keys, prefix)
        end = bisect_left(self._keys, prefix + "\U0010ffff") if prefix else len(self._keys)
        return max(0, end - start)

    def snapshot(self, revision: int, prefix: str = "") -> list[Stored]:
        """Objects as they were at an older revision, in key order."""
        if revision < self.compacted:
            raise Compacted
        undone: dict[str, Stored | None] = {}
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            if change.key.startswith(prefix):
                undone[change.key] = change.old
        current = [stored for stored in self.scan(prefix) if stored.key not in undone]
        current.extend(stored for stored in undone.values() if stored is not None)
        current.sort(key=lambda stored: stored.key)
        return current

    def cursor(self, revision: int) -> int:
        """Where to start reading changes made after a revision."""
        if revision < self.compacted:
            raise Compacted
        return self._dropped + bisect_right(self._history, revision, key=lambda change: change.revision)

    def since(self, cursor: int) -> list[Change]:
        """Changes from a cursor on; the next cursor is this one plus their number."""
        if cursor < self._dropped:
            raise Compacted
        return self._history[cursor - self._dropped :]

    @property
    def end(self) -> int:
        """The cursor of the next change."""
        return self._dropped + len(self._history)

    async def changed(self, cursor: int) -> None:
        """Wait until there is something to read at the cursor, or nothing will ever be."""
        if cursor < self.end or self.closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiters.add(future)
        try:
            await future
        finally:
            self._waiters.discard(future)

    def load(self, stored: Stored) -> None:
        """Put an object read from disk in place; keys arrive in order."""
        self.objects[stored.key] = stored
        self._keys.append(stored.key)

    def sort(self) -> None:
        self._keys.sort()

    def publish(self, change: Change) -> None:
        """Make a committed change visible."""
        key = change.key
        if change.new is not None:
            if key not in self.objects:
                insort(self._keys, key)
            self.objects[key] = change.new
        elif self.objects.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]
        if self.staged.get(key) is change:
            del self.staged[key]
        self._history.append(change)
        self._history_bytes += len(change.new.data) if change.new else len(change.tombstone)
        if len(self._history) > 2 * self._limits.changes or self._history_bytes > self._limits.bytes:
            self._trim()
        self.wake()

    def close(self) -> None:
        """Tell those who wait for changes that there will be none."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Let those who wait for changes look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def compact(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        keep = bisect_right(self._history, revision, key=lambda change: change.revision)
        self._drop(keep)
        self.compacted = max(self.compacted, revision)

    def _trim(self) -> None:
        count = max(0, len(self._history) - self._limits.changes)
        kept_bytes = self._history_bytes
        for position, change in enumerate(self._history):
            if position >= count and kept_bytes <= self._limits.bytes // 2:
                break
            kept_bytes -= len(change.new.data) if change.new else len(change.tombstone)
            count = max(count, position + 1)
        self._drop(count)

    def _drop(self, count: int) -> None:
        if count == 0:
            return
        self.compacted = self._history[count - 1].revision
        for change in self._history[:count]:
            self._history_bytes -= len(change.new.data) if change.new else len(change.tombstone)
        del self._history[:count]
        self._dropped += count


@dataclass(frozen=True, slots=True)
class Limits:
    """How much history one table keeps for watches that reconnect and lists that continue."""

    changes: int = 4096
    bytes: int = 32 * 1024 * 1024


@dataclass(slots=True)
class _Write:
    change: Change
    done: asyncio.Future[None]


class Store:
    """All tables, the revision counter, and the thread that commits."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self._path = path
        self._limits = limits or Limits()
        self.tables: dict[str, Table] = {}
        self.revision = 0  # the newest committed revision
        self._assigned = 0  # the newest revision given to a staged write
        self._staged: list[_Write] = []
        self._committing = False
        self._kick_scheduled = False
        self._closed = False
        self._observers: list[Callable[[Change], None]] = []
        self._jobs: SimpleQueue[list[_Write] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._database: sqlite3.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.Event | None = None

    def open(self) -> None:
        """Load everything from disk and start the committing thread; call it on the owning loop."""
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        try:
            database = self._connect()
            self._load(database)
        except (sqlite3.Error, msgspec.DecodeError, OSError) as error:
            self._abandon()
            raise StoreUnreadable(f"{self._path} cannot be read: {error}") from error
        except StoreFailed:
            self._abandon()
            raise
        self._thread = threading.Thread(target=self._commit_loop, args=(database,), name="store", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Commit what is staged, then close the database."""
        if self._thread is None or self._idle is None:
            return
        self._closed = True  # what is staged from now on would wait for ever
        await self._idle.wait()
        self._jobs.put(None)
        thread, self._thread = self._thread, None
        await asyncio.to_thread(thread.join)

    def _abandon(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def observe(self, observer: Callable[[Change], None]) -> None:
        """Call a function with every change right after it became visible, in revision order."""
        self._observers.append(observer)

    def table(self, name: str) -> Table:
        """The table of a resource, made on first use."""
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(name, self.revision, self._limits)
        return table

    def drop_table(self, name: str) -> None:
        """Forget an empty table (its CustomResourceDefinition is gone)."""
        table = self.tables.get(name)
        if table is not None and not table.objects and not table.staged:
            del self.tables[name]
            table.close()

    def put(
        self, table: Table, key: str, obj: Object, limit: int | None = None
    ) -> tuple[Stored, asyncio.Future[None]]:
        """Stage a created or changed object of at most `limit` bytes; its resourceVersion is set here."""
        revision = self._assigned + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        stored = _stored(key, revision, obj)
        if limit is not None and len(stored.data) > limit:
            raise ObjectTooLarge(key)
        self._next_revision()
        return stored, self._stage(Change(revision, table, key, table.latest(key), stored))

    def delete(
        self, table: Table, key: str, final: Object | None = None
    ) -> tuple[Object, asyncio.Future[None]]:
        """Stage a deletion; answers the final state, with the revision of the deletion, for watchers."""
        old = table.latest(key)
        if old is None:
            raise KeyError(key)
        revision = self._next_revision()
        last = final if final is not None else old.object
        last["metadata"]["resourceVersion"] = str(revision)
        return last, self._stage(Change(revision, table, key, old, None, tombstone=encode(last)))

    async def settled(self, table: Table, key: str) -> None:
        """Wait until the newest version of an object is on disk; for answers that rest on what is staged."""
        change = table.staged.get(key)
        while change is not None and change.revision > self.revision:
            if key not in table.staged:
                raise StoreFailed("the database did not take the write")
            await table.changed(table.end)

    def _next_revision(self) -> int:
        self._assigned += 1
        return self._assigned

    def _stage(self, change: Change) -> asyncio.Future[None]:
        assert self._loop is not None
        assert self._idle is not None
        if self._closed:
            raise StoreFailed("the database is closed")
        done: asyncio.Future[None] = self._loop.create_future()
        change.table.staged[change.key] = change
        self._staged.append(_Write(change, done))
        self._idle.clear()
        if not self._committing and not self._kick_scheduled:
            # After this turn of the loop, so that writers that are ready now share the commit.
            self._kick_scheduled = True
            self._loop.call_soon(self._kick)
        return done

    def _kick(self) -> None:
        self._kick_scheduled = False
        if self._staged and not self._committing:
            batch, self._staged = self._staged, []
            self._committing = True
            self._jobs.put(batch)

    def _committed(self, batch: list[_Write], error: Exception | None) -> None:
        assert self._idle is not None
        self._committing = False
        if error is not None:
            self._roll_back(batch, error)
        else:
            for write in batch:
                change = write.change
                self.revision = change.revision
                change.table.publish(change)
                if not write.done.done():
                    write.done.set_result(None)
                self._tell_observers(change)
        self._kick()
        if not self._committing and not self._staged:
            self._idle.set()

    def _tell_observers(self, change: Change) -> None:
        for observer in self._observers:
            try:
                observer(change)
            except Exception:  # a bug in one must not keep the change, or later ones, from the others
                log.exception("an observer of %s %s failed", change.table.name, change.key)

    def _roll_back(self, batch: list[_Write], error: Exception) -> None:
        # What was staged after the batch may rest on it, so it falls too.
        failed, self._staged = batch + self._staged, []
        for write in failed:
            write.change.table.staged.clear()
            write.change.table.wake()
        failure = StoreFailed(f"the database did not take the write: {error}")
        for write in failed:
            if not write.done.done():
                write.done.set_exception(failure)

    def _connect(self) -> sqlite3.Connection:
        # Secrets are in it; SQLite gives its other files the same mode.
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=2)
        self._database = database
        for pragma in (
            "locking_mode=EXCLUSIVE",
            "journal_mode=WAL",
            "synchronous=FULL",
            "wal_autocheckpoint=0",
        ):
            database.execute(f"PRAGMA {pragma}")
        database.executescript(_SCHEMA)
        found = database.execute("SELECT value FROM counters WHERE name = 'format'").fetchone()
        if found is None:
            database.execute("INSERT INTO counters VALUES ('format', ?)", (_FORMAT,))
        elif found[0] > _FORMAT:
            raise StoreFailed(
                f"{self._path} was written by a newer Podium (format {found[0]}); upgrade Podium"
            )
        return database

    def _load(self, database: sqlite3.Connection) -> None:
        row = database.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()
        self.revision = self._assigned = row[0] if row else 1
        rows = database.execute("SELECT resource, key, revision, data FROM objects")
        for resource, key, revision, data in rows:
            self.table(resource).load(Stored(key, revision, data, _decode_metadata(data).metadata))
        for table in self.tables.values():
            table.sort()

    def _commit_loop(self, database: sqlite3.Connection) -> None:
        assert self._loop is not None
        written = 0
        while (batch := self._jobs.get()) is not None:
            error: Exception | None = None
            try:
                written += _commit(database, batch)
            except Exception as failure:  # noqa: BLE001 - every failure is handed to the waiting writers
                error = failure
            self._loop.call_soon_threadsafe(self._committed, batch, error)
            if written > _CHECKPOINT_BYTES and self._jobs.empty():
                written = 0
                try:
                    database.execute(_CHECKPOINT)
                except sqlite3.Error as failure:
                    log.warning("the log of %s stays as long as it is: %s", self._path, failure)
        with contextlib.suppress(sqlite3.Error):  # the next start does it
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()


def _stored(key: str, revision: int, obj: Object) -> Stored:
    metadata = obj["metadata"]
    owners = metadata.get("ownerReferences")
    decoded = _Metadata(
        uid=metadata.get("uid", ""),
        labels=dict(metadata["labels"]) if metadata.get("labels") else None,
        owners=msgspec.convert(owners, tuple[Owner, ...]) if owners else None,
    )
    return Stored(key, revision, encode(obj), decoded)


def _commit(database: sqlite3.Connection, batch: list[_Write]) -> int:
    size = 0
    database.execute("BEGIN IMMEDIATE")
    try:
        for write in batch:
            change = write.change
            if change.new is not None:
                size += len(change.new.data)
                database.execute(
                    "INSERT INTO objects VALUES (?, ?, ?, ?) ON CONFLICT (resource, key) "
                    "DO UPDATE SET revision = excluded.revision, data = excluded.data",
                    (change.table.name, change.key, change.revision, change.new.data),
                )
            else:
                database.execute(
                    "DELETE FROM objects WHERE resource = ? AND key = ?", (change.table.name, change.key)
                )
        revision = batch[-1].change.revision
        database.execute(
            "INSERT INTO counters VALUES ('revision', ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (revision,),
        )
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    return size
