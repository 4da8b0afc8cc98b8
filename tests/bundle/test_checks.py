"""Checks of bundles: each rule with a bundle that breaks it, where the finding points, and hostile input.

That the rules are those of the originals is shown in tests/conformance; here they are kept, without Go.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import samplebundle
from harness.samplebundle import ANNOTATIONS_FILE, CRD_FILE, CSV_FILE, DEPENDENCIES_FILE
from podium.api.findings import Finding, Severity
from podium.bundle.checks import SUITES, check, selected
from podium.text import yaml

ALL = [suite.name for suite in SUITES]
IMAGE = "registry.example.com/cache/manager:1.2.3"
PLATFORMS = {"platforms": {IMAGE: [("linux", "amd64")]}}
DELETE = object()
Path = tuple[str | int, ...]

_KEY = "operators.operatorframework.io.bundle."
_POD: Path = ("spec", "install", "spec", "deployments", 0, "spec", "template", "spec")
_CONTAINER: Path = (*_POD, "containers", 0)
_OWNED: Path = ("spec", "customresourcedefinitions", "owned", 0)
_NOTES: Path = ("metadata", "annotations")
_CEL: Path = ("dependencies", 3, "value", "cel")
_LABELS: Path = ("metadata", "labels")
_SECRET = b"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"


def changed(*changes: tuple[str, Path, Any]) -> dict[str, bytes]:
    """The sample bundle with some fields set, or deleted."""
    documents = samplebundle.documents()
    for file, path, value in changes:
        if not path:
            documents[file] = value
            continue
        holder = documents[file]
        for key in path[:-1]:
            holder = holder[key]
        if value is DELETE:
            del holder[path[-1]]
        else:
            holder[path[-1]] = copy.deepcopy(value)
    return samplebundle.files(documents)


def rules(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.rule, finding.severity.value) for finding in findings}


def test_a_sound_bundle_has_nothing_to_say_about() -> None:
    names = [name for name in ALL if name != "operatorhub"]
    assert check(samplebundle.files(), names, PLATFORMS) == []


# A rule, the change that breaks it, and the severity if it is not an error.
BROKEN: list[tuple[str, str, Path, Any]] = [
    ("annotation-missing", ANNOTATIONS_FILE, ("annotations", _KEY + "package.v1"), DELETE),
    ("mediatype-mismatch", ANNOTATIONS_FILE, ("annotations", _KEY + "mediatype.v1"), "plain"),
    ("annotation-directory", ANNOTATIONS_FILE, ("annotations", _KEY + "metadata.v1"), "meta/"),
    ("channels-empty", ANNOTATIONS_FILE, ("annotations", _KEY + "channels.v1"), ""),
    ("default-channel-empty", ANNOTATIONS_FILE, ("annotations", _KEY + "channel.default.v1"), ""),
    ("annotation-not-text", ANNOTATIONS_FILE, ("annotations", "x"), ["y"]),
    ("annotations-missing", ANNOTATIONS_FILE, (), {"x": "y"}),
    ("dependency-invalid", DEPENDENCIES_FILE, ("dependencies", 0, "value", "group"), ""),
    ("dependency-invalid", DEPENDENCIES_FILE, ("dependencies", 1, "value", "version"), "newest"),
    ("dependency-invalid", DEPENDENCIES_FILE, ("dependencies", 2, "value"), {}),
    ("dependency-invalid", DEPENDENCIES_FILE, ("dependencies", 2, "type"), "olm.other"),
    ("dependency-invalid", DEPENDENCIES_FILE, (*_CEL, "rule"), "1 + 1"),
    (
        "dependency-invalid",
        DEPENDENCIES_FILE,
        (*_CEL, "rule"),
        "'a'.lowerAscii() == ''",
    ),
    ("csv-undecodable", CSV_FILE, ("spec", "version"), "one"),
    ("csv-undecodable", CSV_FILE, (*_CONTAINER, "resources", "requests", "cpu"), "much"),
    ("crd-undecodable", CRD_FILE, ("spec", "versions", 0, "served"), "yes"),
    ("crd-version", CRD_FILE, ("apiVersion",), "apiextensions.k8s.io/v2"),
    ("csv-missing", CSV_FILE, ("kind",), "ConfigMap"),
    ("unsupported-kind", "manifests/service.yaml", ("kind",), "Pod"),
    ("invalid-metadata", "manifests/service.yaml", ("metadata", "labels", "-"), "x"),
    ("namespace-forbidden", "manifests/service.yaml", ("metadata", "namespace"), "here"),
    ("owned-crd-missing", CSV_FILE, (*_OWNED, "version"), "v2"),
    ("owned-crd-name", CSV_FILE, (*_OWNED, "name"), "cache.cache.example.com"),
    ("owned-crd-name-malformed", CSV_FILE, (*_OWNED, "name"), "caches"),
    ("crd-not-owned", CSV_FILE, _OWNED[:-1], []),
    ("service-account-conflict", "manifests/serviceaccount.yaml", ("metadata", "name"), "cache-manager"),
    ("release-name", CSV_FILE, ("spec", "release"), "1"),
    ("related-image-empty", CSV_FILE, ("spec", "relatedImages", 0, "image"), ""),
    ("related-image-invalid", CSV_FILE, ("spec", "relatedImages", 0, "image"), "Not/An:Image:"),
    ("csv-name", CSV_FILE, ("metadata", "name"), "x" * 64),
    ("csv-replaces", CSV_FILE, ("spec", "replaces"), "Old"),
    ("examples-not-json", CSV_FILE, (*_NOTES, "alm-examples"), "[{]"),
    ("examples-undecodable", CSV_FILE, (*_NOTES, "alm-examples"), '[{"spec": {}}]'),
    ("example-not-provided", CSV_FILE, (*_NOTES, "alm-examples"), '[{"apiVersion": "v1", "kind": "Pod"}]'),
    ("install-modes-missing", CSV_FILE, ("spec", "installModes"), []),
    ("install-modes-unsupported", CSV_FILE, ("spec", "installModes"), [{"type": "OwnNamespace"}]),
    ("install-modes-duplicate", CSV_FILE, ("spec", "installModes", 0, "type"), "SingleNamespace"),
    ("conversion-install-modes", CSV_FILE, ("spec", "installModes", 0, "supported"), True),
    ("min-kube-version-invalid", CSV_FILE, ("spec", "minKubeVersion"), "1.25"),
    ("required-field-missing", CSV_FILE, ("spec", "displayName"), ""),
    ("required-field-missing", CSV_FILE, ("spec", "install", "strategy"), DELETE),
    ("required-field-missing", CSV_FILE, ("spec", "install", "spec", "deployments"), DELETE),
    ("annotation-case", CSV_FILE, (*_NOTES, "olm.skiprange"), "<1.0.0"),
    ("api-version-missing", CSV_FILE, ("apiVersion",), ""),
    ("invalid-crd", CRD_FILE, ("spec", "scope"), "Everywhere"),
    ("invalid-crd", CRD_FILE, ("metadata", "namespace"), "here"),
    ("provider-name-missing", CSV_FILE, ("spec", "provider"), {}),
    ("maintainer-incomplete", CSV_FILE, ("spec", "maintainers", 0, "name"), ""),
    ("maintainer-email-invalid", CSV_FILE, ("spec", "maintainers", 0, "email"), "ann at example"),
    ("link-incomplete", CSV_FILE, ("spec", "links", 0, "name"), DELETE),
    ("link-url-invalid", CSV_FILE, ("spec", "links", 0, "url"), "example.com"),
    ("version-missing", CSV_FILE, ("spec", "version"), "0.0.0"),
    ("icon-count", CSV_FILE, ("spec", "icon"), []),
    ("icon-incomplete", CSV_FILE, ("spec", "icon", 0, "base64data"), ""),
    ("icon-mediatype", CSV_FILE, ("spec", "icon", 0, "mediatype"), "image/bmp"),
    ("min-kube-version-unusable", CSV_FILE, ("spec", "minKubeVersion"), "soon"),
    ("capability-unknown", CSV_FILE, (*_NOTES, "capabilities"), "Autopilot"),
    ("category-unknown", CSV_FILE, (*_NOTES, "categories"), "Toys"),
    ("deployments-missing", CSV_FILE, ("spec", "install", "spec", "deployments"), []),
    (
        "platform-unsupported",
        CSV_FILE,
        (*_LABELS, "operatorframework.io/arch.arm64"),
        "supported",
    ),
    ("pdb-max-unavailable", "manifests/pdb.yaml", ("spec", "maxUnavailable"), "0%"),
    ("pdb-min-available", "manifests/pdb.yaml", ("spec", "minAvailable"), "100%"),
    ("priority-class-global", "manifests/priority.yaml", ("globalDefault",), True),
    ("object-undecodable", "manifests/pdb.yaml", ("spec",), []),
    ("removed-api", "manifests/pdb.yaml", ("apiVersion",), "policy/v1beta1"),
]
WARNED: list[tuple[str, str, Path, Any]] = [
    ("package-empty", ANNOTATIONS_FILE, ("annotations", _KEY + "package.v1"), ""),
    ("field-case", CSV_FILE, ("spec", "MinKubeVersion"), "1.25.0"),
    ("text-expected", CSV_FILE, ("spec", "maturity"), 5),
    ("csv-annotations-missing", CSV_FILE, _NOTES, {}),
    ("examples-missing", CSV_FILE, (*_NOTES, "alm-examples"), DELETE),
    ("examples-twice", CSV_FILE, (*_NOTES, "olm.examples"), "[]"),
    ("example-missing", CSV_FILE, (*_NOTES, "alm-examples"), "[]"),
    ("min-kube-version-missing", CSV_FILE, ("spec", "minKubeVersion"), DELETE),
    ("properties-annotation", CSV_FILE, (*_NOTES, "olm.properties"), "[]"),
    ("icon-missing", CSV_FILE, ("spec", "icon"), DELETE),
    ("requests-missing", CSV_FILE, (*_CONTAINER, "resources", "requests", "memory"), DELETE),
    ("crd-description-missing", CSV_FILE, (*_OWNED, "description"), ""),
    ("channel-name", ANNOTATIONS_FILE, ("annotations", _KEY + "channels.v1"), "alpha"),
    ("csv-name-version", CSV_FILE, ("metadata", "name"), "cache.v1"),
    ("csv-name-convention", CSV_FILE, ("metadata", "name"), "cache-1.2.3"),
    ("node-affinity-missing", CSV_FILE, (*_POD, "affinity"), DELETE),
    ("rbac-disruption-budgets", "manifests/role.yaml", ("rules", 1, "verbs"), ["create"]),
]


@pytest.mark.parametrize(("rule", "file", "path", "value"), BROKEN)
def test_an_error_is_found(rule: str, file: str, path: Path, value: Any) -> None:
    findings = check(changed((file, path, value)), ALL, PLATFORMS)
    assert (rule, "error") in rules(findings)
    assert all(finding.message for finding in findings)


@pytest.mark.parametrize(("rule", "file", "path", "value"), WARNED)
def test_a_warning_is_found(rule: str, file: str, path: Path, value: Any) -> None:
    assert (rule, "warning") in rules(check(changed((file, path, value)), ALL, PLATFORMS))


FILES: list[tuple[str, dict[str, bytes]]] = [
    ("nested-directory", {"manifests/nested/x.yaml": b"a: b"}),
    ("hidden-file", {"manifests/.hidden": b""}),
    ("undecodable-file", {"manifests/x.yaml": b"a: [1"}),
    ("undecodable-file", {"manifests/x.yaml": b"# hello\n---\nkind: Secret\n"}),
    ("several-documents", {"manifests/x.yaml": _SECRET + b"---\na: b\n"}),
    ("duplicate-key", {"manifests/x.yaml": _SECRET + b"kind: Secret\n"}),
    ("metadata-unread", {"metadata/z.yaml": b"annotations: {a: b}\n"}),
    ("metadata-unread", {"metadata/z.yaml": b"properties: [text]\n"}),
    ("several-csvs", {"manifests/x.yaml": b"kind: ClusterServiceVersion"}),
    ("duplicate-crd", {"manifests/x.yaml": samplebundle.files()[CRD_FILE]}),
]


@pytest.mark.parametrize(("rule", "extra"), FILES)
def test_a_file_too_many_is_found(rule: str, extra: dict[str, bytes]) -> None:
    found = [each for each in check({**samplebundle.files(), **extra}) if each.rule == rule]
    assert [each.place.file for each in found] == list(extra)


def test_dependencies_that_nobody_reads_are_found() -> None:
    files = samplebundle.files() | {DEPENDENCIES_FILE: b"dependencies: [{type: olm.gvk}, text]\n"}
    assert rules(check(files)) == {("metadata-unread", "warning")}


def test_annotations_in_the_wrong_place_are_found_and_read() -> None:
    files = samplebundle.files()
    files["annotations.yaml"] = files.pop(ANNOTATIONS_FILE)
    assert rules(check(files)) == {("annotations-missing", "error")}


@pytest.mark.parametrize("missing", ["manifests", "metadata"])
def test_a_missing_directory_is_found(missing: str) -> None:
    files = {path: data for path, data in samplebundle.files().items() if not path.startswith(missing)}
    assert (f"{missing}-directory-missing", "error") in rules(check(files))


def test_findings_point_at_the_line_of_the_field() -> None:
    documents = samplebundle.documents()
    documents[CSV_FILE]["spec"]["links"][0]["url"] = "nowhere"
    text = yaml.dump(documents[CSV_FILE])
    files = samplebundle.files() | {CSV_FILE: text.encode()}
    (finding,) = check(files, ["operatorhubv2"])
    assert (finding.rule, finding.place.file) == ("link-url-invalid", CSV_FILE)
    assert "nowhere" in text.splitlines()[finding.place.line - 1]
    assert finding.subject == "cache.v1.2.3"


def test_all_findings_come_at_once_and_each_once() -> None:
    findings = check(
        changed(
            (CSV_FILE, ("spec", "displayName"), ""),
            (CSV_FILE, ("spec", "minKubeVersion"), "soon"),
            (CRD_FILE, ("spec", "scope"), ""),
            ("manifests/service.yaml", ("metadata", "namespace"), "x"),
        ),
        ["operatorhubv2", "operatorhub"],
    )
    assert len(findings) == len(set(findings))
    assert {"required-field-missing", "min-kube-version-invalid", "invalid-crd", "namespace-forbidden"} <= {
        finding.rule for finding in findings
    }


def test_a_bundle_with_a_release_must_be_named_by_it() -> None:
    name = "cache-v1.2.3-1"
    release = (CSV_FILE, ("spec", "release"), "1")
    assert check(changed((CSV_FILE, ("metadata", "name"), name), release)) == []
    substituting = (CSV_FILE, (*_NOTES, "olm.substitutesFor"), "cache.v1.2.2")
    found = check(changed((CSV_FILE, ("metadata", "name"), name), release, substituting))
    assert rules(found) == {("release-with-substitutes", "error")}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (450_000, set()),
        (630_000, {("bundle-nearly-too-large", "warning")}),
        (900_000, {("bundle-too-large", "error")}),
    ],
)
def test_the_size_counts_as_it_is_stored(size: int, expected: set[tuple[str, str]]) -> None:
    noise = b"".join(number.to_bytes(4, "big") for number in _scrambled(size // 4)).hex()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"a": noise}}
    assert rules(check(changed(("manifests/secret.yaml", (), secret)))) == expected


def _scrambled(count: int) -> list[int]:
    value, found = 1, []
    for _ in range(count):
        value = (value * 1664525 + 1013904223) % 2**32
        found.append(value ^ (value >> 15))
    return found


@pytest.mark.parametrize(
    ("version", "severity"), [("1.25", "error"), ("v1.26.3", "error"), ("1.24.9", "warning"), ("", "warning")]
)
def test_a_removed_api_is_an_error_where_it_is_gone(version: str, severity: str) -> None:
    files = changed(
        (CSV_FILE, ("spec", "minKubeVersion"), "1.20.0"),
        ("manifests/pdb.yaml", ("apiVersion",), "policy/v1beta1"),
    )
    found = check(files, ["alpha-deprecated-apis"], {"k8s-version": version})
    assert rules(found) == {("removed-api", severity)}


def test_a_version_that_is_none_is_said_of_the_option() -> None:
    found = check(samplebundle.files(), ["alpha-deprecated-apis"], {"k8s-version": "newest"})
    assert rules(found) == {("k8s-version-invalid", "error")}


def test_categories_may_be_ones_own() -> None:
    own = {"categories": '{"categories": ["Storage"]}'}
    assert [each.message for each in check(samplebundle.files(), ["categories"], own)] == [
        "value 'Database' is not in the set of custom categories"
    ]
    broken = check(samplebundle.files(), ["categories"], {"categories": "[]"})
    assert rules(broken) == {("categories-file-invalid", "error")}


_MAXIMUM = '[{"type": "olm.maxOpenShiftVersion", "value": "%s"}]'
COMMUNITY = [
    (_MAXIMUM % "4.8", "versions='v4.6-v4.8'", set()),
    (_MAXIMUM % "4.9", "versions==v4.8", {"max-openshift-version-too-high"}),
    (_MAXIMUM % "4.8.1", "versions==v4.8", {"max-openshift-version-too-exact"}),
    (_MAXIMUM % "x", "versions==v4.8", {"max-openshift-version-invalid"}),
    ("[]", "versions=v4.6", {"max-openshift-version-missing", "openshift-label-too-high"}),
    ("{}", "versions=v4.6-v4.9", {"properties-annotation-invalid", "openshift-label-too-high"}),
    ("", "versions", {"max-openshift-version-missing", "openshift-label-invalid"}),
    ("", "versions=", {"max-openshift-version-missing", "openshift-label-invalid"}),
]


@pytest.mark.parametrize(("properties", "label", "expected"), COMMUNITY)
def test_old_apis_must_keep_to_old_openshift(properties: str, label: str, expected: set[str]) -> None:
    files = changed(
        ("manifests/role.yaml", ("apiVersion",), "rbac.authorization.k8s.io/v1beta1"),
        (CSV_FILE, (*_NOTES, "olm.properties"), properties),
    )
    index = {"index": f"FROM scratch\nLABEL com.redhat.openshift.{label}\n"}
    found = {finding.rule for finding in check(files, ["community"], index)}
    assert found - {"properties-annotation"} == expected
    assert check(samplebundle.files(), ["community"], index) == []


def test_the_label_of_the_image_is_asked_for() -> None:
    files = changed(("manifests/role.yaml", ("apiVersion",), "rbac.authorization.k8s.io/v1beta1"))
    assert "openshift-label-unchecked" in {each.rule for each in check(files, ["community"])}
    bare = check(files, ["community"], {"index": "FROM scratch"})
    assert "openshift-label-missing" in {each.rule for each in bare}


MULTIARCH: list[tuple[list[tuple[str, str]] | None, set[str]]] = [
    ([("linux", "amd64"), ("unknown", "unknown")], set()),
    (None, {"image-not-inspected"}),
    ([], {"platform-unsupported", "node-affinity-extra", "image-platform-missing"}),
    ([("linux", "amd64"), ("linux", "arm64")], {"arch-label-missing", "node-affinity-short"}),
    (
        [("linux", "amd64"), ("windows", "amd64")],
        {"os-label-missing", "node-affinity-short"},
    ),
]


@pytest.mark.parametrize(("platforms", "expected"), MULTIARCH)
def test_images_and_labels_must_agree(platforms: list[tuple[str, str]] | None, expected: set[str]) -> None:
    options = {} if platforms is None else {"platforms": {IMAGE: platforms}}
    assert {each.rule for each in check(samplebundle.files(), ["multiarch"], options)} == expected


def test_optional_checks_are_chosen_by_name_and_by_suite() -> None:
    assert [suite.name for suite in selected(["name=good-practices", "categories"])] == [
        "categories",
        "good-practices",
    ]
    assert [suite.name for suite in selected(["suite=operatorframework"])] == [
        "operatorhubv2",
        "capabilities",
        "categories",
        "alpha-deprecated-apis",
        "good-practices",
    ]
    assert [suite.name for suite in selected(["suite=operatorframework,name=categories"])] == ["categories"]
    with pytest.raises(ValueError, match="matches no optional check"):
        selected(["name=other"])


def test_an_optional_check_runs_only_when_chosen() -> None:
    files = changed((CSV_FILE, ("spec", "provider"), {}))
    assert check(files) == []
    assert rules(check(files, ["suite=operatorframework"])) == {("provider-name-missing", "error")}


def test_every_rule_of_the_tables_has_one_severity_or_a_reason() -> None:
    both = {rule for rule, *_ in BROKEN} & {rule for rule, *_ in WARNED}
    assert both == set()
    assert {Severity.ERROR, Severity.WARNING} == {
        each.severity for each in check(changed((CSV_FILE, ("spec",), {})), ALL)
    }


def _deep_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE = {
    "deep JSON": b'{"a":' * 100_000,
    "deep YAML": b"[" * 100_000,
    "deep blocks": b"\n".join(b" " * depth + b"a:" for depth in range(2_000)),
    "aliases": b"a: &a [x, x]\nb: &b [*a, *a, *a, *a]\n"
    + b"".join(
        b"%c: &%c [%b]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 9)) for name in range(99, 120)
    ),
    "one long line": b"a" * 2_000_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_findings(content: bytes) -> None:
    for path in (CSV_FILE, CRD_FILE, ANNOTATIONS_FILE, "manifests/x.yaml"):
        assert check({**samplebundle.files(), path: content}, ALL, PLATFORMS)


def test_a_schema_as_deep_as_can_be_is_judged() -> None:
    path: Path = ("spec", "versions", 0, "schema", "openAPIV3Schema")
    assert check(changed((CRD_FILE, path, _deep_schema(115)))) == []


_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: Path = ()) -> list[Path]:
    if not isinstance(value, dict | list):
        return []
    pairs: list[tuple[str | int, Any]] = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    return [found for key, each in pairs for found in ((*path, key), *_places(each, (*path, key)))]


_PLACES = [(file, path) for file, value in samplebundle.documents().items() for path in [(), *_places(value)]]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(_PLACES), _values), min_size=1, max_size=3), st.data())
def test_any_value_anywhere_gives_findings_never_a_crash(changes: list[Any], data: st.DataObject) -> None:
    documents = samplebundle.documents()
    for (file, path), value in changes:
        try:
            documents[file] = value if not path else documents[file]
            holder = documents[file]
            for key in path[:-1]:
                holder = holder[key]
            if path:
                holder[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    options = {"platforms": data.draw(st.just({IMAGE: [("linux", "amd64")]}) | _values), "index": "LABEL x=y"}
    for finding in check(samplebundle.files(documents), ALL, options):
        assert finding.rule
        assert finding.message


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(samplebundle.files())), st.binary(max_size=200), min_size=1))
def test_any_bytes_in_any_file_give_findings_never_a_crash(replaced: dict[str, bytes]) -> None:
    assert check({**samplebundle.files(), **replaced}, ALL, PLATFORMS)
