from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium.apiserver import watching
from podium.apiserver.builtin import resources
from podium.apiserver.reading import ListOptions
from podium.apiserver.registry import Resource
from podium.apiserver.store import Store, Table
from podium.apiserver.views import Plain
from podium.apiserver.watching import Watch, open_watch


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "state.db")
    store.open()
    yield store
    await store.close()


@pytest.fixture(scope="module")
def config_maps() -> Resource:
    return next(resource for resource in resources() if resource.table == "/configmaps")


def opened(store: Store, resource: Resource, **options: object) -> Watch:
    return open_watch(store, resource, "", ListOptions(watch=True, **options), Plain())  # type: ignore[arg-type]


async def test_an_idle_watch_without_bookmarks_sleeps_until_its_time_is_up(
    store: Store, config_maps: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    since = Table.since
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.1)

    def looked(table: Table, cursor: int) -> object:
        looks.append(cursor)
        return since(table, cursor)

    monkeypatch.setattr(Table, "since", looked)
    watch = opened(store, config_maps, timeout_seconds=1, resource_version=str(store.revision))
    assert [lines async for lines in watch.lines(asyncio.Event())] == []
    assert len(looks) < 20


async def test_what_piled_up_comes_in_batches_of_a_limited_size(store: Store, config_maps: Resource) -> None:
    table, before = store.table("/configmaps"), store.revision
    for number in range(40):
        metadata = {"name": f"big-{number}", "namespace": "default", "uid": f"uid-{number}"}
        _, done = store.put(
            table, f"default/big-{number}", {"metadata": metadata, "data": {"a": "x" * 200_000}}
        )
    await done
    watch = opened(store, config_maps, timeout_seconds=1, resource_version=str(before))
    batches = [lines async for lines in watch.lines(asyncio.Event())]
    assert b"".join(batches).count(b"\n") == 40
    assert max(map(len, batches)) < 2_000_000
