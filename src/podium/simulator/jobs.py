"""Jobs: Pods that are to succeed so many times, until they did or failed too often.

Counts never go down, also when finished Pods are deleted by hand, and a finished Job stays finished. Unlike
the real controller this one puts no finalizer on Pods and waits no time between attempts. podFailurePolicy,
successPolicy and backoffLimitPerIndex are not simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podium.api.conditions import condition, is_true, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import (
    annotations_of,
    by_age,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    name,
    phase,
    pod_from,
    seconds_since,
    spec,
    status,
    without_empty,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Write, set_status

COMPONENT = "simulated-job-controller"
INDEX = "batch.kubernetes.io/job-completion-index"
_MANAGER = "kubernetes.io/job-controller"
_Outcome = tuple[str, str, str]  # Complete or Failed, reason, message


@dataclass(slots=True)
class _Count:
    """Where a Job stands."""

    active: list[Object]
    terminating: list[Object]
    succeeded: int
    failed: int
    indexes: set[int] = field(default_factory=set)


def decide(job: Object, pods: Sequence[Object], now: datetime) -> Plan:
    """The next step of a Job."""
    if is_deleting(job) or spec(job).get("managedBy", _MANAGER) != _MANAGER:
        return Plan()
    if is_finished_job(job):
        return _expire(job, now)
    count = _counted(job, pods)
    start = _start_time(job, now)
    outcome = _outcome(job, pods, count, start, now)
    if outcome is not None:
        return _end(job, count, outcome, start, now)
    writes, conditions = _suspension(job, count, now)
    if not spec(job).get("suspend"):
        writes += _adjust(job, count)
    plan = Plan(writes)
    if not writes:
        plan.add(*set_status(job, _status(job, count, start, conditions)))
    elif not status(job) or conditions != (status(job).get("conditions") or []):
        plan.writes[:0] = set_status(job, _status(job, count, start, conditions))
    return plan.look_again(_deadline(job, start, now))


def is_finished_job(job: Object) -> bool:
    """Whether the Job has ended, well or badly."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def _is_indexed(job: Object) -> bool:
    return bool(spec(job).get("completionMode") == "Indexed")


# --- counting -------------------------------------------------------------------------------------------


def _counted(job: Object, pods: Sequence[Object]) -> _Count:
    active = [pod for pod in pods if is_active(pod)]
    terminating = [pod for pod in pods if is_deleting(pod) and not is_finished(pod)]
    failed = sum(phase(pod) == "Failed" for pod in pods)
    succeeded = [pod for pod in pods if phase(pod) == "Succeeded"]
    known = status(job)
    count = _Count(active, terminating, 0, max(failed, known.get("failed") or 0))
    if _is_indexed(job):
        done = parse_indexes(known.get("completedIndexes") or "")
        done |= {index for index in map(index_of, succeeded) if index is not None}
        count.indexes = {index for index in done if index < (spec(job).get("completions") or 0)}
        count.succeeded = len(count.indexes)
    else:
        count.succeeded = max(len(succeeded), known.get("succeeded") or 0)
    return count


def index_of(pod: Object) -> int | None:
    """The completion index of a Pod of an Indexed Job."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else None


def parse_indexes(text: str) -> set[int]:
    """The numbers in `0,2-4`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def format_indexes(numbers: Iterable[int]) -> str:
    """`0,2-4` for {0, 2, 3, 4}: runs of three or more are shortened, as are pairs."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in runs)


# --- ends -----------------------------------------------------------------------------------------------


def _outcome(
    job: Object, pods: Sequence[Object], count: _Count, start: str | None, now: datetime
) -> _Outcome | None:
    """How the Job has ended, if it has."""
    target = condition(job, "FailureTarget")
    if target is not None:
        return "Failed", target["reason"], target["message"]
    limit = spec(job).get("backoffLimit", 6)
    if count.failed > limit or _restarted_too_often(job, count.active, limit):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = spec(job).get("activeDeadlineSeconds")
    runs = start is not None and not spec(job).get("suspend")
    if deadline is not None and runs and seconds_since(start, now) >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    wanted = spec(job).get("completions")
    if wanted is None:
        # A work queue is done when one worker says so and the others have ended.
        done = count.succeeded > 0 and not count.active
    else:
        done = count.succeeded >= wanted and (wanted > 0 or not count.active)
    if done:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _restarted_too_often(job: Object, active: Sequence[Object], limit: int) -> bool:
    template = (spec(job).get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        state.get("restartCount") or 0
        for pod in active
        for field in ("initContainerStatuses", "containerStatuses")
        for state in status(pod).get(field) or ()
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def _end(job: Object, count: _Count, outcome: _Outcome, start: str | None, now: datetime) -> Plan:
    """Stop what still runs, then say how it went: first that it is decided, then that it is over."""
    kind, reason, message = outcome
    decided = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    others = other_conditions(job, decided)
    interim = condition(job, decided) or _condition(decided, reason, message, now)
    remaining = count.active + count.terminating
    if remaining:
        writes = set_status(job, _status(job, count, start, [*others, interim]))
        for pod in count.active:
            gone = f"Deleted pod: {name(pod)}"
            writes += [Delete(pod), Note(job, "SuccessfulDelete", gone, COMPONENT)]
        return Plan(writes)
    final = _condition(kind, reason, message, now)
    new = _status(job, count, start, [*others, interim, final])
    new["startTime"] = new.get("startTime") or timestamp(now)
    if kind == "Complete":
        new["completionTime"] = timestamp(now)
        told = Note(job, "Completed", "Job completed", COMPONENT)
    else:
        told = Note(job, reason, message, COMPONENT, warning=True)
    return Plan([*set_status(job, new), told]).look_again(spec(job).get("ttlSecondsAfterFinished"))


def _expire(job: Object, now: datetime) -> Plan:
    keep = spec(job).get("ttlSecondsAfterFinished")
    if keep is None:
        return Plan()
    ended = condition(job, "Complete") or condition(job, "Failed") or {}
    wait = keep - seconds_since(ended.get("lastTransitionTime"), now)
    return Plan(again=wait) if wait > 0 else Plan([Delete(job, propagation="Foreground")])


# --- work -----------------------------------------------------------------------------------------------


def _adjust(job: Object, count: _Count) -> list[Write]:
    """Pods to make, or to stop because fewer are wanted at once."""
    parallel = int(spec(job).get("parallelism", 1))
    wanted = spec(job).get("completions")
    if wanted is None:
        goal = parallel if count.succeeded == 0 else min(parallel, len(count.active))
    else:
        goal = min(parallel, wanted - count.succeeded)
    # Whoever is being deleted still does its work: its place is free when it is gone.
    missing = goal - len(count.active) - len(count.terminating)
    if missing > 0:
        return _make(job, count, missing)
    surplus = len(count.active) - goal
    victims = sorted(by_age(count.active), key=is_ready)[: max(0, surplus)]
    return _stop(job, victims)


def _make(job: Object, count: _Count, missing: int) -> list[Write]:
    told = Note(job, "SuccessfulCreate", "Created pod: {}", COMPONENT)
    template = spec(job).get("template") or {}
    if not _is_indexed(job):
        pod = pod_from(template, job, generateName=f"{name(job)}-")
        return [Create(pod, told) for _ in range(missing)]
    taken = count.indexes | {i for i in map(index_of, count.active + count.terminating) if i is not None}
    free = (index for index in range(spec(job)["completions"]) if index not in taken)
    return [
        Create(_indexed(job, template, index), told) for _, index in zip(range(missing), free, strict=False)
    ]


def _indexed(job: Object, template: Object, index: int) -> Object:
    pod = pod_from(template, job, generateName=f"{name(job)}-{index}-")
    metadata = pod["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    given = pod["spec"] = {**pod["spec"], "hostname": f"{name(job)}-{index}"}
    for kind in ("containers", "initContainers"):
        if given.get(kind):
            given[kind] = [{**c, "env": [*(c.get("env") or ()), variable]} for c in given[kind]]
    return pod


def _stop(job: Object, pods: Sequence[Object]) -> list[Write]:
    writes: list[Write] = [Delete(pod) for pod in pods]
    writes += [Note(job, "SuccessfulDelete", f"Deleted pod: {name(pod)}", COMPONENT) for pod in pods]
    return writes


# --- status ---------------------------------------------------------------------------------------------


def _start_time(job: Object, now: datetime) -> str | None:
    known = status(job).get("startTime")
    if spec(job).get("suspend"):
        return known
    resumed = is_true(job, "Suspended")
    return timestamp(now) if known is None or resumed else str(known)


def _suspension(job: Object, count: _Count, now: datetime) -> tuple[list[Write], list[Object]]:
    conditions = list(status(job).get("conditions") or ())
    old = condition(job, "Suspended")
    wanted = bool(spec(job).get("suspend"))
    if wanted == is_true(job, "Suspended"):
        return (_stop(job, count.active) if wanted else []), conditions
    others = other_conditions(job, "Suspended")
    if wanted:
        new = _condition("Suspended", "JobSuspended", "Job suspended", now)
        told = Note(job, "Suspended", "Job suspended", COMPONENT)
    else:
        new = {**_condition("Suspended", "JobResumed", "Job resumed", now), "status": "False"}
        told = Note(job, "Resumed", "Job resumed", COMPONENT)
    assert old is None or old["status"] != new["status"]
    return [told, *(_stop(job, count.active) if wanted else [])], [*others, new]


def _status(job: Object, count: _Count, start: str | None, conditions: list[Object]) -> Object:
    return {
        **without_empty(
            {
                "conditions": conditions,
                "startTime": start if not spec(job).get("suspend") else None,
                "active": len(count.active),
                "succeeded": count.succeeded,
                "failed": count.failed,
                "completedIndexes": format_indexes(count.indexes),
            }
        ),
        "ready": sum(is_ready(pod) for pod in count.active),
        "terminating": len(count.terminating),
        "uncountedTerminatedPods": {},
    }


def _deadline(job: Object, start: str | None, now: datetime) -> float | None:
    limit = spec(job).get("activeDeadlineSeconds")
    if limit is None or start is None or spec(job).get("suspend"):
        return None
    return float(max(0.0, limit - seconds_since(start, now)))


def _condition(kind: str, reason: str, message: str, now: datetime) -> Object:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
        "reason": reason,
        "message": message,
    }
