"""Requests to an API server with nothing of our own in between.

For what a client would hide (headers, raw bodies, status codes) and for set-up that must work
before our client does. One connection per request; blocking, so call it from a thread in async tests.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sent back."""

    status: int
    headers: HTTPMessage
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class Plain:
    """The server and the user that a kubeconfig's current context names."""

    def __init__(self, kubeconfig: Path, *, timeout: float = 30) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        self._address = urlsplit(cluster["server"])
        self._tls = _tls(cluster, user, kubeconfig.parent)
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._timeout = timeout

    def request(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request; a body that is not bytes goes as JSON, unless headers name another type."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Accept": "application/json", **self._headers}
        if content is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = self._connect()
        try:
            connection.request(method, self._address.path.rstrip("/") + path, content, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "localhost", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port or 80, timeout=self._timeout)
        return http.client.HTTPSConnection(host, port or 443, timeout=self._timeout, context=self._tls)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https:"):
        return None
    authority = _content(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = (_content(user, name, folder) for name in ("client-certificate", "client-key"))
    if certificate and key:
        # The ssl module reads a client certificate only from a file.
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(certificate + b"\n" + key)
            pair.flush()
            context.load_cert_chain(pair.name)
    return context


def _content(entry: Mapping[str, Any], field: str, folder: Path) -> bytes | None:
    if f"{field}-data" in entry:
        return base64.b64decode(entry[f"{field}-data"])
    return (folder / entry[field]).read_bytes() if field in entry else None
