"""Directories with what is no file in them, and ignore files that want to be computed forever."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import folders, samplebundle
from harness.confined import podium

BLOB = b'{"schema":"olm.package","name":"a","defaultChannel":""}\n'
NOBODY = 65534


def catalog(root: Path) -> Path:
    root.mkdir()
    (root / "catalog.json").write_bytes(BLOB)
    return root


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def link_to_nothing(path: Path) -> None:
    path.symlink_to("/nonexistent/file")


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        folder = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{folder}/{path.name}")  # or the address would be too long
        os.close(folder)


ODD = [pipe, link_to_itself, link_to_nothing, link_to_a_device, unix_socket]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__)
@pytest.mark.parametrize("name", ["b.yaml", ".indexignore"])
def test_what_is_no_file_in_a_catalog_is_refused_without_waiting(
    odd: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    root = catalog(tmp_path / "catalog")
    odd(root / name)
    podium("catalog", "validate", root).assert_refused(name)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__)
def test_what_is_no_file_in_a_bundle_is_refused_without_waiting(
    odd: Callable[[Path], None], tmp_path: Path
) -> None:
    root = folders.write(tmp_path / "bundle", samplebundle.files())
    odd(root / "manifests/x.yaml")
    podium("bundle", "validate", root).assert_refused("x.yaml")
    podium("bundle", "build", root, "--to", "oci:out:1", cwd=tmp_path).assert_refused("x.yaml")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_links_to_itself_is_walked_once(tmp_path: Path) -> None:
    root = catalog(tmp_path / "catalog")
    (root / "loop").symlink_to(root)
    (root / "up").symlink_to(tmp_path)
    podium("catalog", "validate", root).assert_bounded()


@pytest.mark.parametrize("hidden", ["catalog.json", "folder", "."])
def test_what_may_not_be_read_is_not_left_out_silently(hidden: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        root = catalog(Path(place) / "catalog")
        (root / "folder").mkdir()
        (root / hidden).chmod(0)
        user = NOBODY if os.geteuid() == 0 else 0  # nothing is hidden from root
        podium("catalog", "validate", root, user=user, cwd=Path("/")).assert_refused("ermission denied")
        (root / hidden).chmod(0o700)


IGNORES = {
    "stars that go back and forth": b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n",
    "a line of 100,000 stars": b"*" * 100_000,
    "stars between question marks": b"*?" * 10_000,
    "classes without end": b"[a-z]" * 20_000,
    "a class that is not closed": b"[" * 50_000,
    "escapes": b"\\" * 50_001,
    "directories without end": b"**/" * 50_000 + b"x",
    "nothing but negation": b"!" * 50_000,
    "bytes that are no UTF-8": b"\xff\xfe\0" * 10_000,
    "thousands of patterns": b"".join(b"*%d*%d*x\n" % (n, n) for n in range(4000)),
}


@pytest.mark.parametrize("name", IGNORES)
def test_patterns_of_ignored_files_are_matched_in_time(name: str, tmp_path: Path) -> None:
    root = catalog(tmp_path / "catalog")
    for number in range(20):
        (root / ("a" * 200 + f"{number}.json")).write_bytes(BLOB.replace(b'"a"', b'"a%d"' % number))
    (root / ".indexignore").write_bytes(IGNORES[name])
    podium("catalog", "validate", root).assert_bounded()


@pytest.mark.parametrize(
    "patterns", [b"x\n" * 5000, b"#" * (300 << 10)], ids=["too many patterns", "too large a file"]
)
def test_an_ignore_file_beyond_all_measure_is_refused(patterns: bytes, tmp_path: Path) -> None:
    root = catalog(tmp_path / "catalog")
    (root / ".indexignore").write_bytes(patterns)
    podium("catalog", "validate", root).assert_refused(".indexignore")
