"""Changes to a set of objects: names and all that refers to them, images, labels, patches, values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import operatorfolder
from podium.api.kinds import Object
from podium.bundle.authored import Authored
from podium.bundle.overlay import (
    Image,
    Labels,
    Overlay,
    OverlayError,
    Patch,
    Replicas,
    Target,
    apply,
    new_image,
)
from podium.bundle.overlay import values as overlay_values
from podium.bundle.overlay.references import references

DEPLOYMENT = Target(kind="Deployment", name="manager")


def operator() -> list[Authored]:
    return [Authored(value) for value in operatorfolder.objects()]


def one(objects: list[Authored], kind: str, name: str = "") -> Object:
    """The object of a kind; of a name, before or after renaming, if there are several."""
    return next(item.object for item in objects if item.kind == kind and name in item.name)


def dangling(objects: list[Authored]) -> list[tuple[str, str, str]]:
    """References to objects that are not there, as referrer, kind and name."""
    there = {(item.kind, item.name) for item in objects}
    return [
        (item.title, reference.kind, reference.name)
        for item in objects
        for reference in references(item.object)
        if (reference.kind, reference.name) not in there
    ]


def test_the_operator_has_references_and_none_dangles() -> None:
    found = [reference.kind for item in operator() for reference in references(item.object)]
    assert {
        "ServiceAccount",
        "ConfigMap",
        "Secret",
        "Role",
        "ClusterRole",
        "Service",
        "PriorityClass",
    } <= set(found)
    assert dangling(operator()) == []


@given(
    prefix=st.sampled_from(["", "a-", "manager-"]),
    suffix=st.sampled_from(["", "-2-1-0", "-manager"]),
    namespace=st.sampled_from(["", "system", "elsewhere"]),
    again=st.booleans(),
)
def test_renaming_never_leaves_a_reference_behind(
    prefix: str, suffix: str, namespace: str, again: bool
) -> None:
    layer = Overlay(name_prefix=prefix, name_suffix=suffix, namespace=namespace)
    objects = apply(operator(), layer)
    if again:
        objects = apply(objects, layer)
    assert dangling(objects) == []
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        subject = one(objects, kind)["subjects"][0]
        assert subject["namespace"] == (namespace or "system")


def test_kinds_whose_names_are_an_api_keep_them() -> None:
    objects = apply(operator(), Overlay(name_prefix="x-", name_suffix="-y"))
    assert one(objects, "CustomResourceDefinition")["metadata"]["name"] == "tools.tools.example.com"
    assert one(objects, "Namespace")["metadata"]["name"] == "system"


def test_a_rule_for_one_object_follows_its_name_but_only_for_its_kind() -> None:
    objects = operator()
    one(objects, "ClusterRole", "manager")["rules"].append(
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["token"],
            "verbs": ["get"],
        }
    )
    rules = one(apply(objects, Overlay(name_suffix="-x")), "ClusterRole", "manager-x")["rules"]
    assert [rule.get("resourceNames") for rule in rules] == [None, ["token-x"], ["token"]]


def test_a_reference_that_may_mean_two_objects_is_an_error() -> None:
    account: Object = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "a", "namespace": "one"},
    }
    other = copy.deepcopy(account)
    other["metadata"]["namespace"] = "two"
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "a"}],
    }
    with pytest.raises(OverlayError, match="ClusterRoleBinding b-x refers to ServiceAccount a"):
        apply([Authored(account), Authored(other), Authored(binding)], Overlay(name_suffix="-x"))


@pytest.mark.parametrize(
    ("text", "image", "expected"),
    [
        ("controller", Image("controller", new_tag="1"), "controller:1"),
        ("controller:latest", Image("controller", "quay.io/a/b", "1"), "quay.io/a/b:1"),
        ("controller:1@sha256:a", Image("controller", new_tag="2"), "controller:2"),
        ("controller:1@sha256:a", Image("controller", "new"), "new:1@sha256:a"),
        ("controller:1", Image("controller", digest="sha256:b"), "controller@sha256:b"),
        ("controller:1", Image("controller", tag_suffix="-dev"), "controller:1-dev"),
        (
            "host:5000/a/controller:1",
            Image("host:5000/a/controller", new_tag="2"),
            "host:5000/a/controller:2",
        ),
        ("host:5000/controller", Image("controller", new_tag="2"), "host:5000/controller"),
        ("other:1", Image("controller", new_tag="2"), "other:1"),
    ],
)
def test_images_change_by_name(text: str, image: Image, expected: str) -> None:
    assert new_image(image, text) == expected


def test_labels_reach_selectors_only_on_request() -> None:
    plain = apply(operator(), Overlay(labels=[Labels({"v": "1"})]))
    assert one(plain, "Deployment")["spec"]["selector"] == {"matchLabels": {"app": "tool"}}
    objects = apply(operator(), Overlay(labels=[Labels({"v": "1"}, selectors=True)]))
    both = {"app": "tool", "v": "1"}
    assert one(objects, "Deployment")["spec"]["selector"]["matchLabels"] == both
    assert one(objects, "Deployment")["spec"]["template"]["metadata"]["labels"] == both
    assert one(objects, "Service")["spec"]["selector"] == both
    assert one(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == both
    assert one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == both


def test_two_versions_of_an_operator_share_neither_names_nor_selectors() -> None:
    def version(dashed: str) -> list[Authored]:
        return apply(
            operator(),
            Overlay(name_suffix=f"-{dashed}", labels=[Labels({"version": dashed}, selectors=True)]),
        )

    one_version, other = version("2-1-0"), version("2-2-0")
    selector = one(one_version, "Service")["spec"]["selector"]
    pods = one(other, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= pods.items()
    never = ("CustomResourceDefinition", "Namespace")
    names = {(i.kind, i.name) for i in one_version} & {(i.kind, i.name) for i in other}
    assert {kind for kind, _ in names} <= set(never)


def test_annotations_and_replicas_are_set() -> None:
    objects = apply(operator(), Overlay(annotations={"a": "b"}, replicas=[Replicas("manager", 4)]))
    assert one(objects, "Deployment")["spec"]["replicas"] == 4
    assert one(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"] == {"a": "b"}
    assert one(objects, "Secret")["metadata"]["annotations"] == {"a": "b"}


def test_inputs_are_never_changed() -> None:
    objects = operator()
    before = copy.deepcopy([item.object for item in objects])
    apply(
        objects,
        Overlay(
            name_suffix="-x",
            namespace="n",
            images=[Image("controller", "new")],
            labels=[Labels({"a": "b"}, selectors=True)],
            annotations={"c": "d"},
            patches=[Patch(".spec.replicas = 5", DEPLOYMENT)],
        ),
    )
    assert [item.object for item in objects] == before


def test_patches_of_every_form_apply_in_their_order() -> None:
    patches = [
        Patch([{"op": "replace", "path": "/spec/replicas", "value": 2}], DEPLOYMENT),
        Patch(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "manager"},
                "spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "p:9"}]}}},
            }
        ),
        Patch('.spec.template.spec.containers[name=proxy].args = ["--x"]', DEPLOYMENT),
    ]
    spec = one(apply(operator(), Overlay(patches=patches)), "Deployment")["spec"]
    assert spec["replicas"] == 2
    proxy = next(each for each in spec["template"]["spec"]["containers"] if each["name"] == "proxy")
    assert (proxy["image"], proxy["args"]) == ("p:9", ["--x"])


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (Patch([], None), "needs a target"),
        (Patch({"kind": "Deployment"}), "needs apiVersion, kind and metadata.name"),
        (Patch([{"op": "remove", "path": "/nothing"}], DEPLOYMENT), "does not apply to Deployment manager"),
        (Patch(".a.b = 1", Target(kind="Nothing")), "is for Nothing, but there is no such object"),
        (Patch(".spec.replicas[0] = 1", DEPLOYMENT), "finds nothing to change in Deployment manager"),
        (Patch([], Target(kind="(")), "is not valid"),
        (Patch([], Target(label_selector="a in")), "is not valid"),
    ],
)
def test_a_patch_that_cannot_be_applied_says_why(patch: Patch, message: str) -> None:
    with pytest.raises(OverlayError, match=message):
        apply(operator(), Overlay(patches=[patch]))


VALUE: Object = {"a": {"b": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "t": "text"}, "l": [1, 2, 3]}


@pytest.mark.parametrize(
    ("expression", "path", "expected"),
    [
        (".a.t = other", ("a", "t"), "other"),
        ('.a.new.deep = {"k": [1]}', ("a", "new"), {"deep": {"k": [1]}}),
        ('.a["dotted.key/x"] = true', ("a", "dotted.key/x"), True),
        (".a.b[0].v = 9", ("a", "b", 0, "v"), 9),
        (".a.b[-1].v = 9", ("a", "b", 1, "v"), 9),
        (".a.b[name=y].v = 9", ("a", "b", 1, "v"), 9),
        ('.a.b[name="y"].v = 9', ("a", "b", 1, "v"), 9),
        (".a.b[].v = 0", ("a", "b"), [{"name": "x", "v": 0}, {"name": "y", "v": 0}]),
        (".l += 4", ("l",), [1, 2, 3, 4]),
        (".l += [4, 5]", ("l",), [1, 2, 3, 4, 5]),
        (".new += 1", ("new",), [1]),
        ('.a.t += " more"', ("a", "t"), "text more"),
        ("del(.l[0])", ("l",), [2, 3]),
        ("del(.l[])", ("l",), []),
        ("del(.a.b[v=1])", ("a", "b"), [{"name": "y", "v": 2}]),
        (".a.t = ", ("a", "t"), None),
        ('.a.t = "a = b"', ("a", "t"), "a = b"),
    ],
)
def test_one_line_changes(expression: str, path: tuple[Any, ...], expected: Any) -> None:
    value: Any = overlay_values.change(VALUE, expression)
    for key in path:
        value = value[key]
    assert value == expected


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "a = b",
        ".a",
        ".a == ",
        "del(.a",
        "del(a)",
        ".a[x = 1",
        ".a = [",
        ".a. = 1",
        ".l[7] = 1",
        ".a.b += 1x: [",
        "del(.nothing)",
        ".a += 1",
    ],
)
def test_a_change_that_cannot_be_read_or_made_is_an_error(expression: str) -> None:
    with pytest.raises(OverlayError):
        overlay_values.change(VALUE, expression)
