"""`olm.template.substitutes`: a valid catalog, and bundles that take the place of others in it.

A substitute is a rebuild of a version that is out already. In every channel it takes over the edges of its
base and skips it; what replaced the base replaces the substitute, what skipped the base skips the
substitute. The base stays, without edges, so that nobody who runs it is stranded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.api.findings import Place, failed
from podium.catalog import blobs
from podium.catalog.blobs import BUNDLE, CHANNEL, PACKAGE, Blob, Bundle, CatalogError, Channel, ChannelEntry
from podium.catalog.migrate import Level, find_csv
from podium.catalog.properties import CSV_METADATA, packages_of, release_identifiers
from podium.catalog.read import documents
from podium.catalog.templates.basic import first_document, listed
from podium.catalog.templates.sources import Rendered, Sources
from podium.catalog.validate import validate
from podium.text.semver import Version

SCHEMA = "olm.template.substitutes"


def images(template: bytes, file: str = "") -> list[str]:
    """The substitutes that a template names, each once."""
    return list(dict.fromkeys(image for image, _ in _parse(template, file)[1] if image))


def render(template: bytes, sources: Sources, file: str = "", *, level: Level = Level.NONE) -> list[Blob]:
    """The template's catalog with every substitution made; it is valid before and after each of them."""
    content, substitutions, place = _parse(template, file)
    _check(content, "render: entries are not valid FBC", place)
    bases: set[str] = set()
    seen: dict[str, str] = {}
    for image, base in substitutions:
        if base in bases:
            raise CatalogError(f'render: cannot reuse the same substitution base "{base}"', place)
        if image in seen:
            raise CatalogError(
                f'render: cannot reuse the same substitution "{image}" for different bases'
                f' ("{seen[image]}" and "{base}")',
                place,
            )
        bases.add(base)
        seen[image] = base
        try:
            content = _substitute(content, image, base, lambda name: sources.get(name, level))
        except CatalogError as error:
            problem = f'render: error processing substitution "{base}" -> "{image}": {error.problem}'
            raise CatalogError(problem, place) from None
    return content


def _parse(template: bytes, file: str) -> tuple[list[Blob], list[tuple[str, str]], Place]:
    """The blobs, the substitutions as pairs of image and base, and where the template is."""
    fields, place = first_document(list(documents(file, template)), file)
    if fields.get("schema") != SCHEMA:
        found = fields.get("schema", "")
        raise CatalogError(f'template has unknown schema ("{found}"), should be "{SCHEMA}"', place)
    given = fields.get("substitutions", [])
    if not isinstance(given, list):
        raise CatalogError("unmarshalling template: substitutions must be a list", place)
    return list(listed(fields, place)), [_substitution(each, place) for each in given], place


def _substitution(value: Any, place: Place) -> tuple[str, str]:
    fields = {key.casefold(): item for key, item in sorted(value.items())} if isinstance(value, dict) else {}
    image, base = (fields.get(key) or "" for key in ("name", "base"))
    if not (isinstance(image, str) and isinstance(base, str) and (value is None or isinstance(value, dict))):
        raise CatalogError("unmarshalling template: a substitution needs the strings name and base", place)
    return image, base


def _check(content: list[Blob], what: str, place: Place) -> None:
    findings = validate(content)
    if failed(findings):
        raise CatalogError(f"{what}: " + "; ".join(str(finding) for finding in findings), place)


def _substitute(content: list[Blob], image: str, base: str, get: Callable[[str], Rendered]) -> list[Blob]:
    if not image:
        raise CatalogError("substitution name cannot be empty")
    if not base:
        raise CatalogError("substitution base cannot be empty")
    if image == base:
        raise CatalogError("substitution name and base cannot be the same")
    substitute = get(image)
    rank = _rank(substitute.bundle, f'substitute bundle "{image}"')
    old = next((blob for blob in content if blob.schema == BUNDLE and blob.name == base), None)
    if old is None:
        raise CatalogError(f'base bundle "{base}" does not exist in catalog')
    if not _rank(blobs.bundle(old), f'base bundle "{base}"') < rank:
        raise CatalogError(f'base bundle "{base}" is not less than substitute bundle "{image}"')
    name = substitute.blob.name
    made = [_relinked(blob, base, name) if blob.schema == CHANNEL else blob for blob in content]
    made.append(substitute.blob)
    _check(made, "resulting config is not valid FBC", Place())
    return made


def _relinked(blob: Blob, base: str, name: str) -> Blob:
    channel = blobs.typed(blob)
    assert isinstance(channel, Channel)
    entries = channel.entries or []
    added: list[ChannelEntry] = []
    for entry in entries:
        if entry.name == base:
            added.insert(0, ChannelEntry(name, entry.replaces, [*entry.skips, base], entry.skipRange))
            entry.replaces, entry.skips, entry.skipRange = "", [], ""
        elif entry.replaces == base:
            entry.replaces = name
            entry.skips = [*entry.skips, base]
        elif base in entry.skips:
            entry.skips = [skipped for skipped in [*entry.skips, name] if skipped != base]
    channel.entries = entries + added
    return blobs.of(channel, blob.place)


# --- which of two bundles is newer ---


def _rank(bundle: Bundle, what: str) -> tuple[Any, bool, Any]:
    """Version, then release; build metadata is the release of bundles that use `olm.substitutesFor`."""
    try:
        version, release = _version_and_release(bundle)
    except ValueError as error:
        raise CatalogError(f"failed to get VersionRelease for {what}: {error}") from None
    return version.precedence, bool(release), Version(0, 0, 0, release).precedence


def _version_and_release(bundle: Bundle) -> tuple[Version, tuple[str, ...]]:
    packages = packages_of(bundle)
    if len(packages) != 1:
        raise ValueError(f'must be exactly one property of type "{PACKAGE}"')
    version, release = Version.parse(packages[0].version), packages[0].release
    if not release and version.build and _uses_build_as_release(bundle):
        release = ".".join(version.build)
    try:
        return version, release_identifiers(release) if release else ()
    except ValueError as error:
        raise ValueError(f'invalid release "{release}": {error}') from None


def _uses_build_as_release(bundle: Bundle) -> bool:
    csv = find_csv(bundle)
    metadata = csv.get("metadata") if csv else None
    if metadata is None:
        metadata = next((each.decoded() for each in bundle.properties if each.type == CSV_METADATA), None)
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return bool(isinstance(annotations, dict) and annotations.get("olm.substitutesFor"))
