"""Changes to a set of objects that authors make with kustomize and yq: names, images, labels, patches.

An `Overlay` is one layer of changes, applied in kustomize's order: merge patches and JSON patches, namespace,
prefix and suffix, labels, annotations, older JSON patches, replicas, images. Renaming only records what an
object was called before; `resolve` then mends every reference at once, after the last layer, because a
reference may name what any layer renamed. Inputs are never changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from podium.api import selectors
from podium.api.findings import Place
from podium.api.kinds import Key, Object
from podium.bundle.authored import Authored
from podium.bundle.model import name_of
from podium.bundle.overlay import fields as overlay_fields
from podium.bundle.overlay import values as overlay_values
from podium.bundle.overlay.errors import OverlayError
from podium.bundle.overlay.merge import strategic_merge
from podium.bundle.overlay.references import resolve
from podium.schema import facts, patches

__all__ = [
    "Image",
    "Labels",
    "Overlay",
    "OverlayError",
    "Patch",
    "Replicas",
    "Target",
    "apply",
    "resolve",
    "transform",
]

_FEW = 5  # objects that an error lists
_COMPARED = 100  # characters of their names that count for their order
# Their names are part of an API, or chosen by whoever installs.
_NEVER_RENAMED = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("", "Namespace"),
}


@dataclass(frozen=True, slots=True)
class Image:
    """A new name, tag or digest for the images of one name."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""
    tag_suffix: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels for all objects; on request also in pod templates, or in templates and selectors."""

    pairs: Mapping[str, str]
    selectors: bool = False
    templates: bool = False


@dataclass(frozen=True, slots=True)
class Replicas:
    """A number of replicas for the workloads of one name."""

    name: str
    count: int


TARGET_FIELDS = {  # in a kustomization, and in the class below
    "group": "group",
    "version": "version",
    "kind": "kind",
    "name": "name",
    "namespace": "namespace",
    "labelSelector": "label_selector",
    "annotationSelector": "annotation_selector",
}


@dataclass(frozen=True, slots=True)
class Target:
    """Which objects a patch is for; empty fields match everything, the first five are regular expressions."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    label_selector: str = ""
    annotation_selector: str = ""

    @classmethod
    def parse(cls, value: Any, place: Place) -> Target:
        """What a mapping in a kustomization selects; OverlayError if it is none."""
        if not isinstance(value, dict):
            raise OverlayError("a target must be a mapping", place)
        if unknown := set(value) - set(TARGET_FIELDS):
            raise OverlayError(f"a target has no field `{min(unknown)}`", place)
        return cls(**{TARGET_FIELDS[key]: str(each) for key, each in value.items() if each is not None})

    def matches(self, item: Authored) -> bool:
        """Whether an object is meant, by any name that it had or has."""
        gvk = item.gvk
        if not (_full(self.group, gvk.group) and _full(self.version, gvk.version)):
            return False
        if not _full(self.kind, gvk.kind):
            return False
        keys = (*item.former, Key(item.namespace, item.name))
        if not any(_full(self.name, key.name) and _full(self.namespace, key.namespace) for key in keys):
            return False
        return _selected(self.label_selector, item.metadata.get("labels")) and _selected(
            self.annotation_selector, item.metadata.get("annotations")
        )

    def __str__(self) -> str:
        texts = (self.group, self.version, self.kind, self.namespace, self.name)
        selected = (self.label_selector, self.annotation_selector)
        return " ".join(text for text in (*texts, *selected) if text) or "anything"


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON patch (a list), a strategic merge patch (a mapping) or a value expression (a text).

    A merge patch without a target is for the one object whose kind and name it has.
    """

    content: Object | list[Any] | str
    target: Target | None = None
    place: Place = Place()
    must_match: bool = True  # kustomize lets a patch that has a target match nothing


@dataclass(frozen=True, slots=True)
class Overlay:
    """One layer of changes; the empty one changes nothing."""

    name_prefix: str = ""
    name_suffix: str = ""
    namespace: str = ""
    images: Sequence[Image] = ()
    labels: Sequence[Labels] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    patches: Sequence[Patch] = ()
    late_patches: Sequence[Patch] = ()
    replicas: Sequence[Replicas] = ()


Predicate = Callable[[Authored], bool]


def apply(objects: Iterable[Authored], overlay: Overlay, *, only: Predicate | None = None) -> list[Authored]:
    """The objects after a layer, references mended; all but patches reach only what `only` lets through."""
    return resolve(transform(objects, overlay, only=only))


def transform(
    objects: Iterable[Authored], overlay: Overlay, *, only: Predicate | None = None
) -> list[Authored]:
    """The objects after a layer, references not yet mended."""
    items = [item.with_object(copy.deepcopy(item.object)) for item in objects]
    for patch in overlay.patches:
        items = _patch(items, patch)
    chosen = [item for item in items if only is None or only(item)]
    kept = {id(item): index for index, item in enumerate(items)}
    scopes = _cluster_scoped(items)
    for item in chosen:
        changed = item
        if overlay.namespace:
            changed = _in_namespace(changed, overlay.namespace, scopes)
        if overlay.name_prefix or overlay.name_suffix:
            changed = _renamed(changed, overlay.name_prefix, overlay.name_suffix)
        for labels in overlay.labels:
            overlay_fields.set_labels(changed.object, labels.pairs, labels.selectors, labels.templates)
        if overlay.annotations:
            overlay_fields.set_annotations(changed.object, overlay.annotations)
        items[kept[id(item)]] = changed
    for patch in overlay.late_patches:
        items = _patch(items, patch)
    for item in items:
        if only is None or only(item):
            _counts(item, overlay.replicas)
            for image in overlay.images:
                overlay_fields.set_images(item.object, partial(new_image, image))
    return items


def new_image(image: Image, text: str) -> str:
    """An image reference after one image change; the same text if it is another image."""
    name, tag, digest = split_image(text)
    if name != image.name:
        return text
    name = image.new_name or name
    if image.new_tag or image.digest:
        tag, digest = image.new_tag, image.digest
    elif image.tag_suffix:
        tag, digest = tag + image.tag_suffix, ""
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def split_image(text: str) -> tuple[str, str, str]:
    """Name, tag and digest of an image reference, each as written; a port is no tag."""
    name, _, digest = text.partition("@")
    slash = name.rfind("/")
    colon = name.rfind(":")
    if colon > slash:
        return name[:colon], name[colon + 1 :], digest
    return name, "", digest


def _full(pattern: str, text: str) -> bool:
    if not pattern:
        return True
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error as error:
        raise OverlayError(f"the target expression {pattern!r} is not valid: {error}") from None


def _selected(selector: str, labels: Any) -> bool:
    if not selector:
        return True
    try:
        wanted = selectors.parse(selector)
    except selectors.SelectorError as error:
        raise OverlayError(f"the selector {selector!r} is not valid: {error}") from None
    return selectors.matches(wanted, labels if isinstance(labels, dict) else {})


def _cluster_scoped(items: Iterable[Authored]) -> set[tuple[str, str]]:
    """Kinds, by group, whose objects have no namespace: the built-in ones and those of CRDs at hand."""
    known = {(fact.group, fact.kind) for fact in facts.load().resources if not fact.namespaced}
    for item in items:
        spec = item.object.get("spec")
        if item.kind == "CustomResourceDefinition" and isinstance(spec, dict):
            names = spec.get("names")
            if spec.get("scope") == "Cluster" and isinstance(names, dict):
                known.add((str(spec.get("group")), str(names.get("kind"))))
    return known


def _in_namespace(item: Authored, namespace: str, cluster_scoped: set[tuple[str, str]]) -> Authored:
    former = (*item.former, Key(item.namespace, item.name))
    obj = item.object
    if (item.group, item.kind) == ("", "Namespace"):
        obj.setdefault("metadata", {})["name"] = namespace
        return replace(item, former=former)
    overlay_fields.set_namespace_inside(obj, namespace)
    if (item.group, item.kind) in cluster_scoped:
        return item
    if item.namespace == namespace:
        return item
    obj.setdefault("metadata", {})["namespace"] = namespace
    return replace(item, former=former)


def _renamed(item: Authored, prefix: str, suffix: str) -> Authored:
    if (item.group, item.kind) in _NEVER_RENAMED or not item.name:
        return item
    former = (*item.former, Key(item.namespace, item.name))
    item.object["metadata"]["name"] = f"{prefix}{item.name}{suffix}"
    return replace(item, former=former, affixes=(*item.affixes, (prefix, suffix)))


def _counts(item: Authored, replicas: Sequence[Replicas]) -> None:
    if item.kind not in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"):
        return
    names = {item.name, *(key.name for key in item.former)}
    for each in replicas:
        if each.name in names:
            item.object.setdefault("spec", {})["replicas"] = each.count


def _patch(items: list[Authored], patch: Patch) -> list[Authored]:
    target = patch.target or _target_of(patch)
    result: list[Authored] = []
    found = False
    for item in items:
        if not target.matches(item):
            result.append(item)
            continue
        found = True
        changed = _patched(item, patch)
        if changed is not None:
            result.append(changed)
    if not found and (patch.must_match or patch.target is None):
        message = f"the patch is for {target}, but there is no such object{_there_are(items, target)}"
        raise OverlayError(message, patch.place)
    return result


def _there_are(items: Iterable[Authored], target: Target) -> str:
    """A few of the objects that there are, those first that may be meant."""
    wanted = f"{target.kind}/{target.name}"[:_COMPARED]
    names = sorted({f"{item.kind}/{item.former[0].name if item.former else item.name}" for item in items})
    names.sort(key=lambda name: SequenceMatcher(None, wanted, name[:_COMPARED]).ratio(), reverse=True)
    more = ", ..." if len(names) > _FEW else ""
    return f"; there are {', '.join(names[:_FEW])}{more}" if names else "; there are no objects at all"


def _target_of(patch: Patch) -> Target:
    """What a merge patch without a target is for: the object it names."""
    if not isinstance(patch.content, dict):
        raise OverlayError("a JSON patch needs a target: say which kind and name it is for", patch.place)
    group, _, version = str(patch.content.get("apiVersion", "")).rpartition("/")
    metadata = patch.content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = patch.content.get("kind")
    if not isinstance(name, str) or not isinstance(kind, str) or not version:
        raise OverlayError(
            "a merge patch without a target needs apiVersion, kind and metadata.name", patch.place
        )
    namespace = metadata.get("namespace") or "" if isinstance(metadata, dict) else ""
    return Target(
        re.escape(group), re.escape(version), re.escape(kind), re.escape(name), re.escape(namespace)
    )


def _patched(item: Authored, patch: Patch) -> Authored | None:
    """An object after a patch; None if the patch deletes it."""
    if isinstance(patch.content, list):
        try:
            result = patches.json_patch(item.object, patch.content)
        except ValueError as error:
            raise OverlayError(f"the patch does not apply to {item.title}: {error}", patch.place) from None
    elif isinstance(patch.content, str):
        result = overlay_values.change(item.object, patch.content, patch.place, item.title)
    else:
        result = strategic_merge(item.object, _anonymous(patch), shape_of(item))
        if result is None:
            return None
    if not isinstance(result, dict):
        raise OverlayError(f"the patch leaves no object of {item.title}", patch.place)
    if (result.get("kind"), name_of(result)) == (item.kind, item.name):
        return item.with_object(result)
    return replace(item, object=result, former=(*item.former, Key(item.namespace, item.name)))


def _anonymous(patch: Patch) -> Object:
    """A merge patch that leaves kind and name as they are, whatever it calls its target."""
    assert isinstance(patch.content, dict)
    content = {key: value for key, value in patch.content.items() if key not in ("apiVersion", "kind")}
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        named = {key: value for key, value in metadata.items() if key not in ("name", "namespace")}
        content["metadata"] = named
        if not named:
            del content["metadata"]
    return content


def shape_of(item: Authored) -> Any:
    """How objects of this kind merge; kinds that Kubernetes does not know merge by field."""
    gvk = item.gvk
    fact = facts.load().type_for(gvk.group, gvk.version, gvk.kind)
    return facts.shape_for(fact) if fact else None
