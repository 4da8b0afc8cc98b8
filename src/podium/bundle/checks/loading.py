"""Whether every manifest can be read, and read as what it says it is.

Beyond what the originals say, this warns of what they pass over in silence: documents after the first, keys
that are set twice, and what the tools accept and a cluster does not: fields whose name has the wrong case,
and numbers where text is wanted.
"""

from __future__ import annotations

from podium.bundle import kinds, typed
from podium.bundle.checks.context import Decoded, Report
from podium.bundle.documents import DocumentError, Documents
from podium.bundle.model import CRD_KIND, CRD_V1, CRD_V1BETA1, CSV_KIND, METADATA_DIR, Manifest
from podium.bundle.read import Loaded, within

_MOST = 20


def check(loaded: Loaded, source: Documents, report: Report) -> None:
    """Reports what could not be loaded, and what was passed over."""
    files = source.files
    has_metadata = any(within(files, METADATA_DIR))  # if not, that is said already
    report.extend(tuple(f for f in loaded.findings if has_metadata or f.rule != "annotations-missing"))
    for path in sorted({*within(files, loaded.manifests_dir), *within(files, METADATA_DIR)}):
        _passed_over(path, source, report)


def _passed_over(path: str, source: Documents, report: Report) -> None:
    try:
        first = source.first(path)
    except DocumentError:
        return  # reported already, or a file of no interest
    if first.more:
        report.warn(
            "several-documents",
            "only the first document of the file is part of the bundle; a comment before `---` is one, too",
            file=path,
        )
    for duplicate in first.duplicates[:_MOST]:
        report.warn("duplicate-key", f"{duplicate}: the last value counts", file=path)


def decoded(manifest: Manifest, report: Report) -> Decoded:
    """The manifest as the originals decode it; reports what keeps them from doing so."""
    shape, rule = _shape_of(manifest)
    result = typed.decode(manifest.value, shape)
    name = manifest.path.rpartition("/")[2]
    for problem in result.problems:
        shown = _shown(problem.path)
        report.error(
            rule, f"unable to parse {name}: {shown}: {problem.message}", file=manifest.path, path=problem.path
        )
    for path, proper in result.miscased:
        message = f"{_shown(path)} should be spelt {proper}: clusters do not know it otherwise"
        report.warn("field-case", message, file=manifest.path, path=path)
    for path in result.coerced[:_MOST]:
        message = f"{_shown(path)} should be text: clusters refuse a number or boolean here, put it in quotes"
        report.warn("text-expected", message, file=manifest.path, path=path)
    return Decoded(manifest, result.value if isinstance(result.value, dict) else {})


def _shape_of(manifest: Manifest) -> tuple[typed.Shape, str]:
    match manifest.value["kind"], manifest.value.get("apiVersion"):
        case k, _ if k == CSV_KIND:
            return kinds.CSV, "csv-undecodable"
        case k, v if k == CRD_KIND and v == CRD_V1BETA1:
            return kinds.OLD_CRD, "crd-undecodable"
    return kinds.CRD, "crd-undecodable"


def is_crd(manifest: Manifest) -> bool:
    """Whether this is a CRD of a version that is known."""
    value = manifest.value
    return value["kind"] == CRD_KIND and value.get("apiVersion") in (CRD_V1, CRD_V1BETA1)


def _shown(path: typed.Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the object"
