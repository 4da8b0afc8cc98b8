from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_runtime.fake_server import CONFIG_MAP, FakeServer, config_map, error
from kube_runtime.virtual import VirtualClock, settle
from podium.api.kinds import Key
from podium.kube.cache import Cache, Caches, CacheStopped, NotSynced
from podium.kube.errors import ConnectionFailed
from podium.kube.metrics import Metrics
from podium.kube.store import Change, by_field


class Cluster:
    """A fake server and caches on virtual time."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.caches = Caches(self.server, clock=self.clock, metrics=self.metrics, chance=lambda: 0.5)


class Recorder:
    """A handler that replays every change on a model and notes what was lost, repeated or out of order."""

    def __init__(self) -> None:
        self.model: dict[Key, str] = {}
        self.calls: list[str] = []
        self.wrong: list[Change] = []

    def __call__(self, change: Change) -> None:
        key, old, new = change.subject.key, change.old, change.new
        known = self.model.pop(key, None)
        if new is None:
            self.calls.append(f"-{key.name}")
        else:
            self.model[key] = new.metadata.resource_version
            self.calls.append(f"~{key.name}" if old else f"+{key.name}{'?' if change.initial else ''}")
        deleted = new is None and known is not None
        added = old is None and known is None
        changed = (
            old and new and old.metadata.resource_version == known and old.metadata.uid == new.metadata.uid
        )
        if not (deleted or added or changed):
            self.wrong.append(change)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    yield cluster
    await cluster.caches.stop()
    assert cluster.server.open_watches == 0


async def synced(cluster: Cluster, **selector: str) -> tuple[Cache, Recorder]:
    cache = cluster.caches.acquire(CONFIG_MAP, **selector)  # type: ignore[arg-type]
    recorder = Recorder()
    cache.on_change(recorder)
    await settle()
    assert cache.is_synced
    return cache, recorder


async def test_the_first_list_is_streamed_and_the_same_connection_goes_on_watching(cluster: Cluster) -> None:
    cluster.server.put(config_map("a"))
    cache, recorder = await synced(cluster)
    cluster.server.put(config_map("b"))
    cluster.server.put(config_map("a", x="1"))
    cluster.server.remove(CONFIG_MAP, Key("default", "b"))
    await settle()
    assert recorder.calls == ["+a?", "+b", "~a", "-b"]
    assert cluster.server.requests == ["watch ConfigMap - initial"]
    assert cache.get(Key("default", "a")) == cluster.server.objects[CONFIG_MAP, Key("default", "a")]
    assert cache.get(Key("default", "b")) is None


async def test_a_server_that_refuses_to_stream_is_listed_in_pages_and_never_asked_again(
    cluster: Cluster,
) -> None:
    cluster.server.streams_lists = False
    for name in "abcde":
        cluster.server.put(config_map(name))
    cache, recorder = await synced(cluster)
    assert len(cache) == 5
    cluster.server.put(config_map("f"))
    cluster.server.compact()
    cluster.server.cut()
    await cluster.clock.advance(60)
    assert recorder.calls[-1] == "+f"
    assert [r for r in cluster.server.requests if "initial" in r] == ["watch ConfigMap - initial"]


async def test_a_list_that_expires_between_pages_is_read_again_in_one_piece(cluster: Cluster) -> None:
    cluster.server.streams_lists = False
    for name in "abc":
        cluster.server.put(config_map(name))
    cache = cluster.caches.acquire(CONFIG_MAP)
    await asyncio.sleep(0)
    cluster.server.failures = [error(410, "Expired")]
    await settle()
    assert len(cache) == 3
    assert cluster.server.requests[1:3] == ["list ConfigMap", "list ConfigMap"]


async def test_a_server_that_never_ends_the_streamed_list_is_listed_in_pages(cluster: Cluster) -> None:
    cluster.server.sends_end_bookmark = False
    cluster.server.put(config_map("a"))
    cache = cluster.caches.acquire(CONFIG_MAP)
    await cluster.clock.advance(9)
    assert len(cache) == 0
    await cluster.clock.advance(2)
    assert len(cache) == 1
    assert cluster.server.requests[1] == "list ConfigMap"


async def test_a_broken_watch_resumes_where_it_stopped(cluster: Cluster) -> None:
    _, recorder = await synced(cluster)
    cluster.server.put(config_map("a"))
    await settle()
    cluster.server.cut()
    cluster.server.put(config_map("b"))
    await cluster.clock.advance(5)
    assert recorder.calls == ["+a", "+b"]
    assert cluster.server.requests == ["watch ConfigMap - initial", "watch ConfigMap 101"]


async def test_a_bookmark_moves_the_point_of_resumption(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def watch(*_: object, resource_version: str = "", **__: object) -> AsyncIterator[object]:
        asked.append(resource_version)
        yield FakeServer.bookmark(CONFIG_MAP, 100 + len(asked), end=True)
        yield FakeServer.bookmark(CONFIG_MAP, 500 + len(asked))
        if len(asked) == 3:
            await asyncio.Event().wait()

    monkeypatch.setattr(cluster.server, "watch", watch)
    await synced(cluster)
    await cluster.clock.advance(1)
    assert asked == ["", "501", "502"]


async def test_after_410_only_the_difference_is_told(cluster: Cluster) -> None:
    for name in ("same", "changed", "gone", "replaced"):
        cluster.server.put(config_map(name))
    _, recorder = await synced(cluster)
    recorder.calls.clear()
    cluster.server.cut()
    await settle()
    cluster.server.put(config_map("changed", x="1"))
    cluster.server.remove(CONFIG_MAP, Key("default", "gone"))
    cluster.server.remove(CONFIG_MAP, Key("default", "replaced"))
    cluster.server.put(config_map("replaced"))
    cluster.server.put(config_map("new"))
    cluster.server.compact()
    await cluster.clock.advance(60)
    assert sorted(recorder.calls) == ["+new", "+replaced", "-gone", "-replaced", "~changed"]


async def test_failures_are_waited_out_with_growing_delays(cluster: Cluster) -> None:
    cluster.server.failures = [ConnectionFailed("refused", sent=False) for _ in range(4)]
    cache = cluster.caches.acquire(CONFIG_MAP)
    gaps = []
    for _ in range(4):
        await settle()
        assert str(cache.last_error) == "refused"
        gaps.append(round(cluster.clock.next_timer or 0.0, 3))
        await cluster.clock.advance(gaps[-1])
    assert gaps == [1.2, 2.4, 4.8, 9.6]
    assert cache.is_synced
    assert cache.last_error is None


async def test_a_list_that_succeeds_does_not_excuse_a_watch_that_never_works(cluster: Cluster) -> None:
    cluster.server.streams_lists = False
    cluster.server.put(config_map("a"))
    cluster.server.break_after = 0
    await synced(cluster)
    await cluster.clock.advance(120)
    assert len(cluster.server.requests) < 20


async def test_the_server_may_say_how_long_to_wait(cluster: Cluster) -> None:
    cluster.server.failures = [error(429, "TooManyRequests", retryAfterSeconds=25)]
    cluster.caches.acquire(CONFIG_MAP)
    await settle()
    assert cluster.clock.next_timer == 25


async def test_a_connection_that_outlives_its_time_in_silence_is_given_up(cluster: Cluster) -> None:
    await synced(cluster)
    await cluster.clock.advance(450 + 29)
    assert len(cluster.server.requests) == 1
    await cluster.clock.advance(5)
    assert cluster.server.requests[1:] == ["watch ConfigMap 100"]


async def test_objects_are_copies_and_metadata_cannot_be_changed(cluster: Cluster) -> None:
    labelled = config_map("a", x="1")
    labelled["metadata"]["labels"] = {"app": "web"}
    cluster.server.put(labelled)
    cache, _ = await synced(cluster)
    key = Key("default", "a")
    mine = cache.get(key)
    assert mine is not None
    mine["data"]["x"] = "2"
    assert (cache.get(key) or {})["data"] == {"x": "1"}
    metadata = cache.metadata(key)
    assert metadata is not None
    with pytest.raises(TypeError):
        metadata.labels["app"] = "db"  # type: ignore[index]
    with pytest.raises(AttributeError):
        metadata.name = "b"  # type: ignore[misc]


async def test_listing_by_namespace_labels_and_index(cluster: Cluster) -> None:
    for name, namespace, app in [("a", "one", "web"), ("b", "one", "db"), ("c", "two", "web")]:
        obj = config_map(name, namespace, owner=app)
        obj["metadata"]["labels"] = {"app": app}
        cluster.server.put(obj)
    cache, _ = await synced(cluster)
    owner = by_field("data", "owner")
    cache.add_index("owner", owner)
    cache.add_index("owner", owner)

    def names(**query: object) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in cache.list(**query))  # type: ignore[arg-type]

    assert names() == ["a", "b", "c"]
    assert names(namespace="one") == ["a", "b"]
    assert names(labels="app=web") == ["a", "c"]
    assert names(namespace="two", labels="app in (web,db)") == ["c"]
    assert names(index=("owner", "web")) == ["a", "c"]
    assert names(index=("owner", "web"), namespace="one") == ["a"]
    cluster.server.put(config_map("a", "one", owner="db"))
    cluster.server.remove(CONFIG_MAP, Key("two", "c"))
    await settle()
    assert names(index=("owner", "web")) == []
    assert names(index=("owner", "db")) == ["a", "b"]
    assert cache.index_values("owner") == ["db"]
    with pytest.raises(ValueError, match="another index"):
        cache.add_index("owner", by_field("data"))


async def test_an_index_function_that_fails_on_one_object_spares_the_others(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.server.put(config_map("good", owner="x"))
    cluster.server.put(config_map("bad"))
    cache, _ = await synced(cluster)
    with caplog.at_level(logging.CRITICAL):
        cache.add_index("owner", lambda held: [held.object()["data"]["owner"]])
    assert [held.key.name for held in cache.select(index=("owner", "x"))] == ["good"]


async def test_a_metadata_only_cache_keeps_no_bytes_and_still_gives_objects(cluster: Cluster) -> None:
    obj = config_map("a", x="1")
    obj["metadata"]["finalizers"] = ["podium.dev/hold"]
    cluster.server.put(obj)
    cache = cluster.caches.acquire(CONFIG_MAP, metadata_only=True)
    await settle()
    held = cache.held(Key("default", "a"))
    assert held is not None
    assert held.raw is None
    assert held.object() == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": "uid-1",
            "generation": 1,
            "resourceVersion": "101",
            "finalizers": ["podium.dev/hold"],
        },
    }


async def test_list_items_without_kind_get_it_back(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.server.streams_lists = False
    obj = config_map("a")
    del obj["kind"], obj["apiVersion"]
    monkeypatch.setattr(cluster.server, "_matching", lambda *_: [obj])
    cache, _ = await synced(cluster)
    assert (cache.get(Key("default", "a")) or {})["kind"] == "ConfigMap"


async def test_equal_targets_share_one_watch_until_the_last_user_leaves(cluster: Cluster) -> None:
    first = cluster.caches.acquire(CONFIG_MAP, labels="app=web")
    second = cluster.caches.acquire(CONFIG_MAP, labels="app=web")
    other = cluster.caches.acquire(CONFIG_MAP)
    await settle()
    assert first is second
    assert other is not first
    assert cluster.server.open_watches == 2
    await cluster.caches.release(first)
    assert cluster.server.open_watches == 2
    await cluster.caches.release(second)
    assert cluster.server.open_watches == 1
    assert cluster.caches.acquire(CONFIG_MAP, labels="app=web") is not first


async def test_a_handler_that_joins_late_is_shown_what_exists(cluster: Cluster) -> None:
    cluster.server.put(config_map("a"))
    cache, _ = await synced(cluster)
    late = Recorder()
    stop = cache.on_change(late)
    cluster.server.put(config_map("b"))
    await settle()
    assert late.calls == ["+a?", "+b"]
    stop()
    cluster.server.put(config_map("c"))
    await settle()
    assert late.calls == ["+a?", "+b"]


async def test_a_failing_handler_harms_nobody_else(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cache = cluster.caches.acquire(CONFIG_MAP)

    def broken(change: Change) -> None:
        raise RuntimeError("oops")

    cache.on_change(broken)
    _, recorder = await synced(cluster)
    with caplog.at_level(logging.CRITICAL):
        cluster.server.put(config_map("a"))
        await settle()
    assert recorder.calls == ["+a"]


async def test_waiting_for_a_cache_that_cannot_be_filled_says_why(cluster: Cluster) -> None:
    cluster.server.failures = [error(403, "Forbidden", "you may not") for _ in range(20)]
    waiting = asyncio.create_task(cluster.caches.wait_synced(cluster.caches.acquire(CONFIG_MAP), timeout=30))
    await cluster.clock.advance(31)
    with pytest.raises(NotSynced, match="within 30 s: you may not"):
        await waiting


async def test_whoever_waits_for_a_cache_that_is_stopped_is_told(cluster: Cluster) -> None:
    cluster.server.failures = [ConnectionFailed("refused", sent=False)]
    cache = cluster.caches.acquire(CONFIG_MAP)
    waiting = asyncio.create_task(cache.synced())
    await settle()
    await cluster.caches.stop()
    with pytest.raises(CacheStopped):
        await waiting


async def test_objects_that_leave_the_selector_are_deleted_from_the_cache(cluster: Cluster) -> None:
    obj = config_map("a")
    obj["metadata"]["labels"] = {"app": "web"}
    cluster.server.put(obj)
    cache, recorder = await synced(cluster, labels="app=web")
    cluster.server.put(config_map("a"))
    await settle()
    assert recorder.calls == ["+a?", "-a"]
    assert len(cache) == 0


async def test_watches_are_counted(cluster: Cluster) -> None:
    await synced(cluster)
    cluster.server.put(config_map("a"))
    await settle()
    cluster.server.cut()
    await cluster.clock.advance(5)
    metrics = cluster.metrics
    assert metrics.watches.value("ConfigMap") == 2
    assert metrics.lists.value("ConfigMap") == 1
    assert metrics.watch_restarts.value("ConfigMap", "failed") == 1
    assert metrics.watch_events.value("ConfigMap", "ADDED") == 1
    assert metrics.cached_objects.value("ConfigMap") == 1


async def test_metrics_do_not_grow_with_selectors(cluster: Cluster) -> None:
    cluster.server.put(config_map("a"))
    for name in ("a", "b"):
        async with cluster.caches.open(CONFIG_MAP, fields=f"metadata.name={name}"):
            pass
    async with cluster.caches.open(CONFIG_MAP), cluster.caches.open(CONFIG_MAP, "default", timeout=5):
        assert cluster.metrics.cached_objects.value("ConfigMap") == 2
    assert cluster.metrics.watches.values.keys() == {("ConfigMap",)}


names = st.sampled_from("abc")
steps = st.one_of(
    st.tuples(st.just("put"), names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("cut"), names),
    st.tuples(st.just("compact"), names),
    st.tuples(st.just("break after"), st.integers(0, 4)),
    st.tuples(st.just("fail"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.integers(0, 40)),
)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(steps, max_size=40), streams=st.booleans(), marks=st.booleans())
def test_a_watch_that_is_cut_at_any_point_converges_and_tells_each_change_once(
    steps: list[tuple[str, str | int]], streams: bool, marks: bool
) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        server, clock = cluster.server, cluster.clock
        server.streams_lists, server.sends_end_bookmark = streams, marks
        cache = cluster.caches.acquire(CONFIG_MAP)
        recorder = Recorder()
        cache.on_change(recorder)
        for step, argument in steps:
            key = Key("default", str(argument))
            match step:
                case "put":
                    server.put(config_map(key.name, x=str(server.version)))
                case "remove" if (CONFIG_MAP, key) in server.objects:
                    server.remove(CONFIG_MAP, key)
                case "cut":
                    server.cut()
                case "compact":
                    server.compact()
                case "break after":
                    server.break_after = int(argument)
                case "fail":
                    server.failures = [error(500, "InternalError") for _ in range(int(argument))]
                case "wait":
                    await clock.advance(float(argument))
        server.break_after = None
        server.failures.clear()
        await clock.advance(600)
        held = {h.key: h.metadata.resource_version for h in cache.select()}
        assert held == server.state(CONFIG_MAP) == recorder.model
        assert not recorder.wrong
        await cluster.caches.stop()
        assert server.open_watches == 0

    logging.disable(logging.ERROR)
    try:
        asyncio.run(scenario())
    finally:
        logging.disable(logging.NOTSET)
