"""The real control plane: etcd, kube-apiserver and, if wanted, kube-controller-manager.

Everything is as a cluster has it (TLS, RBAC, service-account keys, default admission, fsync in etcd),
except that there are no nodes: Pods stay Pending unless something plays the kubelet. Each instance
has its own temporary folder and ports, so several can run side by side.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import binaries
from harness.plain import Plain
from harness.processes import Group, ProcessDied, Server

# A node without a kubelet would be tainted by the first of these and emptied by the second.
SILENT_NODE_CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")
READY_TIMEOUT = 60.0


class RealControlPlane:
    """A control plane that runs while the context lasts; `kubeconfig` makes its reader an admin."""

    def __init__(
        self,
        *,
        controller_manager: bool = True,
        apiserver_flags: Sequence[str] = (),
        controller_manager_flags: Sequence[str] = (),
        etcd_flags: Sequence[str] = (),
    ) -> None:
        self._with_controller_manager = controller_manager
        self._flags = {
            "etcd": etcd_flags,
            "kube-apiserver": apiserver_flags,
            "kube-controller-manager": controller_manager_flags,
        }
        self._group: Group | None = None
        self.directory = Path()
        self.port = 0

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with a client certificate of the group system:masters."""
        return self.directory / "kubeconfig"

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def servers(self) -> Mapping[str, Server]:
        """The running processes by name: `etcd`, `kube-apiserver`, `kube-controller-manager`."""
        return self._group.servers if self._group else {}

    def start(self) -> None:
        """Start everything and return when it is ready; leaves nothing behind if that fails."""
        self.directory = Path(tempfile.mkdtemp(prefix="podium-real-"))
        self._group = Group()
        try:
            self._write_certificates()
            self._start_etcd()
            self._start_apiserver()
            if self._with_controller_manager:
                self._start_controller_manager()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill everything and remove the data; there is nothing worth a graceful end."""
        if self._group:
            self._group.stop()
            self._group = None
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, name: str, flags: Sequence[str], ready: Callable[[], bool]) -> None:
        assert self._group
        command = [str(binaries.find(name)), *flags, *self._flags[name]]
        server = self._group.start(command, log=self.directory / f"{name}.log")
        self._group.wait_until(ready, server, timeout=READY_TIMEOUT)

    def _answers(self, path: str) -> bool:
        try:
            return Plain(self.kubeconfig, timeout=5).request("GET", path).status == 200
        except OSError:
            return False

    def _start_etcd(self) -> None:
        socket_path = self.directory / "etcd.sock"
        flags = [
            f"--data-dir={self.directory}/etcd",
            f"--listen-client-urls=unix://{socket_path}",
            # Required, of the form host:port, and read by nobody: the API server is told the socket.
            "--advertise-client-urls=http://localhost:2379",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--log-level=warn",
        ]
        # The API server would wait for etcd too, but asks only once a second.
        self._run("etcd", flags, lambda: accepts(socket_path))

    def _start_apiserver(self) -> None:
        for attempt in range(3):
            self.port = free_port()
            self._write_kubeconfig()
            try:
                self._run("kube-apiserver", self._apiserver_flags(), lambda: self._answers("/readyz"))
                return
            except ProcessDied as died:
                # Between finding the port and listening on it someone else may have taken it.
                if "address already in use" not in str(died) or attempt == 2:
                    raise

    def _apiserver_flags(self) -> list[str]:
        directory = self.directory
        return [
            f"--etcd-servers=unix://{directory}/etcd.sock",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            # The `kubernetes` Service has no endpoints: the API refuses loopback addresses there.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={directory}/apiserver.crt",
            f"--tls-private-key-file={directory}/apiserver.key",
            f"--client-ca-file={directory}/ca.crt",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={directory}/service-account.key",
            f"--service-account-signing-key-file={directory}/service-account.key",
        ]

    def _start_controller_manager(self) -> None:
        directory = self.directory
        flags = [
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers=*,{','.join(f'-{name}' for name in SILENT_NODE_CONTROLLERS)}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            "--pvclaimbinder-sync-period=1s",
            "--horizontal-pod-autoscaler-sync-period=1s",
            f"--root-ca-file={directory}/ca.crt",
            f"--service-account-private-key-file={directory}/service-account.key",
            f"--cluster-signing-cert-file={directory}/ca.crt",
            f"--cluster-signing-key-file={directory}/ca.key",
        ]
        # It opens no port to ask; that Pods can be made in `default` says that its controllers run.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._run("kube-controller-manager", flags, lambda: self._answers(account))

    def _write_certificates(self) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.directory / "ca.crt")
        authority.private_key_pem.write_to_path(self.directory / "ca.key")
        names = ("127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1")
        serving = authority.issue_cert(*names, common_name="kube-apiserver")
        admin = authority.issue_cert("admin", common_name="admin", organization_name="system:masters")
        for name, leaf in (("apiserver", serving), ("admin", admin)):
            leaf.cert_chain_pems[0].write_to_path(self.directory / f"{name}.crt")
            leaf.private_key_pem.write_to_path(self.directory / f"{name}.key")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        (self.directory / "service-account.key").write_bytes(key)

    def _write_kubeconfig(self) -> None:
        cluster = {"server": self.server, "certificate-authority": f"{self.directory}/ca.crt"}
        user = {
            "client-certificate": f"{self.directory}/admin.crt",
            "client-key": f"{self.directory}/admin.key",
        }
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
            "current-context": "real",
        }
        # JSON is YAML, and needs no library to write.
        self.kubeconfig.write_text(json.dumps(config, indent=2))


def accepts(path: Path) -> bool:
    """Whether somebody listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
