"""The embedded API server, put together: start it on a data directory, talk to it, stop it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from podium import __version__
from podium.api.kinds import Object
from podium.apiserver import builtin, errors, views
from podium.apiserver.access import bootstrap, certificates, durable, signing
from podium.apiserver.access.authentication import Authenticator, administrator
from podium.apiserver.access.identity import MASTERS, Identity
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.access.signing import SigningKey
from podium.apiserver.access.tokens import ServiceAccountTokens
from podium.apiserver.admission import Admission
from podium.apiserver.allocation import SERVICE_NETWORK
from podium.apiserver.discovery import Discovery
from podium.apiserver.endpoints import Answer, Endpoints
from podium.apiserver.gateway import Gateway
from podium.apiserver.loops.collector import Collector
from podium.apiserver.loops.definitions import Definitions
from podium.apiserver.loops.expiry import EventExpiry
from podium.apiserver.loops.namespaces import INITIAL, Namespaces
from podium.apiserver.loops.roles import AggregatedRoles
from podium.apiserver.loops.tokens import TokenSecrets
from podium.apiserver.objects import DeleteOptions, Objects, Write
from podium.apiserver.registry import Registry
from podium.apiserver.requests import RequestInfo
from podium.apiserver.store import Change, Limits, Store, encode
from podium.apiserver.subresources import Subresources
from podium.schema import facts

if TYPE_CHECKING:
    from aiohttp import web

    from podium.apiserver.http import Http
    from podium.apiserver.openapi import OpenAPI

log = logging.getLogger(__name__)

_RBAC = "rbac.authorization.k8s.io"
_GET_ONLY = ("/version", "/api", "/openid/v1/jwks", "/.well-known/openid-configuration")
_CHECKS = ("ping", "log", "etcd", "etcd-readiness", "informer-sync")
_SYSTEM = Identity("system:apiserver", groups=(MASTERS, "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be chosen about a server."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 0  # 0: the port of the last run if it is free, else any
    names: tuple[str, ...] = ()  # more names and addresses for the serving certificate
    limits: Limits = field(default_factory=Limits)  # how much history is kept for watches


class Server:
    """One embedded API server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings.data / "state.db", settings.limits)
        self.registry = Registry()
        self.kubeconfig = settings.data / "kubeconfig"
        self.url = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._runner: web.ServerRunner | None = None
        self._http: Http | None = None

    async def __aenter__(self) -> Server:
        try:
            await self.start()
        except BaseException:
            await self.stop()  # what was started before the failure, or it would hold the data for ever
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Load the data, write what every cluster starts with, and listen."""
        # One that was there already may be a user's; what is secret in it is private file by file.
        self.settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._credentials = certificates.ensure(self.settings.data / "pki", self.settings.names)
        self.store.open()
        self.registry.add(builtin.resources())
        self._assemble()
        await self._bootstrap()
        for loop in self._loops:
            loop.start()
        for work in (*(loop.loop.run() for loop in self._loops), EventExpiry(self.store, self.objects).run()):
            self._tasks.append(asyncio.create_task(work))
        await self._listen()

    @property
    def admin_token(self) -> str:
        """A bearer token of the administrator, for clients in this process."""
        return self._credentials.admin_token

    async def stop(self) -> None:
        """Finish what is under way, end the watches and close the data."""
        if self._http is not None:
            self._http.end_watches()
        if self._runner is not None:
            await self._runner.cleanup()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    def _assemble(self) -> None:
        credentials = self._credentials
        self._roles = _StoredRoles(self.store)
        self.rbac = Rbac(self._roles)
        self.objects = Objects(self.store, self.registry, Admission(self.store, lambda: self.rbac))
        self.endpoints = Endpoints(self.store, self.registry, self.objects)
        self._key = SigningKey(credentials.service_account_key)
        tokens = ServiceAccountTokens(self._key, _StoredObjects(self.store))
        admin = {credentials.admin_token: administrator(certificates.ADMIN_NAME)}
        self.authenticator = Authenticator(tokens, admin)
        Subresources(self.endpoints, self.registry, self.rbac, self.authenticator, tokens).register()
        self.discovery = Discovery(self.registry)
        self.gateway = Gateway(self.endpoints, self.authenticator, self.rbac, self._page)
        ca = credentials.ca_certificate.read_bytes()
        definitions = Definitions(self.store, self.registry, self.objects)
        self._loops = (
            definitions,
            Namespaces(self.store, self.registry, self.objects, ca.decode()),
            Collector(self.store, self.registry, self.objects),
            AggregatedRoles(self.store, self.registry, self.objects),
            TokenSecrets(self.store, self.registry, self.objects, tokens, ca),
        )

    # --- what every cluster starts with ---------------------------------------------------------------

    async def _bootstrap(self) -> None:
        namespaces = self.store.table("/namespaces")
        missing = [name for name in INITIAL if namespaces.latest(name) is None]
        await asyncio.gather(
            *(self._create("", "namespaces", "", {"metadata": {"name": name}}) for name in missing)
        )
        pending = [self._write_role(write) for write in bootstrap.pending(self._lookup_role)]
        if self.store.table("/services").latest("default/kubernetes") is None:
            pending.append(self._create("", "services", "default", _kubernetes_service()))
        for obj in _priority_classes():
            name = obj["metadata"]["name"]
            if self.store.table("scheduling.k8s.io/priorityclasses").latest(name) is None:
                pending.append(self._create("scheduling.k8s.io", "priorityclasses", "", obj))
        await asyncio.gather(*pending)

    def _lookup_role(self, kind: str, namespace: str, name: str) -> Object | None:
        key = f"{namespace}/{name}" if namespace else name
        stored = self.store.table(f"{_RBAC}/{kind.lower()}s").latest(key)
        return stored.object if stored else None

    async def _write_role(self, change: bootstrap.Write) -> None:
        obj = change.object
        plural, namespace = f"{obj['kind'].lower()}s", obj["metadata"].get("namespace", "")
        resource = self.registry.find(_RBAC, "v1", plural)
        assert resource is not None
        name = obj["metadata"]["name"]
        if change.action is bootstrap.Action.REPLACE:
            await self.objects.delete(resource, namespace, name, DeleteOptions(), _system_write())
        if change.action is bootstrap.Action.UPDATE:
            await self.objects.update(resource, namespace, name, lambda _: obj, _system_write())
        else:
            await self._create(_RBAC, plural, namespace, obj)

    async def _create(self, group: str, plural: str, namespace: str, obj: Object) -> None:
        resource = self.registry.find(group, "v1", plural)
        assert resource is not None
        body, _ = resource.codec.admit({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        resource.strategy.default(body)
        with contextlib.suppress(errors.StatusError):
            await self.objects.create(resource, namespace, body, _system_write())

    # --- listening ------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        from podium.apiserver.http import Http

        self._http = Http(self.gateway)
        tls = self._credentials.server_context()
        host = self.settings.host
        port = self.settings.port or self._last_port()
        self._runner = await self._http.listen(host, port, tls)
        assert self._runner is not None
        address = self._runner.addresses[0]
        self.url = f"https://{host if ':' not in host else f'[{host}]'}:{address[1]}"
        self.discovery.address = f"{host}:{address[1]}"
        durable.write(self.kubeconfig, self._credentials.admin_kubeconfig(self.url).encode())

    def _last_port(self) -> int:
        """The port in the kubeconfig of an earlier run, so that it stays true; 0 if it is taken."""
        try:
            text = self.kubeconfig.read_text()
            port = int(text.partition("server:")[2].partition("\n")[0].strip().strip('"').rpartition(":")[2])
        except (OSError, ValueError):
            return 0
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.settings.host, port))
            except OSError:
                return 0
        return port

    # --- fixed pages ----------------------------------------------------------------------------------

    async def _page(
        self, info: RequestInfo, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer | None:
        path = info.path.rstrip("/") or "/"
        if path.startswith(("/healthz", "/livez", "/readyz")):
            return _health(path, verbose="verbose" in query)
        if info.verb != "get" and path in _GET_ONLY:
            raise errors.method_not_allowed()
        if path == "/version":
            return Answer(200, encode(_version()))
        if path == "/api" or path.startswith(("/api/", "/apis")):
            return self._discovered(path, headers)
        if path == "/openapi/v2":
            return self._openapi.empty_v2(headers.get("Accept", ""))
        if path.startswith("/openapi/v3"):
            return self._openapi.page(path, query, headers)
        if path == "/openid/v1/jwks":
            return Answer(200, encode(self._key.jwks()), "application/jwk-set+json")
        if path == "/.well-known/openid-configuration":
            return Answer(200, encode(signing.discovery_document(f"{self.url}/openid/v1/jwks")))
        if path == "/":
            return Answer(200, encode({"paths": self._paths()}))
        return None

    def _discovered(self, path: str, headers: Mapping[str, str]) -> Answer | None:
        accept = headers.get("Accept", "")
        document = self.discovery.find(path, headers)
        if document is None:
            if self.endpoints.is_builtin_group(path.split("/")[2] if path.startswith("/apis/") else ""):
                raise errors.no_such_path()
            return None
        if not document.aggregated:
            if views.media_kind(accept) == views.YAML:
                from podium.text import yaml

                return Answer(200, yaml.dump(msgspec.json.decode(document.body)).encode(), views.YAML)
            return Answer(200, document.body)
        validators = {"ETag": document.etag, "Vary": "Accept", "Cache-Control": "public"}
        if headers.get("If-None-Match") == document.etag:
            return Answer(304, b"", document.content_type, validators)
        return Answer(200, document.body, document.content_type, validators)

    @cached_property
    def _openapi(self) -> OpenAPI:
        from podium.apiserver.openapi import OpenAPI  # loaded when a client first asks

        return OpenAPI(self.registry)

    def _paths(self) -> list[str]:
        groups = self.discovery.groups()
        versions = [f"/apis/{g}/{v}" for g in groups for v in self.registry.groups()[g]]
        fixed = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez"]
        fixed += ["/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"]
        return sorted([*fixed, *(f"/apis/{g}" for g in groups), *versions])


class _StoredRoles:
    """RBAC objects as the authorizer reads them; the revision rises with every change to one of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rbac_revision = 0
        store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.table.name.startswith(_RBAC):
            self.rbac_revision += 1

    def cluster_role(self, name: str) -> Object | None:
        stored = self._store.table(f"{_RBAC}/clusterroles").objects.get(name)
        return stored.object if stored else None

    def role(self, namespace: str, name: str) -> Object | None:
        stored = self._store.table(f"{_RBAC}/roles").objects.get(f"{namespace}/{name}")
        return stored.object if stored else None

    def cluster_role_bindings(self) -> list[Object]:
        return [stored.object for stored in self._store.table(f"{_RBAC}/clusterrolebindings").scan()]

    def role_bindings(self, namespace: str) -> list[Object]:
        return [stored.object for stored in self._store.table(f"{_RBAC}/rolebindings").scan(f"{namespace}/")]


class _StoredObjects:
    """Core objects as token verification reads them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        key = f"{namespace}/{name}" if namespace else name
        stored = self._store.table(f"/{resource}").objects.get(key)
        return stored.object if stored else None


def _health(path: str, *, verbose: bool) -> Answer | None:
    """The server answers, so it is well; single checks are known by the names probes use."""
    probe, _, name = path.strip("/").partition("/")
    if name and name not in _CHECKS and not name.startswith("poststarthook/"):
        return None
    text = "ok"
    if verbose and not name:
        text = "".join(f"[+]{check} ok\n" for check in _CHECKS) + f"{probe} check passed\n"
    return Answer(200, text.encode(), "text/plain; charset=utf-8")


def _system_write() -> Write:
    return Write(_SYSTEM, manager="kube-apiserver", validation="Ignore")


def _version() -> Object:
    git = facts.load().kubernetes_version
    major, minor, _ = git.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{git}+podium.{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "embedded/simulated",
    }


def _kubernetes_service() -> Object:
    port = {"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = {"ports": [port], "clusterIP": str(SERVICE_NETWORK[1]), "sessionAffinity": "None"}
    return {"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec}


def _priority_classes() -> list[Object]:
    movable = "but can be moved to another node if necessary."
    critical = (
        (
            "system-cluster-critical",
            2_000_000_000,
            f"Used for system critical pods that must run in the cluster, {movable}",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    )
    return [{"metadata": {"name": n}, "value": v, "description": d} for n, v, d in critical]
