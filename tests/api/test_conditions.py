from __future__ import annotations

from typing import Any

import pytest

from podium.api.conditions import condition, is_true, new_condition, other_conditions, with_condition

OLD, NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
READY = new_condition("Ready", True, "Started", "", OLD)
STALLED = new_condition("Stalled", False, "Fine", "", OLD)


def test_a_condition_is_found_by_its_type() -> None:
    obj = {"status": {"conditions": [STALLED, READY]}}
    assert condition(obj, "Ready") is READY
    assert is_true(obj, "Ready")
    assert not is_true(obj, "Stalled")
    assert not is_true(obj, "Odd")
    assert other_conditions(obj, "Ready", "Odd") == [STALLED]


@pytest.mark.parametrize("status", [None, {}, "done", {"conditions": None}, {"conditions": ["Ready"]}])
def test_an_object_may_have_anything_for_a_status(status: Any) -> None:
    assert condition({"status": status}, "Ready") is None
    assert other_conditions({"status": status}, "Ready") == []


def test_a_condition_that_holds_on_keeps_its_time_and_place_but_not_its_words() -> None:
    told = new_condition("Ready", True, "Restarted", "again", NOW)
    changed = with_condition({"phase": "Up", "conditions": [READY, STALLED]}, told)
    assert changed == {"phase": "Up", "conditions": [{**told, "lastTransitionTime": OLD}, STALLED]}


def test_a_condition_that_changes_has_the_new_time() -> None:
    changed = with_condition({"conditions": [READY]}, new_condition("Ready", False, "Stopped", "", NOW))
    assert changed["conditions"] == [new_condition("Ready", False, "Stopped", "", NOW)]


def test_a_new_condition_comes_last_and_nothing_is_changed_in_place() -> None:
    status = {"conditions": [STALLED]}
    assert with_condition(status, READY) == {"conditions": [STALLED, READY]}
    assert status == {"conditions": [STALLED]}
    assert with_condition(None, READY) == {"conditions": [READY]}
