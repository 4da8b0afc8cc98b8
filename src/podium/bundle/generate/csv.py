"""The ClusterServiceVersion: what its author wrote by hand, completed by what the manifests say.

The hand-written base keeps everything that the manifests do not decide. A section is only replaced where
there are manifests for it, so that a generated ClusterServiceVersion is a valid base of itself. Deployments
take the form that Kubernetes' Go types give them, because clusters and the original tools write them so;
fields that Kubernetes does not know get lost on that way and are reported.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium.api.findings import Finding, Severity
from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.generate import images as generate_images
from podium.bundle.model import CRD_V1, CSV_KIND, CSV_V1ALPHA1, items, member
from podium.schema import coerce, facts
from podium.text import gojson

CREATED_AT = "createdAt"
EXAMPLES = "alm-examples"
INSTALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
_TARGET_NAMESPACES = "metadata.annotations['olm.targetNamespaces']"


@dataclass(frozen=True, slots=True)
class Icon:
    """A picture for catalogs."""

    data: bytes
    mediatype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What people read about an operator, and how it is installed; empty fields leave the base as it is."""

    display_name: str = ""
    description: str = ""
    icon: Icon | None = None
    provider: Mapping[str, str] = field(default_factory=dict)
    maintainers: Sequence[Mapping[str, str]] = ()
    links: Sequence[Mapping[str, str]] = ()
    apis: Sequence[
        Mapping[str, str]
    ] = ()  # kind, displayName and description of what the bundle's CRDs define
    keywords: Sequence[str] = ()
    maturity: str = ""
    min_kube_version: str = ""
    install_modes: Sequence[str] = ()  # the supported ones
    replaces: str = ""
    skips: Sequence[str] = ()
    skip_range: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Install:
    """The parts of a ClusterServiceVersion that come from manifests."""

    deployments: tuple[Object, ...]
    permissions: tuple[Object, ...]
    cluster_permissions: tuple[Object, ...]
    webhooks: tuple[Object, ...]
    owned: tuple[Object, ...]  # name, kind and version of each served version of each CRD
    examples: tuple[Object, ...]


def base(package: str) -> Object:
    """The ClusterServiceVersion to start from when an author has written none."""
    return {
        "apiVersion": CSV_V1ALPHA1,
        "kind": CSV_KIND,
        "metadata": {"name": package, "annotations": {"capabilities": "Basic Install"}},
        "spec": {
            "displayName": display_name(package),
            "keywords": [package],
            "maturity": "alpha",
            "installModes": install_modes(("AllNamespaces",)),
        },
    }


def display_name(package: str) -> str:
    """A package's name as people write it: `my-operator` is My Operator."""
    words = package.replace(".", " ").replace("-", " ").replace("_", " ").split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


def install_modes(supported: Sequence[str]) -> list[Object]:
    """All install modes, each with whether it is supported."""
    return [{"type": mode, "supported": mode in supported} for mode in INSTALL_MODES]


def assemble(start: Object, package: str, version: str, install: Install, details: Details) -> Object:
    """The ClusterServiceVersion of one version, without its time of creation."""
    csv = copy.deepcopy(start)
    csv.pop("status", None)
    metadata = csv["metadata"] = dict(member(csv, "metadata"))
    for key in ("namespace", "creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"):
        metadata.pop(key, None)
    metadata["name"] = f"{package}.v{version}"
    annotations = metadata["annotations"] = dict(member(metadata, "annotations"))
    annotations.pop(CREATED_AT, None)
    spec = csv["spec"] = dict(member(csv, "spec"))
    spec["version"] = version
    _describe(csv, details)
    if install.examples or EXAMPLES not in annotations:
        annotations[EXAMPLES] = gojson.pretty(list(install.examples), indent=2, html=True).decode()
    spec.setdefault("installModes", install_modes(("AllNamespaces",)))
    spec.setdefault("apiservicedefinitions", {})
    spec["customresourcedefinitions"] = _owned(spec, install.owned, details.apis)
    spec["install"] = _install(spec, install)
    if install.webhooks:
        spec["webhookdefinitions"] = list(install.webhooks)
    _relate_images(spec)
    if spec.get("cleanup") == {"enabled": False}:
        del spec["cleanup"]
    return csv


def deployment(item: Authored) -> tuple[Object, list[Finding]]:
    """A deployment as a ClusterServiceVersion lists it, and what of it Kubernetes does not know."""
    fact = facts.load().struct("apps/v1.DeploymentSpec")
    spec = copy.deepcopy(item.object.get("spec")) or {}
    try:
        coerced = coerce.coerce(spec, fact)
    except coerce.DecodeError as error:
        finding = Finding(Severity.ERROR, "invalid-deployment", str(error), item.title, item.place)
        return {"name": item.name, "spec": spec}, [finding]
    findings = [
        Finding(
            Severity.WARNING,
            "unknown-field",
            f"spec.{path} is no field of a Deployment in Kubernetes {facts.load().kubernetes_version}; "
            "it is left out",
            item.title,
            item.place,
        )
        for path in coerced.unknown
    ]
    result: Object = {"name": item.name, "spec": coerced.object}
    if labels := member(item.object, "metadata", "labels"):
        result["label"] = dict(labels)
    _watch_target_namespaces(result)
    member(coerced.object, "template", "metadata").pop("creationTimestamp", None)  # type: ignore[attr-defined]
    return result, findings


def served_versions(crd: Authored) -> list[Object]:
    """Name, kind and version for each version of a CRD that is served."""
    spec = member(crd.object, "spec")
    kind = member(spec, "names").get("kind")
    versions = [str(each["name"]) for each in items(spec, "versions") if each.get("served")]
    if crd.object["apiVersion"] != CRD_V1 and not items(spec, "versions"):
        versions = [str(spec.get("version"))]
    return [{"name": crd.name, "kind": kind, "version": version} for version in versions]


def _describe(csv: Object, details: Details) -> None:
    spec, metadata = csv["spec"], csv["metadata"]
    texts = {
        "displayName": details.display_name,
        "description": details.description,
        "maturity": details.maturity,
        "minKubeVersion": details.min_kube_version,
        "replaces": details.replaces,
        "provider": dict(details.provider),
        "maintainers": [dict(each) for each in details.maintainers],
        "links": [dict(each) for each in details.links],
        "keywords": list(details.keywords),
        "skips": list(details.skips),
    }
    spec.update({key: value for key, value in texts.items() if value})
    if details.install_modes:
        spec["installModes"] = install_modes(details.install_modes)
    if details.icon:
        encoded = base64.b64encode(details.icon.data).decode()
        spec["icon"] = [{"base64data": encoded, "mediatype": details.icon.mediatype}]
    metadata["annotations"].update(details.annotations)
    if details.skip_range:
        metadata["annotations"]["olm.skipRange"] = details.skip_range
    if details.labels:
        metadata["labels"] = {**member(metadata, "labels"), **details.labels}


def _owned(spec: Object, owned: Sequence[Object], apis: Sequence[Mapping[str, str]]) -> Object:
    """The CRDs that the bundle brings; what an author wrote about one, in base or details, is kept."""
    definitions = dict(member(spec, "customresourcedefinitions"))
    written = {_key(each): each for each in items(definitions, "owned") if isinstance(each, dict)}
    definitions.pop("owned", None)
    if owned:
        described = {each["kind"]: each for each in apis}
        definitions["owned"] = [
            {**written.get(_key(each), each), **described.get(str(each["kind"]), {})} for each in owned
        ]
    return definitions


def _key(description: Object) -> tuple[object, object, object]:
    return description.get("name"), description.get("version"), description.get("kind")


def _install(spec: Object, install: Install) -> Object:
    if not install.deployments and items(spec, "install", "spec", "deployments"):
        return dict(member(spec, "install"))
    strategy: Object = {"deployments": list(install.deployments)}
    if install.permissions:
        strategy["permissions"] = list(install.permissions)
    if install.cluster_permissions:
        strategy["clusterPermissions"] = list(install.cluster_permissions)
    return {"strategy": "deployment", "spec": strategy}


def _relate_images(spec: Object) -> None:
    """Lists the images that deployments name in their environment before those that an author lists."""
    found = generate_images.related(items(spec, "install", "spec", "deployments"))
    names = {each["name"] for each in found}
    written = [
        each for each in items(spec, "relatedImages") if each not in found and each.get("name") not in names
    ]
    spec.pop("relatedImages", None)
    if found or written:
        spec["relatedImages"] = [*found, *written]


def _watch_target_namespaces(listed: Object) -> None:
    """An operator that asks for the namespaces to watch is told those that its installer chose."""
    for container in items(listed, "spec", "template", "spec", "containers"):
        for variable in items(container, "env"):
            if variable.get("name") == "WATCH_NAMESPACE":
                variable.clear()
                variable["name"] = "WATCH_NAMESPACE"
                variable["valueFrom"] = {"fieldRef": {"fieldPath": _TARGET_NAMESPACES}}
