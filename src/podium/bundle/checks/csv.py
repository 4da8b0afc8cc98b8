"""The ClusterServiceVersion by itself: names, examples, install modes, versions, required fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podium.api import names
from podium.bundle import kinds, typed
from podium.bundle.checks.bundlewide import GroupVersionKind
from podium.bundle.checks.context import Decoded, Report
from podium.bundle.model import text
from podium.bundle.typed import Path
from podium.text.semver import Version

ALL_NAMESPACES = "AllNamespaces"
_EXAMPLES, _OTHER_EXAMPLES = "alm-examples", "olm.examples"
_CASE_SENSITIVE = {
    key.lower(): key
    for key in (
        "olm.operatorGroup",
        "olm.operatorNamespace",
        "olm.targetNamespaces",
        "olm.providedAPIs",
        "olm.skipRange",
    )
}


def check(csv: Decoded, report: Report) -> None:
    """Reports what is wrong with the ClusterServiceVersion."""
    examined = _Examined(csv, report)
    examined.names()
    examined.examples()
    examined.install_modes()
    min_kube_version(csv, report)
    examined.required_fields()
    examined.annotation_names()
    if not text(csv.value.get("apiVersion")).rpartition("/")[2]:
        examined.error("api-version-missing", "'apiVersion' is missing", ("apiVersion",))


def min_kube_version(csv: Decoded, report: Report) -> None:
    """Reports a minimum version of Kubernetes that is missing or no version."""
    version = text(csv.spec.get("minKubeVersion"))
    where: dict[str, Any] = {"subject": csv.name, "file": csv.manifest.path}
    if not version.strip():
        report.warn(
            "min-kube-version-missing",
            "csv.Spec.minKubeVersion is not informed: the operator is offered to clusters of any version",
            path=("spec",),
            **where,
        )
        return
    try:
        Version.parse(version)
    except ValueError as error:
        message = f"csv.Spec.MinKubeVersion has an invalid value: {version!r}: {error}"
        report.error("min-kube-version-invalid", message, path=("spec", "minKubeVersion"), **where)


class _Examined:
    def __init__(self, csv: Decoded, report: Report) -> None:
        self._csv = csv
        self._report = report
        self._where: dict[str, Any] = {"subject": csv.name, "file": csv.manifest.path}

    def error(self, rule: str, message: str, path: Path) -> None:
        self._report.error(rule, message, path=path, **self._where)

    def warn(self, rule: str, message: str, path: Path) -> None:
        self._report.warn(rule, message, path=path, **self._where)

    def names(self) -> None:
        for rule, path in (("csv-name", ("metadata", "name")), ("csv-replaces", ("spec", "replaces"))):
            name = self._csv.name if rule == "csv-name" else text(self._csv.spec.get("replaces"))
            if rule == "csv-replaces" and not name:
                continue
            # The name becomes the value of a label on everything that belongs to the operator.
            if faults := [*names.dns_subdomain(name), *names.label_value(name)]:
                self.error(rule, f"{'.'.join(path)} {name!r} is invalid: {','.join(faults)}", path)

    def examples(self) -> None:
        annotations = self._csv.annotations
        if not annotations:
            self.warn("csv-annotations-missing", "annotations not found", ("metadata",))
            return
        if _EXAMPLES not in annotations and _OTHER_EXAMPLES not in annotations:
            self.warn("examples-missing", f"no {_EXAMPLES} annotation found", ("metadata", "annotations"))
            return
        if _EXAMPLES in annotations and _OTHER_EXAMPLES in annotations:
            self.warn(
                "examples-twice",
                f"both {_EXAMPLES} and {_OTHER_EXAMPLES} are present; only the first is looked at",
                ("metadata", "annotations", _OTHER_EXAMPLES),
            )
        key = _EXAMPLES if _EXAMPLES in annotations else _OTHER_EXAMPLES
        path: Path = ("metadata", "annotations", key)
        try:
            shown = example_kinds(annotations[key])
        except json.JSONDecodeError as error:
            self.error("examples-not-json", f"invalid example: {error}", path)
            return
        except RecursionError:
            self.error("examples-not-json", "invalid example: nested too deeply", path)
            return
        except ValueError as error:
            self.error("examples-undecodable", f"error decoding example custom resource: {error}", path)
            return
        self._match_examples(shown, path)

    def _match_examples(self, shown: set[GroupVersionKind], path: Path) -> None:
        provided: dict[GroupVersionKind, Path] = {}
        for index, owned in self._csv.objects("customresourcedefinitions", "owned"):
            where: Path = ("spec", "customresourcedefinitions", "owned", index)
            plural, dot, group = text(owned.get("name")).partition(".")
            if not dot:
                self.error(
                    "owned-crd-name-malformed",
                    f"couldn't parse plural.group from crd name: {plural!r}",
                    where,
                )
                continue
            provided[group, text(owned.get("version")), text(owned.get("kind"))] = where
        for index, api in self._csv.objects("apiservicedefinitions", "owned"):
            group, version, kind = (text(api.get(key)) for key in ("group", "version", "kind"))
            provided[group, version, kind] = ("spec", "apiservicedefinitions", "owned", index)
        for group, version, kind in sorted(shown - provided.keys()):
            self.error(
                "example-not-provided",
                f"example must have a provided API: {group}/{version}, Kind={kind} is not owned",
                path,
            )
        for (group, version, kind), where in provided.items():
            if (group, version, kind) not in shown:
                self.warn(
                    "example-missing",
                    f"provided API should have an example annotation: {group}/{version}, Kind={kind}",
                    where,
                )

    def install_modes(self) -> None:
        path: Path = ("spec", "installModes")
        modes = [each for _, each in self._csv.objects("installModes")]
        if not modes:
            self.error("install-modes-missing", "install modes not found", ("spec",))
            return
        supported = {text(mode.get("type")) for mode in modes if mode.get("supported")}
        seen: set[str] = set()
        for index, mode in enumerate(modes):
            kind = text(mode.get("type"))
            if kind in seen:
                self.error(
                    "install-modes-duplicate", f"duplicate install modes present: {kind}", (*path, index)
                )
            seen.add(kind)
        unsupported = {text(mode.get("type")) for mode in modes if not mode.get("supported")}
        only_all = not (supported - {ALL_NAMESPACES}) and ALL_NAMESPACES not in unsupported
        for index, webhook in self._csv.objects("webhookdefinitions"):
            if webhook.get("conversionCRDs") and not only_all:
                self.error(
                    "conversion-install-modes",
                    "only AllNamespaces InstallModeType is supported when conversionCRDs is present",
                    ("spec", "webhookdefinitions", index, "conversionCRDs"),
                )
        if not supported and not any(mode.get("supported") for mode in modes):
            self.error("install-modes-unsupported", "none of InstallModeTypes are supported", path)

    def required_fields(self) -> None:
        value, spec = self._csv.value, self._csv.spec
        if typed.is_zero(value.get("metadata"), kinds.METADATA):
            self._missing("metadata")
        said = {key: each for key, each in spec.items() if key != "version" or _has_version(spec)}
        if typed.is_zero(said, kinds.SPEC):
            self._missing("spec")
            return
        install = spec.get("install")
        if install is None or typed.is_zero(install, kinds.INSTALL):
            self._missing("spec", "install")
        else:
            if not install.get("strategy"):
                self._missing("spec", "install", "strategy")
            strategy = install.get("spec")
            if not typed.is_zero(strategy, kinds.STRATEGY) and strategy.get("deployments") is None:
                self._missing("spec", "install", "spec", "deployments")
        if not spec.get("displayName"):
            self._missing("spec", "displayName")

    def _missing(self, *path: str) -> None:
        self.error("required-field-missing", f"required field missing: {'.'.join(path)}", path)

    def annotation_names(self) -> None:
        for key in self._csv.annotations:
            path: Path = ("metadata", "annotations", key)
            proper = _CASE_SENSITIVE.get(key.lower())
            if proper is not None and key != proper:
                self.error(
                    "annotation-case",
                    f"provided annotation {key} uses wrong case and should be {proper} instead",
                    path,
                )
            if key == "olm.properties":
                self.warn(
                    "properties-annotation",
                    f"found {key} annotation, please define properties in metadata/properties.yaml instead",
                    path,
                )


def _has_version(spec: Mapping[str, Any]) -> bool:
    """Whether the version says anything: 0.0.0 is Go's zero value, as good as none."""
    version = spec.get("version")
    return isinstance(version, Version) and version != Version(0, 0, 0)


def example_kinds(examples: str) -> set[GroupVersionKind]:
    """The kinds that the examples in an annotation are of; JSONDecodeError or ValueError if they are none."""
    if not examples:
        return set()
    value = json.loads(examples, parse_constant=_refuse)
    if value is None:
        return set()
    if not isinstance(value, list):
        raise ValueError("expected a list of objects")
    found = set()
    for each in value:
        if not isinstance(each, dict) or not text(each.get("kind")):
            raise ValueError("Object 'Kind' is missing")
        version = text(each.get("apiVersion"))
        if version.count("/") > 1:
            raise ValueError(f"unexpected GroupVersion string: {version}")
        group, _, short = version.rpartition("/")
        found.add((group, short, text(each.get("kind"))))
    return found


def _refuse(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)
