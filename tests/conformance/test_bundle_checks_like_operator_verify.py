"""Our checks say of a bundle what operator-framework/api and operator-registry say: the same rules broken.

Compared are sets of rule and severity, on the originals' own test data, on real bundles, and on distorted
ones. Where the originals are wrong, `OURS_ONLY` and `THEIRS_ONLY` say which rule differs and why.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conformance import bundle_distortions, bundle_messages
from conformance.bundle_distortions import Case
from conformance.bundle_messages import Verdict
from conformance.goliterals import module_directory
from harness import corpus, folders, samplebundle
from harness.oracle import Answer, Oracle
from podium.api.findings import failed
from podium.bundle.checks import SUITES, check
from podium.bundle.model import BundleError
from podium.bundle.read import read_leniently

pytestmark = pytest.mark.oracle

_GO = Path(__file__).parents[2] / "conformance" / "go"
_SOURCES = {"api": "oracle", "operator-registry": "oracle", "operator-controller": "convert"}
CHECKS = [suite.name for suite in SUITES]
FORMAT = bundle_messages.rules(["format"])

# Rules that only we have: each catches what the originals pass over, or meant to catch and do not.
OURS_ONLY = {
    "annotation-directory": "values of the manifests and metadata annotations are never compared",
    "annotation-not-text": "such a file is unreadable, or half of it is used, depending on the next file",
    "deployments-missing": "an empty list of deployments counts as some",
    "duplicate-key": "the last value wins in silence",
    "field-case": "fields are matched whatever their case, unlike in a cluster",
    "install-modes-duplicate": "the set of modes seen is never filled",
    "max-openshift-version-too-exact": "warnings of the first step are lost in the second",
    "metadata-unread": "a metadata file with a broken entry is ignored in silence, and so is a second one",
    "owned-crd-name": "opm insists on the name, operator-framework/api does not look at it",
    "package-empty": "only the key's presence is asked for",
    "release-with-substitutes": "opm's rule, which operator-framework/api does not have",
    "requests-missing": "a request for either CPU or memory counts as both, an empty map as well",
    "service-account-conflict": "a ServiceAccount with a broken field is not looked at",
    "several-documents": "what follows the first document is ignored in silence",
    "text-expected": "numbers become text, unlike in a cluster",
}
# Rules that the originals apply where they should not.
THEIRS_ONLY = {
    ("pdb-max-unavailable", "error"): "every text, any percentage included, counts as 0",
}
# What depends on an image that could not be inspected: the originals take `error` for a platform.
UNINSPECTED = {"arch-label-missing", "os-label-missing", "node-affinity-extra", "node-affinity-short"}
# Errors of the first step of the community check are repeated as warnings by its second step.
REPEATED = {rule for rule in bundle_messages.rules(["community"]) if rule.startswith(("max-", "properties-"))}


def _compared(case: Case, answer: Answer) -> tuple[set[Verdict], set[Verdict]]:
    """What only the originals say, and what only we say, known deviations aside."""
    assert not answer.error, answer.error
    theirs = bundle_messages.verdicts(answer.output)
    findings = check(case.files, _checks(case), case.our_options())
    ours = {(finding.rule, finding.severity.value) for finding in findings}
    if any(rule == "panic" for rule, _ in theirs):
        return set(), set()
    ignored: set[str] = set()
    if ("image-not-inspected", "warning") in theirs:
        ignored |= UNINSPECTED
    if ("annotation-not-text", "error") in ours:
        ignored |= FORMAT
    if ("text-expected", "warning") in ours:
        ignored.add("removed-api")  # this check decodes once more, not as leniently, and gives up
    too_exact = ("max-openshift-version-too-exact", "warning")
    theirs -= {(rule, "warning") for rule in REPEATED} - {too_exact}
    missing = {each for each in theirs - ours if each[0] not in ignored and each not in THEIRS_ONLY}
    extra = {each for each in ours - theirs if each[0] not in ignored and each[0] not in OURS_ONLY}
    if ("manifests-empty", "error") in theirs:
        # They go down into sub-directories for a ClusterServiceVersion, and judge what they find there.
        missing = {each for each in missing if each[0] in FORMAT}
        return missing, {each for each in extra if each[0] in FORMAT}
    if answer.output["load"]:
        # They stop where they cannot load; we go on, and see more.
        return missing, {each for each in extra if each[0] in FORMAT}
    return missing, extra


def _checks(case: Case) -> list[str]:
    return [name for name in CHECKS if case.inspects_images or name != "multiarch"]


def _differences(cases: list[Case]) -> list[str]:
    shown = []
    groups = [[case for case in cases if case.inspects_images is wanted] for wanted in (True, False)]
    for group in groups:
        if not group:
            continue
        answers = Oracle().ask_all("bundle", (case.question(_checks(case)) for case in group))
        for case, answer in zip(group, answers, strict=True):
            missing, extra = _compared(case, answer)
            if missing or extra:
                shown.append(f"{case.number} {case.what}: missing {sorted(missing)}, extra {sorted(extra)}")
    return shown


def _upstream_bundles() -> list[Case]:
    """Every bundle among the originals' test data, in their layout or as bare manifests."""
    found: list[Case] = []
    annotations = {samplebundle.ANNOTATIONS_FILE: samplebundle.files()[samplebundle.ANNOTATIONS_FILE]}
    for module, pinned_by in _SOURCES.items():
        root = module_directory(f"github.com/operator-framework/{module}", _GO / pinned_by)
        for directory in sorted(
            path for path in root.rglob("*") if path.is_dir() and "testdata" in path.parts
        ):
            files = folders.read(directory)
            manifests = {path: data for path, data in files.items() if path.startswith("manifests/")}
            flat = {path: data for path, data in files.items() if "/" not in path}
            if not manifests and any(b"kind: ClusterServiceVersion" in data for data in flat.values()):
                manifests = {f"manifests/{path}": data for path, data in flat.items()}
                files = manifests
            if manifests and not any("/" in path.removeprefix("manifests/") for path in manifests):
                has_metadata = any(path.startswith("metadata/") for path in files)
                whole = files if has_metadata else {**manifests, **annotations}
                found.append(Case(len(found), whole, [str(directory)], inspects_images=False))
    return found


def test_bundles_of_the_originals_get_the_same_verdicts() -> None:
    cases = _upstream_bundles()
    assert len(cases) > 60
    assert _differences(cases) == []


def test_real_bundles_get_the_same_verdicts() -> None:
    cases = [
        Case(number, folders.read(directory), [str(directory)], inspects_images=False)
        for number, directory in enumerate(corpus.bundles())
    ]
    assert _differences(cases) == []


@pytest.mark.parametrize("start", range(0, 1500, 500))
def test_distorted_bundles_get_the_same_verdicts(start: int) -> None:
    assert _differences(list(bundle_distortions.cases(500, start))) == []


def test_bundles_with_a_single_fault_get_the_same_verdicts() -> None:
    assert _differences(list(bundle_distortions.single_faults())) == []


def test_distorted_real_bundles_get_the_same_verdicts() -> None:
    small = [
        files
        for directory in corpus.bundles()
        if sum(map(len, (files := folders.read(directory)).values())) < 100_000
    ]
    cases = [bundle_distortions.of_files(number, files) for number, files in enumerate(small * 6)]
    assert len(cases) > 200
    assert _differences(cases) == []


def test_the_distortions_break_every_rule() -> None:
    hits: Counter[str] = Counter()
    for case in bundle_distortions.cases(3000):
        hits.update({finding.rule for finding in check(case.files, CHECKS, case.our_options())})
    known = bundle_messages.rules(bundle_messages.RULES) | OURS_ONLY.keys()
    assert known - hits.keys() == set()
    assert hits.keys() - known == set()


def _content_differences(case: Case, answer: dict[str, Any]) -> set[str]:
    """Rules of opm's own content check that opm applies and we do not, or we and opm does not."""
    findings = check(case.files)
    ours = {finding.rule for finding in findings if failed([finding])}
    said = answer["content"] or []
    theirs = {
        rule
        for rule, text in (
            ("release-with-substitutes", "cannot have both a release"),
            ("owned-crd-name", "owned CRD"),
            ("unsupported-kind", "is not supported type for registryV1"),
        )
        if any(text in message for message in said)
    }
    if "undecodable-file" in ours:
        theirs.discard("unsupported-kind")  # an empty document is of no kind
    # One rule there, two here; and opm reads CRDs more strictly, or looks at another version of a wrong one.
    if {"owned-crd-missing", "field-case", "text-expected", "invalid-crd"} & {each.rule for each in findings}:
        theirs.discard("owned-crd-name")
        ours.discard("owned-crd-name")
    return theirs ^ (ours & {"release-with-substitutes", "owned-crd-name", "unsupported-kind"})


def test_distorted_bundles_break_the_rules_that_only_opm_has() -> None:
    cases = list(bundle_distortions.cases(400, 9000))
    answers = Oracle().ask_all("bundle", (case.question([]) for case in cases))
    different = [
        f"{case.number} {case.what}: {rules}"
        for case, answer in zip(cases, answers, strict=True)
        if not answer.output["load"] and (rules := _content_differences(case, answer.output))
    ]
    assert different == []


def test_distorted_bundles_are_read_as_opm_render_reads_them() -> None:
    cases = list(bundle_distortions.cases(700, 20_000))
    answers = Oracle().ask_all("bundle", (case.question([]) for case in cases))
    different = []
    for case, answer in zip(cases, answers, strict=True):
        theirs = answer.output["rendered"]
        try:
            bundle = read_leniently(case.files)
        except BundleError as error:
            if not theirs["error"]:
                different.append(f"{case.number} {case.what}: only we fail: {error}")
            continue
        if theirs["error"]:
            different.append(f"{case.number} {case.what}: only opm fails: {theirs['error'][:200]}")
            continue
        ours = {
            "name": bundle.name,
            "package": bundle.package,
            "channels": list(bundle.channels),
            "default": bundle.default_channel,
            "objects": list(bundle.objects),
            "dependencies": [{"type": each.type, "value": each.value} for each in bundle.dependencies],
            "error": "",
        }
        different += [
            f"{case.number} {case.what}: {key}: {ours[key]} instead of {theirs[key]}"
            for key in ours
            if (ours[key] or None) != (theirs[key] or None)
        ]
    assert different == []
