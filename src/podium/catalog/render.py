"""The catalog blob of a bundle, and a catalog as `opm render` shows it.

A bundle's properties are what its files say (`metadata/properties.yaml`, the `olm.properties` annotation),
what follows from them (`olm.package`, `olm.gvk` for every API it provides, `*.required` for every
dependency) and the manifests themselves; sorted by type and then by the bytes of the value, manifests last.
Values that the author wrote as JSON keep their order of keys and their escapes, because opm passes them on
untouched.

opm refuses image references that leave out the registry; `image_reference` completes them instead.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from podium.api.findings import Place
from podium.api.kinds import Object
from podium.bundle import read as bundle_read
from podium.bundle.model import METADATA_DIR, Files, Typed, items, member, text
from podium.bundle.model import Bundle as BundleFiles
from podium.catalog import blobs, gosort
from podium.catalog.blobs import BUNDLE, Blob, Bundle, CatalogError, Property, RelatedImage
from podium.catalog.decoding import encoded
from podium.catalog.migrate import Level, check_inline_objects, migrate_blob
from podium.catalog.properties import (
    BUNDLE_OBJECT,
    CSV_METADATA,
    GVK,
    GVK_REQUIRED,
    PACKAGE,
    PACKAGE_REQUIRED,
)
from podium.text import gojson
from podium.text.references import Grammar, Reference

_LAST = (BUNDLE_OBJECT, CSV_METADATA)


def bundle_blob(
    bundle: Files | BundleFiles, image: str = "", level: Level = Level.NONE, place: Place = Place()
) -> Blob:
    """What `opm render` gives for a bundle: from an image of this name, or without an image from a directory.

    BundleError or CatalogError, in opm's words, where it would fail.
    """
    source = bundle if isinstance(bundle, BundleFiles) else bundle_read.read_leniently(bundle)
    made = Bundle(
        schema=BUNDLE,
        name=source.name,
        package=source.package,
        image=image,
        properties=_manifests_last(_properties(source)),
        relatedImages=_by_image(_related_images(source, image)),
    )
    return migrate_blob(blobs.of(made, place), level)


def catalog(content: Iterable[Blob], level: Level = Level.NONE) -> Iterator[Blob]:
    """What `opm render` makes of a catalog before it writes it: manifests last, images sorted, migrated."""
    for blob in content:
        yield migrate_blob(_tidy(blob), level) if blob.schema == BUNDLE else blob


def image_reference(name: str, *, strict: bool = False) -> str:
    """A reference in full; a short one is completed, or with `strict` refused as opm refuses it."""
    try:
        full = str(Reference.parse(name, Grammar.CONTAINERS))
    except ValueError as error:
        raise CatalogError(f'invalid image reference "{name}": {error}') from None
    if strict and full != name:
        raise CatalogError(f'failed to pull image "{name}": repository name must be canonical')
    return full


_ACTION = re.compile(r"\{\{(- )?\s*(.*?)\s*( -)?\}\}", re.DOTALL)


def image_from_template(template: str, bundle: BundleFiles) -> str:
    """The image that a template with `{{.Package}}`, `{{.Name}}` and `{{.Version}}` names for a bundle."""
    packages = (each for each in _stated(bundle) if each.type == PACKAGE)
    version = next((_fields(each, 0)["version"] for each in packages), "")
    known = {".Package": bundle.package, ".Name": bundle.name, ".Version": version}
    made, end = "", 0
    trim_next = False
    for action in _ACTION.finditer(template):
        before = template[end : action.start()]
        before = before.lstrip() if trim_next else before
        made += before.rstrip() if action[1] else before
        if action[2] not in known:
            raise CatalogError(f"image template: {{{{{action[2]}}}}} is none of {', '.join(known)}")
        made += known[action[2]]
        end, trim_next = action.end(), bool(action[3])
    rest = template[end:]
    if "{{" in rest:
        raise CatalogError("image template: {{ without }}")
    return made + (rest.lstrip() if trim_next else rest)


def with_image(bundle: Files | BundleFiles, template: str, level: Level = Level.NONE) -> Blob:
    """The blob of a bundle whose image reference is made from a template, see `image_from_template`."""
    source = bundle if isinstance(bundle, BundleFiles) else bundle_read.read_leniently(bundle)
    return bundle_blob(source, image_from_template(template, source), level)


def _tidy(blob: Blob) -> Blob:
    bundle = blobs.bundle(blob)
    try:
        check_inline_objects(bundle)
    except CatalogError as error:
        raise CatalogError(f'bundle "{blob.name}": {error.problem}', blob.place) from None
    properties, images = _manifests_last(bundle.properties), _by_image(bundle.relatedImages)
    if properties == bundle.properties and images == bundle.relatedImages:
        return blob
    bundle.properties, bundle.relatedImages = properties, images
    return blobs.of(bundle, blob.place)


def _manifests_last(properties: list[Property]) -> list[Property]:
    return sorted(properties, key=lambda each: each.type in _LAST)


def _by_image(images: list[RelatedImage]) -> list[RelatedImage]:
    return gosort.sort(images, key=lambda each: each.image)


# --- properties ---


def _properties(bundle: BundleFiles) -> list[Property]:
    package = _own_package(bundle)
    provided = {(group, version, kind) for group, version, kind, _ in bundle_read.provided_apis(bundle)}
    required = _required_apis(bundle)
    rest: list[Property] = []
    for index, each in enumerate(_stated(bundle)):
        value = _fields(each, index)
        if each.type == GVK:
            provided.add((value["group"], value["version"], value["kind"]))
        elif each.type == PACKAGE:
            package = _built(PACKAGE, **_named(value, "packageName", "version", "release"))
        else:
            rest.append(each)
    for index, each in enumerate(_listed(bundle, "dependencies", bundle.dependencies)):
        value = _fields(each, index)
        if each.type == GVK:
            required.add((value["group"], value["version"], value["kind"]))
        elif each.type == PACKAGE:
            rest.append(
                _built(PACKAGE_REQUIRED, packageName=value["packageName"], versionRange=value["version"])
            )
        else:
            rest.append(each)
    made = [package, *rest, *map(_manifest, bundle.objects)]
    for name, apis in ((GVK, provided), (GVK_REQUIRED, required)):
        made += [_built(name, group=group, kind=kind, version=version) for group, version, kind in apis]
    by_bytes = sorted(made, key=lambda each: (each.type, bytes(each.value)))
    return [Property(each.type, msgspec.Raw(_packed(bytes(each.value)))) for each in by_bytes]


def _own_package(bundle: BundleFiles) -> Property:
    version, release = _version(bundle), _release(bundle)
    return _built(PACKAGE, packageName=bundle.package, version=version, release=release)


def _stated(bundle: BundleFiles) -> list[Property]:
    """What the bundle's files state, without repetitions: the last of several packages will count."""
    listed = _listed(bundle, "properties", bundle.properties)
    listed += [_own_package(bundle)] if bundle.package else []
    listed += _annotated(bundle)
    return list({(each.type, bytes(each.value)): each for each in listed}.values())


def _listed(bundle: BundleFiles, key: str, known: Sequence[Typed]) -> list[Property]:
    """Properties or dependencies from a metadata file; values as they are there if that is in JSON."""
    for path in sorted(bundle.files) if known else ():
        data = bundle.files[path]
        if path.startswith(METADATA_DIR) and data.lstrip().startswith(b"{"):
            found = _verbatim(_member(data, key))
            if [each.type for each in found] == [each.type for each in known]:
                return found
    return [
        Property(each.type, msgspec.Raw(b"" if each.value is None else gojson.compact(each.value)))
        for each in known
    ]


def _annotated(bundle: BundleFiles) -> list[Property]:
    """The properties in the ClusterServiceVersion's annotation; none if it is no JSON list."""
    return _verbatim(text(member(bundle.csv, "metadata", "annotations").get("olm.properties")).encode())


def _member(data: bytes, key: str) -> bytes:
    try:
        return bytes(msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get(key, b""))
    except (msgspec.DecodeError, UnicodeError):
        return b""


def _verbatim(data: bytes) -> list[Property]:
    """A JSON list of properties with the values as they are written; nothing if it is none."""
    try:
        gojson.decode(data)  # msgspec does not look into what it leaves raw
        items = msgspec.json.decode(data, type=list[dict[str, msgspec.Raw] | None])
    except (ValueError, msgspec.DecodeError):
        return []
    made = []
    for each in items:
        folded = {name.casefold(): value for name, value in (each or {}).items()}
        kind = msgspec.json.decode(folded.get("type", b'""'))
        made.append(Property(text(kind), folded.get("value", msgspec.Raw(b""))))
    return made


def _packed(data: bytes) -> bytes:
    """JSON without spaces between its parts; they count until the properties are sorted."""
    return msgspec.json.format(data, indent=-1) if b" " in data or b"\n" in data or b"\t" in data else data


_FIELDS = {GVK: ("group", "kind", "version"), PACKAGE: ("packageName", "version", "release")}


def _fields(each: Property, index: int) -> dict[str, str]:
    """The fields of an API or a package, in any case; nothing for properties of other types."""
    if each.type not in _FIELDS:
        return {}
    value = each.decoded()
    if not bytes(each.value):
        raise CatalogError(f"parse property[{index}] of type {each.type}: it has no value")
    if value is not None and not isinstance(value, dict):
        raise CatalogError(f"parse property[{index}] of type {each.type}: the value must be an object")
    folded = {key.casefold(): item for key, item in sorted((value or {}).items()) if item is not None}
    found = {name: folded.get(name.casefold(), "") for name in _FIELDS[each.type]}
    wrong = [name for name, item in found.items() if not isinstance(item, str)]
    if wrong:
        raise CatalogError(f"parse property[{index}] of type {each.type}: {wrong[0]} must be a string")
    return found


def _named(value: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value[name] for name in names}


def _built(type_: str, **fields: str) -> Property:
    if not fields.get("release", "-"):
        del fields["release"]
    return Property(type_, msgspec.Raw(encoded(fields)))


def _manifest(value: Object) -> Property:
    data = base64.b64encode(object_json(value))
    return Property(BUNDLE_OBJECT, msgspec.Raw(b'{"data":"' + data + b'"}'))


_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def object_json(value: Object) -> bytes:
    """A manifest as opm keeps it: compact, HTML-escaped JSON; numbers beyond 64 bits lose precision."""
    data = gojson.compact(value)
    return gojson.compact(gojson.within(value, -(2**63), 2**63 - 1)) if _LONG_NUMBER.search(data) else data


def _version(bundle: BundleFiles) -> str:
    version = bundle.spec.get("version")
    if version is not None and not isinstance(version, str):
        raise CatalogError(f'bundle "{bundle.name}": spec.version must be a string')
    return version or ""


def _release(bundle: BundleFiles) -> str:
    release = bundle.spec.get("release")
    if release is None or isinstance(release, str):
        return release or ""
    if isinstance(release, bool) or not isinstance(release, int | float):
        raise CatalogError(f'bundle "{bundle.name}": release field must be a string or number')
    return str(int(release)) if release == int(release) else f"{release:g}"


def _required_apis(bundle: BundleFiles) -> set[tuple[str, str, str]]:
    required: set[tuple[str, str, str]] = set()
    for crd in items(bundle.spec, "customresourcedefinitions", "required"):
        _plural, dot, group = text(member(crd).get("name")).partition(".")
        if not dot:
            raise CatalogError(f"get required apis: couldn't parse plural.group from crd name: {_plural}")
        required.add((group, text(crd.get("version")), text(crd.get("kind"))))
    for api in items(bundle.spec, "apiservicedefinitions", "required"):
        found = member(api)
        required.add((text(found.get("group")), text(found.get("version")), text(found.get("kind"))))
    return required


# --- images ---


def _related_images(bundle: BundleFiles, image: str) -> list[RelatedImage]:
    """The images that the ClusterServiceVersion lists, the bundle's own, and those of its Deployments."""
    listed = items(bundle.spec, "relatedImages")
    images = [RelatedImage(text(each.get("name")), text(each.get("image"))) for each in map(member, listed)]
    seen = {each.image for each in images}
    if image and image not in seen:
        images.append(RelatedImage("", image))
    return images + [RelatedImage("", each) for each in sorted(_deployed_images(bundle) - seen)]


def _deployed_images(bundle: BundleFiles) -> set[str]:
    install = member(bundle.spec, "install")
    if install.get("strategy") != "deployment":
        return set()
    found: set[str] = set()
    for deployment in items(install, "spec", "deployments"):
        for key in ("containers", "initContainers"):
            for container in items(deployment, "spec", "template", "spec", key):
                found.add(text(member(container).get("image")))
    return found
