"""A catalog's bundle as the registry API tells it.

OLM v0 reads a ClusterServiceVersion from what it gets. A catalog that holds only `olm.csv.metadata` has none,
so one is put together from that metadata: enough to list and describe the operator, not to install it (for
that OLM unpacks the image).
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.bundle.model import CSV_KIND, CSV_V1ALPHA1
from podium.catalog.blobs import Bundle, Package
from podium.catalog.properties import (
    BUNDLE_OBJECT,
    CSV_METADATA,
    GVK,
    PACKAGE,
    BundleObject,
    CSVMetadata,
    GroupVersionKind,
    PackageProperty,
    PackageRequired,
    decoded,
)
from podium.registry.messages import message
from podium.text import yaml

_Bundle = message("Bundle")

# Never sent: OLM copies properties into annotations, which must stay small.
_HEAVY = (BUNDLE_OBJECT, CSV_METADATA)
# field of the metadata -> field of spec that holds the same
_SPEC = {
    "apiServiceDefinitions": "apiservicedefinitions",
    "crdDescriptions": "customresourcedefinitions",
    "description": "description",
    "displayName": "displayName",
    "installModes": "installModes",
    "keywords": "keywords",
    "links": "links",
    "maintainers": "maintainers",
    "maturity": "maturity",
    "minKubeVersion": "minKubeVersion",
    "nativeAPIs": "nativeAPIs",
    "provider": "provider",
}


def api_bundle(bundle: Bundle, package: Package, *, manifests: bool) -> Any:
    """The `api.Bundle` message without what depends on the channel."""
    result = _Bundle(csvName=bundle.name, packageName=bundle.package, bundlePath=bundle.image)
    metadata: dict[str, Any] | None = None
    objects: list[str] = []
    for item in bundle.properties:
        if item.type in _HEAVY and not manifests:
            continue
        match decoded(item):
            case PackageProperty() as package_property:
                result.version = package_property.version
            case GroupVersionKind() as api if item.type == GVK:
                result.providedApis.add(**_api(api))
            case GroupVersionKind() as api:
                result.requiredApis.add(**_api(api))
                result.dependencies.add(type=GVK, value=bytes(item.value).decode())
            case PackageRequired() as required:
                result.dependencies.add(type=PACKAGE, value=_required_package(required))
            case BundleObject() as manifest:
                objects.append(_object(manifest.data or b""))
            case CSVMetadata():
                metadata = item.decoded()
        if item.type not in _HEAVY:
            result.properties.add(type=item.type, value=bytes(item.value).decode())
    if manifests:
        result.csvJson = _csv_among(objects)
        if not result.csvJson and metadata is not None:
            made_up = _made_up_csv(bundle, package, result.version, metadata)
            result.csvJson = msgspec.json.encode(made_up).decode()
            objects = objects or [result.csvJson]
        result.object.extend(objects)
    return result


def _api(value: GroupVersionKind) -> dict[str, str]:
    return {"group": value.group, "version": value.version, "kind": value.kind}


def _required_package(value: PackageRequired) -> str:
    wanted = {"packageName": value.package_name, "version": value.version_range}
    return msgspec.json.encode(wanted).decode()


def _object(data: bytes) -> str:
    """The JSON text of a manifest."""
    if data.lstrip().startswith(b"{"):
        return data.decode(errors="replace")
    return msgspec.json.encode(yaml.load(data)).decode()


def _csv_among(objects: list[str]) -> str:
    for text in objects:
        if msgspec.json.decode(text).get("kind") == CSV_KIND:
            return text
    return ""


def _made_up_csv(bundle: Bundle, package: Package, version: str, metadata: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {"name": bundle.name}
    about |= {key: metadata[key] for key in ("annotations", "labels") if metadata.get(key)}
    # OLM's package server fails on a ClusterServiceVersion without a strategy.
    spec: dict[str, Any] = {
        "install": {"strategy": "deployment", "spec": {"deployments": None}},
        "version": version,
        "customresourcedefinitions": {},
        "apiservicedefinitions": {},
        "displayName": "",
        "provider": {},
        "cleanup": {"enabled": False},
    }
    spec |= {there: metadata[here] for here, there in _SPEC.items() if metadata.get(here)}
    if not spec.get("description") and package.description:
        spec["description"] = package.description
    if package.icon is not None:
        spec["icon"] = [{"base64data": package.icon.base64data, "mediatype": package.icon.mediatype}]
    if bundle.relatedImages:
        spec["relatedImages"] = [{"name": image.name, "image": image.image} for image in bundle.relatedImages]
    return {
        "kind": CSV_KIND,
        "apiVersion": CSV_V1ALPHA1,
        "metadata": about,
        "spec": spec,
        "status": {"cleanup": {}},
    }
