"""The real kubectl finds what it expects in what the simulator reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.kubectl import Kubectl
from podium.simulator import faults
from podium.simulator.objects import DEPLOYMENT
from simulator.cluster import Cluster, workload

pytestmark = pytest.mark.kubectl


class Terminal:
    """Runs kubectl beside the server, which lives in this event loop."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    async def __call__(self, *arguments: str) -> str:
        return (await asyncio.to_thread(self._kubectl.run, *arguments)).stdout


@pytest.fixture
def terminal(cluster: Cluster, tmp_path: Path) -> Terminal:
    home = tmp_path / "home"
    home.mkdir()
    return Terminal(Kubectl(tmp_path / "kubeconfig", namespace="default", home=home))


async def test_rollout_commands_behave(cluster: Cluster, terminal: Terminal) -> None:
    await cluster.user.create(workload("Deployment", "web", replicas=2))
    assert "successfully rolled out" in await terminal("rollout", "status", "deployment/web", "--timeout=20s")
    await terminal("set", "image", "deployment/web", "main=app:2")
    await terminal("annotate", "deployment/web", "kubernetes.io/change-cause=second image")
    assert "successfully rolled out" in await terminal("rollout", "status", "deployment/web", "--timeout=20s")
    await cluster.settled()
    history = await terminal("rollout", "history", "deployment/web")
    assert "second image" in history
    await terminal("rollout", "undo", "deployment/web")
    await terminal("rollout", "status", "deployment/web", "--timeout=20s")
    assert "app:1" in await terminal("rollout", "history", "deployment/web", "--revision=3")
    await terminal("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in await terminal("rollout", "status", "deployment/web", "--timeout=20s")
    await terminal("rollout", "pause", "deployment/web")
    await terminal("rollout", "resume", "deployment/web")
    await terminal("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")


async def test_undo_of_a_stateful_set_brings_its_old_template_back(
    cluster: Cluster, terminal: Terminal
) -> None:
    await cluster.user.create(workload("StatefulSet", "db", replicas=2, serviceName="db"))
    await terminal("rollout", "status", "statefulset/db", "--timeout=20s")
    await terminal("set", "image", "statefulset/db", "main=app:2")
    await terminal("rollout", "status", "statefulset/db", "--timeout=20s")
    await terminal("rollout", "undo", "statefulset/db")
    await terminal("rollout", "status", "statefulset/db", "--timeout=20s")
    await cluster.settled()
    assert [pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()] == ["app:1", "app:1"]


async def test_undo_of_a_daemon_set_brings_its_old_template_back(
    cluster: Cluster, terminal: Terminal
) -> None:
    await cluster.user.create(workload("DaemonSet", "agent"))
    await terminal("rollout", "status", "daemonset/agent", "--timeout=20s")
    await terminal("set", "image", "daemonset/agent", "main=app:2")
    await terminal("rollout", "status", "daemonset/agent", "--timeout=20s")
    await terminal("rollout", "undo", "daemonset/agent")
    await terminal("rollout", "status", "daemonset/agent", "--timeout=20s")
    await cluster.settled()
    assert [pod["spec"]["containers"][0]["image"] for pod in await cluster.pods()] == ["app:1"]


async def test_people_see_that_a_pod_crashes_and_that_the_node_is_simulated(
    cluster: Cluster, terminal: Terminal
) -> None:
    made = workload("Deployment", "web", replicas=1)
    made["spec"]["template"]["metadata"]["annotations"] = {faults.CRASH: "true"}
    await cluster.user.create(made)
    await cluster.until(DEPLOYMENT, "web", lambda d: d["status"].get("replicas") == 1)
    await cluster.settled()
    assert "CrashLoopBackOff" in await terminal("get", "pods")
    described = await terminal("describe", "pods")
    assert "Back-off restarting failed container" in described
    assert "Simulated by Podium" in await terminal("get", "nodes", "-o", "wide")
    await terminal("drain", "podium-simulated", "--ignore-daemonsets", "--force", "--timeout=20s")
    assert "SchedulingDisabled" in await terminal("get", "nodes")
