"""A small HTTP server that answers how the process is: `/healthz`, `/livez`, `/readyz`, `/metrics`.

Named checks answer nothing if all is well, else what is wrong. The text is that of Kubernetes components:
`ok`, or one line per check with `?verbose` or on failure; `?exclude=name` leaves one out, `/readyz/name` asks
for one. Alive means that the process works at all; ready that it does its job. A standby is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.kube.metrics import Metrics

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], str | None]


class HealthServer:
    """Serves checks and metrics; checks may be added while it runs."""

    def __init__(self, metrics: Metrics, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._metrics = metrics
        self._host, self._port = host, port
        self._alive: dict[str, Check] = {"ping": lambda: None}
        self._ready: dict[str, Check] = {"ping": lambda: None}
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """Where it listens; chosen by the system if 0 was asked for."""
        return self._port

    def add_alive_check(self, name: str, check: Check) -> None:
        """Have `/healthz` and `/livez` ask this too."""
        self._alive[name] = check

    def add_ready_check(self, name: str, check: Check) -> None:
        """Have `/readyz` ask this too."""
        self._ready[name] = check

    def application(self) -> web.Application:
        """The routes, for those who have a server already."""
        from aiohttp import web

        app = web.Application()
        for path, checks in (("healthz", self._alive), ("livez", self._alive), ("readyz", self._ready)):
            handler = _Handler(path, checks)
            app.router.add_get(f"/{path}", handler.all)
            app.router.add_get(f"/{path}/{{name}}", handler.one)
        app.router.add_get("/metrics", self._render_metrics)
        return app

    async def start(self) -> None:
        """Listen."""
        from aiohttp import web

        self._runner = web.AppRunner(self.application(), access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _render_metrics(self, request: web.Request) -> web.Response:
        from aiohttp import web

        body, content_type = self._metrics.render()
        return web.Response(body=body, headers={"Content-Type": content_type})


class _Handler:
    def __init__(self, path: str, checks: Mapping[str, Check]) -> None:
        self._path, self._checks = path, checks

    async def all(self, request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", []))
        found = {name: _ask(check) for name, check in self._checks.items() if name not in excluded}
        passed = not any(found.values())
        if passed and "verbose" not in request.query:
            return _text("ok", 200)
        lines = [f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok" for name, wrong in found.items()]
        lines.append(f"{self._path} check {'passed' if passed else 'failed'}")
        return _text("\n".join(lines) + "\n", 200 if passed else 500)

    async def one(self, request: web.Request) -> web.Response:
        check = self._checks.get(request.match_info["name"])
        if check is None:
            return _text("there is no such check\n", 404)
        wrong = _ask(check)
        return _text(f"failed: {wrong}\n" if wrong else "ok", 500 if wrong else 200)


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a check that breaks is an answer too
        return f"{type(error).__name__}: {error}"


def _text(text: str, status: int) -> web.Response:
    from aiohttp import web

    return web.Response(
        text=text, status=status, headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    )
