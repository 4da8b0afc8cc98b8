"""The Kubernetes client: objects are plain dicts in and out, so nothing that the server knows is lost.

    async with Client(load_config()) as client:
        pod = await client.get(GVK("", "v1", "Pod"), "web-0", "default")

Verbs that concern one object fall back to the configuration's namespace, as kubectl does; verbs that concern
many take an empty namespace to mean all of them. Errors are in `podium.kube.errors`; `podium.kube.calls`
decides when a request is repeated. A watch here is one connection: staying connected is the cache's work.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from podium import __version__
from podium.api.kinds import GVK, Object
from podium.kube.auth import credentials
from podium.kube.calls import Call, Caller, RequestDone, log_warning
from podium.kube.clock import Clock, SystemClock
from podium.kube.config import Config
from podium.kube.discovery import Discovery
from podium.kube.errors import Gone, NotFound, ProtocolError
from podium.kube.resource import Resource
from podium.kube.transport import AiohttpTransport, Response, Transport
from podium.kube.watchstream import WatchEvent, events

USER_AGENT = f"podium/{__version__} ({platform.system().lower()}) python/{platform.python_version()}"

_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_JSON}"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_JSON}"


class PatchType(Enum):
    """How a patch is to be understood; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects, and the resource version from which to watch for changes to them."""

    items: list[Object]
    resource_version: str


class Page(msgspec.Struct, frozen=True):
    """Part of a list. The items share one buffer, the whole page: copy what you keep with `bytes(item)`."""

    items: list[msgspec.Raw]
    resource_version: str


Query = Mapping[str, str | int | bool | None]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "token": "continue"}):
    resource_version: str = ""
    token: str = ""


class _List(msgspec.Struct, Generic[_Item]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[_Item] | None = None


class Client:
    """One API server, as one identity."""

    def __init__(
        self,
        config: Config,
        *,
        transport: Transport | None = None,
        user_agent: str = USER_AGENT,
        field_manager: str = "podium",
        on_warning: Callable[[str], None] = log_warning,
        observer: Callable[[RequestDone], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.config = config
        self._field_manager = field_manager
        self._transport = transport or AiohttpTransport(config)
        self._caller = Caller(
            config,
            self._transport,
            credentials(config, clock),
            clock,
            user_agent=user_agent,
            on_warning=on_warning,
            observer=observer,
        )
        self.discovery = Discovery(self._discover, clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.discovery.close()
        await self._transport.close()

    # Reading

    async def get(
        self, gvk: GVK, name: str, namespace: str = "", *, subresource: str = "", resource_version: str = ""
    ) -> Object:
        """One object; NotFound if there is none."""
        query = {"resourceVersion": resource_version}
        return await self._on_object("get", "GET", gvk, name, namespace, subresource, query=query)

    async def list(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        resource_version: str = "",
    ) -> ObjectList:
        """All objects that match, as of one moment, fetched in pages of `limit`."""
        query = {"labelSelector": labels, "fieldSelector": fields, "resourceVersion": resource_version}
        try:
            return await self._listed(gvk, namespace, query, limit)
        except Gone:
            if not limit:
                raise
            # The continue token expired on the way. A list in one piece cannot expire.
            return await self._listed(gvk, namespace, query, 0)

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
        """The same list as it arrives, items as JSON text; Gone if it expired on the way (start again)."""
        query = {"labelSelector": labels, "fieldSelector": fields, "resourceVersion": resource_version}
        accept = _METADATA_LIST if metadata_only else _JSON
        async with aclosing(self._paged(gvk, namespace, query, limit, _RAW_LIST, accept)) as found:
            async for part in found:
                yield Page(part.items or [], part.metadata.resource_version)

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
        """Changes as they happen, until the server ends this one connection; Gone if the version is too old.

        Bookmarks are always asked for. Leave the loop early only within `contextlib.aclosing`, which closes
        the connection at once.
        """
        query: Query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "labelSelector": labels,
            "fieldSelector": fields,
            "resourceVersion": resource_version,
            "sendInitialEvents": send_initial_events,
            "resourceVersionMatch": "NotOlderThan" if send_initial_events else "",
            "timeoutSeconds": timeout_seconds,
        }
        resource = await self.discovery.resource(gvk)
        target = _target(resource.path(namespace), query)
        accept = _METADATA if metadata_only else _JSON
        try:
            call = Call("watch", resource.qualified, "GET", target, accept)
            async with self._caller.open(call) as stream, aclosing(events(stream.chunks())) as changes:
                async for change in changes:
                    yield change
        except NotFound as error:
            await self._moved(resource, error)
            raise

    # Writing

    async def create(
        self,
        obj: Object,
        *,
        namespace: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> Object:
        """The object as the server made it; AlreadyExists if there is one of this name."""
        gvk, namespace = GVK.of(obj), namespace or _metadata(obj).get("namespace") or ""
        query = self._write_query(dry_run, field_manager, field_validation)

        async def post(resource: Resource) -> Object:
            path = resource.path(namespace or self.config.namespace)
            return await self._exchange("create", resource, "POST", path, query, _JSON, obj)

        return await self._located(gvk, post)

    async def create_subresource(
        self, gvk: GVK, name: str, subresource: str, body: Object, namespace: str = ""
    ) -> Object:
        """What the server answers to a POST below an object: token, eviction, binding."""
        return await self._on_object(
            "create", "POST", gvk, name, namespace, subresource, content_type=_JSON, body=body
        )

    async def update(
        self,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> Object:
        """Replace an object; Conflict if it changed since its resourceVersion."""
        gvk, metadata = GVK.of(obj), _metadata(obj)
        return await self._on_object(
            "update",
            "PUT",
            gvk,
            metadata.get("name") or "",
            metadata.get("namespace") or "",
            subresource,
            query=self._write_query(dry_run, field_manager, field_validation),
            content_type=_JSON,
            body=obj,
        )

    async def patch(
        self,
        gvk: GVK,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the word that kubectl and the API use
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
        field_validation: str = "",
    ) -> Object:
        """Change parts of an object; the result is the whole object."""
        query = self._write_query(dry_run, field_manager, field_validation)
        return await self._on_object(
            "apply" if type is PatchType.APPLY else "patch",
            "PATCH",
            gvk,
            name,
            namespace,
            subresource,
            query={**query, "force": force},
            content_type=type.value,
            body=patch,
        )

    async def apply(
        self,
        obj: Object,
        *,
        field_manager: str = "",
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: str = "",
    ) -> Object:
        """Server-side apply: own these fields; ApplyConflict if another manager owns them and not `force`."""
        metadata = _metadata(obj)
        return await self.patch(
            GVK.of(obj),
            metadata.get("name") or "",
            obj,
            metadata.get("namespace") or "",
            type=PatchType.APPLY,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager,
            force=force,
            field_validation=field_validation,
        )

    async def delete(
        self,
        gvk: GVK,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        grace_seconds: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Delete an object: the answer is the object if it goes on to exist for a while, else a Status.

        With `uid` or `resource_version` only that very object is deleted: Conflict if it is another by now.
        """
        options = _delete_options(propagation, grace_seconds, uid, resource_version, dry_run=dry_run)
        return await self._on_object(
            "delete", "DELETE", gvk, name, namespace, content_type=_JSON, body=options
        )

    async def delete_collection(
        self,
        gvk: GVK,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> ObjectList:
        """Delete all objects that match in one namespace; the answer lists them if the server says so."""
        options = _delete_options(propagation, grace_seconds, "", "", dry_run=dry_run)
        query = {"labelSelector": labels, "fieldSelector": fields}

        async def delete(resource: Resource) -> Object:
            path = resource.path(namespace)
            return await self._exchange("deletecollection", resource, "DELETE", path, query, _JSON, options)

        deleted = await self._located(gvk, delete)
        return ObjectList(
            [_with_kind(item, gvk) for item in deleted.get("items") or ()],
            _metadata(deleted).get("resourceVersion") or "",
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        accept: str | None = None,
    ) -> Response:
        """Anything else the server offers: the answer as it is, refusals included."""
        target = _target(quote(path, safe="/-._~!$&'()*+,;=:@%"), query or {})
        return await self._caller.send(
            Call(method.lower(), "", method, target, accept or _JSON, content_type or "", body)
        )

    # How

    async def _discover(self, path: str, accept: str) -> bytes:
        return (await self._caller.call(Call("get", "", "GET", path, accept))).body

    async def _listed(self, gvk: GVK, namespace: str, query: Query, limit: int) -> ObjectList:
        items: list[Object] = []
        version = ""
        async with aclosing(self._paged(gvk, namespace, query, limit, _OBJECT_LIST, _JSON)) as found:
            async for part in found:
                items += [_with_kind(item, gvk) for item in part.items or ()]
                version = part.metadata.resource_version
        return ObjectList(items, version)

    async def _paged(
        self,
        gvk: GVK,
        namespace: str,
        query: Query,
        limit: int,
        decoder: msgspec.json.Decoder[_List[_Item]],
        accept: str,
    ) -> AsyncGenerator[_List[_Item], None]:
        query = {**query, "limit": limit or None}
        while True:
            part = await self._located(gvk, _page_getter(self._caller, namespace, query, decoder, accept))
            yield part
            if not part.metadata.token:
                return
            # The token stands for the version of the first page; the server refuses both together.
            query = {**query, "continue": part.metadata.token, "resourceVersion": ""}

    async def _on_object(
        self,
        verb: str,
        method: str,
        gvk: GVK,
        name: str,
        namespace: str,
        subresource: str = "",
        *,
        query: Query | None = None,
        content_type: str = "",
        body: Any = None,
    ) -> Object:
        if not name:
            raise ValueError(f"to {verb} a {gvk.kind}, its name is needed")

        async def exchange(resource: Resource) -> Object:
            path = resource.path(namespace or self.config.namespace, name, subresource)
            return await self._exchange(verb, resource, method, path, query or {}, content_type, body)

        return await self._located(gvk, exchange)

    async def _exchange(
        self,
        verb: str,
        resource: Resource,
        method: str,
        path: str,
        query: Query,
        content_type: str,
        body: Any,
    ) -> Object:
        encoded = None if body is None else msgspec.json.encode(body)
        call = Call(
            verb,
            resource.qualified,
            method,
            _target(path, query),
            content_type=content_type if encoded is not None else "",
            body=encoded,
        )
        return _decoded(await self._caller.call(call), call, _OBJECT)

    async def _located(self, gvk: GVK, act: Callable[[Resource], Awaitable[_Result]]) -> _Result:
        """Act on the resource of a kind; if its path is gone, look where it is now and act once more."""
        resource = await self.discovery.resource(gvk)
        try:
            return await act(resource)
        except NotFound as error:
            moved = await self._moved(resource, error)
            if moved is None:
                raise
        return await act(moved)

    async def _moved(self, resource: Resource, error: NotFound) -> Resource | None:
        """Where a resource is now if a 404 is about its path: None if it did not move, NoMatch if it left."""
        if error.names_object:
            return None
        self.discovery.invalidate()
        found = await self.discovery.resource(resource.gvk)
        return found if found.path() != resource.path() or found.namespaced != resource.namespaced else None

    def _write_query(self, dry_run: bool, field_manager: str, field_validation: str) -> Query:
        return {
            "fieldManager": field_manager or self._field_manager,
            "dryRun": "All" if dry_run else "",
            "fieldValidation": field_validation,
        }


_OBJECT: msgspec.json.Decoder[Object] = msgspec.json.Decoder(dict[str, Any])
_OBJECT_LIST = msgspec.json.Decoder(_List[dict[str, Any]])
_RAW_LIST = msgspec.json.Decoder(_List[msgspec.Raw])


def _page_getter(
    caller: Caller,
    namespace: str,
    query: Query,
    decoder: msgspec.json.Decoder[_List[_Item]],
    accept: str,
) -> Callable[[Resource], Awaitable[_List[_Item]]]:
    async def get(resource: Resource) -> _List[_Item]:
        target = _target(resource.path(namespace), query)
        call = Call("list", resource.qualified, "GET", target, accept)
        return _decoded(await caller.call(call), call, decoder)

    return get


def _decoded(response: Response, call: Call, decoder: msgspec.json.Decoder[_Result]) -> _Result:
    try:
        return decoder.decode(response.body)
    except msgspec.MsgspecError as error:
        what = f"{call.method} {call.target.partition('?')[0]}"
        raise ProtocolError(f"{what}: the answer is not a Kubernetes object ({error})") from error


def _target(path: str, query: Query) -> str:
    """A path with the parameters that say something."""
    given = {
        key: "true" if value is True else str(value)
        for key, value in query.items()
        if value is not None and value is not False and value != ""
    }
    return f"{path}?{urlencode(given, quote_via=quote, safe='')}" if given else path


def _delete_options(
    propagation: str, grace_seconds: int | None, uid: str, resource_version: str, *, dry_run: bool
) -> Object | None:
    options: Object = {}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if any(preconditions.values()):
        options["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if dry_run:
        options["dryRun"] = ["All"]
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None


def _metadata(obj: Object) -> Object:
    return obj.get("metadata") or {}


def _with_kind(item: Object, gvk: GVK) -> Object:
    """Lists of built-in kinds leave the kind out of their items; whoever gets a single one needs it."""
    if "kind" in item:
        return item
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **item}
