"""The embedded server against the real kube-apiserver and etcd: the same requests to one after the other.

Rounds alternate between the servers so that a noisy neighbour hits both; each figure is the median of the
rounds. Both sync every write to disk before they answer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import Connection, Target, config_map, measure, target

from harness.real import RealControlPlane

PATH = "/api/v1/namespaces/default/configmaps"
WRITES, READS, BIG, WATCHERS, ROUNDS = 400, 1000, 10_000, 100, 3
READY_SECONDS = 60.0


@dataclass
class Running:
    """A started control plane and what it cost."""

    kubeconfig: Path
    startup: float
    pids: list[int]

    def resident_mib(self) -> float:
        """Resident memory of all its processes."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_seconds(self) -> float:
        fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids)
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")


@contextmanager
def embedded(*, simulate: bool) -> Iterator[Running]:
    """`podium up` in a process of its own."""
    data = Path(tempfile.mkdtemp(prefix="podium-bench-"))
    flag = "--simulate" if simulate else "--no-simulate"
    begin = time.perf_counter()
    command = [sys.executable, "-m", "podium", "up", "--data", str(data), flag]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert process.stderr is not None
        assert b"ready at" in process.stderr.readline()
        yield Running(data / "kubeconfig", time.perf_counter() - begin, [process.pid])
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(data)


@contextmanager
def real(*, controller_manager: bool) -> Iterator[Running]:
    """etcd and kube-apiserver, and the controller-manager where its work is compared too."""
    begin = time.perf_counter()
    with RealControlPlane(controller_manager=controller_manager) as plane:
        startup = time.perf_counter() - begin
        yield Running(plane.kubeconfig, startup, [server.process.pid for server in plane.servers.values()])


async def requests(to: Target) -> dict[str, float]:
    """Rates and latencies of single requests, at 1 and 8 clients."""
    figures: dict[str, float] = {}
    for clients in (1, 8):
        tag = f"c{clients}-{time.monotonic_ns()}"

        async def create(connection: Connection, number: int, tag: str = tag) -> None:
            await connection.request("POST", PATH, config_map(f"{tag}-{number}"))

        async def update(connection: Connection, number: int, tag: str = tag) -> None:
            body = b'{"data":{"value":"%d"}}' % number
            path = f"{PATH}/{tag}-{number}"
            await connection.request("PATCH", path, body, "application/merge-patch+json")

        async def get(connection: Connection, number: int, tag: str = tag) -> None:
            await connection.request("GET", f"{PATH}/{tag}-{number % WRITES}")

        for name, one, total in (("create", create, WRITES), ("update", update, WRITES), ("get", get, READS)):
            rate = await measure(to, clients, total, one)
            figures[f"{name}, {clients} client{'s' * (clients > 1)} (per second)"] = rate.per_second
            figures[f"{name}, {clients} client{'s' * (clients > 1)} p95 (ms)"] = rate.p95_ms
        rate = await measure(to, clients, 100, _list_some)
        figures[f"list of 100, {clients} client{'s' * (clients > 1)} (per second)"] = rate.per_second
    return figures


async def _list_some(connection: Connection, _: int) -> None:
    await connection.request("GET", f"{PATH}?labelSelector=app%3Dbench&limit=100")


async def big_list(to: Target) -> dict[str, float]:
    """Lists of many objects."""

    async def create(connection: Connection, number: int) -> None:
        await connection.request("POST", PATH, config_map(f"big-{number}"))

    await measure(to, 8, BIG, create)
    connection = await Connection(to).open()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        body = await connection.request("GET", PATH)
        times.append(time.perf_counter() - begin)
    connection.close()
    assert body.count(b'"uid"') >= BIG
    return {f"list of {BIG:,} objects (ms)": statistics.median(times) * 1000}


async def watches(to: Target) -> dict[str, float]:
    """From a write to its event, for one watcher and for a hundred."""
    figures: dict[str, float] = {}
    writer = await Connection(to).open()
    version = (
        (await writer.request("GET", f"{PATH}?limit=1"))
        .split(b'"resourceVersion":"')[1]
        .split(b'"')[0]
        .decode()
    )
    for count in (1, WATCHERS):
        connections = [await Connection(to).open() for _ in range(count)]
        streams = [await c.lines(f"{PATH}?watch=true&resourceVersion={version}") for c in connections]
        tag = f"w{count}-{time.monotonic_ns()}"
        latencies = []
        for number in range(-1, 50 if count == 1 else 20):
            marker = f'"name":"{tag}-{number}"'.encode()
            begin = time.perf_counter()
            seen = [asyncio.create_task(_until(stream, marker)) for stream in streams]
            await writer.request("POST", PATH, config_map(f"{tag}-{number}"))
            await asyncio.gather(*seen)
            if number >= 0:  # the first one also reads what came before
                latencies.append(time.perf_counter() - begin)
        for connection in connections:
            connection.close()
        name = "watch latency" if count == 1 else f"fan-out to {count} watchers"
        figures[f"{name} p50 (ms)"] = statistics.median(latencies) * 1000
        figures[f"{name} p95 (ms)"] = statistics.quantiles(latencies, n=20)[18] * 1000
    writer.close()
    return figures


async def _until(stream: asyncio.StreamReader, marker: bytes) -> None:
    while True:
        line = await asyncio.wait_for(stream.readline(), 30)
        if marker in line:
            return


def compare() -> list[tuple[str, float, float]]:
    """Every row: name, embedded, real."""
    rows: dict[str, tuple[list[float], list[float]]] = {}

    def add(name: str, side: int, value: float) -> None:
        rows.setdefault(name, ([], []))[side].append(value)

    for number in range(ROUNDS):
        for side in (0, 1):
            start = embedded(simulate=False) if side == 0 else real(controller_manager=False)
            with start as server:
                add("start-up to ready, API server alone (s)", side, server.startup)
                time.sleep(5)
                add("idle memory, API server alone (MiB)", side, server.resident_mib())
                used = server.cpu_seconds()
                time.sleep(5)
                add("idle CPU (% of a core)", side, (server.cpu_seconds() - used) / 5 * 100)
                to = target(server.kubeconfig)
                figures = asyncio.run(requests(to)) | asyncio.run(watches(to))
                if number == 0:
                    figures |= asyncio.run(big_list(to))
                    add(f"memory with {BIG:,} more objects (MiB)", side, server.resident_mib())
                for name, value in figures.items():
                    add(name, side, value)
            start = embedded(simulate=True) if side == 0 else real(controller_manager=True)
            with start as server:
                add("start-up to ready, with controllers (s)", side, server.startup)
                time.sleep(8)
                add("idle memory, with controllers (MiB)", side, server.resident_mib())
        print(f"  round {number + 1} of {ROUNDS} done", file=sys.stderr, flush=True)
    return [(name, statistics.median(a), statistics.median(b)) for name, (a, b) in rows.items()]
