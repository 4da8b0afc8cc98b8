"""The life of a CustomResourceDefinition: names accepted, established, served, and removed with its objects.

A definition is served from the moment its Established condition is committed. Conditions are decided by a
pure function (`decide`), so that the loop only writes what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from podium.api.conditions import is_true, new_condition, with_condition
from podium.api.kinds import Object
from podium.apiserver import customresources, errors
from podium.apiserver.kinds.apiextensions import CLEANUP
from podium.apiserver.loops.loop import Loop
from podium.apiserver.loops.namespaces import write
from podium.apiserver.objects import DeleteOptions, Objects, Transform
from podium.apiserver.registry import Registry
from podium.apiserver.store import Change, Store, Stored, Table

TABLE = "apiextensions.k8s.io/customresourcedefinitions"


class Definitions:
    """Keeps the registry in step with the stored definitions."""

    def __init__(self, store: Store, registry: Registry, objects: Objects) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects
        # A definition in one of these is never served, or it would reach the tables of built-in kinds.
        self._builtin_groups = frozenset(r.group for r in registry.resources() if not r.custom)
        self._specs: dict[
            str, tuple[str, int, int]
        ] = {}  # name -> uid, generation, revision of that generation
        self.loop: Loop[str] = Loop("custom resource definitions", self._look)

    def start(self) -> None:
        for stored in self._store.table(TABLE).objects.values():
            self._serve(stored)
            self.loop.add(stored.name)
        self._store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.table.name == TABLE:
            if change.new is not None:
                self._serve(change.new)
            elif change.old is not None:
                self._withdraw(change.old)
            self.loop.add(change.key)
            if change.old is not None and _accepted(change.new) != _accepted(change.old):
                for stored in self._others(change.key):
                    self.loop.add(stored.key)  # names that were taken may be free now
        elif change.new is None and change.table.name in self._store.tables:
            group, _, plural = change.table.name.partition("/")
            name = f"{plural}.{group}"
            if name in self._store.table(TABLE).objects:
                self.loop.add(name)

    def _others(self, name: str) -> Iterator[Stored]:
        """The other definitions of the same group, which is part of the name."""
        group = name.partition(".")[2]
        for stored in self._store.table(TABLE).objects.values():
            if stored.key != name and stored.key.partition(".")[2] == group:
                yield stored

    def _serve(self, stored: Stored) -> None:
        definition = stored.object
        spec = definition["spec"]
        if not is_true(definition, "Established") or spec["group"] in self._builtin_groups:
            return
        resources = customresources.resources(definition, self._changed_at(stored, definition))
        self._registry.replace(spec["group"], spec["names"]["plural"], resources)
        self._store.table(customresources.table_name(definition))

    def _changed_at(self, stored: Stored, definition: Object) -> int:
        """The revision of the last change of the spec; objects written since are read as they are stored."""
        generation = definition["metadata"].get("generation", 0)
        uid, known, revision = self._specs.get(stored.name, ("", 0, 0))
        if (uid, known) != (stored.uid, generation):
            revision = stored.revision
            self._specs[stored.name] = (stored.uid, generation, revision)
        return revision

    def _withdraw(self, stored: Stored) -> None:
        self._specs.pop(stored.name, None)
        definition = stored.object
        spec = definition["spec"]
        if spec["group"] in self._builtin_groups:
            return
        self._registry.replace(spec["group"], spec["names"]["plural"], [])
        self._store.drop_table(customresources.table_name(definition))

    async def _look(self, name: str) -> float | None:
        stored = self._store.table(TABLE).objects.get(name)
        if stored is None:
            return None
        definition = stored.object
        if "deletionTimestamp" in definition["metadata"]:
            return await self._remove(definition)
        others = [stored.object for stored in self._others(name)]
        status = decide(definition, others, self._objects.timestamp())
        if status != definition.get("status"):
            await self._write_status(name, status)
        return None

    async def _remove(self, definition: Object) -> float | None:
        """Delete the objects of a definition, then let it go."""
        name = definition["metadata"]["name"]
        if CLEANUP not in (definition["metadata"].get("finalizers") or ()):
            return None
        if not is_true(definition, "Established") or definition["spec"]["group"] in self._builtin_groups:
            await self._set_terminating(name, False, "NeverEstablished", "resource was never established")
            return None
        await self._set_terminating(
            name, True, "InstanceDeletionInProgress", "CustomResource deletion is in progress"
        )
        table = self._store.table(customresources.table_name(definition))
        await self._delete_objects(table)
        if table.objects:
            return 1.0
        await self._set_terminating(name, False, "InstanceDeletionCompleted", "removed all instances")
        return None

    async def _delete_objects(self, table: Table) -> None:
        resource = self._registry.for_table(table.name)
        if resource is None:
            return
        for stored in list(table.scan()):
            if stored.is_marked:
                continue
            options = DeleteOptions(propagation="Background")
            try:
                await self._objects.delete(resource, stored.namespace, stored.name, options, write())
            except errors.StatusError as error:
                if error.code not in (404, 409):
                    raise

    async def _set_terminating(self, name: str, value: bool, reason: str, message: str) -> None:
        """Say how far the deletion is; when it is over, let the definition go in the same write."""

        def transform(obj: Object | None) -> Object:
            assert obj is not None
            changed = new_condition("Terminating", value, reason, message, self._objects.timestamp())
            obj["status"] = with_condition(obj.get("status"), changed)
            if not value:
                kept = [f for f in obj["metadata"].get("finalizers") or () if f != CLEANUP]
                obj["metadata"]["finalizers"] = kept
                if not kept:
                    del obj["metadata"]["finalizers"]
            return obj

        await self._update(name, transform)

    async def _write_status(self, name: str, status: Object) -> None:
        def transform(obj: Object | None) -> Object:
            assert obj is not None
            obj["status"] = status
            return obj

        await self._update(name, transform)

    async def _update(self, name: str, transform: Transform) -> None:
        resource = self._registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert resource is not None
        try:
            await self._objects.update(resource, "", name, transform, write(), subresource="status")
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise


def decide(definition: Object, others: Iterable[Object], now: str) -> Object:
    """The status a definition should have, given the names the others hold."""
    spec, status = definition["spec"], definition.get("status") or {}
    accepted, conflict = _accept_names(
        spec["names"], status.get("acceptedNames") or {}, _taken_names(spec["group"], [*others, definition])
    )
    result: Object = {**status, "acceptedNames": accepted, "storedVersions": _stored_versions(spec, status)}
    if conflict is not None:
        result = with_condition(result, new_condition("NamesAccepted", False, *conflict, now))
        if not is_true(definition, "Established"):
            missing = new_condition("Established", False, "NotAccepted", "not all names are accepted", now)
            result = with_condition(result, missing)
        return result
    result = with_condition(
        result, new_condition("NamesAccepted", True, "NoConflicts", "no conflicts found", now)
    )
    established = new_condition(
        "Established", True, "InitialNamesAccepted", "the initial names have been accepted", now
    )
    return with_condition(result, established)


def _accept_names(names: Object, held: Object, taken: _Taken) -> tuple[Object, tuple[str, str] | None]:
    """The names a definition has from now on, and reason and message of the last one it did not get."""
    accepted: Object = {"plural": "", "kind": "", **held}
    conflict: tuple[str, str] | None = None
    for field in ("plural", "singular", "shortNames", "kind", "listKind"):
        wanted, own = names.get(field), held.get(field)
        if field == "shortNames":
            in_use = [s for s in wanted or () if s not in (own or ()) and s in taken.resources]
        else:
            used = taken.kinds if field in ("kind", "listKind") else taken.resources
            in_use = [wanted] if wanted != own and wanted in used else []
        if in_use:
            texts = [f'"{name}" is already in use' for name in in_use]
            message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            conflict = f"{field[0].upper()}{field[1:]}Conflict", message
        else:
            _set(accepted, field, wanted)
    _set(accepted, "categories", names.get("categories"))
    return accepted, conflict


def _set(accepted: Object, field: str, value: Any) -> None:
    if value:
        accepted[field] = value
    else:
        accepted.pop(field, None)


class _Taken(NamedTuple):
    """The names in use in one group."""

    resources: set[str]
    kinds: set[str]


def _taken_names(group: str, definitions: Iterable[Object]) -> _Taken:
    taken = _Taken(set(), set())
    for definition in definitions:
        if definition["spec"]["group"] != group:
            continue
        held = (definition.get("status") or {}).get("acceptedNames") or {}
        taken.resources.update(held[key] for key in ("plural", "singular") if key in held)
        taken.resources.update(held.get("shortNames") or ())
        taken.kinds.update(held[key] for key in ("kind", "listKind") if key in held)
    return taken


def _stored_versions(spec: Object, status: Object) -> list[str]:
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    known: list[str] = list(status.get("storedVersions") or ())
    return known if storage in known else [*known, storage]


def _accepted(stored: Stored | None) -> Any:
    return (stored.object.get("status") or {}).get("acceptedNames") if stored is not None else None
