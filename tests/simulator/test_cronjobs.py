from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import cronjobs
from simulator.objects_for_tests import at, created, deleted, obj, owned, reasons, reported, stamp


def cron_job(schedule: str = "* * * * *", status: Object | None = None, **spec: Any) -> Object:
    template: Object = {"spec": {"template": {}}}
    given = {"schedule": schedule, "jobTemplate": template, **spec}
    return obj("CronJob", "tick", "batch/v1", spec=given, status=status or {})


def job(name: str, owner: Object, ended: str = "", age: float = 0) -> Object:
    conditions = [{"type": ended, "status": "True"}] if ended else []
    made = obj("Job", name, "batch/v1", status={"conditions": conditions}, creationTimestamp=stamp(age))
    return owned(made, owner)


def test_a_job_is_made_when_its_minute_has_come_and_not_before() -> None:
    waiting = cronjobs.decide(cron_job(), [], at(59))
    assert created(waiting) == []
    assert waiting.again == pytest.approx(1.01)
    due = cronjobs.decide(cron_job(), [], at(60))
    (made,) = created(due)
    assert made["metadata"]["name"] == f"tick-{int(at(60).timestamp()) // 60}"
    assert made["metadata"]["annotations"][cronjobs.SCHEDULED_AT] == stamp(60)
    assert reported(due)["lastScheduleTime"] == stamp(60)


def test_a_time_that_was_served_is_not_served_again() -> None:
    served = cron_job(status={"lastScheduleTime": stamp(60)})
    assert created(cronjobs.decide(served, [], at(61))) == []


def test_of_many_missed_times_only_the_last_is_made_up_for() -> None:
    plan = cronjobs.decide(cron_job(), [], at(3600 * 24 + 30))
    (made,) = created(plan)
    assert made["metadata"]["annotations"][cronjobs.SCHEDULED_AT] == stamp(3600 * 24)
    assert "TooManyMissedTimes" in reasons(plan)


def test_a_time_that_is_too_late_is_left_out() -> None:
    hourly = cron_job("0 * * * *", startingDeadlineSeconds=60)
    assert len(created(cronjobs.decide(hourly, [], at(3630)))) == 1
    assert created(cronjobs.decide(hourly, [], at(3700))) == []


@pytest.mark.parametrize(
    ("policy", "made", "gone"),
    [("Allow", 1, []), ("Forbid", 0, []), ("Replace", 1, ["running"])],
)
def test_what_happens_while_an_earlier_job_runs(policy: str, made: int, gone: list[str]) -> None:
    owner = cron_job(concurrencyPolicy=policy)
    plan = cronjobs.decide(owner, [job("running", owner)], at(60))
    assert len(created(plan)) == made
    assert deleted(plan) == gone


def test_finished_jobs_beyond_the_limits_are_deleted_oldest_first() -> None:
    owner = cron_job(suspend=True, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    jobs = [
        job("new", owner, "Complete", 3),
        job("old", owner, "Complete", 1),
        job("bad", owner, "Failed", 2),
        job("running", owner),
    ]
    plan = cronjobs.decide(owner, jobs, at(10))
    assert deleted(plan) == ["old", "bad"]
    assert [reference["name"] for reference in reported(plan)["active"]] == ["running"]


def test_a_suspended_cron_job_starts_nothing_and_waits_for_nothing() -> None:
    plan = cronjobs.decide(cron_job(suspend=True), [], at(600))
    assert created(plan) == []
    assert plan.again is None
