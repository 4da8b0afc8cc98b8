"""Reading, writing, rendering and migrating against opm: the same bytes, and the same refusals.

The real `opm render` shows real bundles, upstream's test bundles and whole catalogs; its code in the oracle
reads thousands of streams written in every style, whole and spoilt, and matches thousands of ignore patterns.
"""

from __future__ import annotations

import base64
import functools
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conformance import rendered_bundles
from conformance.goliterals import module_directory
from conformance.stream_variations import draw
from harness import binaries, corpus, folders
from harness.oracle import Oracle
from podium.bundle import read as bundle_read
from podium.bundle.model import Bundle, BundleError
from podium.catalog import gosort, package, read, render, write
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.ignore import is_ignore_file, kept
from podium.catalog.migrate import Level
from podium.catalog.templates import convert

pytestmark = pytest.mark.oracle

MANY = 2500
WRITERS = {"json": write.json, "yaml": write.yaml}
LEVELS = [Level.NONE, Level.CSV_METADATA, Level.ALL]
TEMPLATE = "quay.io/{{.Package}}/{{.Name}}:v{{.Version}}"
ORACLE_MODULE = Path(__file__).parents[2] / "conformance" / "go" / "oracle"


def opm(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """What opm prints and how it ends."""
    return subprocess.run([binaries.find("opm"), *arguments], capture_output=True, check=False)


@functools.cache
def upstream() -> Path:
    """The sources of opm, with its test data."""
    return module_directory("github.com/operator-framework/operator-registry", ORACLE_MODULE)


def catalog(directory: Path) -> list[Blob]:
    """The blobs of a catalog directory."""
    files = folders.read(directory)
    ignore_files = {path: data for path, data in files.items() if is_ignore_file(path)}
    return list(read.read((path, files[path]) for path in kept(files, ignore_files)))


# --- bundles ---


@functools.cache
def bundle_directories() -> list[Path]:
    """Real bundles, and those that upstream tests with."""
    folders = ("alpha/action/testdata", "bundles", "pkg/lib/bundle/testdata", "test/e2e/testdata")
    found = {path.parent for folder in folders for path in (upstream() / folder).rglob("manifests")}
    return [*corpus.bundles(), *sorted(path for path in found if (path / "metadata").is_dir())]


@functools.cache
def bundle(directory: Path) -> Bundle | None:
    """A bundle as we read it; None if we cannot."""
    try:
        return bundle_read.read_leniently(folders.read(directory))
    except BundleError:
        return None


def rendered(directory: Path, image: str, level: Level) -> Blob | None:
    """Our blob of a bundle; None if we refuse it."""
    source = bundle(directory)
    if source is None:
        return None
    try:
        return render.with_image(source, image, level) if image else render.bundle_blob(source, "", level)
    except CatalogError:
        return None


@functools.cache
def accepted() -> list[Path]:
    """The bundles that opm renders."""
    asked = [question(folders.read(each), "", Level.NONE, "json") for each in bundle_directories()]
    answers = Oracle().ask_all("catalog.bundle", asked)
    return [each for each, answer in zip(bundle_directories(), answers, strict=True) if not answer.error]


def question(files: dict[str, bytes], image: str, level: Level, form: str) -> dict[str, Any]:
    """What to ask the oracle about a bundle."""
    encoded = {path: base64.b64encode(data).decode() for path, data in files.items()}
    return {"files": encoded, "image": image, "level": level, "output": form}


def test_the_same_bundles_are_refused() -> None:
    ours = [each for each in bundle_directories() if rendered(each, "", Level.NONE) is not None]
    assert ours == accepted()
    assert 60 < len(ours) < len(bundle_directories())


@pytest.mark.parametrize("image", ["", TEMPLATE], ids=["no-image", "image"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", WRITERS)
def test_bundles_render_to_the_same_bytes(form: str, level: Level, image: str) -> None:
    template = ("--alpha-image-ref-template", image) if image else ()
    theirs = opm("render", "-o", form, "--migrate-level", level, *template, *accepted())
    assert theirs.returncode == 0, theirs.stderr
    ours = [blob for each in accepted() if (blob := rendered(each, image, level)) is not None]
    assert b"".join(WRITERS[form](ours)) == theirs.stdout


def test_bundles_of_every_kind_render_the_same() -> None:
    cases = []
    for seed in range(MANY // 4):
        chance = random.Random(seed)
        files = rendered_bundles.draw(chance)
        cases.append(
            (files, chance.choice(("", TEMPLATE)), chance.choice(LEVELS), chance.choice(("json", "yaml")))
        )
    asked = [question(*case) for case in cases]
    outcomes: Counter[bool] = Counter()
    for (files, image, level, form), answer in zip(
        cases, Oracle().ask_all("catalog.bundle", asked), strict=True
    ):
        theirs = None if answer.error else base64.b64decode(answer.output)
        try:
            blob = render.with_image(files, image, level) if image else render.bundle_blob(files, "", level)
            ours: bytes | None = b"".join(WRITERS[form]([blob]))
        except (BundleError, CatalogError):
            ours = None
        assert ours == theirs, (files, answer.error)
        outcomes[ours is None] += 1
    assert outcomes[True] > len(cases) / 10
    assert outcomes[False] > len(cases) / 2


def sort_case(chance: random.Random) -> list[str]:
    """Keys with repetitions: in any order, sorted, falling, nearly sorted, in runs, rising and falling."""
    length = chance.choice((13, 20, 49, 50, 51, 64, 100, 400))
    keys = [f"{chance.randrange(chance.choice((2, length // 4, length))):04}" for _ in range(length)]
    half = length // 2
    match chance.randrange(6):
        case 0:
            return sorted(keys, reverse=chance.random() < 0.5)
        case 1:
            return sorted(keys[:half]) + sorted(keys[half:])
        case 2:
            return [f"{min(index, length - index):04}" for index in range(length)]
        case 3:
            nearly = sorted(keys)
            nearly[half], nearly[1] = nearly[1], nearly[half]
            return nearly
    return keys


def test_equal_keys_end_up_where_go_leaves_them() -> None:
    cases = [sort_case(random.Random(seed)) for seed in range(1000)]
    for keys, answer in zip(cases, Oracle().ask_all("sort.slice", cases), strict=True):
        assert gosort.sort(range(len(keys)), key=keys.__getitem__) == answer.output


# --- catalogs ---


@functools.cache
def catalog_directories() -> list[Path]:
    """A real catalog, and those that upstream tests with."""
    data = upstream() / "alpha" / "action" / "testdata"
    more = [
        data / "list-index",
        data / "foo-index-v0.2.0-declcfg",
        upstream() / "test/e2e/testdata/test-configs",
    ]
    return [corpus.catalog(), *sorted((data / "index-declcfgs").iterdir()), *more]


@pytest.mark.parametrize("level", [Level.NONE, Level.ALL])
@pytest.mark.parametrize("form", WRITERS)
def test_catalogs_render_to_the_same_bytes(form: str, level: Level) -> None:
    for directory in catalog_directories():
        theirs = opm("render", "-o", form, "--migrate-level", level, directory)
        assert theirs.returncode == 0, theirs.stderr
        ours = b"".join(WRITERS[form](render.catalog(catalog(directory), level)))
        assert ours == theirs.stdout, directory


@pytest.mark.parametrize("form", WRITERS)
def test_the_directory_form_has_the_same_files(form: str, tmp_path: Path) -> None:
    for index, directory in enumerate(catalog_directories()):
        out = tmp_path / str(index)
        assert opm("migrate", "-o", form, "--migrate-level", "all", directory, out).returncode == 0
        ours = write.tree(render.catalog(catalog(directory), Level.ALL), WRITERS[form], form)
        assert {path: b"".join(data) for path, data in ours} == folders.read(out)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("kind", ["basic", "substitutes"])
def test_templates_made_from_catalogs_are_the_same(form: str, kind: str, tmp_path: Path) -> None:
    for directory in catalog_directories()[1:]:
        whole = tmp_path / "catalog.json"
        whole.write_bytes(b"".join(write.json(catalog(directory))))
        theirs = opm("alpha", "convert-template", kind, "-o", form, whole)
        made = {"basic": convert.to_basic, "substitutes": convert.to_substitutes}[kind](
            read.read([("f", whole.read_bytes())])
        )
        assert {"json": convert.as_json, "yaml": convert.as_yaml}[form](made) == theirs.stdout


@pytest.mark.parametrize("form", WRITERS)
def test_a_new_package_is_the_same(form: str, tmp_path: Path) -> None:
    icon, about = tmp_path / "icon", tmp_path / "about.md"
    icon.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(300))
    about.write_text("# Demo\n\nWith <angles> & more.\n")
    theirs = opm("init", "demo", "-c", "stable", "-i", icon, "-d", about, "-o", form)
    ours = package.new("demo", "stable", icon.read_bytes(), about.read_text())
    assert b"".join(WRITERS[form]([ours])) == theirs.stdout


# --- streams ---


@pytest.mark.parametrize("form", WRITERS)
def test_streams_in_every_style_read_and_write_the_same(form: str) -> None:
    streams = [draw(random.Random(seed)) for seed in range(MANY)]
    asked = [{"base64": base64.b64encode(data).decode(), "output": form} for data in streams]
    outcomes: Counter[str] = Counter()
    for data, answer in zip(streams, Oracle().ask_all("catalog.render", asked), strict=True):
        theirs = None if answer.error else base64.b64decode(answer.output or "")
        try:
            ours: bytes | None = b"".join(WRITERS[form](read.read([("f", data)])))
        except CatalogError as error:
            if read.LOST in error.problem:  # opm reads the first document and forgets the rest
                outcomes["lost"] += 1
                continue
            ours = None
        assert ours == theirs, (data, answer.error)
        outcomes["refused" if ours is None else "read"] += 1
    assert outcomes["read"] > MANY / 2
    assert outcomes["refused"] > MANY / 5
    assert 0 < outcomes["lost"] < MANY / 50


PATTERN_PARTS = (
    "a",
    "b",
    "*",
    "a*",
    "?",
    "**",
    "[ab]",
    "[^a]",
    "[a-",
    "\\a",
    "x**",
    "dir",
    "!",
    "/",
    "/",
    "/",
    " ",
)


def ignore_case(chance: random.Random) -> dict[str, str]:
    """Files with random names, and ignore files with random patterns, by path."""
    names = ("a", "b", "ab", "dir", "x", "ba")
    paths = {"/".join(chance.choices(names, k=chance.randint(1, 4))) for _ in range(8)}
    files = {path: "" for path in paths if not any(other.startswith(f"{path}/") for other in paths)}
    folders = {"", *(path.rpartition("/")[0] for path in files)}
    for folder in chance.sample(sorted(folders), min(2, len(folders))):
        lines = ["".join(chance.choices(PATTERN_PARTS, k=chance.randint(1, 4))) for _ in range(3)]
        files[f"{folder}/.indexignore".lstrip("/")] = "\n".join([*lines, "# comment", ""])
    return files


def test_ignore_patterns_match_the_same_files() -> None:
    cases = [ignore_case(random.Random(seed)) for seed in range(MANY)]
    for files, answer in zip(
        cases, Oracle().ask_all("catalog.ignored", [{"files": files} for files in cases]), strict=True
    ):
        patterns = {path: text.encode() for path, text in files.items() if path.endswith(".indexignore")}
        ours = set(kept(files, patterns))
        theirs = {path for path, ignored in answer.output.items() if not ignored} - set(patterns)
        assert ours == theirs, patterns
