"""The life of a namespace: what every one contains, and how one is emptied and removed."""

from __future__ import annotations

from typing import Any

from podium.api.conditions import new_condition, with_condition
from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.access.identity import Identity, account_groups, account_username
from podium.apiserver.loops.loop import Loop
from podium.apiserver.objects import DeleteOptions, Objects, Write
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.store import Change, Store

INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")
_CONTROLLER = Identity(
    account_username("kube-system", "namespace-controller"),
    groups=(*account_groups("kube-system"), "system:masters", "system:authenticated"),
)
_RETRY_SECONDS = 1.0


def write() -> Write:
    """How the control plane's own controllers write."""
    return Write(_CONTROLLER, manager="kube-controller-manager", validation="Ignore")


class Namespaces:
    """Gives each namespace its default account and CA bundle, and empties those being deleted."""

    def __init__(self, store: Store, registry: Registry, objects: Objects, ca_certificate: str) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects
        self._ca_certificate = ca_certificate
        self._ending: set[str] = set()
        self.loop: Loop[str] = Loop("namespaces", self._look)

    def start(self) -> None:
        for stored in self._store.table("/namespaces").objects.values():
            self.loop.add(stored.name)
        self._store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        table = change.table.name
        if table == "/namespaces":
            self.loop.add(change.key)
            return
        namespace = change.key.rpartition("/")[0]
        if not namespace:
            return
        contents = change.new is None and table in ("/serviceaccounts", "/configmaps")
        if contents or namespace in self._ending:
            self.loop.add(namespace)

    async def _look(self, name: str) -> float | None:
        stored = self._store.table("/namespaces").objects.get(name)
        if stored is None:
            self._ending.discard(name)
            return None
        namespace = stored.object
        if "deletionTimestamp" in namespace["metadata"]:
            self._ending.add(name)
            return await self._empty(namespace)
        await self._furnish(name)
        return None

    # --- contents -------------------------------------------------------------------------------------

    async def _furnish(self, namespace: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await self._ensure("serviceaccounts", namespace, account)
        description = (
            "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
            "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
            "guaranteed across distributions of Kubernetes clusters."
        )
        bundle = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": description},
            },
            "data": {"ca.crt": self._ca_certificate},
        }
        await self._ensure("configmaps", namespace, bundle)

    async def _ensure(self, plural: str, namespace: str, obj: Object) -> None:
        resource = self._registry.find("", "v1", plural)
        assert resource is not None
        key = resource.key(namespace, obj["metadata"]["name"])
        if self._store.table(resource.table).latest(key) is not None:
            return
        try:
            await self._objects.create(resource, namespace, obj, write())
        except errors.StatusError as error:
            if error.code not in (403, 404, 409):  # the namespace is going, gone, or somebody was faster
                raise

    # --- deletion -------------------------------------------------------------------------------------

    async def _empty(self, namespace: Object) -> float | None:
        name = namespace["metadata"]["name"]
        remaining: dict[str, int] = {}
        finalizers: dict[str, int] = {}
        for resource in self._namespaced():
            table = self._store.table(resource.table)
            for stored in list(table.scan(f"{name}/")):
                if not stored.is_marked:
                    await self._delete(resource, name, stored.name)
            for stored in table.scan(f"{name}/"):
                # With a dot even where there is no group, as upstream joins the two.
                kind = f"{resource.plural}.{resource.group}"
                remaining[kind] = remaining.get(kind, 0) + 1
                for finalizer in stored.object["metadata"].get("finalizers") or ():
                    finalizers[finalizer] = finalizers.get(finalizer, 0) + 1
        if remaining:
            await self._report(name, remaining, finalizers)
            return _RETRY_SECONDS
        await self._finalize(name)
        return None

    def _namespaced(self) -> list[Resource]:
        tables = {r.table for r in self._registry.resources() if r.namespaced}
        found = [self._registry.for_table(table) for table in tables if table in self._store.tables]
        return [resource for resource in found if resource is not None]

    async def _delete(self, resource: Resource, namespace: str, name: str) -> None:
        try:
            options = DeleteOptions(propagation="Background")
            await self._objects.delete(resource, namespace, name, options, write())
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _report(self, name: str, remaining: dict[str, int], finalizers: dict[str, int]) -> None:
        content = ", ".join(
            f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items())
        )
        held = ", ".join(f"{f} in {count} resource instances" for f, count in sorted(finalizers.items()))
        wanted = (
            ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered",
             "All resources successfully discovered"),
            ("NamespaceDeletionGroupVersionParsingFailure", False, "ParsedGroupVersions",
             "All legacy kube types successfully parsed"),
            ("NamespaceDeletionContentFailure", False, "ContentDeleted",
             "All content successfully deleted, may be waiting on finalization"),
            ("NamespaceContentRemaining", True, "SomeResourcesRemain",
             f"Some resources are remaining: {content}"),
            ("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain",
             f"Some content in the namespace has finalizers remaining: {held}")
            if held else
            ("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers",
             "All content-preserving finalizers finished"),
        )  # fmt: skip

        def transform(obj: Object | None) -> Object:
            assert obj is not None
            now = self._objects.timestamp()
            for verdict in wanted:
                obj["status"] = with_condition(obj.get("status"), new_condition(*verdict, now))
            return obj

        await self._update(name, transform, "status")

    async def _finalize(self, name: str) -> None:
        def transform(obj: Object | None) -> Object:
            assert obj is not None
            spec = obj.setdefault("spec", {})
            kept = [f for f in spec.get("finalizers") or () if f != "kubernetes"]
            spec["finalizers"] = kept
            if not kept:
                del spec["finalizers"]
            return obj

        await self._update(name, transform, "finalize")

    async def _update(self, name: str, transform: Any, subresource: str) -> None:
        resource = self._registry.find("", "v1", "namespaces")
        assert resource is not None
        try:
            await self._objects.update(resource, "", name, transform, write(), subresource=subresource)
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise
