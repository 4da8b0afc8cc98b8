"""Pods: service accounts, priorities, tolerations and what of them may change."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.scratch import Scratch, named
from behaviour.support import causes, eventually, refusal
from harness.kubectl import Kubectl

Object = dict[str, Any]
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(name: str = "p", **spec: Any) -> Object:
    """A Pod that no scheduler takes, so that nothing happens to it."""
    own = {"containers": [{"name": "c", "image": "x:1"}], "schedulerName": "nobody"}
    return named("Pod", "v1", name, spec={**own, **spec})


def mounts(created: Object) -> list[str]:
    containers = [*created["spec"].get("initContainers", ()), *created["spec"]["containers"]]
    return [mount["mountPath"] for c in containers for mount in c.get("volumeMounts", ())]


def test_every_container_can_read_the_token_of_the_account(scratch: Scratch) -> None:
    created = scratch.create(pod(initContainers=[{"name": "i", "image": "x"}]))
    assert mounts(created) == [MOUNT, MOUNT]
    [volume] = created["spec"]["volumes"]
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]


def test_a_container_that_mounts_something_there_keeps_it(scratch: Scratch) -> None:
    own = {"name": "own", "mountPath": MOUNT}
    containers = [{"name": "c", "image": "x", "volumeMounts": [own]}]
    created = scratch.create(pod(containers=containers, volumes=[{"name": "own", "emptyDir": {}}]))
    assert created["spec"]["containers"][0]["volumeMounts"] == [own]
    assert [volume["name"] for volume in created["spec"]["volumes"]] == ["own"]


@pytest.mark.parametrize(
    ("by_account", "by_pod", "mounted"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_the_token_can_be_kept_away_by_the_account_or_the_pod(
    scratch: Scratch, by_account: bool | None, by_pod: bool | None, mounted: bool
) -> None:
    settings: Object = {} if by_account is None else {"automountServiceAccountToken": by_account}
    scratch.create(named("ServiceAccount", "v1", "bot", **settings))
    spec: Object = {} if by_pod is None else {"automountServiceAccountToken": by_pod}
    eventually(lambda: scratch.attempt(pod("probe", serviceAccountName="bot"), "?dryRun=All").status == 201)
    assert bool(mounts(scratch.create(pod(serviceAccountName="bot", **spec)))) is mounted


def test_a_pod_takes_the_pull_secrets_of_its_account(scratch: Scratch) -> None:
    scratch.create(named("ServiceAccount", "v1", "bot", imagePullSecrets=[{"name": "s"}]))
    assert scratch.create(pod(serviceAccountName="bot"))["spec"]["imagePullSecrets"] == [{"name": "s"}]
    own = scratch.create(pod("own", serviceAccountName="bot", imagePullSecrets=[{"name": "t"}]))
    assert own["spec"]["imagePullSecrets"] == [{"name": "t"}]


def test_a_pod_of_an_account_that_is_not_there_is_refused(scratch: Scratch) -> None:
    answer = scratch.attempt(pod(serviceAccountName="nobody"))
    why = f'error looking up service account {scratch.namespace}/nobody: serviceaccount "nobody" not found'
    assert refusal(answer) == (403, "Forbidden", f'pods "p" is forbidden: {why}')


def test_the_older_name_of_the_account_field_counts_too(scratch: Scratch) -> None:
    scratch.create(named("ServiceAccount", "v1", "bot"))
    spec = scratch.create(pod(serviceAccount="bot"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("bot", "bot")


def test_tolerations_for_failing_nodes_are_added_unless_there_are_such(scratch: Scratch) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    added = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    added["tolerationSeconds"] = 300  # type: ignore[assignment]
    assert scratch.create(pod(tolerations=[own]))["spec"]["tolerations"] == [own, added]
    everything = {"operator": "Exists"}
    assert scratch.create(pod("q", tolerations=[everything]))["spec"]["tolerations"] == [everything]


def priority_class(scratch: Scratch, value: int, **fields: Any) -> str:
    wanted = named("PriorityClass", "scheduling.k8s.io/v1", f"{scratch.namespace}-p", value=value, **fields)
    name: str = scratch.create(wanted)["metadata"]["name"]
    return name


def test_a_pod_gets_the_number_of_its_priority_class(scratch: Scratch) -> None:
    name = priority_class(scratch, 7, preemptionPolicy="Never")
    eventually(lambda: scratch.attempt(pod(priorityClassName=name), "?dryRun=All").status == 201)
    spec = scratch.create(pod(priorityClassName=name))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


@pytest.mark.parametrize(
    ("name", "value"), [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_the_classes_of_the_system_are_there(scratch: Scratch, name: str, value: int) -> None:
    assert scratch.create(pod(priorityClassName=name))["spec"]["priority"] == value


def test_a_priority_class_that_is_not_there_is_refused(scratch: Scratch) -> None:
    answer = scratch.attempt(pod(priorityClassName="none"))
    message = 'pods "p" is forbidden: no PriorityClass with name none was found'
    assert refusal(answer) == (403, "Forbidden", message)


def test_a_priority_cannot_be_given_as_a_number(scratch: Scratch) -> None:
    answer = scratch.attempt(pod(priority=5))
    why = (
        "the integer value of priority (5) must not be provided in pod spec; "
        "priority admission controller computed 0 from the given PriorityClass name"
    )
    assert refusal(answer) == (403, "Forbidden", f'pods "p" is forbidden: {why}')


def test_a_pod_cannot_preempt_unlike_its_class(scratch: Scratch) -> None:
    answer = scratch.attempt(pod(preemptionPolicy="Never"))
    why = (
        "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
        "priority admission controller computed PreemptLowerPriority from the given PriorityClass name"
    )
    assert refusal(answer) == (403, "Forbidden", f'pods "p" is forbidden: {why}')


def test_tolerations_for_failing_nodes_come_back_if_an_update_leaves_them_out(scratch: Scratch) -> None:
    created = scratch.create(pod())
    answer = scratch.patch(pod(), {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}})
    assert answer.status == 200, answer.body
    added = created["spec"]["tolerations"]
    assert answer.json()["spec"]["tolerations"] == [{"key": "a", "operator": "Exists"}, *added]


def test_a_priority_left_out_of_an_update_stays(scratch: Scratch) -> None:
    scratch.create(pod(priorityClassName="system-node-critical"))
    answer = scratch.patch(pod(), {"spec": {"priority": None, "preemptionPolicy": None}})
    assert answer.status == 200, answer.body
    assert answer.json()["spec"]["priority"] == 2_000_001_000


def runtime_class(scratch: Scratch, **fields: Any) -> str:
    wanted = named("RuntimeClass", "node.k8s.io/v1", f"{scratch.namespace}-r", handler="h", **fields)
    name: str = scratch.create(wanted)["metadata"]["name"]
    return name


def test_a_runtime_class_adds_its_overhead_and_where_it_runs(scratch: Scratch) -> None:
    toleration = {"key": "sandboxed", "operator": "Exists"}
    scheduling = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [toleration]}
    name = runtime_class(scratch, overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling)
    spec = scratch.create(pod(runtimeClassName=name, nodeSelector={"a": "b"}))["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "sandbox": "yes"}
    assert spec["tolerations"][-1] == toleration


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "<own>", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "<own>", "nodeSelector": {"sandbox": "no"}},
            (
                "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; "
                "pod.spec.nodeSelector[sandbox] = no"
            ),
        ),
    ],
)
def test_a_pod_that_contradicts_its_runtime_class_is_refused(
    scratch: Scratch, spec: Object, why: str
) -> None:
    scheduling = {"nodeSelector": {"sandbox": "yes"}}
    own = runtime_class(scratch, overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling)
    wanted = {**spec, "runtimeClassName": own} if spec.get("runtimeClassName") == "<own>" else spec
    answer = scratch.attempt(pod(**wanted))
    assert refusal(answer) == (403, "Forbidden", f'pods "p" is forbidden: {why}')


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"nodeName": "n"}},
        {"spec": {"containers": [{"name": "c", "image": "x:1", "command": ["other"]}]}},
        {"spec": {"serviceAccountName": "other", "serviceAccount": "other"}},
        {"spec": {"priority": 5}},
        {"spec": {"hostNetwork": True}},
    ],
    ids=lambda change: next(iter(change["spec"])),
)
def test_most_of_a_pod_is_immutable(scratch: Scratch, change: Object) -> None:
    scratch.create(pod())
    answer = scratch.patch(pod(), change)
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
        "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
        "previously negative)"
    )
    assert answer.status == 422
    assert any(field == "spec" and message.startswith(text) for field, _, message in causes(answer))


def test_image_deadline_and_further_tolerations_may_change(scratch: Scratch) -> None:
    created = scratch.create(pod())
    spec = created["spec"]
    spec["containers"][0]["image"] = "x:2"
    spec["activeDeadlineSeconds"] = 100
    spec["tolerations"].append({"key": "a", "operator": "Exists"})
    answer = scratch.replace(created)
    assert answer.status == 200, answer.body
    assert answer.json()["spec"]["containers"][0]["image"] == "x:2"
    assert answer.json()["metadata"]["generation"] == 2


def test_containers_cannot_be_added_or_removed(scratch: Scratch) -> None:
    scratch.create(pod())
    two = [{"name": "c", "image": "x:1"}, {"name": "d", "image": "x"}]
    answer = scratch.patch(pod(), {"spec": {"containers": two}})
    text = "Forbidden: pod updates may not add or remove containers"
    assert causes(answer) == [("spec.containers", "FieldValueForbidden", text)]


def test_an_ephemeral_container_comes_through_its_subresource_only(scratch: Scratch) -> None:
    scratch.create(pod())
    debugger = {"name": "debug", "image": "busybox"}
    change = {"spec": {"ephemeralContainers": [debugger]}}
    assert scratch.patch(pod(), change).status == 422
    answer = scratch.patch(pod(), change, "ephemeralcontainers")
    assert answer.status == 200, answer.body
    [added] = answer.json()["spec"]["ephemeralContainers"]
    assert added | debugger == added
    assert added["terminationMessagePolicy"] == "File"
    removed = scratch.patch(pod(), {"spec": {"ephemeralContainers": None}}, "ephemeralcontainers")
    assert removed.status == 422


def test_a_creator_cannot_set_the_status(scratch: Scratch) -> None:
    created = scratch.create(pod() | {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_the_quality_of_service_follows_from_requests_and_limits(
    scratch: Scratch, resources: Object, quality: str
) -> None:
    created = scratch.create(pod(containers=[{"name": "c", "image": "x", "resources": resources}]))
    assert created["status"]["qosClass"] == quality
    if "limits" in resources:
        assert created["spec"]["containers"][0]["resources"]["requests"] == resources["limits"]


@pytest.mark.parametrize(
    ("image", "policy"), [("x", "Always"), ("x:latest", "Always"), ("x:1", "IfNotPresent")]
)
def test_an_image_without_a_version_is_always_pulled(scratch: Scratch, image: str, policy: str) -> None:
    created = scratch.create(pod(containers=[{"name": "c", "image": image}]))
    assert created["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_pod_is_bound_to_a_node_once(scratch: Scratch) -> None:
    scratch.create(pod())
    path = f"{scratch.path(pod(), 'p')}/binding"
    binding = named("Binding", "v1", "p", target={"kind": "Node", "name": "n"})
    bound = scratch.plain.request("POST", path, binding)
    assert bound.status == 201
    assert bound.json()["status"] == "Success"
    found = scratch.read(pod())
    assert found["spec"]["nodeName"] == "n"
    scheduled = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert scheduled == {"PodScheduled": "True"}
    again = scratch.plain.request("POST", path, binding)
    message = 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    assert refusal(again) == (409, "Conflict", message)


def test_a_pod_on_a_node_is_deleted_gracefully(scratch: Scratch) -> None:
    scratch.create(pod(nodeName="n", terminationGracePeriodSeconds=17))
    answer = scratch.plain.request("DELETE", scratch.path(pod(), "p"))
    metadata = answer.json()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 17
    assert metadata["deletionTimestamp"]
    scratch.delete(pod())
    assert scratch.plain.request("GET", scratch.path(pod(), "p")).status == 404


def test_a_pod_without_a_node_goes_at_once(scratch: Scratch) -> None:
    scratch.create(pod())
    assert scratch.plain.request("DELETE", scratch.path(pod(), "p")).status == 200
    assert scratch.plain.request("GET", scratch.path(pod(), "p")).status == 404


def test_a_disruption_budget_stops_an_eviction(scratch: Scratch) -> None:
    guarded = pod()
    guarded["metadata"]["labels"] = {"app": "a"}
    scratch.create(guarded)
    evict = f"{scratch.path(guarded, 'p')}/eviction"
    eviction = named("Eviction", "policy/v1", "p")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    scratch.create(named("PodDisruptionBudget", "policy/v1", "b", spec=spec))
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    scratch.patch(guarded, {"status": running}, "status")
    answer = scratch.plain.request("POST", evict, eviction)
    code, reason, message = refusal(answer)
    assert (code, reason) == (429, "TooManyRequests")
    assert message.startswith("Cannot evict pod as ")
    assert answer.json()["details"]["causes"][0]["reason"] == "DisruptionBudget"


def test_an_evicted_pod_is_gone(scratch: Scratch) -> None:
    scratch.create(pod())
    answer = scratch.plain.request(
        "POST", f"{scratch.path(pod(), 'p')}/eviction", named("Eviction", "policy/v1", "p")
    )
    assert answer.status == 201
    assert scratch.plain.request("GET", scratch.path(pod(), "p")).status == 404


@pytest.mark.kubectl
def test_kubectl_runs_a_pod_and_shows_it(kubectl: Kubectl) -> None:
    kubectl.run("run", "p", "--image=x", "--labels=app=a", "--port=80", "--env=A=b")
    found = kubectl.json("get", "pod", "p")
    assert found["metadata"]["labels"] == {"app": "a"}
    assert found["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert kubectl.run("get", "pods", "--no-headers").stdout.split()[0] == "p"
    assert "Service Account:" in kubectl.run("describe", "pod", "p").stdout
