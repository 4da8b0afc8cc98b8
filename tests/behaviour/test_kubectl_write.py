"""kubectl: create, patch, edit, replace, set, label, scale and delete"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from behaviour.manifests import config_map, deployment, pod, service, widget
from behaviour.scratch import named
from harness.kubectl import Kubectl

pytestmark = pytest.mark.kubectl

Object = dict[str, Any]
# Nobody schedules it, so nothing but the test changes it.
UNSCHEDULED = {"schedulerName": "nobody"}


def create(kubectl: Kubectl, *objects: Object) -> None:
    """Make these objects in the test's namespace."""
    kubectl.run("create", "-f", "-", input=objects)


# --- create ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "created"),
    [
        ("configmap c --from-literal=a=b", "configmap/c"),
        ("secret generic s --from-literal=a=b", "secret/s"),
        ("secret docker-registry r --docker-username=u --docker-password=p", "secret/r"),
        ("serviceaccount sa", "serviceaccount/sa"),
        ("role r --verb=get,list --resource=pods,deployments.apps", "role.rbac.authorization.k8s.io/r"),
        ("rolebinding rb --clusterrole=view --user=bob", "rolebinding.rbac.authorization.k8s.io/rb"),
        ("deployment d --image=app:1 --replicas=0 --port=80", "deployment.apps/d"),
        ("job j --image=app:1 -- date", "job.batch/j"),
        ("cronjob cj --image=app:1 --schedule=*/5_*_*_*_*", "cronjob.batch/cj"),
        ("service clusterip s1 --tcp=80:8080", "service/s1"),
        ("service nodeport s2 --tcp=80:8080", "service/s2"),
        ("service loadbalancer s3 --tcp=80:8080", "service/s3"),
        ("service externalname s4 --external-name=x.example.com", "service/s4"),
        ("ingress i --rule=x.example.com/path=s1:80", "ingress.networking.k8s.io/i"),
        ("quota q --hard=services.nodeports=5", "resourcequota/q"),
        ("poddisruptionbudget pdb --selector=app=d --min-available=1", "poddisruptionbudget.policy/pdb"),
    ],
    ids=lambda value: value.split(" -")[0] if " " in value else "",
)
def test_create_makes_an_object_that_get_finds(kubectl: Kubectl, words: str, created: str) -> None:
    args = [word.replace("_", " ") for word in words.split()]
    assert kubectl.run("create", *args).stdout == f"{created} created\n"
    assert kubectl.run("get", created, "-o", "name").stdout == f"{created}\n"
    again = kubectl.run("create", *args, expect=1).stderr
    assert "AlreadyExists" in again or "already exists" in again


def test_create_makes_cluster_wide_objects(kubectl: Kubectl, namespace: str) -> None:
    commands = {
        f"clusterrole {namespace}-cr --verb=get --resource=nodes": "clusterrole.rbac.authorization.k8s.io",
        f"clusterrolebinding {namespace}-crb --clusterrole=view --group=g": (
            "clusterrolebinding.rbac.authorization.k8s.io"
        ),
        f"priorityclass {namespace}-pc --value=10": "priorityclass.scheduling.k8s.io",
        f"namespace {namespace}-ns": "namespace",
    }
    for words, kind in commands.items():
        name = words.split()[1]
        assert kubectl.run("create", *words.split()).stdout == f"{kind}/{name} created\n"
        deleted = kubectl.run("delete", kind, name, "--wait=false").stdout
        assert deleted == f'{kind} "{name}" deleted\n'


def test_create_token_gives_a_token_that_the_server_believes(kubectl: Kubectl, namespace: str) -> None:
    token = kubectl.run("create", "token", "default", "--duration=10m").stdout.strip()
    review = named("TokenReview", "authentication.k8s.io/v1", "", spec={"token": token})
    del review["metadata"]
    answer = json.loads(kubectl.run("create", "-o", "json", "-f", "-", input=review).stdout)
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    refused = kubectl.run("create", "token", "nosuch", expect=1).stderr
    assert refused == 'error: failed to create token: serviceaccounts "nosuch" not found\n'


def test_create_in_dry_run_shows_what_would_be_and_makes_nothing(kubectl: Kubectl) -> None:
    shown = kubectl.json("create", "deployment", "d", "--image=app:1", "--dry-run=server")
    assert shown["spec"]["strategy"]["type"] == "RollingUpdate"
    assert kubectl.run("get", "deployments", "-o", "name").stdout == ""


def test_create_in_a_namespace_that_is_not_there_is_not_found(kubectl: Kubectl) -> None:
    refused = kubectl.run("create", "configmap", "c", "-n", "nosuch", expect=1).stderr
    assert 'namespaces "nosuch" not found' in refused


def test_run_makes_a_pod(kubectl: Kubectl) -> None:
    flags = ("--image=app:1", "--env=A=1", "--labels=x=y", "--port=80", "--restart=Never")
    assert kubectl.run("run", "p", *flags).stdout == "pod/p created\n"
    made = kubectl.json("get", "pod", "p")
    assert made["metadata"]["labels"] == {"x": "y"}
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


# --- patch, edit, replace -------------------------------------------------------------------------------


def image_of(kubectl: Kubectl, name: str) -> str:
    """The image of a Deployment's first container."""
    container = kubectl.json("get", "deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return str(container["image"])


def test_patch_merges_strategically_by_default(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 0))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    assert (
        kubectl.run("patch", "deployment", "d", "-p", json.dumps(patch)).stdout
        == "deployment.apps/d patched\n"
    )
    containers = kubectl.json("get", "deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert {container["name"] for container in containers} == {"main", "side"}
    again = kubectl.run("patch", "deployment", "d", "-p", json.dumps(patch)).stdout
    assert again == "deployment.apps/d patched (no change)\n"


def test_patch_merges_plainly_and_by_operations(kubectl: Kubectl) -> None:
    create(kubectl, config_map("c", a="1", b="1"))
    kubectl.run("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"a":null,"c":"3"}}')
    assert kubectl.json("get", "configmap", "c")["data"] == {"b": "1", "c": "3"}
    operations = (
        '[{"op":"test","path":"/data/b","value":"1"},{"op":"move","from":"/data/b","path":"/data/d"}]'
    )
    kubectl.run("patch", "configmap", "c", "--type=json", "-p", operations)
    assert kubectl.json("get", "configmap", "c")["data"] == {"c": "3", "d": "1"}
    refused = kubectl.run("patch", "configmap", "c", "--type=json", "-p", operations, expect=1).stderr
    assert refused.startswith("The request is invalid")


def test_patch_of_a_subresource_leaves_the_rest_alone(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1, replicas=1))
    both = '{"spec":{"size":7},"status":{"phase":"Done"}}'
    kubectl.run("patch", "widget", "w", "--subresource=status", "--type=merge", "-p", both)
    stored = kubectl.json("get", "widget", "w")
    assert (stored["spec"]["size"], stored["status"]) == (1, {"phase": "Done"})
    kubectl.run("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":7},"status":{"phase":"No"}}')
    stored = kubectl.json("get", "widget", "w")
    assert (stored["spec"]["size"], stored["status"]) == (7, {"phase": "Done"})
    scale = ("--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":4}}')
    kubectl.run("patch", "widget", "w", *scale)
    assert kubectl.json("get", "widget", "w")["spec"]["replicas"] == 4


def test_a_custom_resource_cannot_be_patched_strategically(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1))
    refused = kubectl.run("patch", "widget", "w", "-p", '{"spec":{"size":7}}', expect=1).stderr
    assert refused == (
        f"error: application/strategic-merge-patch+json is not supported by {widget_group}/v1, Kind=Widget: "
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\n"
    )


def test_edit_saves_what_the_editor_wrote(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, config_map("c", a="old"), widget(widget_group, "w", size=1))
    editor = {"EDITOR": "sed -i s/old/new/"}
    assert kubectl.run("edit", "configmap", "c", env=editor).stdout == "configmap/c edited\n"
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "new"}
    unchanged = kubectl.run("edit", "configmap", "c", env=editor)
    assert unchanged.stderr == "Edit cancelled, no changes made.\n"
    kubectl.run("edit", "widget", "w", env={"EDITOR": "sed -i s/size:.1/size:\\ 5/"})
    assert kubectl.json("get", "widget", "w")["spec"]["size"] == 5


def test_edit_shows_what_the_server_refused(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1))
    # The second time the editor changes nothing, so that kubectl gives up.
    refused = kubectl.run("edit", "widget", "w", env={"EDITOR": "sed -i s/size:.1/size:\\ 0/"}, expect=1)
    first, kept, last = refused.stderr.splitlines()
    assert first == f'error: widgets.{widget_group} "w" is invalid'
    assert last == "error: Edit cancelled, no valid changes were saved."
    shown = Path(kept.split('"')[1])
    assert "# * spec.size: Invalid value: 0: spec.size in body should be greater than" in shown.read_text()
    shown.unlink()
    assert kubectl.json("get", "widget", "w")["spec"]["size"] == 1


def test_replace_puts_a_whole_object_in_place(kubectl: Kubectl) -> None:
    create(kubectl, config_map("c", a="1", b="1"))
    replaced = kubectl.run("replace", "-f", "-", input=config_map("c", a="2")).stdout
    assert replaced == "configmap/c replaced\n"
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "2"}
    missing = kubectl.run("replace", "-f", "-", input=config_map("nosuch"), expect=1).stderr
    assert (
        missing
        == 'Error from server (NotFound): error when replacing "STDIN": configmaps "nosuch" not found\n'
    )


def test_replace_of_an_older_version_is_a_conflict(kubectl: Kubectl) -> None:
    create(kubectl, config_map("c", a="1"))
    stale = kubectl.json("get", "configmap", "c")
    kubectl.run("label", "configmap", "c", "x=y")
    refused = kubectl.run("replace", "-f", "-", input=stale, expect=1).stderr
    assert refused == (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on '
        'configmaps "c": the object has been modified; please apply your changes to the latest version and '
        "try again\n"
    )


def test_replace_force_deletes_and_creates(kubectl: Kubectl) -> None:
    create(kubectl, {**config_map("c", a="1"), "immutable": True})
    before = kubectl.json("get", "configmap", "c")["metadata"]["uid"]
    refused = kubectl.run("replace", "-f", "-", input=config_map("c", a="2"), expect=1).stderr
    assert "field is immutable when `immutable` is set" in refused
    kubectl.run("replace", "--force", "-f", "-", input=config_map("c", a="2"))
    after = kubectl.json("get", "configmap", "c")
    assert after["data"] == {"a": "2"}
    assert after["metadata"]["uid"] != before


# --- set, label, annotate, scale, expose ----------------------------------------------------------------


def test_set_changes_image_environment_resources_and_account(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 0))
    assert (
        kubectl.run("set", "image", "deployment/d", "main=app:2").stdout
        == "deployment.apps/d image updated\n"
    )
    kubectl.run("set", "env", "deployment/d", "A=1", "B=2")
    kubectl.run("set", "env", "deployment/d", "B-")
    kubectl.run("set", "resources", "deployment/d", "--limits=cpu=200m,memory=512Mi")
    kubectl.run("set", "serviceaccount", "deployment/d", "robot")
    spec = kubectl.json("get", "deployment", "d")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "app:2"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"] == {"limits": {"cpu": "200m", "memory": "512Mi"}}
    assert spec["serviceAccountName"] == "robot"


def test_set_changes_a_selector_and_a_subject(kubectl: Kubectl) -> None:
    create(kubectl, service("s"))
    kubectl.run("create", "rolebinding", "rb", "--clusterrole=view", "--user=bob")
    kubectl.run("set", "selector", "service/s", "x=y")
    assert kubectl.json("get", "service", "s")["spec"]["selector"] == {"x": "y"}
    kubectl.run("set", "subject", "rolebinding/rb", "--user=alice")
    subjects = kubectl.json("get", "rolebinding", "rb")["subjects"]
    assert [subject["name"] for subject in subjects] == ["bob", "alice"]


@pytest.mark.parametrize(
    ("verb", "field", "past"), [("label", "labels", "labeled"), ("annotate", "annotations", "annotated")]
)
def test_labels_and_annotations_are_added_guarded_overwritten_and_removed(
    kubectl: Kubectl, verb: str, field: str, past: str
) -> None:
    create(kubectl, config_map("c"))

    def change(*args: str, expect: int = 0) -> str:
        result = kubectl.run(verb, "configmap", "c", *args, expect=expect)
        return result.stdout + result.stderr

    def now() -> object:
        return kubectl.json("get", "configmap", "c")["metadata"].get(field)

    assert change("x=1") == f"configmap/c {past}\n"
    refused = change("x=2", expect=1)
    assert "'x' already has a value (1)" in refused
    assert "--overwrite is false" in refused
    assert change("x=2", "--overwrite") == f"configmap/c {past}\n"
    assert now() == {"x": "2"}
    change("x-")
    assert now() is None


def test_a_bad_label_is_refused_before_it_is_sent(kubectl: Kubectl) -> None:
    create(kubectl, config_map("c"))
    refused = kubectl.run("label", "configmap", "c", "x=not ok", expect=1).stderr
    assert "a valid label must be an empty string or consist of alphanumeric characters" in refused


def test_scale_sets_replicas_unless_they_are_not_as_expected(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, deployment("d", 0), widget(widget_group, "w", size=1))
    assert kubectl.run("scale", "deployment/d", "--replicas=1").stdout == "deployment.apps/d scaled\n"
    refused = kubectl.run("scale", "deployment/d", "--replicas=2", "--current-replicas=9", expect=1).stderr
    assert refused == "error: Expected replicas to be 9, was 1\n"
    kubectl.run("scale", "deployment/d", "--replicas=0", "--current-replicas=1")
    assert kubectl.json("get", "deployment", "d")["spec"]["replicas"] == 0
    kubectl.run("scale", "widget/w", "--replicas=3")
    assert kubectl.json("get", "widget", "w")["spec"]["replicas"] == 3


def test_autoscale_and_expose_make_objects_that_point_at_the_deployment(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 0))
    made = kubectl.run("autoscale", "deployment", "d", "--min=2", "--max=5", "--cpu=80%").stdout
    assert made == "horizontalpodautoscaler.autoscaling/d autoscaled\n"
    spec = kubectl.json("get", "hpa", "d")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    made = kubectl.run("expose", "deployment", "d", "--port=80", "--target-port=8080").stdout
    assert made == "service/d exposed\n"
    exposed = kubectl.json("get", "service", "d")["spec"]
    assert exposed["selector"] == {"app": "d"}
    assert exposed["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]


# --- delete ---------------------------------------------------------------------------------------------


def names(kubectl: Kubectl, kind: str) -> Sequence[str]:
    """The names of all objects of a kind in the test's namespace."""
    found = kubectl.run("get", kind, "-o", "jsonpath={.items[*].metadata.name}")
    return found.stdout.split()


def test_delete_takes_names_labels_files_or_everything(kubectl: Kubectl, namespace: str) -> None:
    create(kubectl, *(config_map(name, labels={"x": name}) for name in "abcde"))
    deleted = kubectl.run("delete", "configmap", "a", "b").stdout.splitlines()
    assert deleted == [f'configmap "{name}" deleted from {namespace} namespace' for name in "ab"]
    kubectl.run("delete", "configmaps", "-l", "x=c")
    kubectl.run("delete", "-f", "-", input=config_map("d"))
    assert names(kubectl, "configmaps") == ["e", "kube-root-ca.crt"]
    kubectl.run("delete", "configmaps", "--field-selector=metadata.name=e")
    create(kubectl, service("s1"), service("s2"))
    kubectl.run("delete", "services", "--all")
    assert names(kubectl, "services") == []


def test_delete_of_what_is_not_there_fails_unless_told_to_ignore_it(kubectl: Kubectl) -> None:
    missing = kubectl.run("delete", "configmap", "nosuch", expect=1).stderr
    assert missing == 'Error from server (NotFound): configmaps "nosuch" not found\n'
    ignored = kubectl.run("delete", "configmap", "nosuch", "--ignore-not-found")
    assert (ignored.stdout, ignored.stderr) == ("", "")
    assert kubectl.run("delete", "configmaps", "-l", "no=such").stdout == "No resources found\n"


def test_delete_in_dry_run_deletes_nothing(kubectl: Kubectl, namespace: str) -> None:
    create(kubectl, config_map("c"))
    shown = kubectl.run("delete", "configmap", "c", "--dry-run=server").stdout
    assert shown == f'configmap "c" deleted from {namespace} namespace (server dry run)\n'
    assert "c" in names(kubectl, "configmaps")


def test_delete_waits_for_finalizers_unless_told_not_to(kubectl: Kubectl) -> None:
    held = config_map("c")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    create(kubectl, held)
    kubectl.run("delete", "configmap", "c", "--wait=false")
    assert kubectl.json("get", "configmap", "c")["metadata"]["deletionTimestamp"]
    late = kubectl.run("delete", "configmap", "c", "--timeout=100ms", expect=1).stderr
    assert "timed out waiting for the condition on configmaps/c" in late
    with kubectl.stream("delete", "configmap", "c") as stream:
        stream.wait_for('configmap "c" deleted')
        kubectl.run("patch", "configmap", "c", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        stream.wait_for_end()
    assert "c" not in names(kubectl, "configmaps")


def test_delete_with_force_removes_a_pod_at_once(kubectl: Kubectl, namespace: str) -> None:
    create(kubectl, pod("p", **UNSCHEDULED))
    forced = kubectl.run("delete", "pod", "p", "--grace-period=0", "--force")
    assert forced.stdout == f'pod "p" force deleted from {namespace} namespace\n'
    assert "Immediate deletion does not wait for confirmation" in forced.stderr
    assert names(kubectl, "pods") == []


def owner_and_dependent(kubectl: Kubectl) -> None:
    """A ConfigMap `owner` and one that it owns."""
    create(kubectl, config_map("owner"))
    uid = kubectl.json("get", "configmap", "owner")["metadata"]["uid"]
    dependent = config_map("dependent")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    dependent["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    create(kubectl, dependent)


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_delete_takes_dependents_along(kubectl: Kubectl, how: str) -> None:
    owner_and_dependent(kubectl)
    kubectl.run("delete", "configmap", "owner", f"--cascade={how}")
    if how == "background":
        kubectl.run("wait", "configmap/dependent", "--for=delete", "--timeout=20s")
    assert names(kubectl, "configmaps") == ["kube-root-ca.crt"]


def test_delete_can_leave_dependents_as_orphans(kubectl: Kubectl) -> None:
    owner_and_dependent(kubectl)
    kubectl.run("delete", "configmap", "owner", "--cascade=orphan")
    assert "ownerReferences" not in kubectl.json("get", "configmap", "dependent")["metadata"]


def test_deleting_a_namespace_removes_what_is_in_it(kubectl: Kubectl, namespace: str) -> None:
    other = f"{namespace[:50]}-x"
    kubectl.run("create", "namespace", other)
    create_there = config_map("c")
    create_there["metadata"]["namespace"] = other
    kubectl.run("create", "-n", other, "-f", "-", input=create_there)
    assert kubectl.run("delete", "namespace", other).stdout == f'namespace "{other}" deleted\n'
    gone = kubectl.run("get", "configmap", "c", "-n", other, expect=1).stderr
    assert re.search(r"NotFound", gone)
