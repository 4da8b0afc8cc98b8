"""Public operators as test data: the CRDs of real bundles, and the example objects that come with them.

The bundles are in `bundles-sample.tar.gz` in the folder that `PODIUM_CORPUS` names; they are data, and never
part of this repository.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.text.yaml import load_all

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one bundle brings: definitions, and objects of the kinds that they define."""

    name: str
    definitions: tuple[Object, ...]
    examples: tuple[Object, ...]


@cache
def bundles() -> tuple[Bundle, ...]:
    """Every bundle of the corpus that has definitions; skips the test, and says so, where there is none."""
    folder = os.environ.get("PODIUM_CORPUS")
    if not folder:
        pytest.skip("PODIUM_CORPUS names no folder with bundles-sample.tar.gz")
    documents: dict[str, list[Object]] = {}
    for name, content in _manifests(Path(folder) / "bundles-sample.tar.gz"):
        documents.setdefault(name, []).extend(_documents(content))
    found = (Bundle(name, *_sorted_out(parts)) for name, parts in sorted(documents.items()))
    return tuple(bundle for bundle in found if bundle.definitions)


def _manifests(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Bundle (`package/version`) and content of each manifest."""
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = member.name.split("/")
            if member.isfile() and parts[3:4] == ["manifests"] and member.name.endswith((".yaml", ".yml")):
                content = tar.extractfile(member)
                assert content
                yield "/".join(parts[1:3]), content.read()


def _documents(content: bytes) -> list[Object]:
    return [document for document in load_all(content) if isinstance(document, dict)]


def _sorted_out(documents: list[Object]) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    definitions = [d for d in documents if d.get("kind") == "CustomResourceDefinition"]
    groups = {definition["spec"]["group"] for definition in definitions}
    examples: list[Object] = []
    for document in documents:
        annotations = (document.get("metadata") or {}).get("annotations") or {}
        if document.get("kind") == "ClusterServiceVersion" and annotations.get("alm-examples"):
            found = json.loads(annotations["alm-examples"])
            examples += [e for e in found if e["apiVersion"].partition("/")[0] in groups]
    return tuple(definitions), tuple(examples)
