"""The properties of a bundle whose types opm knows, decoded as it decodes them.

What it does not look at is left out of the structs below. `read` decodes everything and says what is wrong;
`packages_of` and `version_of` are for whoever wants to know what a bundle says it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from podium.catalog.blobs import Bundle, CatalogError, Property
from podium.catalog.decoding import Misfit, fit
from podium.text import gojson, yaml
from podium.text.semver import prerelease_identifiers

PACKAGE = "olm.package"
PACKAGE_REQUIRED = "olm.package.required"
GVK = "olm.gvk"
GVK_REQUIRED = "olm.gvk.required"
BUNDLE_OBJECT = "olm.bundle.object"
CSV_METADATA = "olm.csv.metadata"
CHANNEL = "olm.channel"
LONGEST_RELEASE = 20

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Shape(msgspec.Struct, forbid_unknown_fields=True):
    """Base of what opm decodes; a key that is not known to a shape sends it the slow way."""


class PackageProperty(_Shape, rename="camel"):
    """`olm.package`: which version of which package a bundle is."""

    package_name: str = ""
    version: str = ""
    release: str = ""


class PackageRequired(_Shape, rename="camel"):
    """`olm.package.required`: another package, and which versions of it will do."""

    package_name: str = ""
    version_range: str = ""


class GroupVersionKind(_Shape):
    """`olm.gvk` and `olm.gvk.required`: an API."""

    always_written = ("group", "version", "kind")

    group: str = ""
    version: str = ""
    kind: str = ""


class BundleObject(_Shape):
    """`olm.bundle.object`: a manifest, as it is in the bundle's image."""

    data: bytes | None = None


class _ChannelPriority(_Shape, rename="camel"):
    channel_name: str = ""
    priority: _Int64 = 0


class Descriptor(_Shape, rename="camel"):
    """What a console shows for a field of an API."""

    always_written = ("path",)

    path: str = ""
    display_name: str = ""
    description: str = ""
    x_descriptors: list[str] = msgspec.field(name="x-descriptors", default_factory=list)
    value: msgspec.Raw = msgspec.Raw()


class Resource(_Shape):
    """A kind of object that belongs to an API."""

    always_written = ("name", "kind", "version")

    name: str = ""
    kind: str = ""
    version: str = ""


class Description(_Shape, rename="camel"):
    """An API that comes from a CustomResourceDefinition."""

    always_written = ("name", "version", "kind")

    name: str = ""
    version: str = ""
    kind: str = ""
    display_name: str = ""
    description: str = ""
    resources: list[Resource] = []
    status_descriptors: list[Descriptor] = []
    spec_descriptors: list[Descriptor] = []
    action_descriptors: list[Descriptor] = []


class APIServiceDescription(_Shape, rename="camel"):
    """An API that a server of its own provides."""

    always_written = ("name", "group", "version", "kind")

    name: str = ""
    group: str = ""
    version: str = ""
    kind: str = ""
    deployment_name: str = ""
    container_port: _Int32 = 0
    display_name: str = ""
    description: str = ""
    resources: list[Resource] = []
    status_descriptors: list[Descriptor] = []
    spec_descriptors: list[Descriptor] = []
    action_descriptors: list[Descriptor] = []


class APIServices(_Shape):
    """The API services that a bundle brings and those that it needs."""

    owned: list[APIServiceDescription] = []
    required: list[APIServiceDescription] = []


class Definitions(_Shape):
    """The CustomResourceDefinitions that a bundle brings and those that it needs."""

    owned: list[Description] = []
    required: list[Description] = []


class InstallMode(_Shape):
    """Whether an operator can watch in a certain way."""

    always_written = ("type", "supported")

    type: str = ""
    supported: bool = False


class Link(_Shape):
    """A web page."""

    name: str = ""
    url: str = ""


class Maintainer(_Shape):
    """Who to write to."""

    name: str = ""
    email: str = ""


class CSVMetadata(_Shape, rename="camel"):
    """`olm.csv.metadata`: what a catalog keeps of a ClusterServiceVersion."""

    always_written = ("apiServiceDefinitions", "crdDescriptions", "provider")

    annotations: dict[str, str] = {}
    api_service_definitions: APIServices = msgspec.field(default_factory=APIServices)
    crd_descriptions: Definitions = msgspec.field(default_factory=Definitions)
    description: str = ""
    display_name: str = ""
    install_modes: list[InstallMode] = []
    keywords: list[str] = []
    labels: dict[str, str] = {}
    links: list[Link] = []
    maintainers: list[Maintainer] = []
    maturity: str = ""
    min_kube_version: str = ""
    native_apis: list[GroupVersionKind] = msgspec.field(name="nativeAPIs", default_factory=list)
    provider: Link = msgspec.field(default_factory=Link)


_SHAPES: dict[str, type[_Shape]] = {
    PACKAGE: PackageProperty,
    PACKAGE_REQUIRED: PackageRequired,
    GVK: GroupVersionKind,
    GVK_REQUIRED: GroupVersionKind,
    BUNDLE_OBJECT: BundleObject,
    CSV_METADATA: CSVMetadata,
    CHANNEL: _ChannelPriority,
}
TYPES = tuple(_SHAPES)
_DECODERS = {kind: msgspec.json.Decoder(shape) for kind, shape in _SHAPES.items()}


def decoded(item: Property) -> msgspec.Struct | None:
    """What a property says, None if opm does not know its type; Misfit if it would fail to decode it."""
    decoder = _DECODERS.get(item.type)
    if decoder is None:
        return None
    try:
        content: _Shape = decoder.decode(item.value)
    except msgspec.ValidationError:
        content = fit(_SHAPES[item.type], gojson.decode(bytes(item.value)), "value")
    except msgspec.DecodeError:
        raise Misfit("it has no value") from None
    return content


def packages_of(bundle: Bundle) -> list[PackageProperty]:
    """What a bundle says it is; a valid one says it once."""
    found = []
    for item in bundle.properties:
        if item.type == PACKAGE:
            try:
                content = decoded(item)
            except Misfit as misfit:
                raise CatalogError(f"bundle {bundle.name!r}: property {PACKAGE!r}: {misfit}") from None
            assert isinstance(content, PackageProperty)
            found.append(content)
    return found


def version_of(bundle: Bundle) -> str:
    """The version that a bundle says it is; empty if it says none."""
    return next((each.version for each in packages_of(bundle)), "")


def release_identifiers(text: str) -> tuple[str, ...]:
    """The parts of a release, which order like those of a pre-release; ValueError if it is none."""
    if len(text.encode()) > LONGEST_RELEASE:
        raise ValueError(f"it is longer than {LONGEST_RELEASE} characters")
    return prerelease_identifiers(text)


@dataclass(slots=True)
class Properties:
    """What a catalog needs to know of a bundle's properties, and what is wrong with them."""

    packages: list[PackageProperty] = field(default_factory=list)
    objects: int = 0
    problems: list[str] = field(default_factory=list)
    object_problems: list[str] = field(default_factory=list)


def read(properties: Iterable[Property]) -> Properties:
    """Decodes every property of a type that opm knows."""
    found = Properties()
    for index, item in enumerate(properties):
        found.objects += item.type == BUNDLE_OBJECT
        if not item.value:
            found.problems.append(f"property {index} of type {item.type!r} has no value")
            continue
        try:
            content = decoded(item)
        except ValueError as error:
            problems = found.object_problems if item.type == BUNDLE_OBJECT else found.problems
            problems.append(f"property {index} of type {item.type!r}: {error}")
            continue
        if isinstance(content, PackageProperty):
            found.packages.append(content)
        elif isinstance(content, BundleObject) and (problem := manifest_problem(content.data or b"")):
            found.object_problems.append(f"property {index} of type {item.type!r} is not YAML: {problem}")
    return found


def manifest_problem(data: bytes) -> str:
    """Why opm cannot read an inline manifest; empty if it can. What begins like JSON it passes on unread."""
    if data.lstrip().startswith(b"{"):
        return ""
    try:
        next(iter(yaml.load_all(data, duplicates=[])), None)
    except ValueError as error:
        return str(error) or "it cannot be read"
    return ""
