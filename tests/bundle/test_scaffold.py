"""New projects: complete as they are written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.bundle import checks, project, scaffold
from podium.bundle.generate import Generated
from podium.text import yaml

NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def made(files: dict[str, bytes]) -> Generated:
    return project.bundle(project.parse(files["podium.yaml"], files=files), files, now=NOW)


@pytest.mark.parametrize("name", ["memcached-operator", "box", "my-big-policy", "x1"])
def test_a_new_project_generates_and_passes_every_check_without_edits(name: str) -> None:
    bundle = made(scaffold.init(name))
    assert bundle.findings == ()
    suites = [
        suite.name for suite in checks.SUITES if suite.name not in ("operatorhub", "community", "multiarch")
    ]
    assert checks.check(bundle.files, [f"name={suite}" for suite in suites]) == []


def test_names_fill_every_file() -> None:
    files = scaffold.init(
        "fridge", kind="Fridge", group="kitchen.example.com", images="quay.io/kitchen", version="3.0.0"
    )
    for path, data in files.items():
        if path.endswith(".yaml"):
            assert list(yaml.load_all(data)), path
        assert b"@" not in data.replace(b"you@kitchen.example.com", b""), path
    bundle = made(files)
    assert "manifests/kitchen.example.com_fridges.yaml" in bundle.files
    assert "quay.io/kitchen/fridge:3.0.0" in bundle.images


def test_the_catalog_template_is_empty_until_a_version_is_published() -> None:
    template = yaml.load(scaffold.init("pantry-operator")["catalog/template.yaml"])
    assert template["schema"] == "olm.semver"
    assert not {"candidate", "fast", "stable"} & template.keys()


def test_two_versions_of_a_new_project_have_no_name_in_common() -> None:
    first, second = (made(scaffold.init("box", version=version)) for version in ("1.0.0", "1.1.0"))
    shared = {path for path in set(first.files) & set(second.files) if path.startswith("manifests/")}
    assert shared == {"manifests/box.clusterserviceversion.yaml", "manifests/example.com_boxes.yaml"}
    assert first.files["manifests/example.com_boxes.yaml"] == second.files["manifests/example.com_boxes.yaml"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Not_A_Name"},
        {"name": "box", "group": "not a group"},
        {"name": "box", "kind": "box"},
        {"name": "box", "images": "tytn"},
    ],
)
def test_names_that_cannot_work_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        scaffold.init(**wrong)


@pytest.mark.parametrize(
    "images", ["docker.io/tytn:latest", "tytn:latest", "localhost:5000/a:1", "quay.io/a@sha256:0"]
)
def test_a_tag_does_not_belong_to_where_the_images_lie(images: str) -> None:
    with pytest.raises(ValueError, match="a tag or digest does not belong here"):
        scaffold.init("box", images=images)
    assert scaffold.init("box", images="localhost:5000")


def test_a_new_project_says_what_to_commit_after_publishing() -> None:
    files = scaffold.init("box")
    for path in ("README.md", "podium.yaml", "catalog/template.yaml"):
        assert b"ommit" in files[path], path
    assert b"commit `catalog/template.yaml` and `bundle/`" in files["README.md"]
