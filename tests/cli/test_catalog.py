"""`podium catalog`: make, look into, check and publish catalogs, and what is said when it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.commandline import Outcome, podium, project, raise_version, snapshot, start
from podium.text import yaml

JUNK = bytes(range(256)) * 8
BUNDLE = "docker.io/acme/pantry-operator-bundle"
CATALOG = "docker.io/acme/pantry-operator-catalog"
LAST = "oci:images:" + CATALOG + ":1.1.0"
FIRST = "oci:images:" + CATALOG + ":1.0.0"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project of two versions, and both in a layout."""
    root = tmp_path_factory.mktemp("published")
    folder = project(root / "pantry", version="1.0.0")
    podium("publish", folder, "--layout", root / "images")
    raise_version(folder, "1.1.0")
    podium("publish", folder, "--layout", root / "images")
    (root / "catalog").mkdir()
    catalog = podium("catalog", "render", f"oci:{root}/images:{CATALOG}:1.1.0").bytes_out
    (root / "catalog/catalog.yaml").write_bytes(catalog)
    return root


@pytest.fixture
def here(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder in which the published things lie, as links."""
    for path in published.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def places(version: str) -> str:
    return f"{BUNDLE}:{version}=oci:images:{BUNDLE}:{version}"


# --- init, render, template, convert, add, prune, migrate ---


def test_a_new_package_has_icon_and_description(here: Path) -> None:
    (here / "icon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (here / "README.md").write_text("Keeps food.\n")
    made = podium("catalog", "init", "pantry", "-c", "stable", "-i", "icon.svg", "-d", "README.md").out
    package = yaml.load(made)
    assert (package["schema"], package["name"], package["defaultChannel"]) == (
        "olm.package",
        "pantry",
        "stable",
    )
    assert package["description"] == "Keeps food.\n"
    assert package["icon"]["mediatype"] == "image/svg+xml"
    from_input = podium("catalog", "init", "pantry", "-d", "-", "-o", "json", stdin=b"From a pipe.")
    assert from_input.json["description"] == "From a pipe."
    (here / "junk.png").write_bytes(JUNK)
    assert "no picture" in podium("catalog", "init", "pantry", "-i", "junk.png", code=1).err


def test_rendering_gives_the_same_bytes_from_image_directory_file_and_input(here: Path) -> None:
    expected = (here / "catalog/catalog.yaml").read_bytes()
    for reference in (LAST, "./catalog", "dir:catalog", "catalog/catalog.yaml"):
        assert podium("catalog", "render", reference).bytes_out == expected
    assert podium("catalog", "render", "-", stdin=expected).bytes_out == expected
    as_json = podium("catalog", "render", LAST, "-o", "json").bytes_out
    assert podium("catalog", "render", "-", stdin=as_json).bytes_out == expected


def test_a_bundle_directory_is_rendered_as_if_it_were_pushed(here: Path) -> None:
    template = "docker.io/acme/{{.Package}}-bundle:{{.Version}}"
    local = podium("catalog", "render", "pantry/bundle", "--image-ref-template", template).bytes_out
    assert local == podium("catalog", "render", f"oci:images:{BUNDLE}:1.1.0").bytes_out


def test_a_template_makes_the_catalog_before_any_push(here: Path) -> None:
    made = podium(
        "catalog", "template", "pantry/catalog/template.yaml",
        "--bundle", places("1.0.0"), "--bundle", f"{BUNDLE}:1.1.0=pantry/bundle",
        "--migrate-level", "bundle-object-to-csv-metadata",
    )  # fmt: skip
    blobs = list(yaml.load_all(made.out))
    published = list(yaml.load_all((here / "catalog/catalog.yaml").read_text()))
    key = lambda blob: (blob["schema"], blob["name"])  # noqa: E731
    assert sorted(blobs, key=key) == sorted(published, key=key)
    text = (here / "pantry/catalog/template.yaml").read_bytes()
    piped = podium(
        "catalog", "template", "--migrate-level", "bundle-object-to-csv-metadata",
        "--bundle", places("1.0.0"), "--bundle", places("1.1.0"), stdin=text,
    )  # fmt: skip
    assert piped.bytes_out == made.bytes_out


def test_a_template_is_made_again_from_its_catalog(here: Path) -> None:
    (here / "basic.yaml").write_bytes(podium("catalog", "convert", "basic", "./catalog").bytes_out)
    assert f"image: {BUNDLE}:1.0.0" in (here / "basic.yaml").read_text()
    made = podium(
        "catalog", "template", "basic.yaml", "--bundle", places("1.0.0"), "--bundle", places("1.1.0"),
        "--migrate-level", "bundle-object-to-csv-metadata",
    )  # fmt: skip
    assert made.bytes_out == (here / "catalog/catalog.yaml").read_bytes()


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        (("--compat", "2.0"), 2, "only 1.x is known"),
        (("--compat", "x"), 2, "no opm release"),
        (("--bundle", "nothing"), 2, "expected KEY=VALUE"),
        (("--bundle", f"{BUNDLE}:1.0.0=./missing"), 3, "no such file or directory"),
        (("--bundle", f"{BUNDLE}:1.0.0=oci:images:gone"), 3, "template.yaml:8:"),
        (("--bundle", f"{BUNDLE}:1.0.0={FIRST}"), 1, "is a catalog, not a bundle"),
    ],
)
def test_what_is_wrong_about_a_template_is_told(
    here: Path, options: tuple[str, ...], code: int, complaint: str
) -> None:
    file = "pantry/catalog/template.yaml"
    done = podium("catalog", "template", file, "--bundle", places("1.1.0"), *options, code=code)
    assert complaint in done.err
    assert done.out == ""


def test_a_bad_image_in_a_template_is_told_with_its_line(here: Path) -> None:
    text = b"schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: Bad Image\n"
    (here / "template.yaml").write_bytes(text)
    done = podium("catalog", "template", "template.yaml", code=1)
    assert "template.yaml:5: 'Bad Image' does not name an image" in done.err


def test_a_registry_without_answer_is_told_once_for_all_bundles(here: Path) -> None:
    lines = "".join(f"  - image: 127.0.0.1:1/acme/b:{number}\n" for number in range(20))
    (here / "template.yaml").write_text(
        f"schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n{lines}"
    )
    done = podium("catalog", "template", "template.yaml", code=5)
    assert len(done.err.splitlines()) == 1


def test_adding_a_bundle_keeps_comments_and_is_done_once(here: Path) -> None:
    file = here / "template.yaml"
    file.write_text(
        "# Ours.\nschema: olm.semver\nGenerateMajorChannels: true\nstable:\n  bundles: # old first\n"
        f"  - image: {BUNDLE}:1.0.0\n"
    )
    arguments = ("catalog", "add", file, f"{BUNDLE}:1.1.0", "--from", "pantry/bundle", "--archetype", "fast")
    assert "added pantry-operator.v1.1.0" in podium(*arguments).err
    text = file.read_text()
    assert text.startswith("# Ours.\n")
    assert "bundles: # old first" in text
    assert yaml.load(text)["fast"] == {"bundles": [{"image": f"{BUNDLE}:1.1.0"}]}
    assert "has it already" in podium(*arguments).err
    assert file.read_text() == text


def test_a_part_of_a_catalog_is_valid_by_itself(here: Path) -> None:
    pruned = podium("catalog", "prune", LAST, "--keep", "pantry-operator/stable-v1>=1.1.0")
    podium("catalog", "validate", "-", stdin=pruned.bytes_out)
    rows = podium("catalog", "list", "bundles", "-", "-o", "json", stdin=pruned.bytes_out).json
    assert [(row["channel"], row["bundle"]) for row in rows] == [("stable-v1", "pantry-operator.v1.1.0")]
    assert rows[0]["replaces"] == "pantry-operator.v1.0.0", "whoever runs it can still upgrade"
    assert "there is no package gone" in podium("catalog", "prune", LAST, "--keep", "gone", code=1).err
    assert "--keep" in podium("catalog", "prune", LAST, "--keep", ">>", code=2).err


def test_a_migrated_catalog_lies_in_one_folder_for_each_package(here: Path) -> None:
    podium("catalog", "migrate", LAST, "new")
    assert [path.relative_to(here).as_posix() for path in (here / "new").rglob("*.yaml")] == [
        "new/pantry-operator/catalog.yaml"
    ]
    podium("catalog", "validate", "./new")
    before = snapshot(here / "new")
    assert "is not empty" in podium("catalog", "migrate", LAST, "new", code=4).err
    assert snapshot(here / "new") == before


# --- list, diff, graph, validate ---


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("packages", {"name", "displayName", "defaultChannel"}),
        ("channels", {"package", "channel", "head"}),
        (
            "bundles",
            {"package", "channel", "bundle", "version", "replaces", "skips", "skipRange", "image"},
        ),
    ],
)
def test_lists_are_tables_for_people_and_data_for_scripts(here: Path, what: str, fields: set[str]) -> None:
    table = podium("catalog", "list", what, "./catalog").out
    as_json = podium("catalog", "list", what, "./catalog", "-o", "json").json
    assert len(table.splitlines()) == 1 + len(as_json)
    assert all(set(row) == fields for row in as_json)
    assert yaml.load(podium("catalog", "list", what, "./catalog", "-o", "yaml").out) == as_json


def test_a_package_that_is_not_there_is_not_found(here: Path) -> None:
    done = podium("catalog", "list", "channels", "./catalog", "gone", code=3)
    assert "it has: pantry-operator" in done.err
    podium("catalog", "graph", "./catalog", "-p", "gone", code=3)


def test_a_difference_is_what_users_see(here: Path) -> None:
    changes = podium("catalog", "diff", FIRST, LAST, "-o", "json", "--exit-code").json
    assert {
        "package": "pantry-operator",
        "channel": "stable-v1",
        "kind": "newest version",
        "name": "",
        "before": "pantry-operator.v1.0.0",
        "after": "pantry-operator.v1.1.0",
    } in changes
    back = podium("catalog", "diff", LAST, FIRST, "--exit-code", code=1)
    assert "version removed (!)" in back.out
    podium("catalog", "diff", LAST, FIRST)
    same = podium("catalog", "diff", LAST, "./catalog", "--exit-code")
    assert same.out == ""
    assert "Nothing changes" in same.err
    assert podium("catalog", "diff", LAST, "./catalog", "-o", "json").json == []


def test_a_graph_is_drawn_as_text_and_as_a_picture(here: Path) -> None:
    assert podium("catalog", "graph", "./catalog").out.startswith("graph LR\n")
    picture = podium("catalog", "graph", "./catalog", "-o", "svg").out
    assert picture.startswith("<svg ")
    assert "1.1.0" in picture


def test_everything_wrong_with_a_catalog_is_told_with_file_and_line(here: Path) -> None:
    broken = here / "broken"
    broken.mkdir()
    text = (here / "catalog/catalog.yaml").read_text()
    text = text.replace("defaultChannel: stable-v1", "defaultChannel: gone", 1)
    (broken / "catalog.yaml").write_text(
        text.replace("replaces: pantry-operator.v1.0.0", "replaces: pantry-operator.v0.9.0", 1)
    )
    done = podium("catalog", "validate", "broken", code=1)
    assert "broken/catalog.yaml:" in done.out
    assert done.out.count(": error: ") >= 2
    found = podium("catalog", "validate", "broken", "-o", "json", code=1).json
    assert found["passed"] is False
    assert podium("catalog", "validate", "./catalog", "-o", "json").json["passed"] is True
    assert podium("catalog", "validate", "./catalog", "--no-lint", "-o", "json").json["findings"] == []


def test_a_catalog_is_checked_against_the_one_that_users_have(here: Path) -> None:
    podium("catalog", "validate", LAST, "--published", FIRST)
    done = podium("catalog", "validate", FIRST, "--published", LAST, code=1)
    assert "version 1.1.0 was published and is gone" in done.out
    podium("catalog", "validate", FIRST, "--published", "oci:images:gone", code=3)


# --- build, push ---


def test_a_catalog_is_built_alike_however_it_is_named(here: Path) -> None:
    first = podium("catalog", "build", "./catalog", "--to", "oci:new:1", "-o", "json").json
    before = snapshot(here / "new")
    assert podium("catalog", "build", "dir:catalog", "--to", "oci:new:1", "-o", "json").json == {
        **first,
        "existed": True,
    }
    assert snapshot(here / "new") == before
    content = (here / "catalog/catalog.yaml").read_bytes()
    for reference in ("catalog/catalog.yaml", "-", str(here / "catalog"), "~/catalog"):
        built = podium("catalog", "build", reference, "--to", "oci:new:2", "-o", "json", stdin=content).json
        assert built["digest"] == first["digest"], reference
    assert podium("catalog", "render", "oci:new:1").bytes_out == content


def test_files_of_two_packages_with_one_name_are_both_built(here: Path) -> None:
    for name in ("one", "two"):
        about = {"packageName": name, "version": "1.0.0"}
        blobs = [
            {"schema": "olm.package", "name": name, "defaultChannel": "stable"},
            {"schema": "olm.channel", "name": "stable", "package": name, "entries": [{"name": f"{name}.v1"}]},
            {
                "schema": "olm.bundle",
                "name": f"{name}.v1",
                "package": name,
                "image": f"docker.io/acme/{name}:1",
                "properties": [{"type": "olm.package", "value": about}],
            },
        ]
        (here / "many" / name).mkdir(parents=True)
        (here / "many" / name / "catalog.json").write_text("\n".join(map(json.dumps, blobs)))
    podium("catalog", "build", "~/many", "--to", "oci:new:1")
    assert podium("catalog", "render", "oci:new:1", "-o", "json").out.count('"schema"') == 6


def test_what_holds_no_package_is_not_published_as_a_catalog(here: Path) -> None:
    (here / "template.yaml").write_text(
        "schema: olm.semver\nstable: {bundles: [{image: docker.io/acme/x:1}]}\n"
    )
    (here / "empty").mkdir()
    for reference, complaint in (("template.yaml", "podium catalog template"), ("./empty", "no package")):
        assert complaint in podium("catalog", "push", reference, "oci:new:1", code=1).out
        assert complaint in podium("catalog", "validate", reference).out
    assert not (here / "new").exists()


def test_a_catalog_that_is_not_valid_is_not_built(here: Path) -> None:
    (here / "broken.yaml").write_text("schema: olm.package\nname: x\ndefaultChannel: gone\n")
    done = podium("catalog", "build", "broken.yaml", "--to", "oci:new:1", code=1)
    assert "broken.yaml:1: error: " in done.out
    assert not (here / "new").exists()


def test_an_image_is_pushed_as_it_is(here: Path) -> None:
    digest = podium("image", "inspect", LAST, "-o", "json").json["digest"]
    assert podium("catalog", "push", LAST, "oci:new:1", "-o", "json").json["digest"] == digest
    assert podium("catalog", "push", LAST, "oci:new:1", "-o", "json").json["existed"] is True


# --- what cannot work ---

READERS = [
    ("render", "X"),
    ("list", "packages", "X"),
    ("diff", "X", "./catalog"),
    ("graph", "X"),
    ("validate", "X"),
    ("convert", "basic", "X"),
    ("prune", "X", "--keep", "pantry-operator"),
    ("migrate", "X", "out"),
    ("build", "X", "--to", "oci:out:1"),
    ("push", "X", "oci:out:1"),
    ("serve", "X", "--port", "0"),
]


def tried(command: tuple[str, ...], reference: str, code: int) -> Outcome:
    return podium("catalog", *(reference if each == "X" else each for each in command), code=code)


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_a_reference_that_leads_nowhere_says_why(here: Path, command: tuple[str, ...]) -> None:
    (here / "junk.yaml").write_bytes(JUNK)
    (here / "open.yaml").write_text("schema: olm.package\nname: [\n")
    (here / "list.json").write_text("[1, 2]")
    for reference, code, complaint in (
        ("./missing", 3, "missing: no such file or directory"),
        ("oci:images:gone", 3, "has no tag 'gone'"),
        ("", 2, "does not name an image"),
        ("acme/UPPER:1", 2, "does not name an image"),
        ("127.0.0.1:1/acme/catalog:1", 5, "refused"),
        ("junk.yaml", 1, "junk.yaml:"),
        ("open.yaml", 1, "open.yaml:3: "),
        ("list.json", 1, "list.json:1: "),
    ):
        outcome = tried(command, reference, code)
        assert complaint in outcome.err + outcome.out, reference
    assert not (here / "out").exists()


@pytest.mark.parametrize("content", [JUNK, b"", b"- a", b"text", b"schema: {}", b"{" * 9999])
def test_a_template_of_rubbish_is_refused_in_words(here: Path, content: bytes) -> None:
    (here / "template.yaml").write_bytes(content)
    assert "template.yaml" in podium("catalog", "template", "template.yaml", code=1).err
    added = podium("catalog", "add", "template.yaml", f"{BUNDLE}:1.1.0", "--from", "pantry/bundle", code=1)
    assert "template.yaml" in added.err
    assert (here / "template.yaml").read_bytes() == content


def test_a_bundle_is_no_catalog(here: Path) -> None:
    assert "is a bundle, not a catalog" in podium("catalog", "validate", "pantry/bundle", code=1).err
    bundle = f"oci:images:{BUNDLE}:1.0.0"
    assert "is a bundle, not a catalog" in podium("catalog", "list", "packages", bundle, code=1).err


def test_wrong_usage_has_its_own_exit_code(here: Path) -> None:
    for command in (
        ("list", "things", "./catalog"),
        ("render",),
        ("render", "./catalog", "-o", "table"),
        ("build", "./catalog"),
        ("build", "./catalog", "--to", "oci:x:1", "--label", "nothing"),
        ("prune", "./catalog"),
        ("template", "missing.yaml"),
        ("nonsense",),
    ):
        assert "Usage: podium catalog" in podium("catalog", *command, code=2).err


# --- as a process ---


def test_who_stops_reading_ends_it_quietly(here: Path) -> None:
    large = b"".join(
        b"---\nschema: acme.note\nname: n%d\ntext: %s\n" % (number, b"x" * 500) for number in range(2000)
    )
    (here / "large.yaml").write_bytes(large)
    process = start("catalog", "render", "large.yaml", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) != 0


def test_a_catalog_is_served_until_it_is_stopped(here: Path) -> None:
    pytest.importorskip("grpc")
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = start("catalog", "serve", "./catalog", "--port", "0", stderr=subprocess.PIPE, env=environ)
    assert process.stderr is not None
    assert b"Serving ./catalog on 127.0.0.1:" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, b"")
