"""Reads a bundle's files as operator-controller does, which is not quite as the author's tools do.

All documents of a file count, lists are taken apart, any file name will do, directories below `manifests/`
are refused, and of several ClusterServiceVersions the last one wins. Metadata is found by name. Types are
checked by conversion itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle.annotations import named_only
from podium.bundle.model import CRD_KIND, CSV_KIND, MANIFESTS_DIR, Bundle, BundleError, Files, Manifest
from podium.text import yaml

ANNOTATIONS_FILE = "metadata/annotations.yaml"


class _Unreadable(ValueError):
    pass


def read(files: Files) -> Bundle:
    """The bundle that operator-controller would install; BundleError lists what keeps it from reading it."""
    findings: list[Finding] = []
    annotations = _annotations(files, findings)
    manifests: list[Manifest] = []
    for path in sorted(path for path in files if path.startswith(MANIFESTS_DIR)):
        try:
            manifests += [Manifest(path, obj) for obj in _objects(path, files[path])]
        except (_Unreadable, UnicodeDecodeError, yaml.YAMLError) as error:
            findings.append(_error("manifest", str(error), path, getattr(error, "line", 0) or 0))
    objects = tuple(manifest.value for manifest in manifests)
    csvs = [obj for obj in objects if obj["kind"] == CSV_KIND]
    if not csvs and not findings:
        findings.append(_error("csv-missing", 'no ClusterServiceVersion found in "manifests"', MANIFESTS_DIR))
    if findings:
        raise BundleError(findings)
    crds = tuple(obj for obj in objects if obj["kind"] == CRD_KIND)
    return Bundle(csvs[-1], crds, objects, annotations, manifests=tuple(manifests), files=files)


def _annotations(files: Files, findings: list[Finding]) -> dict[str, str]:
    if ANNOTATIONS_FILE not in files:
        findings.append(
            _error("annotations-missing", f"open {ANNOTATIONS_FILE}: file does not exist", ANNOTATIONS_FILE)
        )
        return {}
    try:
        document = next(yaml.load_all(files[ANNOTATIONS_FILE], []), None)
    except yaml.YAMLError as error:
        findings.append(_error("annotations", str(error), ANNOTATIONS_FILE))
        return {}
    return named_only(document) or {}


def _objects(path: str, data: bytes) -> Iterator[Object]:
    below = path.removeprefix(MANIFESTS_DIR)
    if "/" in below:
        folder = MANIFESTS_DIR + below.partition("/")[0]
        where = 'the "manifests" directory of the bundle image filesystem'
        raise _Unreadable(f'subdirectories are not allowed within {where}: found "{folder}"')
    for value in _documents(data):
        if value is None:
            continue
        if not isinstance(value, dict):
            raise _Unreadable("cannot unmarshal a manifest that is no object")
        yield from _flattened(value)


def _flattened(value: Object) -> Iterator[Object]:
    """The object, or if it has items, those."""
    if not isinstance(value.get("kind"), str) or not value["kind"]:
        raise _Unreadable("Object 'Kind' is missing")
    items = value.get("items")
    if items is None:
        yield value
        return
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _Unreadable("the items of a list must be objects")
    for item in items:
        if not item.get("kind") and not item.get("apiVersion"):
            item = item | {
                "kind": value["kind"].removesuffix("List"),
                "apiVersion": value.get("apiVersion", ""),
            }
        yield from _flattened(item)


def _documents(data: bytes) -> Iterator[Any]:
    """Every document of a stream of JSON, or of YAML cut at lines that start with `---`."""
    if data.lstrip()[:1] == b"{":
        try:
            yield from list(_json_documents(data.decode()))
            return
        except ValueError:
            pass  # flow-style YAML also starts with a brace
    lines = data.decode().split("\n")
    cuts = [number for number, line in enumerate(lines) if line.startswith("---")]
    for start, end in zip([-1, *cuts], [*cuts, len(lines)], strict=True):
        after = lines[start][3:].strip() if start >= 0 else ""
        if after and not after.startswith("#"):
            raise _Unreadable(f"invalid Yaml document separator: {after}")
        # The lines before are left empty, so that the parser counts as an editor does.
        text = "\n" * (start + 1) + "\n".join(lines[start + 1 : end])
        yield next(yaml.load_all(text, []), None)


def _json_documents(text: str) -> Iterator[Any]:
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        value, position = decoder.raw_decode(text, position)
        yield value


def _error(rule: str, message: str, path: str, line: int = 0) -> Finding:
    return Finding(Severity.ERROR, rule, message, path, Place(path, 0, line))
