"""What is allowed but better done otherwise: requests, descriptions, names of channels, rights."""

from __future__ import annotations

import re
from typing import Any

from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import items, member, text
from podium.bundle.typed import Path
from podium.text.semver import Version

CHANNEL_PREFIXES = ("candidate", "fast", "stable")
_VERSION_AT_END = re.compile(
    r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+)?\Z"
)
_ANY_RESOURCE = ("customresourcedefinitions", "*", "[*]")
_CREATING = ("create", "*", "[*]", "patch")


def check(subject: Subject, report: Report) -> None:
    """Reports what could be better."""
    practice = _Practice(subject, report)
    practice.requests()
    practice.descriptions()
    practice.channels()
    practice.rights()
    practice.name()


class _Practice:
    def __init__(self, subject: Subject, report: Report) -> None:
        self._subject = subject
        self._csv = subject.csv
        self._report = report
        self._where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}

    def _warn(self, rule: str, message: str, path: Path) -> None:
        self._report.warn(rule, message, path=path, **self._where)

    def requests(self) -> None:
        path: Path = ("spec", "install", "spec", "deployments")
        deployments = self._csv.objects("install", "spec", "deployments")
        if not deployments:
            self._report.error(
                "deployments-missing",
                "unable to find a deployment to install in the CSV",
                path=path,
                **self._where,
            )
        for index, deployment in deployments:
            pod = member(deployment, "spec", "template", "spec")
            for number, container in enumerate(items(pod, "containers")):
                requests = member(container, "resources", "requests")
                missing = [name for name in ("cpu", "memory") if name not in requests]
                if missing:
                    name = text(member(container).get("name"))
                    where: Path = (*path, index, "spec", "template", "spec", "containers", number)
                    self._warn(
                        "requests-missing",
                        f"unable to find the resource requests for the container {name!r}: "
                        f"{' and '.join(missing)}; a quota may refuse such a pod",
                        where,
                    )

    def descriptions(self) -> None:
        for relation in ("owned", "required"):
            for index, crd in self._csv.objects("customresourcedefinitions", relation):
                if not crd.get("description"):
                    self._warn(
                        "crd-description-missing",
                        f"{relation} CRD {text(crd.get('name'))!r} has an empty description",
                        ("spec", "customresourcedefinitions", relation, index),
                    )

    def channels(self) -> None:
        bundle = self._subject.bundle
        names = {name.strip() for name in (*bundle.channels, bundle.default_channel)} - {""}
        odd = sorted(name for name in names if not name.startswith(CHANNEL_PREFIXES))
        if odd:
            self._report.warn(
                "channel-name",
                f"channel(s) {', '.join(odd)} are not following the recommended naming convention: "
                f"names that start with {', '.join(CHANNEL_PREFIXES)}",
                subject=bundle.name,
                file=self._subject.metadata.annotations_file,
                path=("annotations",),
            )

    def rights(self) -> None:
        for part in ("permissions", "clusterPermissions"):
            for index, permission in self._csv.objects("install", "spec", part):
                for number, rule in enumerate(items(permission, "rules")):
                    if (
                        "apiextensions.k8s.io" in items(rule, "apiGroups")
                        and any(each in _ANY_RESOURCE for each in items(rule, "resources"))
                        and any(each in _CREATING for each in items(rule, "verbs"))
                    ):
                        self._warn(
                            "crd-permissions",
                            "CSV contains permissions to create CRD: an operator should leave CRDs, and "
                            "other operators, to the lifecycle manager",
                            ("spec", "install", "spec", part, index, "rules", number),
                        )
                        return

    def name(self) -> None:
        name = self._csv.name
        path: Path = ("metadata", "name")
        found = _VERSION_AT_END.search(name)
        if found is None or not _is_version(found.group()):
            message = (
                f"csv.metadata.Name {name} is not following the versioning convention: it ends in no version"
            )
            self._warn("csv-name-version", message, path)
        if name.count(".v") != 1:
            message = f"csv.metadata.Name {name} is not following the naming convention <name>.v<semver>"
            self._warn("csv-name-convention", message, path)


def _is_version(text: str) -> bool:
    try:
        Version.parse(text)
    except ValueError:
        return False
    return True
