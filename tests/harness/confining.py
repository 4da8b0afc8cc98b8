"""The other side of `confined`: a process that has podium loaded and runs each command in a fork of itself.

Loading takes longer than most commands do. A request comes over the socket named on the command line: the
arguments as JSON, and four descriptors for standard input, output, error and the report.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import podium.cli
import podium.cli.bundle
import podium.cli.catalogs
import podium.cli.image
import podium.cli.publish

_ADDRESSES = 1 << 30
_SECONDS = 20


def serve(requests: socket.socket) -> None:
    """Fork for each request until nobody can send one any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not data:
            return
        if os.fork() == 0:
            requests.close()
            run(json.loads(data), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def run(request: dict[str, Any], descriptors: list[int]) -> None:
    """Run one command, report its exit code, time and memory, and end the process."""
    report = descriptors[3]
    os.write(report, b"%d\n" % os.getpid())
    for target, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, target)
        os.close(descriptor)
    for limit, value in ((resource.RLIMIT_AS, _ADDRESSES), (resource.RLIMIT_CPU, _SECONDS)):
        resource.setrlimit(limit, (value, value))
    os.chdir(request["folder"])
    if request["user"]:
        os.setgroups([])
        os.setgid(request["user"])
        os.setuid(request["user"])
    started = time.process_time()
    code = call(request["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    seconds = time.process_time() - started
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    os.write(report, f"{code} {seconds} {found[1] if found else 0}".encode())
    os._exit(0)


def call(arguments: list[str]) -> int:
    """The exit code of a command."""
    sys.argv = ["podium", *arguments]
    try:
        podium.cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        return 70
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
