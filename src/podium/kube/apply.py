"""The one way in which controllers write objects: server-side apply, of what is ours, when something differs.

Before an object is touched it is read, and if somebody else owns it, ForeignObject is raised unless adoption
is allowed. The write names the uid that was read, so an object that was replaced meanwhile is not taken over.

No writes at rest: the resource version that an apply left behind is remembered with a digest of what was
wanted. While both stay the same nothing is sent; as soon as one differs, the object is applied again, which
heals drift and which the server itself turns into nothing if there is none. Objects carry no trace of this.

Pruning works on an inventory that the caller keeps: what left the set is deleted in reverse order, each
object only in the very state in which it was seen to be ours.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import msgspec

from podium.api.kinds import GVK, Key, Object
from podium.kube.errors import APIError, ApplyConflict, Conflict, Invalid, KubeError, NoMatch, NotFound

_ATTEMPTS = 3


class ForeignObject(KubeError):
    """The object belongs to somebody else: choose another name, allow adoption, or have it released."""


class BeingDeleted(KubeError):
    """The object is on its way out: try again when it is gone."""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Names one object in the cluster."""

    gvk: GVK
    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> Ref:
        """The reference to an object."""
        key = Key.of(obj)
        return cls(GVK.of(obj), key.namespace, key.name)

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What stays the same when the object is addressed in another API version."""
        return (self.gvk.group, self.gvk.kind, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.gvk.kind} {self.key}"


class Ownership(Protocol):
    """How an owner marks objects as its own and recognises them."""

    def stamp(self, metadata: Object) -> Object:
        """The metadata with the mark."""
        ...

    def holds(self, metadata: Object) -> bool:
        """Whether the object is ours."""
        ...

    def other(self, metadata: Object) -> str:
        """Whose the object is if it has another owner of this sort; empty if it has none."""
        ...

    def without_other(self, metadata: Object) -> Object | None:
        """A merge patch of the metadata that makes room for our mark; None if there need be none."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerOwnership:
    """Ownership by the controller owner reference: deleting the owner deletes what it owns."""

    owner: Object

    def stamp(self, metadata: Object) -> Object:
        """Add the reference, which as an applied field coexists with the references of others."""
        uid = self.owner["metadata"]["uid"]
        others = [entry for entry in metadata.get("ownerReferences") or () if entry.get("uid") != uid]
        reference = {
            "apiVersion": self.owner["apiVersion"],
            "kind": self.owner["kind"],
            "name": self.owner["metadata"]["name"],
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {**metadata, "ownerReferences": [*others, reference]}

    def holds(self, metadata: Object) -> bool:
        """Whether our reference is the controlling one."""
        controller = _controller(metadata)
        return controller is not None and controller.get("uid") == self.owner["metadata"]["uid"]

    def other(self, metadata: Object) -> str:
        """The controller, if it is not ours."""
        controller = _controller(metadata)
        if controller is None or self.holds(metadata):
            return ""
        return f"{controller.get('kind')} {controller.get('name')}"

    def without_other(self, metadata: Object) -> Object | None:
        """Make the present controller an ordinary owner: the server allows only one controller."""
        if not self.other(metadata):
            return None
        references = [{**entry, "controller": False} for entry in metadata.get("ownerReferences") or ()]
        return {"ownerReferences": references, "resourceVersion": metadata.get("resourceVersion")}


@dataclass(frozen=True, slots=True)
class MarkerOwnership:
    """Ownership by a label or annotation, for owners in another namespace or outside the cluster."""

    key: str
    value: str
    annotation: bool = False

    @property
    def _place(self) -> str:
        return "annotations" if self.annotation else "labels"

    def stamp(self, metadata: Object) -> Object:
        """Add the marker."""
        return {**metadata, self._place: {**(metadata.get(self._place) or {}), self.key: self.value}}

    def holds(self, metadata: Object) -> bool:
        """Whether the marker has our value."""
        return (metadata.get(self._place) or {}).get(self.key) == self.value

    def other(self, metadata: Object) -> str:
        """The other value of the marker, or else the controller of the object."""
        marked = (metadata.get(self._place) or {}).get(self.key)
        if marked not in (None, self.value):
            return f"{self.key}={marked}"
        controller = _controller(metadata)
        return "" if controller is None else f"{controller.get('kind')} {controller.get('name')}"

    def without_other(self, metadata: Object) -> Object | None:
        """Nothing: applying by force overwrites the marker."""
        return None


class Adoption(Enum):
    """What to do about an object that exists and is not ours."""

    NEVER = "never"
    IF_UNOWNED = "if unowned"
    ALWAYS = "always"


class Action(Enum):
    """What an apply came to."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Applied:
    """The object as it is now, and whether this call changed it."""

    object: Object
    action: Action


@dataclass(frozen=True, slots=True)
class Pruned:
    """What became of the objects that left an inventory."""

    deleted: list[Ref] = field(default_factory=list)
    absent: list[Ref] = field(default_factory=list)
    # No longer ours: somebody else took them over, or replaced them.
    left: list[Ref] = field(default_factory=list)


class ApplyClient(Protocol):
    """The calls of the client that are used here."""

    async def get(self, gvk: GVK, name: str, namespace: str = "") -> Object: ...

    async def apply(
        self, obj: Object, *, field_manager: str = "", force: bool = False, dry_run: bool = False
    ) -> Object: ...

    async def patch(self, gvk: GVK, name: str, patch: Any, namespace: str = "") -> Object: ...

    async def delete(
        self,
        gvk: GVK,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Object: ...


Reader = Callable[[Ref], Awaitable[Object | None]]


@dataclass(frozen=True, slots=True)
class _Left:
    """How the last apply left an object."""

    uid: str
    resource_version: str
    wanted: bytes


class Applier:
    """Writes objects under one field manager; keep it as long as the process, it remembers what it wrote."""

    def __init__(
        self,
        client: ApplyClient,
        *,
        field_manager: str,
        read: Reader | None = None,
        remembered: int = 20_000,
    ) -> None:
        """`read` may answer from a cache; what it answers may be a little old."""
        self._client = client
        self._field_manager = field_manager
        self._read = read or self._get
        self._remembered = remembered
        self._left: OrderedDict[tuple[str, str, str, str], _Left] = OrderedDict()

    async def apply(
        self, obj: Object, owner: Ownership, *, adoption: Adoption = Adoption.NEVER, dry_run: bool = False
    ) -> Applied:
        """Make the object be as described; fields that are not mentioned stay whoever's they are."""
        ref = Ref.of(obj)
        desired = {**obj, "metadata": owner.stamp(obj["metadata"])}
        live = await self._read(ref)
        for _ in range(_ATTEMPTS):
            try:
                if live is None:
                    return await self._create(ref, desired, dry_run=dry_run)
                return await self._update(ref, live, desired, owner, adoption, dry_run=dry_run)
            except (Conflict, ApplyConflict, Invalid) as error:
                if not _is_outdated(error, live):
                    raise
                outdated = error
            # What was read (perhaps from a cache) is not what is there: look at the server itself.
            live = await self._get(ref)
        raise outdated

    async def prune(self, inventory: Iterable[Ref], keep: Collection[Ref], owner: Ownership) -> Pruned:
        """Delete what is in the inventory and not to be kept, last one first, as far as it is still ours."""
        kept = {ref.identity for ref in keep}
        pruned = Pruned()
        for ref in reversed(list(inventory)):
            if ref.identity not in kept:
                await self._prune_one(ref, owner, pruned)
        return pruned

    async def _create(self, ref: Ref, desired: Object, *, dry_run: bool) -> Applied:
        # Not by force: if an object has appeared since, its manager's fields are to be in our way.
        result = await self._client.apply(desired, field_manager=self._field_manager, dry_run=dry_run)
        if not dry_run:
            self._remember(ref, result, desired)
        return Applied(result, Action.CREATED)

    async def _update(
        self,
        ref: Ref,
        live: Object,
        desired: Object,
        owner: Ownership,
        adoption: Adoption,
        *,
        dry_run: bool,
    ) -> Applied:
        metadata = live["metadata"]
        if not owner.holds(metadata):
            await self._adopt(ref, metadata, owner, adoption, dry_run=dry_run)
        elif self._is_as_left(ref, metadata, desired):
            return Applied(live, Action.UNCHANGED)
        if metadata.get("deletionTimestamp"):
            raise BeingDeleted(f"{ref} is being deleted")
        guarded = {**desired, "metadata": {**desired["metadata"], "uid": metadata["uid"]}}
        result = await self._client.apply(
            guarded, field_manager=self._field_manager, force=True, dry_run=dry_run
        )
        if not dry_run:
            self._remember(ref, result, desired)
        return Applied(result, Action.UNCHANGED if _same(live, result) else Action.UPDATED)

    async def _adopt(
        self, ref: Ref, metadata: Object, owner: Ownership, adoption: Adoption, *, dry_run: bool
    ) -> None:
        other = owner.other(metadata)
        if adoption is Adoption.NEVER or (adoption is Adoption.IF_UNOWNED and other):
            whose = f"belongs to {other}" if other else "exists and is not managed by us"
            raise ForeignObject(f"{ref} {whose}")
        patch = owner.without_other(metadata)
        if patch is not None and not dry_run:
            await self._client.patch(ref.gvk, ref.name, {"metadata": patch}, ref.namespace)

    async def _prune_one(self, ref: Ref, owner: Ownership, pruned: Pruned) -> None:
        self._left.pop(ref.identity, None)
        for _ in range(_ATTEMPTS):
            # Never from a cache: what is deleted cannot be taken back.
            live = await self._get(ref)
            if live is None:
                pruned.absent.append(ref)
                return
            metadata = live["metadata"]
            if not owner.holds(metadata):
                break
            try:
                if not metadata.get("deletionTimestamp"):
                    await self._client.delete(
                        ref.gvk,
                        ref.name,
                        ref.namespace,
                        propagation="Background",
                        uid=metadata["uid"],
                        resource_version=metadata["resourceVersion"],
                    )
            except NotFound:
                pruned.absent.append(ref)
                return
            except Conflict as error:
                conflict = error
                continue
            pruned.deleted.append(ref)
            return
        else:
            raise conflict
        pruned.left.append(ref)

    async def _get(self, ref: Ref) -> Object | None:
        try:
            return await self._client.get(ref.gvk, ref.name, ref.namespace)
        except (NotFound, NoMatch):
            return None

    def _remember(self, ref: Ref, result: Object, desired: Object) -> None:
        metadata = result["metadata"]
        self._left[ref.identity] = _Left(metadata["uid"], metadata["resourceVersion"], _digest(desired))
        self._left.move_to_end(ref.identity)
        if len(self._left) > self._remembered:
            self._left.popitem(last=False)

    def _is_as_left(self, ref: Ref, metadata: Object, desired: Object) -> bool:
        left = self._left.get(ref.identity)
        return (
            left is not None
            and left.resource_version == metadata.get("resourceVersion")
            and left.uid == metadata.get("uid")
            and left.wanted == _digest(desired)
        )


def _is_outdated(error: APIError, live: Object | None) -> bool:
    """Whether a refusal means that the object is not in the state in which it was read."""
    if isinstance(error, Invalid):
        # How a server says that the object of this name is another one by now.
        return any(cause.get("field") == "metadata.uid" for cause in error.causes)
    # Fields of another manager are news only where no object was expected.
    return isinstance(error, Conflict) or live is None


def _digest(obj: Object) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(obj, order="deterministic"), digest_size=16).digest()


def _same(before: Object, after: Object) -> bool:
    """Whether two states differ only in what servers and status writers change by themselves."""
    return _content(before) == _content(after)


def _content(obj: Object) -> Object:
    own = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    bookkeeping = ("managedFields", "resourceVersion", "generation")
    own["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in bookkeeping}
    return own


def _controller(metadata: Object) -> Object | None:
    return next((entry for entry in metadata.get("ownerReferences") or () if entry.get("controller")), None)
