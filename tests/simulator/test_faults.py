from __future__ import annotations

from pathlib import Path

import pytest

from podium.simulator import faults
from podium.simulator.faults import NONE, Faults

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulator.md"


@pytest.mark.parametrize(
    ("pod", "namespace", "expected"),
    [
        ({}, {}, NONE),
        ({"other": "true"}, {}, NONE),
        ({faults.CRASH: "true"}, {}, Faults(crash="*")),
        ({faults.CRASH: "false"}, {faults.CRASH: "true"}, NONE),
        ({}, {faults.CRASH: "main"}, Faults(crash="main")),
        ({faults.EXIT_CODE: "3"}, {}, Faults(exit_code=3)),
        ({faults.EXIT_CODE: "300"}, {}, NONE),
        (
            {faults.START_SECONDS: "1.5"},
            {faults.FINISH_SECONDS: "2"},
            Faults(start_seconds=1.5, finish_seconds=2),
        ),
        ({faults.START_SECONDS: "soon", faults.FINISH: "maybe"}, {}, NONE),
        ({faults.START_SECONDS: "-1", faults.RESTART_SECONDS: "nan"}, {}, NONE),
    ],
)
def test_what_annotations_mean(pod: dict[str, str], namespace: dict[str, str], expected: Faults) -> None:
    assert faults.read(pod, namespace) == expected


@pytest.mark.parametrize(
    ("glob", "image", "matches"), [("*", "a:1", True), ("a:*", "a:1", True), ("", "a:1", False)]
)
def test_globs(glob: str, image: str, matches: bool) -> None:
    assert Faults(unpullable=glob).is_unpullable(image) is matches


def test_every_annotation_is_documented() -> None:
    text = DOCUMENT.read_text()
    names = [value for name, value in vars(faults).items() if name.isupper() and isinstance(value, str)]
    assert len(names) == 10
    assert [name for name in names if f"| `{name}` |" not in text] == []
