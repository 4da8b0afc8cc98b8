"""Asks the original Go libraries through the program in conformance/go/oracle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness import binaries


@dataclass(frozen=True)
class Answer:
    """What the original said: a value, or an error in its own words."""

    output: Any
    error: str


class Oracle:
    """One running oracle; questions go in batches, because a round trip costs more than an answer."""

    def __init__(self) -> None:
        self._binary = binaries.find("oracle")

    def ask_all(self, name: str, inputs: Iterable[Any]) -> list[Answer]:
        """The answers to the same question about each input, in order."""
        lines = "".join(json.dumps({"ask": name, "input": value}) + "\n" for value in inputs)
        done = subprocess.run([self._binary], input=lines.encode(), stdout=subprocess.PIPE, check=True)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        return [Answer(reply.get("output"), reply.get("error", "")) for reply in replies]

    def ask(self, name: str, value: Any) -> Answer:
        """The answer to one question."""
        return self.ask_all(name, [value])[0]
