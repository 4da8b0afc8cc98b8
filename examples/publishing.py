"""Publishing an operator with the commands an author types: no Docker, no registry, no cluster.

A small operator is created and published twice into a layout on disk; its catalog is listed and drawn; then
three mistakes are made, and each is caught.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from telling import shown, step

CATALOG = "oci:images:docker.io/acme/pantry-operator-catalog"


def tour(folder: Path) -> None:
    """Everything, in a scratch folder."""
    podium("A new operator project", "podium bundle init pantry-operator --images docker.io/acme", folder)
    podium(
        "Publish it: bundle and catalog, into a layout on disk",
        "podium publish pantry-operator --layout images",
        folder,
    )
    project = folder / "pantry-operator"
    edit(project / "podium.yaml", r"(?m)^version: .*", "version: 0.2.0")
    podium(
        "A second version: raise one number, publish again",
        "podium publish pantry-operator --layout images",
        folder,
    )
    podium("What users can install", f"podium catalog list bundles {CATALOG}:0.2.0", folder)
    picture = podium("The upgrade graph", f"podium catalog graph {CATALOG}:0.2.0 -o svg", folder, quiet=True)
    (folder / "graph.svg").write_text(picture)
    shown(f"{len(picture)} bytes of SVG; the same as text for mermaid:")
    text = podium("", f"podium catalog graph {CATALOG}:0.2.0", folder, quiet=True)
    shown("\n".join(line.strip() for line in text.splitlines() if "-->" in line))

    edit(project / "config" / "deployment.yaml", "replicas: 1", "replicas: 2")
    podium(
        "Mistake one: other content under a version that is out",
        "podium publish pantry-operator --layout images",
        folder,
        fails=True,
    )
    edit(project / "podium.yaml", r"(?m)^version: .*", "version: 0.3.0")
    edit(project / "catalog" / "template.yaml", r".*-bundle:0\.1\.0\n", "")
    podium(
        "Mistake two: a version that users may have is dropped from the catalog",
        "podium publish pantry-operator --layout images",
        folder,
        fails=True,
    )
    podium("", f"podium catalog migrate {CATALOG}:0.2.0 broken", folder, quiet=True)
    file = folder / "broken" / "pantry-operator" / "catalog.yaml"
    edit(file, r"replaces: pantry-operator\.v0\.1\.0", "replaces: pantry-operator.v0.0.9")
    edit(file, "defaultChannel: stable-v0", "defaultChannel: steady")
    podium("Mistake three: a catalog edited by hand", "podium catalog validate broken", folder, fails=True)


def podium(title: str, command: str, folder: Path, *, quiet: bool = False, fails: bool = False) -> str:
    """Run a command and show what it says; the demo ends if it does not do what it should."""
    if title:
        step(title, command)
    arguments = [sys.executable, "-m", *shlex.split(command)]
    stream = subprocess.PIPE if quiet else subprocess.STDOUT
    done = subprocess.run(
        arguments, cwd=folder, stdout=subprocess.PIPE, stderr=stream, text=True, check=False
    )
    if not quiet:
        shown(done.stdout)
    if bool(done.returncode) != fails:
        sys.exit(f"`{command}` ended with {done.returncode}: {done.stderr or ''}")
    return done.stdout


def edit(file: Path, pattern: str, replacement: str) -> None:
    """Change a file as an author would in an editor."""
    text, count = re.subn(pattern, replacement, file.read_text())
    if not count:
        sys.exit(f"{file} has nothing like {pattern}")
    file.write_text(text)
