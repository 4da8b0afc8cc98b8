"""Files read as operator-controller reads them before it converts."""

from __future__ import annotations

import pytest

from podium.bundle.convert.source import read
from podium.bundle.model import BundleError

ANNOTATIONS = b"annotations: {operators.operatorframework.io.bundle.package.v1: op}"
CSV = b"kind: ClusterServiceVersion\nmetadata: {name: op.v1}\n"


def bundle_with(*manifests: bytes) -> dict[str, bytes]:
    files = {f"manifests/{number}": manifest for number, manifest in enumerate(manifests)}
    return {"metadata/annotations.yaml": ANNOTATIONS} | files


@pytest.mark.parametrize(
    ("manifest", "kinds"),
    [
        (b"kind: A", ["A"]),
        (b"---\n# nothing\n---\nkind: A\n--- # more\nkind: B\n---\n", ["A", "B"]),
        (b'{"kind": "A"}\n{"kind": "B"}', ["A", "B"]),
        (b"{kind: A}", ["A"]),
        (b"kind: List\nitems: [{kind: A}, {kind: List, items: [{kind: B}]}]", ["A", "B"]),
        (b"kind: AList\napiVersion: v1\nitems: [{}]", ["A"]),
        (b"kind: A\nitems: null", ["A"]),
        (b"kind: A\nkind: B", ["B"]),
        (b"", []),
    ],
)
def test_every_document_counts_and_lists_are_taken_apart(manifest: bytes, kinds: list[str]) -> None:
    found = read(bundle_with(manifest, CSV))
    assert [obj["kind"] for obj in found.others] == kinds
    assert found.package == "op"


def test_the_last_of_several_cluster_service_versions_wins() -> None:
    assert read(bundle_with(CSV, CSV.replace(b"v1", b"v2"))).name == "op.v2"


@pytest.mark.parametrize(
    ("manifest", "message", "line"),
    [
        (b"metadata: {}", "Object 'Kind' is missing", 0),
        (b"- kind: A", "no object", 0),
        (b"kind: List\nitems: [5]", "items", 0),
        (b"kind: A\n--- kind: B", "invalid Yaml document separator: kind: B", 0),
        (b"kind: A\n---\nkind: [", "", 3),
        (b"\xff", "", 0),
    ],
)
def test_what_cannot_be_read_is_told_with_its_file(manifest: bytes, message: str, line: int) -> None:
    with pytest.raises(BundleError) as error:
        read(bundle_with(manifest, CSV))
    (finding,) = error.value.findings
    assert message in finding.message
    assert finding.place.file == "manifests/0"
    assert finding.place.line >= line


def test_everything_that_cannot_be_read_is_told_at_once() -> None:
    with pytest.raises(BundleError) as error:
        read({"manifests/sub/a.yaml": CSV, "manifests/b.yaml": b"metadata: {}"})
    rules = {(finding.rule, finding.place.file) for finding in error.value.findings}
    assert rules == {
        ("annotations-missing", "metadata/annotations.yaml"),
        ("manifest", "manifests/b.yaml"),
        ("manifest", "manifests/sub/a.yaml"),
    }


def test_a_cluster_service_version_is_needed() -> None:
    with pytest.raises(BundleError, match="no ClusterServiceVersion found"):
        read(bundle_with(b"kind: A"))
