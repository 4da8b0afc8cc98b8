"""Our strategies against what Kubernetes answered to the same objects: defaults, errors, warnings."""

from __future__ import annotations

import copy

import pytest

from apiserver.kinds.outcomes import Case, by_strategy, cases, coerced, differences, recorded
from podium.apiserver.kinds import covered_kinds, strategy_for


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_ends_as_kubernetes_ends_it(case: Case) -> None:
    assert list(differences(by_strategy(case), recorded()[case.name])) == []


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_defaults_applied_twice_change_nothing(case: Case) -> None:
    strategy, obj = strategy_for(case.group, case.kind), coerced(case, copy.deepcopy(case.object))
    strategy.default(obj)
    once = copy.deepcopy(obj)
    strategy.default(obj)
    assert obj == once


def test_every_case_has_its_own_name_and_a_recorded_answer() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names))
    assert set(names) == set(recorded())


def test_every_kind_with_rules_has_a_valid_and_an_invalid_case() -> None:
    answers: dict[tuple[str, str], set[int]] = {}
    for case in cases():
        answers.setdefault((case.group, case.kind), set()).add(recorded()[case.name].code // 100)
    lacking = {kind for kind in covered_kinds() if answers.get(kind, set()) != {2, 4}}
    assert lacking == {("apiextensions.k8s.io", "CustomResourceDefinition")}  # has tables of its own
