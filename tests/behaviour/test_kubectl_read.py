"""kubectl: get, describe, explain, wait and watching"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from behaviour.manifests import config_map, deployment, pod, service, widget
from behaviour.scratch import named
from harness.kubectl import Kubectl
from harness.plane import ControlPlane

pytestmark = pytest.mark.kubectl

Object = dict[str, Any]


def create(kubectl: Kubectl, *objects: Object) -> None:
    """Make these objects in the test's namespace."""
    kubectl.run("create", "-f", "-", input=objects)


def rows(kubectl: Kubectl, *args: str) -> list[list[str]]:
    """What a command prints as a table, by row and column; columns are two spaces apart at least."""
    return [re.split(r"\s{2,}", line.strip()) for line in kubectl.run(*args).stdout.splitlines() if line]


# --- discovery ------------------------------------------------------------------------------------------


def test_api_resources_lists_kinds_with_short_names_scope_verbs_and_categories(
    kubectl: Kubectl, widget_group: str
) -> None:
    table = {}
    for row in rows(kubectl, "api-resources", "-o", "wide", "--no-headers"):
        kind = next(position for position, cell in enumerate(row) if cell in ("true", "false"))
        table[row[0], row[kind - 1]] = row
    assert table["deployments", "apps/v1"] == [
        "deployments",
        "deploy",
        "apps/v1",
        "true",
        "Deployment",
        "create,delete,deletecollection,get,list,patch,update,watch",
        "all",
    ]
    assert table["nodes", "v1"][1:5] == ["no", "v1", "false", "Node"]
    assert table["widgets", f"{widget_group}/v1"][1:] == [
        "wdg",
        f"{widget_group}/v1",
        "true",
        "Widget",
        "delete,deletecollection,get,list,patch,create,update,watch",
        "all,gadgets",
    ]


def test_api_resources_can_be_narrowed(kubectl: Kubectl, widget_group: str) -> None:
    of_group = kubectl.run("api-resources", f"--api-group={widget_group}", "-o", "name").stdout.split()
    assert of_group == [f"widgets.{widget_group}"]
    cluster_wide = kubectl.run("api-resources", "--namespaced=false", "-o", "name").stdout.split()
    assert {"namespaces", "nodes", "customresourcedefinitions.apiextensions.k8s.io"} <= set(cluster_wide)
    assert "pods" not in cluster_wide


def test_api_versions_lists_every_group_and_version(kubectl: Kubectl, widget_group: str) -> None:
    versions = kubectl.run("api-versions").stdout.split()
    assert {"v1", "apps/v1", "batch/v1", "apiextensions.k8s.io/v1", f"{widget_group}/v1"} <= set(versions)


def test_explain_tells_the_fields_of_a_kind(kubectl: Kubectl) -> None:
    explained = kubectl.run("explain", "configmap").stdout
    assert re.search(r"^KIND: +ConfigMap\nVERSION: +v1$", explained, re.MULTILINE)
    assert re.search(r"^  data\t<map\[string\]string>$", explained, re.MULTILINE)
    assert re.search(r"^  metadata\t<ObjectMeta>$", explained, re.MULTILINE)


def test_explain_follows_a_path_and_marks_what_is_required(kubectl: Kubectl) -> None:
    explained = kubectl.run("explain", "deployment.spec.template.spec.containers.ports").stdout
    assert re.search(r"^GROUP: +apps\nKIND: +Deployment\nVERSION: +v1$", explained, re.MULTILINE)
    assert "FIELD: ports <[]ContainerPort>" in explained
    assert re.search(r"^  containerPort\t<integer> -required-$", explained, re.MULTILINE)


def test_explain_recursive_shows_the_whole_tree(kubectl: Kubectl) -> None:
    explained = kubectl.run("explain", "deployment.spec", "--recursive").stdout
    assert "\n  strategy\t<DeploymentStrategy>\n    rollingUpdate\t<RollingUpdateDeployment>\n" in explained
    assert re.search(r"^ +maxSurge\t<IntOrString>$", explained, re.MULTILINE)


def test_explain_shows_the_schema_of_a_custom_resource_with_its_descriptions(
    kubectl: Kubectl, widget_group: str
) -> None:
    explained = kubectl.run("explain", "widget").stdout
    assert f"GROUP:      {widget_group}\nKIND:       Widget\nVERSION:    v1" in explained
    assert "A widget of some size." in explained
    assert "spec\t<Object> -required-\n    What is wanted." in explained
    assert "FIELD: size <integer>" in kubectl.run("explain", "widget.spec.size").stdout
    tree = kubectl.run("explain", "widget.spec", "--recursive").stdout
    assert "  color\t<string>\n  enum: red, green\n" in tree


def test_explain_of_what_is_not_there_fails(kubectl: Kubectl, widget_group: str) -> None:
    assert (
        kubectl.run("explain", "widget.nosuch", expect=1).stderr == 'error: field "nosuch" does not exist\n'
    )
    refused = kubectl.run("explain", "nosuch", expect=1).stderr
    assert refused == 'the server doesn\'t have a resource type "nosuch"\n'


# --- get ------------------------------------------------------------------------------------------------


def test_get_prints_the_same_object_as_yaml_json_name_jsonpath_columns_and_template(kubectl: Kubectl) -> None:
    create(kubectl, config_map("c", a="1"))
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "1"}
    assert 'data:\n  a: "1"\n' in kubectl.run("get", "configmap", "c", "-o", "yaml").stdout
    assert kubectl.run("get", "configmap", "c", "-o", "name").stdout == "configmap/c\n"
    assert kubectl.run("get", "configmap", "c", "-o", "jsonpath={.data.a}").stdout == "1"
    columns = "-o=custom-columns=WHO:.metadata.name,WHAT:.data"
    assert kubectl.run("get", "configmap", "c", columns).stdout == "WHO   WHAT\nc     map[a:1]\n"
    assert kubectl.run("get", "configmap", "c", "-o", "go-template={{.data.a}}").stdout == "1"


@pytest.mark.parametrize("word", ["configmap", "configmaps", "cm", "configmaps.v1."])
def test_get_knows_a_resource_by_singular_plural_and_short_name(kubectl: Kubectl, word: str) -> None:
    create(kubectl, config_map("c"))
    assert kubectl.run("get", word, "c", "-o", "name").stdout == "configmap/c\n"


def test_get_all_shows_the_objects_of_the_category(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, config_map("c"), service("s"), deployment("d", 0), widget(widget_group, "w", size=1))
    names = kubectl.run("get", "all", "-o", "name").stdout.split()
    assert {"service/s", "deployment.apps/d", f"widget.{widget_group}/w"} <= set(names)
    assert "configmap/c" not in names
    assert kubectl.run("get", "gadgets", "-o", "name").stdout == f"widget.{widget_group}/w\n"


def test_get_of_nothing_says_so(kubectl: Kubectl, namespace: str) -> None:
    empty = kubectl.run("get", "deployments")
    assert (empty.stdout, empty.stderr) == ("", f"No resources found in {namespace} namespace.\n")
    missing = kubectl.run("get", "configmap", "nosuch", expect=1).stderr
    assert missing == 'Error from server (NotFound): configmaps "nosuch" not found\n'
    unknown = kubectl.run("get", "nosuch", expect=1).stderr
    assert unknown == 'error: the server doesn\'t have a resource type "nosuch"\n'


def test_get_prints_the_servers_columns_and_more_with_wide(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 0), service("s"))
    head, row = rows(kubectl, "get", "deployment", "d")
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:2] == ["d", "0/0"]
    head, row = rows(kubectl, "get", "deployment", "d", "-o", "wide")
    assert head[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[-3:] == ["main", "app:1", "app=d"]
    head, row = rows(kubectl, "get", "service", "s")
    assert head == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert (row[1], row[3], row[4]) == ("ClusterIP", "<none>", "80/TCP")


def test_get_prints_the_columns_of_a_custom_resource(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=3))
    assert rows(kubectl, "get", "widgets") == [["NAME", "SIZE"], ["w", "3"]]
    assert rows(kubectl, "get", "wdg", "w", "-o", "wide") == [["NAME", "SIZE", "NOTE"], ["w", "3", "none"]]


def test_get_subresource_shows_the_scale(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, deployment("d", 0), widget(widget_group, "w", size=1, replicas=3))
    for kind, name, desired in (("deployment", "d", "0"), ("widget", "w", "3")):
        head, row = rows(kubectl, "get", kind, name, "--subresource=scale")
        assert head == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
        assert row[:3] == [name, desired, "0"]


def test_get_selects_by_label_and_by_field_and_sorts(kubectl: Kubectl) -> None:
    for name, tier in (("b", "web"), ("a", "web"), ("c", "data")):
        create(kubectl, config_map(name, labels={"tier": tier}))

    def names(*flags: str) -> list[str]:
        return kubectl.run("get", "configmaps", "-o", "name", *flags).stdout.split()

    assert names("-l", "tier=web") == ["configmap/a", "configmap/b"]
    assert names("-l", "tier in (web,data),tier!=web") == ["configmap/c"]
    assert names("--field-selector", "metadata.name=b") == ["configmap/b"]
    assert names("-l", "tier", "--sort-by=.metadata.labels.tier")[0] == "configmap/c"
    shown = rows(kubectl, "get", "configmaps", "-l", "tier=data", "-L", "tier", "--show-labels")
    assert (shown[0][-2:], shown[1][-2:]) == (["TIER", "LABELS"], ["data", "tier=data"])


def test_get_refuses_a_field_selector_that_the_kind_lacks(kubectl: Kubectl) -> None:
    refused = kubectl.run("get", "configmaps", "--field-selector=data.a=1", expect=1).stderr
    assert refused == (
        'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector '
        '"", field selector "data.a=1": "data.a" is not a known field selector: only "metadata.name", '
        '"metadata.namespace"\n'
    )


def test_get_of_a_deprecated_kind_warns(kubectl: Kubectl) -> None:
    warned = kubectl.run("get", "endpoints").stderr.splitlines()[0]
    assert warned == "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def test_get_in_chunks_shows_everything(kubectl: Kubectl) -> None:
    create(kubectl, *(config_map(f"c{number}", labels={"x": "y"}) for number in range(7)))
    found = kubectl.run("get", "configmaps", "-l", "x=y", "--chunk-size=3", "-o", "name").stdout.split()
    assert found == [f"configmap/c{number}" for number in range(7)]


def test_get_watch_prints_a_row_for_each_change(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "first", size=1))
    with kubectl.stream("get", "widgets", "-w", "--output-watch-events") as stream:
        assert re.split(r"\s+", stream.wait_for("first")) == ["ADDED", "first", "1"]
        create(kubectl, widget(widget_group, "second", size=1))
        assert re.split(r"\s+", stream.wait_for("second")) == ["ADDED", "second", "1"]
        kubectl.run("patch", "widget", "second", "--type=merge", "-p", '{"spec":{"size":2}}')
        assert re.split(r"\s+", stream.wait_for("second")) == ["MODIFIED", "second", "2"]
        kubectl.run("delete", "widget", "second")
        assert re.split(r"\s+", stream.wait_for("second")) == ["DELETED", "second", "2"]


def test_get_watch_of_one_object_prints_only_its_changes(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "mine", size=1), widget(widget_group, "other", size=1))
    with kubectl.stream("get", "widget", "mine", "-w", "-o", "jsonpath={.spec.size}{'\\n'}") as stream:
        stream.wait_for("1")
        kubectl.run("patch", "widget", "other", "--type=merge", "-p", '{"spec":{"size":5}}')
        kubectl.run("patch", "widget", "mine", "--type=merge", "-p", '{"spec":{"size":2}}')
        stream.wait_for("2")
    assert stream.lines == ["1", "2"]


# --- describe -------------------------------------------------------------------------------------------


def test_describe_shows_an_object_and_its_events(kubectl: Kubectl, namespace: str) -> None:
    create(kubectl, config_map("c", a="1"))
    uid = kubectl.json("get", "configmap", "c")["metadata"]["uid"]
    create(kubectl, event(namespace, "ConfigMap", "c", uid, "It happened"))
    described = kubectl.run("describe", "configmap", "c").stdout
    assert re.search(r"^Name: +c\nNamespace: +", described)
    assert "\na:\n----\n1\n" in described
    assert re.search(r"^  Normal +Tested +\S+ +tester +It happened$", described, re.MULTILINE)


DESCRIBED = {
    "deployment/d": ["Replicas:", "StrategyType:", "Pod Template:", "RollingUpdateStrategy:"],
    "service/s": ["IP Family Policy:", "Port:", "Endpoints:", "Session Affinity:"],
    "pod/p": ["Service Account:", "Containers:", "QoS Class:", "Tolerations:"],
    "ingress/i": ["Rules:", "x.example.com", "s:80"],
    "persistentvolumeclaim/pvc": ["StorageClass:", "Access Modes:", "Used By:"],
    "cronjob/cj": ["Schedule:", "Concurrency Policy:", "Last Schedule Time:"],
    "job/j": ["Parallelism:", "Completions:", "Pods Statuses:"],
    "horizontalpodautoscaler/hpa": ["Reference:", "Min replicas:"],
    "poddisruptionbudget/pdb": ["Min available:", "Selector:", "Status:"],
    "networkpolicy/np": ["PodSelector:", "Policy Types:"],
    "resourcequota/rq": ["Resource", "Used", "Hard"],
    "limitrange/lr": ["Type", "Max", "Default Limit"],
    "serviceaccount/default": ["Image pull secrets:"],
    "secret/sec": ["Type:  Opaque", "a:  1 bytes"],
    "role/r": ["Resources", "Verbs", "pods"],
    "rolebinding/rb": ["Role:", "Subjects:"],
}


def test_describe_works_for_every_kind_that_has_its_own_description(kubectl: Kubectl, namespace: str) -> None:
    create(kubectl, *described_objects())
    for what, expected in DESCRIBED.items():
        text = kubectl.run("describe", what).stdout
        assert text.startswith(("Name:", f"Name:  {what.partition('/')[2]}"))
        assert [word for word in expected if word not in text] == [], text


def test_describe_shows_a_custom_resource_as_it_is(
    kubectl: Kubectl, widget_group: str, namespace: str
) -> None:
    create(kubectl, widget(widget_group, "w", size=3))
    uid = kubectl.json("get", "widget", "w")["metadata"]["uid"]
    create(kubectl, event(namespace, "Widget", "w", uid, "It grew", f"{widget_group}/v1"))
    described = kubectl.run("describe", "widget", "w").stdout
    assert re.search(r"^Kind: +Widget$", described, re.MULTILINE)
    assert re.search(r"^Spec:\n  Note: +none\n  Size: +3$", described, re.MULTILINE)
    assert "It grew" in described


def test_describe_shows_a_node_and_a_custom_resource_definition(
    kubectl: Kubectl, widget_group: str, namespace: str
) -> None:
    create(kubectl, named("Node", "v1", f"{namespace}-n"))
    try:
        described = kubectl.run("describe", "node", f"{namespace}-n").stdout
    finally:
        kubectl.run("delete", "node", f"{namespace}-n")
    assert re.search(r"^Unschedulable: +false$", described, re.MULTILINE)
    assert "Allocated resources:" in described
    definition = kubectl.run("describe", "crd", f"widgets.{widget_group}").stdout
    assert "Plural:    widgets" in re.sub(r"  +", "    ", definition)


def test_events_lists_events_and_can_be_narrowed_to_one_object(kubectl: Kubectl, namespace: str) -> None:
    create(
        kubectl,
        event(namespace, "ConfigMap", "a", "1", "About a"),
        event(namespace, "ConfigMap", "b", "2", "About b"),
    )
    head, *listed = rows(kubectl, "events")
    assert head == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert sorted(row[1:] for row in listed) == [
        ["Normal", "Tested", "ConfigMap/a", "About a"],
        ["Normal", "Tested", "ConfigMap/b", "About b"],
    ]
    assert [row[-1] for row in rows(kubectl, "events", "--for=configmap/b", "--no-headers")] == ["About b"]
    assert len(rows(kubectl, "get", "events", "--field-selector=involvedObject.name=a", "--no-headers")) == 1


# --- wait -----------------------------------------------------------------------------------------------


def test_wait_sees_a_condition_and_a_value_that_are_there(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1))
    status = {"status": {"phase": "Done", "conditions": [{"type": "Ready", "status": "True"}]}}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
    kubectl.run("patch", "widget", "w", *patch)
    met = f"widget.{widget_group}/w condition met\n"
    assert kubectl.run("wait", "widget/w", "--for=condition=Ready").stdout == met
    assert kubectl.run("wait", "widget/w", "--for=jsonpath={.status.phase}=Done").stdout == met
    assert kubectl.run("wait", "widget/w", "--for=create").stdout == met


def test_wait_returns_when_the_value_comes(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1))
    with kubectl.stream("wait", "widget/w", "--for=jsonpath={.spec.size}=2", "--timeout=20s") as stream:
        kubectl.run("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":2}}')
        stream.wait_for("condition met")


def test_wait_returns_when_the_object_is_created_or_gone(kubectl: Kubectl) -> None:
    with kubectl.stream("wait", "configmap/c", "--for=create", "--timeout=20s") as stream:
        create(kubectl, config_map("c"))
        stream.wait_for("configmap/c condition met")
    with kubectl.stream("wait", "configmap/c", "--for=delete", "--timeout=20s") as stream:
        kubectl.run("delete", "configmap", "c")
        stream.wait_for_end()
    # If it was gone before the command looked, there is nothing to say.
    assert stream.lines in (["configmap/c condition met"], [])


def test_wait_gives_up_in_time_and_says_for_what(kubectl: Kubectl, widget_group: str) -> None:
    create(kubectl, widget(widget_group, "w", size=1))
    late = kubectl.run("wait", "widget/w", "--for=condition=Ready", "--timeout=50ms", expect=1).stderr
    assert late == "error: timed out waiting for the condition on widgets/w\n"
    missing = kubectl.run("wait", "widget/none", "--for=condition=Ready", "--timeout=50ms", expect=1).stderr
    assert missing == f'Error from server (NotFound): widgets.{widget_group} "none" not found\n'


# --- the server itself ----------------------------------------------------------------------------------


def test_version_names_the_server_and_warns_of_no_skew(kubectl: Kubectl) -> None:
    versions = kubectl.json("version")
    assert versions["serverVersion"]["gitVersion"].startswith("v1.36.")
    assert (versions["serverVersion"]["major"], versions["serverVersion"]["minor"]) == ("1", "36")
    assert kubectl.run("version").stderr == ""


def test_cluster_info_names_the_control_plane(kubectl: Kubectl) -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", kubectl.run("cluster-info").stdout)
    assert shown.startswith("Kubernetes control plane is running at https://127.0.0.1:")


def test_get_raw_prints_what_the_server_answers(kubectl: Kubectl) -> None:
    assert kubectl.run("get", "--raw", "/readyz").stdout == "ok"
    assert json.loads(kubectl.run("get", "--raw", "/version").stdout)["minor"] == "36"
    assert json.loads(kubectl.run("get", "--raw", "/api/v1/namespaces/default").stdout)["kind"] == "Namespace"
    refused = kubectl.run("get", "--raw", "/nosuch", expect=1).stderr
    assert refused == "Error from server (NotFound): the server could not find the requested resource\n"


def test_config_view_shows_the_context_without_secrets(kubectl: Kubectl, namespace: str) -> None:
    shown = kubectl.json("config", "view", "--minify")
    assert shown["contexts"][0]["context"]["namespace"] == namespace
    assert shown["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert "PRIVATE KEY" not in json.dumps(shown)


def test_top_says_that_there_are_no_metrics(kubectl: Kubectl) -> None:
    assert kubectl.run("top", "pods", expect=1).stderr == "error: Metrics API not available\n"
    assert kubectl.run("top", "nodes", expect=1).stderr == "error: Metrics API not available\n"


def test_logs_of_a_pod_that_is_not_there_is_not_found(kubectl: Kubectl, namespace: str) -> None:
    missing = kubectl.run("logs", "nosuch", expect=1).stderr
    assert (
        missing
        == f'error: error from server (NotFound): pods "nosuch" not found in namespace "{namespace}"\n'
    )


def test_logs_need_the_name_of_a_container_that_is_there(kubectl: Kubectl, namespace: str) -> None:
    both = [{"name": "a", "image": "app:1"}, {"name": "b", "image": "app:1"}]
    create(kubectl, pod("p", containers=both, schedulerName="nobody"))
    path = f"/api/v1/namespaces/{namespace}/pods/p/log"
    start = "Error from server (BadRequest): "
    unnamed = kubectl.run("get", "--raw", path, expect=1).stderr
    assert unnamed == f"{start}a container name must be specified for pod p, choose one of: [a b]\n"
    unknown = kubectl.run("get", "--raw", f"{path}?container=c", expect=1).stderr
    assert unknown == f"{start}container c is not valid for pod p\n"
    waiting = kubectl.run("logs", "p")
    assert (waiting.stdout, waiting.stderr) == ("", 'Defaulted container "a" out of: a, b\n')


def test_logs_of_a_running_pod_say_that_it_is_simulated(
    kubectl: Kubectl, control_plane: ControlPlane
) -> None:
    create(kubectl, pod("p"))
    kubectl.run("wait", "pod/p", "--for=condition=Ready", "--timeout=20s")
    # The real server would ask the kubelet, and there is none.
    if control_plane.kind == "embedded":
        printed = kubectl.run("logs", "p").stdout
        assert printed == "This Pod is simulated: it runs no process and has no logs.\n"


def event(namespace: str, kind: str, name: str, uid: str, message: str, api_version: str = "v1") -> Object:
    """An Event about an object of this namespace."""
    now = "2030-01-01T00:00:00Z"
    return named(
        "Event",
        "v1",
        f"{name}.{uid[:8]}",
        involvedObject={
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "uid": uid,
        },
        reason="Tested",
        message=message,
        type="Normal",
        source={"component": "tester"},
        firstTimestamp=now,
        lastTimestamp=now,
        count=1,
    )


def described_objects() -> list[Object]:
    """One object of each kind in DESCRIBED."""
    rbac = "rbac.authorization.k8s.io"
    job = {"suspend": True, "template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}}
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    specs: list[tuple[str, str, str, Object]] = [
        (
            "Ingress",
            "networking.k8s.io/v1",
            "i",
            {"rules": [{"host": "x.example.com", "http": {"paths": paths}}]},
        ),
        ("PersistentVolumeClaim", "v1", "pvc", claim),
        ("CronJob", "batch/v1", "cj", {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}),
        ("Job", "batch/v1", "j", job),
        ("HorizontalPodAutoscaler", "autoscaling/v2", "hpa", {"scaleTargetRef": target, "maxReplicas": 2}),
        (
            "PodDisruptionBudget",
            "policy/v1",
            "pdb",
            {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        ),
        ("NetworkPolicy", "networking.k8s.io/v1", "np", {"podSelector": {}}),
        ("ResourceQuota", "v1", "rq", {"hard": {"services.nodeports": "5"}}),
        (
            "LimitRange",
            "v1",
            "lr",
            {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]},
        ),
    ]
    return [
        deployment("d", 0),
        service("s"),
        pod("p"),
        *(named(kind, version, name, spec=spec) for kind, version, name, spec in specs),
        named("Secret", "v1", "sec", data={"a": "MQ=="}),
        named("Role", f"{rbac}/v1", "r", rules=rules),
        named("RoleBinding", f"{rbac}/v1", "rb", roleRef={"apiGroup": rbac, "kind": "Role", "name": "r"}),
    ]
