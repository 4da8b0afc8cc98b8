"""What conversion needs of a bundle, with the types that Go would give it.

`decode` reads the ClusterServiceVersion and the CRDs once; validators and generators work on the result,
and no longer care whether a list was null, absent or empty unless the original does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle.convert.decoding import decode, typed
from podium.bundle.convert.properties import with_properties
from podium.bundle.kinds import CSV
from podium.bundle.model import Bundle, name_of
from podium.schema.coerce import DecodeError


@dataclass(frozen=True, slots=True)
class Permission:
    """What one ServiceAccount may do; the account of an empty name is the namespace's default."""

    service_account: str
    rules: list[Object] | None

    @property
    def account(self) -> str:
        return self.service_account or "default"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment that the install strategy asks for."""

    name: str
    spec: Object
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook that one of the deployments serves; `fields` has what is handed through as it is."""

    name: str
    type: str
    deployment: str
    container_port: int
    target_port: int | str | None
    path: str | None
    rules: list[Object]
    crds: list[str]
    fields: Object


@dataclass(frozen=True)
class Contents:
    """A bundle as conversion sees it; `file` is the ClusterServiceVersion's, if that is known."""

    file: str
    package: str
    name: str
    annotations: dict[str, str]
    install_modes: tuple[tuple[str, bool], ...]
    deployments: tuple[Deployment, ...]
    permissions: tuple[Permission, ...]
    cluster_permissions: tuple[Permission, ...]
    webhooks: tuple[Webhook, ...]
    owned_crds: tuple[str, ...]
    crds: tuple[Object, ...]
    others: tuple[Object, ...]

    @cached_property
    def supported_modes(self) -> frozenset[str]:
        """The install modes that are declared as supported."""
        return frozenset(mode for mode, supported in self.install_modes if supported)

    @cached_property
    def webhook_deployments(self) -> tuple[str, ...]:
        """The names of the deployments that serve webhooks, each once, in the order of the webhooks."""
        return tuple(dict.fromkeys(webhook.deployment for webhook in self.webhooks))


def decode_contents(bundle: Bundle) -> tuple[Contents, list[Finding]]:
    """What the bundle holds, and a finding for each value of a wrong type, which is then left out."""
    files = {id(manifest.value): manifest.path for manifest in bundle.manifests}
    file, problems = files.get(id(bundle.csv), ""), list[str]()
    csv = decode(CSV, bundle.csv, "", problems) or {}
    findings = [_finding("csv-type", problem, bundle.name, file) for problem in problems]
    metadata, spec = csv.get("metadata") or {}, csv.get("spec") or {}
    strategy = (spec.get("install") or {}).get("spec") or {}
    crds = _definitions(bundle, files, findings)
    _check_metadata(bundle, files, findings)
    annotations = metadata.get("annotations") or {}
    try:
        annotations = with_properties(annotations, bundle.files)
    except ValueError as error:
        findings.append(_finding("properties", str(error), bundle.name, file))
    contents = Contents(
        file=file,
        package=bundle.package,
        name=metadata.get("name", ""),
        annotations=annotations,
        install_modes=tuple(
            (mode.get("type", ""), mode.get("supported", False)) for mode in spec.get("installModes") or ()
        ),
        deployments=tuple(map(_deployment, strategy.get("deployments") or ())),
        permissions=tuple(map(_permission, strategy.get("permissions") or ())),
        cluster_permissions=tuple(map(_permission, strategy.get("clusterPermissions") or ())),
        webhooks=tuple(map(_webhook, spec.get("webhookdefinitions") or ())),
        owned_crds=_owned(spec.get("customresourcedefinitions")),
        crds=tuple(crds),
        others=bundle.others,
    )
    return contents, findings


def _definitions(bundle: Bundle, files: Mapping[int, str], findings: list[Finding]) -> list[Object]:
    """The CRDs read as v1, whatever version they say they have: the original does the same."""
    found: list[Object] = []
    for crd in bundle.crds:
        try:
            found.append(typed("apiextensions/v1.CustomResourceDefinition", crd))
        except DecodeError as error:
            findings.append(_finding("crd-type", str(error), name_of(crd), files.get(id(crd), "")))
    return found


def _check_metadata(bundle: Bundle, files: Mapping[int, str], findings: list[Finding]) -> None:
    for obj in bundle.others:
        try:
            typed("meta/v1.ObjectMeta", obj.get("metadata"))
        except DecodeError as error:
            message = f"metadata: {error}"
            findings.append(_finding("metadata-type", message, name_of(obj), files.get(id(obj), "")))


def _deployment(value: Object) -> Deployment:
    spec = value["spec"] if "spec" in value else typed("apps/v1.DeploymentSpec", {})
    return Deployment(value.get("name", ""), spec, value.get("label") or {})


def _permission(value: Object) -> Permission:
    rules = [_rule(rule) for rule in value["rules"]] if "rules" in value else None
    return Permission(value.get("serviceAccountName", ""), rules)


def _rule(value: Object) -> Object:
    """A policy rule as Go writes it, in the order of the struct's fields: a hash is taken of it."""
    others = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return {"verbs": value.get("verbs")} | {name: value[name] for name in others if value.get(name)}


_HANDED_THROUGH = (
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "timeoutSeconds",
    "reinvocationPolicy",
    "sideEffects",
    "admissionReviewVersions",
)


def _webhook(value: Object) -> Webhook:
    return Webhook(
        name=value.get("generateName", ""),
        type=value.get("type", ""),
        deployment=value.get("deploymentName", ""),
        container_port=value.get("containerPort", 0),
        target_port=value.get("targetPort"),
        path=value.get("webhookPath"),
        rules=value.get("rules") or [],
        crds=value.get("conversionCRDs") or [],
        fields={name: value[name] for name in _HANDED_THROUGH if name in value},
    )


def _owned(definitions: Any) -> tuple[str, ...]:
    return tuple(each.get("name", "") for each in (definitions or {}).get("owned") or ())


def _finding(rule: str, message: str, subject: str, file: str) -> Finding:
    return Finding(Severity.ERROR, rule, message, subject, Place(file))
