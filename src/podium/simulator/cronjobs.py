"""CronJobs: a Job at every scheduled time, as far as the concurrency policy and the deadline allow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from podium.api.conditions import is_true
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.jobs import is_finished_job
from podium.simulator.objects import (
    born,
    by_age,
    is_deleting,
    moment,
    name,
    namespace,
    owner_reference,
    spec,
    status,
    uid,
    without_empty,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Write, set_status
from podium.text import cron

COMPONENT = "simulated-cronjob-controller"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# Of that many missed times only the last counts, and a person is told.
_MANY_MISSED = 100


def decide(cron_job: Object, jobs: Sequence[Object], now: datetime) -> Plan:
    """Start what is due, forget what is old, report what runs."""
    if is_deleting(cron_job):
        return Plan()
    plan = Plan(_clean_up(cron_job, jobs))
    running = [job for job in by_age(jobs) if not is_finished_job(job)]
    new = _status(cron_job, jobs, running)
    if spec(cron_job).get("suspend"):
        return plan.add(*set_status(cron_job, new))
    try:
        schedule = cron.parse(spec(cron_job)["schedule"], spec(cron_job).get("timeZone"))
    except (cron.ScheduleError, KeyError) as error:
        told = Note(
            cron_job, "UnparseableSchedule", f"unparseable schedule: {error}", COMPONENT, warning=True
        )
        return plan.add(*set_status(cron_job, new), *([] if status(cron_job) else [told]))
    due, following, missed = _due(cron_job, schedule, now)
    if following is not None:
        plan.look_again(max(0.0, (following - now).total_seconds()) + 0.01)
    if due is None:
        return plan.add(*set_status(cron_job, new))
    if missed > _MANY_MISSED:
        many = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        plan.add(Note(cron_job, "TooManyMissedTimes", many, COMPONENT, warning=True))
    return plan.join(_start(cron_job, running, new, due, now))


def _due(
    cron_job: Object, schedule: cron.Schedule, now: datetime
) -> tuple[datetime | None, datetime | None, int]:
    """The latest time that has come and was not served, the next one to come, and how many have passed."""
    last = moment(status(cron_job).get("lastScheduleTime")) or moment(born(cron_job)) or now
    deadline = spec(cron_job).get("startingDeadlineSeconds")
    if deadline is not None:
        last = max(last, now - timedelta(seconds=deadline))
    if schedule.every:
        passed = int((now - last).total_seconds() // schedule.every)
        due = last.replace(microsecond=0) + timedelta(seconds=passed * schedule.every) if passed else None
        return due, schedule.next_after(due or last), passed
    due, missed, following = None, 0, schedule.next_after(last)
    if following is not None and following <= now:
        # Far behind, only the last hour's or day's times are worth walking through.
        step = schedule.next_after(following)
        gap = (step - following) if step else timedelta(days=1)
        missed = int((now - following) / gap) + 1
        if missed > _MANY_MISSED:
            following = schedule.next_after(now - gap * 2) or following
    while following is not None and following <= now:
        due, following = following, schedule.next_after(following)
    return due, following, missed


def _start(cron_job: Object, running: Sequence[Object], new: Object, due: datetime, now: datetime) -> Plan:
    policy = spec(cron_job).get("concurrencyPolicy", "Allow")
    plan = Plan()
    if policy == "Forbid" and running:
        told = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return Plan([*set_status(cron_job, new), Note(cron_job, "JobAlreadyActive", told, COMPONENT)])
    if policy == "Replace":
        for job in running:
            plan.add(Delete(job), Note(cron_job, "SuccessfulDelete", f"Deleted job {name(job)}", COMPONENT))
    job = job_for(cron_job, due)
    if any(name(found) == name(job) for found in running):
        return plan.add(*set_status(cron_job, {**new, "lastScheduleTime": timestamp(due)}))
    plan.add(Create(job, Note(cron_job, "SuccessfulCreate", "Created job {}", COMPONENT)))
    return plan.add(*set_status(cron_job, {**new, "lastScheduleTime": timestamp(due)}))


def job_for(cron_job: Object, due: datetime) -> Object:
    """The Job of one scheduled time; its name is made from the time, so it cannot be made twice."""
    template = spec(cron_job).get("jobTemplate") or {}
    given = template.get("metadata") or {}
    seconds = int(due.timestamp())
    metadata: Object = {
        # Minutes tell the times of a schedule apart; only a period can be shorter than one.
        "name": f"{name(cron_job)}-{seconds if seconds % 60 else seconds // 60}",
        "namespace": namespace(cron_job),
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: timestamp(due)},
        "ownerReferences": [owner_reference(cron_job)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}}


def _clean_up(cron_job: Object, jobs: Sequence[Object]) -> list[Write]:
    writes: list[Write] = []
    for ended, field, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        found = [job for job in by_age(jobs) if is_true(job, ended) and not is_deleting(job)]
        limit = spec(cron_job).get(field, default)
        for job in found[: max(0, len(found) - limit)]:
            writes += [Delete(job), Note(cron_job, "SuccessfulDelete", f"Deleted job {name(job)}", COMPONENT)]
    return writes


def _status(cron_job: Object, jobs: Sequence[Object], running: Sequence[Object]) -> Object:
    times = [status(job).get("completionTime") or "" for job in jobs if is_true(job, "Complete")]
    known = status(cron_job)
    active = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name(job),
            "namespace": namespace(job),
            "uid": uid(job),
            "resourceVersion": _listed_version(known, job),
        }
        for job in running
    ]
    return without_empty(
        {
            "active": [without_empty(reference) for reference in active],
            "lastScheduleTime": known.get("lastScheduleTime"),
            "lastSuccessfulTime": max([*times, known.get("lastSuccessfulTime") or ""]),
        }
    )


def _listed_version(known: Object, job: Object) -> str:
    """The version under which a Job was first listed: a reference does not follow every change."""
    for reference in known.get("active") or ():
        if reference.get("uid") == uid(job):
            return str(reference.get("resourceVersion") or "")
    return str(job["metadata"].get("resourceVersion") or "")
