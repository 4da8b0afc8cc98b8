"""Folders with a `kustomization.yaml`, built without kustomize.

The fields that operator projects use are supported, with kustomize's results; anything else stops with an
error that names the field and its file and says what to do. Nothing is fetched: all files are in the mapping
that the caller passes, and paths stay inside it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium.api.findings import Place
from podium.api.kinds import Object
from podium.bundle import authored, overlay
from podium.bundle.authored import Authored
from podium.bundle.model import Files
from podium.bundle.overlay import Image, Labels, Overlay, Patch, Replicas, Target
from podium.bundle.overlay.errors import OverlayError
from podium.bundle.overlay.fields import Path
from podium.bundle.overlay.generators import generate, with_hashed_names
from podium.bundle.overlay.references import resolve
from podium.bundle.overlay.replacements import replace_values
from podium.text import yaml

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_SUPPORTED = {
    "apiVersion",
    "kind",
    "metadata",
    "resources",
    "bases",
    "components",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "images",
    "imageTags",
    "labels",
    "commonLabels",
    "commonAnnotations",
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "replicas",
    "replacements",
    "configMapGenerator",
    "secretGenerator",
    "generatorOptions",
    "configurations",
    "sortOptions",  # order carries no meaning here
}
_INSTEAD = {
    "vars": "use `replacements`, which kustomize offers in their place",
    "helmCharts": "render the chart first and list the result under `resources`",
    "helmChartInflationGenerator": "render the chart first and list the result under `resources`",
    "generators": "run the generator first and list its output under `resources`",
    "transformers": "say the same with `patches`, or run kustomize and use its output",
    "validators": "leave it out: `podium bundle validate` checks the result",
    "crds": "list the files under `resources`",
    "openapi": "use JSON patches for kinds that Kubernetes does not know",
    "buildMetadata": "leave it out: a bundle has no use for build metadata",
}
_REMOTE = ("http://", "https://", "git@", "ssh://", "github.com/")
_LOCAL_ONLY = "config.kubernetes.io/local-config"


def find(files: Files, folder: str) -> str | None:
    """The path of a folder's kustomization; None if it has none."""
    names = [_join(folder, name) for name in FILE_NAMES]
    return next((name for name in names if name in files), None)


def build(files: Files, folder: str) -> list[Authored]:
    """The objects that a folder's kustomization describes; OverlayError if it cannot be built."""
    built = _Build(files)
    objects = with_hashed_names(built.accumulate(_join(folder, "."), ()))
    objects = resolve(objects, built.references)
    return [item for item in objects if not _is_local(item)]


def _is_local(item: Authored) -> bool:
    annotations = item.metadata.get("annotations")
    return isinstance(annotations, dict) and annotations.get(_LOCAL_ONLY) == "true"


def _join(folder: str, name: str) -> str:
    joined = posixpath.normpath(posixpath.join(folder, name))
    return "" if joined == "." else joined


class _Build:
    def __init__(self, files: Files) -> None:
        self._files = files
        self.references: list[tuple[str, str, Path]] = []  # rules that the project adds

    def accumulate(self, folder: str, above: tuple[str, ...]) -> list[Authored]:
        path = find(self._files, folder)
        if path is None:
            raise OverlayError(
                f"{folder or 'the project'} has no kustomization.yaml", Place(above[-1] if above else "")
            )
        if path in above:
            raise OverlayError(
                f"kustomizations include each other: {' -> '.join((*above, path))}", Place(path)
            )
        settings = self._settings(path)
        objects: list[Authored] = []
        for entry in (*_texts(settings, "resources", path), *_texts(settings, "bases", path)):
            objects += self._resource(entry, folder, path, above)
        return self._customised(objects, settings, folder, path, above)

    def _customised(
        self, objects: list[Authored], settings: Object, folder: str, path: str, above: tuple[str, ...]
    ) -> list[Authored]:
        self._configure(settings, folder, path)
        objects = generate(objects, settings, lambda name: self._read(folder, name, path), path)
        _no_duplicates(objects, path)
        for entry in _texts(settings, "components", path):
            component = find(self._files, _join(folder, entry))
            if component is None:
                raise OverlayError(
                    f"the component {entry} has no kustomization.yaml", self._place(path, "components")
                )
            inner = self._settings(component)
            inside = _join(folder, entry)
            for each in _texts(inner, "resources", component):
                objects += self._resource(each, inside, component, (*above, path))
            objects = self._customised(objects, inner, inside, component, (*above, path))
        objects = overlay.transform(objects, self._overlay(settings, folder, path))
        return replace_values(objects, self._replacements(settings, folder, path))

    def _settings(self, path: str) -> Object:
        try:
            settings = yaml.load(self._files[path])
        except yaml.YAMLError as error:
            raise OverlayError(str(error), Place(path, 1, getattr(error, "line", 0) or 0)) from None
        if not isinstance(settings, dict):
            raise OverlayError("the kustomization is empty", Place(path))
        for key, value in settings.items():
            if key not in _SUPPORTED and value not in (None, [], {}, ""):
                remedy = _INSTEAD.get(key, "is it misspelt? Otherwise run kustomize and use its output")
                raise OverlayError(f"the field `{key}` is not supported: {remedy}", self._place(path, key))
        return settings

    def _place(self, path: str, *keys: str | int) -> Place:
        return Place(path, 1, yaml.locate(self._files[path], keys) if path in self._files else 0)

    def _resource(self, entry: str, folder: str, path: str, above: tuple[str, ...]) -> list[Authored]:
        if entry.startswith(_REMOTE) or "?ref=" in entry:
            raise OverlayError(
                f"{entry} lies on another machine: download it into the project",
                self._place(path, "resources"),
            )
        target = _join(folder, entry)
        if target in self._files:
            found = authored.read_file(target, self._files[target])
            if found.findings:
                raise OverlayError(found.findings[0].message, found.findings[0].place)
            return list(found.objects)
        if any(name.startswith(f"{target}/") for name in self._files) or not target:
            return self.accumulate(target, (*above, path))
        raise OverlayError(
            f"there is no {entry} in {folder or 'the project'}", self._place(path, "resources")
        )

    def _read(self, folder: str, name: str, path: str) -> bytes:
        target = _join(folder, name)
        if target not in self._files:
            raise OverlayError(f"there is no {name} in {folder or 'the project'}", Place(path))
        return self._files[target]

    def _configure(self, settings: Object, folder: str, path: str) -> None:
        for entry in _texts(settings, "configurations", path):
            rules = yaml.load(self._read(folder, entry, path))
            place = Place(_join(folder, entry))
            for key, value in (rules or {}).items():
                if key == "nameReference":
                    self.references += _name_references(value, place)
                elif key not in ("namespace", "varReference") and value:
                    # Namespaces follow the objects that own them; variables are refused where declared.
                    raise OverlayError(
                        f"the transformer configuration `{key}` is not supported: use patches", place
                    )

    def _overlay(self, settings: Object, folder: str, path: str) -> Overlay:
        labels = [_labels(entry, path) for entry in _mappings(settings, "labels", path)]
        common = _pairs(settings, "commonLabels", path)
        return Overlay(
            name_prefix=_text(settings, "namePrefix", path),
            name_suffix=_text(settings, "nameSuffix", path),
            namespace=_text(settings, "namespace", path),
            images=[
                _image(entry, path)
                for key in ("images", "imageTags")
                for entry in _mappings(settings, key, path)
            ],
            labels=[*labels, *([Labels(common, selectors=True)] if common else [])],
            annotations=_pairs(settings, "commonAnnotations", path),
            patches=[
                *self._merge_patches(settings, folder, path),
                *self._patches(settings, "patches", folder, path),
            ],
            late_patches=self._patches(settings, "patchesJson6902", folder, path),
            replicas=[
                Replicas(str(entry.get("name")), int(entry.get("count", 0)))
                for entry in _mappings(settings, "replicas", path)
            ],
        )

    def _merge_patches(self, settings: Object, folder: str, path: str) -> list[Patch]:
        result: list[Patch] = []
        for entry in _texts(settings, "patchesStrategicMerge", path):
            inline = _join(folder, entry) not in self._files
            source = path if inline else _join(folder, entry)
            content = entry.encode() if inline else self._files[source]
            result += [
                Patch(each, place=Place(source))
                for each in _contents(content, source)
                if isinstance(each, dict)
            ]
        return result

    def _patches(self, settings: Object, key: str, folder: str, path: str) -> list[Patch]:
        result: list[Patch] = []
        for index, entry in enumerate(_mappings(settings, key, path)):
            place = self._place(path, key, index)
            if unknown := set(entry) - {"path", "patch", "target"}:
                raise OverlayError(f"`{key}.{min(unknown)}` is not supported: leave it out", place)
            if ("path" in entry) == ("patch" in entry):
                raise OverlayError("a patch needs either `path` or `patch`", place)
            if "path" in entry:
                source = _join(folder, str(entry["path"]))
                contents = _contents(self._read(folder, str(entry["path"]), path), source)
                place = Place(source)
            else:
                contents = _contents(str(entry["patch"]).encode(), path)
            target = Target.parse(entry["target"], Place(path)) if entry.get("target") else None
            if target is not None and len(contents) > 1:
                raise OverlayError("a patch with a target may hold one document only", place)
            result += [Patch(each, target, place, must_match=target is None) for each in contents]
        return result

    def _replacements(self, settings: Object, folder: str, path: str) -> list[tuple[Object, Place]]:
        result: list[tuple[Object, Place]] = []
        for index, entry in enumerate(_mappings(settings, "replacements", path)):
            if set(entry) == {"path"}:
                source = _join(folder, str(entry["path"]))
                loaded = yaml.load(self._read(folder, str(entry["path"]), path))
                listed = loaded if isinstance(loaded, list) else [loaded]
                result += [(each, Place(source)) for each in listed if isinstance(each, dict)]
            else:
                result.append((entry, self._place(path, "replacements", index)))
        return result


def _no_duplicates(objects: Iterable[Authored], path: str) -> None:
    seen: set[tuple[str, str, str, str]] = set()
    for item in objects:
        identity = (item.group, item.kind, item.namespace, item.name)
        if identity in seen:
            raise OverlayError(f"{item.title} is listed twice", Place(path))
        seen.add(identity)


def _contents(data: bytes, source: str) -> list[Any]:
    try:
        return [value for value in yaml.load_all(data) if value is not None]
    except yaml.YAMLError as error:
        raise OverlayError(f"the patch is no YAML: {error}", Place(source)) from None


def _image(entry: Mapping[str, Any], path: str) -> Image:
    names = {
        "name": "name",
        "newName": "new_name",
        "newTag": "new_tag",
        "digest": "digest",
        "tagSuffix": "tag_suffix",
    }
    if unknown := set(entry) - set(names):
        raise OverlayError(f"an image has no field `{min(unknown)}`", Place(path))
    return Image(**{names[key]: str(each) for key, each in entry.items()})


def _labels(entry: Mapping[str, Any], path: str) -> Labels:
    if unknown := set(entry) - {"pairs", "includeSelectors", "includeTemplates"}:
        raise OverlayError(f"`labels.{min(unknown)}` is not supported: use patches", Place(path))
    pairs = _pairs(entry, "pairs", path)
    return Labels(pairs, bool(entry.get("includeSelectors")), bool(entry.get("includeTemplates")))


def _name_references(value: Any, place: Place) -> list[tuple[str, str, Path]]:
    rules: list[tuple[str, str, Path]] = []
    for entry in value if isinstance(value, list) else ():
        for spec in entry.get("fieldSpecs") or ():
            if not spec.get("kind"):
                raise OverlayError("a nameReference needs the kind of the object that refers", place)
            rules.append((str(entry["kind"]), str(spec["kind"]), tuple(str(spec["path"]).split("/"))))
    return rules


def _text(settings: Mapping[str, Any], key: str, path: str) -> str:
    value = settings.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise OverlayError(f"`{key}` must be a text", Place(path))
    return value


def _texts(settings: Mapping[str, Any], key: str, path: str) -> Sequence[str]:
    value = settings.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise OverlayError(f"`{key}` must be a list of texts", Place(path))
    return value


def _mappings(settings: Mapping[str, Any], key: str, path: str) -> Sequence[Object]:
    value = settings.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise OverlayError(f"`{key}` must be a list of mappings", Place(path))
    return value


def _pairs(settings: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
    value = settings.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise OverlayError(f"`{key}` must map names to texts; quote numbers and booleans", Place(path))
    return dict(value)
