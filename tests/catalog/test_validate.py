"""Every rule of the validator, broken one at a time. That opm agrees: test_catalog_validation_like_opm."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from catalog.small_catalogs import (
    CHANNEL,
    DEPRECATIONS,
    FIRST,
    PACKAGE,
    SECOND,
    THIRD,
    Change,
    Document,
    as_blobs,
    bundle,
    changed,
    channel,
    small,
)
from podium.api.findings import Place, Severity
from podium.catalog import read
from podium.catalog.blobs import Blob
from podium.catalog.validate import validate
from podium.catalog.validate.rules import Rule


def _set(index: int, **fields: object) -> Change:
    return lambda documents: documents[index].update(fields)


def _entry(number: int, **fields: object) -> Change:
    return lambda documents: documents[CHANNEL]["entries"][number].update(fields)


def _version(**fields: object) -> Change:
    return lambda documents: documents[THIRD]["properties"][0]["value"].update(fields)


def _property(kind: str, value: object) -> Change:
    return lambda documents: documents[THIRD]["properties"].append({"type": kind, "value": value})


def _deprecate(message: str = "old", **reference: str) -> Change:
    return lambda documents: documents[DEPRECATIONS]["entries"].append(
        {"reference": reference, "message": message}
    )


def _released(documents: list[Document], name: str, version: str) -> None:
    documents[THIRD]["name"] = documents[CHANNEL]["entries"][2]["name"] = name
    documents[THIRD]["properties"][0]["value"] |= {"version": version, "release": "1"}


BROKEN: list[tuple[Rule, Change, int]] = [
    (Rule.FIELD_TYPE, _set(CHANNEL, entries="all"), CHANNEL),
    (Rule.PACKAGE_NAME_MISSING, lambda documents: documents.append({"schema": "olm.package"}), 6),
    (
        Rule.PACKAGE_NAME_INVALID,
        lambda documents: documents.append({**documents[PACKAGE], "name": "App"}),
        6,
    ),
    (Rule.PACKAGE_DUPLICATE, lambda documents: documents.append(documents[PACKAGE]), 6),
    (
        Rule.PACKAGE_WITHOUT_CHANNELS,
        lambda documents: documents.append({"schema": "olm.package", "name": "b"}),
        6,
    ),
    (Rule.PACKAGE_DUPLICATE_VERSIONS, _version(version="1.0.0"), THIRD),
    (Rule.DEFAULT_CHANNEL_MISSING, _set(PACKAGE, defaultChannel=""), PACKAGE),
    (Rule.DEFAULT_CHANNEL_UNKNOWN, _set(PACKAGE, defaultChannel="fast"), PACKAGE),
    (Rule.CHANNEL_PACKAGE_UNKNOWN, lambda documents: documents.append({**channel("x"), "package": "b"}), 6),
    (Rule.CHANNEL_NAME_MISSING, lambda documents: documents.append({**documents[CHANNEL], "name": ""}), 6),
    (Rule.CHANNEL_DUPLICATE, lambda documents: documents.append(documents[CHANNEL]), 6),
    (Rule.CHANNEL_EMPTY, lambda documents: documents.append(channel("empty")), 6),
    (Rule.CHANNEL_WITHOUT_HEAD, _entry(0, replaces="app.v2.0.0"), CHANNEL),
    (Rule.CHANNEL_MULTIPLE_HEADS, _entry(2, replaces="app.v1.0.0"), CHANNEL),
    (Rule.CHANNEL_CYCLE, _entry(0, replaces="app.v1.1.0"), CHANNEL),
    (Rule.CHANNEL_STRANDED, _entry(2, skips=["app.v1.1.0"]), CHANNEL),
    (Rule.ENTRY_NAME_MISSING, _entry(0, name=""), CHANNEL),
    (
        Rule.ENTRY_DUPLICATE,
        lambda documents: documents[CHANNEL]["entries"].append({"name": "app.v1.0.0"}),
        CHANNEL,
    ),
    (Rule.ENTRY_WITHOUT_BUNDLE, lambda documents: documents.pop(SECOND), CHANNEL),
    (Rule.ENTRY_EMPTY_SKIP, _entry(0, skips=["x", ""]), CHANNEL),
    (Rule.ENTRY_SKIP_RANGE_INVALID, _entry(0, skipRange="1"), CHANNEL),
    (Rule.BUNDLE_PACKAGE_MISSING, lambda documents: documents.append(bundle("x.v1.0.0", "")), 6),
    (Rule.BUNDLE_PACKAGE_UNKNOWN, lambda documents: documents.append(bundle("x.v1.0.0", "b")), 6),
    (Rule.BUNDLE_DUPLICATE, lambda documents: documents.append(documents[FIRST]), 6),
    (Rule.BUNDLE_PROPERTY_INVALID, _property("olm.csv.metadata", {"annotations": {"a": 1}}), THIRD),
    (Rule.BUNDLE_OBJECT_INVALID, _property("olm.bundle.object", {"data": "YTogYjogYw=="}), THIRD),
    (Rule.BUNDLE_PACKAGE_PROPERTIES, _set(THIRD, properties=[]), THIRD),
    (Rule.BUNDLE_PACKAGE_DIFFERS, _version(packageName="b"), THIRD),
    (Rule.BUNDLE_VERSION_INVALID, _version(version="v2"), THIRD),
    (Rule.BUNDLE_RELEASE_INVALID, _version(release="01"), THIRD),
    (
        Rule.BUNDLE_RELEASE_WITH_BUILD,
        lambda documents: _released(documents, "app-v2.0.0+b-1", "2.0.0+b"),
        THIRD,
    ),
    (Rule.BUNDLE_NAME_WITHOUT_RELEASE, _version(release="1"), THIRD),
    (Rule.BUNDLE_IMAGE_MISSING, _set(THIRD, image=""), THIRD),
    (Rule.BUNDLE_IMAGE_INVALID, _set(THIRD, image="a b"), THIRD),
    (Rule.BUNDLE_RELATED_IMAGE_INVALID, _set(THIRD, relatedImages=[{"name": "", "image": "A:1"}]), THIRD),
    (Rule.BUNDLE_IN_NO_CHANNEL, lambda documents: documents.append(bundle("app.v3.0.0")), 6),
    (
        Rule.DEPRECATIONS_PACKAGE_MISSING,
        lambda documents: documents.append({"schema": "olm.deprecations"}),
        6,
    ),
    (Rule.DEPRECATIONS_PACKAGE_UNKNOWN, _set(DEPRECATIONS, package="b"), DEPRECATIONS),
    (Rule.DEPRECATIONS_DUPLICATE, lambda documents: documents.append(documents[DEPRECATIONS]), 6),
    (Rule.DEPRECATION_SCHEMA_MISSING, _deprecate(name="x"), DEPRECATIONS),
    (Rule.DEPRECATION_SCHEMA_UNKNOWN, _deprecate(schema="olm.csv"), DEPRECATIONS),
    (Rule.DEPRECATION_DUPLICATE, _deprecate(schema="olm.bundle", name="app.v1.0.0"), DEPRECATIONS),
    (Rule.DEPRECATION_BUNDLE_UNKNOWN, _deprecate(schema="olm.bundle", name="x"), DEPRECATIONS),
    (Rule.DEPRECATION_CHANNEL_UNKNOWN, _deprecate(schema="olm.channel", name="x"), DEPRECATIONS),
    (Rule.DEPRECATION_PACKAGE_NAMED, _deprecate(schema="olm.package", name="app"), DEPRECATIONS),
    (Rule.DEPRECATION_MESSAGE_MISSING, _deprecate(message="", schema="olm.package"), DEPRECATIONS),
]


def test_a_good_catalog_has_no_findings() -> None:
    assert validate(as_blobs(small())) == []


@pytest.mark.parametrize(("rule", "change", "where"), BROKEN, ids=[str(rule) for rule, _, _ in BROKEN])
def test_a_broken_rule_is_found_in_its_place(rule: Rule, change: Change, where: int) -> None:
    findings = validate(changed(change))
    [found] = [finding for finding in findings if finding.rule == rule]
    assert found.place == Place("catalog.yaml", where + 1, where + 1)
    assert found.severity is Severity.ERROR
    assert found.message


def test_every_rule_has_a_row_above() -> None:
    assert [rule for rule, _, _ in BROKEN] == list(Rule)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_catalog() -> None:
    def change(documents: list[Document]) -> None:
        documents[PACKAGE]["defaultChannel"] = ""
        documents[CHANNEL]["entries"][2]["skipRange"] = "nonsense"
        documents[FIRST]["image"] = "a b"
        documents[SECOND]["properties"][0]["value"]["version"] = "one"
        documents[DEPRECATIONS]["entries"][0]["message"] = ""

    assert [finding.rule for finding in validate(changed(change))] == [
        Rule.DEFAULT_CHANNEL_MISSING,
        Rule.ENTRY_SKIP_RANGE_INVALID,
        Rule.BUNDLE_IMAGE_INVALID,
        Rule.BUNDLE_VERSION_INVALID,
        Rule.DEPRECATION_MESSAGE_MISSING,
    ]


@pytest.mark.parametrize(
    "change",
    [
        _entry(0, replaces="gone.v0"),
        _entry(2, skipRange="<2.0.0 || 1.x"),
        _entry(2, skips=["app.v1.1.0", "app.v1.0.0"]),
        _set(
            FIRST,
            image="",
            properties=[small()[FIRST]["properties"][0], {"type": "olm.bundle.object", "value": {}}],
        ),
        _set(FIRST, image="short"),
        _set(FIRST, relatedImages=[{"name": "", "image": ""}]),
        _property("olm.csv.metadata", {"ANNOTATIONS": {"a": None}, "links": None, "unknown": 1}),
        _property("olm.bundle.object", {"data": "ew=="}),
        _property("my.own", None),
        lambda documents: _released(documents, "app-v2.0.0-1", "2.0.0"),
    ],
)
def test_what_opm_puts_up_with_passes(change: Change) -> None:
    assert validate(changed(change)) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("olm.package.required", {"packageName": 1}),
        ("olm.gvk", {"group": []}),
        ("olm.gvk.required", "text"),
        ("olm.channel", {"priority": 1.5}),
        ("olm.channel", {"priority": "1"}),
        ("olm.csv.metadata", {"installModes": [{"supported": "yes"}]}),
        ("olm.csv.metadata", {"apiServiceDefinitions": {"owned": [{"containerPort": 2**31}]}}),
        ("olm.csv.metadata", {"crdDescriptions": {"owned": [{"specDescriptors": [{"x-descriptors": "x"}]}]}}),
        ("olm.csv.metadata", {"KEYWORDS": "x"}),
    ],
)
def test_properties_that_opm_cannot_decode_are_found(kind: str, value: object) -> None:
    [found] = validate(changed(_property(kind, value)))
    assert (found.rule, found.subject) == (Rule.BUNDLE_PROPERTY_INVALID, "bundle app.v2.0.0")
    assert kind in found.message


def test_a_blob_that_cannot_be_read_is_not_also_missed() -> None:
    findings = validate(changed(_set(THIRD, image=5)))
    assert [finding.rule for finding in findings] == [Rule.FIELD_TYPE]


def _large(size: int) -> Iterator[tuple[str, bytes]]:
    """Packages of four blobs, a hundred kilobytes in a bundle."""
    weight = "x" * 100_000
    for number in range(size):
        name = f"app{number}"
        heavy = bundle(f"{name}.v1.0.0", name)
        heavy["properties"][1]["value"]["description"] = weight
        documents = [
            {"schema": "olm.package", "name": name, "defaultChannel": "stable"},
            {**channel("stable", {"name": f"{name}.v1.0.0"}), "package": name},
            heavy,
        ]
        yield f"{name}.json", "\n".join(map(json.dumps, documents)).encode()


def test_memory_does_not_follow_the_weight_of_the_bundles() -> None:
    def blobs() -> Iterator[Blob]:
        yield from read.read(_large(200))

    tracemalloc.start()
    assert validate(blobs()) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000  # of 20 MB
