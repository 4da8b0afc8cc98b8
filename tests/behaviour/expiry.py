"""Making the server forget: the changes behind resourceVersion 1 are gone afterwards.

The embedded server keeps history only of its own run, so that version is always too old for it. The real one
forgets when etcd is told to compact, which its HTTP gateway does. Its watch caches go on answering for what
they hold, and those of built-in kinds may reach back to version 1, so ask about custom resources.
"""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path

import pytest

from harness.plain import Plain
from harness.plane import ControlPlane


def expire_history(control_plane: ControlPlane, plain: Plain) -> None:
    """Forget everything before now."""
    if control_plane.kind == "embedded":
        return
    etcd = Path(control_plane.kubeconfig).parent / "etcd.sock"
    if not etcd.exists():
        pytest.skip("the etcd of a cluster that somebody else runs cannot be compacted")
    newest = plain.request("GET", "/api/v1/namespaces?limit=1").json()["metadata"]["resourceVersion"]
    connection = _OverSocket(etcd)
    connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": newest}))
    answer = connection.getresponse()
    # Somebody else of this run may have compacted as far already.
    body = answer.read().decode()
    assert answer.status == 200 or "has been compacted" in body, body
    connection.close()


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))
