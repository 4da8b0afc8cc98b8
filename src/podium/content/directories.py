"""Reads catalogs and bundles from directories, in the order and with the exceptions that opm has.

Files come one at a time and in chunks, so that a catalog of any size passes through. Links to files are
followed, since a mounted ConfigMap consists of them; links to directories are not, as in opm. What is no file
(a pipe, a device) is refused where a directory holds it: whoever opens one may wait forever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NoReturn

from podium.catalog.ignore import is_ignore_file, kept
from podium.catalog.streams import CHUNK

MAX_BUNDLE = 128 << 20
MAX_MANIFEST = 8 << 20  # bytes of a file that is taken for YAML or JSON
MAX_LINES = 150_000
MAX_IGNORE_FILE = 256 << 10
BUNDLE_FOLDERS = ("manifests/", "metadata/", "tests/")
_MANIFESTS = (".yaml", ".yml", ".json")


class UnreadableContent(Exception):
    """A file or directory that cannot be taken as a catalog or bundle; the message says why."""


class MissingContent(UnreadableContent, FileNotFoundError):
    """A path that a user named, where nothing is."""


def is_bundle(root: Path) -> bool:
    """Whether a directory looks like a bundle rather than a catalog."""
    return (root / "manifests").is_dir() and (root / "metadata").is_dir()


def catalog_streams(root: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Every catalog file below a directory (or one file) that no `.indexignore` leaves out, in chunks.

    A file is open only while its chunks are taken.
    """
    if not root.is_dir():
        yield str(root), _chunks(root, member=False)
        return
    paths = list(_walk(root))
    ignore_files = {path: _content(root / path, MAX_IGNORE_FILE) for path in paths if is_ignore_file(path)}
    for path in kept(paths, ignore_files):
        yield str(root / path), _chunks(root / path)


def chunks_from(file: BinaryIO) -> Iterator[bytes]:
    """What an open file holds from here on."""
    while chunk := file.read(CHUNK):
        yield chunk


def bundle_files(root: Path) -> dict[str, bytes]:
    """The files of a bundle directory by path: its manifests, metadata and tests."""
    return _all(root, [path for path in _walk(root) if path.startswith(BUNDLE_FOLDERS)])


class WrittenFiles(Mapping[str, bytes]):
    """What an author wrote below a directory: no hidden files, no image layouts. Read when asked for.

    A project may hold much that its bundle is not made of, so only what is wanted is read.
    """

    def __init__(self, root: Path, without: str = "") -> None:
        found = _walk(root, skip=_not_written_by_hand)
        self._root = root
        self._paths = [
            path for path in found if not (without and path.startswith(without)) and not _hidden(Path(path))
        ]
        self._known = set(self._paths)

    def __getitem__(self, path: str) -> bytes:
        if path not in self._known:
            raise KeyError(path)
        return _member(self._root, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _walk(root: Path, skip: Callable[[Path], bool] = lambda folder: False) -> list[str]:
    """The paths of all files below a directory, in the order in which Go walks it."""
    found = []
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=False):
        folders[:] = [name for name in folders if not skip(Path(folder) / name)]
        below = Path(folder).relative_to(root)
        found += [(below / name).as_posix() for name in names]
    return sorted(found, key=lambda path: path.split("/"))


def _not_written_by_hand(folder: Path) -> bool:
    return _hidden(folder) or (folder / "oci-layout").is_file()


def _hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _all(root: Path, paths: Iterable[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = MAX_BUNDLE
    for path in paths:
        found[path] = _member(root, path)
        left -= len(found[path])
        if left < 0:
            raise UnreadableContent(f"{root} is too large: its files have more than {MAX_BUNDLE >> 20} MiB")
    return found


def _member(root: Path, path: str) -> bytes:
    """A file of a folder that is packed or published, so what it holds must be the folder's own."""
    file = root / path
    # A link to another file of the folder is fine: a mounted ConfigMap consists of such.
    if file.is_symlink() and not _target(file).is_relative_to(root.resolve()):
        raise UnreadableContent(f"{file} is a link that leads out of its folder")
    data = _content(file, MAX_MANIFEST if path.endswith(_MANIFESTS) else MAX_BUNDLE)
    check_manifest(str(file), data)
    return data


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (RuntimeError, OSError):  # before and since Python 3.13
        raise UnreadableContent(f"{link} is a link that leads in a circle") from None


def check_manifest(path: str, data: bytes) -> None:
    """UnreadableContent for a file of YAML or JSON that is too large to be an honest one."""
    if path.endswith(_MANIFESTS) and (len(data) > MAX_MANIFEST or data.count(b"\n") > MAX_LINES):
        raise UnreadableContent(
            f"{path} is too large: more than {MAX_MANIFEST >> 20} MiB or {MAX_LINES:,} lines"
        )


def _content(path: Path, limit: int) -> bytes:
    return joined(str(path), _chunks(path), limit)


def joined(path: str, chunks: Iterator[bytes], limit: int) -> bytes:
    """A file as a whole; UnreadableContent as soon as it turns out to be larger than the limit."""
    parts: list[bytes] = []
    left = limit
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise UnreadableContent(f"{path} is too large: more than {limit >> 10} KiB")
        parts.append(chunk)
    return b"".join(parts)


def _chunks(path: Path, *, member: bool = True) -> Iterator[bytes]:
    """The content of a file; what is in a directory must be a real one, what a user names may be a pipe."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if member else 0))
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if member and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableContent(f"{path} is a pipe or a device, not a file")
        yield from chunks_from(file)


def _raise(error: OSError) -> NoReturn:
    raise error
