"""Everything there is to say about a catalog, found in one pass over it.

Unreadable files do not hide what is wrong with the others. But what lies in them may be just what the others
seem to lack, so rules about how blobs fit together wait until everything can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.api.findings import Finding, Severity
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.lint import lint
from podium.catalog.read import read_on
from podium.catalog.validate import Validator

UNREADABLE = "unreadable"
NO_PACKAGES = "no-packages"
_TEMPLATES = ("olm.semver", "olm.template.basic", "olm.template.substitutes", "olm.composite")


def check(
    streams: Iterable[tuple[str, Iterable[bytes]]],
    published: Iterable[Blob] | None = None,
    *,
    lints: bool = True,
    to_publish: bool = False,
) -> list[Finding]:
    """All findings of opm's rules and of our lints, those about a published catalog included.

    opm accepts a catalog without packages, so that is a warning; `to_publish` makes it an error.
    """
    problems: list[CatalogError] = []
    validator = Validator()

    def passing() -> Iterator[Blob]:
        for blob in read_on(streams, problems):
            validator.look_at(blob)
            yield blob

    found = lint(passing(), published) if lints or published is not None else _none_after(passing())
    broken = [Finding(Severity.ERROR, UNREADABLE, error.problem, place=error.place) for error in problems]
    if broken:
        return [*broken, *validator.findings(whole=False)]
    if not validator.packages and (lints or to_publish):
        severity = Severity.ERROR if to_publish else Severity.WARNING
        found = [*found, Finding(severity, NO_PACKAGES, _no_packages(validator))]
    return [*validator.findings(), *found]


def _no_packages(validator: Validator) -> str:
    made_from = sorted(schema for schema in validator.other_schemas if schema in _TEMPLATES)
    if made_from:
        return f"this is a template ({', '.join(made_from)}): make the catalog with `podium catalog template`"
    return "there is no package in it: nobody can install anything from this catalog"


def _none_after(blobs: Iterable[Blob]) -> list[Finding]:
    for _ in blobs:
        pass
    return []
