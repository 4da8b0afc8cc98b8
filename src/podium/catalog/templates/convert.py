"""Templates made from a catalog, as `opm alpha convert-template` makes them.

A basic template keeps of each bundle only where its image is; a substitutes template keeps everything and
has an empty list of substitutions to fill in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.catalog import blobs
from podium.catalog.blobs import BUNDLE, Blob
from podium.catalog.templates import basic, substitutes
from podium.text import gojson, yaml


def to_basic(content: Iterable[Blob]) -> dict[str, Any]:
    """A basic template that renders to the same catalog, if its images still hold what they held."""
    entries = [_reference(blob) if blob.schema == BUNDLE else msgspec.Raw(blob.raw) for blob in content]
    return {"schema": basic.SCHEMA, "entries": entries or None}


def to_substitutes(content: Iterable[Blob]) -> dict[str, Any]:
    """A substitutes template that renders to the same catalog until substitutions are added."""
    entries = [msgspec.Raw(blob.raw) for blob in content]
    return {"schema": substitutes.SCHEMA, "entries": entries or None, "substitutions": []}


def as_json(template: dict[str, Any]) -> bytes:
    """The template as opm prints it: indented JSON, HTML-escaped."""
    return msgspec.json.format(_escaped(template), indent=4) + b"\n"


def as_yaml(template: dict[str, Any]) -> bytes:
    """The template as opm prints it: one YAML document and an empty line."""
    return b"---\n" + yaml.dump(msgspec.json.decode(_escaped(template))).encode() + b"\n"


def _escaped(template: dict[str, Any]) -> bytes:
    return gojson.escaped(msgspec.json.encode(template))


def _reference(blob: Blob) -> dict[str, Any]:
    bundle = blobs.bundle(blob)
    return {"schema": bundle.schema, "image": bundle.image}
