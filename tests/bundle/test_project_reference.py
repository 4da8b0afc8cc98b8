"""The reference of the project file: its example works, its tables list the fields that there are."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.api.findings import failed
from podium.bundle import checks, project, scaffold
from podium.bundle.overlay import values
from podium.bundle.project import Project, fields
from podium.text import yaml
from podium.text.semver import Version

PAGE = (Path(__file__).parents[2] / "docs" / "project-file.md").read_text()
NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
CSV = "manifests/pantry-operator.clusterserviceversion.yaml"
FILES = {
    **scaffold.init("pantry-operator", kind="Pantry"),
    "description.md": b"# Pantry\n",
    "base.yaml": b"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n"
    b"metadata: {name: base}\nspec: {nativeAPIs: [{group: apps, version: v1, kind: Deployment}]}\n",
    "dependencies.yaml": b"dependencies: []\n",
    "properties.yaml": b"properties: []\n",
    "patches/resources.yaml": b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: controller-manager}\n"
    b"spec: {template: {spec: {priorityClassName: 'v${version.major}'}}}\n",
}


def example() -> str:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert isinstance(text, str)
    return text


def parsed() -> Project:
    return project.parse(example().encode(), files=FILES)


def rows() -> list[list[str]]:
    """The cells of every row of every table."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def listed() -> list[str]:
    """The fields in the tables of fields."""
    return [
        row[0].strip("`") for row in rows() if len(row) >= 3 and re.fullmatch(r"`[A-Za-z][\w.\[\]]*`", row[0])
    ]


def test_the_tables_list_every_field_that_there_is_and_no_other() -> None:
    source = parsed().source
    assert source is not None
    assert sorted(listed()) == sorted(source.known)


def test_the_example_has_every_field_but_the_alternative_of_one() -> None:
    top = {field for field in listed() if not re.search(r"[.\[]", field)}
    assert top - set(yaml.load(example())) == {"description"}


def test_the_example_becomes_a_bundle_that_passes_the_checks() -> None:
    made = project.bundle(parsed(), FILES, now=NOW)
    assert not failed([*made.findings, *checks.check(made.files)])
    csv = yaml.load(made.files[CSV])
    assert csv["metadata"]["name"] == "pantry-operator.v1.2.0"
    assert csv["spec"]["nativeAPIs"]
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    spec = deployment["spec"]
    assert deployment["name"] == "pantry-operator-controller-manager-1-2-0"
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["minReadySeconds"]) == (2, 3, 5)
    assert spec["template"]["spec"]["priorityClassName"] == "v1"
    assert "terminationGracePeriodSeconds" not in spec["template"]["spec"]


def test_defaults_are_what_a_file_without_the_field_has() -> None:
    least = "apiVersion: podium.dev/v1alpha1\nkind: OperatorProject\nname: a\nversion: 1.0.0\n"
    made = project.parse(least.encode())
    defaults = {row[0].strip("`"): row[2].strip("`") for row in rows() if len(row) == 4}
    assert made.manifests == defaults["manifests"]
    assert made.images.placeholder == defaults["images.placeholder"]
    assert f"[{', '.join(made.archetypes)}]" == defaults["channels"]
    assert made.channels_per == defaults["channelsPer"]
    assert made.template == defaults["catalog.template"]
    assert made.compat == defaults["catalog.compat"]
    assert str(made.use_image_digests).lower() == defaults["useImageDigests"]
    required = {field for field, default in defaults.items() if default == "required" and "." not in field}
    for field in required:
        with pytest.raises(project.ProjectError, match=field):
            project.parse(re.sub(rf"(?m)^{re.escape(field)}: .*\n", "", least).encode())
    assert required == {"apiVersion", "kind", "name", "version"}


def test_what_stands_for_a_version_is_what_the_table_says() -> None:
    (head,) = [row for row in rows() if row[0] == "Written"]
    versions = [Version.parse(cell.removeprefix("For ")) for cell in head[1:3]]
    found = 0
    for row in rows():
        if re.fullmatch(r"`\$\{[a-z.]+\}`", row[0]):
            name = row[0].strip("`${}")
            assert [fields.substitutions(version)[name] for version in versions] == [
                cell.strip("`") for cell in row[1:3]
            ]
            found += 1
    assert found == len(fields.substitutions(versions[0]))


def test_every_expression_in_the_table_can_be_read() -> None:
    expressions = [row[0].strip("`") for row in rows() if row[0].startswith(("`.spec", "`del("))]
    assert len(expressions) == 3
    for expression in expressions:
        values.parse(expression)
