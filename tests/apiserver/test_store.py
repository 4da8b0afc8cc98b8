from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.apiserver import store as store_module
from podium.apiserver.store import Compacted, Limits, Store, StoreFailed, Table


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "state.db")
    store.open()
    yield store
    await store.close()


def thing(name: str, value: int = 0, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "value": value}


async def put(store: Store, table: Table, key: str, value: int = 0) -> int:
    stored, done = store.put(table, key, thing(key, value))
    await done
    return stored.revision


async def test_a_staged_write_is_seen_by_writers_at_once_and_by_readers_after_the_commit(
    store: Store,
) -> None:
    table = store.table("/things")
    stored, done = store.put(table, "a", thing("a"))
    assert table.latest("a") is stored
    assert "a" not in table.objects
    await done
    assert table.objects["a"] is stored
    assert store.revision == stored.revision


async def test_revisions_rise_over_all_tables_and_survive_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    store.open()
    first = await put(store, store.table("/a"), "x")
    second = await put(store, store.table("/b"), "y")
    _, done = store.delete(store.table("/a"), "x")
    await done
    assert first < second < store.revision
    await store.close()

    again = Store(tmp_path / "state.db")
    again.open()
    assert again.revision == store.revision
    assert list(again.table("/a").objects) == []
    assert again.table("/b").objects["y"].object["value"] == 0
    assert await put(again, again.table("/a"), "x") > store.revision
    await again.close()


async def test_writes_staged_together_are_committed_together_in_order(store: Store) -> None:
    table = store.table("/things")
    seen: list[tuple[str, int]] = []
    store.observe(lambda change: seen.append((change.key, change.revision)))
    writes = [store.put(table, f"k{n}", thing(f"k{n}"))[1] for n in range(50)]
    await asyncio.gather(*writes)
    assert [key for key, _ in seen] == [f"k{n}" for n in range(50)]
    assert [revision for _, revision in seen] == sorted(revision for _, revision in seen)


async def test_a_key_deleted_and_made_again_before_the_commit_ends_as_the_last_write_says(
    store: Store,
) -> None:
    table = store.table("/things")
    await put(store, table, "a", 1)
    writes = [
        store.delete(table, "a")[1],
        store.put(table, "a", thing("a", 2))[1],
        store.delete(table, "a")[1],
    ]
    assert table.latest("a") is None
    await asyncio.gather(*writes)
    assert table.latest("a") is None
    assert "a" not in table.objects


async def test_a_commit_that_fails_takes_back_everything_staged(store: Store) -> None:
    table = store.table("/things")
    await put(store, table, "a", 1)
    broken = thing("b")
    broken["metadata"]["name"] = "b"
    _, fine = store.put(table, "b", broken)
    table.staged["b"].new.data = object()  # type: ignore[union-attr]  # SQLite cannot take this
    _, later = store.put(table, "c", thing("c"))
    with pytest.raises(StoreFailed, match="did not take the write"):
        await fine
    with pytest.raises(StoreFailed):
        await later
    assert table.latest("b") is None
    assert table.latest("c") is None
    assert await put(store, table, "d") > 0
    assert sorted(table.objects) == ["a", "d"]


async def test_scan_walks_a_namespace_in_key_order(store: Store) -> None:
    table = store.table("/things")
    for key in ("b/2", "a/1", "a-b/1", "b/1", "c/1"):
        await put(store, table, key)
    assert [s.key for s in table.scan()] == ["a-b/1", "a/1", "b/1", "b/2", "c/1"]
    assert [s.key for s in table.scan("b/")] == ["b/1", "b/2"]
    assert [s.key for s in table.scan("b/", after="b/1")] == ["b/2"]
    assert table.count("b/") == 2
    assert table.count("b/", after="b/1") == 1


async def test_a_cursor_before_the_kept_history_is_compacted(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", Limits(changes=10))
    store.open()
    table = store.table("/things")
    first = await put(store, table, "a", 0)
    for value in range(40):
        await put(store, table, "a", value)
    with pytest.raises(Compacted):
        table.cursor(first)
    with pytest.raises(Compacted):
        table.snapshot(first)
    assert len(table.since(table.cursor(store.revision - 5))) == 5
    await store.close()


async def test_a_store_written_by_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    store = Store(tmp_path / "state.db")
    store.open()
    await store.close()
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.execute("UPDATE counters SET value = 99 WHERE name = 'format'")
    database.close()
    with pytest.raises(StoreFailed, match="newer Podium"):
        Store(tmp_path / "state.db").open()


operations = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcde"), st.integers(0, 9)), max_size=60
)


@given(operations)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_every_snapshot_equals_the_state_at_that_revision(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "state.db")
    store.open()
    table = store.table("/things")
    states: dict[int, dict[str, int]] = {store.revision: {}}
    model: dict[str, int] = {}
    for kind, key, value in steps:
        if kind == "put":
            await put(store, table, key, value)
            model[key] = value
        elif key in model:
            _, done = store.delete(table, key)
            await done
            del model[key]
        states[store.revision] = dict(model)
    for revision, expected in states.items():
        found = {s.key: s.object["value"] for s in table.snapshot(revision)}
        assert found == expected
        assert [s.key for s in table.snapshot(revision)] == sorted(expected)
    await store.close()


async def test_an_observer_that_fails_neither_stops_the_others_nor_loses_a_change(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    table, seen = store.table("/things"), list[str]()
    store.observe(lambda change: dict[str, None]()[change.key])
    store.observe(lambda change: seen.append(change.key))
    async with asyncio.timeout(5):
        await asyncio.gather(*(put(store, table, key) for key in "abc"))
        await put(store, table, "d")
    assert seen == ["a", "b", "c", "d"]
    assert sorted(table.objects) == ["a", "b", "c", "d"]
    assert "KeyError: 'a'" in caplog.text


async def test_a_disk_that_is_full_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    store.open()
    table = store.table("/things")
    await put(store, table, "a", 1)
    fill(store, pages=0)
    big = thing("b") | {"data": "x" * 100_000}
    for _ in range(3):
        with pytest.raises(StoreFailed, match="full"):
            await store.put(table, "b", big)[1]
    assert table.latest("b") is None
    fill(store, pages=10_000)
    await store.put(table, "b", big)[1]
    assert sorted(table.objects) == ["a", "b"]
    await store.close()


def fill(store: Store, pages: int) -> None:
    """Leave the database so many pages to grow by."""
    assert store._database is not None
    used = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {used + pages}")


async def test_a_checkpoint_that_fails_does_not_end_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_CHECKPOINT_BYTES", 0)
    monkeypatch.setattr(store_module, "_CHECKPOINT", "PRAGMA no_such_schema.wal_checkpoint")
    store = Store(tmp_path / "state.db")
    store.open()
    async with asyncio.timeout(5):
        for value in range(3):
            await put(store, store.table("/things"), "a", value)
        await store.close()


async def test_after_the_end_writes_are_refused(store: Store) -> None:
    table = store.table("/things")
    await put(store, table, "a")
    await store.close()
    with pytest.raises(StoreFailed, match="closed"):
        store.put(table, "b", thing("b"))


async def test_a_writer_that_goes_away_does_not_take_its_write_along(store: Store) -> None:
    table = store.table("/things")
    _, done = store.put(table, "a", thing("a"))
    done.cancel()
    await put(store, table, "b")
    assert sorted(table.objects) == ["a", "b"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b"not a database at all" * 1000), id="another file"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5000]), id="cut short"),
        pytest.param(
            lambda path: path.write_bytes(path.read_bytes().replace(b'{"metadata"', b"{'metadata'")),
            id="damaged object",
        ),
    ],
)
async def test_a_damaged_database_is_refused_by_name(tmp_path: Path, damage: Callable[[Path], int]) -> None:
    path = tmp_path / "state.db"
    store = Store(path)
    store.open()
    for number in range(50):
        await put(store, store.table("/things"), f"thing-{number}")
    await store.close()
    damage(path)
    with pytest.raises(StoreFailed, match=r"state\.db cannot be read"):
        Store(path).open()


async def test_the_database_is_private(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    store.open()
    await put(store, store.table("/secrets"), "a")
    files = [tmp_path / name for name in ("state.db", "state.db-wal")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    await store.close()


async def test_who_rests_on_a_staged_write_can_wait_for_it(store: Store) -> None:
    table = store.table("/things")
    stored, _ = store.put(table, "a", thing("a"))
    await store.settled(table, "a")
    assert table.objects["a"] is stored
    await store.settled(table, "a")


async def test_who_rests_on_a_staged_write_learns_that_it_failed(store: Store) -> None:
    table = store.table("/things")
    _, done = store.put(table, "a", thing("a"))
    table.staged["a"].new.data = object()  # type: ignore[union-attr]  # SQLite cannot take this
    with pytest.raises(StoreFailed):
        await store.settled(table, "a")
    with pytest.raises(StoreFailed):
        await done
