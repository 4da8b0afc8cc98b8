"""TLS for registries: which authorities are trusted for a host, and which client certificate it is shown.

As containers/image does it: the first `certs.d/<host[:port]>` directory that exists counts, `*.crt` add to
what the system trusts, `*.cert` with its `*.key` is shown to that host. SSL_CERT_FILE and SSL_CERT_DIR
replace the system's own.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path

from podium.oci.errors import BadSetup
from podium.oci.settings import Settings


class Certificates:
    """TLS contexts by host, made once each."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._contexts: dict[tuple[str, str, bool], ssl.SSLContext] = {}

    def context(self, host: str, *, registry: str, verify: bool = True) -> ssl.SSLContext:
        """The context for a host to which the registry has led (or which it is)."""
        key = (host, registry, verify)
        if key not in self._contexts:
            self._contexts[key] = self._made(host, registry, verify)
        return self._contexts[key]

    def _made(self, host: str, registry: str, verify: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # A certificate that the user names is trusted by itself, whether or not it signed itself.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if verify:
            self._trust_system(context)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        # A company's token server is signed by the company, and nobody writes a directory for it too.
        for name in {host, registry}:
            directory = self._directory(name)
            if directory is not None:
                _trust(context, directory)
        if (own := self._directory(host)) is not None:
            _show(context, own)
        return context

    def _trust_system(self, context: ssl.SSLContext) -> None:
        file = self._settings.environ.get("SSL_CERT_FILE")
        directory = self._settings.environ.get("SSL_CERT_DIR")
        if not file and not directory:
            context.load_default_certs()
            return
        try:
            context.load_verify_locations(cafile=file or None, capath=directory or None)
        except OSError as error:
            raise BadSetup(
                f"SSL_CERT_FILE={file or ''} SSL_CERT_DIR={directory or ''}: {_reason(error)}"
            ) from error

    def _directory(self, host: str) -> Path | None:
        for base in self._bases():
            directory = base / host
            try:
                if directory.is_dir():
                    return directory
            except PermissionError:
                continue
        return None

    def _bases(self) -> Iterator[Path]:
        yield from self._settings.cert_dirs
        yield self._settings.config_home / "containers" / "certs.d"
        rooted = "certs.rootful.d" if os.geteuid() == 0 else "certs.rootless.d"
        for base in (self._settings.etc, self._settings.share):
            if os.geteuid() != 0:
                yield base / "containers" / rooted / str(os.geteuid())
            yield base / "containers" / rooted
            yield base / "containers" / "certs.d"
        yield self._settings.etc / "docker" / "certs.d"


def _trust(context: ssl.SSLContext, directory: Path) -> None:
    for file in _files(directory, ".crt"):
        try:
            context.load_verify_locations(cafile=file)
        except OSError as error:
            raise BadSetup(f"{file}: not a PEM certificate authority ({_reason(error)})") from error


def _show(context: ssl.SSLContext, directory: Path) -> None:
    for certificate in _files(directory, ".cert"):
        key = certificate.with_suffix(".key")
        if not key.is_file():
            raise BadSetup(f"{certificate} has no key beside it: add {key.name}, or name an authority *.crt")
        try:
            # An encrypted key would otherwise make OpenSSL ask on the terminal.
            context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise BadSetup(
                f"{certificate} and {key.name} do not fit or are not PEM ({_reason(error)})"
            ) from error
    for key in _files(directory, ".key"):
        if not key.with_suffix(".cert").is_file():
            raise BadSetup(f"{key} has no certificate beside it: add {key.with_suffix('.cert').name}")


def _files(directory: Path, suffix: str) -> list[Path]:
    try:
        return sorted(file for file in directory.iterdir() if file.name.endswith(suffix))
    except OSError as error:
        raise BadSetup(f"{directory} cannot be read: {error.strerror}") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted; give it without a passphrase")


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
