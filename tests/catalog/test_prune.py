"""Pruning: what stays is a valid catalog, and nobody who runs what went is stranded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podium.catalog import blobs, prune
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.prune import Keep
from podium.catalog.validate import validate
from podium.text.semver import Version


def catalog(channels: dict[str, list[dict[str, Any]]], package: str = "demo") -> list[Blob]:
    """A package whose bundles are named by their versions."""
    names = dict.fromkeys(entry["name"] for entries in channels.values() for entry in entries)
    made: list[dict[str, Any]] = [
        {"schema": "olm.package", "name": package, "defaultChannel": next(iter(channels))}
    ]
    for name, entries in channels.items():
        made.append({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
    for name in names:
        said = {"type": "olm.package", "value": {"packageName": package, "version": name.removeprefix("v")}}
        made.append(
            {
                "schema": "olm.bundle",
                "package": package,
                "name": name,
                "image": "a.io/x:1",
                "properties": [said],
            }
        )
    return [blobs.of(each) for each in made]


def chain(*names: str) -> list[dict[str, Any]]:
    """Each name replacing the one before."""
    return [
        {"name": name} | ({"replaces": names[index - 1]} if index else {}) for index, name in enumerate(names)
    ]


def entries(content: list[Blob], channel: str) -> list[dict[str, Any]]:
    """The entries of a channel."""
    found: list[dict[str, Any]] = next(b.value["entries"] for b in content if b.name == channel)
    return found


DEMO = catalog({"stable": chain("v1.0.0", "v1.1.0", "v2.0.0"), "fast": chain("v1.1.0", "v2.0.0")})


def test_only_the_packages_named_stay() -> None:
    both = DEMO + catalog({"a": chain("v1.0.0")}, "other") + [blobs.of({"schema": "x"})]
    kept = prune.prune(both, {"other": Keep()})
    assert {(blob.package or blob.name) for blob in kept} == {"other", ""}


def test_channels_that_go_take_their_own_bundles_along() -> None:
    kept = prune.prune(DEMO, {"demo": Keep(channels=("fast",))})
    assert [blob.name for blob in kept] == ["demo", "fast", "v1.1.0", "v2.0.0"]
    assert kept[0].value["defaultChannel"] == "fast"
    assert validate(kept) == []


def test_the_lowest_version_that_stays_still_replaces_what_went() -> None:
    kept = prune.prune(DEMO, {"demo": Keep(minimum="1.1")})
    assert entries(kept, "stable") == [
        {"name": "v1.1.0", "replaces": "v1.0.0"},
        {"name": "v2.0.0", "replaces": "v1.1.0"},
    ]
    assert validate(kept) == []


def test_a_gap_in_the_middle_is_bridged_and_skipped() -> None:
    odd = catalog({"stable": chain("v2.0.0", "v1.5.0", "v3.0.0")})
    kept = prune.prune(odd, {"demo": Keep(minimum="2.0.0")})
    assert entries(kept, "stable") == [
        {"name": "v2.0.0"},
        {"name": "v3.0.0", "replaces": "v2.0.0", "skips": ["v1.5.0"]},
    ]
    assert validate(kept) == []


def test_deprecations_of_what_went_go_too() -> None:
    listed = [
        {"reference": {"schema": "olm.package"}, "message": "a"},
        {"reference": {"schema": "olm.channel", "name": "stable"}, "message": "b"},
        {"reference": {"schema": "olm.bundle", "name": "v1.0.0"}, "message": "c"},
        {"reference": {"schema": "olm.bundle", "name": "v2.0.0"}, "message": "d"},
    ]
    content = [*DEMO, blobs.of({"schema": "olm.deprecations", "package": "demo", "entries": listed})]
    kept = prune.prune(content, {"demo": Keep(channels=("fast",))})
    assert [entry["message"] for entry in kept[-1].value["entries"]] == ["a", "d"]
    assert validate(kept) == []


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"gone": Keep()}, "there is no package gone"),
        ({"demo": Keep(channels=("gone",))}, "has no channel gone"),
        ({"demo": Keep(minimum="9.0.0")}, "nothing is left"),
        ({"demo": Keep(minimum="x")}, '"x" is no version'),
        ({"demo": Keep(default_channel="gone")}, "choose one of fast, stable"),
    ],
)
def test_what_does_not_exist_cannot_be_kept(keep: dict[str, Keep], message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        prune.prune(DEMO, keep)


@given(
    order=st.permutations([f"v{major}.{minor}.0" for major in range(3) for minor in range(3)]), data=st.data()
)
def test_any_valid_channel_stays_valid(order: list[str], data: st.DataObject) -> None:
    made: list[dict[str, Any]] = []
    for index, name in enumerate(order):
        entry: dict[str, Any] = {"name": name}
        if index:
            back = data.draw(st.integers(1, index))
            entry["replaces"] = order[index - back]
            entry["skips"] = order[index - back + 1 : index]
        made.append(entry)
    content = catalog({"stable": made})
    assume(validate(content) == [])
    minimum = data.draw(st.sampled_from(order))
    try:
        kept = prune.prune(content, {"demo": Keep(minimum=minimum)})
    except CatalogError:
        assert Version.parse_tolerant(order[-1]) < Version.parse_tolerant(minimum)  # the head itself would go
    else:
        assert validate(kept) == []
