"""What a catalog holds, in rows."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from podium.catalog import listing
from podium.catalog.outline import outline
from podium.catalog.read import read

CSV = {"kind": "ClusterServiceVersion", "spec": {"displayName": "Pantry"}}


@pytest.mark.parametrize(
    "described",
    [
        {"type": "olm.csv.metadata", "value": {"displayName": "Pantry"}},
        {"type": "olm.bundle.object", "value": {"data": base64.b64encode(json.dumps(CSV).encode()).decode()}},
    ],
    ids=["metadata", "manifests"],
)
def test_a_package_is_called_what_its_newest_version_says(described: dict[str, Any]) -> None:
    about = {"type": "olm.package", "value": {"packageName": "pantry", "version": "1.0.0"}}
    blobs = [
        {"schema": "olm.package", "name": "pantry", "defaultChannel": "stable"},
        {
            "schema": "olm.channel",
            "name": "stable",
            "package": "pantry",
            "entries": [{"name": "pantry.v1.0.0"}],
        },
        {
            "schema": "olm.bundle",
            "name": "pantry.v1.0.0",
            "package": "pantry",
            "properties": [about, described],
        },
    ]
    catalog = outline(read([("catalog.json", "\n".join(map(json.dumps, blobs)).encode())]))
    assert list(listing.packages(catalog)) == [listing.PackageRow("pantry", "Pantry", "stable")]
    assert list(listing.channels(catalog)) == [listing.ChannelRow("pantry", "stable", "pantry.v1.0.0")]
