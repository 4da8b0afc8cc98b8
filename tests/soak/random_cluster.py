"""Random work on one embedded server for some minutes, and what must be true of it all along.

    python tests/soak/random_cluster.py --minutes 5

Writers create, change, apply and delete ConfigMaps, custom resources, their definitions and whole namespaces
at random; watchers come and go, over sockets and in the process. What must hold:

- a watch that is resumed wherever it broke off ends with exactly what a list shows, in order, nothing twice;
- of writers that count up the same object, none is lost;
- after a restart everything is as it was;
- nothing is logged as an error, no task fails unseen, and the memory does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from podium.api.kinds import GVK
from podium.apiserver.server import Server, Settings
from podium.apiserver.store import Limits
from podium.kube import Client, Config, load_config
from podium.kube.client import PatchType
from podium.kube.errors import APIError, ConnectionFailed, Gone, KubeError
from podium.run.inprocess import InProcessTransport

Object = dict[str, Any]

CONFIG_MAP, NAMESPACE = GVK("", "v1", "ConfigMap"), GVK("", "v1", "Namespace")
DEFINITION = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
GROUP = "soak.example.com"
KINDS = ("Apple", "Birch", "Cedar")
COUNTED = "counted"
MAX_GROWTH_MIB = 12.0
# What random work may be answered with; anything else is a finding.
EXPECTED = {404, 409, 410, 422}


class Soak:
    """One run."""

    def __init__(self, server: Server, seconds: float, seed: int) -> None:
        self.server = server
        self.ends = time.monotonic() + seconds
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.findings: list[str] = []
        self.counted = 0
        self.watchers: list[Watcher] = []

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.ends

    def client(self) -> Client:
        """Over a socket or not, as it happens."""
        config = load_config(self.server.kubeconfig)
        if self.random.random() < 0.5:
            return Client(config, user_agent="soak", on_warning=lambda _: None)
        inside = Config(self.server.url, token=self.server.admin_token)
        transport = InProcessTransport(self.server.gateway)
        return Client(inside, transport=transport, user_agent="soak", on_warning=lambda _: None)

    async def run(self, writers: int, watchers: int) -> list[float]:
        """Do it all; answers the memory over time, in MiB."""
        async with self.client() as client:
            await client.create(config_map(COUNTED, "default", {"count": "0"}))
        selections = [(CONFIG_MAP, ""), (CONFIG_MAP, "color=red"), (NAMESPACE, ""), (DEFINITION, "")]
        selections += [(custom(kind), "") for kind in KINDS]
        for number in range(watchers):
            self.watchers.append(Watcher(self, *selections[number % len(selections)]))
        watching = [asyncio.create_task(watcher.run()) for watcher in self.watchers]
        memory: list[float] = []
        measuring = asyncio.create_task(self._measure(memory))
        await asyncio.gather(*(self._write() for _ in range(writers)))
        measuring.cancel()
        await self._settle()
        for watcher in self.watchers:
            await watcher.check()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await self._check_count()
        return memory

    async def _measure(self, memory: list[float]) -> None:
        while True:
            await asyncio.sleep(2)
            memory.append(resident_mib())

    async def _write(self) -> None:
        acts = (
            [self._create] * 8
            + [self._change] * 8
            + [self._apply] * 4
            + [self._delete] * 7
            + [self._create_custom] * 6
            + [self._delete_custom] * 4
            + [self._count] * 4
            + [self._list] * 2
            + [self._namespace, self._clear, self._definition, self._vanish]
        )
        while self.goes_on:
            async with self.client() as client:
                for _ in range(self.random.randrange(5, 60)):
                    if self.goes_on:
                        await self._attempt(self.random.choice(acts), client)

    async def _attempt(self, act: Callable[[Client], Awaitable[None]], client: Client) -> None:
        name = act.__name__.strip("_")
        try:
            async with asyncio.timeout(30):
                await act(client)
            self.done[name] += 1
        except APIError as error:
            self.done[f"{name}: {error.code}"] += 1
            going = error.code in (403, 405) and ("terminat" in error.message or "deleted" in error.message)
            if error.code not in EXPECTED and not going:
                self.findings.append(f"{name}: {error.code} {error.message}")
        except KubeError as error:
            # The kind is gone: discovery knows it no more.
            self.done[f"{name}: {type(error).__name__}"] += 1
            if isinstance(error, ConnectionFailed):
                self.findings.append(f"{name}: {error!r}")
        except TimeoutError:
            self.findings.append(f"{name}: no answer in 30 s")

    # --- what is done at random -----------------------------------------------------------------------

    def _somewhere(self) -> tuple[str, str]:
        return f"space-{self.random.randrange(4)}", f"thing-{self.random.randrange(30)}"

    def _labels(self) -> Object:
        return {"color": self.random.choice(("red", "green", "blue"))}

    async def _create(self, client: Client) -> None:
        namespace, name = self._somewhere()
        made = config_map(name, namespace, {"text": "x" * self.random.randrange(2000)})
        made["metadata"]["labels"] = self._labels()
        if self.random.random() < 0.1:
            made["metadata"]["finalizers"] = ["soak.example.com/held"]
        if self.random.random() < 0.2:
            owner = await client.get(CONFIG_MAP, self._somewhere()[1], namespace)
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
            made["metadata"]["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
        await client.create(made)

    async def _change(self, client: Client) -> None:
        namespace, name = self._somewhere()
        change: Object = {"metadata": {"labels": self._labels()}, "data": {"text": str(self.random.random())}}
        if self.random.random() < 0.4:
            change["metadata"]["finalizers"] = None
        await client.patch(CONFIG_MAP, name, change, namespace, type=PatchType.MERGE)

    async def _apply(self, client: Client) -> None:
        namespace, name = self._somewhere()
        manager = f"manager-{self.random.randrange(3)}"
        applied = config_map(name, namespace, {manager: str(self.random.random())})
        await client.apply(applied, field_manager=manager, force=True)

    async def _delete(self, client: Client) -> None:
        namespace, name = self._somewhere()
        propagation = self.random.choice(("", "Background", "Foreground", "Orphan"))
        await client.delete(CONFIG_MAP, name, namespace, propagation=propagation)

    async def _clear(self, client: Client) -> None:
        await client.delete_collection(CONFIG_MAP, self._somewhere()[0], labels="color=blue")

    async def _list(self, client: Client) -> None:
        await client.list(CONFIG_MAP, self.random.choice(("", self._somewhere()[0])), limit=7)

    async def _namespace(self, client: Client) -> None:
        name = self._somewhere()[0]
        if self.random.random() < 0.7:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            return
        for held in (await client.list(CONFIG_MAP, name)).items:
            if held["metadata"].get("finalizers"):
                free = {"metadata": {"finalizers": None}}
                await client.patch(CONFIG_MAP, held["metadata"]["name"], free, name, type=PatchType.MERGE)
        await client.delete(NAMESPACE, name)

    async def _definition(self, client: Client) -> None:
        kind = self.random.choice(KINDS)
        if self.random.random() < 0.7:
            await client.create(definition(kind))
        else:
            await client.delete(DEFINITION, f"{kind.lower()}s.{GROUP}")
            client.discovery.invalidate()

    async def _create_custom(self, client: Client) -> None:
        namespace, name = self._somewhere()
        gvk = custom(self.random.choice(KINDS))
        metadata = {"name": name, "namespace": namespace, "labels": self._labels()}
        spec = {"number": self.random.randrange(100)}
        await client.apply(
            {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}, force=True
        )

    async def _delete_custom(self, client: Client) -> None:
        namespace, name = self._somewhere()
        await client.delete(custom(self.random.choice(KINDS)), name, namespace)

    async def _count(self, client: Client) -> None:
        found = await client.get(CONFIG_MAP, COUNTED, "default")
        await asyncio.sleep(self.random.random() * 0.005)
        found["data"]["count"] = str(int(found["data"]["count"]) + 1)
        await client.update(found)
        self.counted += 1

    async def _vanish(self, client: Client) -> None:
        """A client that goes away while it is answered."""
        task = asyncio.create_task(self._create(client))
        await asyncio.sleep(self.random.random() * 0.003)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, KubeError):
            await task

    # --- what must be so in the end -------------------------------------------------------------------

    async def _settle(self) -> None:
        """Wait until the controllers have nothing left to write."""
        quiet_since, revision = time.monotonic(), self.server.store.revision
        while time.monotonic() - quiet_since < 3:
            await asyncio.sleep(0.1)
            if self.server.store.revision != revision:
                quiet_since, revision = time.monotonic(), self.server.store.revision

    async def _check_count(self) -> None:
        async with self.client() as client:
            found = (await client.get(CONFIG_MAP, COUNTED, "default"))["data"]["count"]
        if int(found) != self.counted:
            self.findings.append(f"{self.counted} increments were accepted, but the count is {found}")


class Watcher:
    """Follows one kind the way an informer does, and checks that every event makes sense."""

    def __init__(self, soak: Soak, gvk: GVK, labels: str) -> None:
        self._soak = soak
        self._gvk = gvk
        self._labels = labels
        self._seen: dict[tuple[str, str], str] = {}
        self._version = ""

    async def run(self) -> None:
        while True:
            try:
                async with self._soak.client() as client:
                    await self._follow(client)
            except Gone:
                self._version = ""
                self._soak.done["watch: expired"] += 1
            except KubeError:
                self._version = ""  # the kind is not served now
                await asyncio.sleep(0.05)

    async def _follow(self, client: Client) -> None:
        if not self._version:
            listed = await client.list(self._gvk, labels=self._labels)
            self._seen = {key_of(item): item["metadata"]["resourceVersion"] for item in listed.items}
            self._version = listed.resource_version
            self._soak.done["watch: listed"] += 1
        elif self._soak.random.random() < 0.2:
            await asyncio.sleep(self._soak.random.randrange(8))  # longer than some of the history is kept
        seconds = self._soak.random.randrange(1, 20)
        changes = client.watch(
            self._gvk, labels=self._labels, resource_version=self._version, timeout_seconds=seconds
        )
        left = self._soak.random.randrange(1, 2000)  # then it goes away in the middle
        async with contextlib.aclosing(changes):
            async for change in changes:
                self._take(change.type, msgspec.json.decode(change.object))
                left -= 1
                if not left:
                    break
        if self._gvk.group == GROUP and not left:
            return
        if self._gvk.group == GROUP:
            # Its definition may have gone and come again: then the version is of another life.
            self._version = ""

    def _take(self, kind: str, obj: Object) -> None:
        version = obj["metadata"]["resourceVersion"]
        if int(version) < int(self._version) or (int(version) == int(self._version) and kind != "BOOKMARK"):
            self._complain(f"{kind} {version} after {self._version}")
        self._version = version
        self._soak.done["watch: events"] += 1
        if kind == "BOOKMARK":
            return
        key = key_of(obj)
        if (kind == "ADDED") == (key in self._seen):
            self._complain(f"{kind} of {key}, which was {'known' if key in self._seen else 'unknown'}")
        if kind == "DELETED":
            self._seen.pop(key, None)
        else:
            self._seen[key] = version

    async def check(self) -> None:
        """Compare what was followed with what is there; the last events may still be on their way."""
        found: dict[tuple[str, str], str] = {}
        for _ in range(200):
            found = {}
            with contextlib.suppress(KubeError):
                async with self._soak.client() as client:
                    listed = await client.list(self._gvk, labels=self._labels)
                found = {key_of(item): item["metadata"]["resourceVersion"] for item in listed.items}
                if found == self._seen:
                    return
            await asyncio.sleep(0.1)
        if found or self._gvk.group != GROUP:  # a kind that is gone shows nothing to compare with
            missing, extra = found.items() - self._seen.items(), self._seen.items() - found.items()
            self._complain(f"missing {sorted(missing)[:3]}, extra {sorted(extra)[:3]}")

    def _complain(self, what: str) -> None:
        self._soak.findings.append(f"watch of {self._gvk.kind} {self._labels}: {what}")


def config_map(name: str, namespace: str, data: Object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def custom(kind: str) -> GVK:
    return GVK(GROUP, "v1", kind)


def definition(kind: str) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"number": {"type": "integer", "minimum": 0}}},
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": f"{kind.lower()}s", "kind": kind}
    return {
        "apiVersion": DEFINITION.api_version,
        "kind": DEFINITION.kind,
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def key_of(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


class Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"logged: {logging.Formatter().format(record)}")


def contents(server: Server) -> dict[tuple[str, str], bytes]:
    tables = server.store.tables.values()
    return {(table.name, key): stored.data for table in tables for key, stored in table.objects.items()}


@contextlib.asynccontextmanager
async def embedded(data: Path) -> AsyncIterator[Server]:
    # Little history, so that watches and continued lists run out of it.
    async with Server(Settings(data, limits=Limits(changes=200, bytes=2 * 2**20))) as server:
        yield server


async def soak(minutes: float, seed: int, writers: int, watchers: int) -> list[str]:
    """Run it; answers what went wrong."""
    errors = Errors()
    logging.getLogger().addHandler(errors)
    with tempfile.TemporaryDirectory(prefix="podium-soak-") as folder:
        tasks_before = len(asyncio.all_tasks())
        async with embedded(Path(folder)) as server:
            run = Soak(server, minutes * 60, seed)
            memory = await run.run(writers, watchers)
            waiting = sum(len(table._waiters) for table in server.store.tables.values())
            if waiting:
                run.findings.append(f"{waiting} waiters are left after all watches ended")
            before, revision = contents(server), server.store.revision
        if (left := len(asyncio.all_tasks()) - tasks_before) > 0:
            run.findings.append(f"{left} tasks are left: {asyncio.all_tasks()}")
        async with embedded(Path(folder)) as server:
            if server.store.revision < revision:
                run.findings.append("the revision went back over the restart")
            after = contents(server)
            changed = sorted(key for key in before | after if before.get(key) != after.get(key))
            if changed:
                run.findings.append(f"not the same after the restart: {changed[:5]}")
    report(run, memory, revision)
    quarter = len(memory) // 4
    if quarter:
        early, late = (statistics.median(part) for part in (memory[quarter : 2 * quarter], memory[-quarter:]))
        if late - early > MAX_GROWTH_MIB:
            run.findings.append(f"the memory grew from {early:.1f} to {late:.1f} MiB")
    return errors.texts + run.findings


def report(run: Soak, memory: list[float], revision: int) -> None:
    for what, count in sorted(run.done.items()):
        print(f"{count:8} {what}")
    shown = " ".join(f"{value:.0f}" for value in memory[:: max(1, len(memory) // 20)])
    print(f"{revision} revisions; memory in MiB: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--watchers", type=int, default=14)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}")
    found = asyncio.run(soak(chosen.minutes, chosen.seed, chosen.writers, chosen.watchers))
    for text, count in Counter(found).most_common(20):
        print(f"FINDING ({count}): {text}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
