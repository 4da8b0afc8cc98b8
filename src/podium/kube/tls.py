"""TLS set up the way Kubernetes needs it from Python.

Python's ssl loads a client certificate only from files, so one given as data is written to a private
directory for the length of the call and removed at once. OpenSSL's strict mode (the default of newer Pythons)
is off: it refuses certificate authorities that Go, and so every cluster, accepts.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from podium.kube.auth import Certificate
from podium.kube.config import Config
from podium.kube.errors import ConfigError


def tls_context(config: Config, certificate: Certificate | None) -> ssl.SSLContext:
    """The context for connections to the server, showing this client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if config.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif config.ca:
        # A certificate that the user names is trusted by itself, whether or not it signed itself.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(context, config)
    else:
        context.load_default_certs()
    if certificate is not None:
        _show(context, certificate, config.origin)
    return context


def _trust(context: ssl.SSLContext, config: Config) -> None:
    where = f"{config.origin}: certificate-authority"
    text = config.ca.read(where)
    try:
        context.load_verify_locations(cadata=text.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError(f"{where}: not a PEM certificate ({_reason(error)})") from error


def _show(context: ssl.SSLContext, certificate: Certificate, origin: str) -> None:
    with tempfile.TemporaryDirectory(prefix="podium-tls-") as directory:
        certificate_file, key_file = Path(directory, "certificate"), Path(directory, "key")
        _write_private(certificate_file, certificate.certificate)
        _write_private(key_file, certificate.key)
        try:
            # An encrypted key would otherwise make OpenSSL ask on the terminal.
            context.load_cert_chain(certificate_file, key_file, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{origin}: the client certificate and key do not fit or are not PEM ({_reason(error)})"
            ) from error


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _no_password() -> str:
    raise ValueError("the key is encrypted; give it without a passphrase")


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
