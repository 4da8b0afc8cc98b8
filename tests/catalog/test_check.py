"""All findings about a catalog at once, also when parts of it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from podium.catalog.check import check
from podium.catalog.read import MAX_PROBLEMS

GOOD = """\
schema: olm.package
name: pantry
defaultChannel: stable
---
schema: olm.channel
package: pantry
name: stable
entries:
- name: pantry.v1.0.0
---
schema: olm.bundle
package: pantry
name: pantry.v1.0.0
image: docker.io/acme/pantry@sha256:0000000000000000000000000000000000000000000000000000000000000000
properties:
- type: olm.package
  value: {packageName: pantry, version: 1.0.0}
- type: olm.csv.metadata
  value: {displayName: Pantry}
"""


def streams(**files: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    for name, text in files.items():
        yield f"{name}.yaml", iter([text.encode()])


def rules(**files: str) -> list[tuple[str, str, int]]:
    return [
        (finding.rule, finding.place.file, finding.place.line)
        for finding in check(streams(**files))
        if finding.severity == "error"
    ]


def test_a_good_catalog_has_no_errors() -> None:
    assert rules(good=GOOD) == []


def test_a_broken_file_does_not_hide_what_is_wrong_with_single_blobs_elsewhere() -> None:
    wrong_type = GOOD.replace("image: docker.io", "image: [docker.io").replace("0000\nprop", "0000]\nprop")
    assert rules(a="schema: [}", b=wrong_type, c="- no object\n---\nschema: ''\n") == [
        ("unreadable", "a.yaml", 1),
        ("unreadable", "c.yaml", 1),
        ("unreadable", "c.yaml", 3),
        ("field-type", "b.yaml", 11),
    ]


def test_what_a_broken_file_may_hold_is_not_missed() -> None:
    without_bundle = GOOD[: GOOD.index("---\nschema: olm.bundle")]
    assert [rule for rule, *_ in rules(a=without_bundle)] == ["entry-without-bundle"]
    assert [rule for rule, *_ in rules(a=without_bundle, b="{")] == ["unreadable"]


def test_lints_and_rules_come_from_one_pass_over_a_stream_that_can_be_read_once() -> None:
    short = GOOD.replace("docker.io/acme", "acme").replace("defaultChannel: stable", "defaultChannel: fast")
    found = {finding.rule for finding in check(streams(a=short))}
    assert {"default-channel-unknown", "image-not-canonical"} <= found
    assert "image-not-canonical" not in {finding.rule for finding in check(streams(a=short), lints=False)}


def test_after_very_many_problems_nothing_is_read_on() -> None:
    found = rules(a="---\nschema: ''\n" * 100_000, b=GOOD)
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == ("unreadable", "a.yaml", 2 * MAX_PROBLEMS)
