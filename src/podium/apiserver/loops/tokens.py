"""Secrets of type service-account-token: filled with a token, and removed with their account."""

from __future__ import annotations

from podium.apiserver import errors
from podium.apiserver.access.tokens import TOKEN_SECRET, ServiceAccountTokens, is_token_secret
from podium.apiserver.loops.loop import Loop
from podium.apiserver.loops.namespaces import write
from podium.apiserver.objects import DeleteOptions, Objects
from podium.apiserver.registry import Registry
from podium.apiserver.store import Change, Store

_ACCOUNT = "kubernetes.io/service-account.name"


class TokenSecrets:
    """Fills token Secrets and deletes those whose account is gone."""

    def __init__(
        self, store: Store, registry: Registry, objects: Objects, tokens: ServiceAccountTokens, ca: bytes
    ) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects
        self._tokens = tokens
        self._ca = ca
        self.loop: Loop[str] = Loop("token secrets", self._look)

    def start(self) -> None:
        for stored in self._store.table("/secrets").objects.values():
            self._add(stored.key, stored.data)
        self._store.observe(self._observe)

    def _observe(self, change: Change) -> None:
        if change.table.name == "/secrets" and change.new is not None:
            self._add(change.key, change.new.data)
        elif change.table.name == "/serviceaccounts":
            for stored in self._store.table("/secrets").scan(f"{change.key.rpartition('/')[0]}/"):
                self._add(stored.key, stored.data)

    def _add(self, key: str, data: bytes) -> None:
        if TOKEN_SECRET.encode() in data:
            self.loop.add(key)

    async def _look(self, key: str) -> float | None:
        stored = self._store.table("/secrets").objects.get(key)
        if stored is None:
            return None
        secret = stored.object
        name = (secret["metadata"].get("annotations") or {}).get(_ACCOUNT, "")
        if secret.get("type") != TOKEN_SECRET or not name:
            return None
        resource = self._registry.find("", "v1", "secrets")
        assert resource is not None
        account = self._store.table("/serviceaccounts").objects.get(f"{stored.namespace}/{name}")
        try:
            if account is None or not is_token_secret(secret, account.object):
                options = DeleteOptions(uid=stored.uid)
                await self._objects.delete(resource, stored.namespace, stored.name, options, write())
                return None
            filled = self._tokens.fill_secret(secret, account.object, self._ca)
            if filled is not None:
                await self._objects.update(resource, stored.namespace, stored.name, lambda _: filled, write())
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise
        return None
