"""Rows of the kinds that run Pods, and of those that scale and protect them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podium.api.conditions import is_true
from podium.api.kinds import Object
from podium.api.times import parse_timestamp
from podium.apiserver.tables.printer import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNSET,
    Printer,
    age,
    column,
    containers_and_images,
    flag,
    human_duration,
    labels,
    number,
    selector,
    selector_text,
    since,
)


def _parts(obj: Object) -> tuple[str, Object, Object]:
    return obj["metadata"].get("name", ""), obj.get("spec") or {}, obj.get("status") or {}


def _deployment_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    return [
        name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *containers_and_images(spec.get("template")),
        selector_text(spec.get("selector")),
    ]


def _replica_set_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [*_replicas(obj, now), selector(spec.get("selector"))]


def _replication_controller_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [*_replicas(obj, now), labels(spec.get("selector"))]


def _replicas(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    counts = [spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name, *counts, age(obj, now), *containers_and_images(spec.get("template"))]


def _stateful_set_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    return [name, ready, age(obj, now), *containers_and_images(spec.get("template"))]


def _daemon_set_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    template = spec.get("template") or {}
    return [
        name,
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers_and_images(template),
        selector(spec.get("selector")),
    ]


def _job_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    return [
        name,
        _job_status(obj),
        _completions(spec, status.get("succeeded", 0)),
        _job_duration(status, now),
        age(obj, now),
        *containers_and_images(spec.get("template")),
        selector(spec.get("selector")),
    ]


def _job_status(job: Object) -> str:
    for outcome in ("Complete", "Failed"):
        if is_true(job, outcome):
            return outcome
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for stage in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(job, stage):
            return stage
    return "Running"


def _completions(spec: Object, succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Object, now: datetime) -> str:
    if not status.get("startTime"):
        return ""
    end = parse_timestamp(status["completionTime"]) if status.get("completionTime") else now
    return human_duration((end - parse_timestamp(status["startTime"])).total_seconds())


def _cron_job_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    return [
        name,
        spec.get("schedule", ""),
        NONE if spec.get("timeZone") is None else spec["timeZone"],
        UNSET if spec.get("suspend") is None else str(spec["suspend"]),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_and_images(job.get("template")),
        selector(job.get("selector")),
    ]


def _controller_revision_cells(obj: Object, now: datetime) -> list[Any]:
    controller = NONE
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = f"{owner['kind']}.{group}" if group else owner["kind"]
            controller = f"{kind.lower()}/{owner['name']}"
            break
    return [obj["metadata"].get("name", ""), controller, obj.get("revision", 0), age(obj, now)]


def _disruption_budget_cells(obj: Object, now: datetime) -> list[Any]:
    name, spec, status = _parts(obj)
    limits = [
        str(spec[key]) if spec.get(key) is not None else "N/A" for key in ("minAvailable", "maxUnavailable")
    ]
    return [name, *limits, status.get("disruptionsAllowed", 0), age(obj, now)]


_DEPLOYMENT = Printer(
    (
        NAME,
        column("Ready", "Ready Pods, of the wanted ones"),
        column("Up-to-date", "Pods of the current template"),
        column("Available", "Pods that have been ready for long enough"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    _deployment_cells,
)

_REPLICAS_COLUMNS = (
    NAME,
    number("Desired", "Wanted Pods"),
    number("Current", "Pods that exist"),
    number("Ready", "Pods that are ready"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)

_STATEFUL_SET = Printer(
    (NAME, column("Ready", "Ready Pods, of the wanted ones"), AGE, CONTAINERS, IMAGES), _stateful_set_cells
)

_DAEMON_SET = Printer(
    (
        NAME,
        number("Desired", "Nodes that should run the Pod"),
        number("Current", "Nodes that should and do run the Pod"),
        number("Ready", "Nodes on which the Pod is ready"),
        number("Up-to-date", "Nodes with a Pod of the current template"),
        number("Available", "Nodes on which the Pod has been ready for long enough"),
        column("Node Selector", "Labels of the nodes that should run the Pod"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    _daemon_set_cells,
)

_JOB = Printer(
    (
        NAME,
        column("Status", "How far the job has come"),
        column("Completions", "Pods that succeeded, of how many"),
        column("Duration", "How long the job took, or has taken so far"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    _job_cells,
)

_CRON_JOB = Printer(
    (
        NAME,
        column("Schedule", "When jobs are started, in the form of cron"),
        column("Timezone", "Time zone of the schedule"),
        flag("Suspend", "Whether no further jobs are started"),
        number("Active", "Jobs that are running"),
        column("Last Schedule", "Time since a job was last started"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    _cron_job_cells,
)

_CONTROLLER_REVISION = Printer(
    (
        NAME,
        column("Controller", "Object that the revision belongs to"),
        column("Revision", "Number of the revision"),
        AGE,
    ),
    _controller_revision_cells,
)

_DISRUPTION_BUDGET = Printer(
    (
        NAME,
        column("Min Available", "How many Pods have to be available at least"),
        column("Max Unavailable", "How many Pods may be unavailable at most"),
        number("Allowed Disruptions", "How many Pods may be disrupted now"),
        AGE,
    ),
    _disruption_budget_cells,
)

PRINTERS = {
    ("apps", "deployments"): _DEPLOYMENT,
    ("apps", "replicasets"): Printer(_REPLICAS_COLUMNS, _replica_set_cells),
    ("", "replicationcontrollers"): Printer(_REPLICAS_COLUMNS, _replication_controller_cells),
    ("apps", "statefulsets"): _STATEFUL_SET,
    ("apps", "daemonsets"): _DAEMON_SET,
    ("apps", "controllerrevisions"): _CONTROLLER_REVISION,
    ("batch", "jobs"): _JOB,
    ("batch", "cronjobs"): _CRON_JOB,
    ("policy", "poddisruptionbudgets"): _DISRUPTION_BUDGET,
}
