"""The blob of a bundle: properties, images and manifests as opm gives them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from catalog.bundlefiles import files
from podium.bundle.model import BundleError
from podium.catalog import blobs, migrate, render
from podium.catalog.blobs import Blob, CatalogError
from podium.catalog.migrate import Level

IMAGE = "docker.io/acme/demo:1.0.0"


def properties(blob: Blob) -> list[tuple[str, Any]]:
    """Type and value of each property but the manifests."""
    return [(p["type"], p["value"]) for p in blob.value["properties"] if p["type"] != "olm.bundle.object"]


def test_a_bundle_provides_its_package_and_its_apis() -> None:
    blob = render.bundle_blob(files(), IMAGE)
    assert (blob.schema, blob.package, blob.name) == ("olm.bundle", "demo", "demo.v1.0.0")
    assert properties(blob) == [
        ("olm.gvk", {"group": "x.io", "kind": "Demo", "version": "v1"}),
        ("olm.package", {"packageName": "demo", "version": "1.0.0"}),
    ]


def test_manifests_come_last_as_escaped_json_with_go_numbers() -> None:
    blob = render.bundle_blob(files())
    data = [base64.b64decode(p["value"]["data"]) for p in blob.value["properties"] if "data" in p["value"]]
    assert len(data) == 2
    assert blob.value["properties"][-2]["type"] == "olm.bundle.object"
    assert any(b"Demo \\u003coperator\\u003e" in each for each in data)
    assert any(b'"maximum":18446744073709552000' in each for each in data)


def test_related_images_are_those_listed_the_bundle_and_the_deployed_ones() -> None:
    listed = [{"name": "z", "image": "z.io/z:1"}, {"name": "op", "image": "a.io/op:1"}]
    blob = render.bundle_blob(files(relatedImages=listed), IMAGE)
    assert blob.value["relatedImages"] == [
        {"name": "op", "image": "a.io/op:1"},
        {"name": "", "image": IMAGE},
        {"name": "z", "image": "z.io/z:1"},
    ]


def test_dependencies_become_requirements() -> None:
    wanted = [
        {"type": "olm.package", "value": {"packageName": "other", "version": ">1.0.0"}},
        {"type": "olm.gvk", "value": {"group": "y.io", "kind": "Y", "version": "v2"}},
        {"type": "olm.constraint", "value": {"failureMessage": "no", "cel": {"rule": "1 > 0"}}},
    ]
    made = files() | {"metadata/dependencies.yaml": json.dumps({"dependencies": wanted}).encode()}
    found = dict(properties(render.bundle_blob(made)))
    assert found["olm.package.required"] == {"packageName": "other", "versionRange": ">1.0.0"}
    assert found["olm.gvk.required"] == {"group": "y.io", "kind": "Y", "version": "v2"}
    assert found["olm.constraint"] == wanted[2]["value"]


def test_annotated_properties_keep_their_own_order_of_keys() -> None:
    stated = '[{"type":"own","value":{"b":1, "a":2}},{"type":"own","value":{"b":1, "a":2}}]'
    blob = render.bundle_blob(files(annotations={"olm.properties": stated}))
    assert b'{"type":"own","value":{"b":1,"a":2}}' in blob.raw
    assert blob.raw.count(b'"own"') == 1


@pytest.mark.parametrize("stated", ["", "{", "7", '{"type":"own"}'])
def test_an_annotation_that_is_no_list_states_nothing(stated: str) -> None:
    blob = render.bundle_blob(files(annotations={"olm.properties": stated}))
    assert [name for name, _ in properties(blob)] == ["olm.gvk", "olm.package"]


def test_a_release_is_part_of_the_package() -> None:
    for release, expected in (("2.a", "2.a"), (3, "3"), (1.5, "1.5")):
        assert (
            dict(properties(render.bundle_blob(files(release=release))))["olm.package"]["release"] == expected
        )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"version": 1}, r"spec\.version"),
        ({"release": []}, "release field must be a string or number"),
        ({"customresourcedefinitions": {"required": [{"name": "nodot"}]}}, "couldn't parse plural.group"),
        ({"customresourcedefinitions": {"owned": [{"name": "a.b", "version": "v1"}]}}, "couldn't find b/v1/"),
    ],
)
def test_a_bundle_that_opm_refuses_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises((CatalogError, BundleError), match=message):
        render.bundle_blob(files(**spec))


def test_an_image_template_names_the_image() -> None:
    blob = render.with_image(files(), "a.io/{{.Package}}/{{ .Name }}:v{{- .Version -}} ")
    assert blob.value["image"] == "a.io/demo/demo.v1.0.0:v1.0.0"
    for wrong in ("{{.Tag}}", "{{.Name"):
        with pytest.raises(CatalogError, match="image template"):
            render.with_image(files(), wrong)


def test_short_image_names_are_completed_or_refused() -> None:
    assert render.image_reference("acme/demo") == "docker.io/acme/demo"
    with pytest.raises(CatalogError, match="repository name must be canonical"):
        render.image_reference("acme/demo", strict=True)
    with pytest.raises(CatalogError, match="invalid image reference"):
        render.image_reference("Not An Image")


def test_migrating_replaces_manifests_by_what_a_catalog_needs_of_them() -> None:
    blob = render.bundle_blob(files(keywords=["k"], provider={"name": "p", "x": 1}), IMAGE, Level.ALL)
    assert properties(blob)[-1] == (
        "olm.csv.metadata",
        {
            "apiServiceDefinitions": {},
            "crdDescriptions": {"owned": [{"name": "demos.x.io", "version": "v1", "kind": "Demo"}]},
            "displayName": "Demo <operator>",
            "keywords": ["k"],
            "provider": {"name": "p"},
        },
    )
    assert b"olm.bundle.object" not in blob.raw
    assert migrate.migrate_blob(blob) == blob


@pytest.mark.parametrize("level", list(Level))
def test_what_has_no_image_or_no_manifests_is_not_migrated(level: Level) -> None:
    inline = render.bundle_blob(files())
    bare = blobs.of({"schema": "olm.bundle", "package": "p", "name": "n", "image": "a.io/x:1"})
    assert [migrate.migrate_blob(each, level) for each in (inline, bare)] == [inline, bare]


def test_a_manifest_that_cannot_be_migrated_says_which() -> None:
    blob = render.bundle_blob(files(keywords="k"), IMAGE)
    with pytest.raises(CatalogError, match=r'migrate bundle "demo.v1.0.0": .* spec\.keywords must be a list'):
        migrate.migrate_blob(blob)


def test_a_catalog_is_tidied_when_rendered() -> None:
    csv = {"type": "olm.csv.metadata", "value": {}}
    other = {"type": "z", "value": 1}
    images = [{"name": "", "image": "b"}, {"name": "", "image": "a"}]
    blob = blobs.of(
        {"schema": "olm.bundle", "image": "i", "properties": [csv, other], "relatedImages": images}
    )
    made = next(render.catalog([blob])).value
    assert (made["properties"], made["relatedImages"]) == ([other, csv], images[::-1])
    broken = {"type": "olm.bundle.object", "value": {"data": "!"}}
    with pytest.raises(CatalogError, match="must be base64"):
        list(render.catalog([blobs.of({"schema": "olm.bundle", "image": "i", "properties": [broken]})]))
