"""Catalog validation against opm's own code: the same verdict, and its reasons among ours.

Thousands of catalogs, each broken in a few ways, go through opm's loader and model in the oracle, and some
through the real `opm validate`. opm names the first reason or a tree of them; each must be among our
findings, which name all.
"""

from __future__ import annotations

import functools
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from conformance.catalog_variations import Document, draw, mutate, stream
from conformance.goliterals import module_directory
from harness import binaries, corpus
from harness.oracle import Oracle
from podium.api.findings import failed
from podium.catalog import read, validate
from podium.catalog.blobs import CatalogError
from podium.catalog.validate.rules import Rule

pytestmark = pytest.mark.oracle

MANY = 6000
ORACLE_MODULE = Path(__file__).parents[2] / "conformance" / "go" / "oracle"


@dataclass(frozen=True)
class Judged:
    """One catalog and what opm and we say of it."""

    files: dict[str, str]
    stage: str
    message: str
    ours: frozenset[str]

    @property
    def reasons(self) -> list[frozenset[Rule]]:
        """For each reason that opm gives, the rules of which one must be among ours."""
        return [_rules(reason) for reason in _leaves(self.message)] if self.stage == "model" else []


def _judge(catalogs: list[dict[str, str]]) -> list[Judged]:
    answers = Oracle().ask_all("catalogs.validate", catalogs)
    assert not any(answer.error for answer in answers)
    return [
        Judged(files, answer.output["stage"], answer.output["message"], _our_rules(files))
        for files, answer in zip(catalogs, answers, strict=True)
    ]


UNREADABLE = "unreadable"


def _our_rules(files: dict[str, str]) -> frozenset[str]:
    try:
        blobs = [
            read.blob_of(value, place)
            for path, text in sorted(files.items())
            for value, place in read.documents(path, text.encode("utf-8", "surrogatepass"))
        ]
    except CatalogError:
        return frozenset({UNREADABLE})
    findings = validate.validate(blobs)
    assert failed(findings) == bool(findings)
    return frozenset(finding.rule for finding in findings)


# --- what opm says ---

_REASONS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    (r"config contains package with no name", (Rule.PACKAGE_NAME_MISSING,)),
    (r"duplicate package ", (Rule.PACKAGE_DUPLICATE,)),
    (r"invalid package name ", (Rule.PACKAGE_NAME_INVALID,)),
    (r"unknown package .* for channel ", (Rule.CHANNEL_PACKAGE_UNKNOWN,)),
    (r"package .* contains channel with no name", (Rule.CHANNEL_NAME_MISSING,)),
    (r"package .* has duplicate channel ", (Rule.CHANNEL_DUPLICATE,)),
    (r"invalid package .*, channel .*: duplicate entry ", (Rule.ENTRY_DUPLICATE,)),
    (r"package name must be set for bundle ", (Rule.BUNDLE_PACKAGE_MISSING,)),
    (r"unknown package .* for bundle ", (Rule.BUNDLE_PACKAGE_UNKNOWN,)),
    (r"package .* has duplicate bundle ", (Rule.BUNDLE_DUPLICATE,)),
    (r"parse properties for bundle ", (Rule.BUNDLE_PROPERTY_INVALID,)),
    (r"package .* bundle .* must have exactly 1 ", (Rule.BUNDLE_PACKAGE_PROPERTIES,)),
    (r"package .* does not match \"olm.package\" property ", (Rule.BUNDLE_PACKAGE_DIFFERS,)),
    (r"package .* bundle .* image: invalid image pull spec ", (Rule.BUNDLE_IMAGE_INVALID,)),
    (r"package .* bundle .* relatedImages\[", (Rule.BUNDLE_RELATED_IMAGE_INVALID,)),
    (r"error parsing bundle .* release version ", (Rule.BUNDLE_RELEASE_INVALID,)),
    (r"error parsing bundle .* version ", (Rule.BUNDLE_VERSION_INVALID,)),
    (r"package .*, bundle .* not found in any channel entries", (Rule.BUNDLE_IN_NO_CHANNEL,)),
    (r"no olm.bundle blobs found in package ", (Rule.ENTRY_WITHOUT_BUNDLE,)),
    (r"package name must be set for deprecation ", (Rule.DEPRECATIONS_PACKAGE_MISSING,)),
    (r"cannot apply deprecations to an unknown package ", (Rule.DEPRECATIONS_PACKAGE_UNKNOWN,)),
    (r"expected a maximum of one deprecation per package", (Rule.DEPRECATIONS_DUPLICATE,)),
    (r"schema must be set for deprecation entry ", (Rule.DEPRECATION_SCHEMA_MISSING,)),
    (r"duplicate deprecation entry ", (Rule.DEPRECATION_DUPLICATE,)),
    (r"cannot deprecate bundle ", (Rule.DEPRECATION_BUNDLE_UNKNOWN,)),
    (r"cannot deprecate channel ", (Rule.DEPRECATION_CHANNEL_UNKNOWN,)),
    (r"package name must be empty for deprecated package ", (Rule.DEPRECATION_PACKAGE_NAMED,)),
    (r"cannot deprecate object ", (Rule.DEPRECATION_SCHEMA_UNKNOWN,)),
    # The tree of the second stage. An entry without a bundle comes out there as a bundle without anything.
    (r"default channel must be set", (Rule.DEFAULT_CHANNEL_MISSING,)),
    (r"package must contain at least one channel", (Rule.PACKAGE_WITHOUT_CHANNELS,)),
    (r"channel must contain at least one bundle", (Rule.CHANNEL_EMPTY, Rule.DEFAULT_CHANNEL_UNKNOWN)),
    (r"no channel head found in graph", (Rule.CHANNEL_WITHOUT_HEAD,)),
    (r"multiple channel heads found in graph", (Rule.CHANNEL_MULTIPLE_HEADS,)),
    (r"detected cycle in replaces chain ", (Rule.CHANNEL_CYCLE,)),
    (r"channel contains one or more stranded bundles", (Rule.CHANNEL_STRANDED,)),
    (r"duplicate versions found in bundles", (Rule.PACKAGE_DUPLICATE_VERSIONS, Rule.ENTRY_WITHOUT_BUNDLE)),
    (r"name must be set", (Rule.ENTRY_NAME_MISSING,)),
    (r"name .* does not match normalized name ", (Rule.BUNDLE_NAME_WITHOUT_RELEASE,)),
    (r"skip\[\d+\] is empty", (Rule.ENTRY_EMPTY_SKIP,)),
    (r"invalid skipRange ", (Rule.ENTRY_SKIP_RANGE_INVALID,)),
    (r"must be exactly one property with type ", (Rule.ENTRY_WITHOUT_BUNDLE,)),
    (r"bundle image must be set", (Rule.BUNDLE_IMAGE_MISSING, Rule.ENTRY_WITHOUT_BUNDLE)),
    (r"invalid deprecation: message must be set", (Rule.DEPRECATION_MESSAGE_MISSING,)),
    (r"cannot use build metadata in version with a release version", (Rule.BUNDLE_RELEASE_WITH_BUILD,)),
)
_EVERY_REASON = [(re.compile(pattern, re.DOTALL), frozenset(rules)) for pattern, rules in _REASONS]


def _leaves(message: str) -> list[str]:
    """The reasons at the ends of opm's tree; the message itself if it is no tree."""
    if not message.startswith("invalid index:"):
        return [message]
    lines = [re.sub(r"^(?:│   |    )*[├└]── ", "", line) for line in message.splitlines()[1:]]
    return [line for line in lines if not re.fullmatch(r'invalid (?:package|channel|bundle) ".*":', line)]


def _rules(reason: str) -> frozenset[Rule]:
    for pattern, rules in _EVERY_REASON:
        if pattern.match(reason):
            return rules
    raise AssertionError(f"opm gives a reason that no rule stands for: {reason}")


# --- the catalogs ---


@functools.cache
def _variations() -> list[Judged]:
    chance = random.Random(11)
    drawn = [draw(chance) for _ in range(MANY)]
    made = [mutate(catalog, chance, chance.choice((0, 1, 1, 1, 2, 3))) for catalog in drawn]
    return _judge([{"catalog.json": stream(catalog)} for catalog in made])


def _packages() -> Iterator[list[Document]]:
    """The smaller packages of the corpus: size adds nothing here but time."""
    for path in sorted(corpus.catalog().glob("*/catalog.json")):
        if path.stat().st_size < 200_000:
            yield [msgspec.json.decode(blob.raw) for blob in read.read_file(path.name, path.read_bytes())]


@functools.cache
def _distorted_corpus() -> list[Judged]:
    chance = random.Random(12)
    made = [mutate(package, chance, times) for package in _packages() for times in (0, 1, 1, 1, 2, 3)]
    return _judge([{"catalog.json": stream(catalog)} for catalog in made])


@functools.cache
def _upstream() -> list[Judged]:
    """Every file of data in opm's own tests, catalogs and others, and its folders of catalogs."""
    module = module_directory("github.com/operator-framework/operator-registry", ORACLE_MODULE)
    paths = [path for path in sorted(module.rglob("*")) if path.suffix in (".yaml", ".yml", ".json")]
    found = [
        {path.name: path.read_text()} for path in paths if path.is_file() and b"olm." in path.read_bytes()
    ]
    for folder in sorted((module / "alpha" / "action" / "testdata").rglob("*/")):
        files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.yaml")}
        if files:
            found.append(files)
    return _judge(found)


@pytest.mark.parametrize("catalogs", [_variations, _distorted_corpus, _upstream])
def test_the_verdict_is_opms_and_its_reasons_are_among_ours(
    catalogs: functools._lru_cache_wrapper[list[Judged]],
) -> None:
    judged = catalogs()
    assert {bool(each.stage) for each in judged} == {True, False}
    for each in judged:
        assert bool(each.ours) == bool(each.stage), (each.files, each.stage, each.message, each.ours)
        for accepted in each.reasons:
            assert accepted & each.ours, (each.files, each.message, each.ours)
        if each.stage == "load":
            assert each.ours & {UNREADABLE, Rule.FIELD_TYPE, Rule.BUNDLE_OBJECT_INVALID}, (
                each.files,
                each.message,
            )


def test_every_rule_is_broken_in_some_catalog_and_opm_names_it_in_some() -> None:
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    for each in _variations():
        ours.update(each.ours)
        theirs.update(rule for accepted in each.reasons for rule in accepted & each.ours)
        if each.stage == "load":
            theirs.update(each.ours & {Rule.FIELD_TYPE, Rule.BUNDLE_OBJECT_INVALID})
    print("\n".join(f"{rule:32} {ours[rule]:6} {theirs[rule]:6}" for rule in Rule))
    assert [rule for rule in Rule if not ours[rule] or not theirs[rule]] == []


def test_the_real_opm_agrees(tmp_path: Path) -> None:
    opm = binaries.find("opm")
    chance = random.Random(13)
    sample = [each for each in _variations() if each.stage != "load"]
    for index, each in enumerate(chance.sample(sample, 40)):
        folder = tmp_path / str(index)
        folder.mkdir()
        for name, text in each.files.items():
            (folder / name).write_text(text)
        done = subprocess.run([opm, "validate", str(folder)], capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == bool(each.ours), (each.files, done.stderr)


def test_the_corpus_as_a_whole_is_valid_for_both() -> None:
    files = {
        str(path.relative_to(corpus.catalog())): path.read_text() for path in corpus.catalog().glob("*/*")
    }
    [judged] = _judge([files])
    assert (judged.stage, judged.ours) == ("", frozenset())
