"""Constraints of OLM v1 and Helm. Against the original on thousands of texts: test_semver_like_go."""

from __future__ import annotations

import time

import pytest

from podium.text.constraints import Constraint, parse_version

VERSIONS = [
    "0.0.1",
    "0.1.0",
    "0.2.3",
    "1.0.0",
    "1.2.0",
    "1.2.3-beta",
    "1.2.3",
    "1.9.0",
    "2.0.0-rc.1",
    "2.0.0",
]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("^1.2", ["1.2.0", "1.2.3", "1.9.0"]),
        ("^0.1", ["0.1.0"]),
        ("^0.0.1", ["0.0.1"]),
        ("^0", ["0.0.1", "0.1.0", "0.2.3"]),
        ("~1.2", ["1.2.0", "1.2.3"]),
        ("~>1", ["1.0.0", "1.2.0", "1.2.3", "1.9.0"]),
        ("1.2", ["1.2.0", "1.2.3"]),
        ("1.2.x", ["1.2.0", "1.2.3"]),
        ("*", ["0.0.1", "0.1.0", "0.2.3", "1.0.0", "1.2.0", "1.2.3", "1.9.0", "2.0.0"]),
        ("1.0 - 1.2", ["1.0.0", "1.2.0", "1.2.3"]),
        (">1.2", ["1.9.0", "2.0.0"]),
        ("<=1.2", ["0.0.1", "0.1.0", "0.2.3", "1.0.0", "1.2.0", "1.2.3"]),
        ("!=1.x", ["0.0.1", "0.1.0", "0.2.3", "2.0.0"]),
        (">=1.2.3, <2", ["1.2.3", "1.9.0"]),
        (">=1.2.3 <2", ["1.2.3", "1.9.0"]),
        ("0.0.1 || =>2", ["0.0.1", "2.0.0"]),
        (">=1.2.3-0 <2.0.0", ["1.2.3-beta", "1.2.3", "1.9.0", "2.0.0-rc.1"]),
        ("v1.2.3", ["1.2.3"]),
    ],
)
def test_a_constraint_matches(text: str, matching: list[str]) -> None:
    found = Constraint.parse(text)
    assert [version for version in VERSIONS if found.matches(parse_version(version))] == matching
    assert str(found) == text


@pytest.mark.parametrize(
    "text", ["", "1.2.3.4", "==1", ">", "1,,2", "1, ", "xx", "1.2.3-01", "a", "|| 1", "1" * 513]
)
def test_a_text_that_is_no_constraint_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Constraint.parse(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("v1", "1.0.0"), ("01.2", "1.2.0"), ("1.2.3-a.9+b", "1.2.3-a.9+b")]
)
def test_versions_are_read_leniently(text: str, meant: str) -> None:
    assert str(parse_version(text)) == meant


def test_hostile_text_takes_no_time() -> None:
    texts = ["1 " * 255 + "!", "1  -  " * 73, "1-" * 255 + "é", "v" * 512, "1.1.1.1" * 73, "*" * 511 + "!"]
    start = time.perf_counter()
    for text in texts:
        with pytest.raises(ValueError):
            Constraint.parse(text[:512])
    assert time.perf_counter() - start < 1
