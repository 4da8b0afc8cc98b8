"""The cluster that the end-to-end tests here use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from simulator.cluster import Cluster, running


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """An embedded server with a settled simulator."""
    async with running(tmp_path) as cluster:
        await cluster.start()
        yield cluster
