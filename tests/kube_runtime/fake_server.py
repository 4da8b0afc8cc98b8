"""A miniature API server behind the client's own methods: objects, resource versions, watches, and faults.

It keeps the whole history, so a watch can start at any version that was not compacted. Faults are switched on
by the test: connections that break after some events, versions that are forgotten, requests that fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api import selectors
from podium.api.kinds import GVK, Key, Object
from podium.kube.client import Page
from podium.kube.errors import ConnectionFailed, KubeError, from_status
from podium.kube.watchstream import WatchEvent


@dataclass(frozen=True)
class Written:
    version: int
    gvk: GVK
    old: Object | None
    new: Object | None


CONFIG_MAP = GVK("", "v1", "ConfigMap")


def error(code: int, reason: str, message: str = "", **details: Any) -> KubeError:
    return from_status({"code": code, "reason": reason, "message": message or reason, "details": details})


class FakeServer:
    """Stands in for `podium.kube.client.Client`."""

    def __init__(self) -> None:
        self.version = 100
        self.uids = 0
        self.objects: dict[tuple[GVK, Key], Object] = {}
        self.history: list[Written] = []
        self.compacted = 0
        self.streams_lists = True
        self.sends_end_bookmark = True
        # After how many events each further connection breaks; None for never.
        self.break_after: int | None = None
        self.failures: list[Exception] = []
        self.requests: list[str] = []
        self.open_watches = 0
        self._connection = 0
        self._changed = asyncio.Event()

    # --- what tests do to the cluster -------------------------------------------------------------------

    def put(self, obj: Object) -> Object:
        """Create or replace an object as somebody else would."""
        gvk, key = GVK.of(obj), Key.of(obj)
        old = self.objects.get((gvk, key))
        new = msgspec.json.decode(msgspec.json.encode(obj))
        self.version += 1
        metadata = new["metadata"]
        metadata["resourceVersion"] = str(self.version)
        if old is None:
            self.uids += 1
            metadata["uid"] = f"uid-{self.uids}"
            metadata["generation"] = 1
        else:
            metadata["uid"] = old["metadata"]["uid"]
            metadata["generation"] = old["metadata"]["generation"] + (old.get("spec") != new.get("spec"))
        self.objects[gvk, key] = new
        self._write(Written(self.version, gvk, old, new))
        return self._copy(new)

    def remove(self, gvk: GVK, key: Key) -> None:
        """Delete an object as somebody else would."""
        old = self.objects.pop((gvk, key))
        self.version += 1
        self._write(Written(self.version, gvk, old, None))

    def compact(self) -> None:
        """Forget the history: whoever resumes from before now is told 410."""
        self.compacted = self.version

    def cut(self) -> None:
        """Break every open watch."""
        self._connection += 1
        self._notify()

    def state(self, gvk: GVK) -> dict[Key, str]:
        """The resource version of each object."""
        return {
            key: obj["metadata"]["resourceVersion"]
            for (kind, key), obj in self.objects.items()
            if kind == gvk
        }

    # --- what the client offers -------------------------------------------------------------------------

    async def pages(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[Page, None]:
        self._begin(f"list {gvk.kind}")
        version = str(self.version)
        items = [self._raw(o, metadata_only) for o in self._matching(gvk, namespace, labels, fields)]
        size = min(limit, 2) or len(items) + 1
        for start in range(0, max(len(items), 1), size):
            yield Page(items[start : start + size], version)
            await asyncio.sleep(0)
            self._fail()

    async def watch(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        metadata_only: bool = False,
        timeout_seconds: int | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        self._begin(f"watch {gvk.kind} {resource_version or '-'}{' initial' if send_initial_events else ''}")
        if send_initial_events and not self.streams_lists:
            raise error(422, "Invalid", "sendInitialEvents is forbidden for watch")
        if resource_version and int(resource_version) < self.compacted:
            raise error(410, "Expired", f"too old resource version: {resource_version}")
        connection, sent = self._connection, 0
        position = int(resource_version) if resource_version else self.version
        self.open_watches += 1
        try:
            if not resource_version:
                for obj in self._matching(gvk, namespace, labels, fields):
                    yield WatchEvent("ADDED", self._raw(obj, metadata_only))
                    sent += 1
                    await self._maybe_break(connection, sent)
                if send_initial_events and self.sends_end_bookmark:
                    yield self.bookmark(gvk, position, end=True)
            while True:
                self._changed.clear()
                for written in [w for w in self.history if w.version > position]:
                    position = written.version
                    event = self._event(written, gvk, namespace, labels, fields, metadata_only)
                    if event is not None:
                        yield event
                        sent += 1
                    await self._maybe_break(connection, sent)
                if position == self.version:
                    changed = self._changed
                    await changed.wait()
                    await self._maybe_break(connection, sent)
        finally:
            self.open_watches -= 1

    async def get(self, gvk: GVK, name: str, namespace: str = "") -> Object:
        self._begin(f"get {gvk.kind} {name}")
        obj = self.objects.get((gvk, Key(namespace, name)))
        if obj is None:
            raise error(404, "NotFound", f"{gvk.kind} {name} not found", name=name)
        return self._copy(obj)

    async def create(self, obj: Object, *, namespace: str = "") -> Object:
        key = Key.of(obj)
        self._begin(f"create {obj['kind']} {key.name}")
        if (GVK.of(obj), key) in self.objects:
            raise error(409, "AlreadyExists")
        return self.put(obj)

    async def update(self, obj: Object) -> Object:
        gvk, key = GVK.of(obj), Key.of(obj)
        self._begin(f"update {gvk.kind} {key.name}")
        present = self.objects.get((gvk, key))
        if present is None:
            raise error(404, "NotFound")
        if obj["metadata"].get("resourceVersion") not in (None, present["metadata"]["resourceVersion"]):
            raise error(409, "Conflict", "the object has been modified")
        return self.put(obj)

    async def patch(self, gvk: GVK, name: str, patch: Any, namespace: str = "") -> Object:
        self._begin(f"patch {gvk.kind} {name}")
        present = self.objects.get((gvk, Key(namespace, name)))
        if present is None:
            raise error(404, "NotFound")
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, present["metadata"]["resourceVersion"]):
            raise error(409, "Conflict")
        return self.put(_merge(present, patch))

    async def apply(
        self, obj: Object, *, field_manager: str = "", force: bool = False, dry_run: bool = False
    ) -> Object:
        """Far from server-side apply: enough to see creation, change, nothing, and who else owns a field."""
        gvk, key = GVK.of(obj), Key.of(obj)
        self._begin(f"apply{' dry' if dry_run else ''} {gvk.kind} {key.name}")
        present = self.objects.get((gvk, key))
        uid = obj["metadata"].get("uid")
        if uid is not None and (present is None or present["metadata"]["uid"] != uid):
            raise error(409, "Conflict", f"uid mismatch: the provided object specified uid {uid}")
        managers = [] if present is None else present["metadata"].get("managedFields", [])
        if not force and any(entry["manager"] != field_manager for entry in managers):
            causes = [{"reason": "FieldManagerConflict", "field": ".data", "message": "conflict"}]
            raise error(409, "Conflict", causes=causes)
        merged = _merge(present or {}, self._copy(obj))
        if all(entry["manager"] != field_manager for entry in managers):
            merged["metadata"]["managedFields"] = [
                *managers,
                {"manager": field_manager, "operation": "Apply"},
            ]
        if merged == present or dry_run:
            return self._copy(merged)
        return self.put(merged)

    async def delete(
        self,
        gvk: GVK,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Object:
        self._begin(f"delete {gvk.kind} {name}")
        present = self.objects.get((gvk, Key(namespace, name)))
        if present is None:
            raise error(404, "NotFound")
        metadata = present["metadata"]
        if uid not in ("", metadata["uid"]) or resource_version not in ("", metadata["resourceVersion"]):
            raise error(409, "Conflict", "the precondition does not match")
        self.remove(gvk, Key(namespace, name))
        return present

    @staticmethod
    def bookmark(gvk: GVK, version: int, *, end: bool = False) -> WatchEvent:
        metadata: Object = {"resourceVersion": str(version)}
        if end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        body = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
        return WatchEvent("BOOKMARK", msgspec.Raw(msgspec.json.encode(body)))

    # --- inside -----------------------------------------------------------------------------------------

    def _begin(self, request: str) -> None:
        self.requests.append(request)
        self._fail()

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    async def _maybe_break(self, connection: int, sent: int) -> None:
        await asyncio.sleep(0)
        if connection != self._connection:
            raise ConnectionFailed("the connection was cut", sent=True)
        if self.break_after is not None and sent >= self.break_after:
            raise ConnectionFailed("the connection broke", sent=True)

    def _matching(self, gvk: GVK, namespace: str, labels: str, fields: str) -> list[Object]:
        return [
            o for (kind, _), o in self.objects.items() if kind == gvk and _fits(o, namespace, labels, fields)
        ]

    def _event(
        self, written: Written, gvk: GVK, namespace: str, labels: str, fields: str, metadata_only: bool
    ) -> WatchEvent | None:
        if written.gvk != gvk:
            return None
        was = written.old is not None and _fits(written.old, namespace, labels, fields)
        now = written.new is not None and _fits(written.new, namespace, labels, fields)
        if not was and not now:
            return None
        kind = "MODIFIED" if was and now else "ADDED" if now else "DELETED"
        obj = written.new if now else written.old
        assert obj is not None
        if kind == "DELETED":
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(written.version)}}
        return WatchEvent(kind, self._raw(obj, metadata_only))

    def _raw(self, obj: Object, metadata_only: bool) -> msgspec.Raw:
        if metadata_only:
            partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
            obj = {**partial, "metadata": obj["metadata"]}
        return msgspec.Raw(msgspec.json.encode(obj))

    def _write(self, written: Written) -> None:
        self.history.append(written)
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _copy(self, obj: Object) -> Object:
        copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
        return copied


def _fits(obj: Object, namespace: str, labels: str, fields: str) -> bool:
    metadata = obj["metadata"]
    if namespace and metadata.get("namespace") != namespace:
        return False
    if not selectors.matches(selectors.parse(labels), metadata.get("labels")):
        return False
    return selectors.matches_fields(
        selectors.parse_fields(fields), lambda path: str(metadata.get(path.removeprefix("metadata."), ""))
    )


def _merge(base: Any, patch: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    merged = dict(base)
    for field, value in patch.items():
        if value is None:
            merged.pop(field, None)
        else:
            merged[field] = _merge(base.get(field), value)
    return merged


def config_map(name: str, namespace: str = "default", **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
