"""The real control plane, with which everything else is compared, does start, work and stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import informer
from harness.kubectl import Kubectl
from harness.plain import Plain
from harness.plane import ControlPlane
from harness.processes import ProcessDied
from harness.real import RealControlPlane

pytestmark = pytest.mark.real

LABELS = {"app": "web"}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
        },
    },
}


# A test run in small: starts a server, says its process id, and waits to be ended.
OWNER = f"""
import sys, time, pathlib
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from harness.processes import Group
group = Group()
print(group.start(["sleep", "600"], log=pathlib.Path(sys.argv[1])).process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="session")
def control_plane(real_control_plane: ControlPlane) -> ControlPlane:
    return real_control_plane


def test_the_api_server_says_the_version_that_was_pinned(plain: Plain) -> None:
    pins = Path(__file__).parents[2] / "conformance" / "go" / "kubernetes" / "go.mod"
    version = plain.request("GET", "/version").json()["gitVersion"]
    assert f"\tk8s.io/kubernetes {version} " in pins.read_text()


def test_anonymous_requests_are_known_as_such_and_refused_by_rbac(plain: Plain) -> None:
    headers = {"Impersonate-User": "system:anonymous", "Impersonate-Group": "system:unauthenticated"}
    assert plain.request("GET", "/version", headers=headers).status == 200
    answer = plain.request("GET", "/api/v1/secrets", headers=headers)
    assert (answer.status, answer.json()["reason"]) == (403, "Forbidden")


def test_a_deployment_gets_a_replica_set_and_pods_from_the_controller_manager(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", input=DEPLOYMENT)
    kubectl.run("wait", "--for=jsonpath={.status.replicas}=2", "deployment/web", "--timeout=20s")
    owners = {pod["metadata"]["ownerReferences"][0]["kind"] for pod in kubectl.json("get", "pods")["items"]}
    assert owners == {"ReplicaSet"}


def test_a_custom_resource_definition_becomes_established(kubectl: Kubectl, namespace: str) -> None:
    group = f"{namespace}.podium.dev"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }
    kubectl.run("create", "-f", "-", input=definition)
    kubectl.run("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=20s")
    kubectl.run("delete", f"crd/widgets.{group}", "--wait=false")


def test_kubectl_streams_what_it_watches(kubectl: Kubectl) -> None:
    with kubectl.stream("get", "configmaps", "--watch", "--output=name") as stream:
        stream.wait_for("configmap/kube-root-ca.crt")
        kubectl.run("create", "configmap", "seen", "--from-literal=key=value")
        assert stream.wait_for("seen") == "configmap/seen"


def test_the_client_go_program_finds_no_fault(control_plane: ControlPlane) -> None:
    report = informer.run(control_plane.kubeconfig)
    assert report.failures == [], report.log
    assert len(report.checks) > 10


def test_a_server_that_cannot_start_is_reported_with_the_end_of_its_log() -> None:
    plane = RealControlPlane(controller_manager=False, apiserver_flags=["--no-such-flag"])
    with pytest.raises(
        ProcessDied, match=r"kube-apiserver ended with code 1(?s:.*)unknown flag: --no-such-flag"
    ):
        plane.start()
    assert not plane.directory.exists()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_servers_do_not_outlive_the_process_that_started_them(ending: signal.Signals, tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    with owner:
        assert owner.stdout
        server = int(owner.stdout.readline())
        assert alive(server)
        owner.send_signal(ending)
    deadline = time.monotonic() + 10
    while alive(server):
        assert time.monotonic() < deadline, "the server is still running"
        time.sleep(0.01)


def alive(process: int) -> bool:
    """Whether the process runs; one that is dead but not yet collected by its parent does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
