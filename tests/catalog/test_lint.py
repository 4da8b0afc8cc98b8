"""Every lint, provoked one at a time; none of them in a catalog without fault."""

from __future__ import annotations

import copy
import random

import pytest

from catalog.small_catalogs import (
    CHANNEL,
    DEPRECATIONS,
    DIGEST,
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
from podium.api.findings import Severity
from podium.catalog import read
from podium.catalog.lint import lint
from podium.catalog.lint.rules import Lint, severity
from podium.catalog.validate import validate

PNG = "iVBORw0KGgo="
ONE, TWO, THREE = "app.v1.0.0", "app.v1.1.0", "app.v2.0.0"


def _set(index: int, **fields: object) -> Change:
    return lambda documents: documents[index].update(fields)


def _entry(number: int, **fields: object) -> Change:
    return lambda documents: documents[CHANNEL]["entries"][number].update(fields)


def _entries(*entries: Document) -> Change:
    return lambda documents: documents[CHANNEL].update(entries=list(entries))


def _added(*more: Document) -> Change:
    return lambda documents: documents.extend(more)


def _property(kind: str, value: object) -> Change:
    return lambda documents: documents[THIRD]["properties"].append({"type": kind, "value": value})


def _deprecated_default(documents: list[Document]) -> None:
    documents[DEPRECATIONS]["entries"].append(
        {"reference": {"schema": "olm.channel", "name": "stable"}, "message": "x"}
    )


def _two_that_skip_each_other(documents: list[Document]) -> None:
    documents.append(bundle("app.v3.0.0"))
    documents[CHANNEL]["entries"] = [
        {"name": ONE, "skips": [TWO]},
        {"name": TWO, "skips": [ONE]},
        {"name": THREE},
        {"name": "app.v3.0.0", "replaces": THREE},
    ]


def _metadata_as_manifest(documents: list[Document]) -> None:
    documents[FIRST]["properties"][1] = {"type": "olm.bundle.object", "value": {}}


ODD: list[tuple[Lint, Change]] = [
    (Lint.UNKNOWN_SCHEMA, _added({"schema": "olm.deprecation", "package": "app"})),
    (Lint.UNKNOWN_FIELD, _entry(2, replace=TWO)),
    (Lint.UNKNOWN_PROPERTY, _property("olm.gkv", {})),
    (Lint.ICON_EMPTY, _set(PACKAGE, icon={"base64data": PNG, "mediatype": ""})),
    (Lint.ICON_TYPE, _set(PACKAGE, icon={"base64data": PNG, "mediatype": "image/svg+xml"})),
    (Lint.PACKAGE_WITHOUT_DESCRIPTION, _set(PACKAGE, description="")),
    (Lint.IMAGE_NOT_CANONICAL, _set(FIRST, image=f"me/app@{DIGEST}")),
    (Lint.IMAGE_BY_TAG, _set(FIRST, image="quay.io/me/app:v1")),
    (Lint.RELATED_IMAGE_EMPTY, _set(FIRST, relatedImages=[{"name": "x", "image": ""}])),
    (Lint.MANIFEST_BROKEN, _property("olm.bundle.object", {"data": "ew=="})),
    (Lint.BUNDLE_WITHOUT_METADATA, lambda documents: documents[FIRST]["properties"].pop()),
    (Lint.DEPRECATIONS_EMPTY, _set(DEPRECATIONS, entries=[])),
    (Lint.NO_WAY_FORWARD, _two_that_skip_each_other),
    (
        Lint.HEAD_UNREACHABLE,
        _entries(
            {"name": ONE, "skips": [TWO]},
            {"name": TWO, "skips": [ONE]},
            {"name": THREE, "skipRange": "<1.0.0"},
        ),
    ),
    (
        Lint.SKIP_RANGE_MAKES_NO_HEAD,
        _entries({"name": ONE}, {"name": TWO, "replaces": ONE}, {"name": THREE, "skipRange": "<2.0.0"}),
    ),
    (Lint.SKIP_RANGE_DOWNGRADES, _entry(1, skipRange=">=1.0.0")),
    (Lint.REPLACES_UNKNOWN, _entry(0, replaces="app.v0.9.0")),
    (Lint.REPLACES_OUTSIDE_CHANNEL, _added(channel("fast", {"name": THREE, "replaces": ONE}))),
    (
        Lint.REPLACES_NEWER,
        _entries({"name": THREE}, {"name": TWO, "replaces": THREE}, {"name": ONE, "replaces": TWO}),
    ),
    (Lint.REPLACED_AND_SKIPPED, _entry(2, skips=[TWO, ONE])),
    (
        Lint.DEFAULT_CHANNEL_BEHIND,
        _added(bundle("app.v3.0.0"), channel("fast", {"name": "app.v3.0.0", "replaces": THREE})),
    ),
    (Lint.DEFAULT_CHANNEL_DEPRECATED, _deprecated_default),
    (Lint.VERSIONS_TIE, _added(bundle("app.v2.0.0+b"), channel("fast", {"name": "app.v2.0.0+b"}))),
    (
        Lint.TOO_MANY_RANGES,
        _entries(*({"name": f"app.v1.{n}.0", "skipRange": f"<1.{n}.0"} for n in range(1001))),
    ),
]
LOST: list[tuple[Lint, Change]] = [
    (Lint.PACKAGE_REMOVED, lambda documents: documents.clear()),
    (Lint.VERSION_REMOVED, lambda documents: [documents.pop(FIRST), documents[CHANNEL]["entries"].pop(0)]),
    (Lint.CONTENT_CHANGED, _set(FIRST, image=f"quay.io/me/other@{DIGEST}")),
    (Lint.METADATA_MOVED, _metadata_as_manifest),
    (Lint.CHANNEL_REMOVED, lambda documents: documents[CHANNEL].update(name="fast")),
    (Lint.ENTRY_REMOVED, _entries({"name": ONE}, {"name": THREE, "replaces": ONE})),
    (Lint.DEFAULT_CHANNEL_CHANGED, _set(PACKAGE, defaultChannel="fast")),
    (Lint.HEAD_MOVED_BACK, lambda documents: documents[CHANNEL]["entries"].pop()),
]


def test_a_good_catalog_has_no_lints() -> None:
    assert lint(as_blobs(small())) == []
    assert lint(as_blobs(small()), published=as_blobs(small())) == []


@pytest.mark.parametrize(("rule", "change"), ODD, ids=[str(rule) for rule, _ in ODD])
def test_what_is_odd_is_told_with_its_place(rule: Lint, change: Change) -> None:
    found = [finding for finding in lint(changed(change)) if finding.rule == rule]
    assert found
    assert all(finding.place.line and finding.message for finding in found)
    assert {finding.severity for finding in found} == {severity(rule)}
    assert severity(rule) is not Severity.ERROR


@pytest.mark.parametrize(("rule", "change"), LOST, ids=[str(rule) for rule, _ in LOST])
def test_what_users_of_the_published_catalog_lose_is_told(rule: Lint, change: Change) -> None:
    findings = lint(changed(change), published=as_blobs(small()))
    assert rule in {finding.rule for finding in findings}
    assert rule not in {finding.rule for finding in lint(changed(change))}


def test_every_lint_has_a_row_above() -> None:
    assert [rule for rule, _ in ODD + LOST] == list(Lint)


def test_only_taking_something_from_users_is_an_error() -> None:
    errors = {rule for rule in Lint if severity(rule) is Severity.ERROR}
    assert errors == {Lint.PACKAGE_REMOVED, Lint.VERSION_REMOVED, Lint.CONTENT_CHANGED}


@pytest.mark.parametrize("rule", [Lint.NO_WAY_FORWARD, Lint.HEAD_UNREACHABLE])
def test_opm_accepts_a_channel_whose_users_are_stuck(rule: Lint) -> None:
    """That is why these lints exist."""
    change = dict(ODD)[rule]
    assert validate(changed(change)) == []


def test_the_content_of_a_bundle_is_not_the_order_or_spelling_of_its_fields() -> None:
    documents = small()
    for index in (FIRST, SECOND, THIRD):
        documents[index]["properties"].reverse()
        documents[index]["relatedImages"].reverse()
        documents[index] = dict(reversed(documents[index].items()))
    random.Random(2).shuffle(documents)
    assert lint(as_blobs(documents), published=as_blobs(small())) == []


def test_the_message_says_what_changed_in_a_bundle() -> None:
    before = small()
    after = copy.deepcopy(before)
    after[FIRST]["image"] = f"quay.io/me/new@{DIGEST}"
    after[FIRST]["relatedImages"][0]["image"] = f"quay.io/me/new@{DIGEST}"
    after[FIRST]["properties"][0]["value"]["version"] = "1.0.1"
    after[FIRST]["properties"][1]["value"]["displayName"] = "New"
    [found] = [each for each in lint(as_blobs(after), as_blobs(before)) if each.rule == Lint.CONTENT_CHANGED]
    for part in (
        "its image was 'quay.io/me/app@",
        "properties differ",
        "related images differ",
        "metadata differ",
    ):
        assert part in found.message


def test_a_version_under_a_new_name_is_changed_rather_than_removed() -> None:
    def rename(documents: list[Document]) -> None:
        documents[THIRD]["name"] = documents[CHANNEL]["entries"][2]["name"] = "renamed"

    rules = {finding.rule for finding in lint(changed(rename), published=as_blobs(small()))}
    assert Lint.CONTENT_CHANGED in rules
    assert Lint.VERSION_REMOVED not in rules


def test_a_version_that_left_a_channel_but_is_still_skipped_can_go_on() -> None:
    def skip(documents: list[Document]) -> None:
        documents[CHANNEL]["entries"] = [{"name": ONE}, {"name": THREE, "replaces": ONE, "skips": [TWO]}]

    rules = {finding.rule for finding in lint(changed(skip), published=as_blobs(small()))}
    assert Lint.ENTRY_REMOVED not in rules


def test_a_catalog_full_of_mistakes_is_linted_all_the_same() -> None:
    def wreck(documents: list[Document]) -> None:
        documents[FIRST]["properties"][0]["value"] = {"version": ["no"]}
        documents[SECOND]["properties"][0]["value"]["version"] = "no version"
        documents[THIRD]["image"] = "no image"
        documents[CHANNEL]["entries"][2]["skipRange"] = "no range"
        documents[PACKAGE]["icon"] = {"base64data": "no base64"}

    assert lint(changed(wreck), published=changed(wreck)) == lint(changed(wreck))


def test_published_content_may_come_from_another_format() -> None:
    yaml = b"""
schema: olm.package
name: app
defaultChannel: stable
description: An app.
"""
    published = list(read.read_file("old.yaml", yaml))
    assert lint(as_blobs(small()), published=published) == []
