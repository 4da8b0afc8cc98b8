"""`make demo`: publish an operator, then see the embedded control plane at work, all in scratch folders."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import controlplane
import publishing


def main() -> None:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="podium-demo-") as folder:
        publishing.tour(Path(folder))
    asyncio.run(controlplane.tour())
    print(f"\nDone in {time.perf_counter() - begin:.1f} s.")
    print("Start your own operator with: .venv/bin/podium bundle init my-operator")
    print("Keep a control plane running with: .venv/bin/podium up --detach")


if __name__ == "__main__":
    main()
