"""Files of a folder as a mapping from paths to bytes, written and read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, bytes | str]) -> Path:
    """Writes files below a folder, which is returned."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by path."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
