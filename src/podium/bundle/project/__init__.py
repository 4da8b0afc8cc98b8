"""The author's project: `podium.yaml`, one file from which bundle, images and catalog follow.

One version decides everything that must agree: the tags of three images, the name of the bundle, its
channels, and, where the author writes `${version}`, names, labels, selectors and leases of the operator.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from podium.api import names
from podium.api.findings import Finding, Place, Severity, failed
from podium.api.kinds import Object
from podium.bundle import authored, overlay
from podium.bundle.authored import Authored, Reading
from podium.bundle.generate import Generated, Options, generate
from podium.bundle.generate.csv import INSTALL_MODES, Details
from podium.bundle.model import CRD_KIND, CSV_KIND, Files, items, member
from podium.bundle.overlay import Image, Overlay
from podium.bundle.overlay import kustomize as overlay_kustomize
from podium.bundle.overlay import references as overlay_references
from podium.bundle.project.fields import Fields, Source, substitutions
from podium.bundle.project.layer import read_overlay
from podium.bundle.project.named import NamedFiles
from podium.text import references
from podium.text.semver import Version

FILE = "podium.yaml"
API_VERSION = "podium.dev/v1alpha1"
KIND = "OperatorProject"
ARCHETYPES = ("candidate", "fast", "stable")
CAPABILITIES = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
_OPM_RELEASE = re.compile(r"head|v?1\.[0-9]{1,6}(\.[0-9]{1,6})?")


class ProjectError(ValueError):
    """The project file cannot be used; `findings` says everything that is wrong with it."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = tuple(findings)


@dataclass(frozen=True, slots=True)
class Repositories:
    """Where a project's images lie, without tags; `placeholder` stands for the operator in manifests."""

    operator: str = ""
    bundle: str = ""
    catalog: str = ""
    placeholder: str = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What `podium.yaml` says."""

    name: str
    version: Version
    images: Repositories = Repositories()
    archetypes: tuple[str, ...] = ("stable",)
    channels_per: str = "major"
    manifests: str = "config"
    base_csv: str = ""
    dependencies: str = ""
    properties: str = ""
    extra_service_accounts: tuple[str, ...] = ()
    overlay: Overlay = field(default_factory=Overlay)
    details: Details = field(default_factory=Details)
    icon: str = ""
    description_file: str = ""
    template: str = "catalog/template.yaml"
    compat: str = "head"  # the release of opm whose upgrade edges the catalog has
    use_image_digests: bool = False
    source: Source | None = field(default=None, repr=False, compare=False)  # what it was read from

    @property
    def operator_image(self) -> str:
        """The operator's image of this version; empty if the project has none."""
        return self._tagged(self.images.operator)

    @property
    def bundle_image(self) -> str:
        """The bundle's image of this version; empty if the project has none."""
        return self._tagged(self.images.bundle)

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that this version is in, as the catalog's template will call them."""
        number = f"v{self.version.major}"
        if self.channels_per == "minor":
            number += f".{self.version.minor}"
        return tuple(f"{archetype}-{number}" for archetype in ARCHETYPES if archetype in self.archetypes)

    @property
    def default_channel(self) -> str:
        """The steadiest of the channels."""
        return self.channels[-1] if self.channels else ""

    def place(self, *path: str) -> Place:
        """Where the project's file has a field, or would have it."""
        return self.source.place(path) if self.source else Place(FILE)

    def _tagged(self, repository: str) -> str:
        return f"{repository}:{self.version}" if repository else ""


def parse(data: bytes, file: str = FILE, *, files: Files | None = None) -> Project:
    """The project that a file describes; patches are read from `files`. ProjectError lists all mistakes."""
    source = Source(data, file)
    root = source.root()
    if source.findings:
        raise ProjectError(source.findings)
    root.choice("apiVersion", (API_VERSION,), "")
    root.choice("kind", (KIND,), "")
    name = root.text("name", required="the package's name, such as my-operator")
    for problem in names.dns_label(name) if name else ():
        root.problem("name", problem)
    version = _version(root)
    source.variables = substitutions(version)
    catalog = root.fields("catalog")
    project = Project(
        name=name,
        version=version,
        images=_images(root.fields("images")),
        archetypes=root.texts("channels", ARCHETYPES) or ("stable",),
        channels_per=root.choice("channelsPer", ("major", "minor"), "major"),
        manifests=_folder(root.text("manifests", "config")),
        base_csv=root.text("baseCSV"),
        dependencies=root.text("dependencies"),
        properties=root.text("properties"),
        extra_service_accounts=root.texts("extraServiceAccounts"),
        overlay=read_overlay(root.fields("overlay"), source, files or {}),
        details=_details(root),
        icon=root.text("icon"),
        description_file=root.text("descriptionFile"),
        template=catalog.text("template", "catalog/template.yaml"),
        compat=_compat(catalog),
        use_image_digests=root.flag("useImageDigests"),
        source=source,
    )
    root.choice("signing", ("none",), "none")
    catalog.done()
    root.done()
    if source.findings:
        raise ProjectError(source.findings)
    return project


def read_manifests(project: Project, files: Files) -> Reading:
    """The objects of the manifests folder: built if it holds a kustomization, else as its files have them.

    ProjectError if any of them cannot be read: every later error would only follow from that.
    """
    if overlay_kustomize.find(files, project.manifests):
        reading = Reading(tuple(overlay_kustomize.build(files, project.manifests)))
    else:
        reading = authored.read(files, project.manifests)
    if failed(reading.findings):
        raise ProjectError(reading.findings)
    if not reading.objects:
        given = project.source is not None and "manifests" in project.source.root()
        if given or not project.base_csv:  # a base may hold everything, and then no folder is needed
            raise ProjectError([_no_manifests(project, given)])
    return reading


def _no_manifests(project: Project, given: bool) -> Finding:
    place = project.place("manifests")
    remedy = f" (manifests: in {place})" if given else "; name another with the field manifests:"
    message = f"the folder {project.manifests or 'of the project'} holds no manifests{remedy}"
    return Finding(Severity.ERROR, "no-manifests", message, project.name, place)


def bundle(
    project: Project,
    files: Files,
    *,
    now: datetime,
    previous: Files | None = None,
    digests: Mapping[str, str] | None = None,
) -> Generated:
    """The bundle of a project, from the project's files by their paths relative to `podium.yaml`."""
    reading = read_manifests(project, files)
    options, base = _options(project, files, digests)
    objects = overlay.apply(reading.objects, project.overlay, only=_operator_objects(reading.objects))
    _followed_by_name(objects)
    objects = _with_operator_image(project, objects)
    made = generate(objects, options, now=now, base_csv=base, previous=previous)
    findings = (*reading.findings, *_shared_selectors(project), *_unused_image(project, objects, base))
    return replace(made, findings=(*findings, *made.findings))


def _options(
    project: Project, files: Files, digests: Mapping[str, str] | None
) -> tuple[Options, Object | None]:
    """What a bundle is generated with, and its base; ProjectError lists all files that cannot be used."""
    named = NamedFiles(files, project.place)
    icon = named.icon("icon", project.icon)
    details = replace(project.details, icon=icon) if icon else project.details
    if project.description_file:
        details = replace(details, description=named.text("descriptionFile", project.description_file))
    base = named.csv("baseCSV", project.base_csv) if project.base_csv else None
    metadata = {
        f"{field}.yaml": named.data(field, path)
        for field, path in (("dependencies", project.dependencies), ("properties", project.properties))
        if path
    }
    if named.findings:
        raise ProjectError(named.findings)
    options = Options(
        package=project.name,
        version=str(project.version),
        channels=project.channels,
        default_channel=project.default_channel,
        details=details,
        extra_service_accounts=project.extra_service_accounts,
        container_image=project.operator_image,
        digests=digests,
        metadata=metadata,
    )
    return options, base


def _version(root: Fields) -> Version:
    text = root.version("version", required="the version that everything follows from, such as 0.1.0")
    version = Version.parse(text) if text else Version(0, 0, 0)
    if version.build:
        root.problem(
            "version", f"{text} has build metadata, which the tag of an image cannot hold; leave it out"
        )
    return version


def _compat(catalog: Fields) -> str:
    text = catalog.text("compat", "head")
    if not _OPM_RELEASE.fullmatch(text):
        catalog.problem("compat", f'{text!r} is no release of opm: write head, or one such as "1.51"')
    return text


def _images(fields: Fields) -> Repositories:
    found = {key: fields.text(key) for key in ("operator", "bundle", "catalog")}
    for key, text in found.items():
        if not text:
            continue
        try:
            reference = references.Reference.parse(text)
        except ValueError as error:
            fields.problem(key, f"{text!r} is no image: {error}")
            continue
        if overlay.split_image(text)[1] or reference.digest:
            fields.problem(key, f"{text} must have no tag or digest: its tag is the version")
        elif not references.is_canonical(text):
            fields.problem(key, f"write the whole name, {reference.name}: catalogs accept no shorter one")
    placeholder = fields.text("placeholder", "controller")
    fields.done()
    return Repositories(**found, placeholder=placeholder)


def _details(root: Fields) -> Details:
    capability = root.choice("capabilities", ("", *CAPABILITIES), "")
    categories = root.texts("categories")
    annotations = root.pairs("annotations")
    if capability:
        annotations["capabilities"] = capability
    if categories:
        annotations["categories"] = ", ".join(categories)
    provider = root.fields("provider")
    return Details(
        display_name=root.text("displayName"),
        description=root.text("description"),
        provider=_texts_of(provider, ("name", "url")) if provider else {},
        maintainers=[_texts_of(each, ("name", "email")) for each in root.each("maintainers")],
        links=[_texts_of(each, ("name", "url")) for each in root.each("links")],
        apis=[_texts_of(each, ("kind", "displayName", "description")) for each in root.each("apis")],
        keywords=root.texts("keywords"),
        maturity=root.text("maturity"),
        min_kube_version=root.version("minKubeVersion"),
        install_modes=root.texts("installModes", INSTALL_MODES),
        replaces=root.text("replaces"),
        skips=root.texts("skips"),
        skip_range=root.text("skipRange"),
        labels=root.pairs("labels"),
        annotations=annotations,
    )


def _texts_of(fields: Fields, keys: Sequence[str]) -> dict[str, str]:
    """A few texts, of which the first says who or what it is about."""
    found = {key: fields.text(key, required="say what it is about" if key == keys[0] else "") for key in keys}
    fields.done()
    return {key: text for key, text in found.items() if text}


def _folder(text: str) -> str:
    cleaned = posixpath.normpath(text)
    return "" if cleaned == "." else cleaned


def _operator_objects(objects: Sequence[Authored]) -> overlay.Predicate:
    """Tells the operator's own objects from examples, from what describes the bundle, and from CRDs.

    All versions of an operator share its CRDs, so nothing of one version may be written into them.
    """
    kinds = {
        (member(item.object, "spec").get("group"), member(item.object, "spec", "names").get("kind"))
        for item in objects
        if item.kind == CRD_KIND
    }

    def is_operators(item: Authored) -> bool:
        about = item.kind in (CSV_KIND, CRD_KIND) or item.group == "scorecard.operatorframework.io"
        return not about and (item.group, item.kind) not in kinds

    return is_operators


def _followed_by_name(objects: Sequence[Authored]) -> None:
    """Mends, in place, references whose namespace is not that of the object they name.

    Bundles have no namespaces, so a webhook's service and a binding's account are what their names say.
    """
    current = {(item.kind, item.name) for item in objects}
    renamed: dict[tuple[str, str], set[str]] = {}
    for item in objects:
        for key in item.former:
            renamed.setdefault((item.kind, key.name), set()).add(item.name)
    for item in objects:
        for reference in overlay_references.references(item.object):
            found = renamed.get((reference.kind, reference.name), set())
            if reference.paired and len(found) == 1 and (reference.kind, reference.name) not in current:
                reference.holder[reference.key] = min(found)


def _with_operator_image(project: Project, objects: Sequence[Authored]) -> list[Authored]:
    if not project.images.operator:
        return list(objects)
    image = Image(project.images.placeholder, project.images.operator, str(project.version))
    return overlay.transform(objects, Overlay(images=(image,)), only=lambda item: item.kind == "Deployment")


def _unused_image(project: Project, objects: Sequence[Authored], base: Object | None) -> list[Finding]:
    """An operator that would run another image than its own; a digest in the manifests may stand for it."""
    deployments = [item.object for item in objects if item.kind == "Deployment"]
    bases = [base, *(item.object for item in objects if item.kind == CSV_KIND)]
    if not deployments:
        deployments = [each for csv in bases for each in items(csv, "spec", "install", "spec", "deployments")]
    images = {
        str(container.get("image"))
        for deployment in deployments
        for kind in ("containers", "initContainers")
        for container in items(deployment, "spec", "template", "spec", kind)
        if isinstance(container, dict)
    }
    own = project.images.operator
    named = [split for split in map(overlay.split_image, images) if split[0] == own]
    if not own or not images or any(digest or tag == str(project.version) for _, tag, digest in named):
        return []
    message = (
        f"no container has the image {project.images.placeholder}, which stands for {own}; "
        f"set images.placeholder to one of those there are: {', '.join(sorted(images))}"
    )
    place = project.place("images", "placeholder")
    return [Finding(Severity.ERROR, "image-not-used", message, project.name, place)]


def _shared_selectors(project: Project) -> list[Finding]:
    """Versions whose objects differ only in name can run side by side, and then select each other's pods."""
    layer = project.overlay
    if not layer.name_suffix or any(labels.selectors for labels in layer.labels):
        return []
    message = (
        "nameSuffix lets versions run side by side, but their selectors are equal; "
        "add selectorLabels, such as {app.kubernetes.io/version: ${version}}"
    )
    return [Finding(Severity.WARNING, "shared-selectors", message, project.name, Place(FILE))]
