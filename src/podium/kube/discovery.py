"""Which resources the server serves: asked once, kept for a while, asked again when it seems wrong.

The aggregated form (two requests for everything) is preferred; servers that do not know it answer with the
plain form to the same requests, and then each group version is asked for by itself. A group that cannot be
asked (an extension server that is down) is left out and remembered in `failures`. Look-ups at the same time
share one round of requests, and a result that was overtaken by `invalidate` is never kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from podium.api.kinds import GVK
from podium.kube.clock import Clock
from podium.kube.errors import KubeError, NoMatch, NotFound, ProtocolError
from podium.kube.resource import Resource

Fetch = Callable[[str, str], Awaitable[bytes]]  # (path, Accept) -> body

_AGGREGATED = "APIGroupDiscoveryList"
_ACCEPT_AGGREGATED = ",".join(
    [
        f"application/json;g=apidiscovery.k8s.io;v=v2;as={_AGGREGATED}",
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1;as={_AGGREGATED}",
        "application/json",
    ]
)
_ACCEPT = "application/json"
_PARALLEL = 8


@dataclass(frozen=True)
class Served:
    """What was discovered at one moment, groups and versions in the server's order of preference."""

    resources: tuple[Resource, ...]
    failures: Mapping[str, str]  # group version -> why it could not be asked
    by_kind: Mapping[GVK, Resource] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_kind: dict[GVK, Resource] = {}
        for resource in self.resources:
            by_kind.setdefault(resource.gvk, resource)
        object.__setattr__(self, "by_kind", by_kind)


class Discovery:
    """What one server serves."""

    def __init__(self, fetch: Fetch, clock: Clock, *, ttl: float = 300.0) -> None:
        self._fetch = fetch
        self._clock = clock
        self._ttl = ttl
        self._served: Served | None = None
        self._expires = 0.0
        self._round: asyncio.Task[Served] | None = None

    async def resource(self, gvk: GVK) -> Resource:
        """The resource of a kind; NoMatch if the server does not serve it even when asked afresh."""
        found = await self._look_up(lambda served: served.by_kind.get(gvk))
        if found is None:
            raise NoMatch(f"the server serves no kind {gvk.kind} in {gvk.api_version}{self._hint(gvk.group)}")
        return found

    async def resources(self) -> tuple[Resource, ...]:
        """Every resource in every version, preferred versions first within each group."""
        return (await self._current()).resources

    async def find(self, name: str) -> Resource:
        """The resource that kubectl would take for this argument.

        That is a plural, singular or short name or a kind, optionally followed by `.group` or
        `.version.group`; the group may be cut short. NoMatch if there is none.
        """
        found = await self._look_up(lambda served: _find(served.resources, name))
        if found is None:
            raise NoMatch(f'the server doesn\'t have a resource type "{name}"{self._hint("")}')
        return found

    async def failures(self) -> Mapping[str, str]:
        """The group versions that could not be asked, and why."""
        return (await self._current()).failures

    def invalidate(self) -> None:
        """Forget what is known: a definition appeared or went away."""
        self._served = None
        self._round = None

    async def close(self) -> None:
        """Give up a round of requests that is under way."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait([self._round])

    async def _look_up(self, choose: Callable[[Served], Resource | None]) -> Resource | None:
        known = self._fresh()
        found = choose(known) if known else None
        if found is None:
            if known is not None and self._served is known:
                self.invalidate()
            found = choose(await self._current())
        return found

    def _fresh(self) -> Served | None:
        if self._served is not None and self._clock.monotonic() >= self._expires:
            self.invalidate()
        return self._served

    async def _current(self) -> Served:
        served = self._fresh()
        if served is not None:
            return served
        if self._round is None:
            self._round = asyncio.create_task(self._ask(), name="kube-discovery")
            self._round.add_done_callback(_retrieve)
        # Shielded: the other callers must not suffer when this one is cancelled.
        return await asyncio.shield(self._round)

    async def _ask(self) -> Served:
        """One round of requests; what it finds is kept unless `invalidate` overtook it."""
        try:
            served = await discover(self._fetch)
            if self._round is asyncio.current_task():
                self._served, self._expires = served, self._clock.monotonic() + self._ttl
            return served
        finally:
            if self._round is asyncio.current_task():
                self._round = None

    def _hint(self, group: str) -> str:
        failures = self._served.failures if self._served else {}
        about = [f"{gv}: {why}" for gv, why in failures.items() if not group or gv.startswith(f"{group}/")]
        return f" (but the server could not say what it serves in {'; '.join(about)})" if about else ""


async def discover(fetch: Fetch) -> Served:
    """Ask the server what it serves."""
    failures: dict[str, str] = {}
    try:
        async with asyncio.TaskGroup() as tasks:
            indexes = [tasks.create_task(_index(fetch, path)) for path in ("/api", "/apis")]
    except ExceptionGroup as both:
        raise both.exceptions[0] from None
    resources: list[Resource] = []
    for index in (task.result() for task in indexes):
        if index.kind == _AGGREGATED:
            resources.extend(_aggregated(index, failures))
        else:
            resources.extend(await _plain(fetch, list(_group_versions(index)), failures))
    return Served(tuple(resources), failures)


class _Kind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str | None = None
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    subresources: list[_Subresource] | None = None


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: list[_AggregatedResource] | None = None
    freshness: str = ""


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Name = _Name()
    versions: list[_AggregatedVersion] | None = None


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    versions: list[_GroupVersion] | None = None
    preferred_version: _GroupVersion | None = None


class _Index(msgspec.Struct):
    """What /api or /apis answers: APIGroupDiscoveryList, APIVersions or APIGroupList, whichever it knows."""

    kind: str = ""
    items: list[_AggregatedGroup] | None = None
    versions: list[str] | None = None
    groups: list[_Group] | None = None


class _PlainResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str | None = None
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None


class _PlainList(msgspec.Struct):
    resources: list[_PlainResource] | None = None


_Document = TypeVar("_Document", _Index, _PlainList)


async def _index(fetch: Fetch, path: str) -> _Index:
    try:
        return _decoded(await fetch(path, _ACCEPT_AGGREGATED), path, _Index)
    except NotFound:
        return _Index()  # a server of extensions only has no /api


async def _plain(fetch: Fetch, versions: list[str], failures: dict[str, str]) -> list[Resource]:
    slots = asyncio.Semaphore(_PARALLEL)

    async def one(group_version: str) -> list[Resource]:
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        async with slots:
            try:
                document = _decoded(await fetch(path, _ACCEPT), path, _PlainList)
            except KubeError as error:
                failures[group_version] = str(error)
                return []
        return list(_listed(document, group_version))

    found = await asyncio.gather(*(one(version) for version in versions))
    return [resource for resources in found for resource in resources]


def _group_versions(index: _Index) -> Iterator[str]:
    """The group versions that a plain answer lists, preferred ones first in each group."""
    yield from index.versions or ()
    for group in index.groups or ():
        preferred = group.preferred_version
        versions = sorted(group.versions or (), key=lambda version: version != preferred)
        yield from (version.group_version for version in versions)


def _aggregated(index: _Index, failures: dict[str, str]) -> Iterator[Resource]:
    for item in index.items or ():
        group = item.metadata.name
        for version in item.versions or ():
            if version.freshness == "Stale":
                failures[f"{group}/{version.version}"] = "its server does not answer"
                continue
            for found in version.resources or ():
                if found.response_kind is None or not found.response_kind.kind:
                    continue  # a parent that exists only for its subresources
                kind = found.response_kind.kind
                yield Resource(
                    group=group,
                    version=version.version,
                    kind=kind,
                    plural=found.resource,
                    singular=found.singular_resource or kind.lower(),
                    namespaced=found.scope == "Namespaced",
                    verbs=found.verbs or (),
                    short_names=found.short_names or (),
                    categories=found.categories or (),
                    subresources=tuple(sub.subresource for sub in found.subresources or ()),
                )


def _listed(document: _PlainList, group_version: str) -> Iterator[Resource]:
    group, _, version = group_version.rpartition("/")
    subresources: dict[str, list[str]] = {}
    for found in document.resources or ():
        parent, slash, subresource = found.name.partition("/")
        if slash:
            subresources.setdefault(parent, []).append(subresource)
    for found in document.resources or ():
        if "/" in found.name:
            continue
        yield Resource(
            group=group,
            version=version,
            kind=found.kind,
            plural=found.name,
            singular=found.singular_name or found.kind.lower(),
            namespaced=found.namespaced,
            verbs=found.verbs or (),
            short_names=found.short_names or (),
            categories=found.categories or (),
            subresources=tuple(subresources.get(found.name, ())),
        )


def _find(resources: tuple[Resource, ...], argument: str) -> Resource | None:
    """By full name before short name, by whole group before its beginning, in the server's order."""
    argument = argument.lower()
    readings = list(_readings(argument))
    for names in (_full_names, _short_names):
        for exact in (True, False):
            for name, version, group in readings:
                for resource in resources:
                    if (
                        name in names(resource)
                        and (not version or resource.version == version)
                        and _in_group(resource, group, exact=exact)
                    ):
                        return resource
    return None


def _readings(argument: str) -> Iterator[tuple[str, str, str | None]]:
    """`a.b.c` may be the resource a in version b of group c, or the resource a in group b.c."""
    name, dot, rest = argument.partition(".")
    if not dot:
        yield name, "", None
        return
    version, dot, group = rest.partition(".")
    if dot:
        yield name, version, group
    yield name, "", rest
    if not dot:
        yield name, rest, ""  # pods.v1: a version of the core group


def _full_names(resource: Resource) -> Iterable[str]:
    return resource.plural, resource.singular, resource.kind.lower()


def _short_names(resource: Resource) -> Iterable[str]:
    return resource.short_names


def _in_group(resource: Resource, group: str | None, *, exact: bool) -> bool:
    if group is None:
        return True
    return resource.group == group or (not exact and bool(group) and resource.group.startswith(group))


def _decoded(body: bytes, path: str, document: type[_Document]) -> _Document:
    try:
        return msgspec.json.decode(body, type=document)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"GET {path}: the answer is not a discovery document ({error})") from error


def _retrieve(task: asyncio.Task[Served]) -> None:
    """Nobody may be waiting any more; without this asyncio would complain about the lost exception."""
    if not task.cancelled():
        task.exception()
