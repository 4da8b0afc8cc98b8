"""Adding a bundle to a template: what is new appears, everything else stays byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from podium.catalog import blobs, edit
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.templates import basic, semver


def bundle(version: str = "1.1.0", image: str = "") -> Blob:
    """A bundle as it would be rendered from an image."""
    return blobs.of(
        {
            "schema": "olm.bundle",
            "name": f"demo.v{version}",
            "package": "demo",
            "image": image or f"docker.io/acme/demo:{version}",
            "properties": [{"type": "olm.package", "value": {"packageName": "demo", "version": version}}],
        }
    )


SEMVER = """\
# our releases
schema: olm.semver   # do not touch
generateMajorChannels: true

stable:
    bundles:
        # the first one
        - image: docker.io/acme/demo:1.0.0   # LTS

# candidates come later
"""


def test_a_bundle_is_added_after_the_last_one_of_its_archetype() -> None:
    made = edit.add(SEMVER.encode(), bundle()).decode()
    line = "        - image: docker.io/acme/demo:1.0.0   # LTS\n"
    assert made == SEMVER.replace(line, line + "        - image: docker.io/acme/demo:1.1.0\n")


def test_an_archetype_that_is_missing_is_made() -> None:
    made = edit.add(SEMVER.encode(), bundle(), archetypes=("fast",)).decode()
    added = "fast:\n  bundles:\n  - image: docker.io/acme/demo:1.1.0\n"
    assert made.replace(added, "") == SEMVER
    assert semver.parse(made.encode()).bundles["fast"] == ("docker.io/acme/demo:1.1.0",)


def test_several_archetypes_are_served_at_once() -> None:
    made = edit.add(SEMVER.encode(), bundle(), archetypes=("candidate", "fast", "stable"))
    listed = semver.parse(made).bundles
    assert [len(listed[each]) for each in ("candidate", "fast", "stable")] == [1, 1, 2]


def test_adding_twice_changes_nothing() -> None:
    once = edit.add(SEMVER.encode(), bundle(), archetypes=("fast", "stable"))
    assert edit.add(once, bundle(), archetypes=("fast", "stable")) == once


@pytest.mark.parametrize("other", ["1.1.0", "1.1.0+build"])
def test_the_same_version_from_another_image_is_refused(other: str) -> None:
    known = {"docker.io/acme/demo:1.0.0": other}
    with pytest.raises(CatalogError, match=r"version 1\.1\.0 is there already"):
        edit.add(SEMVER.encode(), bundle(), versions=known)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "Schema: olm.semver\nStable:\n  Bundles:\n  - Image: 'a.io/x:1'\n",
            "Schema: olm.semver\nStable:\n  Bundles:\n  - Image: 'a.io/x:1'\n  - Image: 'a.io/x:2'\n",
        ),
        (
            "schema: olm.semver\nstable:\n  bundles: []  # none yet\nfast: {}\n",
            "schema: olm.semver\nstable:\n  bundles:  # none yet\n  - image: a.io/x:2\nfast: {}\n",
        ),
        (
            "schema: olm.semver\nstable:\n  bundles:",
            "schema: olm.semver\nstable:\n  bundles:\n  - image: a.io/x:2\n",
        ),
        (
            "schema: olm.semver\nFast:\n  Bundles: [{Image: x}]",
            "schema: olm.semver\nFast:\n  Bundles: [{Image: x}]\nStable:\n  Bundles:\n  - Image: a.io/x:2\n",
        ),
        (
            "schema: olm.semver\nstable: {bundles: [{image: a.io/x:1}]} # short\n",
            'schema: olm.semver\nstable: {bundles: [{image: a.io/x:1}, {"image": "a.io/x:2"}]} # short\n',
        ),
        (
            '{"schema": "olm.semver", "stable": {"bundles": []}}',
            '{"schema": "olm.semver", "stable": {"bundles": [{"image": "a.io/x:2"}]}}',
        ),
        (
            '{"stable": {"bundles": [\n  {"image": "x"}\n]},"schema":"olm.semver"}',
            '{"stable": {"bundles": [\n  {"image": "x"},\n  {"image": "a.io/x:2"}\n]},"schema":"olm.semver"}',
        ),
        (
            '{"schema": "olm.semver"}\n',
            '{"schema": "olm.semver", "stable": {"bundles": [{"image": "a.io/x:2"}]}}\n',
        ),
    ],
)
def test_every_way_to_write_a_semver_template_is_kept(before: str, after: str) -> None:
    made = edit.add(before.encode(), bundle("2.0.0", "a.io/x:2")).decode()
    assert made == after


BASIC = """\
---
schema: olm.template.basic
entries:
# the package
- schema: olm.package
  name: demo
  defaultChannel: stable

- name: stable
  schema: olm.channel
  package: demo
  entries:
  - name: demo.v1.0.0   # first
- schema: olm.bundle
  image: "docker.io/acme/demo:1.0.0"
"""


def test_a_basic_template_gets_a_bundle_and_a_new_head() -> None:
    made = edit.add(BASIC.encode(), bundle(), channels=("stable",)).decode()
    first = "  - name: demo.v1.0.0   # first\n"
    expected = BASIC.replace(first, first + "  - name: demo.v1.1.0\n    replaces: demo.v1.0.0\n")
    assert made == expected + '- schema: olm.bundle\n  image: "docker.io/acme/demo:1.1.0"\n'
    assert edit.add(made.encode(), bundle(), channels=("stable",)) == made.encode()


def test_a_channel_that_is_missing_is_made() -> None:
    made = edit.add(BASIC.encode(), bundle(), channels=("fast", "stable"))
    channels = {blob.name: blob.value for blob in basic.entries(made) if blob.schema == "olm.channel"}
    assert channels["fast"] == {
        "schema": "olm.channel",
        "package": "demo",
        "name": "fast",
        "entries": [{"name": "demo.v1.1.0"}],
    }
    assert edit.add(made, bundle(), channels=("fast", "stable")) == made


def test_the_old_bare_form_is_kept() -> None:
    bare = "schema: olm.channel\nname: stable\npackage: demo\nentries:\n- name: demo.v1.0.0\n"
    made = edit.add(bare.encode(), bundle(), channels=("stable",)).decode()
    assert made == (
        bare + "- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n"
        "---\nschema: olm.bundle\nimage: docker.io/acme/demo:1.1.0\n"
    )


def test_a_channel_with_two_heads_is_refused() -> None:
    forked = BASIC.replace("# first", "# first\n  - name: demo.v0.9.0")
    with pytest.raises(CatalogError, match=r"several heads: demo\.v0\.9\.0, demo\.v1\.0\.0"):
        edit.add(forked.encode(), bundle(), channels=("stable",))


def test_an_edit_that_would_change_more_is_refused() -> None:
    shared = "schema: olm.semver\nfast: &same\n  bundles:\n  - image: a.io/x:1\nstable: *same\n"
    with pytest.raises(CatalogError, match="cannot be edited safely"):
        edit.add(shared.encode(), bundle("2.0.0", "a.io/x:2"))


@pytest.mark.parametrize(
    ("template", "options", "message"),
    [
        (SEMVER, {"archetypes": ("beta",)}, '"beta" is none of candidate, fast, stable'),
        (BASIC, {}, "say which channels"),
        ("schema: olm.template.substitutes\n", {}, "substitutes template"),
        ("schema: x\n", {}, "unknown template schema: x"),
        ("a: b\n", {}, "missing required 'schema' field"),
        ("schema: olm.semver\nstable:\n", {}, "stable is empty"),
    ],
)
def test_what_cannot_be_added_to_is_refused(template: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        edit.add(template.encode(), bundle(), **options)
