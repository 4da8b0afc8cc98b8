"""kubectl: workloads that run, roll out, and are restarted and drained"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from behaviour.manifests import deployment, pod, pod_template, service
from behaviour.scratch import named
from behaviour.support import eventually
from harness.kubectl import Kubectl
from podium.simulator.provisioning import PROVISIONER

pytestmark = pytest.mark.kubectl

Object = dict[str, Any]
SELECTOR = {"matchLabels": {"app": "x"}}


def create(kubectl: Kubectl, *objects: Object) -> None:
    """Make these objects in the test's namespace."""
    kubectl.run("create", "-f", "-", input=objects)


def roll_out(kubectl: Kubectl, what: str) -> str:
    """Wait until a workload is up to date, and give the last line of what is printed."""
    return kubectl.run("rollout", "status", what, "--timeout=60s").stdout.splitlines()[-1]


def images(kubectl: Kubectl, **labels: str) -> set[str]:
    """The images of the Pods with these labels that are not being deleted."""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    pods = kubectl.json("get", "pods", "-l", selector)["items"]
    kept = [found for found in pods if "deletionTimestamp" not in found["metadata"]]
    return {found["spec"]["containers"][0]["image"] for found in kept}


def stateful_set(name: str, replicas: int) -> Object:
    """A StatefulSet without volumes."""
    spec = {"replicas": replicas, "serviceName": name, "selector": SELECTOR, "template": pod_template("x")}
    return named("StatefulSet", "apps/v1", name, spec=spec)


def test_a_deployment_becomes_available(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 2))
    assert roll_out(kubectl, "deployment/d") == 'deployment "d" successfully rolled out'
    kubectl.run("wait", "deployment/d", "--for=condition=Available", "--timeout=20s")
    assert kubectl.run("get", "deployment", "d", "--no-headers").stdout.split()[:4] == ["d", "2/2", "2", "2"]
    rows = [line.split() for line in kubectl.run("get", "pods", "--no-headers").stdout.splitlines()]
    assert [row[1:4] for row in rows] == [["1/1", "Running", "0"]] * 2
    owned = kubectl.run("get", "all", "-o", "name").stdout.split()
    assert sorted(name.partition("/")[0] for name in owned) == [
        "deployment.apps",
        "pod",
        "pod",
        "replicaset.apps",
    ]


def test_describe_tells_the_story_of_a_deployment_and_its_pod(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    eventually(lambda: "ScalingReplicaSet" in reasons(kubectl, "deployment/d"))
    told = kubectl.run("describe", "deployment", "d").stdout
    assert re.search(
        r"^Replicas: +1 desired \| 1 updated \| 1 total \| 1 available \| 0 unavailable$", told, re.MULTILINE
    )
    assert re.search(r"^  Available +True +MinimumReplicasAvailable$", told, re.MULTILINE)
    assert re.search(r"^NewReplicaSet: +d-\S+ \(1/1 replicas created\)$", told, re.MULTILINE)
    assert re.search(
        r"Normal +ScalingReplicaSet .*deployment-controller +Scaled up replica set d-\S+ from 0 to 1", told
    )
    told = kubectl.run("describe", "pods", "-l", "app=d").stdout
    assert re.search(r"^Status: +Running$", told, re.MULTILINE)
    assert re.search(r"^Controlled By: +ReplicaSet/d-", told, re.MULTILINE)
    assert re.search(r"^  Ready +True *$", told, re.MULTILINE)
    assert re.search(r"Normal +Scheduled .* Successfully assigned \S+/d-\S+ to ", told)
    assert re.search(r"Normal +Started ", told)


def test_a_new_image_rolls_out_and_can_be_undone(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 2))
    roll_out(kubectl, "deployment/d")
    kubectl.run("set", "image", "deployment/d", "main=app:2")
    kubectl.run("annotate", "deployment", "d", "kubernetes.io/change-cause=second")
    roll_out(kubectl, "deployment/d")
    assert images(kubectl, app="d") == {"app:2"}
    history = [line.split() for line in kubectl.run("rollout", "history", "deployment/d").stdout.splitlines()]
    assert [row[0] for row in history if row and row[0].isdigit()] == ["1", "2"]
    second = kubectl.run("rollout", "history", "deployment/d", "--revision=2").stdout
    assert re.search(r"Image:\tapp:2", second)
    undone = kubectl.run("rollout", "undo", "deployment/d").stdout
    assert undone == "deployment.apps/d rolled back\n"
    roll_out(kubectl, "deployment/d")
    assert images(kubectl, app="d") == {"app:1"}
    history = [line.split() for line in kubectl.run("rollout", "history", "deployment/d").stdout.splitlines()]
    assert [row[0] for row in history if row and row[0].isdigit()] == ["2", "3"]


def test_events_of_a_rollout_are_told_in_their_order(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 2))
    roll_out(kubectl, "deployment/d")
    kubectl.run("set", "image", "deployment/d", "main=app:2")
    roll_out(kubectl, "deployment/d")

    def steps() -> list[tuple[str, str]]:
        told = kubectl.run("describe", "deployment", "d").stdout
        return re.findall(r"Scaled (\w+ replica set) d-\S+ (from \d to \d)", told)

    up, down = "up replica set", "down replica set"
    expected = [(up, "from 0 to 2"), (up, "from 0 to 1"), (down, "from 2 to 1"), (up, "from 1 to 2")]
    eventually(lambda: steps() == [*expected, (down, "from 1 to 0")])


def test_undo_can_go_to_a_revision_and_says_if_there_is_none(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    refused = kubectl.run("rollout", "undo", "deployment/d", expect=1).stderr
    assert refused == 'error: no rollout history found for deployment "d"\n'
    for image in ("app:2", "app:3"):
        kubectl.run("set", "image", "deployment/d", f"main={image}")
        roll_out(kubectl, "deployment/d")
    kubectl.run("rollout", "undo", "deployment/d", "--to-revision=1")
    roll_out(kubectl, "deployment/d")
    assert images(kubectl, app="d") == {"app:1"}


def test_restart_replaces_every_pod(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 2))
    roll_out(kubectl, "deployment/d")
    before = set(kubectl.run("get", "pods", "-o", "name").stdout.split())
    assert kubectl.run("rollout", "restart", "deployment/d").stdout == "deployment.apps/d restarted\n"
    roll_out(kubectl, "deployment/d")
    template = kubectl.json("get", "deployment", "d")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    kubectl.run("wait", *before, "--for=delete", "--timeout=60s")
    after = kubectl.run("get", "pods", "-o", "name").stdout.split()
    assert len(after) == 2


def test_a_paused_deployment_does_not_roll_out_until_resumed(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    assert kubectl.run("rollout", "pause", "deployment/d").stdout == "deployment.apps/d paused\n"
    kubectl.run("set", "image", "deployment/d", "main=app:2")
    observed = "jsonpath={.status.observedGeneration}"
    generation = kubectl.json("get", "deployment", "d")["metadata"]["generation"]
    kubectl.run("wait", "deployment/d", f"--for={observed}={generation}", "--timeout=20s")
    assert images(kubectl, app="d") == {"app:1"}
    refused = kubectl.run("rollout", "restart", "deployment/d", expect=1).stderr
    assert "can't restart paused deployment" in refused
    assert kubectl.run("rollout", "resume", "deployment/d").stdout == "deployment.apps/d resumed\n"
    roll_out(kubectl, "deployment/d")
    assert images(kubectl, app="d") == {"app:2"}


def test_rollout_status_follows_a_rollout_to_its_end(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 3))
    with kubectl.stream("rollout", "status", "deployment/d", "--timeout=60s") as stream:
        stream.wait_for('deployment "d" successfully rolled out', timeout=60)
    assert all(line.startswith(("Waiting for deployment", 'deployment "d"')) for line in stream.lines)


def test_scale_adds_and_removes_pods(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    for replicas in ("3", "1", "0"):
        kubectl.run("scale", "deployment/d", f"--replicas={replicas}")
        eventually(lambda wanted=int(replicas): len(pods(kubectl)) == wanted, timeout=40)  # type: ignore[misc]


def pods(kubectl: Kubectl) -> list[str]:
    """The names of the Pods of the test's namespace."""
    return kubectl.run("get", "pods", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()


def test_a_stateful_set_rolls_out_in_order_and_can_be_undone(kubectl: Kubectl) -> None:
    create(kubectl, stateful_set("s", 2))
    assert roll_out(kubectl, "statefulset/s").startswith("partitioned roll out complete: 2 new pods")
    assert pods(kubectl) == ["s-0", "s-1"]
    kubectl.run("set", "image", "statefulset/s", "main=app:2")
    roll_out(kubectl, "statefulset/s")
    assert images(kubectl, app="x") == {"app:2"}
    kubectl.run("rollout", "undo", "statefulset/s")
    roll_out(kubectl, "statefulset/s")
    assert images(kubectl, app="x") == {"app:1"}


def test_a_daemon_set_runs_on_every_node_and_rolls_out(kubectl: Kubectl) -> None:
    spec = {"selector": SELECTOR, "template": pod_template("x")}
    create(kubectl, named("DaemonSet", "apps/v1", "s", spec=spec))
    assert roll_out(kubectl, "daemonset/s") == 'daemon set "s" successfully rolled out'
    kubectl.run("set", "image", "daemonset/s", "main=app:2")
    roll_out(kubectl, "daemonset/s")
    assert images(kubectl, app="x") == {"app:2"}
    history = kubectl.run("rollout", "history", "daemonset/s").stdout
    assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == ["1", "2"]


def test_a_job_completes_and_says_so(kubectl: Kubectl) -> None:
    kubectl.run("create", "job", "j", "--image=app:1", "--", "date")
    kubectl.run("wait", "job/j", "--for=condition=Complete", "--timeout=40s")
    assert kubectl.run("get", "job", "j", "--no-headers").stdout.split()[:3] == ["j", "Complete", "1/1"]
    row = kubectl.run("get", "pods", "-l", "job-name=j", "--no-headers").stdout.split()
    assert row[1:3] == ["0/1", "Completed"]
    told = kubectl.run("describe", "job", "j").stdout
    assert re.search(r"^Pods Statuses: +0 Active \(0 Ready\) / 1 Succeeded / 0 Failed$", told, re.MULTILINE)


def test_a_job_is_made_from_a_cron_job(kubectl: Kubectl) -> None:
    kubectl.run("create", "cronjob", "cj", "--image=app:1", "--schedule=0 0 1 1 *")
    assert kubectl.run("create", "job", "now", "--from=cronjob/cj").stdout == "job.batch/now created\n"
    kubectl.run("wait", "job/now", "--for=condition=Complete", "--timeout=40s")
    owner = kubectl.json("get", "job", "now")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("CronJob", "cj")


def test_a_service_has_the_addresses_of_the_ready_pods(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 2), service("d"))
    roll_out(kubectl, "deployment/d")
    wanted = "jsonpath={.items[*].status.podIP}"
    addresses = set(kubectl.run("get", "pods", "-l", "app=d", "-o", wanted).stdout.split())
    assert len(addresses) == 2

    def endpoints() -> set[str]:
        listed = kubectl.json("get", "endpointslices", "-l", "kubernetes.io/service-name=d")["items"]
        return {
            address
            for found in listed
            for point in found["endpoints"] or []
            for address in point["addresses"]
        }

    eventually(lambda: endpoints() == addresses, timeout=20)
    described = kubectl.run("describe", "service", "d").stdout
    assert all(f"{address}:80" in described for address in addresses)


@pytest.fixture
def storage_class(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A StorageClass whose volumes are simulated, and made when a Pod needs them."""
    name = f"{namespace}-sc"
    fields = {"provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}
    create(kubectl, named("StorageClass", "storage.k8s.io/v1", name, **fields))
    yield name
    kubectl.run("delete", "storageclass", name)


def test_a_claim_is_bound_when_a_pod_uses_it(kubectl: Kubectl, storage_class: str) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    create(
        kubectl,
        named("PersistentVolumeClaim", "v1", "c", spec={**claim, "storageClassName": storage_class}),
    )
    assert "Pending" in kubectl.run("get", "pvc", "c").stdout
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    create(kubectl, pod("p", volumes=volumes))
    kubectl.run("wait", "pvc/c", "--for=jsonpath={.status.phase}=Bound", "--timeout=40s")
    kubectl.run("wait", "pod/p", "--for=condition=Ready", "--timeout=40s")


def test_events_tell_what_happened_to_a_pod(kubectl: Kubectl) -> None:
    create(kubectl, pod("p"))
    kubectl.run("wait", "pod/p", "--for=condition=Ready", "--timeout=20s")
    told = eventually(lambda: reasons(kubectl, "pod/p") >= {"Scheduled", "Pulled", "Created", "Started"})
    assert told


def reasons(kubectl: Kubectl, what: str) -> set[str]:
    """The reasons of the events about an object."""
    listed = kubectl.run("events", f"--for={what}", "-o", "jsonpath={.items[*].reason}")
    return set(listed.stdout.split())


def test_a_pod_is_deleted_gracefully(kubectl: Kubectl) -> None:
    create(kubectl, pod("p", terminationGracePeriodSeconds=1))
    kubectl.run("wait", "pod/p", "--for=condition=Ready", "--timeout=20s")
    kubectl.run("delete", "pod", "p", "--timeout=30s")
    assert pods(kubectl) == []


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_deleting_a_deployment_takes_its_pods_along(kubectl: Kubectl, how: str) -> None:
    create(kubectl, deployment("d", 2))
    roll_out(kubectl, "deployment/d")
    kubectl.run("delete", "deployment", "d", f"--cascade={how}", "--timeout=60s")
    eventually(lambda: not pods(kubectl), timeout=40)
    assert kubectl.run("get", "replicasets", "-o", "name").stdout == ""


def test_orphaned_pods_go_on_running_and_are_adopted_again(kubectl: Kubectl) -> None:
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    (before,) = pods(kubectl)
    kubectl.run("delete", "deployment", "d", "--cascade=orphan")
    (owner,) = kubectl.json("get", "replicasets")["items"]
    assert "ownerReferences" not in owner["metadata"]
    create(kubectl, deployment("d", 1))
    roll_out(kubectl, "deployment/d")
    assert pods(kubectl) == [before]


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """The node that the simulator plays, schedulable again afterwards."""
    (name,) = kubectl.run("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
    yield name
    kubectl.run("uncordon", name)


def test_drain_evicts_pods_and_respects_budgets(kubectl: Kubectl, node: str, namespace: str) -> None:
    create(kubectl, deployment("d", 1))
    kubectl.run("create", "pdb", "d", "--selector=app=d", "--min-available=1")
    roll_out(kubectl, "deployment/d")
    kubectl.run("wait", "pdb/d", "--for=jsonpath={.status.currentHealthy}=1", "--timeout=20s")
    with kubectl.stream("drain", node, "--ignore-daemonsets", "--pod-selector=app=d") as stream:
        stream.wait_for("Cannot evict pod as it would violate the pod's disruption budget.")
    kubectl.run("delete", "pdb", "d")
    (before,) = pods(kubectl)
    drained = kubectl.run(
        "drain", node, "--ignore-daemonsets", "--pod-selector=app=d", "--timeout=60s"
    ).stdout
    assert f"pod/{before} evicted" in drained
    assert f"node/{node} drained" in drained
    # The new Pod waits: the node is closed.
    waiting = kubectl.run("get", "pods", "-o", "jsonpath={.items[*].status.phase}").stdout
    assert waiting == "Pending"
    assert "SchedulingDisabled" in kubectl.run("get", "node", node).stdout


def test_a_pod_that_fits_nowhere_stays_pending_and_says_why(kubectl: Kubectl) -> None:
    create(kubectl, pod("p", nodeSelector={"no": "where"}))
    why = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].reason}"
    kubectl.run("wait", "pod/p", f"--for={why}=Unschedulable", "--timeout=20s")
    assert kubectl.run("get", "pod", "p", "--no-headers").stdout.split()[1:3] == ["0/1", "Pending"]
    assert eventually(lambda: "FailedScheduling" in reasons(kubectl, "pod/p"))
