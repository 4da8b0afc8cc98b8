"""The images that an operator needs: which they are, what they are called, and how they are pinned.

A catalog lists them all, so that a cluster without the internet can mirror them. An operator names the images
that it starts later in environment variables that begin with RELATED_IMAGE_; those and the images of its own
containers can be replaced by digests, which the caller resolves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podium.api.kinds import Object
from podium.bundle.model import items, member
from podium.bundle.overlay import split_image

PREFIX = "RELATED_IMAGE_"
CONTAINER_IMAGE = "containerImage"


class UnresolvedImageError(ValueError):
    """Images that shall be pinned but whose digests the caller did not give; `images` lists them."""

    def __init__(self, images: Iterable[str]) -> None:
        self.images = tuple(images)
        super().__init__(f"no digest is known for {', '.join(self.images)}")


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    image: str
    container: str  # deployment, and container where there are several


def related(deployments: Iterable[Object]) -> list[Object]:
    """The images that environment variables of deployments (their name and spec) name.

    A name that stands for several images is told apart by its container; an image with several names is
    listed once, without any.
    """
    found: dict[tuple[str, str], _Found] = {}
    for deployment in deployments:
        containers = [*_containers(deployment, "containers"), *_containers(deployment, "initContainers")]
        for container in containers:
            where = str(deployment.get("name"))
            if len(containers) > 1:
                where += f"-{container.get('name')}"
            for variable in _variables(container):
                name = related_name(variable["name"])
                image = str(variable.get("value") or "")
                found.setdefault((name, image), _Found(name, image, where))
    return [entry for each in found.values() for entry in _listed(each, list(found.values()))]


def _listed(each: _Found, every: list[_Found]) -> Iterator[Object]:
    name = each.name
    if sum(other.name == each.name for other in every) > 1:
        name = f"{each.container}-{name}"
    same = [other.name for other in every if other.image == each.image]
    if len(same) > 1:
        if same[0] != each.name:
            return
        name = ""
    yield {"name": name, "image": each.image}


def indirect(deployments: Iterable[Object]) -> list[str]:
    """Names of RELATED_IMAGE_ variables that take their value from elsewhere, which nobody can resolve."""
    return [
        variable["name"]
        for deployment in deployments
        for kind in ("containers", "initContainers")
        for container in _containers(deployment, kind)
        for variable in _variables(container)
        if variable.get("valueFrom") is not None
    ]


def related_name(variable: str) -> str:
    """What the image of a RELATED_IMAGE_ variable is called: its rest, in small letters, with dashes."""
    return variable.removeprefix(PREFIX).replace("_", "-").lower()


def images(csv: Object) -> list[str]:
    """Every image that a ClusterServiceVersion names, sorted: what a caller resolves to pin them."""
    found = {image for _, image in _named(csv)}
    return sorted(image for image in found if image)


def pin(csv: Object, digests: Mapping[str, str]) -> None:
    """Replaces every image by its digest, in place, and lists them all as related images.

    `digests` maps images, as written, to `sha256:...`; images that have a digest already stay as they are.
    """
    missing = [image for image in images(csv) if "@" not in image and image not in digests]
    if missing:
        raise UnresolvedImageError(missing)

    def pinned(image: str) -> str:
        return image if "@" in image or not image else f"{split_image(image)[0]}@{digests[image]}"

    for deployment in _deployments(csv):
        for kind in ("containers", "initContainers"):
            for container in _containers(deployment, kind):
                if isinstance(container.get("image"), str):
                    container["image"] = pinned(container["image"])
                for variable in _variables(container):
                    if isinstance(variable.get("value"), str):
                        variable["value"] = pinned(variable["value"])
    annotations = member(csv, "metadata", "annotations")
    if isinstance(annotations, dict) and isinstance(annotations.get(CONTAINER_IMAGE), str):
        annotations[CONTAINER_IMAGE] = pinned(annotations[CONTAINER_IMAGE])
    for entry in items(csv, "spec", "relatedImages"):
        entry["image"] = pinned(str(entry.get("image") or ""))
    csv["spec"]["relatedImages"] = _all_related(csv)


def _all_related(csv: Object) -> list[Object]:
    """All images by name; a container's name that several images have is told apart by its deployment."""
    named = [(str(entry.get("name") or ""), entry["image"]) for entry in items(csv, "spec", "relatedImages")]
    known = {image for _, image in named}
    own = [
        (str(deployment.get("name")), str(container.get("name")), container["image"])
        for deployment in _deployments(csv)
        for kind in ("containers", "initContainers")
        for container in _containers(deployment, kind)
        if container.get("image")
    ]
    taken: dict[str, set[str]] = {}
    for name, image in named:
        taken.setdefault(name, set()).add(image)
    for _, name, image in own:
        taken.setdefault(name, set()).add(image)
    for deployment, name, image in own:
        named.append((name if len(taken[name]) == 1 else f"{deployment}-{name}", image))
    annotated = member(csv, "metadata", "annotations").get(CONTAINER_IMAGE)
    if annotated and annotated not in known | {image for _, _, image in own}:
        named.append((split_image(annotated)[0].rpartition("/")[2], annotated))
    return [{"name": name, "image": image} for name, image in sorted(set(named))]


def _named(csv: Object) -> Iterator[tuple[str, str]]:
    for entry in items(csv, "spec", "relatedImages"):
        if isinstance(entry, dict):
            yield str(entry.get("name") or ""), str(entry.get("image") or "")
    for deployment in _deployments(csv):
        for kind in ("containers", "initContainers"):
            for container in _containers(deployment, kind):
                yield str(container.get("name")), str(container.get("image") or "")
                for variable in _variables(container):
                    yield related_name(variable["name"]), str(variable.get("value") or "")
    yield CONTAINER_IMAGE, str(member(csv, "metadata", "annotations").get(CONTAINER_IMAGE) or "")


def _deployments(csv: Object) -> list[Object]:
    return [each for each in items(csv, "spec", "install", "spec", "deployments") if isinstance(each, dict)]


def _containers(deployment: Object, kind: str) -> list[Object]:
    found = items(deployment, "spec", "template", "spec", kind)
    return [container for container in found if isinstance(container, dict)]


def _variables(container: Object) -> list[dict[str, Any]]:
    return [
        variable
        for variable in items(container, "env")
        if isinstance(variable, dict) and str(variable.get("name")).startswith(PREFIX)
    ]
