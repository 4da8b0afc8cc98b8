"""Server-side apply: merging, ownership of fields, conflicts, and what managedFields say of every write."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from behaviour.collection import APPLY, MERGE, Collection, Object, config_map, deployment, done
from behaviour.support import causes, eventually, refusal
from behaviour.widgets import Widgets
from harness.plain import Answer, Plain
from harness.plane import ControlPlane
from podium.schema import patches
from schema.apply_cases import CASES, WIDGET, WIDGET_CRD, Case, Step, assert_outcome


def entries(obj: Object) -> dict[str, Object]:
    """Each manager's fields, by `manager Operation[ subresource]`."""
    return {
        f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')}".strip(): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
        if entry["manager"] != "kube-controller-manager"
    }


def test_an_apply_creates_what_is_not_there(config_maps: Collection) -> None:
    answer = config_maps.apply(config_map("one", {"a": "1"}), "me")
    assert answer.status == 201
    [entry] = answer.json()["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    assert config_maps.apply(config_map("one", {"a": "2"}), "me").status == 200


def test_an_apply_without_change_keeps_the_version(config_maps: Collection) -> None:
    made = done(config_maps.apply(config_map("one", {"a": "1"}), "me"))
    assert done(config_maps.apply(config_map("one", {"a": "1"}), "me")) == made


def test_a_conflict_names_the_field_and_its_owner(config_maps: Collection) -> None:
    done(config_maps.apply(config_map("one", {"a": "1"}), "me"))
    answer = config_maps.apply(config_map("one", {"a": "2"}), "you")
    message = 'Apply failed with 1 conflict: conflict with "me": .data.a'
    assert refusal(answer) == (409, "Conflict", message)
    assert causes(answer) == [(".data.a", "FieldManagerConflict", 'conflict with "me"')]
    assert answer.json()["details"].keys() == {"causes"}


def test_a_conflict_with_an_updater_names_its_version(config_maps: Collection) -> None:
    done(config_maps.create(config_map("one", {"a": "1", "b": "1"}), "fieldManager=editor"))
    answer = config_maps.apply(config_map("one", {"a": "2", "b": "2"}), "me")
    message = 'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.a\n- .data.b'
    assert refusal(answer) == (409, "Conflict", message)


def test_force_takes_fields_over(config_maps: Collection) -> None:
    done(config_maps.apply(config_map("one", {"a": "1", "b": "1"}), "me"))
    taken = done(config_maps.apply(config_map("one", {"a": "2"}), "you", "force=true"))
    assert taken["data"] == {"a": "2", "b": "1"}
    assert entries(taken) == {"me Apply": {"f:data": {"f:b": {}}}, "you Apply": {"f:data": {"f:a": {}}}}


@pytest.mark.parametrize(
    ("manager", "field_error"),
    [
        ("", "fieldManager: Required value: is required for apply patch"),
        ("x" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
    ids=["none", "too long"],
)
def test_an_apply_needs_a_manager(config_maps: Collection, manager: str, field_error: str) -> None:
    answer = config_maps.apply(config_map("one"), manager)
    assert refusal(answer) == (422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {field_error}')


def test_managed_fields_cannot_be_applied(config_maps: Collection) -> None:
    answer = config_maps.apply(config_map("one", managedFields=[]), "me")
    assert refusal(answer) == (400, "BadRequest", "metadata.managedFields must be nil")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "/, Kind="),
        ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "/v2, Kind=ConfigMap"),
        ({"apiVersion": "v1", "kind": "Secret"}, "/v1, Kind=Secret"),
    ],
)
def test_an_applied_object_must_say_its_kind(config_maps: Collection, body: Object, kind: str) -> None:
    answer = config_maps.apply({**body, "metadata": {"name": "one"}}, "me")
    assert refusal(answer) == (400, "BadRequest", f"invalid object type: {kind}")


def test_an_applied_name_must_be_that_of_the_path(config_maps: Collection) -> None:
    answer = config_maps.patch("one", config_map("two"), APPLY, query="fieldManager=me")
    why = "the name of the object (two) does not match the name on the URL (one)"
    assert refusal(answer) == (400, "BadRequest", why)
    unnamed: Object = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
    answer = config_maps.patch("one", unnamed, APPLY, query="fieldManager=me")
    why = "the name of the object (one based on URL) was undeterminable: name must be provided"
    assert refusal(answer) == (400, "BadRequest", why)


def test_fields_that_the_kind_does_not_have_are_refused(config_maps: Collection) -> None:
    where = "failed to create typed patch object (/one; /v1, Kind=ConfigMap)"
    answer = config_maps.apply({**config_map("one"), "nope": 1}, "me")
    assert refusal(answer) == (500, "", f"{where}: .nope: field not declared in schema")
    answer = config_maps.apply({**config_map("one", nah=1), "nope": 1}, "me", "fieldValidation=Ignore")
    listed = "\n  .metadata.nah: field not declared in schema\n  .nope: field not declared in schema"
    assert refusal(answer) == (500, "", f"{where}: errors:{listed}")


def test_fields_that_the_schema_does_not_have_are_refused(widgets: Collection, widget_kind: Widgets) -> None:
    answer = widgets.apply(widget_kind.widget("one", spec={"weight": 1}), "me")
    kind = f"{widget_kind.api_version}, Kind=Widget"
    why = ".spec.weight: field not declared in schema"
    assert refusal(answer) == (500, "", f"failed to create typed patch object (/one; {kind}): {why}")


def test_list_elements_need_their_key_and_have_it_once(deployments: Collection) -> None:
    twice = [{"name": "main", "image": "example.com/a:1"}, {"name": "main", "image": "example.com/b:1"}]
    obj = deployment("one")
    obj["spec"]["template"]["spec"]["containers"] = twice
    answer = deployments.apply(obj, "me")
    assert refusal(answer)[0] == 500
    assert 'duplicate entries for key [name="main"]' in refusal(answer)[2]


def test_an_apply_is_written_in_yaml(config_maps: Collection) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n"
    made = done(config_maps.patch("one", text, APPLY, query="fieldManager=me"))
    assert made["data"] == {"a": "1"}
    answer = config_maps.patch("one", b"a: b: c", APPLY, query="fieldManager=me")
    assert refusal(answer)[:2] == (400, "BadRequest")
    assert refusal(answer)[2].startswith("error decoding YAML: error converting YAML to JSON: yaml: ")


def test_an_apply_can_insist_on_a_version(config_maps: Collection) -> None:
    made = done(config_maps.apply(config_map("one", {"a": "1"}), "me"))
    version = made["metadata"]["resourceVersion"]
    done(config_maps.apply(config_map("one", {"a": "2"}, resourceVersion=version), "me"))
    answer = config_maps.apply(config_map("one", {"a": "3"}, resourceVersion=version), "me")
    assert refusal(answer)[:2] == (409, "Conflict")
    assert "the object has been modified" in refusal(answer)[2]


def test_an_apply_cannot_set_a_uid(config_maps: Collection) -> None:
    answer = config_maps.apply(config_map("one", uid="some"), "me")
    assert refusal(answer)[:2] == (409, "Conflict")
    why = "uid mismatch: the provided object specified uid some, and no existing object was found"
    assert refusal(answer)[2].endswith(why)
    done(config_maps.apply(config_map("one"), "me"))
    why = 'ConfigMap "one" is invalid: metadata.uid: Invalid value: "some": field is immutable'
    assert refusal(config_maps.apply(config_map("one", uid="some"), "me")) == (422, "Invalid", why)


def test_the_user_agent_stands_in_for_a_manager_of_plain_writes(config_maps: Collection) -> None:
    agent = {"User-Agent": "tool/v1.2 (linux)"}
    made = done(
        config_maps.plain.request("POST", config_maps.path, config_map("one", {"a": "1"}), headers=agent)
    )
    assert entries(made) == {"tool Update": {"f:data": {".": {}, "f:a": {}}}}
    headers = {**agent, "Content-Type": MERGE}
    patch = {"metadata": {"labels": {"x": "y"}}}
    changed = done(config_maps.plain.request("PATCH", config_maps.at("one"), patch, headers=headers))
    labels: Object = {"f:labels": {".": {}, "f:x": {}}}
    assert entries(changed) == {"tool Update": {"f:data": {".": {}, "f:a": {}}, "f:metadata": labels}}


def test_the_status_endpoint_owns_no_labels_of_a_deployment(deployments: Collection) -> None:
    done(deployments.create(deployment("one"), "fieldManager=maker"))
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    patch = {"metadata": metadata, "status": {"collisionCount": 3}}
    changed = done(deployments.patch("one", patch, query="fieldManager=status", sub="status"))
    owned = entries(changed)["status Update status"]
    assert owned == {
        "f:metadata": {"f:annotations": {".": {}, "f:c": {}}},
        "f:status": {"f:collisionCount": {}},
    }


def test_a_scale_has_an_entry_without_a_time(deployments: Collection) -> None:
    done(deployments.apply(deployment("one"), "owner"))
    done(deployments.patch("one", {"spec": {"replicas": 2}}, query="fieldManager=scaler", sub="scale"))
    obj = done(deployments.get("one"))
    assert entries(obj)["scaler Update scale"] == {"f:spec": {"f:replicas": {}}}
    [entry] = [e for e in obj["metadata"]["managedFields"] if e.get("subresource") == "scale"]
    assert "time" not in entry
    answer = deployments.apply(deployment("one"), "owner")
    why = 'conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas'
    assert refusal(answer) == (409, "Conflict", f"Apply failed with 1 conflict: {why}")


def test_a_scale_can_be_applied(deployments: Collection) -> None:
    done(deployments.apply(deployment("one"), "owner"))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}}
    applied: Object = {**scale, "spec": {"replicas": 2}}
    answer = deployments.apply(applied, "scaler", sub="scale")
    message = 'Apply failed with 1 conflict: conflict with "owner": .spec.replicas'
    assert refusal(answer) == (409, "Conflict", message)
    assert done(deployments.apply(applied, "scaler", "force=true", sub="scale"))["spec"] == {"replicas": 2}
    owned = entries(done(deployments.get("one")))
    assert owned["scaler Apply scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owned["owner Apply"]["f:spec"]


@pytest.fixture(scope="module")
def merged_widgets(control_plane: ControlPlane) -> Iterator[None]:
    """The custom resource that the shared cases are about."""
    plain = Plain(control_plane.kubeconfig)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = plain.request("POST", definitions, WIDGET_CRD)
    assert answer.status == 201, answer.body.decode()
    trial = {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": {"name": "trial"}}
    path = f"{WIDGET.path('default', 'trial')}?fieldManager=trial&dryRun=All"
    headers = {"Content-Type": APPLY}
    eventually(lambda: plain.request("PATCH", path, trial, headers=headers).status == 201)
    yield
    plain.request("DELETE", f"{definitions}/{WIDGET_CRD['metadata']['name']}")


def send(plain: Plain, namespace: str, case: Case, step: Step, live: Object | None) -> Answer:
    """Make the request of one step."""
    name = "subject"
    kind = {"apiVersion": case.resource.api_version, "kind": case.resource.kind}
    body = {**kind, **step.body, "metadata": {"name": name, **step.body.get("metadata", {})}}
    path = case.resource.path(namespace, "" if step.verb == "create" else name)
    path += (f"/{step.subresource}" if step.subresource else "") + f"?fieldManager={quote(step.manager)}"
    match step.verb:
        case "create":
            return plain.request("POST", path, body)
        case "update":
            return plain.request("PUT", path, patches.merge_patch(live, step.body))
        case "patch":
            return plain.request("PATCH", path, step.body, headers={"Content-Type": MERGE})
        case _:
            path += f"&force={str(step.force).lower()}"
            return plain.request("PATCH", path, body, headers={"Content-Type": APPLY})


# A controller writes the same fields of a Deployment's status, sooner or later.
CONTESTED = "status has entries of its own"


@pytest.mark.usefixtures("merged_widgets")
@pytest.mark.parametrize("case", [c for c in CASES if c.name != CONTESTED], ids=lambda case: case.name)
def test_fields_are_merged_and_owned(plain: Plain, namespace: str, case: Case) -> None:
    path = case.resource.path(namespace, "subject")
    for step in case.steps:
        answer = eventually(lambda step=step: take(plain, namespace, case, step))  # type: ignore[misc]
        if step.conflict:
            assert refusal(answer) == (409, "Conflict", step.conflict)
        else:
            done(answer)
    assert_outcome(case, done(plain.request("GET", path)))


def take(plain: Plain, namespace: str, case: Case, step: Step) -> Answer | None:
    """Make the request of a step on what is there now; None if a controller was faster."""
    read = plain.request("GET", case.resource.path(namespace, "subject"))
    answer = send(plain, namespace, case, step, read.json() if read.status == 200 else None)
    outrun = answer.status == 409 and "the object has been modified" in refusal(answer)[2]
    return None if outrun else answer
