"""Create, change and delete objects: the steps every write goes through, for every kind.

A write reads the newest version, decides, and stages the result; if admission gave up the loop in between
and the object changed meanwhile, the write starts over from the newer version. The order of steps is
kube-apiserver's: decode and default, metadata, field managers, admission, strategy, validation, storage.
Controllers inside the server use the same functions as HTTP requests do.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from podium.api.kinds import Object
from podium.api.times import parse_timestamp, timestamp
from podium.apiserver import errors
from podium.apiserver.access.identity import Identity
from podium.apiserver.chance import CHANCE
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.resetfields import reset_fields
from podium.apiserver.store import ObjectTooLarge, Store, Stored, encode
from podium.schema import managedfields
from podium.schema.fielderrors import invalid

# Larger objects are refused, as etcd refuses them: watchers and caches everywhere hold whole objects.
MAX_OBJECT_BYTES = 1_572_864
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_CENTURY_SECONDS = 100 * 365 * 24 * 3600
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


@dataclass(slots=True)
class Write:
    """Who writes, in which manner; warnings for the writer are collected here."""

    identity: Identity
    manager: str = ""
    dry_run: bool = False
    validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: what happens to dependents, how gently, and only if what."""

    propagation: str = ""
    orphan_dependents: bool | None = None
    grace_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object after a write, as JSON of the requested version."""

    data: bytes
    created: bool = False
    deleted: bool = False


class Admission(Protocol):
    """Checks and changes that need the rest of the cluster: a namespace that exists, a free address, ..."""

    async def create(self, resource: Resource, obj: Object, write: Write) -> None: ...

    async def update(
        self, resource: Resource, new: Object, old: Object, subresource: str, write: Write
    ) -> None: ...

    async def delete(self, resource: Resource, old: Object, write: Write) -> None: ...


# Makes the new object from the current one (None: it does not exist); the result is decoded and defaulted.
Transform = Callable[[Object | None], Object]


class Objects:
    """All writes to the store."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        admission: Admission,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.store = store
        self.registry = registry
        self._admission = admission
        self.now = now

    def timestamp(self) -> str:
        return timestamp(self.now())

    def stored(self, resource: Resource, namespace: str, name: str) -> Stored:
        """The committed object, or NotFound."""
        table = self.store.tables.get(resource.table)
        found = table.objects.get(resource.key(namespace, name)) if table else None
        if found is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return found

    # --- create ---------------------------------------------------------------------------------------

    async def create(
        self, resource: Resource, namespace: str, obj: Object, write: Write, *, tracked: bool = False
    ) -> Outcome:
        """Create an object that has been decoded and defaulted; `tracked`: its field managers are settled."""
        _unique_owners(obj, write)
        metadata = _metadata_of(obj)
        if metadata.get("resourceVersion"):
            raise errors.unclassified("resourceVersion should not be set on objects to be created")
        self._settle_namespace(resource, namespace, metadata)
        generated = self._settle_name(metadata)
        for _ in range(8):
            if not generated or self._is_free(resource, namespace, metadata["name"]):
                break
            metadata["name"] = _generate(metadata["generateName"])
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self.timestamp()
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(key, None)
        if not tracked:
            self._track(resource, None, obj, write, "")
        await self._admission.create(resource, obj, write)
        strategy = resource.strategy
        strategy.prepare_create(obj)
        if strategy.has_generation:
            metadata["generation"] = 1
        name = metadata.get("name", "")
        problems = strategy.validate_create(obj)
        if problems:
            raise errors.invalid(resource.group, resource.kind, name, problems)
        write.warnings += strategy.warnings(obj, None)
        if not self._is_free(resource, namespace, name):
            if generated:
                raise errors.name_generation_failed(resource.group, resource.plural, name)
            raise self._already_exists(resource, namespace, name)
        return await self._put(resource, resource.key(namespace, name), obj, write, created=True)

    def _settle_namespace(self, resource: Resource, namespace: str, metadata: Object) -> None:
        stated = metadata.get("namespace", "")
        expected = namespace if resource.namespaced else ""
        if not stated:
            if expected:
                metadata["namespace"] = expected
        elif not resource.namespaced:
            # As upstream: a namespace on a cluster-scoped object is dropped, not refused.
            del metadata["namespace"]
        elif stated != expected:
            raise errors.bad_request(_OTHER_NAMESPACE)

    def _settle_name(self, metadata: Object) -> bool:
        """Make up a name if that is wished; that there is none at all is found with everything else."""
        if metadata.get("name") or not metadata.get("generateName"):
            return False
        metadata["name"] = _generate(metadata["generateName"])
        return True

    def _already_exists(self, resource: Resource, namespace: str, name: str) -> errors.StatusError:
        failure = errors.already_exists(resource.group, resource.plural, name)
        existing = self.store.table(resource.table).latest(resource.key(namespace, name))
        if existing is not None and "deletionTimestamp" in existing.object["metadata"]:
            failure.message = f"object is being deleted: {failure.message}"
        return failure

    def _is_free(self, resource: Resource, namespace: str, name: str) -> bool:
        return self.store.table(resource.table).latest(resource.key(namespace, name)) is None

    # --- update ---------------------------------------------------------------------------------------

    async def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        transform: Transform,
        write: Write,
        *,
        subresource: str = "",
        may_create: Callable[[], None] | None = None,
        tracked: bool = False,
    ) -> Outcome:
        """Replace an object by what `transform` makes of it; `tracked`: it settles field managers itself.

        One that is missing is created if `may_create` is given and does not refuse.
        """
        table = self.store.table(resource.table)
        key = resource.key(namespace, name)
        while True:
            current = table.latest(key)
            if current is None:
                if may_create is None:
                    raise errors.not_found(resource.group, resource.plural, name)
                may_create()
                return await self._create_by_update(
                    resource, namespace, name, transform(None), write, tracked=tracked
                )
            old = resource.codec.decode(current)
            new = transform(resource.codec.decode(current))
            _unique_owners(new, write)
            self._carry_over(resource, namespace, name, new, old)
            if not tracked:
                self._track(resource, old, new, write, subresource)
            await self._admission.update(resource, new, old, subresource, write)
            if table.latest(key) is not current:
                continue
            self._apply_strategy(resource, new, old, subresource, write)
            if _is_done(new) and not resource.strategy.holds(new):
                return await self._remove(resource, key, new, write)
            is_same = new == old or managedfields.keep_times(old, new) is old
            if is_same and resource.codec.is_settled(current):
                await self.store.settled(table, key)
                return Outcome(resource.codec.serve(current))
            return await self._put(resource, key, new, write)

    async def _create_by_update(
        self, resource: Resource, namespace: str, name: str, obj: Object, write: Write, *, tracked: bool
    ) -> Outcome:
        metadata = _metadata_of(obj)
        if uid := metadata.pop("uid", ""):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(resource.group, resource.plural, name, why)
        metadata.pop("resourceVersion", None)
        metadata.pop("generateName", None)
        self._check_address(resource, namespace, name, metadata)
        return await self.create(resource, namespace, obj, write, tracked=tracked)

    def _carry_over(self, resource: Resource, namespace: str, name: str, new: Object, old: Object) -> None:
        """Check what the writer says about identity and version, and keep what writers may not change."""
        metadata, before = _metadata_of(new), old["metadata"]
        self._check_address(resource, namespace, name, metadata)
        version = metadata.get("resourceVersion")
        if version in (None, "", "0"):
            if not resource.strategy.unconditional_update:
                problem = invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise errors.invalid(resource.group, resource.plural, name, [problem])
        elif version != before["resourceVersion"]:
            if not version.isdigit():
                raise errors.unclassified(f'strconv.ParseUint: parsing "{version}": invalid syntax')
            raise errors.conflict(resource.group, resource.plural, name)
        for key in ("creationTimestamp", "generation"):
            if key in before:
                metadata[key] = before[key]
            else:
                metadata.pop(key, None)
        # Left out, these stay as they are; stated otherwise, validation refuses the change.
        for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
            if key in before:
                metadata[key] = metadata.get(key) or before[key]
        metadata["resourceVersion"] = before["resourceVersion"]
        metadata.pop("selfLink", None)

    def _check_address(self, resource: Resource, namespace: str, name: str, metadata: Object) -> None:
        stated = metadata.get("name", "")
        if not stated:
            raise errors.bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )
        if stated != name:
            raise errors.bad_request(
                f"the name of the object ({stated}) does not match the name on the URL ({name})"
            )
        where = metadata.get("namespace", "")
        if resource.namespaced and where and where != namespace:
            raise errors.bad_request(_OTHER_NAMESPACE)
        if resource.namespaced:
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)

    def _apply_strategy(
        self, resource: Resource, new: Object, old: Object, subresource: str, write: Write
    ) -> None:
        if subresource == "binding":
            return  # upstream writes past the strategy here: nothing is checked and no generation counted
        strategy = resource.strategy
        prepare, validate = strategy.hooks(subresource)
        prepare(new, old)
        problems = validate(new, old)
        if not subresource:
            write.warnings += strategy.warnings(new, old)
        if subresource != "status" and strategy.has_generation and strategy.raises_generation(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if problems:
            raise errors.invalid(resource.group, resource.kind, new["metadata"]["name"], problems)

    def _track(
        self, resource: Resource, old: Object | None, new: Object, write: Write, subresource: str
    ) -> None:
        """Settle metadata.managedFields after a plain write."""
        entries = managedfields.update(
            old,
            new,
            manager=write.manager,
            api_version=resource.api_version,
            shape=resource.codec.shape,
            subresource=subresource,
            now=self.timestamp(),
            reset_fields=reset_fields(resource, subresource),
            zero=resource.codec.zero,
        )
        if entries:
            new["metadata"]["managedFields"] = entries
        else:
            new["metadata"].pop("managedFields", None)

    # --- delete ---------------------------------------------------------------------------------------

    async def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, write: Write
    ) -> Outcome:
        """Delete an object, or mark it for deletion while finalizers or a grace period hold it."""
        table = self.store.table(resource.table)
        key = resource.key(namespace, name)
        while True:
            current = table.latest(key)
            if current is None:
                raise errors.not_found(resource.group, resource.plural, name)
            obj = resource.codec.decode(current)
            check_preconditions(resource, obj, options)
            await self._admission.delete(resource, obj, write)
            if table.latest(key) is current:
                break
        before = resource.codec.decode(current)
        metadata = obj["metadata"]
        if "deletionTimestamp" not in metadata and resource.strategy.begin_deletion(obj, self.timestamp()):
            return await self._put(resource, key, obj, write)
        grace, pending = self._grace(resource, obj, options)
        if pending:
            await self.store.settled(table, key)
            return Outcome(encode(obj))
        finalizers = _collector_finalizers(metadata.get("finalizers") or [], options)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        held = bool(finalizers) or resource.strategy.holds(obj)
        if not held and not grace:
            return await self._remove(resource, key, obj, write)
        if held and grace is None:
            self._mark_deleted(metadata)
            resource.strategy.mark_deleted(obj)
        if obj == before:
            await self.store.settled(table, key)
            return Outcome(encode(obj))
        return await self._put(resource, key, obj, write)

    def _grace(self, resource: Resource, obj: Object, options: DeleteOptions) -> tuple[int | None, bool]:
        """The grace period now in force (None: the kind has none) and whether it was running already."""
        metadata = obj["metadata"]
        asked = options.grace_seconds
        if asked is not None and asked < 0:
            asked = 1
        running = metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in metadata:
            if not running:
                return None, False
            if asked is None or asked >= running:
                return running, True
            moved = parse_timestamp(metadata["deletionTimestamp"]) - _span(running - asked)
            metadata["deletionTimestamp"] = timestamp(max(moved, self.now()))
            if moved < self.now() and asked:
                asked = 1
            metadata["deletionGracePeriodSeconds"] = asked
            return asked, False
        grace = resource.strategy.grace_seconds(obj, asked)
        if grace <= 0:
            if resource.strategy.graceful:
                self._mark_deleted(metadata)
            return None, False
        metadata["deletionTimestamp"] = timestamp(self.now() + _span(grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
        return grace, False

    def _mark_deleted(self, metadata: Object) -> None:
        if "deletionTimestamp" not in metadata and metadata.get("generation"):
            metadata["generation"] += 1
        now = self.now()
        existing = metadata.get("deletionTimestamp")
        if existing is None or parse_timestamp(existing) > now:
            metadata["deletionTimestamp"] = timestamp(now)
        metadata["deletionGracePeriodSeconds"] = 0

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str,
        selected: Callable[[Stored], bool],
        options: DeleteOptions,
        write: Write,
    ) -> list[bytes]:
        """Delete every selected object; answers them as they were or as they are while they wait."""
        table = self.store.table(resource.table)
        prefix = f"{namespace}/" if resource.namespaced and namespace else ""
        deleted = []
        for stored in [s for s in table.scan(prefix) if selected(s)]:
            try:
                await self.delete(resource, stored.namespace, stored.name, options, write)
            except errors.StatusError as error:
                if error.code != 404:
                    raise
                continue
            deleted.append(resource.codec.serve(stored))
        return deleted

    # --- storage --------------------------------------------------------------------------------------

    async def _put(
        self, resource: Resource, key: str, obj: Object, write: Write, *, created: bool = False
    ) -> Outcome:
        if write.dry_run:
            if created:
                obj["metadata"].pop("resourceVersion", None)
            return Outcome(encode(obj), created=created)
        stored_obj = resource.codec.to_storage(obj)
        try:
            stored, done = self.store.put(self.store.table(resource.table), key, stored_obj, MAX_OBJECT_BYTES)
        except ObjectTooLarge:
            raise errors.unclassified("etcdserver: request is too large") from None
        await done
        return Outcome(resource.codec.serve(stored), created=created)

    async def _remove(self, resource: Resource, key: str, final: Object, write: Write) -> Outcome:
        if not write.dry_run:
            stored_obj = resource.codec.to_storage(final)
            _, done = self.store.delete(self.store.table(resource.table), key, stored_obj)
            await done
        return Outcome(encode(final), deleted=True)


def _span(seconds: int) -> timedelta:
    """So many seconds, as long as calendars reach: whoever asks for more waits a century."""
    return timedelta(seconds=min(seconds, _CENTURY_SECONDS))


def _metadata_of(obj: Object) -> Object:
    metadata: Object | None = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    return metadata


def _generate(base: str) -> str:
    return base[:58] + "".join(CHANCE.choices(_SUFFIX_ALPHABET, k=5))


def _unique_owners(obj: Object, write: Write) -> None:
    """Drop owner references that stand twice, and tell the writer."""
    references = (obj.get("metadata") or {}).get("ownerReferences")
    if not references or len({r.get("uid") for r in references}) == len(references):
        return
    kept: dict[frozenset[tuple[str, object]], Object] = {}
    twice: dict[str, None] = {}
    for reference in references:
        if kept.setdefault(frozenset(reference.items()), reference) is not reference:
            twice[reference["uid"]] = None
    obj["metadata"]["ownerReferences"] = list(kept.values())
    if twice:
        write.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in "
            "1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
            f"UID(s) observed: {', '.join(twice)}"
        )


def _is_done(obj: Object) -> bool:
    """An object marked for deletion goes once its last finalizer does, unless a grace period still runs."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def check_preconditions(resource: Resource, obj: Object, options: DeleteOptions) -> None:
    """Refuse to delete another object, or another version of it, than the caller means."""
    metadata = obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated"
        )
        raise errors.conflict(resource.group, resource.kind, metadata["name"], why)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise errors.conflict(resource.group, resource.kind, metadata["name"], why)


def _collector_finalizers(finalizers: list[str], options: DeleteOptions) -> list[str]:
    """Finalizers after the delete options had their say about dependents."""
    orphan, foreground = _ORPHAN in finalizers, _FOREGROUND in finalizers
    if options.orphan_dependents is not None:
        orphan, foreground = options.orphan_dependents, False
    elif options.propagation:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    kept = [f for f in finalizers if f not in (_ORPHAN, _FOREGROUND)]
    return kept + [_ORPHAN] * orphan + [_FOREGROUND] * foreground
