"""Ranges of catalogs. Against the original on thousands of texts: test_semver_like_go."""

from __future__ import annotations

import pytest

from podium.text.ranges import Range
from podium.text.semver import Version

VERSIONS = ["0.9.0", "1.0.0-alpha", "1.0.0", "1.0.1", "1.1.0", "1.2.3", "2.0.0-rc.1", "2.0.0"]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        (">=1.0.0 <2.0.0", ["1.0.0", "1.0.1", "1.1.0", "1.2.3", "2.0.0-rc.1"]),
        (">= 1.0.0   < 1.1.0", ["1.0.0", "1.0.1"]),
        ("<1.0.0 || >=2.0.0", ["0.9.0", "1.0.0-alpha", "2.0.0"]),
        ("1.0.0", ["1.0.0"]),
        ("=1.0.0", ["1.0.0"]),
        ("==1.0.0", ["1.0.0"]),
        (">0.9.0 !1.1.0 <1.2.3", ["1.0.0-alpha", "1.0.0", "1.0.1"]),
        ("!=1.0.x", []),  # below 1.0.0 and from 1.1.0 on, both at once: so reads the original
        ("1.x", ["1.0.0", "1.0.1", "1.1.0", "1.2.3", "2.0.0-rc.1"]),
        ("1.0.x", ["1.0.0", "1.0.1"]),
        (">1.0.x", ["1.1.0", "1.2.3", "2.0.0-rc.1", "2.0.0"]),
        ("<=1.0.x", ["0.9.0", "1.0.0-alpha", "1.0.0", "1.0.1"]),
        ("1.0.0 || || 2.0.0", ["1.0.0", "2.0.0"]),  # crashes the original
        ("1.x.x", ["1.0.0", "1.0.1"]),  # oddities of the original
        ("~1.x", ["1.0.0"]),
        ("1 1.0.0", ["1.0.0"]),
    ],
)
def test_a_range_matches(text: str, matching: list[str]) -> None:
    found = Range.parse(text)
    assert [version for version in VERSIONS if found.matches(Version.parse(version))] == matching
    assert str(found) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1",
        "1.0",
        "|| 1.0.0",
        "1.0.0 ||",
        ">=",
        "=>1.0.0",
        "^1.0.0",
        "1.0.0-next",
        "x",
        "1.0.0,2.0.0",
    ],
)
def test_a_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Range.parse(text)
