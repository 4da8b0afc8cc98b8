"""Registries whose answers are without end, or not what they should be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness.confined import MIB, podium

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
DIGEST = "sha256:" + "0" * 64
REPEATED = 1 << 30


class Hostile(ThreadingHTTPServer):
    """Answers every request in the same way."""

    daemon_threads = True
    body: bytes = b""
    endless: bool = False
    status: int = 200
    headers: dict[str, str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that have seen enough are no error."""


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hostile

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v2":
            self._answer(200, {}, b"{}")
            return
        self._answer(self.server.status, self.server.headers, self.server.body, self.server.endless)

    do_HEAD = do_POST = do_GET  # noqa: N815

    def _answer(self, status: int, headers: dict[str, str], body: bytes, endless: bool = False) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value.replace("HOST", f"127.0.0.1:{self.server.server_address[1]}"))
        self.send_header("Content-Length", str(REPEATED if endless else len(body)))
        self.end_headers()
        if self.command != "HEAD":
            for _ in range(REPEATED // len(body) if endless else 1):
                self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def registry() -> Iterator[Hostile]:
    server = Hostile(("127.0.0.1", 0), Answer)
    server.headers = {}
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def layers(count: int) -> bytes:
    part = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": DIGEST, "size": 1}
    return json.dumps(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": part, "layers": [part] * count}
    ).encode()


MANIFESTS: dict[str, tuple[str, bytes]] = {
    "nothing": (MANIFEST, b""),
    "no JSON": (MANIFEST, b"<html>" * 1000),
    "a list": (MANIFEST, b"[]"),
    "null": (INDEX, b"null"),
    "a text": (MANIFEST, b'"manifest"'),
    "nested deeply": (MANIFEST, b'{"layers":' + b"[" * 100_000),
    "no UTF-8": (MANIFEST, b'{"schemaVersion":2,"config":"\xff"}'),
    "config that is a text": (MANIFEST, b'{"schemaVersion":2,"config":"x","layers":[]}'),
    "layers that are texts": (MANIFEST, b'{"schemaVersion":2,"config":{},"layers":["a"]}'),
    "manifests that are numbers": (INDEX, b'{"schemaVersion":2,"manifests":[1]}'),
    "100,000 layers": (MANIFEST, layers(100_000)),
    "an unknown media type": ("text/html", layers(1)),
    "an escape sequence": ("\x1b[2J", layers(1)),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_none_is_refused(name: str, registry: Hostile) -> None:
    media_type, registry.body = MANIFESTS[name]
    registry.headers = {"Content-Type": media_type}
    host = f"127.0.0.1:{registry.server_address[1]}"
    for command in (("image", "inspect"), ("catalog", "validate")):
        run = podium(*command, f"{host}/a/b:1", "--plain-http", host)
        run.assert_refused()
        assert "\x1b" not in run.words


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_without_an_end_is_not_read_to_its_end(status: int, registry: Hostile) -> None:
    registry.body, registry.endless, registry.status = b"{" * MIB, True, status
    registry.headers = {"Content-Type": MANIFEST}
    host = f"127.0.0.1:{registry.server_address[1]}"
    podium("image", "inspect", f"{host}/a/b@{DIGEST}", "--plain-http", host).assert_refused()


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"tags":5}',
        b'{"tags":[1]}',
        b'{"tags":{"a":1}}',
        b"{" * 100_000,
        b"\xff",
        b'{"tags":["\\u001b[2J"]}',
    ],
)
def test_a_list_of_tags_that_is_none_does_no_harm(body: bytes, registry: Hostile) -> None:
    registry.body = body
    host = f"127.0.0.1:{registry.server_address[1]}"
    run = podium("image", "ls", f"{host}/a/b", "--plain-http", host)
    run.assert_bounded()
    assert "\x1b" not in run.words


@pytest.mark.parametrize(
    "link", ["</v2/a/b/tags/list?last=a>; rel=next", "<http://HOST/v2/a/b/tags/list>; rel=next"]
)
def test_a_list_of_tags_that_goes_on_forever_is_refused(link: str, registry: Hostile) -> None:
    registry.body, registry.headers = b'{"tags":["a"]}', {"Link": link}
    host = f"127.0.0.1:{registry.server_address[1]}"
    podium("image", "ls", f"{host}/a/b", "--plain-http", host).assert_bounded()


@pytest.mark.parametrize(
    "to", ["http://HOST/again", "/v2/", "file:///etc/passwd", "gopher://HOST/", "\\\\x", "//"]
)
def test_a_redirect_that_leads_nowhere_ends(to: str, registry: Hostile) -> None:
    registry.status, registry.headers = 307, {"Location": to}
    host = f"127.0.0.1:{registry.server_address[1]}"
    run = podium("image", "inspect", f"{host}/a/b:1", "--plain-http", host)
    run.assert_refused()
    assert "root:" not in run.words
