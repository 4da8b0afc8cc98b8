"""The `overlay` of a project file: names, labels, images and patches for the operator's objects."""

from __future__ import annotations

from typing import Any

from podium.bundle.model import Files
from podium.bundle.overlay import Image, Labels, Overlay, OverlayError, Patch, Target
from podium.bundle.overlay import values as overlay_values
from podium.bundle.project.fields import Fields, Source
from podium.text import yaml

_TARGET = ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")


def read_overlay(fields: Fields, source: Source, files: Files) -> Overlay:
    """The overlay that the fields describe; patches in files of their own are read from `files`."""
    plain, selecting = fields.pairs("labels"), fields.pairs("selectorLabels")
    result = Overlay(
        name_prefix=fields.text("namePrefix"),
        name_suffix=fields.text("nameSuffix"),
        namespace=fields.text("namespace"),
        images=[_image(each) for each in fields.each("images")],
        labels=[
            *([Labels(plain)] if plain else []),
            *([Labels(selecting, selectors=True)] if selecting else []),
        ],
        annotations=fields.pairs("annotations"),
        patches=[patch for each in fields.each("patches") for patch in _patches(each, source, files)],
    )
    fields.done()
    return result


def _image(fields: Fields) -> Image:
    result = Image(
        fields.text("name", required="the image's name in the manifests"),
        fields.text("newName"),
        fields.text("newTag"),
        fields.text("digest"),
    )
    fields.done()
    return result


def _patches(fields: Fields, source: Source, files: Files) -> list[Patch]:
    """One patch for each change; they are written as `set` expressions, as a `patch`, or in a `file`."""
    target = _target(fields.fields("target")) if "target" in fields else None
    place = source.place(fields.path)
    given = [key for key in ("set", "patch", "file") if key in fields]
    expressions, patch, file = fields.texts("set"), fields.raw("patch"), fields.text("file")
    fields.fields("target")
    fields.done()
    if len(given) != 1:
        fields.problem("set", "a patch needs one of `set`, `patch` and `file`")
        return []
    if expressions:
        if target is None:
            fields.problem(
                "target", "say what to change, such as {kind: Deployment, name: controller-manager}"
            )
            return []
        return [Patch(each, target, place) for each in expressions if _is_readable(fields, each)]
    contents = _contents(fields, source, patch, file, files)
    for content in contents:
        if isinstance(content, list) and target is None:
            fields.problem("target", "a JSON patch needs a target, such as {kind: Deployment}")
            return []
    return [Patch(content, target, place) for content in contents]


def _contents(fields: Fields, source: Source, patch: Any, file: str, files: Files) -> list[Any]:
    """The patches in a value, a text or a file, variables replaced."""
    if not file and not isinstance(patch, str):
        return [patch]
    if file and file not in files:
        fields.problem("file", f"there is no {file} in the project")
        return []
    try:
        loaded = list(yaml.load_all(files[file] if file else patch))
    except yaml.YAMLError as error:
        fields.problem("file" if file else "patch", f"{file or 'it'} is no YAML: {error}")
        return []
    path = (*fields.path, "file" if file else "patch")
    contents = [source.value(value, path) if file else value for value in loaded if value is not None]
    if not all(isinstance(content, dict | list) for content in contents):
        fields.problem(str(path[-1]), "a patch is a mapping to merge, or a list of JSON patch operations")
        return []
    return contents


def _is_readable(fields: Fields, expression: str) -> bool:
    try:
        overlay_values.parse(expression)
    except OverlayError as error:
        fields.problem("set", error.message)
        return False
    return True


def _target(fields: Fields) -> Target:
    group, version, kind, name, namespace, labels, annotations = (fields.text(key) for key in _TARGET)
    fields.done()
    return Target(group, version, kind, name, namespace, labels, annotations)
