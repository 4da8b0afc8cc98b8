"""Reads a bundle from its files.

`read` is strict: it wants what a bundle must have and raises `BundleError` with everything that is in the
way. `read_leniently` takes what `opm render` takes: fixed directories, files that cannot be parsed left out,
the first ClusterServiceVersion of several. Both see one object per file, the first.

Which directory holds the manifests is said by the annotations, which are looked for in `metadata/` first and
then everywhere, as the originals do.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle import annotations as annotation_files
from podium.bundle import lenient
from podium.bundle.documents import DocumentError, Documents
from podium.bundle.model import (
    CRD_KIND,
    CRD_V1,
    CRD_V1BETA1,
    CSV_KIND,
    MANIFESTS_DIR,
    MANIFESTS_KEY,
    METADATA_DIR,
    Bundle,
    BundleError,
    Files,
    Manifest,
    Typed,
    items,
    member,
    text,
)


def read(files: Files) -> Bundle:
    """The bundle in the files; BundleError lists everything that keeps them from being one."""
    loaded = load(Documents(files))
    if loaded.bundle is None or loaded.findings:
        raise BundleError(loaded.findings)
    return loaded.bundle


@dataclass(frozen=True, slots=True)
class Loaded:
    """What could be made of the files, and the errors met; no bundle if there is no ClusterServiceVersion."""

    bundle: Bundle | None
    findings: tuple[Finding, ...]
    metadata: Metadata
    manifests_dir: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata files, by role; empty paths where there is no such file."""

    annotations: dict[str, str]
    dependencies: tuple[Typed, ...] = ()
    properties: tuple[Typed, ...] = ()
    annotations_file: str = ""
    dependencies_file: str = ""
    properties_file: str = ""


def load(source: Documents) -> Loaded:
    """Reads as much as can be read, and says what cannot: the errors that `read` raises."""
    files = source.files
    metadata = find_metadata(source)
    directory = manifests_directory(metadata, files)
    findings: list[Finding] = []
    if not metadata.annotations_file:
        findings.append(
            _error("annotations-missing", "no file with bundle annotations found under metadata/")
        )
    for key in annotation_files.not_text(source.value(metadata.annotations_file)):
        message = f"the annotation {key} is not text"
        findings.append(_error("annotation-not-text", message, metadata.annotations_file))
    manifests: list[Manifest] = []
    for path in sorted(within(files, directory)):
        manifest, problem = _manifest(path, source, directory)
        if manifest is not None:
            manifests.append(manifest)
        if problem is not None:
            findings.append(problem)
    findings += _wrong_kinds(manifests, directory)
    csvs = [manifest.value for manifest in manifests if manifest.value["kind"] == CSV_KIND]
    bundle = _assemble(csvs[0], manifests, metadata, files) if csvs else None
    return Loaded(bundle, tuple(findings), metadata, directory)


def _manifest(path: str, source: Documents, directory: str) -> tuple[Manifest | None, Finding | None]:
    below = path.removeprefix(directory)
    if "/" in below:
        return None, _error(
            "nested-directory", f"the manifests directory contains a directory: {below.split('/')[0]}", path
        )
    if below.startswith("."):
        return None, _error("hidden-file", f"the manifests directory has a hidden file: {below}", path)
    try:
        return Manifest(path, source.object(path)), None
    except DocumentError as error:
        return None, _error("undecodable-file", f"unable to decode object: {error}", path, error.line)


def _wrong_kinds(manifests: list[Manifest], directory: str) -> Iterable[Finding]:
    csvs = [manifest for manifest in manifests if manifest.value["kind"] == CSV_KIND]
    if not csvs:
        yield _error(
            "csv-missing", f"unable to find a {CSV_KIND} in the manifests directory {directory}", directory
        )
    for extra in csvs[1:]:
        yield _error("several-csvs", f"contains multiple CSVs; the first is in {csvs[0].path}", extra.path)
    for manifest in manifests:
        version = manifest.value.get("apiVersion")
        if manifest.value["kind"] == CRD_KIND and version not in (CRD_V1, CRD_V1BETA1):
            yield _error("crd-version", f"unsupported CRD version {version!r}", manifest.path)


def _assemble(csv: Object, manifests: Iterable[Manifest], metadata: Metadata, files: Files) -> Bundle:
    kept = tuple(manifests)
    return Bundle(
        csv=csv,
        crds=tuple(m.value for m in kept if m.value["kind"] == CRD_KIND),
        objects=tuple(m.value for m in kept),
        annotations=metadata.annotations,
        dependencies=metadata.dependencies,
        properties=metadata.properties,
        manifests=kept,
        files=files,
    )


def read_leniently(files: Files) -> Bundle:
    """The bundle that `opm render` would see; BundleError, in opm's words, where it would fail.

    `manifests/` and `metadata/` are fixed; sub-directories, hidden files and files that cannot be parsed are
    left out; of several ClusterServiceVersions the first counts; annotations are the three that opm knows.
    CRDs that the ClusterServiceVersion owns must be there.
    """
    source = Documents(files)
    manifests: list[Manifest] = []
    for path in sorted(within(files, MANIFESTS_DIR)):
        below = path.removeprefix(MANIFESTS_DIR)
        if "/" in below or below.startswith("."):
            continue
        try:
            manifest = Manifest(path, source.object(path))
        except DocumentError:
            continue
        if manifest.value["kind"] == CSV_KIND and any(m.value["kind"] == CSV_KIND for m in manifests):
            continue
        manifests.append(manifest)
    csv = next((m.value for m in manifests if m.value["kind"] == CSV_KIND), None)
    if csv is None:
        why = "no csv in bundle" if manifests else "no bundle objects found"
        raise BundleError([_error("csv-missing", why)])
    metadata = find_metadata(source, annotation_files.named_only)
    bundle = _assemble(csv, manifests, metadata, files)
    if objections := lenient.objections(bundle):
        raise BundleError([_error("undecodable", problem) for problem in objections])
    _owned_must_be_there(bundle)
    if not metadata.annotations_file:
        raise BundleError([_error("annotations-missing", "Could not find annotations file")])
    return bundle


def _owned_must_be_there(bundle: Bundle) -> None:
    there = set(provided_apis(bundle))
    for owned in lenient.owned(bundle, "customresourcedefinitions"):
        plural, dot, group = owned["name"].partition(".")
        if not dot:
            problem = f"couldn't parse plural.group from crd name: {plural}"
        elif (group, owned["version"], owned["kind"], plural) not in there:
            problem = f"couldn't find {group}/{owned['version']}/{owned['kind']} ({plural}) in bundle"
        else:
            continue
        message = f"error checking provided apis in bundle {bundle.name}: {problem}"
        raise BundleError([_error("owned-crd-missing", message)])


def provided_apis(bundle: Bundle) -> list[tuple[str, str, str, str]]:
    """Group, version, kind and plural of what the bundle's CRDs and owned API services provide."""
    found: dict[tuple[str, str, str, str], None] = {}
    for crd in bundle.crds:
        if text(crd.get("apiVersion")).rpartition("/")[2] not in ("v1", "v1beta1"):
            continue  # opm takes such a CRD along without a look at it
        spec, names = member(crd, "spec"), member(crd, "spec", "names")
        listed = [text(member(each).get("name")) for each in items(spec, "versions")]
        if crd.get("apiVersion") == CRD_V1BETA1 and text(spec.get("version")):
            listed.append(text(spec.get("version")))
        for version in listed:
            found[text(spec.get("group")), version, text(names.get("kind")), text(names.get("plural"))] = None
    for api in lenient.owned(bundle, "apiservicedefinitions"):
        found[api["group"], api["version"], api["kind"], api["name"]] = None
    return list(found)


Recognise = Callable[[Any], dict[str, str] | None]


def find_metadata(source: Documents, recognise: Recognise = annotation_files.from_document) -> Metadata:
    """The metadata files, known by their content; of several with the same role the first."""
    parsed = [
        (path, value) for path in sorted(within(source.files, METADATA_DIR)) if (value := source.value(path))
    ]
    flat = [(path, value) for path, value in parsed if "/" not in path.removeprefix(METADATA_DIR)]
    annotations, where = _annotations(flat, recognise)
    if not where and recognise is annotation_files.from_document:
        annotations, where = _annotations(
            ((path, value) for path in sorted(source.files) if (value := source.value(path))), recognise
        )
    dependencies, dependencies_file = _typed_list(flat, "dependencies")
    properties, properties_file = _typed_list(flat, "properties")
    return Metadata(annotations, dependencies, properties, where, dependencies_file, properties_file)


def _annotations(parsed: Iterable[tuple[str, Any]], recognise: Recognise) -> tuple[dict[str, str], str]:
    for path, value in parsed:
        found = recognise(value)
        if found is not None:
            return found, path
    return {}, ""


def _typed_list(parsed: Iterable[tuple[str, Any]], key: str) -> tuple[tuple[Typed, ...], str]:
    for path, value in parsed:
        listed = annotation_files.folded(value, key)
        entries = [_typed(each) for each in listed] if isinstance(listed, list) else []
        found = tuple(each for each in entries if each is not None)
        if found and len(found) == len(entries):
            return found, path
    return (), ""


def _typed(value: Any) -> Typed | None:
    """One entry; a null is an empty one, other values that are no mapping make the file unreadable."""
    if value is None:
        return Typed("", None)
    kind = (
        annotation_files.as_text(annotation_files.folded(value, "type")) if isinstance(value, dict) else None
    )
    return None if kind is None else Typed(kind, annotation_files.folded(value, "value"))


def manifests_directory(metadata: Metadata, files: Files) -> str:
    """Where the manifests are: where the annotation says if there are files, else in `manifests/`."""
    said = posixpath.normpath(metadata.annotations.get(MANIFESTS_KEY, "").strip("/") or ".") + "/"
    return said if any(within(files, said)) else MANIFESTS_DIR


def within(files: Files, directory: str) -> Iterable[str]:
    """The paths below a directory."""
    return (path for path in files if path.startswith(directory) and path != directory)


def _error(rule: str, message: str, path: str = "", line: int = 0) -> Finding:
    return Finding(Severity.ERROR, rule, message, place=Place(path, 1 if line else 0, line))
