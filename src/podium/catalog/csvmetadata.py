"""The `olm.csv.metadata` property: what a catalog keeps of a ClusterServiceVersion that it does not keep.

Only the fields of `properties.CSVMetadata` survive, in that order. opm reads the ClusterServiceVersion into a
struct and writes another, so a value of the wrong type is an error even in a part that is not kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.catalog.blobs import CatalogError
from podium.catalog.decoding import Misfit, document, encoded, fit
from podium.catalog.properties import (
    APIServices,
    CSVMetadata,
    Definitions,
    GroupVersionKind,
    InstallMode,
    Link,
    Maintainer,
)
from podium.text import gojson
from podium.text.semver import Version, prerelease_identifiers


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    apiservicedefinitions: APIServices = msgspec.field(default_factory=APIServices)
    customresourcedefinitions: Definitions = msgspec.field(default_factory=Definitions)
    description: str = ""
    display_name: str = ""
    install_modes: list[InstallMode] = []
    keywords: list[str] = []
    links: list[Link] = []
    maintainers: list[Maintainer] = []
    maturity: str = ""
    min_kube_version: str = ""
    native_apis: list[GroupVersionKind] = msgspec.field(name="nativeAPIs", default_factory=list)
    provider: Link = msgspec.field(default_factory=Link)
    version: str = ""
    release: str | None = None


_SAME = tuple(name for name in _Spec.__struct_fields__ if name in CSVMetadata.__struct_fields__)


class _ClusterServiceVersion(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def property_value(csv: dict[str, Any]) -> bytes:
    """The value of the property for a ClusterServiceVersion, as compact JSON; CatalogError if opm fails."""
    try:
        read: _ClusterServiceVersion = fit(_ClusterServiceVersion, csv, "", gojson.compact)
        _check_version(read.spec)
    except Misfit as misfit:
        raise CatalogError(f"ClusterServiceVersion: {misfit}") from None
    except ValueError as error:
        raise CatalogError(f"version of the ClusterServiceVersion: {error}") from None
    made = CSVMetadata(
        annotations=read.metadata.annotations,
        labels=read.metadata.labels,
        api_service_definitions=read.spec.apiservicedefinitions,
        crd_descriptions=read.spec.customresourcedefinitions,
        **{name: getattr(read.spec, name) for name in _SAME},
    )
    return encoded(document(made))


def _check_version(spec: _Spec) -> None:
    """ValueError for a version or release that is none, at which opm fails too."""
    Version.parse_tolerant(spec.version)
    if spec.release is not None:
        prerelease_identifiers(spec.release)
