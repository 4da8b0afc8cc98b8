"""Small helpers that every area of the behaviour suite shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from harness.plain import Answer

T = TypeVar("T")


def eventually(probe: Callable[[], T | None], *, timeout: float = 10) -> T:
    """The first true value that the probe gives; fails if none comes in time."""
    deadline = time.monotonic() + timeout
    while not (found := probe()):
        assert time.monotonic() < deadline, f"not within {timeout} s; last was {found!r}"
        time.sleep(0.01)
    return found


def refusal(answer: Answer) -> tuple[int, str, str]:
    """Code, reason and message of a refused request."""
    status: dict[str, Any] = answer.json()
    assert status["kind"] == "Status", answer.body.decode()
    assert status["code"] == answer.status
    return answer.status, status.get("reason", ""), status["message"]


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    """Field, reason and message of each cause of a refused request, sorted."""
    found = answer.json()["details"].get("causes") or []
    return sorted((c.get("field", ""), c.get("reason", ""), c.get("message", "")) for c in found)
