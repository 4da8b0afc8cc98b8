"""Templates: channels from versions, catalogs from entries, rebuilds in the place of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog.bundlefiles import files
from podium.catalog import blobs, templates, write
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.migrate import Level
from podium.catalog.templates import TemplateKind, basic, convert, semver
from podium.catalog.templates.semver import Generation
from podium.catalog.templates.sources import Sources
from podium.catalog.validate import validate


def image(version: str) -> str:
    """The reference of a version's bundle."""
    return f"docker.io/acme/demo:{version.replace('+', '_')}"


def sources(*versions: str, **spec: Any) -> Sources:
    """Bundles of these versions, as local directories that nobody has pushed."""
    return Sources({image(version): files(version, **spec) for version in versions})


def template(*stable: str, **fields: Any) -> bytes:
    """A semver template that lists versions as stable."""
    listed = {"bundles": [{"image": image(version)} for version in stable]}
    return json.dumps({"schema": "olm.semver", "stable": listed} | fields).encode()


def channels(content: list[Blob]) -> dict[str, list[tuple[str, str, list[str]]]]:
    """Entries of each channel: version, what it replaces and what it skips."""
    return {
        blob.name: [
            (e["name"][6:], e.get("replaces", "")[6:], [name[6:] for name in e.get("skips", [])])
            for e in blob.value["entries"]
        ]
        for blob in content
        if blob.schema == "olm.channel"
    }


VERSIONS = ("1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.10.0", "2.0.0")


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        (Generation.V1_51, ["1.1.1", "1.0.1", ["1.0.1", "1.1.0"]]),
        (Generation.V1_57, ["1.1.1", "1.0.1", ["1.1.0"]]),
        (Generation.V1_36, ["1.1.1", "1.0.1", ["1.0.0", "1.1.0"]]),
        (Generation.V1_61, ["1.1.1", "1.0.1", ["1.0.0", "1.1.0"]]),
        (Generation.HEAD, ["1.1.1", "1.0.1", ["1.0.0", "1.1.0"]]),
    ],
)
def test_each_generation_of_opm_has_its_own_edges(generation: Generation, expected: list[Any]) -> None:
    content = semver.render(
        template(*VERSIONS, generateMajorChannels=True), sources(*VERSIONS), generation=generation
    )
    assert list(channels(content)["stable-v1"][3]) == expected
    assert channels(content)["stable-v2"] == [("2.0.0", "", [])]
    assert validate(content) == []


def test_minor_channels_know_the_bundles_before_them_since_1_61() -> None:
    content = semver.render(template(*VERSIONS), sources(*VERSIONS))
    assert channels(content)["stable-v1.10"] == [("1.10.0", "1.1.1", ["1.0.0", "1.0.1", "1.1.0"])]
    old = semver.render(template(*VERSIONS), sources(*VERSIONS), generation=Generation.V1_57)
    assert channels(old)["stable-v1.10"] == [("1.10.0", "", [])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.36.0", Generation.V1_36),
        ("v1.37", Generation.V1_51),
        ("1.56.9", Generation.V1_51),
        ("1.57.0", Generation.V1_57),
        ("1.61.0", Generation.V1_61),
        ("1.65.0", Generation.HEAD),
        ("head", Generation.HEAD),
    ],
)
def test_a_release_of_opm_belongs_to_a_generation(text: str, expected: Generation) -> None:
    assert semver.generation(text) is expected


@pytest.mark.parametrize(
    ("fields", "default"),
    [
        ({}, "stable-v2.0"),
        ({"generateMajorChannels": True}, "stable-v2"),
        ({"generateMajorChannels": True, "generateMinorChannels": True}, "stable-v2.0"),
        (
            {
                "generateMajorChannels": True,
                "generateMinorChannels": True,
                "defaultChannelTypePreference": "major",
            },
            "stable-v2",
        ),
    ],
)
def test_the_default_channel_is_of_the_preferred_kind(fields: dict[str, Any], default: str) -> None:
    content = semver.render(template(*VERSIONS, **fields), sources(*VERSIONS))
    assert content[0].value["defaultChannel"] == default


def test_a_newer_minor_channel_beats_the_preferred_major_one() -> None:
    both = {
        "generateMajorChannels": True,
        "generateMinorChannels": True,
        "defaultChannelTypePreference": "major",
    }
    content = semver.render(template("1.0.0", "1.1.0", **both), sources("1.0.0", "1.1.0"))
    assert content[0].value["defaultChannel"] == "stable-v1.1"


def test_description_and_icon_come_from_the_newest_default_bundle_since_1_65() -> None:
    about = {"description": "About", "icon": [{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}]}
    package = semver.render(template("1.0.0"), sources("1.0.0", **about), level=Level.ALL)[0].value
    assert (package["description"], package["icon"]["mediatype"]) == ("About", "image/svg+xml")
    older = semver.render(template("1.0.0"), sources("1.0.0", **about), generation=Generation.V1_61)[0].value
    assert set(older) == {"schema", "name", "defaultChannel"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("schema: olm.semver\nstable:\n  bundles:\n  - image: a\n    tag: b\n", 5, 'unknown field "tag"'),
        ("schema: olm.semver\n\nextra: 1\n", 3, 'unknown field "extra"'),
        ("schema: olm.semver\nschema: olm.semver\n", 2, "already set"),
        ("schema: olm.semver\nstable: []\n", 2, "stable must be a mapping"),
        ("schema: olm.semver\nstable:\n  bundles: {}\n", 3, "bundles must be a list"),
        ("schema: olm.semver\nfast:\n  bundles:\n  - image: []\n", 4, "image must be a string"),
        ("schema: olm.semver\ngenerateMajorChannels: maybe\n", 2, "must be true or false"),
        (
            "schema: olm.semver\ndefaultChannelTypePreference: patch\n",
            2,
            "unknown DefaultChannelTypePreference",
        ),
        ("schema: olm.semver\ndefaultChannelTypePreference: major\n", 2, "doesn't make sense"),
        ("schema: olm.semver\nstable: [\n", 3, "invalid YAML"),
    ],
)
def test_a_mistake_in_a_template_is_told_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CatalogError, match=message) as caught:
        templates.render(text.encode(), Sources({}), "t.yaml")
    assert (caught.value.place.file, caught.value.place.line) == ("t.yaml", line)


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (template(), sources(), "no bundles specified"),
        (template("1.0.0"), sources(), "was not supplied"),
        (template("1.0.0", "1.0.0"), sources("1.0.0"), r'duplicate bundle name "demo\.v1\.0\.0"'),
        (template("1.0.0+a", "1.0.0+b"), sources("1.0.0+a", "1.0.0+b"), "differ only by build metadata"),
        (template("v1"), sources("v1"), 'has invalid version "v1"'),
        (
            template("1.0.0", "2.0.0"),
            Sources({image("1.0.0"): files("1.0.0"), image("2.0.0"): files("2.0.0", package="other")}),
            'bundle "other" does not belong to this package: "demo"',
        ),
        (template("1.0.0"), Sources({image("1.0.0"): {"x": b""}}), "no bundle objects found"),
    ],
)
def test_bundles_that_do_not_fit_are_refused(text: bytes, given: Sources, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        semver.render(text, given)


def test_a_short_name_is_completed_and_refused_when_strict() -> None:
    text = b"schema: olm.semver\nstable: {bundles: [{image: acme/demo:1.0.0}]}"
    found = semver.render(text, Sources({"acme/demo:1.0.0": files()}))
    assert found[-1].value["image"] == "docker.io/acme/demo:1.0.0"
    with pytest.raises(CatalogError, match="must be canonical"):
        semver.render(text, Sources({"acme/demo:1.0.0": files()}, strict=True))


def test_a_local_source_needs_a_name() -> None:
    text = b"schema: olm.semver\nstable: {bundles: [{image: 'dir:./bundle'}]}"
    assert templates.images(text) == ["dir:./bundle"]
    with pytest.raises(CatalogError, match="local source without an image reference"):
        semver.render(text, Sources({"dir:./bundle": files()}))
    named = Sources({"dir:./bundle": files()}, names={"dir:./bundle": image("1.0.0")})
    assert semver.render(text, named)[-1].value["image"] == image("1.0.0")


BASIC = b"""\
schema: olm.template.basic
entries:
- {schema: olm.package, name: demo, defaultChannel: stable}
- {schema: olm.channel, package: demo, name: stable, entries: [{name: demo.v1.0.0}]}
- {schema: olm.bundle, image: docker.io/acme/demo:1.0.0}
"""


def test_a_basic_template_renders_its_bundles_and_keeps_the_rest() -> None:
    content = templates.render(BASIC, sources("1.0.0"))
    assert [blob.schema for blob in content] == ["olm.package", "olm.channel", "olm.bundle"]
    assert content[-1].name == "demo.v1.0.0"
    assert validate(content) == []


def test_a_bare_stream_is_the_old_basic_template() -> None:
    bare = b"---\n".join(line[2:] + b"\n" for line in BASIC.splitlines()[2:])
    assert templates.kind(bare) is TemplateKind.BASIC
    assert templates.images(bare) == [image("1.0.0")]
    assert templates.render(bare, sources("1.0.0")) == templates.render(BASIC, sources("1.0.0"))


@pytest.mark.parametrize("field", ["package: demo", "properties: [{type: a, value: 1}]", "image: ''"])
def test_a_bundle_in_a_basic_template_says_only_where_its_image_is(field: str) -> None:
    text = f"schema: olm.template.basic\nentries:\n- schema: olm.bundle\n  image: x\n  {field}\n"
    with pytest.raises(CatalogError, match="unexpected fields present in basic template bundle"):
        templates.images(text.encode())


def test_a_catalog_becomes_a_template_and_the_same_catalog_again() -> None:
    content = templates.render(BASIC, sources("1.0.0"))
    made = convert.as_yaml(convert.to_basic(content))
    assert [blob.schema for blob in basic.entries(made)] == [blob.schema for blob in content]
    assert b"".join(write.json(templates.render(made, sources("1.0.0")))) == b"".join(write.json(content))
    assert convert.as_json(convert.to_substitutes([])) == (
        b'{\n    "schema": "olm.template.substitutes",\n    "entries": null,\n    "substitutions": []\n}\n'
    )


def substitutes(*substitutions: tuple[str, str]) -> bytes:
    """A template with versions 1.0.0 to 1.2.0 in a row, and rebuilds of some."""
    content = semver.render(
        template("1.0.0", "1.1.0", "1.2.0", generateMajorChannels=True), sources("1.0.0", "1.1.0", "1.2.0")
    )
    made = convert.to_substitutes(content)
    made["substitutions"] = [{"name": name, "base": base} for name, base in substitutions]
    return convert.as_json(made)


def _rebuild() -> Sources:
    made = files("1.1.0", release="1")
    made["manifests/csv.yaml"] = made["manifests/csv.yaml"].replace(b"demo.v1.1.0", b"demo-v1.1.0-1")
    return Sources({image("1.1.0-1"): made, image("0.9.0"): files("0.9.0")})


def test_a_substitute_takes_the_place_of_its_base() -> None:
    content = templates.render(substitutes((image("1.1.0-1"), "demo.v1.1.0")), _rebuild())
    entries = {
        e["name"]: e for blob in content if blob.schema == "olm.channel" for e in blob.value["entries"]
    }
    assert entries["demo.v1.1.0"] == {"name": "demo.v1.1.0"}
    assert entries["demo-v1.1.0-1"]["replaces"] == "demo.v1.0.0"
    assert entries["demo-v1.1.0-1"]["skips"] == ["demo.v1.1.0"]
    assert entries["demo.v1.2.0"]["replaces"] == "demo-v1.1.0-1"
    assert validate(content) == []


@pytest.mark.parametrize(
    ("substitutions", "message"),
    [
        ([("", "x")], "substitution name cannot be empty"),
        ([(image("0.9.0"), "")], "substitution base cannot be empty"),
        ([("x", "x")], "cannot be the same"),
        ([(image("0.9.0"), "gone")], 'base bundle "gone" does not exist'),
        ([(image("0.9.0"), "demo.v1.0.0")], "is not less than substitute bundle"),
        ([(image("1.1.0-1"), "demo.v1.1.0")] * 2, "cannot reuse the same substitution base"),
        (
            [(image("1.1.0-1"), "demo.v1.1.0"), (image("1.1.0-1"), "demo.v1.0.0")],
            "cannot reuse the same substitution .* for different bases",
        ),
    ],
)
def test_a_substitution_that_makes_no_sense_is_refused(
    substitutions: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(CatalogError, match=message):
        templates.render(substitutes(*substitutions), _rebuild())


def test_substitutes_start_from_a_valid_catalog() -> None:
    text = b'{"schema":"olm.template.substitutes","entries":[{"schema":"olm.package","name":"a"}]}'
    with pytest.raises(CatalogError, match="entries are not valid FBC"):
        templates.render(text, Sources({}))


def test_blobs_rendered_before_serve_as_bundles() -> None:
    blob = blobs.canonical(semver.render(template("1.0.0"), sources("1.0.0"))[-1])
    assert semver.render(template("1.0.0"), Sources({image("1.0.0"): blob}))[-1] == blob
