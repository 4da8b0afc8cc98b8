"""Lints: what opm lets pass in a catalog, and what its users would miss if it replaced the published one.

Blobs stream by once, as in `validate`; only their outline is kept. A blob that cannot be read is left to the
validator. Of all lints, only those that take a published version away or change it are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podium.api.findings import Finding
from podium.catalog.blobs import Blob, Bundle, CatalogError, typed
from podium.catalog.lint import blobs as lint_blobs
from podium.catalog.lint import channels as lint_channels
from podium.catalog.lint import published as lint_published
from podium.catalog.lint.published import Content
from podium.catalog.outline import Outlining, Package


def lint(blobs: Iterable[Blob], published: Iterable[Blob] | None = None) -> list[Finding]:
    """Everything odd about a catalog, and what it takes away from users of the published one, if given."""
    survey = _survey(blobs, contents=published is not None)
    findings = survey.findings
    for package in survey.packages.values():
        findings += lint_channels.look(package)
    if published is not None:
        findings += _losses(survey, published)
    return sorted(findings, key=lambda finding: (finding.place.file, finding.place.document))


@dataclass(slots=True)
class _Survey:
    """A catalog that has passed by."""

    packages: dict[str, Package] = field(default_factory=dict)
    contents: dict[tuple[str, str], Content] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def _survey(blobs: Iterable[Blob], *, contents: bool) -> _Survey:
    survey, outlining = _Survey(), Outlining()
    for blob in blobs:
        try:
            fields = typed(blob)
            outlining.add(blob, fields)
        except CatalogError:
            continue
        survey.findings += lint_blobs.look(blob, fields)
        if contents and isinstance(fields, Bundle):
            survey.contents[fields.package, fields.name] = lint_published.content(fields)
    survey.packages = outlining.packages()
    return survey


def _losses(survey: _Survey, published: Iterable[Blob]) -> Iterator[Finding]:
    before = _survey(published, contents=True)
    for name, package in before.packages.items():
        if name in survey.packages:
            yield from lint_published.look(survey.packages[name], survey.contents, package, before.contents)
        else:
            yield lint_published.removed_package(name)
