"""Who owns which field: `metadata.managedFields` on every write, and server-side apply.

`update` does the bookkeeping of a plain write; `apply` merges an applied configuration into the live
object or raises `ApplyConflictError`. Both follow apimachinery's managedfields over structured-merge-
diff, reduced to its effect: a writer gains the fields that its write changed, everyone else loses them,
and nobody owns what is gone.

Custom resources may have entries of other API versions; with conversion `None` their fields mean the
same, so all entries are treated by the one shape given. Inputs are never changed, and an apply that
changes nothing returns the live object itself, so that the caller can skip the write.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

from podium.api.kinds import Object
from podium.schema import fieldset, lastapplied, typedvalues
from podium.schema.fieldset import FieldSet, FieldSetError
from podium.schema.merging import check, merge
from podium.schema.shape import Shape
from podium.schema.typedvalues import TypedValueError, compare, owned, remove_items, with_named_fields
from podium.text.quoting import quote

BEFORE_FIRST_APPLY = "before-first-apply"
ANCIENT_CHANGES = "ancient-changes"
MAX_UPDATE_ENTRIES = 10

# Fields that have no owner: they name the object, or the server writes them.
_UNOWNED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:clusterName": {},
        "f:creationTimestamp": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:name": {},
        "f:namespace": {},
        "f:resourceVersion": {},
        "f:selfLink": {},
        "f:uid": {},
    },
}


class ApplyError(ValueError):
    """The apply request is refused; `status` is what kube-apiserver answers."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that an apply would change and that another manager owns."""

    manager: str  # "helm" using apps/v1
    path: fieldset.Path

    @property
    def cause(self) -> Object:
        """The conflict as it stands in `status.details.causes`."""
        return {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {self.manager}",
            "field": fieldset.show_path(self.path),
        }


class ApplyConflictError(ApplyError):
    """The apply would change fields of other managers, and was not forced."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        super().__init__(_conflict_message(conflicts), 409)


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of an apply: `obj` carries `managed_fields`, and is the live object if nothing changed."""

    obj: Object
    managed_fields: list[Object]


class _Id(NamedTuple):
    """What tells entries apart. Appliers keep one entry through all API versions, so theirs is empty."""

    manager: str
    operation: str
    api_version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class _Entry:
    api_version: str
    fields: FieldSet
    time: str | None
    # The entry as it came; goes out again if nothing changed.
    encoded: Object | None = None


_Managed = dict[_Id, _Entry]


@dataclass(frozen=True, slots=True)
class _Write:
    """The particulars of one request."""

    manager: str
    api_version: str
    shape: Shape
    subresource: str
    now: str | None
    reset_fields: FieldSet | None
    versions: Container[str] | None


def update(
    live: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    shape: Shape,
    now: str,
    subresource: str = "",
    reset_fields: FieldSet | None = None,
    zero: Object | None = None,
    versions: Container[str] | None = None,
) -> list[Object]:
    """The managedFields of `new` after a create, update or patch by `manager`; empty if none are to be kept.

    On a create `live` is None and `zero` is the type's zero value, because fields that a Go struct always
    has (`spec`, `status`) do not count as added. `reset_fields` are those that the endpoint ignores (`status`
    on the main resource). `versions` are the API versions still served; entries of others are dropped.
    """
    write = _Write(manager, api_version, shape, subresource, _time(subresource, now), reset_fields, versions)
    creating = live is None
    live = _bare(new, zero) if live is None else live
    managed = _managed_from_request(live, new, subresource)
    if not managed and not creating:
        return []  # not tracked: it was reset, or is older than tracking
    try:
        return _encode(_track(live, new, managed, write))
    except TypedValueError:
        return []  # the object does not fit its type and validation will say so


def apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    api_version: str,
    shape: Shape,
    now: str,
    force: bool = False,
    subresource: str = "",
    reset_fields: FieldSet | None = None,
    zero: Object | None = None,
    versions: Container[str] | None = None,
) -> Applied:
    """The live object (None: not there yet) with a configuration applied; see `update` for the arguments.

    Defaults are not filled in; the caller does that with the result. Raises `ApplyConflictError` if fields of
    others would change and `force` is not set, and `ApplyError` if the request is not acceptable.
    """
    write = _Write(manager, api_version, shape, subresource, _time(subresource, now), reset_fields, versions)
    _check_request(applied, write)
    zero_value = _bare(applied, zero)
    base = zero_value if live is None else live
    managed = _read((base.get("metadata") or {}).get("managedFields") or [])
    if not managed:
        first = replace(write, manager=BEFORE_FIRST_APPLY)
        managed = _track(zero_value, base, managed, first)
    try:
        obj, managed = _apply(base, applied, managed, write, force)
    except ApplyConflictError as error:
        if manager != lastapplied.MANAGER:
            raise
        _raise_unless_last_applied(base, error, write)
        obj, managed = _apply(base, applied, managed, write, force=True)
    if manager == lastapplied.MANAGER:
        obj = lastapplied.refreshed(obj, applied)
    return _with_managed_fields(obj, _encode(managed))


def keep_times(old: Object, new: Object) -> Object:
    """`new`, or the very `old` if they differ in nothing but the times in managedFields.

    The server calls this right before it stores an update, so that a write that changes nothing is none.
    """
    before, after = (obj["metadata"].get("managedFields") or [] for obj in (old, new))
    if not after or len(before) != len(after) or before == after:
        return new
    if any(_timeless(left) != _timeless(right) for left, right in zip(before, after, strict=True)):
        return new
    rest = {**new, "metadata": {**new["metadata"], "managedFields": before}}
    return old if rest == old else new


def _time(subresource: str, now: str) -> str | None:
    """Entries made through the scale subresource carry no time: upstream never sets it there."""
    return None if subresource == "scale" else now


def _timeless(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "time"}


def _bare(obj: Object, zero: Object | None) -> Object:
    """What stands for an object that does not exist yet."""
    return zero if zero is not None else {key: obj[key] for key in ("apiVersion", "kind") if key in obj}


# -- plain writes ----------------------------------------


def _track(live: Object, new: Object, managed: _Managed, write: _Write) -> _Managed:
    """Give the writer what the write changed and take it from everyone else."""
    managed = _reconciled(managed, write)
    difference = compare(live, new, write.shape)
    removed, changed = difference.removed, fieldset.union(difference.modified, difference.added)
    if write.reset_fields:
        removed = fieldset.recursive_difference(removed, write.reset_fields)
        changed = fieldset.recursive_difference(changed, write.reset_fields)
    managed = _without(managed, fieldset.union(changed, removed), keep=None)
    gained = fieldset.difference(changed, _UNOWNED)
    if gained:
        name = _Id(write.manager or "unknown", "Update", write.api_version, write.subresource)
        if name in managed:
            gained = fieldset.union(gained, managed[name].fields)
        managed[name] = _Entry(write.api_version, gained, write.now)
    return _capped(managed)


def _reconciled(managed: _Managed, write: _Write) -> _Managed:
    """The entries of served versions, with fields below what has become atomic folded into it."""
    out: _Managed = {}
    for name, entry in managed.items():
        if write.versions is not None and entry.api_version not in write.versions:
            continue
        fields = typedvalues.reconciled(entry.fields, write.shape)
        same = fields is entry.fields
        out[name] = entry if same else replace(entry, fields=fields, encoded=None)
    return out


def _without(managed: _Managed, lost: FieldSet, *, keep: _Id | None) -> _Managed:
    """All entries (but `keep`) without some fields; entries that have none left are gone."""
    out: _Managed = {}
    for name, entry in managed.items():
        fields = entry.fields if name == keep else fieldset.difference(entry.fields, lost)
        if fields is entry.fields:
            out[name] = entry
        elif fields:
            out[name] = replace(entry, fields=fields, encoded=None)
    return out


def _capped(managed: _Managed) -> _Managed:
    """At most ten entries of updates: the oldest of each version are merged into one."""
    updaters = [name for name in managed if name.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_ENTRIES
    if excess <= 0:
        return managed
    updaters.sort(key=lambda name: (managed[name].time or "", _identifier(name)))
    first_of: dict[str, _Id] = {}
    merged: dict[_Id, list[FieldSet]] = {}
    for name in updaters:
        if excess <= 0:
            break
        entry = managed[name]
        bucket = _Id(ANCIENT_CHANGES, "Update", entry.api_version, "")
        if entry.api_version not in first_of:
            first_of[entry.api_version] = name
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(first_of[entry.api_version])
        merged.setdefault(bucket, [managed[bucket].fields]).append(entry.fields)
        managed[bucket] = _Entry(entry.api_version, managed[bucket].fields, entry.time)
        del managed[name]
        excess -= 1
    for bucket, sets in merged.items():
        managed[bucket] = replace(managed[bucket], fields=_union_of_all(sets))
    return managed


def _union_of_all(sets: list[FieldSet]) -> FieldSet:
    """Pair by pair: a client may send thousands of entries, and one by one would be quadratic."""
    while len(sets) > 1:
        pairs = zip_longest(sets[::2], sets[1::2], fillvalue=sets[-1])
        sets = [fieldset.union(left, right) for left, right in pairs]
    return sets[0]


# -- apply ----------------------------------------


def _check_request(applied: Object, write: _Write) -> None:
    if applied.get("apiVersion") != write.api_version:
        raise ApplyError(f"invalid object type: {_kind_text(applied)}", 400)
    given = applied.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    if metadata.get("managedFields") is not None:
        raise ApplyError("metadata.managedFields must be nil", 400)
    try:
        check(applied, write.shape)
    except TypedValueError as error:
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_kind_text(applied)}"
        raise ApplyError(f"failed to create typed patch object ({where}): {error}", 500) from None


def _kind_text(obj: Object) -> str:
    version = str(obj.get("apiVersion", ""))
    return f"{version if '/' in version else f'/{version}'}, Kind={obj.get('kind', '')}"


def _apply(
    live: Object, applied: Object, managed: _Managed, write: _Write, force: bool
) -> tuple[Object, _Managed]:
    name = _Id(write.manager or "unknown", "Apply", "", write.subresource)
    managed = _reconciled(managed, write)
    fields = owned(applied, write.shape)
    if write.reset_fields:
        fields = fieldset.recursive_difference(fields, write.reset_fields)
    last = managed.get(name)
    managed[name] = _Entry(write.api_version, fields, last.time if last else None)
    merged = merge(live, applied, write.shape)
    if last is not None:
        merged = _pruned(merged, last.fields, fields, managed, write.shape)
    difference = compare(live, merged, write.shape)
    removed, changed = difference.removed, fieldset.union(difference.modified, difference.added)
    if write.reset_fields:
        removed = fieldset.recursive_difference(removed, write.reset_fields)
        changed = fieldset.recursive_difference(changed, write.reset_fields)
    if not force:
        _raise_conflicts(managed, changed, name)
    managed = _without(managed, fieldset.union(changed, removed), keep=name)
    fields = fieldset.difference(fields, _UNOWNED)
    same = merged is live or merged == live
    if fields:
        time = managed[name].time if same else write.now
        managed[name] = _Entry(write.api_version, fields, time)
    else:
        del managed[name]
    return live if same else merged, managed


def _pruned(merged: Object, last: FieldSet, now: FieldSet, managed: _Managed, shape: Shape) -> Object:
    """The merged object without what this manager applied last time, does not now, and nobody else owns."""
    if not fieldset.difference(last, now):
        return merged
    named_last = with_named_fields(last, shape)
    without_last = remove_items(merged, named_last, shape) or {}
    all_owned: FieldSet = {}
    for entry in managed.values():
        all_owned = fieldset.union(all_owned, entry.fields)
    present = with_named_fields(owned(merged, shape), shape)
    # First everything last applied goes, with all below it; then what anybody owns, this manager's new
    # configuration included, comes back; of the rest only what was applied last time really goes.
    kept = fieldset.union(
        with_named_fields(owned(without_last, shape), shape), with_named_fields(all_owned, shape)
    )
    remaining = remove_items(merged, fieldset.difference(present, kept), shape) or {}
    gone = fieldset.difference(present, with_named_fields(owned(remaining, shape), shape))
    return remove_items(merged, fieldset.intersection(gone, named_last), shape) or {}


def _raise_conflicts(managed: _Managed, changed: FieldSet, applier: _Id) -> None:
    conflicts = [
        Conflict(_manager_text(name), path)
        for name in sorted(managed, key=_identifier)
        if name != applier
        for path in fieldset.paths(fieldset.intersection(managed[name].fields, changed))
    ]
    if conflicts:
        raise ApplyConflictError(conflicts)


def _raise_unless_last_applied(live: Object, error: ApplyConflictError, write: _Write) -> None:
    """Conflicts with what `kubectl apply` wrote before it became server-side are none."""
    allowed = lastapplied.fields_in_effect(live, write.api_version, write.shape)
    if allowed is None:
        raise error
    remaining = [conflict for conflict in error.conflicts if not fieldset.has(allowed, conflict.path)]
    if remaining:
        raise ApplyConflictError(remaining)


def _conflict_message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        [conflict] = conflicts
        path = fieldset.show_path(conflict.path)
        return f"Apply failed with 1 conflict: conflict with {conflict.manager}: {path}"
    lines: list[str] = []
    for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {fieldset.show_path(item.path)}" for item in conflicts if item.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _manager_text(name: _Id) -> str:
    text = quote(name.manager)
    if name.subresource:
        text += f" with subresource {quote(name.subresource)}"
    return f"{text} using {name.api_version}" if name.operation == "Update" else text


def _with_managed_fields(obj: Object, entries: list[Object]) -> Applied:
    metadata = obj.get("metadata") or {}
    if (metadata.get("managedFields") or []) == entries:
        return Applied(obj, entries)
    metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return Applied({**obj, "metadata": metadata}, entries)


# -- the stored form ----------------------------------------


def _managed_from_request(live: Object, new: Object, subresource: str) -> _Managed:
    """The entries to start from: those of the request if it sends any, unless it goes to a subresource."""
    stored = (live.get("metadata") or {}).get("managedFields") or []
    sent = (new.get("metadata") or {}).get("managedFields")
    if subresource or sent is None or sent == stored:
        return _read(stored)
    if sent in ([], [{}]):
        return {}
    try:
        return _decode(sent) or _read(stored)
    except FieldSetError:
        return _read(stored)


def _read(entries: list[Object]) -> _Managed:
    """Entries that this server wrote, which are canonical."""
    out: _Managed = {}
    for entry in entries:
        version = entry["apiVersion"]
        operation = entry["operation"]
        name = _Id(
            entry.get("manager", ""),
            operation,
            version if operation == "Update" else "",
            entry.get("subresource", ""),
        )
        out[name] = _Entry(version, entry.get("fieldsV1") or {}, entry.get("time"), entry)
    return out


def _decode(entries: list[Object]) -> _Managed:
    """Entries that anybody may have written."""
    for place, entry in enumerate(entries):
        if entry.get("operation") not in ("Apply", "Update"):
            raise FieldSetError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise FieldSetError("apiVersion must not be empty")
        kind = entry.get("fieldsType")
        if not kind:
            raise FieldSetError(f"missing fieldsType in managed fields entry {place}")
        if kind != "FieldsV1":
            raise FieldSetError(f"invalid fieldsType {quote(kind)} in managed fields entry {place}")
    return {
        name: replace(entry, fields=fieldset.parse(entry.fields), encoded=None)
        for name, entry in _read(entries).items()
    }


def _encode(managed: _Managed) -> list[Object]:
    """Entries in the stored form and order: applies before updates, older before newer."""
    out = [entry.encoded or _encode_entry(name, entry) for name, entry in managed.items()]
    if len(out) > 1:
        out.sort(key=_rank)
    return out


def _encode_entry(name: _Id, entry: _Entry) -> Object:
    out: Object = {"manager": name.manager, "operation": name.operation, "apiVersion": entry.api_version}
    if entry.time is not None:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = entry.fields
    if name.subresource:
        out["subresource"] = name.subresource
    return out


def _rank(entry: Object) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _identifier(name: _Id) -> str:
    """The text by which upstream sorts managers."""
    parts = [("manager", name.manager), ("operation", name.operation), ("apiVersion", name.api_version)]
    parts.append(("subresource", name.subresource))
    return "{" + ",".join(f'"{key}":{quote(value)}' for key, value in parts if value) + "}"
