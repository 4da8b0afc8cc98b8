from __future__ import annotations

from podium.simulator import faults
from podium.simulator.objects import CRON_JOB, JOB, POD
from simulator.cluster import Cluster, condition, is_true, job


async def test_a_job_completes_when_enough_pods_succeeded(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", completions=3, parallelism=2))
    done = await cluster.until(JOB, "sum", lambda j: is_true(j, "Complete"))
    assert done["status"]["succeeded"] == 3
    assert is_true(done, "SuccessCriteriaMet")
    pods = await cluster.pods()
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}
    ended = pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")


async def test_a_job_whose_pods_fail_fails_when_the_backoff_limit_is_exceeded(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", annotations={faults.EXIT_CODE: "3"}, backoffLimit=2))
    failed = await cluster.until(JOB, "sum", lambda j: is_true(j, "Failed"))
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded"
    assert failed["status"]["failed"] == 3
    pods = await cluster.pods()
    codes = [p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in pods]
    assert codes == [3, 3, 3]


async def test_a_job_that_restarts_its_containers_counts_restarts(cluster: Cluster) -> None:
    given = job("sum", annotations={faults.EXIT_CODE: "1"}, restart="OnFailure", backoffLimit=3)
    await cluster.user.create(given)
    failed = await cluster.until(JOB, "sum", lambda j: is_true(j, "Failed"))
    assert condition(failed, "Failed")["reason"] == "BackoffLimitExceeded"
    await cluster.settled()
    assert await cluster.pods() == []


async def test_an_indexed_job_runs_every_index(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", completions=4, parallelism=4, completionMode="Indexed"))
    done = await cluster.until(JOB, "sum", lambda j: is_true(j, "Complete"))
    assert done["status"]["completedIndexes"] == "0-3"
    assert len(await cluster.pods("batch.kubernetes.io/job-completion-index=2")) == 1


async def test_a_job_past_its_deadline_fails_and_its_pods_go(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", annotations={faults.FINISH: "false"}, activeDeadlineSeconds=1))
    failed = await cluster.until(JOB, "sum", lambda j: is_true(j, "Failed"))
    assert condition(failed, "Failed")["reason"] == "DeadlineExceeded"
    await cluster.settled()
    assert await cluster.pods() == []


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", suspend=True))
    await cluster.until(JOB, "sum", lambda j: is_true(j, "Suspended"))
    await cluster.settled()
    assert await cluster.pods() == []
    await cluster.user.patch(JOB, "sum", {"spec": {"suspend": False}}, "default")
    await cluster.until(JOB, "sum", lambda j: is_true(j, "Complete"))


async def test_a_job_that_is_suspended_while_it_runs_stops_its_pods(cluster: Cluster) -> None:
    await cluster.user.create(job("sum", annotations={faults.FINISH: "false"}))
    await cluster.until(JOB, "sum", lambda j: j.get("status", {}).get("ready") == 1)
    await cluster.user.patch(JOB, "sum", {"spec": {"suspend": True}}, "default")
    await cluster.until(JOB, "sum", lambda j: is_true(j, "Suspended") and not j["status"].get("active"))
    await cluster.settled()
    assert await cluster.pods() == []


async def test_a_finished_job_is_deleted_with_its_pods_when_its_time_to_live_is_over(
    cluster: Cluster,
) -> None:
    await cluster.user.create(job("sum", ttlSecondsAfterFinished=0))
    await cluster.until_gone(JOB, "sum")
    await cluster.settled()
    assert await cluster.pods() == []


async def test_a_finished_job_gets_no_writes_from_a_new_simulator(cluster: Cluster) -> None:
    await cluster.user.create(job("good"))
    await cluster.user.create(job("bad", annotations={faults.EXIT_CODE: "1"}, backoffLimit=0))
    await cluster.until(JOB, "good", lambda j: is_true(j, "Complete"))
    await cluster.until(JOB, "bad", lambda j: is_true(j, "Failed"))
    await cluster.settled()
    await cluster.stop()
    cluster.writes.clear()
    await cluster.start()
    assert cluster.writes == []


async def test_a_cron_job_with_a_short_period_starts_jobs(cluster: Cluster) -> None:
    template = {"spec": job("x")["spec"]}
    spec = {"schedule": "@every 1s", "jobTemplate": template}
    metadata = {"name": "tick", "namespace": "default"}
    await cluster.user.create(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
    )
    await cluster.until(CRON_JOB, "tick", lambda c: c.get("status", {}).get("lastSuccessfulTime"))
    jobs = (await cluster.user.list(JOB, "default")).items
    assert jobs[0]["metadata"]["ownerReferences"][0]["name"] == "tick"


async def test_a_pod_of_its_own_finishes_when_it_is_asked_to(cluster: Cluster) -> None:
    metadata = {"name": "task", "namespace": "default", "annotations": {faults.FINISH: "true"}}
    spec = {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}
    await cluster.user.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    await cluster.until(POD, "task", lambda p: p["status"]["phase"] == "Succeeded")
