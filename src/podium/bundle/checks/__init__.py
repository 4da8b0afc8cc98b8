"""Checks of a bundle: those that every bundle must pass, and optional ones chosen by name or suite.

`check` runs everything it can and returns all findings at once; a file that cannot be read costs only the
checks that need it. Each module holds one topic. Rules have stable names; `SUITES` lists the optional checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.api.findings import Finding
from podium.bundle.checks import (
    bundlewide,
    capabilities,
    categories,
    clusterobjects,
    community,
    crds,
    csv,
    goodpractices,
    layout,
    loading,
    multiarch,
    objects,
    operatorhub,
    removedapis,
)
from podium.bundle.checks.context import Report, Subject
from podium.bundle.documents import Documents
from podium.bundle.model import CSV_KIND, HELM, Bundle, Files
from podium.bundle.read import Loaded, load

_FRAMEWORK = "operatorframework"


@dataclass(frozen=True, slots=True)
class Suite:
    """An optional check: how to choose it, what it looks at, and the options it takes."""

    name: str
    description: str
    run: Callable[[Subject, Report], None]
    suite: str = ""
    options: Mapping[str, str] | None = None

    @property
    def labels(self) -> dict[str, str]:
        """What a selection such as `suite=operatorframework` matches."""
        return {"name": self.name} | ({"suite": self.suite} if self.suite else {})


def _operatorhub(subject: Subject, report: Report) -> None:
    for each in (operatorhub, capabilities, categories):
        each.check(subject, report)
    report.warn(
        "check-deprecated",
        'The "operatorhub" validator is deprecated: use operatorhubv2, capabilities and categories',
    )


_RELEASE = {removedapis.OPTION: "the Kubernetes version that the bundle is meant for, such as 1.25"}
_CATEGORIES = {categories.OPTION: "content of a JSON file with categories of your own"}

SUITES: tuple[Suite, ...] = (
    Suite("operatorhubv2", "Metadata that OperatorHub.io asks for.", operatorhub.check, _FRAMEWORK, _RELEASE),
    Suite("capabilities", "The capability level is one of the five.", capabilities.check, _FRAMEWORK),
    Suite("categories", "The categories are known ones.", categories.check, _FRAMEWORK, _CATEGORIES),
    Suite(
        "operatorhub",
        "Deprecated: operatorhubv2, capabilities and categories in one.",
        _operatorhub,
        options=_RELEASE | _CATEGORIES,
    ),
    Suite(
        "community",
        "Deprecated: OpenShift versions of bundles that use APIs removed in Kubernetes 1.22.",
        community.check,
        options={community.OPTION: "content of the Dockerfile with the OpenShift label"},
    ),
    Suite(
        "alpha-deprecated-apis",
        "APIs that Kubernetes has removed since.",
        removedapis.check,
        _FRAMEWORK,
        _RELEASE,
    ),
    Suite("good-practices", "What is allowed but better done otherwise.", goodpractices.check, _FRAMEWORK),
    Suite(
        "multiarch",
        "Images run on the platforms that the labels promise.",
        multiarch.check,
        options={multiarch.OPTION: "what each image offers: pairs of operating system and architecture"},
    ),
    Suite("bundle-objects", "Objects that could harm a cluster.", clusterobjects.check),
)


def selected(selections: Iterable[str]) -> list[Suite]:
    """The optional checks that selections such as `name=good-practices` or `suite=operatorframework` choose.

    A bare name will do. Labels joined by commas must all match. ValueError if a selection matches nothing.
    """
    chosen: dict[str, Suite] = {}
    for selection in selections:
        wanted = dict(_label(part) for part in selection.split(","))
        matching = [suite for suite in SUITES if wanted.items() <= suite.labels.items()]
        if not matching:
            known = ", ".join(suite.name for suite in SUITES)
            raise ValueError(f"{selection!r} matches no optional check; there are {known}")
        chosen |= {suite.name: suite for suite in matching}
    return [suite for suite in SUITES if suite.name in chosen]


def _label(part: str) -> tuple[str, str]:
    key, equals, value = part.strip().partition("=")
    return (key, value.removeprefix("=")) if equals else ("name", key)


def check(
    files: Files, select: Iterable[str] = (), options: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Everything that is wrong with a bundle; ValueError only if a selection matches no optional check."""
    suites = selected(select)
    report = Report(files)
    source = Documents(files)
    loaded = load(source)
    layout.check(source, loaded.metadata, report)
    loading.check(loaded, source, report)
    if loaded.bundle is None:
        return report.findings()
    subject = _subject(loaded.bundle, files, options or {}, loaded, report)
    if layout.media_type(source, loaded.manifests_dir) == HELM:
        return report.findings()
    objects.check(subject, report)
    bundlewide.check(subject, report)
    csv.check(subject.csv, report)
    for crd in subject.crds:
        crds.check(crd, report)
    for suite in suites:
        suite.run(subject, report)
    return report.findings()


def _subject(
    bundle: Bundle, files: Files, options: Mapping[str, Any], loaded: Loaded, report: Report
) -> Subject:
    first = next(manifest for manifest in bundle.manifests if manifest.value["kind"] == CSV_KIND)
    return Subject(
        files=files,
        bundle=bundle,
        metadata=loaded.metadata,
        csv=loading.decoded(first, report),
        crds=tuple(
            loading.decoded(manifest, report) for manifest in bundle.manifests if loading.is_crd(manifest)
        ),
        options=options,
    )
