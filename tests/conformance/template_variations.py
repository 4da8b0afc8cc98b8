"""Templates by the thousand, and the bundles that they name: valid ones, and ones with a mistake or two.

Everything follows from a seed. Bundles are blobs as plain dicts; those of the default channel may carry a
ClusterServiceVersion, because a semver template takes the package's description and icon from there.
"""

from __future__ import annotations

import base64
import json
import random
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

ARCHETYPES = ("candidate", "fast", "stable")
PRERELEASES = ("", "", "", "", "-alpha", "-alpha.1", "-rc.2", "-0")
BUILDS = ("", "", "", "", "", "", "+b1", "+b.2")


@dataclass
class Case:
    """A template and the bundles by image."""

    template: str
    bundles: dict[str, Document] = field(default_factory=dict)


def semver(chance: random.Random, package: str = "demo") -> Case:
    """A semver template over random versions; about one in five has something that is not accepted."""
    case = Case("")
    template: Document = {"schema": "olm.semver"}
    for flag, likely in (("generateMajorChannels", 0.6), ("generateMinorChannels", 0.5)):
        if chance.random() < 0.8:
            template[_any_case(flag, chance)] = chance.random() < likely
    if chance.random() < 0.3:
        template["defaultChannelTypePreference"] = chance.choice(("major", "minor", ""))
    versions = [_version(chance) for _ in range(chance.randint(1, 9))]
    for version in versions:
        bundle = semver_bundle(package, version, chance)
        case.bundles[bundle["image"]] = bundle
    for archetype in ARCHETYPES:
        if chance.random() < 0.75:
            chosen = [image for image in case.bundles if chance.random() < 0.75]
            chance.shuffle(chosen)
            listed = [{_any_case("image", chance): image} for image in chosen]
            template[_any_case(archetype, chance)] = {_any_case("bundles", chance): listed}
    if chance.random() < 0.15:
        _break_semver(template, case, chance)
    case.template = _written(template, chance)
    return case


def semver_bundle(package: str, version: str, chance: random.Random) -> Document:
    """The blob of one version."""
    tag = version.replace("+", "_")
    properties: list[Document] = [
        {"type": "olm.package", "value": {"packageName": package, "version": version}}
    ]
    if chance.random() < 0.5:
        spec: Document = {"version": version, "description": chance.choice(("", f"about {version}"))}
        if chance.random() < 0.5:
            spec["icon"] = chance.choice(
                (
                    [{"base64data": base64.b64encode(version.encode()).decode(), "mediatype": "image/png"}],
                    [{"base64data": "", "mediatype": ""}],
                    [],
                    [{"base64data": "%%", "mediatype": "image/png"}],
                )
            )
        name = {"name": f"{package}.v{version}"}
        csv = {"apiVersion": "v1", "kind": "ClusterServiceVersion", "metadata": name, "spec": spec}
        data = base64.b64encode(json.dumps(csv).encode()).decode()
        properties.append({"type": "olm.bundle.object", "value": {"data": data}})
    return {
        "schema": "olm.bundle",
        "name": f"{package}.v{version}",
        "package": package,
        "image": f"example.com/{package}:{tag}",
        "properties": properties,
        "relatedImages": [{"name": "", "image": f"example.com/{package}:{tag}"}],
    }


def _version(chance: random.Random) -> str:
    numbers = (
        chance.choice((0, 0, 1, 1, 1, 2, 10)),
        chance.choice((0, 1, 2, 2, 10)),
        chance.choice((0, 1, 2, 9, 10)),
    )
    return ".".join(map(str, numbers)) + chance.choice(PRERELEASES) + chance.choice(BUILDS)


def _any_case(key: str, chance: random.Random) -> str:
    return chance.choice((key, key, key, key[0].upper() + key[1:], key.upper()))


def _written(template: Document, chance: random.Random) -> str:
    """As JSON, which is YAML too, or as the YAML that people write."""
    if chance.random() < 0.3:
        return json.dumps(template)
    lines = []
    for key, value in template.items():
        if not isinstance(value, dict):
            lines.append(f"{key}: {json.dumps(value)}")
            continue
        lines.append(f"{key}: # {chance.random()}")
        for inner, listed in value.items():
            lines.append(f"  {inner}:" + ("" if listed else " []"))
            lines += [f"  - {json.dumps(item)}" for item in listed]
    return "\n".join(lines) + "\n"


def _break_semver(template: Document, case: Case, chance: random.Random) -> None:
    image = next(iter(case.bundles))
    bundle = case.bundles[image]
    match chance.randrange(10):
        case 0:
            template["surprise"] = 1
        case 1:
            template["schema"] = chance.choice(("olm.semver", "olm.Semver", 7))
        case 2:
            template["defaultChannelTypePreference"] = "patch"
        case 3:
            template["candidate"] = {"bundles": [{"image": image}, {"image": image}]}
        case 4:
            template["stable"] = {"bundles": [{"image": "example.com/gone:1"}]}
        case 5:
            bundle["properties"][0]["value"]["packageName"] = "other"
        case 6:
            bundle["properties"][0]["value"]["version"] = chance.choice(("v1.0.0", "1.0", "", "01.0.0"))
        case 7:
            bundle["properties"].append(bundle["properties"][0])
        case 8:
            template["stable"] = chance.choice(([], "text", {"bundles": {}}, {"bundles": [[]]}, {"x": []}))
        case 9:
            template["generateMajorChannels"] = chance.choice(("yes", 1, None))


def basic(chance: random.Random) -> Case:
    """A basic template: blobs of a package, its bundles by image alone."""
    case = Case("")
    entries: list[Any] = [{"schema": "olm.package", "name": "demo", "defaultChannel": "stable"}]
    names = []
    for version in {_version(chance) for _ in range(chance.randint(1, 4))}:
        bundle = semver_bundle("demo", version, chance)
        case.bundles[bundle["image"]] = bundle
        names.append(bundle["name"])
        entry = {"schema": "olm.bundle", "image": bundle["image"]}
        if chance.random() < 0.3:
            entry["name"] = bundle["name"]
        entries.append(entry)
    channel = {"schema": "olm.channel", "name": "stable", "package": "demo"}
    entries.append(channel | {"entries": [{"name": name, "skipRange": ">=1.0.0 <2.0.0"} for name in names]})
    if chance.random() < 0.3:
        entries.append({"schema": "x.y", "Package": "demo", "b": 1, "a": [1.5, None]})
    template: Document = {"schema": "olm.template.basic", "entries": entries}
    if chance.random() < 0.25:
        match chance.randrange(7):
            case 0:
                entries[1]["package"] = "demo"
            case 1:
                entries[1]["properties"] = [{"type": "a", "value": 1}]
            case 2:
                del entries[1]["image"]
            case 3:
                template["schema"] = "olm.template.Basic"
            case 4:
                entries.append({"no": "schema"})
            case 5:
                template["entries"] = chance.choice((None, {}, "x"))
            case 6:
                entries.append(entries[1])
    case.template = json.dumps(template) if chance.random() < 0.5 else _block(template)
    return case


def substitutes(chance: random.Random) -> Case:
    """A substitutes template: a valid catalog of a few versions, and rebuilds of some of them."""
    case = Case("")
    names = []
    entries: list[Any] = [{"schema": "olm.package", "name": "demo", "defaultChannel": "stable"}]
    substitutions = []
    for minor in range(chance.randint(1, 4)):
        version = f"1.{minor}.0"
        base = semver_bundle("demo", version, chance)
        entries.append(base)
        names.append(base["name"])
        if chance.random() < 0.6:
            rebuilt = _rebuilt(base, version, chance)
            case.bundles[rebuilt["image"]] = rebuilt
            substitutions.append({"name": rebuilt["image"], "base": base["name"]})
    entries += [
        _chain("demo", channel, names, chance) for channel in ("stable", "fast")[: chance.randint(1, 2)]
    ]
    chance.shuffle(substitutions)
    template = {"schema": "olm.template.substitutes", "entries": entries, "substitutions": substitutions}
    if chance.random() < 0.25 and substitutions:
        match chance.randrange(6):
            case 0:
                substitutions.append(substitutions[0])
            case 1:
                substitutions[0]["base"] = "gone"
            case 2:
                substitutions[0]["name"] = ""
            case 3:
                substitutions[0]["base"] = substitutions[0]["name"]
            case 4:
                entries[0]["defaultChannel"] = "gone"
            case 5:
                substitutions.append({"name": substitutions[0]["name"], "base": names[0]})
    case.template = json.dumps(template)
    return case


def _rebuilt(base: Document, version: str, chance: random.Random) -> Document:
    """The same version with a release, with build metadata, or mistakenly nothing newer."""
    release = chance.choice(("1", "1", "2.alpha", ""))
    said: Document = {"packageName": "demo", "version": version}
    name = f"demo-v{version}-{release}"
    if release:
        said["release"] = release
    else:
        said["version"] = chance.choice((f"{version}+1", version, f"1.{version[2]}.1"))
        name = f"demo.v{said['version']}.rebuilt"
    annotations = {"olm.substitutesFor": base["name"]} if chance.random() < 0.5 else {"other": "x"}
    return {
        "schema": "olm.bundle",
        "name": name,
        "package": "demo",
        "image": f"example.com/rebuilt:{version}-{chance.randrange(10**6)}",
        "properties": [
            {"type": "olm.package", "value": said},
            {"type": "olm.csv.metadata", "value": {"annotations": annotations}},
        ],
    }


def _chain(package: str, channel: str, names: list[str], chance: random.Random) -> Document:
    entries: list[Document] = []
    for index, name in enumerate(names):
        entry: Document = {"name": name}
        if index:
            entry["replaces"] = names[index - 1]
            if index > 1 and chance.random() < 0.4:
                entry |= {"replaces": names[index - 2], "skips": [names[index - 1]]}
        if chance.random() < 0.2:
            entry["skipRange"] = "<1.0.0"
        entries.append(entry)
    chance.shuffle(entries)
    return {"schema": "olm.channel", "package": package, "name": channel, "entries": entries}


def _block(template: Document) -> str:
    """A template as a YAML document with a block list of flow items."""
    entries = template["entries"]
    if not isinstance(entries, list):
        return f"schema: {template['schema']}\nentries: {json.dumps(entries)}\n"
    items = "\n".join(f"  - {json.dumps(entry)}" for entry in entries)
    return f"# a comment\nschema: {template['schema']}\nentries:\n{items}\n"
