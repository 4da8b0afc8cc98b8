"""How to reach one API server and who to be there: plain frozen values, and the in-cluster set-up.

A `Config` says everything that the transport and the log-in need and does no I/O itself, so tests build one
directly. `podium.kube.kubeconfig` makes one from kubeconfig files. Secrets never show in a `repr`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.kube.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class PEM:
    """A certificate or key: its text, or the file that holds it (read again whenever it is needed)."""

    data: bytes = field(default=b"", repr=False)
    file: str = ""

    def read(self, what: str) -> bytes:
        """The text; ConfigError naming `what` if the file cannot be read."""
        if self.data:
            return self.data
        try:
            return Path(self.file).read_bytes()
        except OSError as error:
            raise ConfigError(f"{what}: cannot read {self.file}: {error.strerror or error}") from error

    def __bool__(self) -> bool:
        return bool(self.data or self.file)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials (the `exec` section of a kubeconfig user)."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"  # Never | IfAvailable | Always
    # The cluster as the plugin is to see it (KUBERNETES_EXEC_INFO), if it asked for it.
    cluster_info: Mapping[str, Any] | None = None
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as; the server checks that the caller may."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """One API server and one identity. Only `server` is required."""

    server: str
    namespace: str = "default"  # where single objects live if nobody says
    ca: PEM = PEM()  # empty: the system's certificate authorities
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    client_certificate: PEM = PEM()
    client_key: PEM = PEM()
    token: str = field(default="", repr=False)
    token_file: str = ""  # read at most once a minute, and after a 401
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecPlugin | None = None
    impersonate: Impersonation | None = None
    proxy_url: str = field(default="", repr=False)  # may hold a password
    disable_compression: bool = False
    connect_timeout: float = 10.0
    request_timeout: float = 60.0  # per attempt, until the last byte of the answer; not for watches
    watch_idle_timeout: float = 300.0  # a healthy server sends a bookmark about every minute
    max_connections: int = 64  # requests in flight at once; watches do not count
    origin: str = "configuration"  # where this came from, for error messages


def in_cluster(
    environ: Mapping[str, str] | None = None, *, service_account: Path = SERVICE_ACCOUNT
) -> Config:
    """The set-up inside a Pod, from its service account; ConfigError outside of one."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
            "name a kubeconfig file with KUBECONFIG instead"
        )
    token, ca, namespace = (service_account / name for name in ("token", "ca.crt", "namespace"))
    if not token.is_file():
        raise ConfigError(
            f"in a cluster, but {token} does not exist; does the Pod set automountServiceAccountToken: false?"
        )
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=PEM(file=str(ca)) if ca.is_file() else PEM(),
        token_file=str(token),
        origin="the Pod's service account",
    )
