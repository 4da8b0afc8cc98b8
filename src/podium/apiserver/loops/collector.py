"""Garbage collection by owner references: background, foreground and orphaning.

The collector keeps two maps that follow every committed change: where each uid lives, and which objects name
a uid as owner. An object whose owners are all gone is deleted; one that still has an owner only loses the
references to those that are gone. Owners that wait for their dependents (foreground) or let them go (orphan)
hold a finalizer that the collector removes when that is done.
"""

from __future__ import annotations

from collections.abc import Awaitable

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.access.identity import Identity, account_groups, account_username
from podium.apiserver.loops.loop import Loop
from podium.apiserver.objects import DeleteOptions, Objects, Write
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.store import Change, Store, Stored

Place = tuple[str, str]  # table name, key

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
COLLECTOR = Identity(
    account_username("kube-system", "generic-garbage-collector"),
    groups=(*account_groups("kube-system"), "system:masters", "system:authenticated"),
)


def _write() -> Write:
    return Write(COLLECTOR, manager="kube-controller-manager", validation="Ignore")


class Collector:
    """Deletes what nobody owns any more."""

    def __init__(self, store: Store, registry: Registry, objects: Objects) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        self.loop: Loop[Place] = Loop("garbage collector", self._look)

    def start(self) -> None:
        """Take in what is stored; objects that were left behind by a crash are looked at again."""
        for table in self._store.tables.values():
            for stored in table.objects.values():
                self._add(table.name, stored)
        for table in self._store.tables.values():
            for stored in table.objects.values():
                if stored.owners or _is_waiting(stored):
                    self.loop.add((table.name, stored.key))
        self._store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        table, old, new = change.table.name, change.old, change.new
        if old is not None and (new is None or new.owners != old.owners or new.uid != old.uid):
            self._forget(table, old)
        if new is not None:
            self._add(table, new)
            if (new.owners and (old is None or old.owners != new.owners)) or _is_waiting(new):
                self.loop.add((table, new.key))
        elif old is not None:
            for place in self._dependents.get(old.uid, ()):
                self.loop.add(place)

    def _add(self, table: str, stored: Stored) -> None:
        self._places[stored.uid] = (table, stored.key)
        for owner in stored.owners:
            self._dependents.setdefault(owner.uid, {})[(table, stored.key)] = None

    def _forget(self, table: str, stored: Stored) -> None:
        place = (table, stored.key)
        if self._places.get(stored.uid) == place:
            del self._places[stored.uid]
        for owner in stored.owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(place, None)
                if not dependents:
                    del self._dependents[owner.uid]
            if owner.uid in self._places:
                self.loop.add(self._places[owner.uid])

    # --- looking at one object ------------------------------------------------------------------------

    async def _look(self, place: Place) -> float | None:
        found = self._find(place)
        if found is None:
            return None
        resource, stored = found
        metadata = stored.object["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" in metadata:
            if ORPHAN in finalizers:
                await self._release_dependents(resource, stored)
            elif FOREGROUND in finalizers:
                await self._delete_dependents(resource, stored)
            return None
        if stored.owners:
            await self._check_owners(resource, stored)
        return None

    def _find(self, place: Place) -> tuple[Resource, Stored] | None:
        table = self._store.tables.get(place[0])
        stored = table.objects.get(place[1]) if table else None
        resource = self._registry.for_table(place[0])
        return (resource, stored) if resource is not None and stored is not None else None

    async def _check_owners(self, resource: Resource, stored: Stored) -> None:
        states = {owner.uid: self._owner_state(resource, stored, owner.uid) for owner in stored.owners}
        waiting = "waiting" in states.values()
        if "solid" in states.values():
            useless = {uid for uid, state in states.items() if state != "solid"}
            if useless:
                await self._drop_references(resource, stored, useless)
            return
        finalizers = stored.object["metadata"].get("finalizers") or ()
        if waiting and self._dependents.get(stored.uid):
            propagation = "Foreground"
        elif ORPHAN in finalizers:
            propagation = "Orphan"
        else:
            propagation = "Foreground" if FOREGROUND in finalizers else "Background"
        # Of this very version: somebody may just have given it another owner. Then it is looked at again.
        options = DeleteOptions(propagation, uid=stored.uid, resource_version=str(stored.revision))
        await self._ignoring(
            (404,), self._objects.delete(resource, stored.namespace, stored.name, options, _write())
        )

    def _owner_state(self, resource: Resource, stored: Stored, uid: str) -> str:
        place = self._places.get(uid)
        found = self._find(place) if place else None
        if found is None:
            return "gone"
        owner_resource, owner = found
        if owner_resource.namespaced and owner.namespace != stored.namespace:
            # An owner in another namespace is none; a cluster-scoped object keeps such a reference for ever.
            return "gone" if resource.namespaced else "solid"
        return "waiting" if _is_waiting(owner) and FOREGROUND in _finalizers(owner) else "solid"

    async def _drop_references(self, resource: Resource, stored: Stored, uids: set[str]) -> None:
        def transform(obj: Object | None) -> Object:
            assert obj is not None
            kept = [r for r in obj["metadata"].get("ownerReferences") or () if r["uid"] not in uids]
            if kept:
                obj["metadata"]["ownerReferences"] = kept
            else:
                obj["metadata"].pop("ownerReferences", None)
            return obj

        await self._ignoring(
            (404, 409), self._objects.update(resource, stored.namespace, stored.name, transform, _write())
        )

    # --- owners that are being deleted ----------------------------------------------------------------

    async def _release_dependents(self, resource: Resource, owner: Stored) -> None:
        for place in list(self._dependents.get(owner.uid, ())):
            found = self._find(place)
            if found is not None:
                await self._drop_references(*found, {owner.uid})
        await self._drop_finalizer(resource, owner, ORPHAN)

    async def _delete_dependents(self, resource: Resource, owner: Stored) -> None:
        blocking = False
        for place in list(self._dependents.get(owner.uid, ())):
            found = self._find(place)
            if found is None:
                continue
            self.loop.add(place)
            blocking |= any(ref.uid == owner.uid and ref.blocks for ref in found[1].owners)
        if not blocking:
            await self._drop_finalizer(resource, owner, FOREGROUND)

    async def _drop_finalizer(self, resource: Resource, owner: Stored, finalizer: str) -> None:
        def transform(obj: Object | None) -> Object:
            assert obj is not None
            kept = [f for f in obj["metadata"].get("finalizers") or () if f != finalizer]
            if kept:
                obj["metadata"]["finalizers"] = kept
            else:
                obj["metadata"].pop("finalizers", None)
            return obj

        await self._ignoring(
            (404, 409), self._objects.update(resource, owner.namespace, owner.name, transform, _write())
        )

    async def _ignoring(self, codes: tuple[int, ...], work: Awaitable[object]) -> None:
        try:
            await work
        except errors.StatusError as error:
            if error.code not in codes:
                raise


def _is_waiting(stored: Stored) -> bool:
    """Whether an object is being deleted and held by one of the collector's finalizers."""
    return stored.is_marked and bool({FOREGROUND, ORPHAN} & set(_finalizers(stored)))


def _finalizers(stored: Stored) -> list[str]:
    if b'"finalizers"' not in stored.data:
        return []
    return stored.object["metadata"].get("finalizers") or []
