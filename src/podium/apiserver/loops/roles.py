"""ClusterRoles that are made of others: their rules follow the roles that their selectors name."""

from __future__ import annotations

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.access.rules import aggregate
from podium.apiserver.loops.loop import Loop
from podium.apiserver.loops.namespaces import write
from podium.apiserver.objects import Objects
from podium.apiserver.registry import Registry
from podium.apiserver.store import Change, Store

TABLE = "rbac.authorization.k8s.io/clusterroles"


class AggregatedRoles:
    """Keeps the rules of aggregated ClusterRoles up to date."""

    def __init__(self, store: Store, registry: Registry, objects: Objects) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects
        self.loop: Loop[str] = Loop("aggregated roles", self._look)

    def start(self) -> None:
        self._add_all()
        self._store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.table.name == TABLE:
            self._add_all()

    def _add_all(self) -> None:
        for stored in self._store.table(TABLE).objects.values():
            if b'"aggregationRule"' in stored.data:
                self.loop.add(stored.name)

    async def _look(self, name: str) -> float | None:
        table = self._store.table(TABLE)
        stored = table.objects.get(name)
        if stored is None:
            return None
        role = stored.object
        rules = aggregate(role, [other.object for other in table.scan()])
        if rules == (role.get("rules") or []):
            return None

        def transform(obj: Object | None) -> Object:
            assert obj is not None
            obj["rules"] = rules
            return obj

        resource = self._registry.find("rbac.authorization.k8s.io", "v1", "clusterroles")
        assert resource is not None
        try:
            await self._objects.update(resource, "", name, transform, write())
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise
        return None
