"""Catalogs by the thousand: valid ones drawn at random, and mutations that break each rule in turn.

A catalog is a list of blobs as plain dicts. A mutation changes one thing; catalogs get one to three of them,
so that rules also meet each other. Everything follows from a seed.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import random
from collections.abc import Callable
from typing import Any

Document = dict[str, Any]
Mutation = Callable[[list[Document], random.Random], None]

DIGEST = "sha256:" + "0123456789abcdef" * 4


def draw(chance: random.Random) -> list[Document]:
    """A valid catalog of one or two packages."""
    made = []
    for name in chance.sample(("alpha", "beta-2", "c"), chance.choice((1, 1, 2))):
        made += _package(name, chance)
    chance.shuffle(made)
    return made


def stream(documents: list[Document]) -> str:
    """The catalog as one file of concatenated JSON."""
    return "\n".join(json.dumps(document) for document in documents) + "\n"


def mutate(documents: list[Document], chance: random.Random, times: int) -> list[Document]:
    """A copy with some of its rules broken."""
    changed = copy.deepcopy(documents)
    for _ in range(times):
        # A mutation may find that another left nothing that it could change.
        with contextlib.suppress(AttributeError, TypeError, LookupError):
            chance.choice(MUTATIONS)(changed, chance)
    return changed


def _package(name: str, chance: random.Random) -> list[Document]:
    versions = [
        f"{major}.{minor}.0" for major in range(chance.randint(1, 2)) for minor in range(chance.randint(1, 3))
    ]
    if chance.random() < 0.2:
        versions.append(chance.choice(("9.0.0-rc.1", "9.0.0+build.1", "9.0.0-rc.1+b")))
    bundles = [_bundle(name, version, chance) for version in versions]
    names = [bundle["name"] for bundle in bundles]
    channels = [_channel(name, "stable", names, chance)]
    if chance.random() < 0.5:
        channels.append(_channel(name, "fast", names[chance.randrange(len(names)) :], chance))
    package: Document = {
        "schema": "olm.package",
        "name": name,
        "defaultChannel": chance.choice(channels)["name"],
    }
    if chance.random() < 0.3:
        package["icon"] = {"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}
    made = [package, *channels, *bundles]
    if chance.random() < 0.4:
        made.append(_deprecations(name, channels, names, chance))
    if chance.random() < 0.2:
        made.append({"schema": "my.own", "package": name, "anything": [1, {"a": None}]})
    return made


def _channel(package: str, name: str, bundles: list[str], chance: random.Random) -> Document:
    """A chain of replaces; now and then a version in the middle is skipped instead."""
    entries: list[Document] = []
    for index, bundle in enumerate(bundles):
        entry: Document = {"name": bundle}
        if index:
            entry["replaces"] = bundles[index - 1]
            if index > 1 and chance.random() < 0.2:
                entry |= {"replaces": bundles[index - 2], "skips": [bundles[index - 1]]}
        elif chance.random() < 0.2:
            entry["replaces"] = "gone.v0"
        if chance.random() < 0.2:
            entry["skipRange"] = chance.choice((">=0.0.1 <9.0.0", "<1.x", "1.x.x || 2.0.0"))
        entries.append(entry)
    chance.shuffle(entries)
    return {"schema": "olm.channel", "package": package, "name": name, "entries": entries}


def _bundle(package: str, version: str, chance: random.Random) -> Document:
    said: Document = {"packageName": package, "version": version}
    name = f"{package}.v{version}"
    if "+" not in version and chance.random() < 0.15:
        said["release"] = chance.choice(("1", "alpha.2"))
        name = f"{package}-v{version}-{said['release']}"
    properties: list[Document] = [{"type": "olm.package", "value": said}]
    properties += copy.deepcopy(chance.sample(_PROPERTIES, chance.randint(0, 3)))
    bundle: Document = {
        "schema": "olm.bundle",
        "name": name,
        "package": package,
        "image": chance.choice((f"quay.io/x/{package}:v1", f"example.com/{package}@{DIGEST}", "short")),
        "properties": properties,
    }
    if chance.random() < 0.4:
        bundle["relatedImages"] = [
            {"name": "operator", "image": "docker.io/library/a:1"},
            {"name": "", "image": ""},
        ]
    return bundle


def _deprecations(
    package: str, channels: list[Document], bundles: list[str], chance: random.Random
) -> Document:
    references = [
        {"schema": "olm.package"},
        {"schema": "olm.channel", "name": channels[-1]["name"]},
        {"schema": "olm.bundle", "name": bundles[0]},
    ]
    entries = [
        {"reference": reference, "message": "old"}
        for reference in chance.sample(references, chance.randint(1, 3))
    ]
    return {"schema": "olm.deprecations", "package": package, "entries": entries}


def encoded(text: str) -> str:
    """Base64, as manifests are carried."""
    return base64.b64encode(text.encode()).decode()


_MANIFEST = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}'
_PROPERTIES: tuple[Document, ...] = (
    {"type": "olm.gvk", "value": {"group": "x.io", "kind": "X", "version": "v1"}},
    {"type": "olm.gvk.required", "value": {"group": "y.io", "kind": "Y", "version": "v1"}},
    {"type": "olm.package.required", "value": {"packageName": "other", "versionRange": ">1.0.0"}},
    {"type": "olm.bundle.object", "value": {"data": encoded(_MANIFEST)}},
    {"type": "olm.bundle.object", "value": {"data": encoded("kind: ConfigMap\n")}},
    {"type": "olm.channel", "value": {"channelName": "stable", "priority": 3}},
    {"type": "olm.constraint", "value": {"failureMessage": "no", "cel": {"rule": "true"}}},
    {"type": "unknown", "value": "anything"},
    {
        "type": "olm.csv.metadata",
        "value": {
            "annotations": {"a": "b"},
            "apiServiceDefinitions": {"owned": [{"name": "a", "containerPort": 443}]},
            "crdDescriptions": {
                "owned": [
                    {
                        "name": "x",
                        "resources": [{"kind": "Pod", "name": "", "version": "v1"}],
                        "specDescriptors": [{"path": "p", "x-descriptors": ["urn:x"], "value": {"any": [1]}}],
                    }
                ]
            },
            "installModes": [{"type": "AllNamespaces", "supported": True}],
            "keywords": ["k"],
            "labels": {"l": "v"},
            "links": [{"name": "n", "url": "u"}],
            "maintainers": [{"name": "n", "email": "e"}],
            "nativeAPIs": [{"group": "g", "version": "v", "kind": "k"}],
            "provider": {"name": "p"},
        },
    },
)

# --- mutations ---


def _pick(documents: list[Document], chance: random.Random, schema: str) -> Document:
    found = [document for document in documents if document.get("schema") == schema]
    return chance.choice(found) if found else {"entries": [], "properties": []}


def _set(schema: str, key: str, *values: Any) -> Mutation:
    """Sets a field of some blob; `...` removes it."""

    def change(documents: list[Document], chance: random.Random) -> None:
        blob, value = _pick(documents, chance, schema), copy.deepcopy(chance.choice(values))
        if value is ...:
            blob.pop(key, None)
        else:
            blob[key] = value

    return change


def _drop(schema: str) -> Mutation:
    def change(documents: list[Document], chance: random.Random) -> None:
        dropped = _pick(documents, chance, schema)
        documents[:] = [document for document in documents if document is not dropped]

    return change


def _without_channels(documents: list[Document], chance: random.Random) -> None:
    documents[:] = [
        document for document in documents if document.get("schema") not in ("olm.channel", "olm.bundle")
    ]
    if chance.random() < 0.5:
        _pick(documents, chance, "olm.package").pop("defaultChannel", None)


def _repeat(schema: str) -> Mutation:
    def change(documents: list[Document], chance: random.Random) -> None:
        blob = _pick(documents, chance, schema)
        if "schema" in blob:
            documents.append(copy.deepcopy(blob))

    return change


def _in_list(schema: str, key: str, mutation: Callable[[list[Any], random.Random], None]) -> Mutation:
    def change(documents: list[Document], chance: random.Random) -> None:
        items = _pick(documents, chance, schema).get(key)
        if isinstance(items, list) and all(isinstance(item, dict) for item in items):
            mutation(items, chance)

    return change


def _entry_field(key: str, *values: Any) -> Mutation:
    def change(items: list[Any], chance: random.Random) -> None:
        if items:
            chance.choice(items)[key] = copy.deepcopy(chance.choice(values))

    return _in_list("olm.channel", "entries", change)


def _repeated_item(items: list[Any], chance: random.Random) -> None:
    if items:
        items.append(copy.deepcopy(chance.choice(items)))


def _dropped_item(items: list[Any], chance: random.Random) -> None:
    if items:
        items.remove(chance.choice(items))


def _rewired(items: list[Any], chance: random.Random) -> None:
    """Random edges between the entries: heads, loops and islands of all kinds."""
    names = [item.get("name") for item in items]
    for item in items:
        item.pop("replaces", None)
        item.pop("skips", None)
        if chance.random() < 0.8:
            item["replaces"] = chance.choice(names)
        if chance.random() < 0.3:
            item["skips"] = [chance.choice(names)]


def _without_edges(items: list[Any], chance: random.Random) -> None:
    for item in items:
        item.pop("replaces", None)


def _ring(items: list[Any], chance: random.Random) -> None:
    """A head above a circle."""
    names = [item.get("name") for item in items]
    for index, item in enumerate(items):
        item["replaces"] = names[index + 1] if index + 1 < len(names) else names[min(1, len(names) - 1)]
        item.pop("skips", None)


def _package_property(**values: tuple[Any, ...]) -> Mutation:
    """Sets fields of the `olm.package` property."""

    def change(items: list[Any], chance: random.Random) -> None:
        for item in items:
            if item.get("type") == "olm.package" and isinstance(item.get("value"), dict):
                for key, options in values.items():
                    item["value"][key] = chance.choice(options)

    return _in_list("olm.bundle", "properties", change)


def _extra_property(*choices: Document) -> Mutation:
    def change(items: list[Any], chance: random.Random) -> None:
        items.append(copy.deepcopy(chance.choice(choices)))

    return _in_list("olm.bundle", "properties", change)


def _same_version(documents: list[Document], chance: random.Random) -> None:
    for document in documents:
        for item in document.get("properties") or ():
            if isinstance(item, dict) and item.get("type") == "olm.package" and chance.random() < 0.7:
                item["value"] = {**(item.get("value") or {}), "version": "1.0.0"}


def _released(documents: list[Document], chance: random.Random) -> None:
    """A release with the name that it asks for, or nearly, everywhere in the package."""
    bundle = _pick(documents, chance, "olm.bundle")
    for item in bundle.get("properties") or ():
        if item.get("type") == "olm.package":
            version = chance.choice(("1.2.3", "1.2.3-rc.1", "1.2.3+build"))
            item["value"] = {"packageName": bundle.get("package"), "version": version, "release": "7"}
            _rename(documents, bundle, f"{bundle.get('package')}-v{version}-{chance.choice(('7', '7', '8'))}")


def _rename(documents: list[Document], bundle: Document, name: str) -> None:
    old, bundle["name"] = bundle.get("name"), name
    for document in documents:
        for entry in document.get("entries") or ():
            if isinstance(entry, dict):
                for key in ("name", "replaces"):
                    if entry.get(key) == old:
                        entry[key] = name


def _deprecation(**fields: Any) -> Mutation:
    """Adds a deprecation that names something it must not, to a package that exists."""

    def change(documents: list[Document], chance: random.Random) -> None:
        package = _pick(documents, chance, "olm.package").get("name", "")
        for document in documents:
            if document.get("schema") == "olm.deprecations" and document.get("package") == package:
                break
        else:
            document = {"schema": "olm.deprecations", "package": package, "entries": []}
            documents.append(document)
        if isinstance(document.get("entries"), list):
            document["entries"].append({"message": "old", **copy.deepcopy(fields)})

    return change


def _anything_anywhere(documents: list[Document], chance: random.Random) -> None:
    """Replaces some value, however deep, by one that is likely of the wrong type."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        pairs = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in pairs:
            places.append((value, key))
            walk(item)

    walk([document for document in documents if document.get("schema") != "my.own"])
    holder, key = chance.choice(places)
    if key in ("data", "base64data"):
        holder[key] = copy.deepcopy(chance.choice(_ODD_BYTES))
    elif chance.random() < 0.3 or not (key == "schema" or isinstance(holder[key], dict | list)):
        holder[key] = copy.deepcopy(chance.choice(_ODD))


def _other_case(documents: list[Document], chance: random.Random) -> None:
    """Spells some key in upper case; Go does not mind, except where both spellings are there."""
    holder: Any = chance.choice(documents)
    while isinstance(holder, dict) and holder:
        key = chance.choice(list(holder))
        if isinstance(holder[key], dict) and holder[key] and chance.random() < 0.7:
            holder = holder[key]
        elif isinstance(holder[key], list) and holder[key] and chance.random() < 0.8:
            holder = chance.choice(holder[key])
        else:
            value = holder[key] if chance.random() < 0.3 else holder.pop(key)
            holder[key.upper()] = value
            return


_ODD: tuple[Any, ...] = (
    None,
    0,
    1.5,
    2**40,
    "",
    "x",
    True,
    [],
    {},
    ["a"],
    {"a": 1},
    [None],
    [1, 2],
    {"name": None},
)
# Go also reads bytes from a list of numbers; nobody writes such lists, and we refuse them.
_ODD_BYTES = tuple(odd for odd in _ODD if not isinstance(odd, list))
_BAD_IMAGES = (
    "UPPER/case",
    "a:b:c",
    "quay.io/x@sha256:123",
    "[::1]/x",
    "quay.io/" + "a" * 250,
    " ",
    "a b",
    "0" * 64,
)
_LONG_KEY = '{"' + "k" * 1100 + '": 1}'
_OBJECTS = (
    "{",
    "a: b: c",
    "\tx: 1",
    '{"a": "\\ud83d\\ude00"}',
    '{"a":\t1}',
    "- 1\n- 2",
    "",
    "x",
    _LONG_KEY,
    '{"a"\n:1}',
)

MUTATIONS: tuple[Mutation, ...] = (
    _set("olm.package", "name", "", "Upper", "a.b", "-a", "a-", "a" * 64, "a" * 63, ..., "alpha"),
    _set("olm.package", "defaultChannel", "", "missing", ..., "fast"),
    _set("olm.package", "icon", None, {}, {"base64data": "?"}, {"base64data": "AA=="}, "x", {"mediatype": 1}),
    _set("olm.package", "properties", None, [], [None], [{"type": "x"}], {}, [{"type": "x", "value": 1}]),
    _repeat("olm.package"),
    _drop("olm.package"),
    _set("olm.channel", "package", "", "missing", ...),
    _set("olm.channel", "name", "", "other", ..., None, 1),
    _set("olm.channel", "entries", [], None, ..., "x", [None], [{}]),
    _set("olm.channel", "properties", [{"type": "x"}], [1]),
    _repeat("olm.channel"),
    _drop("olm.channel"),
    _without_channels,
    _in_list("olm.channel", "entries", _repeated_item),
    _in_list("olm.channel", "entries", _dropped_item),
    _in_list("olm.channel", "entries", _rewired),
    _in_list("olm.channel", "entries", _rewired),
    _in_list("olm.channel", "entries", _ring),
    _in_list("olm.channel", "entries", _without_edges),
    _entry_field("name", "", "missing.v1", None),
    _entry_field("replaces", "", "gone", None, "alpha.v0.0.0", "c.v0.0.0"),
    _entry_field("skips", [""], ["gone"], ["gone", ""], None, [None], [1], "x"),
    _entry_field(
        "skipRange", "", "1.2", ">=1.0.0 <", "~1.x", "nonsense", "1.0.0 || ", ">1.0.0-next", None, 1
    ),
    _set("olm.bundle", "package", "", "missing", ..., "alpha"),
    _set("olm.bundle", "name", "", "other", ...),
    _set("olm.bundle", "image", "", ..., None, *_BAD_IMAGES),
    _set(
        "olm.bundle",
        "relatedImages",
        None,
        [None],
        [{}],
        "x",
        *([{"name": "x", "image": bad}] for bad in _BAD_IMAGES),
    ),
    _set("olm.bundle", "properties", None, [], ..., [None], {}, [{}], [{"type": "olm.package"}]),
    _repeat("olm.bundle"),
    _drop("olm.bundle"),
    _package_property(packageName=("alpha", "", "other")),
    _package_property(version=("1.0", "v1.0.0", "", "1.0.0-01", "01.0.0", "1.0.0+", "2.0.0", 1, None)),
    _package_property(release=("1", "", "01", "a" * 20, "a" * 21, "a..b", "a_b", "é", "1.2", 1, None)),
    _released,
    _released,
    _same_version,
    _in_list("olm.bundle", "properties", _repeated_item),
    _in_list("olm.bundle", "properties", _dropped_item),
    _extra_property(*({"type": item["type"], "value": odd} for item in _PROPERTIES for odd in _ODD)),
    _extra_property(
        {"type": "olm.gvk"}, {"value": 1}, {"type": "unknown"}, {"type": "unknown", "value": None}
    ),
    _extra_property(*({"type": "olm.bundle.object", "value": {"data": encoded(text)}} for text in _OBJECTS)),
    _extra_property(
        *(
            {"type": "olm.bundle.object", "value": {"data": odd}}
            for odd in ("A", "eA=", "\neA==\r\n", "%", *_ODD_BYTES)
        )
    ),
    _set("olm.deprecations", "package", "", "missing", ..., "alpha"),
    _set("olm.deprecations", "entries", [], None, ..., "x", [None], [{}]),
    _repeat("olm.deprecations"),
    _in_list("olm.deprecations", "entries", _repeated_item),
    _deprecation(reference={"schema": ""}),
    _deprecation(reference={"name": "x"}),
    _deprecation(reference={"schema": "olm.nonsense", "name": "x"}),
    _deprecation(reference={"schema": "olm.bundle", "name": "missing"}),
    _deprecation(reference={"schema": "olm.channel", "name": "missing"}),
    _deprecation(reference={"schema": "olm.package", "name": "alpha"}),
    _deprecation(reference={"schema": "olm.channel", "name": "stable"}, message=""),
    _deprecation(reference={"schema": "olm.package"}, message=""),
    _anything_anywhere,
    _anything_anywhere,
    _anything_anywhere,
    _other_case,
)
