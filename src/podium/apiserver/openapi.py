"""/openapi/v3: an index of documents, one per group and version, each cached until its resources change.

Documents are large and rarely asked for, so they are kept compressed; kubectl asks with the hash from the
index and may then keep the answer for ever.

/openapi/v2 is a document that describes nothing. kubectl asks for it when v3 does not know a kind (a List, a
kind whose definition is missing), and would take its absence for a broken server.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from podium.apiserver.endpoints import Answer
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.store import encode
from podium.schema import openapi
from podium.schema.facts import ResourceFact, SubresourceFact

_FOR_EVER = "public, immutable"
_PREFIX = "/openapi/v3"
_V2_JSON = b'{"swagger":"2.0","info":{"title":"Kubernetes","version":"1.36"},"paths":{}}'
# The same as a protobuf message: swagger (1), info (2) with title (1) and version (2), paths (8).
_V2_PROTOBUF = b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36B\x00"
_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class OpenAPI:
    """The OpenAPI documents of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = -1
        self._fingerprints: dict[tuple[str, str], str] = {}
        self._documents: dict[str, bytes] = {}  # fingerprint -> compressed JSON

    def empty_v2(self, accept: str) -> Answer:
        """The answer for /openapi/v2: nothing to validate against."""
        first = accept.partition(",")[0].partition(";")[0].strip()
        if first in (_V2_TYPE, _V2_TYPE.replace("v2.v1", "v2@v1")):
            return Answer(200, _V2_PROTOBUF, _V2_TYPE)
        return Answer(200, _V2_JSON)

    def page(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer for a path below /openapi/v3."""
        self._refresh()
        if path == _PREFIX:
            return Answer(200, encode(openapi.index(self._fingerprints)))
        match path.removeprefix(_PREFIX).strip("/").split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                return None
        fingerprint = self._fingerprints.get((group, version))
        if fingerprint is None:
            return None
        etag = {"ETag": f'"{fingerprint}"', "Vary": "Accept"}
        if headers.get("If-None-Match") == etag["ETag"]:
            return Answer(304, b"", headers=etag)
        if query.get("hash") == fingerprint:
            etag["Cache-Control"] = _FOR_EVER
        elif query.get("hash"):
            # The document changed since the index was read: the client may keep only what the new hash names.
            return Answer(301, b"", headers={**etag, "Location": f"{path}?hash={fingerprint}"})
        return Answer(200, self._document(group, version, fingerprint), headers=etag)

    def _refresh(self) -> None:
        if self._revision == self._registry.revision:
            return
        self._revision = self._registry.revision
        self._fingerprints = {
            (group, version): openapi.fingerprint(group, version, *self._inputs(group, version))
            for group, versions in self._registry.groups().items()
            for version in versions
        }
        known = set(self._fingerprints.values())
        self._documents = {key: body for key, body in self._documents.items() if key in known}

    def _inputs(self, group: str, version: str) -> tuple[list[ResourceFact], dict[str, Any]]:
        resources = self._registry.in_version(group, version)
        schemas = {resource.kind: resource.extra["schema"] for resource in resources if resource.custom}
        return [_fact(resource) for resource in resources], schemas

    def _document(self, group: str, version: str, fingerprint: str) -> bytes:
        packed = self._documents.get(fingerprint)
        if packed is not None:
            return zlib.decompress(packed)
        body = encode(openapi.document(group, version, *self._inputs(group, version)))
        self._documents[fingerprint] = zlib.compress(body, 1)
        return body


def _fact(resource: Resource) -> ResourceFact:
    """A served resource in the form the documents are made from."""
    subresources = tuple(
        SubresourceFact(name, sub["group"], sub["version"], sub["kind"], tuple(sub["verbs"]))
        for name, sub in resource.subresources.items()
    )
    return ResourceFact(
        resource.group,
        resource.version,
        resource.plural,
        resource.singular,
        resource.kind,
        resource.namespaced,
        resource.short_names,
        resource.categories,
        resource.verbs,
        subresources,
        "",
    )
