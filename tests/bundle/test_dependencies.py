"""Dependencies of bundles, and the constraints in them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.bundle.dependencies import compile_constraint, problems
from podium.bundle.model import Typed

PROPERTIES = [{"type": "olm.test", "value": "1.2.3"}, {"type": "olm.package", "value": {"version": "v2"}}]

EVALUATED = [
    ("properties.exists(p, p.type == 'olm.test' && semver_compare(p.value, '1.2.3') == 0)", True),
    ("properties.exists(p, p.type == 'olm.test' && semver_compare(p.value, '1.10') < 0)", True),
    ("properties.all(p, p.type == 'olm.test')", False),
    ("properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1') > 0)", True),
]


@pytest.mark.parametrize(("rule", "expected"), EVALUATED)
def test_a_constraint_is_evaluated_on_properties(rule: str, expected: bool) -> None:
    program = compile_constraint(rule)
    assert program.run({"properties": PROPERTIES}, 1_000_000)[0] is expected


@pytest.mark.parametrize("rule", ["1", "x", "properties", "'a'.upperAscii() == 'A'", "1 +"])
def test_what_is_no_constraint_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_constraint(rule)


FAULTY: list[tuple[str, Any, int]] = [
    ("olm.gvk", {"group": "g", "version": "v1", "kind": "K"}, 0),
    ("olm.gvk", {}, 3),
    ("olm.gvk", {"group": 5}, 1),
    ("olm.gvk", "text", 1),
    ("olm.package", {"packageName": "p", "version": ">=1.0.0"}, 0),
    ("olm.package", {"PackageName": "p", "VERSION": ">=1.0.0"}, 0),
    ("olm.package", {"version": "x"}, 2),
    ("olm.package", {"packageName": "p"}, 1),
    ("olm.label", {"label": ""}, 1),
    ("olm.constraint", {}, 1),
    ("olm.constraint", {"cel": {}}, 1),
    ("olm.constraint", {"cel": "true"}, 1),
    ("olm.constraint", {"cel": {"rule": "true"}, "failureMessage": 5}, 1),
    ("olm.constraint", {"cel": {"rule": "true"}}, 0),
    ("olm.other", {}, 1),
    ("", None, 1),
]


@pytest.mark.parametrize(("kind", "value", "count"), FAULTY)
def test_everything_wrong_with_a_dependency_is_said(kind: str, value: Any, count: int) -> None:
    assert len(problems(Typed(kind, value))) == count
