"""A miniature API server on a real loopback socket, and a clock that only moves when somebody waits.

The stub knows a handful of resources by discovery; everything else is a route that the test gives. It keeps
what arrived, so that tests assert on bytes and headers.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDictProxy

from podium.api.kinds import GVK
from podium.kube.clock import Timer

CONFIG_MAP = GVK("", "v1", "ConfigMap")
NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def aggregated(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}


def group(name: str, *versions: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    described = [
        {"version": version, "resources": found, "freshness": "Current"} for version, found in versions
    ]
    return {"metadata": {"name": name} if name else {}, "versions": described}


def resource(
    plural: str, kind: str, *, namespaced: bool = True, short: str = "", sub: str = ""
) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": kind.lower(),
        "verbs": ["get", "list"],
        "shortNames": short.split(),
        "subresources": [{"subresource": name, "verbs": ["get"]} for name in sub.split()],
    }


CORE = aggregated(
    group(
        "",
        (
            "v1",
            [
                resource("configmaps", "ConfigMap", short="cm"),
                resource("namespaces", "Namespace", namespaced=False, short="ns"),
                resource("serviceaccounts", "ServiceAccount", short="sa", sub="token"),
            ],
        ),
    )
)
GROUPS = aggregated(
    group("apps", ("v1", [resource("deployments", "Deployment", short="deploy", sub="scale status")]))
)


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: CIMultiDictProxy[str]
    body: bytes
    peer: str  # the common name of the client certificate

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


@dataclass
class StubServer:
    """Routes by `METHOD path`; whatever has none is not found, in the words of the real server."""

    routes: dict[str, Handler]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A timeout of 0 would mean none.
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, 0, ssl_context=tls)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://{host}:{port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def calls(self) -> list[Seen]:
        """What arrived, without discovery."""
        return [seen for seen in self.seen if seen.target not in ("/api", "/apis")]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        subject = {key: value for part in certificate.get("subject", ()) for key, value in part}
        common_name = subject.get("commonName", "")
        body = await request.read()
        self.seen.append(Seen(request.method, request.raw_path, request.headers, body, common_name))
        handler = self.routes.get(f"{request.method} {request.path}")
        if handler is not None:
            return await handler(request)
        if request.path in ("/api", "/apis"):
            return answer(CORE if request.path == "/api" else GROUPS)
        return web.Response(status=404, text="404 page not found\n")


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def failure(code: int, reason: str, message: str = "", **details: Any) -> web.Response:
    return answer(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": reason,
            "message": message or reason,
            "details": details,
            "code": code,
        },
        status=code,
    )


def always(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return answer(content, status, headers)

    return handle


def in_turn(*answers: Callable[[], web.Response]) -> Handler:
    """One answer after the other, the last for ever."""
    remaining = list(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        return (remaining.pop(0) if len(remaining) > 1 else remaining[0])()

    return handle


def streaming(*chunks: bytes, then_hang: bool = False) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then_hang:
            await asyncio.Event().wait()
        return response

    return handle


class StillClock:
    """Time stands still, except that waiting makes it pass at once."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        raise AssertionError("the client sets no timers")

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
