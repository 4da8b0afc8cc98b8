"""Manifests as authors write them: objects, each with the place that it was written at.

A folder holds YAML or JSON files in any layout, several documents to a file; `List` objects count as what
they list. Everything that cannot be read becomes a finding and the rest is read on, so that an author sees
all mistakes of a folder at once. Paths are read sorted, in whatever order a mapping holds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import GVK, Key, Object
from podium.bundle.model import Files
from podium.text import yaml

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Authored:
    """An object, where it was written, and what it was called before an overlay renamed it."""

    object: Object
    place: Place = Place()
    former: tuple[Key, ...] = ()
    affixes: tuple[tuple[str, str], ...] = ()  # prefix and suffix of each renaming
    hashed: bool = False  # the name shall end with a hash of the content

    @property
    def gvk(self) -> GVK:
        """The object's group, version and kind."""
        return GVK.of(self.object)

    @property
    def kind(self) -> str:
        """The object's kind without its group."""
        return str(self.object.get("kind"))

    @property
    def group(self) -> str:
        """The object's API group; empty for the core group."""
        return str(self.object.get("apiVersion")).rpartition("/")[0]

    @property
    def metadata(self) -> Object:
        """The object's metadata; an empty mapping if there is none."""
        found = self.object.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """The object's name; empty if there is none."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace that the object asks for; empty if it does not."""
        return str(self.metadata.get("namespace") or "")

    @property
    def title(self) -> str:
        """Kind and name, as people speak of an object."""
        return f"{self.kind} {self.name}"

    def with_object(self, obj: Object) -> Authored:
        """The same place and history with another object."""
        return replace(self, object=obj)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a folder holds, and what in it could not be read."""

    objects: tuple[Authored, ...]
    findings: tuple[Finding, ...] = ()


def read(files: Files, folder: str = "") -> Reading:
    """Every object in the YAML and JSON files below a folder, in the order of their paths."""
    objects: list[Authored] = []
    findings: list[Finding] = []
    prefix = f"{folder.strip('/')}/" if folder.strip("/.") else ""
    for path in sorted(files):
        if path.startswith(prefix) and path.endswith(_SUFFIXES):
            found = read_file(path, files[path])
            objects += found.objects
            findings += found.findings
    return Reading(tuple(objects), tuple(findings))


def read_file(path: str, data: bytes) -> Reading:
    """Every object in one file."""
    objects: list[Authored] = []
    findings: list[Finding] = []
    try:
        for document in yaml.documents(data):
            place = Place(path, document.index, document.line)
            for value in _listed(document.value):
                problem = _problem(value)
                if problem:
                    findings.append(Finding(Severity.ERROR, "not-an-object", problem, place=place))
                else:
                    objects.append(Authored(value, place))
    except yaml.YAMLError as error:
        place = Place(path, 0, getattr(error, "line", 0) or 0)
        findings.append(Finding(Severity.ERROR, "unreadable-manifest", str(error), place=place))
    return Reading(tuple(objects), tuple(findings))


def _listed(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        return [item for entry in value["items"] for item in _listed(entry)]
    return (value,)


def _problem(value: Any) -> str:
    if not isinstance(value, dict):
        return "the document is no Kubernetes object: it must be a mapping with apiVersion and kind"
    try:
        GVK.of(value)
    except ValueError as error:
        return f"the document is no Kubernetes object: {error}"
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return f"the {value['kind']} has metadata that is no mapping"
    return ""
