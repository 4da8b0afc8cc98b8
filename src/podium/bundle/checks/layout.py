"""Whether the files have the form of a bundle: two directories, annotations, dependencies."""

from __future__ import annotations

import posixpath
from typing import Any

from podium.bundle import dependencies
from podium.bundle.annotations import folded
from podium.bundle.checks.context import Report
from podium.bundle.documents import DocumentError, Documents
from podium.bundle.model import (
    CHANNELS_KEY,
    CSV_KIND,
    DEFAULT_CHANNEL_KEY,
    HELM,
    MANIFESTS_DIR,
    MANIFESTS_KEY,
    MEDIATYPE_KEY,
    METADATA_DIR,
    METADATA_KEY,
    PACKAGE_KEY,
    PLAIN,
    REGISTRY_V1,
    Files,
    text,
)
from podium.bundle.read import Metadata, within

_REQUIRED = (MEDIATYPE_KEY, MANIFESTS_KEY, METADATA_KEY, PACKAGE_KEY, CHANNELS_KEY)


def check(source: Documents, metadata: Metadata, report: Report) -> None:
    """Reports what is wrong with the layout and the metadata files."""
    files = source.files
    missing = [where for where in (MANIFESTS_DIR, METADATA_DIR) if not any(within(files, where))]
    for where in missing:
        name = where.rstrip("/")
        report.error(f"{name}-directory-missing", f"unable to locate {name} directory")
    if missing:
        return
    if not flat_files(files, MANIFESTS_DIR):
        report.error("manifests-empty", "the manifests directory contains no yaml files")
    _unread(source, metadata, report)
    if metadata.annotations_file and not metadata.annotations_file.startswith(METADATA_DIR):
        message = "could not find annotations file in metadata/; this one is not looked for by others"
        report.error("annotations-missing", message, file=metadata.annotations_file)
    if metadata.annotations_file:
        _annotations(metadata, media_type(source), report)
    for index, dependency in enumerate(metadata.dependencies):
        for problem in dependencies.problems(dependency):
            where_to = metadata.dependencies_file
            report.error(
                "dependency-invalid",
                problem,
                file=where_to,
                path=("dependencies", index),
                subject=dependency.type,
            )


def _unread(source: Documents, metadata: Metadata, report: Report) -> None:
    """Of several files with the same role the first counts; one with a broken entry counts for nothing."""
    used = {
        "annotations": metadata.annotations_file,
        "dependencies": metadata.dependencies_file,
        "properties": metadata.properties_file,
    }
    for path in flat_files(source.files, METADATA_DIR):
        for key, file in used.items():
            if folded(source.value(path), key) and path != file:
                why = f"those in {file} are" if file else "an entry is malformed"
                message = f"the {key} in this file are not read: {why}"
                report.warn("metadata-unread", message, file=path, path=(key,))


def flat_files(files: Files, directory: str) -> list[str]:
    """The files directly in a directory, in order."""
    return sorted(path for path in within(files, directory) if "/" not in path.removeprefix(directory))


def media_type(source: Documents, directory: str = MANIFESTS_DIR) -> str:
    """What kind of bundle the manifests make, whatever the annotations say; empty if there are no files."""
    flat = flat_files(source.files, directory)
    if not flat:
        return ""
    if _is_chart(source.value(directory + "Chart.yaml")):
        return HELM
    for path in flat:
        try:
            if source.object(path)["kind"] == CSV_KIND:
                return REGISTRY_V1
        except DocumentError:
            continue
    return PLAIN


def _is_chart(value: Any) -> bool:
    return isinstance(value, dict) and bool(text(value.get("name")))


def _annotations(metadata: Metadata, detected: str, report: Report) -> None:
    annotations, file = metadata.annotations, metadata.annotations_file

    def error(rule: str, message: str, key: str) -> None:
        path = ("annotations", key) if key in annotations else ("annotations",)
        report.error(rule, message, file=file, path=path, subject=key)

    for key in _REQUIRED:
        if key not in annotations:
            error("annotation-missing", f"missing annotation {key!r}", key)
    said = annotations.get(MEDIATYPE_KEY, "")
    if said != detected:
        error("mediatype-mismatch", f"expecting {detected!r} instead of {said!r}", MEDIATYPE_KEY)
    for key, wanted in ((MANIFESTS_KEY, MANIFESTS_DIR), (METADATA_KEY, METADATA_DIR)):
        if key in annotations and posixpath.normpath(annotations[key]) != wanted.rstrip("/"):
            error("annotation-directory", f"expecting {wanted!r} instead of {annotations[key]!r}", key)
    if not annotations.get(CHANNELS_KEY):
        error("channels-empty", "expecting a non-empty value: a bundle belongs to a channel", CHANNELS_KEY)
    if DEFAULT_CHANNEL_KEY in annotations and not annotations[DEFAULT_CHANNEL_KEY]:
        error("default-channel-empty", "expecting a non-empty value, or no such key", DEFAULT_CHANNEL_KEY)
    if PACKAGE_KEY in annotations and not annotations[PACKAGE_KEY]:
        path = ("annotations", PACKAGE_KEY)
        report.warn("package-empty", "the package has no name", file=file, path=path, subject=PACKAGE_KEY)
