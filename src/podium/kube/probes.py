"""Is it ready? One rule per kind, each a function of the object alone.

A rule answers Ready, Progressing (wait on) or Failed (waiting will not help unless somebody acts), with words
that say what is missing. Kinds without a rule of their own are judged by what most controllers report:
`status.observedGeneration`, and the conditions Ready, Available, Stalled and Reconciling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from podium.api.conditions import condition
from podium.api.kinds import Object


class Phase(Enum):
    """What a probe can find."""

    READY = "Ready"
    PROGRESSING = "Progressing"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe found, and why."""

    phase: Phase
    message: str = ""

    @property
    def ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.phase is Phase.READY


Probe = Callable[[Object], Verdict]


def probe(obj: Object) -> Verdict:
    """Judge an object by the rule for its kind."""
    if _metadata(obj).get("deletionTimestamp"):
        return _progressing("it is being deleted")
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    rule = _RULES.get((group, str(obj.get("kind") or "")), generic)
    return _not_observed(obj) or rule(obj)


def deployment(obj: Object) -> Verdict:
    """All replicas updated and available, none of an older template left."""
    spec, status = _spec(obj), _status(obj)
    progressing = condition(obj, "Progressing")
    if progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded":
        return _failed(
            f"the rollout exceeded its progress deadline: {progressing.get('message') or ''}".rstrip(": ")
        )
    failure = condition(obj, "ReplicaFailure")
    wanted = _count(spec, "replicas", 1)
    updated = _count(status, "updatedReplicas")
    if updated < wanted:
        reason = f" ({failure['message']})" if failure and _true(failure) and failure.get("message") else ""
        return _progressing(f"{updated} of {wanted} replicas are updated{reason}")
    old = _count(status, "replicas") - updated
    if old > 0:
        return _progressing(f"{_number(old, 'old replica')} still to be terminated")
    available = _count(status, "availableReplicas")
    if available < updated:
        return _progressing(f"{available} of {updated} updated replicas are available")
    return _ready(f"{_number(wanted, 'replica')} available")


def stateful_set(obj: Object) -> Verdict:
    """All replicas ready, and updated as far as the update strategy does that by itself."""
    spec, status = _spec(obj), _status(obj)
    wanted = _count(spec, "replicas", 1)
    ready = _count(status, "readyReplicas")
    if ready < wanted:
        return _progressing(f"{ready} of {wanted} replicas are ready")
    extra = _count(status, "replicas") - wanted
    if extra > 0:
        return _progressing(f"{_number(extra, 'replica')} too many, still to be terminated")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return _ready(f"{_number(wanted, 'replica')} ready; updates wait for their deletion")
    partition = _count(strategy.get("rollingUpdate") or {}, "partition")
    due = max(wanted - partition, 0)
    updated = _count(status, "updatedReplicas")
    if updated < due:
        return _progressing(f"{updated} of {due} replicas are updated")
    if not partition and status.get("updateRevision") != status.get("currentRevision"):
        return _progressing("the update has not been completed")
    return _ready(f"{_number(wanted, 'replica')} ready")


def daemon_set(obj: Object) -> Verdict:
    """A Pod of the newest template available on every node that should have one."""
    status = _status(obj)
    wanted = _count(status, "desiredNumberScheduled")
    if "desiredNumberScheduled" not in status:
        return _progressing("it has not been counted on how many nodes it should run")
    updated = _count(status, "updatedNumberScheduled")
    if (_spec(obj).get("updateStrategy") or {}).get("type") != "OnDelete" and updated < wanted:
        return _progressing(f"{updated} of {wanted} nodes have the updated Pod")
    available = _count(status, "numberAvailable")
    if available < wanted:
        return _progressing(f"{available} of {wanted} nodes have an available Pod")
    return _ready(f"available on {_number(wanted, 'node')}")


def replica_set(obj: Object) -> Verdict:
    """All replicas available."""
    status = _status(obj)
    wanted = _count(_spec(obj), "replicas", 1)
    available = _count(status, "availableReplicas")
    failure = condition(obj, "ReplicaFailure")
    if available < wanted:
        reason = f" ({failure['message']})" if failure and _true(failure) and failure.get("message") else ""
        return _progressing(f"{available} of {wanted} replicas are available{reason}")
    if _count(status, "replicas") > wanted:
        return _progressing("replicas too many, still to be terminated")
    return _ready(f"{_number(wanted, 'replica')} available")


def job(obj: Object) -> Verdict:
    """Run to completion."""
    failed, complete = condition(obj, "Failed"), condition(obj, "Complete")
    if failed is not None and _true(failed):
        return _failed(
            f"the job failed: {failed.get('message') or failed.get('reason') or 'no reason given'}"
        )
    if complete is not None and _true(complete):
        return _ready("completed")
    if _spec(obj).get("suspend"):
        return _progressing("the job is suspended")
    status = _status(obj)
    wanted = _count(_spec(obj), "completions", 1)
    return _progressing(
        f"{_count(status, 'succeeded')} of {wanted} completed, "
        f"{_count(status, 'active')} active, {_count(status, 'failed')} failed"
    )


def pod(obj: Object) -> Verdict:
    """Running and ready, or done."""
    status = _status(obj)
    match status.get("phase"):
        case "Succeeded":
            return _ready("it has completed")
        case "Failed":
            return _failed(
                f"it failed: {status.get('message') or status.get('reason') or _last_exit(status)}"
            )
    is_ready = condition(obj, "Ready")
    if is_ready is not None and _true(is_ready):
        return _ready("running and ready")
    waiting = _waiting(status)
    if waiting:
        return _progressing(waiting)
    scheduled = condition(obj, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        return _progressing(f"it is not scheduled: {scheduled.get('message') or scheduled.get('reason')}")
    if is_ready is not None and is_ready.get("message"):
        return _progressing(str(is_ready["message"]))
    return _progressing(f"its phase is {status.get('phase') or 'not known yet'}")


def persistent_volume_claim(obj: Object) -> Verdict:
    """Bound to a volume."""
    match _status(obj).get("phase"):
        case "Bound":
            return _ready("bound")
        case "Lost":
            return _failed("the volume it was bound to is lost")
        case phase:
            return _progressing(f"it is not bound but {phase or 'new'}")


def persistent_volume(obj: Object) -> Verdict:
    """Available for claims or bound to one."""
    match _status(obj).get("phase"):
        case "Available" | "Bound" | "Released" as phase:
            return _ready(str(phase).lower())
        case "Failed":
            return _failed(str(_status(obj).get("message") or "reclaiming it failed"))
        case phase:
            return _progressing(f"its phase is {phase or 'not known yet'}")


def custom_resource_definition(obj: Object) -> Verdict:
    """Established: its resources are served."""
    accepted = condition(obj, "NamesAccepted")
    if accepted is not None and accepted.get("status") == "False":
        return _failed(f"its names were not accepted: {accepted.get('message') or accepted.get('reason')}")
    established = condition(obj, "Established")
    if established is not None and _true(established):
        return _ready("established")
    return _progressing("it is not established")


def api_service(obj: Object) -> Verdict:
    """Available: its API answers."""
    return _by_condition(obj, "Available") or _progressing("it is not known whether it is available")


def service(obj: Object) -> Verdict:
    """Of type LoadBalancer: has an address. Others are always ready."""
    spec = _spec(obj)
    if spec.get("type") != "LoadBalancer":
        return _ready()
    if spec.get("externalIPs") or (_status(obj).get("loadBalancer") or {}).get("ingress"):
        return _ready("it has an address")
    return _progressing("it has no load balancer address")


def namespace(obj: Object) -> Verdict:
    """Active."""
    phase = _status(obj).get("phase")
    return _ready("active") if phase in ("Active", None) else _progressing(f"its phase is {phase}")


def pod_disruption_budget(obj: Object) -> Verdict:
    """As many healthy Pods as it asks for."""
    healthy, wanted = _count(_status(obj), "currentHealthy"), _count(_status(obj), "desiredHealthy")
    if healthy < wanted:
        return _progressing(f"{healthy} of {wanted} Pods are healthy")
    return _ready()


def always_ready(obj: Object) -> Verdict:
    """Kinds that need nobody's work to take effect."""
    return _ready()


def generic(obj: Object) -> Verdict:
    """What conditions say; an object that reports none is ready once it exists."""
    stalled = condition(obj, "Stalled")
    if stalled is not None and _true(stalled):
        return _failed(_words(stalled))
    reconciling = condition(obj, "Reconciling")
    if reconciling is not None and _true(reconciling):
        return _progressing(_words(reconciling))
    for kind in ("Ready", "Available"):
        verdict = _by_condition(obj, kind)
        if verdict is not None:
            return verdict
    return _ready()


_RULES: dict[tuple[str, str], Probe] = {
    ("apps", "Deployment"): deployment,
    ("apps", "StatefulSet"): stateful_set,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "ReplicaSet"): replica_set,
    ("", "ReplicationController"): replica_set,
    ("batch", "Job"): job,
    ("", "Pod"): pod,
    ("", "PersistentVolumeClaim"): persistent_volume_claim,
    ("", "PersistentVolume"): persistent_volume,
    ("", "Service"): service,
    ("", "Namespace"): namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): custom_resource_definition,
    ("apiregistration.k8s.io", "APIService"): api_service,
    ("policy", "PodDisruptionBudget"): pod_disruption_budget,
    # Its conditions tell whether metrics are to be had, not whether it works.
    ("autoscaling", "HorizontalPodAutoscaler"): always_ready,
    ("batch", "CronJob"): always_ready,
    ("networking.k8s.io", "Ingress"): always_ready,
}


def _not_observed(obj: Object) -> Verdict | None:
    """What the status says counts only if it was written after the spec was."""
    observed, generation = _status(obj).get("observedGeneration"), _metadata(obj).get("generation")
    kind = (str(obj.get("apiVersion") or "").rpartition("/")[0], obj.get("kind"))
    if observed is None and kind in _ALWAYS_OBSERVED and generation is not None:
        return _progressing("its controller has not seen it")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return _progressing(f"its controller has seen generation {observed} of {generation}")
    return None


# Kinds whose controller always writes observedGeneration, so that its absence means "not seen yet".
_ALWAYS_OBSERVED = {("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")}


def _by_condition(obj: Object, kind: str) -> Verdict | None:
    found = condition(obj, kind)
    if found is None:
        return None
    return _ready(_words(found)) if _true(found) else _progressing(_words(found))


def _words(entry: Mapping[str, Any]) -> str:
    said = entry.get("message") or entry.get("reason")
    return f"{entry.get('type')} is {entry.get('status')}" + (f": {said}" if said else "")


def _waiting(status: Object) -> str:
    """Why a container does not start, in the words of the kubelet."""
    for group in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(group) or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                said = f": {waiting['message']}" if waiting.get("message") else ""
                return f"container {container.get('name')} waits: {waiting['reason']}{said}"
    return ""


def _last_exit(status: Object) -> str:
    for container in status.get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            return f"container {container.get('name')} exited with code {ended['exitCode']}"
    return "no reason given"


def _metadata(obj: Object) -> Object:
    return obj.get("metadata") or {}


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def _status(obj: Object) -> Object:
    status = obj.get("status")
    return status if isinstance(status, dict) else {}


def _count(fields: Mapping[str, Any], name: str, default: int = 0) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else default


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _true(entry: Mapping[str, Any]) -> bool:
    return entry.get("status") == "True"


def _ready(message: str = "") -> Verdict:
    return Verdict(Phase.READY, message)


def _progressing(message: str) -> Verdict:
    return Verdict(Phase.PROGRESSING, message)


def _failed(message: str) -> Verdict:
    return Verdict(Phase.FAILED, message)
