"""What OpenShift's community catalog asks of bundles that still use APIs removed in Kubernetes 1.22.

They must say that they are for OpenShift before 4.9: in the `olm.maxOpenShiftVersion` property, and in a
label of the image. The option `index` is the content of the Dockerfile that carries the label.
"""

from __future__ import annotations

import json
from typing import Any

from podium.bundle.checks import removedapis
from podium.bundle.checks.context import Report, Subject
from podium.bundle.model import text
from podium.text.semver import Version

OPTION = "index"
_LABEL = "com.redhat.openshift.versions"
_PROPERTIES, _PROPERTY = "olm.properties", "olm.maxOpenShiftVersion"
_WITHOUT = Version(4, 9, 0)  # the OpenShift release that no longer has the APIs


def check(subject: Subject, report: Report) -> None:
    """Reports removed APIs that nothing keeps away from clusters without them."""
    used = removedapis.uses(subject, "1.22.0")
    if not used:
        return
    listed = ", ".join(f"{use.kind} {use.name}" for use in used)
    _property(subject, report, listed)
    _label(subject, report, listed)


def _property(subject: Subject, report: Report, used: str) -> None:
    where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}
    where["path"] = ("metadata", "annotations", _PROPERTIES)
    annotation = subject.csv.annotations.get(_PROPERTIES, "")
    if not annotation:
        message = f"{_PROPERTY} below 4.9 is not specified, and these use APIs removed in v1.22: {used}"
        report.error("max-openshift-version-missing", message, **where)
        return
    try:
        value = _maximum(annotation)
    except (ValueError, RecursionError):
        message = 'expected a list such as [{"type": "key name", "value": "key value"}]'
        report.error("properties-annotation-invalid", message, **where)
        return
    if value is None:
        message = f"{_PROPERTIES} has no {_PROPERTY} below 4.9, and these use APIs removed in v1.22: {used}"
        report.error("max-openshift-version-missing", message, **where)
        return
    try:
        version = Version.parse_tolerant(value)
    except ValueError as error:
        message = f"{_PROPERTY} {value!r} is no version: {error}"
        report.error("max-openshift-version-invalid", message, **where)
        return
    if version.precedence != Version(version.major, version.minor, 0).precedence:
        message = f"{_PROPERTY} must specify only major.minor versions; the rest of {value} is cut off"
        report.warn("max-openshift-version-too-exact", message, **where)
    elif version >= _WITHOUT:
        message = f"{_PROPERTY} is {value}, but OpenShift 4.9 lacks APIs that these use: {used}"
        report.error("max-openshift-version-too-high", message, **where)


def _maximum(annotation: str) -> str | None:
    """The property's value in the annotation, None if it is not there; ValueError if this is no list."""
    listed = json.loads(annotation)
    if listed is None:
        return None
    if not isinstance(listed, list):
        raise ValueError
    found = None
    for entry in listed:
        fields = (
            {key.lower(): value for key, value in (entry or {}).items()}
            if isinstance(entry, dict | None)
            else None
        )
        if fields is None or not all(isinstance(fields.get(key), str | None) for key in ("type", "value")):
            raise ValueError
        if found is None and fields.get("type") == _PROPERTY:
            found = text(fields.get("value"))
    return found


def _label(subject: Subject, report: Report, used: str) -> None:
    where: dict[str, Any] = {"subject": subject.csv.name}
    dockerfile = text(subject.options.get(OPTION))
    if not dockerfile:
        message = f"the option {OPTION!r} says no Dockerfile with the label {_LABEL}; these need it: {used}"
        report.warn("openshift-label-unchecked", message, **where)
        return
    line = next((each for each in dockerfile.split("\n") if _LABEL in each), None)
    if line is None:
        message = f"no label {_LABEL} keeps OpenShift 4.9 away from these uses of removed APIs: {used}"
        report.error("openshift-label-missing", message, **where)
        return
    if "=" not in line:
        report.error("openshift-label-invalid", f"the line says no value: {line.strip()!r}", **where)
        return
    parts = line.split("=")
    exact = len(parts) > 2 and parts[2]
    said = _cleaned(parts[2] if exact else parts[1])
    if not exact and len(said) > 1:
        if "-" not in said:
            message = f"{said} also means OpenShift 4.9 and later, which lack APIs that these use: {used}"
            report.error("openshift-label-too-high", message, **where)
            return
        said = said.split("-")[1]
    try:
        version = Version.parse_tolerant(said)
    except ValueError:
        report.error("openshift-label-invalid", f"unable to parse the value {said!r} of {_LABEL}", **where)
        return
    if version >= _WITHOUT:
        message = f"{said} lacks APIs that these use: {used}; a label such as {_LABEL}='v4.6-v4.8' would do"
        report.error("openshift-label-too-high", message, **where)


def _cleaned(value: str) -> str:
    return value.replace("'", "").replace('"', "").replace("v", "")
