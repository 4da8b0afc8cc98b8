from __future__ import annotations

import pytest

from podium.api.kinds import Object
from podium.simulator import budgets
from simulator.objects_for_tests import NOW, at, obj, pod, reported


@pytest.mark.parametrize(
    ("spec", "healthy", "unhealthy", "scale", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 3, 0, 3, 3, 2, 1),
        ({"minAvailable": 2}, 2, 1, 3, 3, 2, 0),
        ({"minAvailable": "50%"}, 3, 0, 5, 5, 3, 0),
        ({"maxUnavailable": 1}, 3, 0, 3, 3, 2, 1),
        ({"maxUnavailable": 1}, 2, 1, 3, 3, 2, 0),
        ({"maxUnavailable": "34%"}, 3, 0, 3, 3, 1, 2),
        ({"minAvailable": 0}, 0, 0, 0, 0, 0, 0),
    ],
)
def test_how_many_may_be_disrupted(
    spec: Object, healthy: int, unhealthy: int, scale: int, expected: int, desired: int, allowed: int
) -> None:
    pods = [pod(f"h{n}") for n in range(healthy)] + [pod(f"u{n}", ready=False) for n in range(unhealthy)]
    budget = obj("PodDisruptionBudget", "web", "policy/v1", spec=spec)
    status = reported(budgets.decide(budget, pods, scale, NOW))
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (
        expected,
        desired,
        allowed,
    )
    assert status["conditions"][0]["status"] == ("True" if allowed else "False")
    assert not budgets.decide({**budget, "status": status}, pods, scale, at(60))
