"""The table of facts: kinds, resources, and how built-in types merge."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from podium.schema import facts
from podium.schema.facts import Facts, Form
from podium.schema.shape import Merge, Shape


@pytest.fixture(scope="module")
def table() -> Facts:
    return facts.load()


def test_the_table_is_small_on_disk_and_in_memory() -> None:
    path = Path(facts.__file__).with_name("facts.jsonl")
    assert path.stat().st_size < 400_000
    tracemalloc.start()
    loaded = Facts(path.read_bytes())
    assert loaded.resources
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 2_000_000


@pytest.mark.parametrize(
    ("group", "version", "kind", "name"),
    [
        ("", "v1", "Pod", "core/v1.Pod"),
        ("apps", "v1", "Deployment", "apps/v1.Deployment"),
        ("autoscaling", "v2", "HorizontalPodAutoscaler", "autoscaling/v2.HorizontalPodAutoscaler"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole", "rbac/v1.ClusterRole"),
        (
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "apiextensions/v1.CustomResourceDefinition",
        ),
        ("policy", "v1", "Eviction", "policy/v1.Eviction"),
        # The kinds of the API machinery are known everywhere, custom groups included.
        ("", "v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("apps", "v1", "DeleteOptions", "meta/v1.DeleteOptions"),
        ("example.com", "v1", "PartialObjectMetadata", "meta/v1.PartialObjectMetadata"),
        ("", "v1", "List", "meta/v1.List"),
    ],
)
def test_a_kind_has_its_type(table: Facts, group: str, version: str, kind: str, name: str) -> None:
    found = table.type_for(group, version, kind)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("group", "version", "kind"),
    [("apps", "v1beta1", "Deployment"), ("", "v1", "Container"), ("", "v1", "Nothing")],
)
def test_what_is_no_kind_has_no_type(table: Facts, group: str, version: str, kind: str) -> None:
    assert table.type_for(group, version, kind) is None


def test_every_resource_and_subresource_that_carries_objects_has_a_type(table: Facts) -> None:
    for resource in table.resources:
        assert table.type_for(resource.group, resource.version, resource.kind), resource
        for sub in resource.subresources:
            if not sub.kind.endswith("Options"):
                assert table.type_for(sub.group, sub.version, sub.kind), (resource.plural, sub)


def test_resources_say_what_discovery_says(table: Facts) -> None:
    deployments = next(each for each in table.resources if each.plural == "deployments")
    assert (deployments.singular, deployments.namespaced) == ("deployment", True)
    assert (deployments.short_names, deployments.categories) == (("deploy",), ("all",))
    assert {sub.name: (sub.group, sub.kind) for sub in deployments.subresources} == {
        "scale": ("autoscaling", "Scale"),
        "status": ("apps", "Deployment"),
    }


def test_every_line_of_the_table_decodes(table: Facts) -> None:
    for name in table.openapi_names().values():
        fact = table.struct(name)
        assert fact.type.form in Form
        for field, _ in fact.members() if fact.type.form is Form.STRUCT else ():
            assert field.type.go


def at(shape: Shape, *path: str) -> Shape:
    """The shape at a path; `[]` goes to the elements of a list."""
    for name in path:
        found = shape.items() if name == "[]" else shape.field(name)
        assert found is not None, name
        shape = found
    return shape


def shape_of(table: Facts, group: str, kind: str) -> Shape:
    fact = table.type_for(group, "v1", kind)
    assert fact is not None
    return facts.shape_for(fact)


CONTAINERS = ("spec", "template", "spec", "containers")


def test_lists_merge_by_their_keys(table: Facts) -> None:
    deployment = shape_of(table, "apps", "Deployment")
    containers = at(deployment, *CONTAINERS)
    assert (containers.merge, containers.keys) == (Merge.KEYED, ("name",))
    assert (containers.patch_merge_key, containers.patch_strategies) == ("name", frozenset({"merge"}))
    ports = at(deployment, *CONTAINERS, "[]", "ports")
    # A strategic merge patch and an apply tell ports apart by different keys.
    assert (ports.keys, ports.patch_merge_key) == (("containerPort", "protocol"), "containerPort")
    assert ports.key_defaults == {"containerPort": 0, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("group", "kind", "path", "merge"),
    [
        ("", "ConfigMap", ("data",), Merge.OBJECT),
        ("", "ConfigMap", ("data", "any"), Merge.SCALAR),
        ("", "ConfigMap", ("metadata", "finalizers"), Merge.SET),
        ("", "ConfigMap", ("metadata", "managedFields"), Merge.ATOMIC),
        ("", "ConfigMap", ("metadata", "ownerReferences", "[]"), Merge.ATOMIC),
        ("apps", "Deployment", ("spec", "selector"), Merge.ATOMIC),
        ("apps", "Deployment", (*CONTAINERS, "[]", "command"), Merge.ATOMIC),
        ("apps", "Deployment", (*CONTAINERS, "[]", "resources", "limits"), Merge.OBJECT),
        ("apps", "Deployment", (*CONTAINERS, "[]", "resources", "limits", "cpu"), Merge.SCALAR),
        ("apps", "ControllerRevision", ("data",), Merge.UNTYPED),
        ("rbac.authorization.k8s.io", "Role", ("rules",), Merge.ATOMIC),
        ("", "Service", ("spec", "ports"), Merge.KEYED),
        ("", "Secret", ("metadata", "creationTimestamp"), Merge.SCALAR),
    ],
)
def test_values_merge_as_openapi_declares(
    table: Facts, group: str, kind: str, path: tuple[str, ...], merge: Merge
) -> None:
    assert at(shape_of(table, group, kind), *path).merge is merge


def test_fields_of_inlined_structs_belong_to_the_outer_one(table: Facts) -> None:
    volume = at(shape_of(table, "", "Pod"), "spec", "volumes", "[]")
    assert volume.field("configMap") is not None
    assert volume.field("VolumeSource") is None
    assert at(shape_of(table, "", "Pod"), "spec", "volumes").patch_strategies == {"merge", "retainKeys"}


def test_undeclared_fields_have_no_shape_and_recursive_types_have_no_end(table: Facts) -> None:
    assert shape_of(table, "", "Pod").field("spek") is None
    schema = at(
        shape_of(table, "apiextensions.k8s.io", "CustomResourceDefinition"),
        "spec",
        "versions",
        "[]",
        "schema",
    )
    deep = at(schema, "openAPIV3Schema", *["properties", "x"] * 30)
    assert deep.field("type") is not None
