"""List options, selectors and pages: what a reader asks for and which stored objects that means.

A list without options is the newest committed state. With `limit` it is cut into pages that all show the
state of the first one: the continue token carries its revision, and the store can look back that far for a
while. After that the token is refused with 410 and a new one that continues from the newest state.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from podium.api import selectors
from podium.api.fields import value_at
from podium.api.kinds import Object
from podium.api.selectors import FieldSelector, LabelSelector, SelectorError
from podium.apiserver import bodies, errors
from podium.apiserver.registry import Resource
from podium.apiserver.store import Compacted, Store, Stored, Table
from podium.schema.fielderrors import FieldError, forbidden, not_supported

_LIST_EXPIRED = "The resourceVersion for the provided list is too old."
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may "
    "show up in the list."
)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query of a list, watch or deletecollection."""

    labels: LabelSelector = ()
    fields: FieldSelector = ()
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None


def parse_options(query: Mapping[str, str], resource: Resource) -> ListOptions:
    """Read list options from a query string, refusing what makes no sense together."""
    try:
        labels = selectors.parse(query.get("labelSelector", ""))
        fields = selectors.parse_fields(query.get("fieldSelector", ""))
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None
    for term in fields:
        _check_field(resource, term.path)
    options = ListOptions(
        labels=labels,
        fields=fields,
        limit=_integer(query, "limit") or 0,
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        watch=boolean(query.get("watch")) or False,
        bookmarks=boolean(query.get("allowWatchBookmarks")) or False,
        send_initial_events=boolean(query.get("sendInitialEvents")),
        timeout_seconds=_integer(query, "timeoutSeconds"),
    )
    problems = _watch_problems(options) if options.watch else _list_problems(options)
    if problems:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", problems)
    problem = version_problem(options.resource_version)
    if problem and options.watch:
        raise errors.unexplained(problem)
    if problem:
        raise errors.bad_request(f"invalid resource version: {problem}")
    return options


def version_problem(text: str) -> str:
    """What is wrong with a resourceVersion from a query, or nothing."""
    if not text:
        return ""
    fault = "invalid syntax"
    if re.fullmatch("[0-9]+", text):
        if len(text) < 20 or (len(text) == 20 and int(text) < 1 << 64):
            return ""
        fault = "value out of range"
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {fault}'


def boolean(text: str | None) -> bool | None:
    """A boolean query parameter: absent is None, present without a value is true."""
    if text is None:
        return None
    return text.lower() not in ("false", "0", "f")


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _list_problems(options: ListOptions) -> list[FieldError]:
    problems = []
    if options.match:
        path = "resourceVersionMatch"
        if not options.resource_version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            problems.append(forbidden(path, why))
        if options.continue_token:
            problems.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            supported = ("Exact", "NotOlderThan", "")
            problems.append(not_supported(path, options.match, supported, in_order=True))
        if options.match == "Exact" and options.resource_version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(forbidden(path, why))
    if options.send_initial_events is not None:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _watch_problems(options: ListOptions) -> list[FieldError]:
    problems, path = [], "resourceVersionMatch"
    if options.send_initial_events is not None and options.match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        problems.append(forbidden(path, why))
    if options.match:
        if options.send_initial_events is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            problems.append(forbidden(path, why))
        if options.match != "NotOlderThan":
            problems.append(not_supported(path, options.match, ("NotOlderThan",)))
    # A watch from scratch counts as one that asked for NotOlderThan.
    from_scratch = options.send_initial_events is None and options.resource_version in ("", "0")
    if options.continue_token and (options.match or from_scratch):
        problems.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return problems


# --- selection ----------------------------------------------------------------------------------------


def selector_for(resource: Resource, options: ListOptions) -> Callable[[Stored], bool] | None:
    """A test for one stored object, or None where everything is selected."""
    labels, fields = options.labels, options.fields
    if not labels and not fields:
        return None
    if not fields:
        return lambda stored: selectors.matches(labels, stored.labels)

    def selected(stored: Stored) -> bool:
        if not selectors.matches(labels, stored.labels):
            return False
        return selectors.matches_fields(fields, field_reader(resource, stored))

    return selected


def field_reader(resource: Resource, stored: Stored) -> Callable[[str], str]:
    """Read a selectable field as text; name and namespace without decoding the object."""
    decoded: Object | None = None

    def read(path: str) -> str:
        nonlocal decoded
        if path == "metadata.name":
            return stored.name
        if path == "metadata.namespace":
            return stored.namespace
        if decoded is None:
            decoded = resource.codec.decode(stored)
        return _text_at(decoded, path, resource)

    return read


# Selectors whose name is not the path of the field.
_RENAMED = {
    ("Event", "source"): "source.component",
    ("Event", "reportingComponent"): "reportingComponent",
    ("Job", "status.successful"): "status.succeeded",
}
_DEFAULTS = {
    ("Pod", "spec.hostNetwork"): "false",
    ("Node", "spec.unschedulable"): "false",
    ("Job", "status.successful"): "0",
    ("ReplicaSet", "status.replicas"): "0",
    ("ReplicationController", "status.replicas"): "0",
}


def _text_at(obj: Object, path: str, resource: Resource) -> str:
    value = value_at(obj, _RENAMED.get((resource.kind, path), path).split("."))
    if value is None:
        return _DEFAULTS.get((resource.kind, path), "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _check_field(resource: Resource, path: str) -> None:
    if path in ("metadata.name", "metadata.namespace") or path in resource.selectable_fields:
        return
    if resource.kind == "Job" and resource.group == "batch":
        raise errors.bad_request(f'field label "{path}" not supported for Job')
    if resource.selectable_fields or resource.custom:
        raise errors.bad_request(f"field label not supported: {path}")
    raise errors.bad_request(
        f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


# --- pages --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, with what its metadata says."""

    items: list[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> Object:
        metadata: Object = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        return metadata


def read_page(store: Store, resource: Resource, namespace: str, options: ListOptions) -> Page:
    """The objects that a list request selects."""
    table = store.table(resource.table)
    prefix = f"{namespace}/" if resource.namespaced and namespace else ""
    selected = selector_for(resource, options)
    if options.continue_token:
        return _continued(store, table, prefix, selected, options)
    if options.match == "Exact" or (
        options.limit and options.resource_version not in ("", "0") and not options.match
    ):
        revision = int(options.resource_version)
        check_not_future(store, revision)
        try:
            return _cut(table.snapshot(revision, prefix), "", revision, selected, options.limit)
        except Compacted:
            raise errors.expired(_LIST_EXPIRED) from None
    if options.resource_version not in ("", "0"):
        check_not_future(store, int(options.resource_version))
    if not options.limit:
        items = [s for s in table.scan(prefix) if selected is None or selected(s)]
        return Page(items, store.revision)
    return _first(table, prefix, store.revision, selected, options.limit)


def check_not_future(store: Store, revision: int) -> None:
    """Refuse a revision that is still to come; a client may have seen it on a server that is gone."""
    if revision > store.revision:
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        message = f"Too large resource version: {revision}, current: {store.revision}"
        raise errors.timeout(message, 1, causes)


def _first(
    table: Table, prefix: str, revision: int, selected: Callable[[Stored], bool] | None, limit: int
) -> Page:
    """The first page, without copying the whole table."""
    items: list[Stored] = []
    for stored in table.scan(prefix):
        if selected is not None and not selected(stored):
            continue
        if len(items) == limit:
            token = _encode_token(revision, items[-1].key)
            remaining = table.count(prefix, after=items[-1].key) if selected is None else None
            return Page(items, revision, token, remaining)
        items.append(stored)
    return Page(items, revision)


def _cut(
    everything: list[Stored],
    after: str,
    revision: int,
    selected: Callable[[Stored], bool] | None,
    limit: int,
) -> Page:
    rest = [s for s in everything if s.key > after and (selected is None or selected(s))]
    if not limit or len(rest) <= limit:
        return Page(rest, revision)
    remaining = len(rest) - limit if selected is None else None
    return Page(rest[:limit], revision, _encode_token(revision, rest[limit - 1].key), remaining)


def _continued(
    store: Store, table: Table, prefix: str, selected: Callable[[Stored], bool] | None, options: ListOptions
) -> Page:
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    revision, after = _decode_token(options.continue_token)
    if revision < 0:
        everything = list(table.scan(prefix))
        return _cut(everything, after, store.revision, selected, options.limit)
    try:
        return _cut(table.snapshot(revision, prefix), after, revision, selected, options.limit)
    except Compacted:
        failure = errors.expired(_CONTINUE_EXPIRED)
        failure.list_meta = {"continue": _encode_token(-1, after)}
        raise failure from None


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def _encode_token(revision: int, after: str) -> str:
    # The start key is the first possible key after the last one given, in etcd's form.
    token = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, f"{after}\0"))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token(text: str) -> tuple[int, str]:
    invalid = "invalid continue token: continue key is not valid"
    if strange := re.search("[^A-Za-z0-9_-]", text):
        raise errors.bad_request(f"{invalid}: illegal base64 data at input byte {strange.start()}")
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.convert(bodies.decode_json_value(decoded), _Token)
    except errors.StatusError as error:
        raise errors.bad_request(f"{invalid}: {error.message}") from None
    except ValueError as error:
        raise errors.bad_request(f"{invalid}: {error}") from None
    if token.v != "meta.k8s.io/v1":
        unknown = f"{invalid}: server does not recognize this encoded version {token.v}"
        raise errors.bad_request(unknown)
    return token.rv, token.start.removesuffix("\0")
