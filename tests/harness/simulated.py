"""Simulated nodes next to a control plane that has none, so that Pods are bound, become ready and end.

The simulator is a client like any other. It has a thread and an event loop of its own, since tests may block.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from podium.kube import Client, load_config
from podium.simulator import Simulator

START_TIMEOUT = 30.0


@contextlib.contextmanager
def nodes(kubeconfig: Path) -> Iterator[None]:
    """The node half of the simulator, for as long as the context lasts."""
    started: Future[_Running] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(_simulate(kubeconfig, started)), name="simulated nodes", daemon=True
    )
    thread.start()
    running = started.result(START_TIMEOUT)
    try:
        yield
    finally:
        running.loop.call_soon_threadsafe(running.stopped.set)
        thread.join()


@dataclass(frozen=True, slots=True)
class _Running:
    loop: asyncio.AbstractEventLoop
    stopped: asyncio.Event


async def _simulate(kubeconfig: Path, started: Future[_Running]) -> None:
    try:
        async with Client(load_config(kubeconfig)) as client:
            simulator = Simulator(client, workloads=False)
            task = asyncio.create_task(simulator.run())
            await simulator.settled()
            stopped = asyncio.Event()
            started.set_result(_Running(asyncio.get_running_loop(), stopped))
            await stopped.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    except BaseException as error:
        if not started.done():
            started.set_exception(error)
        raise
