"""A bundle from a folder of plain manifests.

Everything follows from the objects, not from their order or files: they are sorted first, and the same
objects always give the same bytes. Whatever cannot be shipped is a finding, never silently left out. The time
of creation changes only when something else does: a bundle with the content of the previous one has its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle import authored
from podium.bundle.authored import Authored, Reading
from podium.bundle.convert.objects import SUPPORTED_KINDS
from podium.bundle.generate import csv as generate_csv
from podium.bundle.generate import images as generate_images
from podium.bundle.generate import rbac as generate_rbac
from podium.bundle.generate import webhooks as generate_webhooks
from podium.bundle.generate.csv import CREATED_AT, Details, Icon, Install
from podium.bundle.generate.images import UnresolvedImageError
from podium.bundle.model import (
    CHANNELS_KEY,
    CRD_KIND,
    CSV_KIND,
    DEFAULT_CHANNEL_KEY,
    MANIFESTS_DIR,
    MANIFESTS_KEY,
    MEDIATYPE_KEY,
    METADATA_DIR,
    METADATA_KEY,
    PACKAGE_KEY,
    REGISTRY_V1,
    Files,
    member,
)
from podium.text import yaml
from podium.text.semver import Version

__all__ = ["Details", "Generated", "Icon", "Options", "UnresolvedImageError", "generate"]

ANNOTATIONS_FILE = METADATA_DIR + "annotations.yaml"
SCORECARD_FILE = "tests/scorecard/config.yaml"
_SCORECARD_LABELS = {
    "operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
    "operators.operatorframework.io.test.config.v1": "tests/scorecard/",
}
_CRD_GROUP = "apiextensions.k8s.io"
# What a bundle cannot hold and does not need, with the reason.
_NEEDLESS = {
    ("", "Namespace"): "whoever installs the operator chooses its namespace",
    ("cert-manager.io", "Certificate"): "whoever installs the operator provides its webhooks' certificates",
    ("cert-manager.io", "Issuer"): "whoever installs the operator provides its webhooks' certificates",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What an author decides about a bundle besides its manifests."""

    package: str
    version: str
    channels: Sequence[str] = ("alpha",)
    default_channel: str = ""
    details: Details = field(default_factory=Details)
    extra_service_accounts: Sequence[str] = ()
    container_image: str = ""  # the operator's image, for the annotation of that name
    digests: Mapping[str, str] | None = None  # image as written -> sha256:...; None leaves images as they are
    metadata: Files = field(default_factory=dict)  # more files for metadata/, such as dependencies.yaml


@dataclass(frozen=True, slots=True)
class Generated:
    """A bundle's files, the labels of its image, the images it needs, and what the author should know."""

    files: dict[str, bytes]
    labels: dict[str, str]
    images: tuple[str, ...]
    findings: tuple[Finding, ...]


def generate(
    manifests: Files | Sequence[Authored],
    options: Options,
    *,
    now: datetime,
    base_csv: Object | None = None,
    previous: Files | None = None,
) -> Generated:
    """The bundle of one version; `now` is its time of creation unless `previous` has the same content."""
    version = Version.parse(options.version)
    if str(version) != options.version:
        raise ValueError(f"the version {options.version} must be written as {version}")
    reading = authored.read(manifests) if isinstance(manifests, Mapping) else Reading(tuple(manifests))
    made = _Making(options, list(reading.findings))
    made.collect(reading.objects, base_csv)
    csv = made.csv()
    if options.digests is not None:
        generate_images.pin(csv, options.digests)
    files = made.files()
    labels = made.labels()
    files[ANNOTATIONS_FILE] = yaml.dump({"annotations": labels}).encode()
    for name, data in options.metadata.items():
        files[METADATA_DIR + name] = data
    csv_file = f"{MANIFESTS_DIR}{options.package.lower()}.clusterserviceversion.yaml"
    files[csv_file] = _dated(csv, csv_file, files, now, previous or {})
    return Generated(
        dict(sorted(files.items())), labels, tuple(generate_images.images(csv)), tuple(made.findings)
    )


def _dated(csv: Object, path: str, files: Files, now: datetime, previous: Files) -> bytes:
    """The ClusterServiceVersion's bytes with the time of the previous bundle, if nothing else has changed."""

    def at(time: str) -> bytes:
        annotations = {**csv["metadata"]["annotations"], CREATED_AT: time}
        return yaml.dump({**csv, "metadata": {**csv["metadata"], "annotations": annotations}}).encode()

    if path in previous:
        try:
            old = yaml.load(previous[path])
        except yaml.YAMLError:
            old = None
        time = member(old, "metadata", "annotations").get(CREATED_AT)
        ours = {
            name: data for name, data in previous.items() if name.startswith(MANIFESTS_DIR) or name in files
        }
        if isinstance(time, str) and ours == {**files, path: at(time)}:
            return previous[path]
    return at(now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


class _Making:
    """The objects by the part that they play, while a bundle is made."""

    def __init__(self, options: Options, findings: list[Finding]) -> None:
        self._options = options
        self.findings = findings
        self._base: Object | None = None
        self._deployments: list[Authored] = []
        self._crds: list[Authored] = []
        self._rbac: list[Authored] = []
        self._accounts: list[Authored] = []
        self._services: list[Authored] = []
        self._webhooks: list[Authored] = []
        self._others: list[Authored] = []
        self._examples: list[Authored] = []
        self._scorecards: list[Authored] = []
        self._rights: generate_rbac.Rights | None = None

    def collect(self, objects: Iterable[Authored], base_csv: Object | None) -> None:
        """Tells objects apart by the part they play; a given base is preferred to one among them."""
        self._base = base_csv
        for item in self._distinct(objects):
            match item.group, item.kind:
                case _, "ClusterServiceVersion":
                    self._take_base(item)
                case _, "CustomResourceDefinition" if item.group == _CRD_GROUP:
                    self._crds.append(item)
                case "apps", "Deployment":
                    self._deployments.append(item)
                case generate_rbac.GROUP, kind if kind in generate_rbac.KINDS:
                    self._rbac.append(item)
                case generate_webhooks.GROUP, kind if kind in generate_webhooks.KINDS:
                    self._webhooks.append(item)
                case "", "ServiceAccount":
                    self._accounts.append(item)
                case "", "Service":
                    self._services.append(item)
                case "scorecard.operatorframework.io", "Configuration":
                    self._scorecards.append(item)
                case _:
                    self._others.append(item)
        self._part_examples()
        self._check_namespaces()
        operators = self._operator_accounts()
        self._rights = generate_rbac.split(self._rbac, operators)
        self.findings += self._rights.findings
        self.findings += generate_rbac.powerless(self._deployments, self._accounts, self._rbac)
        self._accounts = [item for item in self._accounts if item.name not in operators]

    def _distinct(self, objects: Iterable[Authored]) -> list[Authored]:
        """The objects in an order of their own, equal ones once."""
        result: list[Authored] = []
        for item in sorted(objects, key=_order):
            if result and _identity(result[-1]) == _identity(item):
                if result[-1].object != item.object:
                    self._report(
                        item,
                        "duplicate-object",
                        f"it is also written at {result[-1].place}, with another content; keep one",
                        Severity.ERROR,
                    )
                continue
            if item.name or item.kind == "Configuration":
                result.append(item)
            else:
                self._report(item, "object-without-name", "it has no metadata.name", Severity.ERROR)
        return result

    def _take_base(self, item: Authored) -> None:
        if self._base is None and item.name.startswith(f"{self._options.package}."):
            self._base = item.object
        else:
            reason = (
                "another one is used"
                if self._base
                else f"its name does not start with {self._options.package}."
            )
            self._report(item, "unused-csv", f"it is not the base of this bundle: {reason}")

    def _part_examples(self) -> None:
        """Parts the other objects: examples of the bundle's own kinds, what can be shipped, and the rest."""
        kinds = {
            (str(member(crd.object, "spec").get("group")), version["version"], version["kind"])
            for crd in self._crds
            for version in generate_csv.served_versions(crd)
        }
        shipped: list[Authored] = []
        for item in self._others:
            gvk = item.gvk
            if (gvk.group, gvk.version, gvk.kind) in kinds:
                self._examples.append(item)
            elif item.kind in SUPPORTED_KINDS and item.kind not in (CSV_KIND, CRD_KIND):
                shipped.append(item)
            elif reason := _NEEDLESS.get((item.group, item.kind)):
                self._report(item, "not-shipped", f"it is left out: {reason}", Severity.INFO)
            else:
                self._report(item, "not-shipped", f"a bundle cannot hold a {item.kind}, so it is left out")
        self._others = shipped

    def _check_namespaces(self) -> None:
        """Objects lose their namespace, which matters for those that live elsewhere than the operator."""
        own = {item.namespace for item in self._deployments if item.namespace}
        for item in (*self._rbac, *self._services, *self._accounts, *self._others):
            if own and item.namespace and item.namespace not in own:
                self._report(
                    item,
                    "namespace-lost",
                    f"it is for the namespace {item.namespace}, but will be installed in the operator's",
                )

    def _operator_accounts(self) -> set[str]:
        specs = [member(item.object, "spec", "template", "spec") for item in self._deployments]
        accounts = {str(spec.get("serviceAccountName") or "default") for spec in specs}
        if not self._deployments:
            listed = member(self._base, "spec", "install", "spec")
            for deployment in listed.get("deployments") or ():
                spec = member(deployment, "spec", "template", "spec")
                accounts.add(str(spec.get("serviceAccountName") or "default"))
        return accounts | set(self._options.extra_service_accounts)

    def csv(self) -> Object:
        """The ClusterServiceVersion, without its time of creation."""
        assert self._rights is not None
        deployments: list[Object] = []
        for item in self._deployments:
            listed, findings = generate_csv.deployment(item)
            deployments.append(listed)
            self.findings += findings
        for name in generate_images.indirect(deployments):
            self._find("related-image-by-reference", f"{name} must have a value, not a valueFrom")
        base = self._base or generate_csv.base(self._options.package)
        webhooks = self._definitions(base)
        self.findings += webhooks.findings
        install = Install(
            tuple(deployments),
            self._rights.permissions,
            self._rights.cluster_permissions,
            tuple(webhooks.listed),
            tuple(version for crd in self._crds for version in generate_csv.served_versions(crd)),
            tuple(item.object for item in self._examples),
        )
        csv = generate_csv.assemble(
            base, self._options.package, self._options.version, install, self._options.details
        )
        if self._options.container_image:
            csv["metadata"]["annotations"][generate_images.CONTAINER_IMAGE] = self._options.container_image
        if not csv["spec"]["install"]["spec"].get("deployments"):
            self._find("no-deployment", "there is no Deployment: a bundle needs one, which runs the operator")
        return csv

    def _definitions(self, base: Object) -> generate_webhooks.Definitions:
        """Webhook definitions; without deployments the base keeps both its deployments and its webhooks."""
        if not self._deployments and member(base, "spec", "install", "spec").get("deployments"):
            return generate_webhooks.Definitions()
        return generate_webhooks.define(self._webhooks, self._crds, self._services, self._deployments)

    def files(self) -> dict[str, bytes]:
        """All files but the ClusterServiceVersion and the metadata."""
        assert self._rights is not None
        files: dict[str, bytes] = {}
        for item in (*self._crds, *self._services, *self._others, *self._rights.shipped, *self._accounts):
            path = MANIFESTS_DIR + _file_name(item)
            if path in files:
                # Names differ only in case, in version or in namespace: one file would hide the other.
                self._report(item, "duplicate-object", f"{path} holds another object already", Severity.ERROR)
            files[path] = yaml.dump(_shippable(item.object)).encode()
        if len(self._scorecards) > 1:
            self._report(
                self._scorecards[1], "duplicate-scorecard", "only one can be shipped", Severity.ERROR
            )
        for item in self._scorecards[:1]:
            files[SCORECARD_FILE] = yaml.dump(item.object).encode()
        return files

    def labels(self) -> dict[str, str]:
        """The bundle's annotations, which its image has as labels."""
        labels = {
            MEDIATYPE_KEY: REGISTRY_V1,
            MANIFESTS_KEY: MANIFESTS_DIR,
            METADATA_KEY: METADATA_DIR,
            PACKAGE_KEY: self._options.package,
            CHANNELS_KEY: ",".join(self._options.channels),
        }
        if self._options.default_channel:
            labels[DEFAULT_CHANNEL_KEY] = self._options.default_channel
        return labels | (_SCORECARD_LABELS if self._scorecards else {})

    def _report(self, item: Authored, rule: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.findings.append(Finding(severity, rule, message, item.title, item.place))

    def _find(self, rule: str, message: str) -> None:
        self.findings.append(Finding(Severity.ERROR, rule, message, self._options.package, Place()))


def _identity(item: Authored) -> tuple[str, str, str, str]:
    return item.group, item.kind, item.namespace, item.name


def _order(item: Authored) -> tuple[str, ...]:
    gvk = item.gvk
    return (
        gvk.group,
        gvk.kind,
        item.namespace,
        item.name,
        gvk.version,
        str(item.place),
        str(item.place.document),
    )


def _file_name(item: Authored) -> str:
    spec = member(item.object, "spec")
    if item.kind == CRD_KIND:
        group, plural = spec.get("group"), member(spec, "names").get("plural")
        if group and plural:
            return f"{group}_{plural}.yaml"
    return (
        "_".join(part for part in (item.name, item.group, item.gvk.version, item.kind.lower()) if part)
        + ".yaml"
    )


def _shippable(obj: Object) -> Object:
    """An object without what only a cluster says about it."""
    lost = (
        "namespace",
        "creationTimestamp",
        "managedFields",
        "resourceVersion",
        "uid",
        "generation",
        "selfLink",
    )
    metadata = {key: value for key, value in member(obj, "metadata").items() if key not in lost}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
