"""What the tables of all kinds share: a kind's `Printer`, column makers, ages, labels and selectors.

Timestamps in objects are RFC 3339 texts; an age is a text again, in the units in which kubectl's users
think. `now` is passed in, so that all rows of one answer agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podium.api.kinds import Object
from podium.api.times import parse_timestamp

Cells = Callable[[Object, datetime], list[Any]]

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of one kind, and the cells of one of its objects."""

    columns: tuple[Object, ...]
    cells: Cells


def column(
    name: str, description: str, type_: str = "string", *, format_: str = "", priority: int = 0
) -> Object:
    """One column definition; priority 1 means that only `-o wide` shows it."""
    return {
        "name": name,
        "type": type_,
        "format": format_,
        "description": description,
        "priority": priority,
    }


def number(name: str, description: str) -> Object:
    """A column of integers."""
    return column(name, description, "integer")


def flag(name: str, description: str) -> Object:
    """A column of booleans."""
    return column(name, description, "boolean")


def wide(name: str, description: str) -> Object:
    """A column that only `-o wide` shows."""
    return column(name, description, priority=1)


NAME = column("Name", "Name of the object, unique among its kind in its namespace", format_="name")
AGE = column("Age", "Time since the object was created")
CONTAINERS = wide("Containers", "Names of the containers in the template")
IMAGES = wide("Images", "Images of the containers in the template")
SELECTOR = wide("Selector", "Label selector of the Pods that belong to the object")

# --- ages -----------------------------------------------------------------------------------------------


def human_duration(seconds: float) -> str:
    """A duration in two or three significant figures: 45s, 3m20s, 5h10m, 2d4h, 3y45d."""
    whole = int(seconds)
    if whole < 120:
        # A second is forgiven, for clocks that differ.
        return f"{max(whole, 0)}s" if whole >= -1 else "<invalid>"
    minutes = whole // 60
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(timestamp: str | None, now: datetime) -> str:
    """The age of an RFC 3339 timestamp; none is `<unknown>`."""
    if not timestamp:
        return UNKNOWN
    return human_duration((now - parse_timestamp(timestamp)).total_seconds())


def age(obj: Object, now: datetime) -> str:
    """The time since an object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)


# --- texts ----------------------------------------------------------------------------------------------


def labels(given: Mapping[str, str] | None) -> str:
    """Labels as `a=b,c=d`, in order of their keys."""
    return ",".join([f"{key}={given[key]}" for key in sorted(given)]) if given else NONE


_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Object | None) -> str:
    """A LabelSelector object in query form; unlike a parsed one it keeps `in (x)` apart from `=x`."""
    selector = selector or {}
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        if operator in _OPERATORS:
            values = ",".join(sorted(expression.get("values") or ()))
            terms.append((key, f"{key} {_OPERATORS[operator]} ({values})"))
        else:
            terms.append((key, key if operator == "Exists" else f"!{key}"))
    return ",".join([text for _, text in sorted(terms, key=lambda term: term[0])])


def selector(given: Object | None) -> str:
    """A LabelSelector object in query form, or `<none>` where it selects by nothing."""
    return selector_text(given) or NONE


def containers_and_images(template: Object | None) -> tuple[str, str]:
    """The container names and the images of a pod template, each as one text."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    names = ",".join([container["name"] for container in containers])
    return names, ",".join([container.get("image", "") for container in containers])


def listed(texts: Iterable[str], most: int = 3) -> str:
    """The first few texts and how many more there are."""
    texts = list(texts)
    if len(texts) > most:
        return f"{','.join(texts[:most])} + {len(texts) - most} more..."
    return ",".join(texts)
