"""Versions: what is one, how it is spelt, and which is newer. Against the original: test_semver_like_go."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text.semver import Version, compare

numbers = st.integers(0, 2**64 - 1)
words = st.from_regex(r"[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*", fullmatch=True)
identifiers = st.one_of(words, numbers.map(str))
versions = st.builds(
    Version,
    numbers,
    numbers,
    numbers,
    st.lists(identifiers, max_size=3).map(tuple),
    st.lists(st.from_regex(r"[0-9A-Za-z-]+", fullmatch=True), max_size=2).map(tuple),
)


@given(versions)
def test_a_version_is_read_back_from_what_it_writes(version: Version) -> None:
    assert Version.parse(str(version)) == version


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3-é", "1.2.3\n",
     "-1.2.3", "18446744073709551616.0.0", "1.2.3-18446744073709551616", "1.2.٣"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Version.parse(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [(" v1.2.3 ", "1.2.3"), ("1", "1.0.0"), ("1.2", "1.2.0"), ("001.02.003-a", "1.2.3-a"), ("0.0", "0.0.0")],
)
def test_tolerant_reading_mends_what_people_write(text: str, meant: str) -> None:
    assert str(Version.parse_tolerant(text)) == meant


def test_precedence_is_that_of_the_specification() -> None:
    ordered = (
        "0.9.9 1.0.0-0 1.0.0-2 1.0.0-11 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.b 1.0.0-b 1.0.0 1.0.1 1.10.0"
    )
    expected = [Version.parse(text) for text in ordered.split()]
    shuffled = random.Random(1).sample(expected, len(expected))
    assert sorted(shuffled) == expected
    assert all(compare(low, high) == -1 for low, high in itertools.pairwise(expected))


def test_build_metadata_tells_versions_apart_but_does_not_order_them() -> None:
    one, other = Version.parse("1.0.0+a"), Version.parse("1.0.0+b")
    assert one != other
    assert compare(one, other) == 0
    assert one <= other <= one


@given(versions, versions, versions)
def test_order_is_total_and_transitive(a: Version, b: Version, c: Version) -> None:
    assert compare(a, b) == -compare(b, a)
    low, middle, high = sorted((a, b, c))
    assert low <= middle <= high
    assert low <= high
