"""Opens a catalog or bundle by the name a user gives it.

    ./dir, /dir/file.yaml, dir:path     a directory or file
    -                                   a catalog on standard input
    oci:path[:tag], oci:path@digest     an image in a layout on disk
    oci-archive:file, docker-archive:file   one in a file that skopeo, docker or podman saved
    docker.io/acme/pantry:1.0           an image in a registry

A name that exists as a path is one, as in opm. An image is resolved to its digest once; what it holds is told
by its labels. Directories stream: nothing is held that the caller does not keep.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from podium.bundle.model import MANIFESTS_KEY, METADATA_KEY, PACKAGE_KEY
from podium.catalog.blobs import Blob
from podium.catalog.ignore import is_ignore_file, kept
from podium.catalog.read import read_streams
from podium.content import directories
from podium.content.directories import MissingContent, UnreadableContent
from podium.oci import images as oci_images
from podium.oci import unpack
from podium.oci.errors import AccessDenied, ImageNotFound, Unreachable
from podium.oci.images import Image
from podium.oci.open import ARCHIVES, Images, parse

CONFIGS_LABEL = "operators.operatorframework.io.index.configs.v1"
DATABASE_LABEL = "operators.operatorframework.io.index.database.v1"
STANDARD_INPUT = "-"


class SourceKind(StrEnum):
    """What a name turned out to be."""

    CATALOG = "catalog"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class Source:
    """Something opened by name: `reference` and `image` are set if it is an image."""

    kind: SourceKind
    name: str
    reference: str = ""
    path: Path | None = None
    image: Image | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The digest of the image; empty for a directory."""
        return self.image.descriptor.digest if self.image else ""


async def open_source(name: str, images: Images, platform: str | None = None) -> Source:
    """What the name stands for; UnreadableContent if it is neither catalog nor bundle."""
    path = local_path(name)
    if path is not None:
        is_bundle = name != STANDARD_INPUT and directories.is_bundle(path)
        return Source(SourceKind.BUNDLE if is_bundle else SourceKind.CATALOG, name, path=path)
    store, tag = images.store(name)
    try:
        image = await oci_images.pull(store, tag, platform)
    except (AccessDenied, ImageNotFound, Unreachable) as error:
        if "/" in name or ":" in name:
            raise
        meant = f"there is no file or folder {name} here, so it was taken for {image_reference(name)}"
        raise type(error)(f"{meant}: {error}") from None
    return Source(_kind(name, image.labels), name, image_reference(name), image=image)


def image_reference(name: str) -> str:
    """The full reference of the image that a name stands for; empty for one in a layout that does not say.

    A layout says so by a tag that is a full reference, as `podium publish` writes it.
    """
    if not name.startswith(("oci:", *ARCHIVES)):
        return str(parse(name))
    tag = "".join(name.split(":", 2)[2:])
    return str(parse(tag)) if "/" in tag else ""


def local_path(name: str) -> Path | None:
    """The path that a name stands for, or None if it is the name of an image."""
    if name == STANDARD_INPUT:
        return Path("/dev/stdin")
    if name.startswith("dir:"):
        return _existing(Path(name.removeprefix("dir:")))
    if name.startswith(("oci:", "docker://", *ARCHIVES)):
        return None
    path = Path(name)
    if name.startswith(("./", "../", "/", "~")) or name in (".", ".."):
        return _existing(path.expanduser())
    return path if name and path.exists() else None


def _existing(path: Path) -> Path:
    if not path.exists():
        raise MissingContent(f"{path}: no such file or directory")
    return path


def _kind(name: str, labels: Mapping[str, str]) -> SourceKind:
    if CONFIGS_LABEL in labels:
        return SourceKind.CATALOG
    if PACKAGE_KEY in labels:
        return SourceKind.BUNDLE
    if DATABASE_LABEL in labels:
        raise UnreadableContent(
            f"{name} is a catalog in the SQLite form, which nobody serves any more; "
            "render it to files with an opm older than 1.73, then use those"
        )
    found = ", ".join(sorted(labels)) or "none"
    raise UnreadableContent(
        f"{name} is neither a catalog nor a bundle: it has no label {CONFIGS_LABEL} or {PACKAGE_KEY} "
        f"(labels: {found})"
    )


async def catalog_blobs(source: Source) -> Iterator[Blob]:
    """Every blob of a catalog, in the order of its files, read while the caller takes them."""
    return read_streams(await catalog_streams(source))


async def catalog_streams(source: Source) -> Iterable[tuple[str, Iterable[bytes]]]:
    """Every file of a catalog that is not ignored, in chunks; those of a directory are read while taken."""
    if source.kind is not SourceKind.CATALOG:
        raise UnreadableContent(f"{source.name} is a bundle, not a catalog")
    if source.image is None:
        return local_streams(source)
    folder = source.image.labels[CONFIGS_LABEL].strip("/")
    prefix = f"{folder}/" if folder else ""
    files = unpack.stream(source.image, (prefix,), unpack.CATALOG)
    below = {path.removeprefix(prefix): data async for path, data in files}
    ignore_files = {path: data for path, data in below.items() if is_ignore_file(path)}
    in_order = sorted(kept(below, ignore_files), key=lambda path: path.split("/"))
    return ((f"{source.name}/{prefix}{path}", (below.pop(path),)) for path in in_order)


def local_streams(source: Source) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of a catalog that is a directory, a file or standard input, in chunks."""
    assert source.path is not None
    if source.name == STANDARD_INPUT:
        yield "standard input", directories.chunks_from(sys.stdin.buffer)
    else:
        yield from directories.catalog_streams(source.path)


async def bundle_files(source: Source) -> dict[str, bytes]:
    """The files of a bundle by path."""
    if source.kind is not SourceKind.BUNDLE:
        if source.path is not None:
            raise UnreadableContent(f"{source.name} is not a bundle: it lacks manifests/ or metadata/")
        raise UnreadableContent(f"{source.name} is a catalog, not a bundle")
    if source.image is None:
        assert source.path is not None
        return directories.bundle_files(source.path)
    labels = source.image.labels
    folders = {labels.get(MANIFESTS_KEY, "manifests/"), labels.get(METADATA_KEY, "metadata/"), "tests/"}
    files = await unpack.files(source.image, [folder.strip("/") + "/" for folder in sorted(folders)])
    for path, data in files.items():
        directories.check_manifest(path, data)
    return files
