"""Every case of the kinds' tables, and random distortions of them, on the real API server: the same answers.

`PODIUM_RECORD=1` writes the real answers down for the lane that has no real server.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from apiserver.kinds.outcomes import (
    Case,
    Outcome,
    by_server,
    by_strategy,
    cases,
    differences,
    record,
    recorded,
)
from harness.plain import Plain
from harness.real import RealControlPlane
from podium.schema.coerce import DecodeError

pytestmark = pytest.mark.real

# Admission that changes objects is not what is compared here.
ADMISSION = (
    "ServiceAccount,DefaultTolerationSeconds,Priority,StorageObjectInUseProtection,LimitRanger,DefaultStorageClass,"
    "RuntimeClass,TaintNodesByCondition,CertificateSubjectRestriction,CertificateSigning,CertificateApproval,"
    "ResourceQuota,DefaultIngressClass,PersistentVolumeClaimResize"
)
DISTORTIONS = 600
VALUES: list[Any] = ["", "x", "A b", "a.b", "UP", "10.0.0.0/8", "Odd", "None", "50%", "101%", "../x", "/abs"]
VALUES += [0, 1, -1, 80, 70000, True, False, {}, [], "metadata.name", "1Gi", "-1", "0.5", "a/b/c", "TCP"]


@pytest.fixture(scope="module")
def real() -> Iterator[Plain]:
    """A real API server without admission that changes objects."""
    flags = [f"--disable-admission-plugins={ADMISSION}", "--allow-privileged=true"]
    with RealControlPlane(controller_manager=False, apiserver_flags=flags) as plane:
        yield Plain(plane.kubeconfig)


def test_the_tables_agree_with_the_real_server(real: Plain) -> None:
    answers = {case.name: by_server(case, real) for case in cases()}
    if os.environ.get("PODIUM_RECORD") == "1":
        record(answers)
    assert {n: d for n, a in answers.items() if (d := list(differences(recorded()[n], a)))} == {}
    ours = {case.name: by_strategy(case) for case in cases()}
    assert {n: d for n, a in answers.items() if (d := list(differences(ours[n], a)))} == {}


def test_distorted_objects_get_the_same_answer(real: Plain) -> None:
    """Random values in random places; a fixed seed, so that a failure can be looked at again."""
    chance, plain_cases = (
        random.Random(1),
        [c for c in cases() if c.update is None and c.status is None],
    )
    compared, known, disagreed = 0, 0, []
    for number in range(DISTORTIONS):
        base = chance.choice(plain_cases)
        case = Case(f"{number} of {base.name}", _distorted(base.object, chance))
        theirs = by_server(case, real)
        if theirs.code not in (201, 422):
            continue  # not decoded, so not a strategy's business
        try:
            ours = by_strategy(case)
        except DecodeError:
            continue
        compared += 1
        if _is_known(case, theirs):
            known += 1
        elif found := list(differences(_empties_as_null(ours), _empties_as_null(theirs))):
            disagreed.append((case.name, case.object, found))
    assert disagreed == []
    assert compared > DISTORTIONS / 2
    assert known < compared / 20


def _is_known(case: Case, theirs: Outcome) -> bool:
    """Cases that docs/coverage-kinds.md says are not for strategies."""
    meta = case.object.get("metadata") or {}
    if not meta.get("name") and (meta.get("generateName") or case.kind == "LimitRange"):
        return True  # names are made up at random
    if case.kind == "Service":  # addresses are allocated, and refused, before validation
        return any(cause[0].startswith("spec.clusterIP") for cause in theirs.causes)
    # Expressions are not compiled.
    return case.kind.endswith("AdmissionPolicy") and any("expression" in cause[0] for cause in theirs.causes)


def _empties_as_null(outcome: Outcome) -> Outcome:
    """Empty lists and maps are gone after decoding, so errors about them show null instead."""
    causes = [
        [f, r, re.sub(r": (\{\}|\[\]): ", ": null: ", m).replace(":[]", ":null")]
        for f, r, m in outcome.causes
    ]
    return replace(outcome, causes=causes)


def _distorted(obj: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    result = copy.deepcopy(obj)
    for _ in range(chance.choice([1, 1, 2, 3])):
        places = list(_places(result, top=True))
        if not places:
            break
        holder, key = chance.choice(places)
        if chance.random() < 0.3:
            del holder[key]
        else:
            alike = [value for value in VALUES if type(value) is type(holder[key])]
            holder[key] = copy.deepcopy(chance.choice(alike or VALUES))
    return result


def _places(value: Any, *, top: bool = False) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        if not (top and key in ("apiVersion", "kind")):
            yield value, key
            yield from _places(value[key])
