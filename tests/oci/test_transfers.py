"""Blobs on bad connections: broken, slow, lying and limiting registries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from harness.fakeregistry import FakeRegistry, Waits, break_off, images, ranged, running
from podium.oci import model
from podium.oci.errors import Corrupt, ImageNotFound, RateLimited, RegistryError, Unreachable
from podium.oci.model import Descriptor
from podium.oci.settings import Retries, Timeouts
from podium.oci.store import Store

DATA = random.Random(7).randbytes(300_000)


@pytest.fixture
async def registry() -> AsyncIterator[FakeRegistry]:
    async with running() as registry:
        yield registry


class Recorded:
    """A progress that writes down what it is told."""

    def __init__(self) -> None:
        self.moved = 0
        self.events: list[str] = []

    def started(self, descriptor: Descriptor, what: str) -> None:
        self.events.append(f"started {what}")

    def advanced(self, descriptor: Descriptor, count: int) -> None:
        self.moved += count

    def finished(self, descriptor: Descriptor, *, skipped: bool = False) -> None:
        self.events.append("skipped" if skipped else "finished")


def source(data: bytes, size: int = 10_000) -> AsyncIterator[bytes]:
    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return parts()


async def collected(store: Store, descriptor: Descriptor) -> bytes:
    return b"".join([part async for part in store.blob(descriptor)])


@pytest.mark.parametrize("step", [1, 1000, 99_999, 150_000])
async def test_a_broken_download_goes_on_where_it_broke(
    step: int, registry: FakeRegistry, tmp_path: Path
) -> None:
    data = (DATA * 3)[: step * 5]
    descriptor = registry.add_blob(data)
    starts: list[int] = []

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        starts.append(start)
        response = web.StreamResponse(status=206 if start else 200)
        response.headers["Content-Length"] = str(len(data) - start)
        if start:
            response.headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        await response.prepare(request)
        await response.write(data[start : start + step])
        if start + step < len(data):
            assert request.transport is not None
            request.transport.close()
        return response

    registry.before = breaking
    progress = Recorded()
    async with images(tmp_path, registry, progress=progress) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == data
    assert starts == [step * number for number in range(5)]
    assert progress.moved == len(data)
    assert progress.events == ["started pull", "finished"]


async def test_a_registry_that_knows_no_ranges_is_read_again_from_the_start(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)
    served = 0

    async def no_ranges(request: web.Request) -> web.StreamResponse | None:
        nonlocal served
        served += 1
        if served < 3:
            return await break_off(request, DATA[: served * 100_000], claimed=len(DATA))
        return web.Response(body=DATA)

    registry.before = no_ranges
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == DATA


async def test_a_download_that_never_moves_on_is_given_up(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(DATA)
    served = 0

    async def broken(request: web.Request) -> web.StreamResponse | None:
        nonlocal served
        served += 1
        return await break_off(request, b"", claimed=len(DATA))

    registry.before = broken
    waits = Waits()
    async with images(tmp_path, registry, waits=waits) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Unreachable):
            await collected(store, descriptor)
    assert served == 4
    assert len(waits.waited) == 3
    assert waits.waited == sorted(waits.waited)


@pytest.mark.parametrize("extra", [1, 100_000, 50 << 20])
async def test_a_blob_that_is_too_long_is_left_as_soon_as_it_is(
    extra: int, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)
    sent = 0

    async def longer(request: web.Request) -> web.StreamResponse | None:
        nonlocal sent
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(DATA)
        while sent < extra:
            await response.write(b"x" * min(65536, extra - sent))
            sent += 65536
        return response

    registry.before = longer
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match="more than its 300000 bytes"):
            await collected(store, descriptor)
    assert sent < 20 << 20


@pytest.mark.parametrize("length", [0, 1, 299_999, 300_001, 10**15])
async def test_a_length_that_is_not_the_blobs_is_refused_before_reading(
    length: int, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)

    async def lying(request: web.Request) -> web.StreamResponse | None:
        response = web.StreamResponse(headers={"Content-Length": str(length)})
        await response.prepare(request)
        return response

    registry.before = lying
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match=f"has {length}"):
            await collected(store, descriptor)


async def test_a_blob_that_ends_early_is_corrupt(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(DATA)

    async def short(request: web.Request) -> web.StreamResponse | None:
        if "Range" in request.headers:
            return ranged(request, DATA[:-1])
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(DATA[:-1])
        return response

    registry.before = short
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match="only 299999 of 300000"):
            await collected(store, descriptor)


@pytest.mark.parametrize(
    "where", ["bytes 0-299999/300000", "bytes 7-299999/300000", "bytes 1000-299999/300001", "x", ""]
)
async def test_a_range_that_is_not_the_one_asked_for_is_refused(
    where: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)

    async def elsewhere(request: web.Request) -> web.StreamResponse | None:
        if "Range" not in request.headers:
            return await break_off(request, DATA[:1000], claimed=len(DATA))
        return web.Response(status=206, body=DATA[1000:], headers={"Content-Range": where} if where else {})

    registry.before = elsewhere
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt):
            await collected(store, descriptor)


async def test_a_blob_that_changes_between_two_parts_of_a_download_is_corrupt(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)
    changed = DATA[:200_000] + b"!" + DATA[200_001:]

    async def flipping(request: web.Request) -> web.StreamResponse | None:
        if "Range" in request.headers:
            return ranged(request, changed)
        return await break_off(request, DATA[:1000], claimed=len(DATA))

    registry.before = flipping
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Corrupt, match="does not match its digest"):
            await collected(store, descriptor)


async def test_a_download_that_breaks_after_its_last_byte_is_whole(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)

    async def unended(request: web.Request) -> web.StreamResponse | None:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(DATA)
        assert request.transport is not None
        request.transport.close()
        return response

    registry.before = unended
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == DATA
    assert len(registry.seen) == 1


async def test_an_empty_blob_is_read(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(b"")
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == b""
        with pytest.raises(Corrupt):
            await collected(store, msgspec.structs.replace(descriptor, size=1))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_passing_failures_are_tried_again(status: int, registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_image("v1")
    failures = 3

    async def failing(request: web.Request) -> web.StreamResponse | None:
        nonlocal failures
        failures -= 1
        return web.Response(status=status) if failures >= 0 else None

    registry.before = failing
    waits = Waits()
    async with images(tmp_path, registry, waits=waits) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        assert await store.resolve(tag) == descriptor
    assert len(waits.waited) == 3


async def test_a_rate_limit_is_waited_for_as_long_as_it_says(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.add_image("v1")
    headers = [
        {"Retry-After": "7"},
        {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"},
        {"Retry-After": "soon"},
    ]

    async def limited(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=429, headers=headers.pop(0)) if headers else None

    registry.before = limited
    waits = Waits()
    async with images(tmp_path, registry, waits=waits) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        await store.resolve(tag)
    assert waits.waited[:2] == [7.0, 0.0]
    assert waits.waited[2] > 0


@pytest.mark.parametrize("asked", ["91", "86400", "99999999999999999999"])
async def test_a_rate_limit_beyond_our_patience_ends_at_once(
    asked: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    async def limited(request: web.Request) -> web.StreamResponse | None:
        body = {"errors": [{"code": "TOOMANYREQUESTS", "message": "pull rate limit"}]}
        return web.json_response(body, status=429, headers={"Retry-After": asked})

    registry.before = limited
    waits = Waits()
    async with images(tmp_path, registry, waits=waits) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RateLimited, match="pull rate limit"):
            await store.resolve(tag)
    assert waits.waited == []


async def test_all_waiting_for_one_thing_fits_the_budget(registry: FakeRegistry, tmp_path: Path) -> None:
    async def limited(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=429, headers={"Retry-After": "4"})

    registry.before = limited
    waits = Waits()
    retries = Retries(attempts=100, budget=10)
    async with images(tmp_path, registry, waits=waits, retries=retries) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(RateLimited):
            await store.resolve(tag)
    assert waits.waited == [4.0, 4.0]


async def test_silence_ends_in_an_error(registry: FakeRegistry, tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.StreamResponse | None:
        await asyncio.Event().wait()
        return None

    registry.before = silent
    timeouts = Timeouts(idle=0.05)
    async with images(tmp_path, registry, timeouts=timeouts, retries=Retries(attempts=2)) as opened:
        store, tag = opened.store(f"{registry.host}/app:v1")
        with pytest.raises(Unreachable, match="no answer in time"):
            await store.resolve(tag)
    assert len(registry.seen) == 2


async def test_a_download_that_stalls_is_taken_up_again(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(DATA)

    async def stalling(request: web.Request) -> web.StreamResponse | None:
        if "Range" in request.headers:
            return None
        response = web.StreamResponse(headers={"Content-Length": str(len(DATA))})
        await response.prepare(request)
        await response.write(DATA[:1000])
        await asyncio.Event().wait()
        return response

    registry.before = stalling
    async with images(tmp_path, registry, timeouts=Timeouts(idle=0.1)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == DATA


async def test_a_slow_but_moving_download_is_not_cut_off(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptor = registry.add_blob(DATA)

    async def slow(request: web.Request) -> web.StreamResponse | None:
        response = web.StreamResponse(headers={"Content-Length": str(len(DATA))})
        await response.prepare(request)
        for start in range(0, len(DATA), 30_000):
            await response.write(DATA[start : start + 30_000])
            await asyncio.sleep(0.12)
        return response

    registry.before = slow
    async with images(tmp_path, registry, timeouts=Timeouts(idle=1.0)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        assert await collected(store, descriptor) == DATA
    assert len(registry.seen) == 1


async def test_leaving_a_download_closes_its_connection_and_frees_its_slot(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = registry.add_blob(DATA)
    begun, gone = asyncio.Event(), asyncio.Event()

    async def stuck(request: web.Request) -> web.StreamResponse | None:
        response = web.StreamResponse(headers={"Content-Length": str(len(DATA))})
        await response.prepare(request)
        await response.write(DATA[:1000])
        begun.set()
        # What is written to a closed connection fails; until then the other side may be slow to notice.
        try:
            while True:
                await response.write(b".")
                await asyncio.sleep(0.001)
        except ConnectionError:
            gone.set()
            raise

    registry.before = stuck
    async with images(tmp_path, registry, concurrency=1) as opened, asyncio.timeout(10):
        store, _ = opened.store(f"{registry.host}/app")
        task = asyncio.create_task(collected(store, descriptor))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()
        registry.before = None
        assert await collected(store, descriptor) == DATA


async def test_no_more_blobs_move_at_once_than_allowed(registry: FakeRegistry, tmp_path: Path) -> None:
    descriptors = [registry.add_blob(f"blob {number}".encode()) for number in range(20)]
    running_now = most = 0

    async def counting(request: web.Request) -> web.StreamResponse | None:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        await asyncio.sleep(0.002)
        running_now -= 1
        return None

    registry.before = counting
    async with images(tmp_path, registry, concurrency=3) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await asyncio.gather(*(collected(store, each) for each in descriptors))
    assert most == 3


async def test_copies_between_repositories_do_not_wait_for_each_other_forever(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptors = [registry.add_blob(f"blob {number}".encode()) for number in range(6)]
    async with running() as target, asyncio.timeout(10):
        async with images(tmp_path, registry, target, concurrency=1) as opened:
            here, _ = opened.store(f"{registry.host}/app")
            there, _ = opened.store(f"{target.host}/app")
            await asyncio.gather(
                *(there.put_blob(each, lambda each=each: here.blob(each)) for each in descriptors)  # type: ignore[misc]
            )
        assert target.blobs == registry.blobs


async def test_many_copies_within_one_registry_do_not_wait_for_each_others_connections(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptors = [registry.add_blob(f"blob {number}".encode()) for number in range(150)]
    sent: list[Descriptor] = []

    async def hiding(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=404) if request.method == "HEAD" else None

    registry.before = hiding
    async with images(tmp_path, registry, concurrency=150) as opened, asyncio.timeout(30):
        here, _ = opened.store(f"{registry.host}/app")
        there, _ = opened.store(f"{registry.host}/copy")
        ready = asyncio.Barrier(len(descriptors))

        async def late(descriptor: Descriptor) -> AsyncIterator[bytes]:
            await ready.wait()  # every upload has its connection before the first download wants one
            async for part in here.blob(descriptor):
                yield part
            sent.append(descriptor)

        await asyncio.gather(
            *(there.put_blob(each, lambda each=each: late(each)) for each in descriptors)  # type: ignore[misc]
        )
    assert len(sent) == len(descriptors)


@pytest.mark.parametrize("failing", ["POST", "PUT"])
@pytest.mark.parametrize("how", ["503", "reset"])
async def test_an_upload_that_breaks_is_started_anew(
    failing: str, how: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)
    failures = 2

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        nonlocal failures
        if request.method != failing or failures == 0:
            return None
        failures -= 1
        if how == "503":
            return web.Response(status=503)
        await request.content.read(1000)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    registry.before = breaking
    progress = Recorded()
    async with images(tmp_path, registry, progress=progress) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
        await store.put_blob(descriptor, lambda: source(DATA))
    assert registry.blobs[descriptor.digest] == DATA
    assert progress.moved == len(DATA)
    assert progress.events == ["started push", "finished", "skipped"]


async def test_an_upload_too_large_for_a_proxy_goes_in_pieces(registry: FakeRegistry, tmp_path: Path) -> None:
    data = b"0123456789abcdef" * 700_000
    descriptor = model.descriptor_of(data, model.OCI_LAYER)

    async def small(request: web.Request) -> web.StreamResponse | None:
        await request.read()
        return web.Response(status=413) if (request.content_length or 0) > 6 << 20 else None

    registry.before = small
    progress = Recorded()
    async with images(tmp_path, registry, progress=progress) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(data, 100_000))
    assert registry.blobs[descriptor.digest] == data
    assert len(registry.paths("PATCH")) == 3
    assert progress.moved == len(data)


@pytest.mark.parametrize("failing_at", [0, 1, 2])
@pytest.mark.parametrize("kept", ["all", "nothing", "forgotten"])
async def test_pieces_go_on_from_what_the_registry_has(
    failing_at: int, kept: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)
    pieces = 0

    async def breaking(request: web.Request) -> web.StreamResponse | None:
        nonlocal pieces
        if request.method != "PATCH":
            return None
        pieces += 1
        if pieces != failing_at + 1:
            return None
        upload = request.path.rpartition("/")[2]
        if kept == "all":
            registry.uploads[upload] += await request.read()
        elif kept == "forgotten":
            del registry.uploads[upload]
        return web.Response(status=502)

    registry.before = breaking
    progress = Recorded()
    async with images(tmp_path, registry, upload_chunk=100_000, progress=progress) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
    assert registry.blobs[descriptor.digest] == DATA
    assert progress.moved == len(DATA)
    assert pieces <= 3 + 1 + failing_at


@pytest.mark.parametrize("when", ["before", "after"])
async def test_pieces_are_sent_anew_if_the_registry_forgets_them_at_the_end(
    when: str, registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)
    closings = 0

    async def forgetting(request: web.Request) -> web.StreamResponse | None:
        nonlocal closings
        if request.method != "PUT":
            return None
        closings += 1
        if closings > 1:
            return None
        registry.uploads.clear()
        return web.Response(status=404) if when == "before" else web.Response(status=504)

    registry.before = forgetting
    progress = Recorded()
    async with images(tmp_path, registry, upload_chunk=100_000, progress=progress) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
    assert registry.blobs[descriptor.digest] == DATA
    assert progress.moved == len(DATA)


async def test_pieces_for_a_repository_that_cannot_be_are_not_tried_again(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    async def missing(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=404)

    registry.before = missing
    waits = Waits()
    async with images(tmp_path, registry, upload_chunk=100_000, waits=waits) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(ImageNotFound):
            await store.put_blob(model.descriptor_of(DATA, model.OCI_LAYER), lambda: source(DATA))
    assert waits.waited == []


async def test_what_is_asked_about_a_broken_upload_is_asked_at_its_last_place(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)
    pieces = 0

    async def moving(request: web.Request) -> web.StreamResponse | None:
        nonlocal pieces
        if request.method == "GET":
            # As Debian's registry does: the state in the place must be the newest.
            return None if request.query["state"] == "2" else web.Response(status=400)
        if request.method != "PATCH":
            return None
        pieces += 1
        if pieces == 3:
            return web.Response(status=502)
        registry.uploads["u0"] += await request.read()
        location = f"/v2/app/blobs/uploads/u0?state={pieces}"
        return web.Response(status=202, headers={"Location": location})

    registry.before = moving
    async with images(tmp_path, registry, upload_chunk=100_000) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
    assert registry.blobs[descriptor.digest] == DATA
    assert pieces == 4


async def test_a_registry_cannot_make_us_hold_as_much_as_it_likes(
    registry: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.oci.uploads._LARGEST_PIECE", 100_000)
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)

    async def greedy(request: web.Request) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        registry.uploads["u"] = bytearray()
        headers = {"Location": "/v2/app/blobs/uploads/u", "OCI-Chunk-Min-Length": "9999999999"}
        return web.Response(status=202, headers=headers)

    registry.before = greedy
    async with images(tmp_path, registry, upload_chunk=10_000) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
    assert len(registry.paths("PATCH")) == 3


async def test_pieces_are_at_least_as_large_as_the_registry_wants(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)

    async def minimum(request: web.Request) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        registry.uploads["u"] = bytearray()
        headers = {"Location": "/v2/app/blobs/uploads/u", "OCI-Chunk-Min-Length": "150000"}
        return web.Response(status=202, headers=headers)

    registry.before = minimum
    async with images(tmp_path, registry, upload_chunk=10) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, lambda: source(DATA))
    assert len(registry.paths("PATCH")) == 2


async def test_an_upload_whose_source_fails_fails_like_its_source(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)

    async def failing() -> AsyncIterator[bytes]:
        yield DATA[:1000]
        raise ImageNotFound("the source has gone")

    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(ImageNotFound, match="the source has gone"):
            await store.put_blob(descriptor, failing)
    assert registry.blobs == {}


async def test_an_upload_that_nobody_reads_is_given_up(registry: FakeRegistry, tmp_path: Path) -> None:
    data = b"x" * (30 << 20)
    descriptor = model.descriptor_of(data, model.OCI_LAYER)

    async def deaf(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PUT":
            await asyncio.Event().wait()
        return None

    registry.before = deaf
    timeouts = Timeouts(idle=0.1)
    async with images(tmp_path, registry, timeouts=timeouts, retries=Retries(attempts=2)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(Unreachable, match="no answer in time"):
            await store.put_blob(descriptor, lambda: source(data, 1 << 20))


async def test_leaving_an_upload_lets_go_of_its_source_and_its_slot(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    data = b"x" * (30 << 20)
    descriptor = model.descriptor_of(data, model.OCI_LAYER)
    begun, closed = asyncio.Event(), asyncio.Event()

    async def deaf(request: web.Request) -> web.StreamResponse | None:
        if request.method == "PUT":
            begun.set()
            await asyncio.Event().wait()
        return None

    async def held() -> AsyncIterator[bytes]:
        try:
            async for part in source(data, 1 << 20):
                yield part
        finally:
            closed.set()

    registry.before = deaf
    async with images(tmp_path, registry, concurrency=1) as opened, asyncio.timeout(10):
        store, _ = opened.store(f"{registry.host}/app")
        task = asyncio.create_task(store.put_blob(descriptor, held))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed.is_set()
        registry.before = None
        await store.put_blob(descriptor, lambda: source(data, 1 << 20))
    assert registry.blobs[descriptor.digest] == data


async def test_a_slow_source_does_not_look_like_a_dead_registry(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)

    async def slow() -> AsyncIterator[bytes]:
        for start in range(0, len(DATA), 30_000):
            await asyncio.sleep(0.12)
            yield DATA[start : start + 30_000]

    async with images(tmp_path, registry, timeouts=Timeouts(idle=1.0)) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        await store.put_blob(descriptor, slow)
    assert len(registry.paths("PUT")) == 1


async def test_a_registry_that_names_no_place_to_upload_to_is_refused(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    async def nowhere(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=202) if request.method == "POST" else None

    registry.before = nowhere
    descriptor = model.descriptor_of(DATA, model.OCI_LAYER)
    async with images(tmp_path, registry) as opened:
        store, _ = opened.store(f"{registry.host}/app")
        with pytest.raises(RegistryError, match="where to upload"):
            await store.put_blob(descriptor, lambda: source(DATA))


async def test_nothing_listens(tmp_path: Path) -> None:
    async with running() as gone:
        pass
    async with images(tmp_path, gone) as opened:
        store, tag = opened.store(f"{gone.host}/app:v1")
        with pytest.raises(Unreachable, match="connection refused"):
            await store.resolve(tag)


@pytest.mark.parametrize("host", ["nowhere.invalid", f"{'x' * 70}.invalid"])
async def test_no_such_host(host: str, tmp_path: Path) -> None:
    async with images(tmp_path) as opened:
        store, tag = opened.store(f"{host}/app:v1")
        with pytest.raises(Unreachable, match=rf"{host}.*no such host"):
            await store.resolve(tag)
