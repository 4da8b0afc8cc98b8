"""Names that want to be paths, markup or commands to a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.confined import podium

PAYLOADS = {
    "script": "<script>alert(1)</script>",
    "handler": '"><img src=x onerror=alert(1)>',
    "end of the label": '"];\n click a href "javascript:alert(1)"',
    "end of the comment": "--> </style></svg><script>alert(1)</script>",
    "CDATA": "]]><script/>",
    "entity": "&xxe; &#0; &lt;script&gt;",
    "link in SVG": '<a xlink:href="javascript:alert(1)">x</a>',
    "directive": '%%{init: {"securityLevel": "loose"}}%%',
    "line break": "a\nb\r\nc\u2028d\x85e",
    "control characters": "a\x00\x01\x08\x0b\x1f\x7f\x80\x9f\ufffe\uffff",
    "clear the screen": "\x1b[2J\x1b[1;1H",
    "title of the window": "\x1b]0;pwned\x07",
    "C1 introducer": "\x9b31m",
    "hyperlink": "\x1b]8;;http://evil.example\x1b\\x\x1b]8;;\x1b\\",
    "right to left": "\u202egpj.exe\u2066",
    "backspaces": "safe\x08\x08\x08\x08evil",
    "emoji": "\U0001f600\u200d\U0001f525",
}
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def write(root: Path, *values: dict[str, Any]) -> Path:
    root.mkdir()
    (root / "catalog.json").write_text("\n".join(map(json.dumps, values)))
    return root


def named(name: str) -> list[dict[str, Any]]:
    """A catalog in which everything has the same bad name."""
    value = {"packageName": name, "version": "1.0.0"}
    entries = [{"name": name, "skipRange": '>=0.1.0 "', "replaces": f"{name}2", "skips": [f"{name}3"]}]
    references = [{"schema": "olm.package"}, {"schema": "olm.bundle", "name": name}]
    return [
        {"schema": "olm.package", "name": name, "defaultChannel": name},
        {"schema": "olm.channel", "package": name, "name": name, "entries": entries},
        {
            "schema": "olm.bundle",
            "package": name,
            "name": name,
            "image": name,
            "properties": [{"type": "olm.package", "value": value}],
        },
        {
            "schema": "olm.deprecations",
            "package": name,
            "entries": [{"reference": each, "message": name} for each in references],
        },
    ]


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_picture_is_always_well_formed_and_holds_no_markup_of_a_name(name: str, tmp_path: Path) -> None:
    root = write(tmp_path / "catalog", *named(PAYLOADS[name]))
    run = podium("catalog", "graph", root, "-o", "svg")
    run.assert_harmless()
    picture = ElementTree.fromstring(run.out)
    tags = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert tags <= {"svg", "style", "defs", "marker", "polygon", "g", "rect", "text", "path", "title"}
    attributes = {key for element in picture.iter() for key in element.attrib}
    assert not any(key.startswith("on") or "href" in key for key in attributes)


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_mermaid_graph_has_no_lines_that_a_name_made(name: str, tmp_path: Path) -> None:
    counted = []
    for number, each in enumerate(("plain", PAYLOADS[name])):
        root = write(tmp_path / str(number), *named(each))
        run = podium("catalog", "graph", root)
        run.assert_harmless()
        counted.append([line.split()[0] if line.split() else "" for line in run.out.splitlines()])
        assert not CONTROL.search(run.out)
        assert all(re.fullmatch(r'[^"]*("[^"]*"[^"]*)*', line) for line in run.out.splitlines())
    plain, hostile = counted
    assert len(hostile) == len(plain)
    assert "click" not in hostile
    assert "<script" not in run.out
    assert "<img" not in run.out


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize(
    "command",
    [("validate",), ("list", "packages"), ("list", "channels"), ("list", "bundles")],
    ids=" ".join,
)
def test_no_control_character_of_a_name_reaches_the_terminal(
    command: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    root = write(tmp_path / "catalog", *named(PAYLOADS[name]))
    run = podium("catalog", *command, root)
    run.assert_bounded()
    assert not CONTROL.search(run.words.replace("\x1b[31m", "").replace("\x1b[0m", "")), run.words


@pytest.mark.parametrize("name", PAYLOADS)
def test_an_error_shows_a_bad_name_without_obeying_it(name: str, tmp_path: Path) -> None:
    template = {
        "schema": "olm.template.basic",
        "entries": [{"schema": "olm.bundle", "image": PAYLOADS[name]}],
    }
    (tmp_path / "template.json").write_text(json.dumps(template))
    run = podium("catalog", "template", "template.json", cwd=tmp_path)
    run.assert_refused()
    assert not CONTROL.search(run.words)


OUTSIDE = [
    "..",
    "../out",
    "/tmp/podium-hostile",
    "a/../../out",
    "../../out",
    "a/../../../out",
    "\0",
    "x" * 5000,
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_package_that_is_a_path_writes_nothing_outside(name: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(work, {"schema": "olm.package", "name": name, "defaultChannel": ""})
    podium("catalog", "migrate", "catalog.json", "out/deep", cwd=work).assert_refused()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]
    assert {path.name for path in work.rglob("*") if path.is_file()} == {"catalog.json"}
    assert not Path("/tmp/podium-hostile").exists()


REFERENCES = [
    "oci:../../x",
    "oci:../../../../etc:latest",
    "oci:/etc",
    "../../../etc/passwd",
    "/etc/passwd",
    "dir:../..",
    "docker://../x",
    "docker.io/../../x:1",
    "docker.io/a/b@sha256:../../../etc/passwd",
    "docker.io/a/b@sha256:" + "0" * 63,
    "docker.io/a/b@md5:" + "0" * 32,
    "docker.io/a/b:" + "t" * 129,
    "docker.io/" + "a/" * 5000 + "b:1",
    "docker.io/a/b:1\r\nHost: evil.example",
    "docker.io/a b:1",
    "-o",
    "file:///etc/passwd",
    "http://169.254.169.254/latest",
    "\x00",
    "",
]


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_template_with_a_bad_reference_is_refused_and_writes_nothing(
    reference: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for number, template in enumerate(
        (
            {"schema": "olm.template.basic", "entries": [{"schema": "olm.bundle", "image": reference}]},
            {"schema": "olm.semver", "stable": {"bundles": [{"image": reference}]}},
        )
    ):
        (work / f"{number}.json").write_text(json.dumps(template))
        podium("catalog", "template", f"{number}.json", cwd=work).assert_refused()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["0.json", "1.json", "work"]


@pytest.mark.parametrize("output", ["mermaid", "svg"])
def test_a_channel_whose_ranges_multiply_is_not_drawn(output: str, tmp_path: Path) -> None:
    names = [f"p.v1.0.{number}" for number in range(3000)]
    entries = [{"name": name, "skipRange": "<2.0.0"} for name in names]
    root = write(
        tmp_path / "catalog", {"schema": "olm.channel", "package": "p", "name": "c", "entries": entries}
    )
    podium("catalog", "graph", root, "-o", output).assert_refused("too many to draw")
