"""One-line changes to an object, in the words of yq: `.spec.replicas = 2`.

A path is made of `.key`, `["any key"]`, `[0]`, `[-1]`, `[name=manager]` (the elements whose field has that
value) and `[]` (every element). `=` sets, `+=` appends to a list or text, `del(path)` removes. What is on the
way and missing is made, except list elements. Values are written as YAML: `"text"`, `3`, `true`, `{a: b}`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podium.api.findings import Place
from podium.api.kinds import Object
from podium.bundle.overlay.errors import OverlayError
from podium.text import yaml

_STEP = re.compile(
    r"""\.(?P<key>[A-Za-z0-9_$-]+)
      | \.?\[(?P<quoted>"(?:[^"\\]|\\.)*")\]
      | \.?\[(?P<index>-?[0-9]+)\]
      | \.?\[(?P<field>[A-Za-z0-9_-]+)=(?P<value>[^\]]*)\]
      | \.?(?P<every>\[\])""",
    re.VERBOSE,
)
_DELETE = re.compile(r"\s*del\((?P<path>.*)\)\s*")


@dataclass(frozen=True, slots=True)
class Every:
    """Every element of a list."""


@dataclass(frozen=True, slots=True)
class Where:
    """The elements of a list whose field has this value."""

    field: str
    value: str


Step = str | int | Every | Where


@dataclass(frozen=True, slots=True)
class Change:
    """A parsed expression."""

    path: tuple[Step, ...]
    operation: str  # "=", "+=" or "del"
    value: Any = None


def parse(expression: str, place: Place = Place()) -> Change:
    """The change that an expression means; OverlayError says what is wrong with it."""
    deletion = _DELETE.fullmatch(expression)
    if deletion:
        return Change(_whole_path(deletion["path"].strip(), expression, place), "del")
    text = expression.strip()
    path, end = _path(text)
    rest = text[end:].lstrip()
    operation = next((each for each in ("+=", "=") if rest.startswith(each)), "")
    if not path or not operation or rest.startswith("=="):
        forms = "`.path[0].field = value`, `.path += value` or `del(.path)`"
        raise OverlayError(f"cannot read {expression!r}: write it as {forms}", place)
    try:
        value = yaml.load(rest.removeprefix(operation).strip())
    except yaml.YAMLError as error:
        raise OverlayError(f"the value in {expression!r} is no YAML: {error}", place) from None
    return Change(path, operation, value)


def change(obj: Object, expression: str, place: Place = Place(), subject: str = "the object") -> Object:
    """A copy of the object after the change."""
    wanted = parse(expression, place)
    result = copy.deepcopy(obj)
    *parents, last = wanted.path
    found = False
    for holder in _holders(result, tuple(parents), last, create=wanted.operation == "="):
        # From the back, so that deleting an element does not move those that are still to go.
        for key in reversed(_keys(holder, last, existing=wanted.operation == "del")):
            found = True
            _do(holder, key, wanted, expression, place)
    if not found:
        raise OverlayError(f"{expression!r} finds nothing to change in {subject}", place)
    return result


def _whole_path(text: str, expression: str, place: Place) -> tuple[Step, ...]:
    path, end = _path(text)
    if not path or end != len(text):
        raise OverlayError(f"cannot read the path in {expression!r} from {text[end:]!r} on", place)
    return path


def _path(text: str) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    end = 0
    while match := _STEP.match(text, end):
        end = match.end()
        if match["key"] is not None:
            steps.append(match["key"])
        elif match["quoted"] is not None:
            steps.append(json.loads(match["quoted"]))
        elif match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["field"] is not None:
            steps.append(Where(match["field"], match["value"].strip("\"'")))
        else:
            steps.append(Every())
    return tuple(steps), end


def _holders(value: Any, path: tuple[Step, ...], last: Step, *, create: bool) -> Iterator[Any]:
    """The containers that the last step of a path is taken in."""
    if not path:
        yield value
        return
    following = path[1] if len(path) > 1 else last
    if create and isinstance(path[0], str) and isinstance(value, dict) and value.get(path[0]) is None:
        # Only mappings can be made up: nobody could say what a missing list element holds.
        if not isinstance(following, str):
            return
        value[path[0]] = {}
    for key in _keys(value, path[0], existing=True):
        yield from _holders(value[key], path[1:], last, create=create)


def _keys(holder: Any, step: Step, *, existing: bool = False) -> list[Any]:
    """The keys or indices of a container that a step means."""
    if isinstance(step, str):
        return [step] if isinstance(holder, dict) and (not existing or step in holder) else []
    if not isinstance(holder, list):
        return []
    if isinstance(step, int):
        return [step] if -len(holder) <= step < len(holder) else []
    if isinstance(step, Every):
        return list(range(len(holder)))
    return [
        index
        for index, item in enumerate(holder)
        if isinstance(item, dict) and step.field in item and _text(item[step.field]) == step.value
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _do(holder: Any, key: Any, wanted: Change, expression: str, place: Place) -> None:
    if wanted.operation == "=":
        holder[key] = copy.deepcopy(wanted.value)
        return
    if wanted.operation == "del":
        del holder[key]
        return
    old = holder.get(key, []) if isinstance(holder, dict) else holder[key]
    if isinstance(old, list):
        holder[key] = [*old, *(wanted.value if isinstance(wanted.value, list) else [wanted.value])]
    elif isinstance(old, str) and isinstance(wanted.value, str):
        holder[key] = old + wanted.value
    else:
        raise OverlayError(f"{expression!r}: only lists and texts can be extended", place)
