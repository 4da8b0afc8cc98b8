"""Which resources are served, under which names, and how each is read, checked and stored.

A `Resource` is one row of discovery plus its behaviour: a `Codec` that turns request bodies into objects of
its version and stored bytes into answers, and a `Strategy` with the rules of its kind. Built-in resources
are registered once at start; custom ones come and go with their CustomResourceDefinition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from podium.api.kinds import Object
from podium.apiserver.store import Stored
from podium.apiserver.strategy import Strategy
from podium.schema.shape import Shape


class Codec(Protocol):
    """How objects of one version of one kind are read and stored."""

    @property
    def shape(self) -> Shape:
        """Merge rules for patches and server-side apply."""

    @property
    def zero(self) -> Object | None:
        """What an object has that says nothing: the fields a built-in kind always shows."""

    def admit(self, obj: Object) -> tuple[Object, list[str]]:
        """Bring a decoded body into the kind's shape; answers it and the paths of fields it does not know."""

    def serve(self, stored: Stored) -> bytes:
        """A stored object as JSON of this version."""

    def decode(self, stored: Stored) -> Object:
        """A stored object of this version, for the caller to change."""

    def to_storage(self, obj: Object) -> Object:
        """The object in the version it is stored in; may be the same one, changed in place."""

    def is_settled(self, stored: Stored) -> bool:
        """Whether an object that is read and written back stays as it is stored."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`, as a CustomResourceDefinition declares it."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as dotted paths from the root."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resource:
    """One served resource of one group and version."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: Mapping[str, Mapping[str, Any]]  # name -> what discovery says of it
    table: str
    codec: Codec
    load_strategy: Callable[[], Strategy]  # rules are loaded when the first object is written
    returns_deleted: bool = False  # DELETE answers the object rather than a Status
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] | None = None  # None: a built-in kind with columns of its own
    selectable_fields: frozenset[str] = frozenset()
    custom: bool = False
    deprecation: str = ""  # what a client of this version is to be told, if anything
    terminating: bool = False  # its definition is being deleted: nothing new may be created
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def strategy(self) -> Strategy:
        return self.load_strategy()

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name


def version_priority(version: str) -> tuple[int, int, int]:
    """Sort key of Kubernetes versions, newest and most stable first: v2, v1, v1beta2, v1alpha1."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0)
    stage = {None: 0, "beta": 1, "alpha": 2}[match.group(2)]
    return (stage, -int(match.group(1)), -int(match.group(3) or 0))


class Registry:
    """All served resources; `revision` rises with every change so that derived documents can be cached."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._versions: dict[str, list[str]] = {}
        self.revision = 0

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource that serves a kind, for owner references and the like."""
        for resource in self._resources.values():
            if resource.kind == kind and resource.group == group and resource.version == version:
                return resource
        return None

    def for_table(self, table: str) -> Resource | None:
        """A resource through which the objects of a table can be reached, in its preferred version."""
        found = [resource for resource in self._resources.values() if resource.table == table]
        return min(found, key=lambda r: version_priority(r.version), default=None)

    def add(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self._resources[(resource.group, resource.version, resource.plural)] = resource
        self._changed()

    def replace(self, group: str, plural: str, resources: Iterable[Resource]) -> None:
        """Swap all versions of one resource at once; none removes it."""
        for key in [k for k in self._resources if k[0] == group and k[2] == plural]:
            del self._resources[key]
        self.add(resources)

    def resources(self) -> Iterable[Resource]:
        return self._resources.values()

    def groups(self) -> dict[str, list[str]]:
        """Served groups with their versions, preferred first; the core group is the empty string."""
        return self._versions

    def in_version(self, group: str, version: str) -> list[Resource]:
        return [r for r in self._resources.values() if r.group == group and r.version == version]

    def _changed(self) -> None:
        self.revision += 1
        versions: dict[str, set[str]] = {}
        for group, version, _ in self._resources:
            versions.setdefault(group, set()).add(version)
        self._versions = {group: sorted(found, key=version_priority) for group, found in versions.items()}
