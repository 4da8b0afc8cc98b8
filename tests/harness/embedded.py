"""The embedded control plane, in this process but on a thread and event loop of its own.

So a test may block (kubectl, plain requests) while the server goes on answering. Workloads are simulated, as
they are for a user.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from podium.run.controlplane import Options, started

START_TIMEOUT = 30.0


class EmbeddedControlPlane:
    """An embedded server that runs while the context lasts; `kubeconfig` makes its reader an admin."""

    def __init__(self, *, simulate: bool = True) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded server", daemon=True)
        self.directory = Path(tempfile.mkdtemp(prefix="podium-embedded-"))
        self._plane = started(Options(data=self.directory, simulate=simulate))

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig whose user may do everything."""
        return self.directory / "kubeconfig"

    def start(self) -> None:
        """Start the server and return when it is ready."""
        self._thread.start()
        try:
            self._call(self._plane.__aenter__())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Stop the server and remove its data."""
        try:
            self._call(self._plane.__aexit__(None, None, None))
        finally:
            self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _call(self, work: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(START_TIMEOUT)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self.directory, ignore_errors=True)
