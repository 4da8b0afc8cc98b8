"""Publishing an operator: from a project's folder to a bundle and a catalog that users can install from.

The story: generate the bundle, check it, make its image; add the version to the catalog's template, render
that, check the catalog against the one users have; and only when all is well write: the bundle first, then
the files of the project, then the catalog, so that whatever a catalog has is in the template, too. Whatever
was published stays as it is: a version is never given out twice.

Running it again does nothing: every step compares with what is there, and what is there keeps its time, so
that only content counts. What users have is the catalog with the highest version among the tags of its
repository, the bundles of all its other versions, and what the tag `latest` and the tags to be moved point at
now; nothing in any of them may vanish or change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from podium.api.findings import Finding, Severity, failed
from podium.bundle import checks
from podium.bundle.model import Files
from podium.bundle.project import Project, ProjectError
from podium.catalog import diff, render, write
from podium.catalog import templates as templating
from podium.catalog.blobs import BUNDLE as BUNDLE_SCHEMA
from podium.catalog.blobs import Blob, Bundle, CatalogError, canonical, typed
from podium.catalog.edit import add
from podium.catalog.lint import lint
from podium.catalog.migrate import Level
from podium.catalog.outline import outline
from podium.catalog.properties import version_of
from podium.catalog.templates.semver import generation
from podium.catalog.validate import validate
from podium.content.sources import bundle_files, catalog_blobs, open_source
from podium.oci.errors import ImageNotFound
from podium.oci.images import pull
from podium.oci.open import Images, parse
from podium.oci.tarwrite import TIME_LIMIT
from podium.operations import projects, templates
from podium.operations.files import replace_file
from podium.operations.lookups import digests_of
from podium.operations.packing import (
    Packed,
    Packing,
    Written,
    bundle_image,
    catalog_image,
    published_digest,
    put,
    size_of,
)
from podium.operations.projects import BUNDLE, Opened
from podium.operations.together import together
from podium.text.semver import Version

T = TypeVar("T")

_LATEST = "latest"  # a tag that users follow, whoever moves it
_MOST_CATALOGS = 50


class AlreadyPublished(Exception):
    """A version that exists with other content; nothing was written."""


class Rejected(Exception):
    """The bundle or the catalog breaks rules; nothing was written, and `findings` says which."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Request:
    """What to publish, and where to.

    `layout` is a directory that stands in for all registries: images lie in it under their full names.
    Without it, images go to the registries that the project names.
    """

    folder: Path
    layout: str = ""
    dry_run: bool = False
    catalog_tag: str = ""
    also_tags: tuple[str, ...] = ()
    use_image_digests: bool = False
    epoch: int | None = None

    def place(self, image: str) -> str:
        """Where an image is to be written and looked for."""
        if not self.layout:
            return image
        _, at, digest = image.partition("@")
        return f"oci:{self.layout}@{digest}" if at else f"oci:{self.layout}:{image}"


@dataclass(frozen=True, slots=True)
class Published:
    """What was published, or would be."""

    version: str
    channels: tuple[str, ...]
    bundle: Written
    catalog: Written
    changes: list[diff.Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    dry_run: bool = False


async def publish(request: Request, images: Images) -> Published:
    """Publish a project's version; AlreadyPublished, Rejected or ProjectError if it must not be."""
    opened = projects.open_project(request.folder, request.epoch)
    project = opened.project
    _require_images(project)
    bundle_place = request.place(project.bundle_image)
    earlier = await _published_bundle(bundle_place, images)
    files, findings = await _bundle(opened, earlier, request, images)
    built = bundle_image(files, await _packing(bundle_place, request, images))
    await _refuse_other_content(built, bundle_place, project, images)

    tag = request.catalog_tag or str(project.version)
    names = [str(parse(f"{project.images.catalog}:{each}")) for each in (tag, *request.also_tags)]
    place, *others = map(request.place, names)
    before = await _what_users_have(project, tag, request, images)
    template, blobs = await _catalog(opened, files, before, request, images)
    if failed(problems := validate(blobs)):
        raise Rejected([*findings, *problems, *lint(blobs, before)])
    content = {path: b"".join(pieces) for path, pieces in write.tree(blobs, write.yaml, "yaml")}
    catalog = catalog_image(content.items(), await _packing(place, request, images))
    moving = [other for other in others if not await _is_there(catalog, other, images)]
    followed = {*moving, request.place(f"{project.images.catalog}:{_LATEST}")}
    if not moving and await _is_there(catalog, place, images):
        before, followed = blobs, set()  # nobody gets anything new, even if there are newer catalogs by now
    findings += [*problems, *await _lint(blobs, before, sorted(followed), images)]
    _reject_errors(findings)
    await _refuse_other_catalog(catalog, place, images)

    changes = diff.diff(*(outline(map(canonical, each), contents=True) for each in (before, blobs)))
    if not request.dry_run:
        projects.require_place(opened.folder / BUNDLE, opened.folder / project.template)
    bundle = await _put(built, bundle_place, request, images)
    if not request.dry_run:
        projects.write_bundle(opened.folder / BUNDLE, files)
        _write_template(opened, template)
    wrote = [await _put(catalog, to, request, images) for to in (place, *moving)]
    return Published(
        str(project.version), project.channels, bundle, wrote[0], changes, findings, request.dry_run
    )


def _require_images(project: Project) -> None:
    missing = [
        f"images.{name}"
        for name, value in (("bundle", project.images.bundle), ("catalog", project.images.catalog))
        if not value
    ]
    if missing:
        message = f"publishing needs {' and '.join(missing)} in the project file"
        raise ProjectError([Finding(Severity.ERROR, "images-missing", message, project.name)])


async def _packing(place: str, request: Request, images: Images) -> Packing:
    """How to build an image: with the time of the one that is there, so that equal content is equal."""
    try:
        store, tag = images.store(place)
        created = str((await pull(store, tag)).config.get("created", ""))
        epoch = int(datetime.fromisoformat(created).timestamp())
    except (ImageNotFound, ValueError, OverflowError):
        epoch = -1
    return Packing(epoch=epoch if 0 <= epoch < TIME_LIMIT else request.epoch or 0)


async def _lint(blobs: list[Blob], before: list[Blob], places: list[str], images: Images) -> list[Finding]:
    """What users would lose: those of the catalog with the highest version, and those who follow a tag."""
    findings = lint(blobs, before)
    for place in places:
        try:
            followed = list(await catalog_blobs(await open_source(place, images)))
        except ImageNotFound:
            continue
        findings += lint(blobs, followed)
    return list(dict.fromkeys(findings))


async def _published_bundle(place: str, images: Images) -> Files | None:
    """The bundle that has this version's name already, if any."""
    try:
        return await bundle_files(await open_source(place, images))
    except ImageNotFound:
        return None


async def _bundle(
    opened: Opened, earlier: Files | None, request: Request, images: Images
) -> tuple[Files, list[Finding]]:
    """The bundle's files and what there is to say about them; Rejected if they are wrong."""
    made = projects.generate(opened, previous=earlier)
    if request.use_image_digests or opened.project.use_image_digests:
        digests = await digests_of(made.images, images)
        made = projects.generate(opened, digests, earlier)
    findings = [*made.findings, *checks.check(made.files)]
    _reject_errors(findings)
    return made.files, findings


async def _refuse_other_content(built: Packed, place: str, project: Project, images: Images) -> None:
    there = await published_digest(place, images)
    if there and there != built.descriptor.digest:
        raise AlreadyPublished(
            f"{project.bundle_image} is published already with other content ({there}); "
            f"users may have it installed, so raise the version in podium.yaml"
        )


async def _refuse_other_catalog(built: Packed, place: str, images: Images) -> None:
    there = await published_digest(place, images)
    if there and there != built.descriptor.digest:
        raise AlreadyPublished(
            f"the catalog {place} is published already with other content ({there}); "
            "publish this one under another tag with --catalog-tag"
        )


async def _what_users_have(project: Project, tag: str, request: Request, images: Images) -> list[Blob]:
    """The catalog with the highest version, and every bundle that only others have.

    A fix of an older version lies in its own catalog and perhaps nowhere else; it must not vanish either.
    """
    repository = project.images.catalog
    store, _ = images.store(request.place(f"{repository}:{tag}"))
    try:
        names = await store.tags()
    except ImageNotFound:
        return []
    prefix = f"{repository}:" if request.layout else ""
    tags = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    versions = sorted((version, name) for name in tags if name != tag and (version := _version(name)))
    newest_first = [name for _, name in reversed(versions)][:_MOST_CATALOGS]

    async def blobs_under(name: str) -> list[Blob]:
        source = await open_source(request.place(f"{repository}:{name}"), images)
        return list(await catalog_blobs(source))

    found: dict[tuple[str, str, str], Blob] = {}
    for number, blobs in enumerate(await together(blobs_under, newest_first)):
        for blob in blobs:
            if number == 0 or blob.schema == BUNDLE_SCHEMA:
                found.setdefault((blob.schema, blob.package, blob.name), blob)
    return list(found.values())


def _version(tag: str) -> Version | None:
    """The version that a tag spells (`1.2.3`, `v0.2`); a bare number may be a date and is none."""
    if "." not in tag:
        return None
    try:
        return Version.parse_tolerant(tag)
    except ValueError:
        return None


async def _catalog(
    opened: Opened, files: Files, before: list[Blob], request: Request, images: Images
) -> tuple[bytes, list[Blob]]:
    """The template with this version in it, and the catalog it makes.

    Bundles that users have are taken from their catalog as they are, not from images that may have moved.
    """
    project = opened.project
    ours = render.bundle_blob(files, project.bundle_image)
    known: dict[str, Files | Blob] = {}
    versions = {project.bundle_image: str(project.version)}
    for blob in before:
        fields = typed(blob)
        if isinstance(fields, Bundle) and fields.image:
            known[fields.image] = blob
            versions[fields.image] = version_of(fields)
    known[project.bundle_image] = files
    file = str(opened.folder / project.template)
    if project.template not in opened.files:
        raise FileNotFoundError(f"{file} is missing: the project's catalog is made from it")
    old = opened.files[project.template]
    template = add(
        old,
        ours,
        archetypes=project.archetypes,
        channels=project.channels,
        versions=_as_spelled(_full_names(old, file), versions),
        file=file,
    )
    names = _full_names(template, file)
    places = {name: request.place(full) for name, full in names.items()}
    wanted = templates.Request(
        template,
        file,
        generation(project.compat),
        Level.CSV_METADATA,
        known=_as_spelled(names, known),
        places=places,
    )
    return template, await templates.render(wanted, images)


def _full_names(template: bytes, file: str) -> dict[str, str]:
    """The bundles that a template names, each by its spelling there; catalogs have them in full."""
    found = {}
    for name in templating.images(template, file):
        try:
            found[name] = render.image_reference(name)
        except CatalogError:
            found[name] = name  # rendering will say what is wrong, and where
    return found


def _as_spelled(names: Mapping[str, str], by_full_name: Mapping[str, T]) -> dict[str, T]:
    """What is known by the full names of images, by the names that a template has for them."""
    return {name: by_full_name[full] for name, full in names.items() if full in by_full_name}


async def _is_there(built: Packed, place: str, images: Images) -> bool:
    return await published_digest(place, images) == built.descriptor.digest


async def _put(built: Packed, place: str, request: Request, images: Images) -> Written:
    if not request.dry_run:
        return await put(built, place, images)
    return Written(place, built.descriptor.digest, size_of(built), await _is_there(built, place, images))


def _reject_errors(findings: list[Finding]) -> None:
    if failed(findings):
        raise Rejected(findings)


def _write_template(opened: Opened, template: bytes) -> None:
    if opened.files[opened.project.template] != template:
        replace_file(opened.folder / opened.project.template, template)
