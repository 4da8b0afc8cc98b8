"""What a registry+v1 bundle is: one ClusterServiceVersion, what it needs beside it, and metadata about both.

A bundle is a value made once by `read`; nothing in it is changed afterwards. Objects are the plain dicts that
the files hold. `objects` has every object in file order, the ClusterServiceVersion and the CRDs included;
`csv`, `crds` and `others` are views of the same dicts by role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.api.findings import Finding
from podium.api.kinds import Object

Files = Mapping[str, bytes]

CSV_KIND = "ClusterServiceVersion"
CSV_V1ALPHA1 = "operators.coreos.com/v1alpha1"
CRD_KIND = "CustomResourceDefinition"
CRD_V1 = "apiextensions.k8s.io/v1"
CRD_V1BETA1 = "apiextensions.k8s.io/v1beta1"

MANIFESTS_DIR = "manifests/"
METADATA_DIR = "metadata/"

_PREFIX = "operators.operatorframework.io."
MEDIATYPE_KEY = _PREFIX + "bundle.mediatype.v1"
MANIFESTS_KEY = _PREFIX + "bundle.manifests.v1"
METADATA_KEY = _PREFIX + "bundle.metadata.v1"
PACKAGE_KEY = _PREFIX + "bundle.package.v1"
CHANNELS_KEY = _PREFIX + "bundle.channels.v1"
DEFAULT_CHANNEL_KEY = _PREFIX + "bundle.channel.default.v1"

REGISTRY_V1 = "registry+v1"
PLAIN = "plain"
HELM = "helm"


class BundleError(ValueError):
    """The files are no bundle; `findings` says everything that is wrong with them."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file of the manifests directory and the object that its first document holds."""

    path: str
    value: Object


@dataclass(frozen=True, slots=True)
class Typed:
    """A dependency or property: a type, and a value whose form the type decides."""

    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read; `files` are the bytes it was read from."""

    csv: Object
    crds: tuple[Object, ...] = ()
    objects: tuple[Object, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[Typed, ...] = ()
    properties: tuple[Typed, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    files: Files = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the ClusterServiceVersion, which is the bundle's name in a catalog."""
        return name_of(self.csv)

    @property
    def package(self) -> str:
        """The package that the bundle is a version of."""
        return self.annotations.get(PACKAGE_KEY, "")

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that the bundle says it belongs to."""
        listed = self.annotations.get(CHANNELS_KEY, "")
        return tuple(listed.split(",")) if listed else ()

    @property
    def default_channel(self) -> str:
        """The default channel that the bundle asks for; empty if it does not."""
        return self.annotations.get(DEFAULT_CHANNEL_KEY, "")

    @property
    def spec(self) -> Mapping[str, Any]:
        """The ClusterServiceVersion's spec; empty if there is none."""
        return member(self.csv, "spec")

    @property
    def version(self) -> str:
        """The version in the ClusterServiceVersion; empty if there is none."""
        return text(self.spec.get("version"))

    @property
    def others(self) -> tuple[Object, ...]:
        """The objects that are neither the ClusterServiceVersion nor a CRD, in file order."""
        return tuple(o for o in self.objects if o.get("kind") not in (CSV_KIND, CRD_KIND))


def member(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at a path of keys; an empty one if anything else, or nothing, is there."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Any, *path: str) -> Sequence[Any]:
    """The list at a path of keys; an empty one if anything else, or nothing, is there."""
    *parents, last = path
    found = member(value, *parents).get(last)
    return found if isinstance(found, list) else ()


def name_of(obj: Object) -> str:
    """The name of an object; empty if it has none."""
    return text(member(obj, "metadata").get("name"))


def text(value: Any) -> str:
    """A string as it is; anything else as the empty string."""
    return value if isinstance(value, str) else ""
