"""What users of a channel see change between two catalogs."""

from __future__ import annotations

import json
from typing import Any

from podium.catalog.diff import Change, ChangeKind, diff
from podium.catalog.outline import Package, outline
from podium.catalog.read import read


def catalog(
    channels: dict[str, list[dict[str, Any]]], default: str = "stable", **descriptions: str
) -> dict[str, Package]:
    """A catalog of the package `pantry`; `v1_0_0=...` changes the content of that version."""
    names = {entry["name"] for entries in channels.values() for entry in entries}
    blobs: list[dict[str, Any]] = [{"schema": "olm.package", "name": "pantry", "defaultChannel": default}]
    for name, entries in channels.items():
        blobs.append({"schema": "olm.channel", "name": name, "package": "pantry", "entries": entries})
    for name in sorted(names):
        version = name.partition(".v")[2]
        about = descriptions.get("v" + version.replace(".", "_"), "")
        properties = [
            {"type": "olm.package", "value": {"packageName": "pantry", "version": version}},
            {"type": "olm.csv.metadata", "value": {"description": about}},
        ]
        image = f"docker.io/acme/pantry:{version}"
        blobs.append(
            {
                "schema": "olm.bundle",
                "name": name,
                "package": "pantry",
                "image": image,
                "properties": properties,
            }
        )
    data = "\n".join(map(json.dumps, blobs)).encode()
    return outline(read([("catalog.json", data)]), contents=True)


V1, V2 = {"name": "p.v1.0.0"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.0"}


def test_the_same_catalog_in_another_order_is_no_change() -> None:
    assert diff(catalog({"stable": [V1, V2]}), catalog({"stable": [V2, V1]})) == []


def test_a_new_version_is_the_newest_and_gives_the_old_one_somewhere_to_go() -> None:
    changes = diff(catalog({"stable": [V1]}), catalog({"stable": [V1, V2]}))
    assert changes == [
        Change("pantry", "stable", ChangeKind.NEWEST, before="p.v1.0.0", after="p.v2.0.0"),
        Change("pantry", "stable", ChangeKind.VERSION_ADDED, "p.v2.0.0"),
        Change("pantry", "stable", ChangeKind.UPGRADE, "p.v1.0.0", "", "p.v2.0.0"),
    ]
    assert not any(change.breaking for change in changes)


def test_a_removed_version_is_breaking_even_if_a_skip_range_still_covers_it() -> None:
    after = catalog({"stable": [{"name": "p.v2.0.0", "skipRange": "<2.0.0"}]})
    changes = diff(catalog({"stable": [V1, V2]}), after)
    assert changes == [Change("pantry", "stable", ChangeKind.VERSION_REMOVED, "p.v1.0.0")]
    assert changes[0].breaking


def test_content_that_changes_under_the_same_version_is_breaking() -> None:
    (change,) = diff(catalog({"stable": [V1]}), catalog({"stable": [V1]}, v1_0_0="other words"))
    assert (change.kind, change.name, change.breaking) == (ChangeKind.CONTENT, "p.v1.0.0", True)


def test_channels_and_defaults_that_come_and_go() -> None:
    before = catalog({"stable": [V1], "beta": [V1]})
    after = catalog({"stable": [V1], "fast": [V1]}, default="fast")
    assert [(change.channel, change.kind) for change in diff(before, after)] == [
        ("", ChangeKind.DEFAULT_CHANNEL),
        ("beta", ChangeKind.CHANNEL_REMOVED),
        ("fast", ChangeKind.CHANNEL_ADDED),
    ]


def test_packages_that_come_and_go() -> None:
    content = catalog({"stable": [V1]})
    assert diff({}, content) == [Change("pantry", "", ChangeKind.PACKAGE_ADDED)]
    assert diff(content, {}) == [Change("pantry", "", ChangeKind.PACKAGE_REMOVED)]
