"""A leader whose process is paused must not act when it wakes, because another leads by then."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.run.controlplane import Options, started

CANDIDATE = Path(__file__).with_name("leader.py")


class Candidate:
    """One process and the words it prints."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def says(self, *words: str) -> tuple[str, float]:
        """The next line that begins with one of these words: the word and its moment."""
        assert self.process.stdout is not None
        while True:
            line = (await asyncio.wait_for(self.process.stdout.readline(), 20)).decode().split()
            assert line, "the candidate died"
            if line[0] in words:
                return line[0], float(line[1])


@asynccontextmanager
async def candidate(kubeconfig: Path, identity: str) -> AsyncIterator[Candidate]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CANDIDATE), str(kubeconfig), identity, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Candidate(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.kill()
        await process.wait()


async def test_a_leader_that_was_paused_never_acts_while_another_leads(tmp_path: Path) -> None:
    async with (
        started(Options(data=tmp_path, simulate=False)) as server,
        candidate(server.kubeconfig, "first") as first,
    ):
        await first.says("leading")
        async with candidate(server.kubeconfig, "second") as second:
            await first.says("act")
            first.process.send_signal(signal.SIGSTOP)
            _, taken_over = await second.says("leading")
            first.process.send_signal(signal.SIGCONT)
            word, moment = "act", 0.0
            while word == "act":  # what it did before the pause is still in the pipe
                word, moment = await first.says("act", "refrain", "lost")
                assert word != "act" or moment < taken_over
            assert moment > taken_over
            assert (await second.says("act", "refrain", "lost"))[0] == "act"
