"""The forms in which an object can be answered: itself, its metadata only, or a row of a table.

`negotiate` reads the Accept header. Every view turns stored JSON into answered JSON for a single object, a
list and a watch event; plain objects are spliced as bytes and never decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Protocol

import msgspec

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.registry import Resource
from podium.apiserver.store import decode, encode

JSON, YAML = "application/json", "application/yaml"
_SUPPORTED = "application/json, application/yaml"
_ROUTED = (JSON, YAML, "application/vnd.kubernetes.protobuf", "*/*")


class View(Protocol):
    """One form of answer."""

    def object(self, resource: Resource, data: bytes) -> bytes: ...

    def list(self, resource: Resource, items: Sequence[bytes], metadata: Object) -> bytes: ...

    def event(self, resource: Resource, data: bytes) -> bytes: ...


class Plain:
    """Objects as they are."""

    def object(self, resource: Resource, data: bytes) -> bytes:
        return data

    def list(self, resource: Resource, items: Sequence[bytes], metadata: Object) -> bytes:
        head = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata}
        return b"".join((encode(head)[:-1], b',"items":[', b",".join(items), b"]}\n"))

    def event(self, resource: Resource, data: bytes) -> bytes:
        return data


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


_split_metadata = msgspec.json.Decoder(_MetadataOnly).decode


class Metadata:
    """PartialObjectMetadata: enough for owners, labels and garbage collection."""

    def object(self, resource: Resource, data: bytes) -> bytes:
        metadata = bytes(_split_metadata(data).metadata)
        head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
        return b"".join((head, metadata, b"}"))

    def list(self, resource: Resource, items: Sequence[bytes], metadata: Object) -> bytes:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        rows = b",".join(self.object(resource, item) for item in items)
        return b"".join((encode(head)[:-1], b',"items":[', rows, b"]}\n"))

    def event(self, resource: Resource, data: bytes) -> bytes:
        return self.object(resource, data)


class Table:
    """Rows for people; what else a row carries is the client's `includeObject`."""

    def __init__(self, include: str, now: datetime) -> None:
        self._include = include
        self._now = now
        self._sent_columns = False

    def object(self, resource: Resource, data: bytes) -> bytes:
        version = decode(data)["metadata"].get("resourceVersion", "")
        return self.list(resource, [data], {"resourceVersion": version})

    def list(self, resource: Resource, items: Sequence[bytes], metadata: Object) -> bytes:
        from podium.apiserver import tables

        rows = b",".join(self._row(resource, item) for item in items)
        columns = None if self._sent_columns else tables.columns(resource)
        head = {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
        }
        return b"".join((encode(head)[:-1], b',"rows":[', rows, b"]}\n"))

    def event(self, resource: Resource, data: bytes) -> bytes:
        table = self.object(resource, data).rstrip()
        self._sent_columns = True  # clients keep the columns of the first event
        return table

    def _row(self, resource: Resource, data: bytes) -> bytes:
        from podium.apiserver import tables

        obj = decode(data)
        cells = encode(tables.cells(resource, obj, self._now))
        conditions = tables.row_conditions(resource, obj)
        noted = b',"conditions":' + encode(conditions) if conditions else b""
        if self._include == "None":
            shown = b"null"
        elif self._include == "Object":
            shown = data
        else:
            shown = Metadata().object(resource, data)
        return b"".join((b'{"cells":', cells, noted, b',"object":', shown, b"}"))


class Form(Enum):
    """What is to be answered."""

    OBJECT = "object"
    LIST = "list"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class _Clause:
    """One alternative of an Accept header."""

    media: str
    options: Mapping[str, str]

    @property
    def kind(self) -> str | None:
        """What it would be answered with."""
        if self.media in (JSON, "*/*", "application/*"):
            return JSON
        return YAML if self.media == YAML else None


@lru_cache(maxsize=64)
def _clauses(accept: str) -> tuple[_Clause, ...]:
    """The alternatives, best first."""
    found: list[tuple[float, bool, _Clause]] = []
    for text in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (part.strip() for part in text.split(";"))
        options = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(options.get("q", 1))
        except ValueError:
            quality = 1.0
        found.append((-quality, "*" in media, _Clause(media.lower(), options)))
    found.sort(key=lambda entry: entry[:2])
    return tuple(clause for _, _, clause in found)


def media_kind(accept: str) -> str:
    """JSON or YAML, whichever the client would rather have, for an answer that has no other form."""
    for clause in _clauses(accept):
        if clause.kind is not None and "as" not in clause.options:
            return clause.kind
    raise errors.not_acceptable(_SUPPORTED)


def prefers_yaml(accept: str) -> bool:
    """Whether a failure is to be told in YAML."""
    for clause in _clauses(accept):
        if clause.kind is not None:
            return clause.kind == YAML
    return False


def negotiate(
    resource: Resource, accept: str, include: str, now: datetime, form: Form = Form.OBJECT
) -> tuple[View, str]:
    """The view and media type for an Accept header: the first clause that can be met."""
    clauses = _clauses(accept)
    if not resource.custom and not any(clause.media in _ROUTED for clause in clauses):
        # The routes of built-in kinds know whole media types only.
        raise errors.no_representation(_SUPPORTED)
    for clause in clauses:
        if clause.kind is None or (form is Form.WATCH and clause.kind == YAML):
            continue
        view = _view(resource, clause.options, include, now, form)
        if view is not None:
            return view, clause.kind
    raise errors.not_acceptable(_SUPPORTED if form is not Form.WATCH else "application/json;stream=watch")


def _view(
    resource: Resource, options: Mapping[str, str], include: str, now: datetime, form: Form
) -> View | None:
    wanted = options.get("as")
    if wanted is None:
        return Plain()
    if options.get("g") != "meta.k8s.io" or options.get("v") != "v1":
        return None
    if wanted == "Table":
        if include not in ("", "None", "Metadata", "Object"):
            allowed = "must be 'Metadata', 'Object', 'None', or empty"
            why = f'includeObject: Invalid value: "{include}": {allowed}'
            raise errors.bad_request(f"Unable to convert to Table as requested: {why}")
        return Table(include or "Metadata", now)
    if wanted == "PartialObjectMetadata":
        if form is Form.LIST:
            what = f"the requested object is a list ({_go_type(resource, resource.list_kind)})"
            raise errors.StatusError(406, "NotAcceptable", f"you requested {wanted}, but {what}")
        return Metadata()
    if wanted == "PartialObjectMetadataList":
        if form is Form.OBJECT:
            what = f"the requested object is not a list ({_go_type(resource, resource.kind)})"
            raise errors.StatusError(406, "NotAcceptable", f"you requested {wanted}, but {what}")
        return Metadata()
    return None


def _go_type(resource: Resource, kind: str) -> str:
    if resource.custom:
        return f"*unstructured.Unstructured{'List' if kind == resource.list_kind else ''}"
    return f"*{resource.group.partition('.')[0] or 'core'}.{kind}"
