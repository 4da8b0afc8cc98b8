"""The embedded control plane as one process: the API server and the simulated workloads beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium import __version__
from podium.api.times import timestamp
from podium.apiserver.server import Server, Settings
from podium.run import instance
from podium.run.instance import Instance

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose."""

    data: Path
    port: int = 0
    simulate: bool = True


def configure_logging(verbose: bool) -> None:
    """Plain timestamped lines on stderr."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def run(options: Options, on_ready: Callable[[Instance], None]) -> None:
    """Hold the data directory and run until SIGINT or SIGTERM."""
    lock = instance.Lock(options.data)
    lock.acquire()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_until_stopped(options, on_ready))
    finally:
        instance.withdraw(options.data)
        lock.release()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # optional: an idle watch then costs five times the memory
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _until_stopped(options: Options, on_ready: Callable[[Instance], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with started(options) as server:
        started_at = timestamp(datetime.now(UTC))
        described = Instance(os.getpid(), server.url, __version__, started_at, options.simulate)
        instance.announce(options.data, described)
        on_ready(described)
        await stopped.wait()


@asynccontextmanager
async def started(options: Options) -> AsyncIterator[Server]:
    """A running control plane; leaving the context stops it in order."""
    async with Server(Settings(data=options.data, port=options.port)) as server:
        if not options.simulate:
            yield server
            return
        from podium.kube import Client, Config
        from podium.run.inprocess import InProcessTransport
        from podium.simulator import Simulator

        config = Config(server.url, token=server.admin_token)
        transport = InProcessTransport(server.gateway)
        client = Client(config, transport=transport, user_agent="podium-simulator", on_warning=_ignore)
        async with client:
            simulation = asyncio.create_task(Simulator(client).run())
            simulation.add_done_callback(_report)
            try:
                yield server
            finally:
                simulation.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await simulation


def _ignore(_: str) -> None:
    """Advice about deprecated kinds is for people; the simulator writes Endpoints on purpose."""


def _report(simulation: asyncio.Task[None]) -> None:
    if not simulation.cancelled() and (error := simulation.exception()):
        log.error("the simulator stopped: workloads do not move any more", exc_info=error)
