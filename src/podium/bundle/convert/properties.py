"""The bundle's properties as an annotation of its ClusterServiceVersion, which its pods will carry.

Properties that are annotated already keep their JSON to the letter, key order included; those of the metadata
file are appended with sorted keys, because YAML came to Go as JSON. Only `metadata/properties.yaml` counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.bundle.convert.names import HTML_ESCAPES
from podium.bundle.model import Files
from podium.text import gojson, yaml

FILE = "metadata/properties.yaml"
ANNOTATION = "olm.properties"


class _Property(msgspec.Struct):
    type: str | None = None
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Document(msgspec.Struct):
    properties: list[_Property] | None = None


def with_properties(annotations: Mapping[str, str], files: Files) -> dict[str, str]:
    """The annotations with the file's properties in them; ValueError if either cannot be read."""
    listed: list[_Property] | None = None
    if ANNOTATION in annotations:
        try:
            listed = msgspec.json.decode(annotations[ANNOTATION], type=list[_Property] | None)
        except ValueError as error:
            where = f"csv.metadata.annotations['{ANNOTATION}']"
            raise ValueError(f"failed to unmarshal {where}: {error}") from None
    if not files.get(FILE):
        return {**annotations}
    return {**annotations, ANNOTATION: _written([*(listed or ()), *_in_file(files[FILE])])}


def _in_file(data: bytes) -> list[_Property]:
    try:
        document = gojson.compact(next(yaml.load_all(data, []), None), html=False)
        return (msgspec.json.decode(document, type=_Document | None) or _Document()).properties or []
    except ValueError as error:
        raise ValueError(f"failed to unmarshal {FILE}: {error}") from None


def _written(properties: list[_Property]) -> str:
    if not properties:
        return "null"
    items = (
        b'{"type":%b,"value":%b}' % (gojson.compact(each.type or ""), _compact(each)) for each in properties
    )
    return (b"[%b]" % b",".join(items)).decode().translate(HTML_ESCAPES)


def _compact(each: _Property) -> bytes:
    """The value without spaces between its tokens, and otherwise letter by letter as it was."""
    return msgspec.json.format(bytes(each.value), indent=-1)
