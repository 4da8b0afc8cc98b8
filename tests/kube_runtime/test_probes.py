from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.kinds import Object
from podium.kube.probes import _RULES, Phase, probe

READY, PROGRESSING, FAILED = Phase.READY, Phase.PROGRESSING, Phase.FAILED


def thing(
    api_version: str, kind: str, spec: Object, status: Object, generation: int = 2, **metadata: Any
) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "generation": generation, **metadata},
        "spec": spec,
        "status": status,
    }


def deployment(wanted: int | None = 3, /, *, observed: int = 2, **status: Any) -> Object:
    spec = {} if wanted is None else {"replicas": wanted}
    return thing("apps/v1", "Deployment", spec, {"observedGeneration": observed, **status})


def stateful(wanted: int = 3, strategy: Object | None = None, /, **status: Any) -> Object:
    spec = {"replicas": wanted, "updateStrategy": strategy or {"type": "RollingUpdate"}}
    return thing("apps/v1", "StatefulSet", spec, {"observedGeneration": 2, **status})


def daemon(strategy: str = "RollingUpdate", **status: Any) -> Object:
    spec = {"updateStrategy": {"type": strategy}}
    return thing("apps/v1", "DaemonSet", spec, {"observedGeneration": 2, **status})


def pod(phase: str, *conditions: Object, **status: Any) -> Object:
    return thing("v1", "Pod", {}, {"phase": phase, "conditions": list(conditions), **status})


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def custom(*conditions: Object, **status: Any) -> Object:
    return thing("x.dev/v1", "Thing", {}, {"conditions": list(conditions), **status})


def waiting(reason: str, message: str = "") -> list[Object]:
    return [{"name": "web", "state": {"waiting": {"reason": reason, "message": message}}}]


DONE: Object = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
SETTLED: Object = {"currentRevision": "r2", "updateRevision": "r2"}
MOVING: Object = {"currentRevision": "r1", "updateRevision": "r2"}

CASES: list[tuple[str, Object, Phase, str]] = [
    ("deployment done", deployment(**DONE), READY, "3 replicas available"),
    (
        "deployment of one by default",
        deployment(None, updatedReplicas=1, availableReplicas=1),
        READY,
        "1 replica ",
    ),
    ("deployment of none", deployment(0), READY, "0 replicas"),
    ("deployment not observed", deployment(observed=1, **DONE), PROGRESSING, "generation 1 of 2"),
    ("deployment never seen", thing("apps/v1", "Deployment", {}, {}), PROGRESSING, "has not seen it"),
    (
        "deployment updating",
        deployment(**{**DONE, "updatedReplicas": 1}),
        PROGRESSING,
        "1 of 3 replicas are updated",
    ),
    ("deployment with old pods", deployment(**{**DONE, "replicas": 4}), PROGRESSING, "1 old replica still"),
    ("deployment starting", deployment(**{**DONE, "availableReplicas": 2}), PROGRESSING, "2 of 3 updated"),
    (
        "deployment past its deadline",
        deployment(conditions=[condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out")]),
        FAILED,
        "progress deadline: timed out",
    ),
    (
        "deployment over quota",
        deployment(conditions=[condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")]),
        PROGRESSING,
        "exceeded quota",
    ),
    (
        "set done",
        stateful(3, readyReplicas=3, updatedReplicas=3, **SETTLED),
        READY,
        "3 replicas ready",
    ),
    ("set starting", stateful(readyReplicas=1), PROGRESSING, "1 of 3 replicas are ready"),
    (
        "set updating",
        stateful(readyReplicas=3, updatedReplicas=1, **MOVING),
        PROGRESSING,
        "1 of 3 replicas are up",
    ),
    (
        "set finishing",
        stateful(readyReplicas=3, updatedReplicas=3, **MOVING),
        PROGRESSING,
        "not been completed",
    ),
    (
        "set with a partition",
        stateful(
            3,
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            readyReplicas=3,
            updatedReplicas=1,
        ),
        READY,
        "",
    ),
    (
        "set updated by hand",
        stateful(3, {"type": "OnDelete"}, readyReplicas=3, **MOVING),
        READY,
        "their deletion",
    ),
    (
        "set shrinking",
        stateful(1, readyReplicas=2, replicas=2),
        PROGRESSING,
        "too",
    ),
    (
        "daemon set done",
        daemon(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2),
        READY,
        "2 nodes",
    ),
    ("daemon set without nodes", daemon(desiredNumberScheduled=0), READY, "0 nodes"),
    ("daemon set not counted", daemon(), PROGRESSING, "how many nodes"),
    (
        "daemon set updating",
        daemon(desiredNumberScheduled=2, updatedNumberScheduled=1),
        PROGRESSING,
        "1 of 2 nodes",
    ),
    (
        "daemon set starting",
        daemon(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=1),
        PROGRESSING,
        "1 of 2 nodes have an available",
    ),
    (
        "daemon set updated by hand",
        daemon("OnDelete", desiredNumberScheduled=1, numberAvailable=1),
        READY,
        "",
    ),
    (
        "replica set done",
        thing(
            "apps/v1",
            "ReplicaSet",
            {"replicas": 1},
            {"observedGeneration": 2, "replicas": 1, "availableReplicas": 1},
        ),
        READY,
        "",
    ),
    (
        "replica set starting",
        thing("apps/v1", "ReplicaSet", {"replicas": 2}, {"observedGeneration": 2}),
        PROGRESSING,
        "0 of 2",
    ),
    (
        "job done",
        thing("batch/v1", "Job", {}, {"conditions": [condition("Complete", "True")]}),
        READY,
        "completed",
    ),
    (
        "job failed",
        thing(
            "batch/v1",
            "Job",
            {},
            {"conditions": [condition("Failed", "True", "BackoffLimitExceeded", "3 tries")]},
        ),
        FAILED,
        "the job failed: 3 tries",
    ),
    (
        "job running",
        thing("batch/v1", "Job", {}, {"active": 1, "failed": 2}),
        PROGRESSING,
        "1 active, 2 failed",
    ),
    ("job suspended", thing("batch/v1", "Job", {"suspend": True}, {}), PROGRESSING, "suspended"),
    ("pod ready", pod("Running", condition("Ready", "True")), READY, "running and ready"),
    ("pod done", pod("Succeeded"), READY, "completed"),
    (
        "pod evicted",
        pod("Failed", reason="Evicted", message="the node was low on memory"),
        FAILED,
        "low on memory",
    ),
    (
        "pod crashed",
        pod("Failed", containerStatuses=[{"name": "web", "state": {"terminated": {"exitCode": 3}}}]),
        FAILED,
        "container web exited with code 3",
    ),
    (
        "pod without its image",
        pod("Pending", containerStatuses=waiting("ImagePullBackOff", "no such image")),
        PROGRESSING,
        "container web waits: ImagePullBackOff: no such image",
    ),
    (
        "pod creating",
        pod("Pending", containerStatuses=waiting("ContainerCreating")),
        PROGRESSING,
        "phase is Pending",
    ),
    (
        "pod without a node",
        pod("Pending", condition("PodScheduled", "False", "Unschedulable", "0/1 nodes")),
        PROGRESSING,
        "not scheduled: 0/1 nodes",
    ),
    ("pod new", thing("v1", "Pod", {}, {}), PROGRESSING, "not known yet"),
    ("claim bound", thing("v1", "PersistentVolumeClaim", {}, {"phase": "Bound"}), READY, "bound"),
    ("claim pending", thing("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}), PROGRESSING, "Pending"),
    ("claim lost", thing("v1", "PersistentVolumeClaim", {}, {"phase": "Lost"}), FAILED, "lost"),
    ("volume", thing("v1", "PersistentVolume", {}, {"phase": "Available"}), READY, ""),
    (
        "volume broken",
        thing("v1", "PersistentVolume", {}, {"phase": "Failed", "message": "io"}),
        FAILED,
        "io",
    ),
    (
        "definition established",
        thing(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": [condition("NamesAccepted", "True"), condition("Established", "True")]},
        ),
        READY,
        "established",
    ),
    (
        "definition with a taken name",
        thing(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {},
            {"conditions": [condition("NamesAccepted", "False", "ListKindConflict", "is already in use")]},
        ),
        FAILED,
        "already in use",
    ),
    (
        "definition new",
        thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}, {}),
        PROGRESSING,
        "not established",
    ),
    (
        "api service",
        thing(
            "apiregistration.k8s.io/v1", "APIService", {}, {"conditions": [condition("Available", "True")]}
        ),
        READY,
        "",
    ),
    (
        "api service down",
        thing(
            "apiregistration.k8s.io/v1",
            "APIService",
            {},
            {"conditions": [condition("Available", "False", "MissingEndpoints")]},
        ),
        PROGRESSING,
        "MissingEndpoints",
    ),
    ("api service new", thing("apiregistration.k8s.io/v1", "APIService", {}, {}), PROGRESSING, "not known"),
    ("service", thing("v1", "Service", {"type": "ClusterIP"}, {}), READY, ""),
    (
        "balancer",
        thing("v1", "Service", {"type": "LoadBalancer"}, {}),
        PROGRESSING,
        "no load balancer address",
    ),
    (
        "balancer with an address",
        thing("v1", "Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
        READY,
        "",
    ),
    ("namespace", thing("v1", "Namespace", {}, {"phase": "Active"}), READY, "active"),
    ("namespace going", thing("v1", "Namespace", {}, {"phase": "Terminating"}), PROGRESSING, "Terminating"),
    (
        "budget",
        thing("policy/v1", "PodDisruptionBudget", {}, {"currentHealthy": 1, "desiredHealthy": 2}),
        PROGRESSING,
        "1 of 2 Pods",
    ),
    ("config map", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, READY, ""),
    ("custom without conditions", custom(), READY, ""),
    ("custom ready", custom(condition("Ready", "True")), READY, "Ready is True"),
    (
        "custom not ready",
        custom(condition("Ready", "False", "Pulling", "wait for it")),
        PROGRESSING,
        "wait for it",
    ),
    ("custom unknown", custom(condition("Ready", "Unknown")), PROGRESSING, "Ready is Unknown"),
    ("custom available", custom(condition("Available", "True")), READY, ""),
    (
        "custom stalled",
        custom(condition("Stalled", "True", "", "bad chart"), condition("Ready", "True")),
        FAILED,
        "bad",
    ),
    (
        "custom busy",
        custom(condition("Reconciling", "True"), condition("Ready", "True")),
        PROGRESSING,
        "Reconciling",
    ),
    (
        "custom outdated",
        custom(condition("Ready", "True"), observedGeneration=1),
        PROGRESSING,
        "generation 1 of 2",
    ),
    ("custom with an odd status", thing("x.dev/v1", "Thing", {}, "fine"), READY, ""),  # type: ignore[arg-type]
    (
        "anything being deleted",
        thing("x.dev/v1", "Thing", {}, {}, deletionTimestamp="2030-01-01T00:00:00Z"),
        PROGRESSING,
        "being deleted",
    ),
]


@pytest.mark.parametrize(
    ("obj", "phase", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_kind_is_judged_by_its_own_rule(obj: Object, phase: Phase, words: str) -> None:
    verdict = probe(obj)
    assert (verdict.phase, verdict.ready) == (phase, phase is READY)
    assert words in verdict.message


@given(
    kind=st.sampled_from([*sorted(_RULES), ("x.dev", "Thing")]),
    status=st.dictionaries(
        st.sampled_from(["phase", "conditions", "replicas", "readyReplicas", "observedGeneration", "active"]),
        st.one_of(
            st.none(), st.integers(0, 3), st.text(max_size=3), st.just([]), st.just([{}]), st.just(["x"])
        ),
    ),
)
def test_a_probe_never_fails_on_a_half_written_status(kind: tuple[str, str], status: Object) -> None:
    group, name = kind
    api_version = f"{group}/v1" if group else "v1"
    verdict = probe(thing(api_version, name, {}, status))
    assert verdict.ready or verdict.message
