"""Heads, chains and ways up, on channels drawn as one line: `name replaces skips skipRange`."""

from __future__ import annotations

import pytest

from podium.catalog import channels
from podium.catalog.outline import Channel, Entry
from podium.text.semver import Version

VERSIONS = {name: Version(number, 0, 0) for number, name in enumerate("abcde")}


def drawn(text: str) -> Channel:
    """`b>a+c` is an entry b that replaces a and skips c; `b<2.0.0` one with that skipRange."""
    entries = []
    for word in text.split():
        rest, _, upper = word.partition("<")
        edges, *skips = rest.split("+")
        name, _, replaces = edges.partition(">")
        entries.append(Entry(name, replaces, tuple(skips), f"<{upper}" if upper else ""))
    return Channel("p", "stable", tuple(entries))


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("a b>a c>b", ["c"]),
        ("c>b b>a a", ["c"]),
        ("a b c+a+b", ["c"]),
        ("a b>a c<2.0.0", ["b", "c"]),  # skipRange does not count
        ("a>b b>a", []),
        ("a>gone", ["a"]),
    ],
)
def test_heads_are_what_nothing_replaces_or_skips(text: str, heads: list[str]) -> None:
    channel = drawn(text)
    assert [entry.name for entry in channel.heads] == heads
    assert channel.head == (heads[0] if len(heads) == 1 else "")


@pytest.mark.parametrize(
    ("text", "stranded"),
    [
        ("a b>a c>b", []),
        ("a b c>b+a", []),
        ("a b>a c>b+b", ["a"]),  # the way down ends at a skipped entry
        ("a b>a c+b", ["a"]),
    ],
)
def test_stranded_entries_are_on_no_way_down_and_not_skipped(text: str, stranded: list[str]) -> None:
    assert channels.stranded(drawn(text), "c") == stranded


def test_a_cycle_is_told_from_where_it_begins() -> None:
    assert channels.chain(drawn("d>c c>b b>a a>c"), "d").cycle == ("c", "b", "a", "c")
    assert channels.chain(drawn("c>b b>a a>gone"), "c") == channels.Chain(("c", "b", "a", "gone"))


def test_upgrades_go_by_replaces_skips_and_skip_range() -> None:
    direct = channels.successors(drawn("a b>a c+a+b d<3.0.0"), VERSIONS)
    assert direct == {"a": {"b", "c", "d"}, "b": {"c", "d"}, "c": {"d"}, "d": set()}


def test_ways_up_are_followed_to_their_beginning() -> None:
    direct = channels.successors(drawn("a b>a c>b d e+d"), VERSIONS)
    assert channels.ways_up(direct, "c") == {"a", "b", "c"}
    assert channels.ways_up(direct, "e") == {"d", "e"}
