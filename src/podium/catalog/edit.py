"""Adds a bundle to a template, keeping its comments, order and formatting exactly.

Adding what is there already changes nothing, so a release can be run twice. The same version from another
image is refused, for a catalog must not change under its users.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from podium.api.findings import Place
from podium.catalog import blobs
from podium.catalog.blobs import BUNDLE, CHANNEL, PACKAGE, Blob, Bundle, CatalogError, Channel
from podium.catalog.outline import Channel as ChannelOutline
from podium.catalog.outline import channel
from podium.catalog.properties import version_of
from podium.catalog.templates import TemplateKind, basic, kind, semver
from podium.catalog.textedit import Fields, Node, Text
from podium.text.semver import Version, compare


def add(
    template: bytes,
    bundle: Blob,
    *,
    archetypes: Sequence[str] = (),
    channels: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    file: str = "",
) -> bytes:
    """The template with a bundle added: to archetypes of a semver one, to channels of a basic one.

    `versions` tells the versions of images that the template names already, as far as they are known.
    """
    fields = blobs.typed(bundle)
    if not isinstance(fields, Bundle) or not fields.image:
        raise CatalogError("only a bundle with an image can be added to a template")
    match kind(template, file):
        case TemplateKind.SEMVER:
            return _add_to_semver(template, fields, archetypes or ("stable",), versions or {}, file)
        case TemplateKind.BASIC:
            if not channels:
                raise CatalogError("say which channels the bundle joins", Place(file))
            return _add_to_basic(template, fields, channels, versions or {}, file)
    raise CatalogError("bundles cannot be added to a substitutes template", Place(file))


def _refuse_same_version(
    bundle: Bundle, others: Sequence[str], versions: Mapping[str, str], file: str
) -> None:
    mine = version_of(bundle)
    for image in others:
        if image != bundle.image and image in versions and _same(mine, versions[image]):
            raise CatalogError(f"version {mine} is there already, from {image}", Place(file))


def _same(one: str, other: str) -> bool:
    """Whether two versions rank the same, which build metadata does not change."""
    try:
        return compare(Version.parse(one), Version.parse(other)) == 0
    except ValueError:
        return one == other


# --- semver ---


def _add_to_semver(
    template: bytes, bundle: Bundle, archetypes: Sequence[str], versions: Mapping[str, str], file: str
) -> bytes:
    parsed = semver.parse(template, file)
    text = Text(template.decode())
    for archetype in archetypes:
        if archetype not in semver.ARCHETYPES:
            raise CatalogError(f'"{archetype}" is none of {", ".join(semver.ARCHETYPES)}', Place(file))
        if bundle.image in parsed.bundles[archetype]:
            continue
        _refuse_same_version(bundle, parsed.bundles[archetype], versions, file)
        _append_bundle(text, archetype, bundle.image)
    made = str(text).encode()
    after = semver.parse(made, file)
    expected = copy.deepcopy(parsed.bundles)
    for archetype in archetypes:
        if bundle.image not in expected[archetype]:
            expected[archetype] += (bundle.image,)
    _must_be(after.bundles == expected and after.major == parsed.major, file)
    return made


def _append_bundle(text: Text, archetype: str, image: str) -> None:
    root = text.documents()[0]
    spelled = root.key(archetype)
    inside = root.get(archetype)
    if inside is not None and inside.is_mapping:
        key = _image_key(inside.get("bundles"))
        text.append_item(inside, inside.key("bundles") or _like(spelled, "bundles"), {key: image})
        return
    if spelled:
        raise CatalogError(f"{archetype} is empty: remove the line or give it bundles")
    model = next((root.key(each) for each in semver.ARCHETYPES if root.key(each)), "")
    text.append_mapping(
        root, _like(model, archetype), _like(model, "bundles"), {_like(model, "image"): image}
    )


def _image_key(listed: Node | None) -> str:
    last = listed.children[-1] if listed is not None and listed.children else None
    return (last.key("image") if last is not None else "") or "image"


def _like(model: str, word: str) -> str:
    """A key in the case that another has."""
    return word.capitalize() if model[:1].isupper() else word


# --- basic ---


def _add_to_basic(
    template: bytes, bundle: Bundle, channels: Sequence[str], versions: Mapping[str, str], file: str
) -> bytes:
    before = list(basic.entries(template, file))
    named = basic.images(template, file)
    _refuse_same_version(bundle, named, versions, file)
    text = Text(template.decode())
    expected = list(before)
    for name in channels:
        _join_channel(text, before, bundle, name, expected)
    if bundle.image not in named:
        entry = {"schema": BUNDLE, "image": bundle.image}
        _append_entry(text, entry)
        expected.append(blobs.of(entry))
    made = str(text).encode()
    after = sorted(blobs.canonical(blob).raw for blob in basic.entries(made, file))
    _must_be(after == sorted(blobs.canonical(blob).raw for blob in expected), file)
    return made


def _join_channel(text: Text, before: list[Blob], bundle: Bundle, name: str, expected: list[Blob]) -> None:
    """Makes the bundle the head of a channel: it replaces the head that was."""
    found = next((blob for blob in before if blob.schema == CHANNEL and blob.name == name), None)
    entry: Fields = {"name": bundle.name}
    if found is None:
        package = next((blob.name for blob in before if blob.schema == PACKAGE), bundle.package)
        made = {"schema": CHANNEL, "package": package, "name": name, "entries": [entry]}
        _append_entry(text, made)
        expected.append(blobs.of(made))
        return
    value = found.value
    entries = value.get("entries") or []
    if any(each.get("name") == bundle.name for each in entries):
        return
    heads = [each.name for each in _outline(found).heads]
    if len(heads) > 1:
        raise CatalogError(f"channel {name} has several heads: {', '.join(heads)}", found.place)
    if heads:
        entry["replaces"] = heads[0]
    text.append_item(_channel_node(text, name), "entries", entry)
    value["entries"] = [*entries, entry]
    expected[expected.index(found)] = blobs.of(value)


def _outline(blob: Blob) -> ChannelOutline:
    fields = blobs.typed(blob)
    assert isinstance(fields, Channel)
    return channel(fields, blob.place)


def _append_entry(text: Text, entry: Fields) -> None:
    root = text.documents()[0]
    if root.get("entries") is None or not _is_wrapper(root):
        text.append_document(entry)
    else:
        text.append_item(root, root.key("entries"), entry)


def _is_wrapper(root: Node) -> bool:
    schema = root.get("schema")
    return schema is not None and schema.text == basic.SCHEMA


def _channel_node(text: Text, name: str) -> Node:
    nodes = text.documents()
    listed = nodes[0].get("entries")
    if _is_wrapper(nodes[0]):
        nodes = listed.children if listed is not None else []
    for node in nodes:
        fields = {key: node.get(key) for key in ("schema", "name")}
        if all(each is not None for each in fields.values()) and _says(fields, schema=CHANNEL, name=name):
            return node
    raise CatalogError(f"channel {name} cannot be found in the text")


def _says(fields: dict[str, Node | None], **wanted: str) -> bool:
    return all((node := fields[key]) is not None and node.text == text for key, text in wanted.items())


def _must_be(right: bool, file: str) -> None:
    """Refuses an edit that would have changed anything else."""
    if not right:
        raise CatalogError(
            "this template is written in a way that cannot be edited safely: add by hand", Place(file)
        )
