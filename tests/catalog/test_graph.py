"""Upgrade graphs as text and as pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from podium.catalog.graph import View, mermaid, svg
from podium.catalog.outline import Package, outline
from podium.catalog.read import read

SVG = "{http://www.w3.org/2000/svg}"


def pantry(*entries: dict[str, Any], **more: Any) -> dict[str, Package]:
    """A catalog of one package with one channel; every entry named pantry.vX has a bundle of version X."""
    bundles = [
        {
            "schema": "olm.bundle",
            "name": entry["name"],
            "package": "pantry",
            "image": f"docker.io/acme/pantry:{version}",
            "properties": [{"type": "olm.package", "value": {"packageName": "pantry", "version": version}}],
        }
        for entry in entries
        for version in [entry["name"].partition(".v")[2]]
    ]
    content = [
        {"schema": "olm.package", "name": "pantry", "defaultChannel": "stable"},
        {"schema": "olm.channel", "name": "stable", "package": "pantry", "entries": entries},
        *bundles,
        *more.get("others", ()),
    ]
    return outline(read([("catalog.json", "\n".join(map(json.dumps, content)).encode())]))


CHAIN = (
    {"name": "pantry.v1.0.0"},
    {"name": "pantry.v1.1.0", "replaces": "pantry.v1.0.0"},
    {"name": "pantry.v2.0.0", "replaces": "pantry.v1.1.0", "skips": ["pantry.v1.0.0"]},
)


def test_arrows_point_the_way_an_upgrade_goes() -> None:
    text = mermaid(pantry(*CHAIN))
    assert (
        '      pantry-stable-pantry.v1.1.0["pantry.v1.1.0"]-- replace --> '
        'pantry-stable-pantry.v2.0.0["pantry.v2.0.0"]\n'
    ) in text
    assert '      pantry-stable-pantry.v1.0.0["pantry.v1.0.0"]-- skip --> ' in text


def test_the_newest_version_comes_first_and_a_skip_range_is_drawn_for_what_it_covers() -> None:
    text = mermaid(
        pantry(
            {"name": "pantry.v0.9.0"},
            {"name": "pantry.v0.10.0", "replaces": "pantry.v0.9.0", "skipRange": "<0.10.0"},
        )
    )
    assert text.index('v0.10.0["pantry.v0.10.0"]\n') < text.index('v0.9.0["pantry.v0.9.0"]\n')
    assert '-- "skipRange(<0.10.0)" -->' in text


def test_a_minimum_leaves_out_what_is_below_it() -> None:
    text = mermaid(pantry(*CHAIN), View(minimum="pantry.v1.1.0"))
    assert "v1.0.0" not in text
    assert "v1.1.0" in text
    with pytest.raises(ValueError, match="unknown minimum edge name"):
        mermaid(pantry(*CHAIN), View(minimum="pantry.v9.9.9"))


def test_v0_semantics_mark_versions_that_are_never_installed() -> None:
    text = mermaid(pantry(*CHAIN), View(v0_semantics=True))
    assert "class pantry-stable-pantry.v1.0.0 skipped" in text


def test_deprecated_things_are_coloured() -> None:
    deprecations = {
        "schema": "olm.deprecations",
        "package": "pantry",
        "entries": [
            {"reference": {"schema": "olm.package"}, "message": "gone soon"},
            {"reference": {"schema": "olm.channel", "name": "stable"}, "message": "use fast"},
            {"reference": {"schema": "olm.bundle", "name": "pantry.v1.0.0"}, "message": "old"},
        ],
    }
    text = mermaid(pantry(*CHAIN, others=[deprecations]))
    assert "style pantry fill:#989695\nstyle pantry-stable fill:#DCD0FF\n" in text
    assert "class pantry-stable-pantry.v1.0.0 deprecated" in text


def test_the_picture_shows_every_version_and_every_edge() -> None:
    root = ElementTree.fromstring(svg(pantry(*CHAIN, {"name": "pantry.v2.1.0", "replaces": "elsewhere.v1"})))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"pantry", "stable (default)", "pantry.v1.0.0", "pantry.v2.0.0", "elsewhere.v1"} <= set(texts)
    titles = {element.text for element in root.iter(f"{SVG}title")}
    assert titles == {
        "pantry.v1.0.0 to pantry.v1.1.0: replace",
        "pantry.v1.1.0 to pantry.v2.0.0: replace",
        "pantry.v1.0.0 to pantry.v2.0.0: skip",
        "elsewhere.v1 to pantry.v2.1.0: replace",
    }


def test_names_cannot_break_out_of_the_picture() -> None:
    root = ElementTree.fromstring(svg(pantry({"name": "</text><script>alert(1)</script>.v1.0.0"})))
    assert not list(root.iter(f"{SVG}script"))
