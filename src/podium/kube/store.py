"""Objects as a cache holds them: the bytes that the server sent, and their metadata decoded.

Most questions (whose is it, did its generation change, does its label match) need only the metadata. A whole
object is decoded for each reader, which costs less than a copy and leaves nothing that one reader could
change under another. A Store is plain data without I/O: it turns what was seen into the changes it means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from types import MappingProxyType
from typing import Any

import msgspec

from podium.api import selectors
from podium.api.kinds import GVK, Key, Object

logger = logging.getLogger(__name__)


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The API group of the owner."""
        return self.api_version.rpartition("/")[0]


# gc=False: nothing below can be part of a cycle, and the collector need not visit 100,000 of them.
class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The part of an object's metadata that controllers ask for."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    label_map: dict[str, str] | None = msgspec.field(default=None, name="labels")
    annotation_map: dict[str, str] | None = msgspec.field(default=None, name="annotations")

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, read-only: they are shared by all readers."""
        return MappingProxyType(self.label_map or {})

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, read-only."""
        return MappingProxyType(self.annotation_map or {})

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        """The owner references."""
        return self.owner_references or ()

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages the object, if any."""
        return next((owner for owner in self.owners if owner.controller), None)


class Held(msgspec.Struct, frozen=True, gc=False):
    """One object in a cache; `raw` is None where only metadata is kept."""

    gvk: GVK
    metadata: Metadata
    raw: bytes | None

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)

    def object(self) -> Object:
        """The object, decoded anew: it is the caller's own."""
        if self.raw is None:
            decoded: Object = {"metadata": msgspec.json.decode(msgspec.json.encode(self.metadata))}
        else:
            decoded = msgspec.json.decode(self.raw)
        # In lists of built-in kinds the items do not say what they are.
        decoded.setdefault("apiVersion", self.gvk.api_version)
        decoded.setdefault("kind", self.gvk.kind)
        return decoded


class _WithMetadata(msgspec.Struct):
    metadata: Metadata = Metadata()


_decode_metadata = msgspec.json.Decoder(_WithMetadata).decode


def hold(gvk: GVK, raw: bytes | msgspec.Raw, *, metadata_only: bool = False) -> Held:
    """What to keep of an object that arrived as JSON."""
    metadata = _with_shared_words(_decode_metadata(raw).metadata)
    # The bytes are copied: a slice would keep the page or chunk it came in alive.
    return Held(gvk, metadata, None if metadata_only else bytes(raw))


def _with_shared_words(metadata: Metadata) -> Metadata:
    """The same metadata, with words that many objects have in common kept once for all of them."""
    namespace = intern(metadata.namespace)
    labels = metadata.label_map
    if labels:
        labels = {intern(key): intern(value) for key, value in labels.items()}
    return Metadata(
        metadata.name,
        namespace,
        metadata.uid,
        metadata.resource_version,
        metadata.generation,
        metadata.creation_timestamp,
        metadata.deletion_timestamp,
        metadata.finalizers,
        metadata.owner_references,
        labels,
        metadata.annotation_map,
    )


class Change(msgspec.Struct, frozen=True, gc=False):
    """What happened to one object: added (no old), changed, or deleted (no new).

    `initial` marks objects that were there before the observer was: nobody has just done anything to them.
    """

    old: Held | None
    new: Held | None
    initial: bool = False

    @property
    def subject(self) -> Held:
        """The newest known state; for a deleted object its last one."""
        held = self.new or self.old
        assert held is not None
        return held


IndexFunction = Callable[[Held], Iterable[str]]
# What a list contained: by namespace, then by name.
Listing = dict[str, dict[str, Held]]


class _Index:
    """Which keys have which value; the values are computed once per change of an object."""

    def __init__(self, function: IndexFunction) -> None:
        self.function = function
        self._values: dict[tuple[str, str], tuple[str, ...]] = {}
        self._keys: dict[str, dict[tuple[str, str], None]] = {}

    def put(self, held: Held) -> None:
        key = (held.metadata.namespace, held.metadata.name)
        try:
            values = tuple(dict.fromkeys(self.function(held)))
        except Exception:
            # One odd object must not stop the cache of all the others.
            logger.exception("index function failed on %s %s", held.gvk, held.key)
            values = ()
        if self._values.get(key, ()) == values:
            return
        self.discard(*key)
        if values:
            self._values[key] = values
        for value in values:
            self._keys.setdefault(value, {})[key] = None

    def discard(self, namespace: str, name: str) -> None:
        key = (namespace, name)
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]

    def keys(self, value: str) -> Iterable[tuple[str, str]]:
        return self._keys.get(value, ())

    def values(self) -> Iterable[str]:
        return self._keys.keys()


class Store:
    """Objects by namespace and name, with indexes."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Held]] = {}
        self._indexes: dict[str, _Index] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Held]:
        for objects in self._namespaces.values():
            yield from objects.values()

    def get(self, namespace: str, name: str) -> Held | None:
        """The object of this name, if it is there."""
        objects = self._namespaces.get(namespace)
        return None if objects is None else objects.get(name)

    def put(self, held: Held, *, initial: bool = False) -> list[Change]:
        """Take in a state of an object; answers what that changed, which is nothing if it was known."""
        old = self.get(held.metadata.namespace, held.metadata.name)
        if old is None:
            self._set(held)
            return [Change(None, held, initial)]
        if old.metadata.uid != held.metadata.uid:
            # Deleted and made again while nobody looked.
            self._set(held)
            return [Change(old, None), Change(None, held)]
        if old.metadata.resource_version == held.metadata.resource_version:
            return []
        self._set(held)
        return [Change(old, held)]

    def remove(self, last: Held) -> list[Change]:
        """Take out a deleted object, given its last state; answers nothing if it was not there."""
        old = self.get(last.metadata.namespace, last.metadata.name)
        if old is None or old.metadata.uid != last.metadata.uid:
            return []
        self._unset(old)
        return [Change(last, None)]

    def replace(self, listing: Listing, *, initial: bool = False) -> list[Change]:
        """Make the store equal to a list; answers how they differed, deletions first."""
        changes: list[Change] = []
        for held in list(self):
            if held.metadata.name not in listing.get(held.metadata.namespace, ()):
                changes.extend(self.remove(held))
        for objects in listing.values():
            for held in objects.values():
                changes.extend(self.put(held, initial=initial))
        return changes

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep objects findable by the values that a function gives; the same function may come twice."""
        present = self._indexes.get(name)
        if present is not None:
            if present.function is not function:
                raise ValueError(f"there is already another index {name!r}")
            return
        index = _Index(function)
        for held in self:
            index.put(held)
        self._indexes[name] = index

    def index_values(self, name: str) -> list[str]:
        """Every value that some object has in an index."""
        return list(self._indexes[name].values())

    def select(
        self,
        namespace: str = "",
        labels: selectors.LabelSelector | str = "",
        index: tuple[str, str] | None = None,
    ) -> Iterator[Held]:
        """The objects that match all of these; an empty namespace means every namespace."""
        selector = selectors.parse(labels) if isinstance(labels, str) else labels
        for held in self._candidates(namespace, index):
            if not selector or selectors.matches(selector, held.metadata.label_map):
                yield held

    def _candidates(self, namespace: str, index: tuple[str, str] | None) -> Iterable[Held]:
        if index is not None:
            keys = self._indexes[index[0]].keys(index[1])
            return [self._namespaces[place][name] for place, name in keys if namespace in ("", place)]
        if namespace:
            return list(self._namespaces.get(namespace, {}).values())
        return list(self)

    def _set(self, held: Held) -> None:
        objects = self._namespaces.setdefault(held.metadata.namespace, {})
        self._count += held.metadata.name not in objects
        objects[held.metadata.name] = held
        for index in self._indexes.values():
            index.put(held)

    def _unset(self, held: Held) -> None:
        namespace, name = held.metadata.namespace, held.metadata.name
        objects = self._namespaces[namespace]
        del objects[name]
        self._count -= 1
        if not objects:
            del self._namespaces[namespace]
        for index in self._indexes.values():
            index.discard(namespace, name)


def by_controller(held: Held) -> Iterable[str]:
    """An index function: the uid of the controlling owner."""
    owner = held.metadata.controller
    return () if owner is None else (owner.uid,)


def by_field(*path: str) -> IndexFunction:
    """An index function: the text of a field of the whole object, such as `spec`, `nodeName`."""

    def values(held: Held) -> Iterable[str]:
        value: Any = held.object()
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return () if value is None else (str(value),)

    return values
