"""The real registry (Debian's docker-registry) on the loopback address, and skopeo to talk to it.

A registry keeps its content in a directory that a test may tamper with. It speaks plain HTTP or TLS, and
lets in everybody, one user (Basic), or whoever has a token from a `TokenService`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest
import trustme
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from harness.processes import Group
from harness.tls import Authority

USER, PASSWORD = "podium", "pa:ss word"
# bcrypt of the password above at the lowest cost; the registry knows no other kind.
_HTPASSWD = "podium:$2b$04$abcdefghijklmnopqrstuuPMR.XtQeAifPH2VcwUTuTZ49dCaHuiW\n"
_LISTENING = re.compile(r"listening on (127\.0\.0\.1:\d+)")


def program(name: str) -> str:
    """The path of an installed program; fails the test with the remedy if it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed: apt-get install docker-registry skopeo umoci", pytrace=False)
    return found


@dataclass(frozen=True)
class RealRegistry:
    """A running registry: its host as references name it, and where it keeps its content."""

    host: str
    storage: Path
    log: Path

    def blob_file(self, digest: str) -> Path:
        """The file of a blob or manifest."""
        encoded = digest.removeprefix("sha256:")
        return self.storage / "docker/registry/v2/blobs/sha256" / encoded[:2] / encoded / "data"


class TokenService:
    """Signs tokens that a registry trusts; `handle` answers requests for them."""

    def __init__(self, realm: str) -> None:
        self.realm = realm
        self.asked: list[tuple[str, list[str]]] = []
        authority = trustme.CA()
        self._identity = authority.issue_cert("tokens.example")
        self._root = authority.cert_pem.bytes()

    def configuration(self, directory: Path) -> dict[str, Any]:
        """What the registry has to be told."""
        root = directory / "token-root.pem"
        root.write_bytes(self._root)
        token = {"realm": self.realm, "service": "real", "issuer": "tests", "rootcertbundle": str(root)}
        return {"token": token}

    async def handle(self, request: web.Request) -> web.StreamResponse | None:
        """A token: the user may do everything, everybody may pull below `public/`."""
        user = request.headers.get("Authorization", "")
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if user not in ("", expected):
            return web.Response(status=401)
        scopes = request.query.getall("scope", [])
        self.asked.append((user, scopes))
        return web.json_response({"token": self._token(scopes, known=bool(user)), "expires_in": 120})

    def _token(self, scopes: list[str], *, known: bool) -> str:
        access = []
        for scope in scopes:
            kind, _, rest = scope.partition(":")
            name, _, actions = rest.rpartition(":")
            allowed = actions.split(",") if known else ["pull"] if name.startswith("public/") else []
            access.append({"type": kind, "name": name, "actions": allowed})
        now = int(time.time())
        claims = {"iss": "tests", "sub": "x", "aud": "real", "jti": uuid.uuid4().hex, "access": access}
        times = {"iat": now, "nbf": now - 5, "exp": now + 120}
        certificate = x509.load_pem_x509_certificate(self._identity.cert_chain_pems[0].bytes())
        chain = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]
        key = self._identity.private_key_pem.bytes()
        return jwt.encode(claims | times, key, algorithm="ES256", headers={"x5c": chain})


@contextmanager
def running(
    directory: Path,
    *,
    authority: Authority | None = None,
    basic: bool = False,
    tokens: TokenService | None = None,
) -> Iterator[RealRegistry]:
    """A registry with its content below a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    storage, log, file = directory / "storage", directory / "log", directory / "config.json"
    configuration: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(storage)}, "delete": {"enabled": True}},
        "http": {"addr": "127.0.0.1:0", "secret": "tests"},
    }
    if authority is not None:
        certificate, key = directory / "server.pem", directory / "server.key"
        authority.files("localhost", certificate, key)
        configuration["http"]["tls"] = {"certificate": str(certificate), "key": str(key)}
    if basic:
        passwords = directory / "htpasswd"
        passwords.write_text(_HTPASSWD)
        configuration["auth"] = {"htpasswd": {"realm": "tests", "path": str(passwords)}}
    if tokens is not None:
        configuration["auth"] = tokens.configuration(directory)
    file.write_text(json.dumps(configuration))  # YAML reads JSON
    log.touch()
    group = Group()
    try:
        server = group.start([program("docker-registry"), "serve", str(file)], log=log)
        group.wait_until(lambda: _LISTENING.search(log.read_text()) is not None, server, timeout=20)
        address = _LISTENING.search(log.read_text())
        assert address is not None
        host = address[1].replace("127.0.0.1", "localhost") if authority else address[1]
        yield RealRegistry(host, storage, log)
    finally:
        group.stop()


@dataclass
class Skopeo:
    """The real skopeo, with a home of its own."""

    home: Path
    environ: dict[str, str] = field(default_factory=dict)

    async def run(self, *arguments: str, ok: bool = True) -> str:
        """What it prints; fails with what it complains about."""
        process = await asyncio.create_subprocess_exec(
            program("skopeo"),
            "--insecure-policy",
            *arguments,
            env={
                "HOME": str(self.home),
                "PATH": "/usr/bin:/bin",
                "XDG_RUNTIME_DIR": str(self.home),
                **self.environ,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, complaint = await process.communicate()
        assert (process.returncode == 0) is ok, complaint.decode()
        return output.decode()
