"""registries.conf: which places an image is read from, and which files say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.fakeregistry import settings
from podium.oci.errors import BadReference, BadSetup, Blocked
from podium.oci.registriesconf import RegistriesConf, load, parse
from podium.text.references import Reference

DIGEST = "sha256:" + "a" * 64

CONF = """
unqualified-search-registries = ["search.example"]
short-name-mode = "enforcing"
credential-helpers = ["containers-auth.json", "pass"]
[aliases]
"alpine" = "quay.io/other/alpine"

[[registry]]
location = "example.com"
insecure = true

[[registry]]
prefix = "example.com/foo"
location = "internal.example/bar"
[[registry.mirror]]
location = "mirror-0.example/for-foo/"
[[registry.mirror]]
location = "mirror-1.example:5000"
insecure = true

[[registry]]
prefix = "example.com/foo/blocked"
location = "elsewhere.example"
blocked = true

[[registry]]
prefix = "*.wild.example"
[[registry.mirror]]
location = "wild-mirror.example"

[[registry]]
prefix = "*.deep.wild.example"
blocked = true

[[registry]]
location = "digests.example"
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.example"

[[registry]]
location = "each.example"
[[registry.mirror]]
location = "all.example"
pull-from-mirror = "all"
[[registry.mirror]]
location = "digest.example"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "tag.example"
pull-from-mirror = "tag-only"

[[registry]]
prefix = "docker.io/library"
location = "hub-mirror.example/official"

[[registry]]
prefix = "tagged.example/app:v1"
location = "tagged.example/app:v2"
"""


@pytest.fixture(scope="module")
def conf() -> RegistriesConf:
    return parse(CONF, "registries.conf")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unknown.example/app:v1", ["unknown.example/app:v1"]),
        ("example.com/app:v1", ["example.com/app:v1 insecure"]),
        ("example.com:5000/app:v1", ["example.com:5000/app:v1 insecure"]),
        ("example.community/app:v1", ["example.community/app:v1"]),
        ("example.com/foo/image:v1", [
            "mirror-0.example/for-foo/image:v1",
            "mirror-1.example:5000/image:v1 insecure",
            "internal.example/bar/image:v1",
        ]),
        ("example.com/food/image:v1", ["example.com/food/image:v1 insecure"]),
        ("a.wild.example/x:v1", ["wild-mirror.example/x:v1", "a.wild.example/x:v1"]),
        ("a.b.wild.example:5000/x:v1", ["wild-mirror.example:5000/x:v1", "a.b.wild.example:5000/x:v1"]),
        ("wild.example/x:v1", ["wild.example/x:v1"]),
        ("evilwild.example/x:v1", ["evilwild.example/x:v1"]),
        ("digests.example/x:v1", ["digests.example/x:v1"]),
        (f"digests.example/x@{DIGEST}", [f"mirror.example/x@{DIGEST}", f"digests.example/x@{DIGEST}"]),
        ("each.example/x:v1", ["all.example/x:v1", "tag.example/x:v1", "each.example/x:v1"]),
        (f"each.example/x@{DIGEST}", [
            f"all.example/x@{DIGEST}", f"digest.example/x@{DIGEST}", f"each.example/x@{DIGEST}",
        ]),
        ("alpine:3", ["hub-mirror.example/official/alpine:3"]),
        ("user/alpine:3", ["docker.io/user/alpine:3"]),
        ("tagged.example/app:v1", ["tagged.example/app:v2"]),
        ("tagged.example/app:v3", ["tagged.example/app:v3"]),
    ],
)  # fmt: skip
def test_an_image_is_read_from_its_mirrors_and_then_from_its_place(
    text: str, expected: list[str], conf: RegistriesConf
) -> None:
    sources = conf.sources(Reference.parse(text))
    assert [f"{each.reference}{' insecure' if each.insecure else ''}" for each in sources] == expected


@pytest.mark.parametrize(
    "text",
    [
        "example.com/foo/blocked",
        "example.com/foo/blocked/x:v1",
        "a.deep.wild.example/x",
        f"example.com/foo/blocked@{DIGEST}",
    ],
)
def test_a_blocked_registry_is_refused_for_reading_and_writing(text: str, conf: RegistriesConf) -> None:
    with pytest.raises(Blocked, match=r"registries\.conf blocks"):
        conf.sources(Reference.parse(text))
    with pytest.raises(Blocked):
        conf.target(Reference.parse(text))


def test_images_are_written_where_they_are_named(conf: RegistriesConf) -> None:
    target = conf.target(Reference.parse("example.com/foo/image"))
    assert str(target.reference) == "example.com/foo/image"
    assert conf.target(Reference.parse("example.com/app")).insecure
    assert conf.credential_helpers == ("containers-auth.json", "pass")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[registry", "not TOML"),
        ("[registries.search]\nregistries = ['docker.io']", "version 1"),
        ("[registries.insecure]\nregistries = []", "version 1"),
        ("[registries.block]\nregistries = ['x']", "version 1"),
        ("registry = 'x'", "must be of type list"),
        ("registry = ['x']", r"must be a \[\[registry\]\] table"),
        ("[[registry]]\nblocked = true", "neither location nor prefix"),
        ("[[registry]]\nprefix = 'x.example'", "needs a location"),
        ("[[registry]]\nlocation = 'https://x.example'", "without a scheme"),
        ("[[registry]]\nlocation = 7", "must be of type str"),
        ("[[registry]]\nlocation = 'x'\ninsecure = 'yes'", "must be of type bool"),
        ("[[registry]]\nprefix = '*.x.example/y'", "written \\*.example.com"),
        ("[[registry]]\nlocation = 'x'\npull-from-mirror = 'all'", "belongs to a mirror"),
        ("[[registry]]\nlocation = 'x'\nmirror = [{}]", "has no location"),
        ("[[registry]]\nlocation = 'x'\nmirror = ['y']", "must be a table"),
        ("[[registry]]\nlocation = 'x'\nmirror = [{location = 'http://y'}]", "without a scheme"),
        ("[[registry]]\nlocation = 'x'\nmirror = [{location = 'y', pull-from-mirror = 'never'}]", "'never'"),
        (
            "[[registry]]\nlocation='x'\nmirror-by-digest-only=true\nmirror=[{location='y',pull-from-mirror='all'}]",
            "exclude each other",
        ),
        ("[[registry]]\nlocation = 'x'\n[[registry]]\nprefix='z'\nlocation='x'\nblocked = true", "blocked"),
        ("[[registry]]\nlocation = 'x'\n[[registry]]\nlocation='x'\ninsecure = true", "insecure"),
        ("credential-helpers = [1]", "list of names"),
        (f"x = {'[' * 10_000}", "not TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(BadSetup, match=words) as caught:
        parse(text, "file.conf")
    assert "file.conf" in str(caught.value)


def test_a_location_that_makes_no_image_name_is_refused_when_it_is_used() -> None:
    conf = parse("[[registry]]\nprefix = 'x.example'\nlocation = 'Y Z'", "file.conf")
    with pytest.raises(BadReference, match=r"file\.conf turns x\.example/app:v1 into"):
        conf.sources(Reference.parse("x.example/app:v1"))


def put(file: Path, location: str, *, blocked: bool = True) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[[registry]]\nlocation = '{location}'\nblocked = {str(blocked).lower()}\n")
    return file


def known(config: RegistriesConf) -> dict[str, bool]:
    return {prefix: registry.blocked for prefix, registry in config.registries.items()}


def test_without_any_file_nothing_is_said(tmp_path: Path) -> None:
    assert load(settings(tmp_path)) == RegistriesConf({})


def test_one_main_file_counts_and_drop_ins_change_it(tmp_path: Path) -> None:
    put(tmp_path / "share/containers/registries.conf", "share")
    put(tmp_path / "etc/containers/registries.conf", "etc")
    assert known(load(settings(tmp_path))) == {"etc": True}
    put(tmp_path / ".config/containers/registries.conf", "user")
    put(tmp_path / "etc/containers/registries.conf.d/20.conf", "user", blocked=False)
    put(tmp_path / "etc/containers/registries.conf.d/10.conf", "user", blocked=True)
    put(tmp_path / "etc/containers/registries.conf.d/30.txt", "ignored")
    put(tmp_path / "etc/containers/registries.conf.d/40.conf", "system")
    put(tmp_path / ".config/containers/registries.conf.d/40.conf", "mine")
    put(tmp_path / "share/containers/registries.conf.d/50.conf", "vendor")
    kind = "rootful" if os.getuid() == 0 else "rootless"
    put(tmp_path / f"etc/containers/registries.{kind}.conf.d/60.conf", "kind")
    assert known(load(settings(tmp_path))) == {"user": False, "mine": True, "vendor": True, "kind": True}


def test_a_named_file_stands_alone(tmp_path: Path) -> None:
    put(tmp_path / "etc/containers/registries.conf", "etc")
    put(tmp_path / "etc/containers/registries.conf.d/10.conf", "drop-in")
    named = put(tmp_path / "named.conf", "named")
    override = put(tmp_path / "override.conf", "override")
    environ = {"CONTAINERS_REGISTRIES_CONF": str(named), "CONTAINERS_REGISTRIES_CONF_OVERRIDE": str(override)}
    assert known(load(settings(tmp_path, environ=environ))) == {"named": True, "override": True}
    assert known(load(settings(tmp_path, environ=environ, registries_conf=override))) == {"override": True}


@pytest.mark.parametrize("name", ["CONTAINERS_REGISTRIES_CONF", "CONTAINERS_REGISTRIES_CONF_OVERRIDE"])
def test_a_named_file_must_be_there_and_readable(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetup, match="does not exist"):
        load(settings(tmp_path, environ={name: str(tmp_path / "missing.conf")}))
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetup, match="cannot be read"):
        load(settings(tmp_path, environ={name: str(tmp_path / "binary.conf")}))


def test_a_place_that_cannot_be_looked_at_holds_no_main_file(tmp_path: Path) -> None:
    put(tmp_path / "etc/containers/registries.conf", "etc")
    environ = {"XDG_CONFIG_HOME": f"/{'x' * 5000}"}
    assert known(load(settings(tmp_path, environ=environ))) == {"etc": True}


@pytest.mark.parametrize("written", ["bad.example", "BAD.example", "Bad.Example:5000"])
@pytest.mark.parametrize("named", ["bad.example", "BAD.EXAMPLE"])
def test_a_host_is_blocked_however_it_is_capitalised(written: str, named: str) -> None:
    port = written.partition(":")[2]
    conf = parse(f"[[registry]]\nlocation = '{written}/team'\nblocked = true", "file.conf")
    with pytest.raises(Blocked):
        conf.sources(Reference.parse(f"{named}{':' if port else ''}{port}/team/app:V1"))
