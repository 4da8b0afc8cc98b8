"""Reading bundles: strictly, with everything that is wrong at once, and as leniently as opm does."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import samplebundle
from harness.samplebundle import ANNOTATIONS_FILE, CRD_FILE, CSV_FILE, DEPENDENCIES_FILE
from podium.bundle.documents import DocumentError, first
from podium.bundle.model import BundleError, Files
from podium.bundle.read import provided_apis, read, read_leniently


def test_a_bundle_is_read_with_its_objects_by_role() -> None:
    bundle = read(samplebundle.files())
    assert (bundle.name, bundle.package, bundle.version) == ("cache.v1.2.3", "cache", "1.2.3")
    assert bundle.channels == ("stable", "fast")
    assert bundle.default_channel == "stable"
    assert [crd["metadata"]["name"] for crd in bundle.crds] == ["caches.cache.example.com"]
    assert [each["kind"] for each in bundle.others] == [
        "PodDisruptionBudget",
        "PriorityClass",
        "ClusterRole",
        "Service",
        "ServiceAccount",
    ]
    assert [each.type for each in bundle.dependencies] == [
        "olm.gvk",
        "olm.package",
        "olm.label",
        "olm.constraint",
    ]
    assert provided_apis(bundle) == [("cache.example.com", "v1", "Cache", "caches")]


def test_objects_come_in_the_order_of_their_files() -> None:
    bundle = read(dict(reversed(samplebundle.files().items())))
    assert [manifest.path for manifest in bundle.manifests] == sorted(
        path for path in samplebundle.files() if path.startswith("manifests/")
    )
    assert [manifest.value for manifest in bundle.manifests] == list(bundle.objects)


def test_metadata_files_are_known_by_content_not_by_name() -> None:
    files = samplebundle.files()
    files["metadata/b.yaml"] = files.pop(ANNOTATIONS_FILE)
    files["metadata/a.json"] = files.pop(DEPENDENCIES_FILE)
    files["metadata/README"] = b"nothing: [of interest"
    bundle = read(files)
    assert bundle.package == "cache"
    assert len(bundle.dependencies) == 4


def test_annotations_outside_the_metadata_directory_are_found() -> None:
    files = samplebundle.files()
    files["elsewhere/annotations.yaml"] = files.pop(ANNOTATIONS_FILE)
    assert read(files).package == "cache"


def test_the_annotations_say_where_the_manifests_are() -> None:
    files = {path.replace("manifests/", "objects/"): data for path, data in samplebundle.files().items()}
    changed = samplebundle.documents()[ANNOTATIONS_FILE]
    changed["annotations"]["operators.operatorframework.io.bundle.manifests.v1"] = "./objects/"
    files |= samplebundle.files({ANNOTATIONS_FILE: changed})
    assert read(files).name == "cache.v1.2.3"


@pytest.mark.parametrize("directory", ["nowhere/", "../manifests/", "/", ""])
def test_a_manifests_annotation_that_points_nowhere_is_not_followed(directory: str) -> None:
    changed = samplebundle.documents()
    changed[ANNOTATIONS_FILE]["annotations"]["operators.operatorframework.io.bundle.manifests.v1"] = directory
    assert read(samplebundle.files(changed)).name == "cache.v1.2.3"


def test_everything_in_the_way_is_said_at_once() -> None:
    files = samplebundle.files()
    files["manifests/nested/a.yaml"] = b"a: b"
    files["manifests/.hidden"] = b""
    files["manifests/broken.yaml"] = b"a: [\nb: c"
    files["manifests/second.yaml"] = files[CSV_FILE]
    files["manifests/odd.yaml"] = b"apiVersion: apiextensions.k8s.io/v2\nkind: CustomResourceDefinition"
    del files[ANNOTATIONS_FILE]
    with pytest.raises(BundleError) as caught:
        read(files)
    assert {finding.rule for finding in caught.value.findings} == {
        "annotations-missing",
        "nested-directory",
        "hidden-file",
        "undecodable-file",
        "several-csvs",
        "crd-version",
    }
    assert "manifests/broken.yaml" in str(caught.value)


LENIENT: list[tuple[str, Files]] = [
    ("a hidden file", {"manifests/.hidden": b"kind: Pod"}),
    ("a nested file", {"manifests/nested/x.yaml": b"kind: Pod"}),
    ("a broken file", {"manifests/broken.yaml": b"{"}),
    ("text", {"manifests/README.md": b"# Hello"}),
    ("a comment before the document", {"manifests/commented.yaml": b"# hi\n---\nkind: Pod\n"}),
    ("a second ClusterServiceVersion", {"manifests/z.yaml": b"kind: ClusterServiceVersion\n"}),
]


@pytest.mark.parametrize("extra", [files for _, files in LENIENT], ids=[name for name, _ in LENIENT])
def test_reading_leniently_passes_over(extra: Files) -> None:
    plain = read_leniently(samplebundle.files())
    assert read_leniently({**samplebundle.files(), **extra}).objects == plain.objects


def test_reading_leniently_keeps_to_the_fixed_directories() -> None:
    files = {path.replace("manifests/", "objects/"): data for path, data in samplebundle.files().items()}
    with pytest.raises(BundleError, match="no bundle objects found"):
        read_leniently(files)


REFUSED = [
    (CSV_FILE, b"kind: Pod\n", "no csv in bundle"),
    (CRD_FILE, b"kind: Pod\n", "couldn't find cache.example.com/v1/Cache"),
    (ANNOTATIONS_FILE, b"annotations: {a: b}\n", "Could not find annotations file"),
    (CSV_FILE, b"kind: ClusterServiceVersion\n", "no spec"),
    (CSV_FILE, b"kind: ClusterServiceVersion\nspec: {version: 1.0}\n", "spec.version is not text"),
    (CSV_FILE, b"kind: ClusterServiceVersion\nmetadata: {name: 5}\nspec: {}\n", "expected a string"),
]


@pytest.mark.parametrize(("file", "content", "words"), REFUSED)
def test_reading_leniently_refuses_what_opm_refuses(file: str, content: bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words):
        read_leniently({**samplebundle.files(), file: content})


FIRST = [
    (b"a: 1\n---\nb: 2\n", {"a": 1}, True),
    (b"---\na: 1\n", {"a": 1}, False),
    (b"--- # note\na: 1\n---\n", {"a": 1}, False),
    (b"# note\n---\na: 1\n", None, True),
    (b'{"a": 1}{"b": 2}', {"a": 1}, True),
    (b"{a: 1}\n", {"a": 1}, False),
    (b"a: 1\r\n---\r\nb: 2\r\n", {"a": 1}, True),
    (b"a: 1\n...\n", {"a": 1}, False),
]


@pytest.mark.parametrize(("data", "value", "more"), FIRST)
def test_the_first_document_is_cut_as_kubernetes_cuts_it(data: bytes, value: object, more: bool) -> None:
    found = first(data)
    assert (found.value, found.more) == (value, more)


def test_the_last_of_two_equal_keys_counts_and_is_reported() -> None:
    found = first(b"a: 1\na: 2\n")
    assert found.value == {"a": 2}
    assert len(found.duplicates) == 1


@pytest.mark.parametrize("data", [b"", b"--- text\na: 1\n", b"a: .inf\n", b"a: .NaN\n", b"{", b"a: [" * 400])
def test_what_cannot_be_read_is_a_document_error(data: bytes) -> None:
    with pytest.raises(DocumentError):
        first(data)


@given(
    st.dictionaries(st.sampled_from([CSV_FILE, CRD_FILE, ANNOTATIONS_FILE, "manifests/x", "x"]), st.binary())
)
def test_any_bytes_are_a_bundle_or_an_error_that_says_why(files: dict[str, bytes]) -> None:
    for reading in (read, read_leniently):
        with contextlib.suppress(BundleError):
            assert reading(files).csv
