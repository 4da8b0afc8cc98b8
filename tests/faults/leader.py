"""A candidate for leadership in a process of its own: prints what it does, and when (monotonic seconds)."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from podium.kube import Client, load_config
from podium.kube.leases import LeaderElection, LeadershipLost, LeaseTimes


def say(word: str, moment: float) -> None:
    print(word, moment, flush=True)


async def main(kubeconfig: str, identity: str) -> None:
    async with Client(load_config(Path(kubeconfig))) as client:
        election = LeaderElection(client, "default", "paused", identity, times=LeaseTimes(2.0, 1.2, 0.2))

        async def lead() -> None:
            say("leading", time.monotonic())
            while True:
                await asyncio.sleep(0.01)
                now = time.monotonic()
                # The fencing check that a leader makes before each act.
                say("act" if election.is_leader() else "refrain", now)

        while True:
            try:
                await election.run(lead)
            except LeadershipLost:
                say("lost", time.monotonic())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
