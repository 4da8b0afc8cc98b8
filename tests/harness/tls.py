"""Certificates for tests: an authority that lives as long as the test run."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Authority:
    """A certificate authority, the servers it vouches for and the clients it knows."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def file(self, directory: Path) -> Path:
        """The authority's certificate in a file."""
        file = directory / "authority.pem"
        self._ca.cert_pem.write_to_path(str(file))
        return file

    def server(self, name: str, *, asks_clients: bool = False) -> ssl.SSLContext:
        """What a server of this name needs; it may ask its clients for certificates of the same authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._ca.issue_cert(name).configure_cert(context)
        if asks_clients:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def files(self, name: str, certificate: Path, key: Path) -> None:
        """Write the certificate and key of somebody into files."""
        issued = self._ca.issue_cert(name)
        key.write_bytes(issued.private_key_pem.bytes())
        certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
