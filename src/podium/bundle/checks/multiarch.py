"""Whether images run on every platform that the ClusterServiceVersion promises, and whether it promises all.

The option `platforms` says what the images offer: a mapping from image to pairs of operating system and
architecture. Whoever calls this asks the registries; an image that is not in the mapping was not found there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from podium.bundle.checks.context import Decoded, Report, Subject
from podium.bundle.model import items, member, text
from podium.bundle.typed import Path

OPTION = "platforms"
_ARCH_LABEL, _OS_LABEL = "operatorframework.io/arch.", "operatorframework.io/os."
_SIDECAR = "kube-rbac-proxy"  # what operator-sdk puts beside every manager

Platform = tuple[str, str]


def images(csv: Mapping[str, Any]) -> list[str]:
    """The images that the check wants to know the platforms of."""
    found = [text(container.get("image")) for _, container in _containers_of(csv)]
    found += [text(member(each).get("image")) for each in items(csv, "spec", "relatedImages")]
    return list(dict.fromkeys(image for image in found if image))


def _containers_of(csv: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, deployment in enumerate(items(csv, "spec", "install", "spec", "deployments")):
        for container in items(deployment, "spec", "template", "spec", "containers"):
            if isinstance(container, dict):
                yield index, container


def check(subject: Subject, report: Report) -> None:
    """Reports promises that the images do not keep, and platforms that nothing promises."""
    known = subject.options.get(OPTION)
    _MultiArch(subject.csv, known if isinstance(known, Mapping) else {}, report).all()


class _MultiArch:
    def __init__(self, csv: Decoded, known: Mapping[str, Any], report: Report) -> None:
        self._csv = csv
        self._report = report
        self._where: dict[str, Any] = {"subject": csv.name, "file": csv.manifest.path}
        containers = list(_containers_of(csv.value))
        self._managers = _managers(containers)
        self._others = _distinct(
            text(c.get("image")) for _, c in containers if text(c.get("image")) not in self._managers
        )
        self._related = _distinct(text(each.get("image")) for _, each in csv.objects("relatedImages"))
        self._platforms: dict[str, tuple[Platform, ...] | None] = {
            image: _read(known.get(image)) for image in (*self._managers, *self._others, *self._related)
        }
        labels = member(csv.value, "metadata").get("labels") or {}
        self._archs = _labelled(labels, _ARCH_LABEL)
        self._systems = _labelled(labels, _OS_LABEL)
        self._affinities = _affinities(csv)

    def _warn(self, rule: str, message: str, path: Path = ("spec",)) -> None:
        self._report.warn(rule, message, path=path, **self._where)

    def all(self) -> None:
        for image, platforms in self._platforms.items():
            if platforms is None:
                self._warn("image-not-inspected", f"unable to inspect the image {image}")
        self._promised()
        archs = self._possible(self._archs, "amd64", 1)
        systems = self._possible(self._systems, "linux", 0)
        self._labels("arch-label-missing", _ARCH_LABEL, self._archs, archs, "amd64")
        self._labels("os-label-missing", _OS_LABEL, self._systems, systems, "linux")
        for image in _distinct((*self._others, *self._related)):
            self._supports(image, archs, 1)
            self._supports(image, systems, 0)
        for image in (*self._managers, *self._others):
            self._affinity(image)

    def _promised(self) -> None:
        """Every image must offer each promised platform; linux on amd64 if the labels say nothing."""
        for system in self._systems or ("linux",):
            for arch in self._archs or ("amd64",):
                lacking = [
                    image
                    for image, offered in self._platforms.items()
                    if offered is not None and (system, arch) not in offered
                ]
                if lacking:
                    self._report.error(
                        "platform-unsupported",
                        f"not all images provide the support described via the CSV labels: {system}.{arch} "
                        f"was not found for {', '.join(sorted(lacking))}",
                        path=("metadata", "labels"),
                        **self._where,
                    )

    def _possible(self, promised: Sequence[str], default: str, index: int) -> list[str]:
        offered = [p[index] for image in self._managers for p in self._platforms[image] or ()]
        return sorted({*(promised or (default,)), *offered} - {""})

    def _labels(
        self, rule: str, label: str, promised: Sequence[str], possible: Sequence[str], default: str
    ) -> None:
        if list(possible) == [default]:
            return
        missing = [each for each in possible if each not in promised]
        if missing:
            self._warn(
                rule,
                f"check if the CSV is missing the label {label}<value> for {', '.join(missing)}: the "
                "manager's image provides this support",
                ("metadata", "labels"),
            )

    def _supports(self, image: str, possible: Sequence[str], index: int) -> None:
        offered = self._platforms[image]
        if offered is None:
            return
        missing = [each for each in possible if each not in {platform[index] for platform in offered}]
        if missing:
            self._warn(
                "image-platform-missing",
                f"check if the image {image} should not support {', '.join(missing)}, as the operator does",
            )

    def _affinity(self, image: str) -> None:
        offered = self._platforms[image]
        wanted = self._affinities.get(image) or ()
        if not wanted:
            self._warn(
                "node-affinity-missing",
                f"check if the CSV has a missing or invalid node affinity for the image {image}",
            )
            return
        if offered is None:
            return
        extra = [each for each in wanted if each not in offered]
        missing = [each for each in offered if each not in wanted]
        if extra:
            self._warn(
                "node-affinity-extra", f"the node affinity for {image} includes {_listed(extra)}: it has none"
            )
        if missing:
            self._warn("node-affinity-short", f"the node affinity for {image} leaves out {_listed(missing)}")


def _listed(platforms: Iterable[Platform]) -> str:
    return ", ".join(f"{system}/{arch}" for system, arch in platforms)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _read(platforms: Any) -> tuple[Platform, ...] | None:
    """The platforms of an image; attestations and other entries without one are left out."""
    if not isinstance(platforms, Sequence):
        return None
    pairs = [(str(each[0]), str(each[1])) for each in platforms if _is_pair(each)]
    return tuple(pair for pair in pairs if not {"", "unknown"} & set(pair))


def _is_pair(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2


def _managers(containers: Sequence[tuple[int, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Images of the containers named manager; of all but the side-car in a deployment without one."""
    found: dict[str, None] = {}
    for index in dict.fromkeys(index for index, _ in containers):
        own = [container for at, container in containers if at == index]
        managers = [c for c in own if c.get("name") == "manager" and text(c.get("image")) not in found]
        for container in managers or [c for c in own if c.get("name") != _SIDECAR]:
            found[text(container.get("image"))] = None
    return tuple(found)


def _labelled(labels: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    return _distinct(
        key.replace(prefix, "") for key, value in labels.items() if prefix in key and value == "supported"
    )


def _affinities(csv: Decoded) -> dict[str, tuple[Platform, ...]]:
    found: dict[str, tuple[Platform, ...]] = {}
    seen_managers: set[str] = set()
    for _, deployment in csv.objects("install", "spec", "deployments"):
        pod = member(deployment, "spec", "template", "spec")
        for container in items(pod, "containers"):
            image = text(member(container).get("image"))
            if image in seen_managers:
                continue
            if member(container).get("name") == "manager":
                seen_managers.add(image)
            found[image] = tuple(_selected(pod))
    return found


def _selected(pod: Mapping[str, Any]) -> Iterator[Platform]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for term in items(pod, "affinity", "nodeAffinity", required, "nodeSelectorTerms"):
        values: dict[str, Sequence[Any]] = {}
        for expression in items(term, "matchExpressions"):
            if isinstance(expression, dict) and expression.get("operator") == "In":
                values[text(expression.get("key"))] = items(expression, "values")
        for system in values.get("kubernetes.io/os", ()):
            for arch in values.get("kubernetes.io/arch", ()):
                yield text(system), text(arch)
