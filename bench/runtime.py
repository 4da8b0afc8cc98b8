"""The controller runtime by itself: reconciles per second, and what a cached object costs."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench.load import Connection, config_map, measure, target
from bench.servers import PATH, embedded

from podium.kube import GVK, Client, Key, load_config
from podium.kube.cache import Caches
from podium.kube.controller import Controller
from podium.kube.source import Channel

RECONCILES, OBJECTS = 10_000, 100_000
CONFIG_MAP = GVK("", "v1", "ConfigMap")


def resident() -> int:
    """Resident memory of this process in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def reconciles(client: Client) -> dict[str, float]:
    """10,000 reconciles that find nothing to do: queue, workers and bookkeeping."""
    seen = 0
    finished = asyncio.Event()

    async def reconcile(_: Key) -> None:
        nonlocal seen
        seen += 1
        if seen == RECONCILES:
            finished.set()

    channel = Channel()
    controller = Controller("bench", reconcile, [channel], workers=4)
    await controller.start(Caches(client))
    cpu, begin = time.process_time(), time.perf_counter()
    for number in range(RECONCILES):
        channel.send(Key("default", f"object-{number}"))
    await finished.wait()
    cpu, elapsed = time.process_time() - cpu, time.perf_counter() - begin
    await controller.stop()
    return {
        f"{RECONCILES:,} no-op reconciles (CPU s)": cpu,
        "no-op reconciles per second": RECONCILES / elapsed,
    }


async def cache_cost(client: Client, name: str, *, metadata_only: bool) -> dict[str, float]:
    """What it takes to hold every object, whole or as metadata."""
    shared = Caches(client)
    await client.discovery.resources()
    before, begin, cpu = resident(), time.perf_counter(), time.process_time()
    cache = shared.acquire(CONFIG_MAP, metadata_only=metadata_only)
    await cache.synced()
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    assert len(cache) >= OBJECTS
    cost = (resident() - before) / len(cache)
    await shared.release(cache)
    return {
        f"{name}: filled with {OBJECTS:,} objects (s)": elapsed,
        f"{name}: filled with {OBJECTS:,} objects (CPU s)": cpu,
        f"{name}: bytes per object": cost,
    }


def _in_own_process(work: Callable[[Path], dict[str, float]], kubeconfig: Path) -> dict[str, float]:
    """Run one measurement in a fresh process: memory that was once used is not given back."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, kubeconfig).result()


def _reconciles(kubeconfig: Path) -> dict[str, float]:
    return _with_client(kubeconfig, reconciles)


def _cache(kubeconfig: Path) -> dict[str, float]:
    return _with_client(kubeconfig, lambda client: cache_cost(client, "cache", metadata_only=False))


def _metadata_cache(kubeconfig: Path) -> dict[str, float]:
    return _with_client(kubeconfig, lambda client: cache_cost(client, "metadata cache", metadata_only=True))


def _with_client(kubeconfig: Path, work: Callable[[Client], Awaitable[dict[str, float]]]) -> dict[str, float]:
    async def run() -> dict[str, float]:
        async with Client(load_config(kubeconfig)) as client:
            return await work(client)

    return asyncio.run(run())


async def _fill(kubeconfig: Path) -> None:
    async def create(connection: Connection, number: int) -> None:
        await connection.request("POST", PATH, config_map(f"many-{number:06}"))

    await measure(target(kubeconfig), 8, OBJECTS, create)


def figures() -> list[tuple[str, float]]:
    """Every row: name and value."""
    found: dict[str, float] = {}
    with embedded(simulate=False) as server:
        asyncio.run(_fill(server.kubeconfig))
        for work in (_reconciles, _cache, _metadata_cache):
            found |= _in_own_process(work, server.kubeconfig)
        found[f"embedded server: memory with {OBJECTS:,} objects (MiB)"] = server.resident_mib()
    return list(found.items())
