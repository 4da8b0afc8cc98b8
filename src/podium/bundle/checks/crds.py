"""CRDs as the API server would judge them, all but their schemas and status.

The originals leave out what the server says about schemas, because a schema that was accepted by an older
server may not please a newer one; so does this. CRDs of v1beta1 are judged in the form they are converted to.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from podium.api.kinds import Object
from podium.bundle.checks import metadata
from podium.bundle.checks.context import Decoded, Report
from podium.bundle.model import CRD_V1
from podium.bundle.typed import Path
from podium.schema import crd as rules
from podium.schema import facts
from podium.schema.coerce import coerce
from podium.schema.govalues import same

_LEFT_OUT = ("openAPIV3Schema", "status")
_PARTS = {"validation": "schema", "subresources": "subresources", "selectableFields": "selectableFields"}
_COLUMNS = "additionalPrinterColumns"
_CRD_TYPE = "apiextensions/v1.CustomResourceDefinition"


def check(crd: Decoded, report: Report) -> None:
    """Reports what the API server would refuse in a CRD."""
    where: dict[str, Any] = {"subject": crd.name, "file": crd.manifest.path}
    for field, problem in metadata.problems({"name": "-", **crd.metadata}):
        report.error("invalid-crd", f"metadata.{field}: {problem}", path=("metadata", field), **where)
    value = crd.value
    if crd.manifest.value.get("apiVersion") != CRD_V1:
        for field, problem in _unlike_any_v1(value):
            report.error("invalid-crd", f"{field}: {problem}", path=_path(field), **where)
        value = as_v1(value)
    value = copy.deepcopy(coerce(value, facts.load().struct(_CRD_TYPE)).object)
    rules.default_crd(value)
    for error in rules.validate_crd(value):
        if not any(part in error.path for part in _LEFT_OUT):
            report.error("invalid-crd", str(error), path=_path(error.path), **where)


def as_v1(old: Object) -> Object:
    """A CRD of v1beta1 in the form of v1: what stands at the top of its spec goes into each version."""
    spec = dict(old.get("spec") or {})
    versions = [dict(version or {}) for version in spec.pop("versions", None) or ()]
    only = spec.pop("version", None)
    if not versions and only:
        versions = [{"name": only, "served": True, "storage": True}]
    for key, part in _PARTS.items():
        shared = spec.pop(key, None)
        if shared is not None:
            versions = [{part: shared, **version} for version in versions]
    shared = spec.pop(_COLUMNS, None)
    for version in versions:
        columns = version.get(_COLUMNS) if version.get(_COLUMNS) is not None else shared
        if columns is not None:
            version[_COLUMNS] = [_column(column or {}) for column in columns]
    if versions:
        spec["versions"] = versions
    spec.setdefault("scope", "Namespaced")
    spec["scope"] = spec["scope"] or "Namespaced"
    spec.setdefault("preserveUnknownFields", True)
    if spec.get("conversion") is not None:
        spec["conversion"] = _conversion(spec["conversion"])
    return {**old, "apiVersion": CRD_V1, "spec": spec}


def _column(old: Object) -> Object:
    return {("jsonPath" if key == "JSONPath" else key): value for key, value in old.items()}


def _conversion(old: Object) -> Object:
    result: Object = {"strategy": old.get("strategy") or ""}
    reviews = old.get("conversionReviewVersions")
    if result["strategy"] == "Webhook" and not reviews:
        reviews = ["v1beta1"]
    webhook = {"clientConfig": old.get("webhookClientConfig"), "conversionReviewVersions": reviews}
    if any(each is not None for each in webhook.values()):
        result["webhook"] = {key: each for key, each in webhook.items() if each is not None}
    return result


def _unlike_any_v1(old: Object) -> Iterator[tuple[str, str]]:
    """What v1beta1 can say and v1 cannot: the same thing twice, at the top and in the versions."""
    spec = old.get("spec") or {}
    versions = [version or {} for version in spec.get("versions") or ()]
    if spec.get("version") and versions and versions[0].get("name") != spec["version"]:
        yield "spec.version", "must match the first version in spec.versions"
    for key, part in {**_PARTS, _COLUMNS: _COLUMNS}.items():
        own = [version[part] for version in versions if version.get(part) is not None]
        if spec.get(key) is not None and own:
            yield f"spec.{key}", "top-level and per-version values are mutually exclusive"
        if own and len(own) == len(versions) and all(same(each, own[0]) for each in own):
            yield "spec.versions", f"per-version {part} may not all be identical: use the top level instead"


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[([^\]]*)\]")


def _path(field: str) -> Path:
    """The path that a text such as `spec.versions[0].name` names."""
    return tuple(
        int(index) if index else (name or key)
        for name, index, key in (match.groups() for match in _STEP.finditer(field))
    )
