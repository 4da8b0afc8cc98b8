"""Small catalogs to break: one package with three versions in a row, made anew for each test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.api.findings import Place
from podium.catalog import blobs
from podium.catalog.blobs import Blob

Document = dict[str, Any]
Change = Callable[[list[Document]], object]

DIGEST = "sha256:" + "0123456789abcdef" * 4
PACKAGE, CHANNEL, FIRST, SECOND, THIRD, DEPRECATIONS = range(6)


def small() -> list[Document]:
    """A catalog without fault, by the constants above."""
    names = [f"app.v{version}" for version in ("1.0.0", "1.1.0", "2.0.0")]
    entries: list[Document] = [{"name": names[0]}]
    entries += [{"name": names[index], "replaces": names[index - 1]} for index in (1, 2)]
    return [
        {"schema": "olm.package", "name": "app", "defaultChannel": "stable", "description": "An app."},
        {"schema": "olm.channel", "package": "app", "name": "stable", "entries": entries},
        *(bundle(name) for name in names),
        {
            "schema": "olm.deprecations",
            "package": "app",
            "entries": [{"reference": {"schema": "olm.bundle", "name": names[0]}, "message": "old"}],
        },
    ]


def bundle(name: str, package: str = "app") -> Document:
    """A bundle whose version follows from its name."""
    version = name.partition(".v")[2]
    return {
        "schema": "olm.bundle",
        "package": package,
        "name": name,
        "image": f"quay.io/me/app@{DIGEST}",
        "properties": [
            {"type": "olm.package", "value": {"packageName": package, "version": version}},
            {"type": "olm.csv.metadata", "value": {"displayName": "App"}},
        ],
        "relatedImages": [{"name": "operator", "image": f"quay.io/me/operator@{DIGEST}"}],
    }


def channel(name: str, *entries: Document) -> Document:
    """A channel of the package."""
    return {"schema": "olm.channel", "package": "app", "name": name, "entries": list(entries)}


def changed(change: Change) -> list[Blob]:
    """The small catalog after a change to its documents, as blobs of `catalog.yaml`, one a line."""
    documents = small()
    change(documents)
    return as_blobs(documents)


def as_blobs(documents: list[Document]) -> list[Blob]:
    """Documents as blobs that know their place."""
    return [
        blobs.of(document, Place("catalog.yaml", index, index))
        for index, document in enumerate(documents, start=1)
    ]
