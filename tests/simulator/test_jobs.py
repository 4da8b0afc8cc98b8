from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.kinds import Object
from podium.simulator import jobs
from simulator.objects_for_tests import NOW, at, created, deleted, obj, pod, reasons, reported, stamp


def job(status: Object | None = None, **spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": spec.pop("restart", "Never")}}
    given = {"completions": 1, "parallelism": 1, "backoffLimit": 2, "template": template, **spec}
    started = {"startTime": stamp()} if status is None else status
    return obj("Job", "sum", "batch/v1", spec=given, status=started)


def pods(running: int = 0, succeeded: int = 0, failed: int = 0) -> list[Object]:
    return [
        *(pod(f"r{n}") for n in range(running)),
        *(pod(f"s{n}", phase="Succeeded", ready=False) for n in range(succeeded)),
        *(pod(f"f{n}", phase="Failed", ready=False) for n in range(failed)),
    ]


@pytest.mark.parametrize(
    ("spec", "present", "made"),
    [
        ({}, {}, 1),
        ({"completions": 5, "parallelism": 3}, {}, 3),
        ({"completions": 5, "parallelism": 3}, {"running": 1, "succeeded": 3}, 1),
        ({"completions": 5, "parallelism": 3}, {"running": 1, "failed": 2}, 2),
        ({"completions": None, "parallelism": 2}, {}, 2),
        ({"completions": None, "parallelism": 2}, {"running": 1, "succeeded": 1}, 0),
        ({"suspend": True}, {}, 0),
        ({"managedBy": "example.com/other"}, {}, 0),
    ],
)
def test_as_many_pods_run_as_are_useful(spec: Object, present: dict[str, int], made: int) -> None:
    assert len(created(jobs.decide(job(**spec), pods(**present), NOW))) == made


@pytest.mark.parametrize(
    ("spec", "present", "outcome"),
    [
        ({}, {"succeeded": 1}, ("Complete", "CompletionsReached")),
        ({"completions": 2}, {"succeeded": 1}, None),
        ({"completions": None, "parallelism": 2}, {"succeeded": 1}, ("Complete", "CompletionsReached")),
        ({"completions": 0}, {}, ("Complete", "CompletionsReached")),
        ({}, {"failed": 2}, None),
        ({}, {"failed": 3}, ("Failed", "BackoffLimitExceeded")),
        ({"backoffLimit": 0}, {"failed": 1}, ("Failed", "BackoffLimitExceeded")),
    ],
)
def test_how_a_job_ends(spec: Object, present: dict[str, int], outcome: tuple[str, str] | None) -> None:
    status = reported(jobs.decide(job(**spec), pods(**present), NOW))
    found = [(c["type"], c["reason"]) for c in status.get("conditions", ())]
    ends = [end for end in found if end[0] in ("Complete", "Failed")]
    assert ends == ([outcome] if outcome else [])


def test_a_failed_job_stops_what_runs_before_it_says_that_it_is_over() -> None:
    first = jobs.decide(job(), pods(running=1, failed=3), NOW)
    assert deleted(first) == ["r0"]
    assert [c["type"] for c in reported(first)["conditions"]] == ["FailureTarget"]
    second = jobs.decide(job(reported(first)), pods(failed=3), NOW)
    assert [c["type"] for c in reported(second)["conditions"]] == ["FailureTarget", "Failed"]
    assert reasons(second) == ["BackoffLimitExceeded"]


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"), [(3, 2, False), (3, 3, True), (0, 0, False), (0, 1, True)]
)
def test_restarts_count_where_containers_restart(limit: int, restarts: int, fails: bool) -> None:
    state = {"name": "main", "restartCount": restarts}
    running = pod("r", status={"containerStatuses": [state]})
    plan = jobs.decide(job(restart="OnFailure", backoffLimit=limit), [running], NOW)
    assert bool(deleted(plan)) is fails


def test_a_deadline_is_waited_for_and_kept() -> None:
    limited = job(activeDeadlineSeconds=10)
    assert jobs.decide(limited, pods(running=1), at(4)).again == 6
    assert deleted(jobs.decide(limited, pods(running=1), at(10))) == ["r0"]


def test_counts_do_not_go_down_when_pods_are_deleted() -> None:
    known = {"startTime": stamp(), "succeeded": 2, "failed": 1}
    status = reported(jobs.decide(job(known, completions=5), pods(running=1), NOW))
    assert (status["succeeded"], status["failed"]) == (2, 1)


def test_an_indexed_job_makes_the_indexes_that_are_missing() -> None:
    known = {"startTime": stamp(), "completedIndexes": "0,2", "succeeded": 2}
    running = pod("r", annotations={jobs.INDEX: "1"})
    indexed = job(known, completions=5, parallelism=5, completionMode="Indexed")
    made = created(jobs.decide(indexed, [running], NOW))
    assert [found["metadata"]["annotations"][jobs.INDEX] for found in made] == ["3", "4"]
    assert made[0]["spec"]["hostname"] == "sum-3"
    assert made[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_suspended_job_stops_its_pods_and_forgets_its_start() -> None:
    plan = jobs.decide(job(suspend=True), pods(running=1), NOW)
    assert deleted(plan) == ["r0"]
    assert "startTime" not in reported(plan)
    assert reasons(plan)[0] == "Suspended"


@pytest.mark.parametrize(("seconds", "gone"), [(4, []), (5, ["sum"])])
def test_a_finished_job_lives_as_long_as_it_was_told(seconds: float, gone: list[str]) -> None:
    ended = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": stamp()}]}
    plan = jobs.decide(job(ended, ttlSecondsAfterFinished=5), [], at(seconds))
    assert deleted(plan) == gone
    assert plan.again == (None if gone else 1)


@given(st.sets(st.integers(0, 200)))
def test_indexes_survive_being_written_and_read(numbers: set[int]) -> None:
    assert jobs.parse_indexes(jobs.format_indexes(numbers)) == numbers


def test_indexes_are_written_as_the_real_controller_writes_them() -> None:
    assert jobs.format_indexes({0, 2, 3, 5, 6, 7}) == "0,2,3,5-7"
