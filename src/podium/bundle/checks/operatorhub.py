"""What a catalog like OperatorHub.io shows of an operator: provider, maintainers, links, version, icon."""

from __future__ import annotations

from typing import Any

from podium.bundle.checks import csv as csv_checks
from podium.bundle.checks import mail, removedapis
from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import member, text
from podium.bundle.typed import Path
from podium.schema import gourl
from podium.text.semver import Version

MEDIA_TYPES = ("image/gif", "image/jpeg", "image/png", "image/svg+xml")


def check(subject: Subject, report: Report) -> None:
    """Reports what such a catalog would refuse, removed APIs included."""
    _Hub(subject, report).all()
    csv_checks.min_kube_version(subject.csv, report)
    removedapis.check(subject, report)


class _Hub:
    def __init__(self, subject: Subject, report: Report) -> None:
        self._csv = subject.csv
        self._report = report
        self._where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}

    def _error(self, rule: str, message: str, *path: str | int) -> None:
        self._report.error(rule, message, path=("spec", *path), **self._where)

    def all(self) -> None:
        if not text(member(self._csv.spec, "provider").get("name")).strip():
            self._error("provider-name-missing", "csv.Spec.Provider.Name not specified", "provider")
        self._maintainers()
        self._links()
        version = self._csv.spec.get("version")
        if not isinstance(version, Version) or version.precedence == Version(0, 0, 0).precedence:
            self._error("version-missing", "csv.Spec.Version must be set", "version")
        self._icon()

    def _maintainers(self) -> None:
        for index, each in self._csv.objects("maintainers"):
            email = text(each.get("email"))
            if not email or not each.get("name"):
                self._error(
                    "maintainer-incomplete",
                    "csv.Spec.Maintainers elements should contain both name and email",
                    "maintainers",
                    index,
                )
            if email:
                try:
                    mail.check(email)
                except mail.AddressError as error:
                    self._error(
                        "maintainer-email-invalid",
                        f"csv.Spec.Maintainers email {email} is invalid: {error}",
                        "maintainers",
                        index,
                        "email",
                    )

    def _links(self) -> None:
        for index, each in self._csv.objects("links"):
            url = text(each.get("url"))
            if not url or not each.get("name"):
                self._error(
                    "link-incomplete",
                    "csv.Spec.Links elements should contain both name and url",
                    "links",
                    index,
                )
            if url:
                try:
                    gourl.parse_request_uri(url)
                except gourl.UrlError as error:
                    message = f"csv.Spec.Links url {url} is invalid: {error}"
                    self._error("link-url-invalid", message, "links", index, "url")

    def _icon(self) -> None:
        if self._csv.spec.get("icon") is None:
            path: Path = ("spec",)
            self._report.warn("icon-missing", "csv.Spec.Icon not specified", path=path, **self._where)
            return
        icons = self._csv.objects("icon")
        if len(icons) != 1:
            self._error("icon-count", "csv.Spec.Icon should only have one element", "icon")
        for index, icon in icons[:1]:
            media_type = text(icon.get("mediatype"))
            if not media_type or not icon.get("base64data"):
                self._error(
                    "icon-incomplete",
                    "csv.Spec.Icon elements should contain both data and mediatype",
                    "icon",
                    index,
                )
            if media_type and media_type not in MEDIA_TYPES:
                self._error(
                    "icon-mediatype",
                    f"csv.Spec.Icon {media_type} does not have a valid mediatype: use one of "
                    + ", ".join(MEDIA_TYPES),
                    "icon",
                    index,
                    "mediatype",
                )
