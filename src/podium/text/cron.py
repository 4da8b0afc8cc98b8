"""Cron schedules: five fields with names, lists, ranges and steps, or `@daily` and the like.

Read as the library that Kubernetes uses reads them (robfig/cron), with its words for what is wrong. As in
cron, a day matches if either its day of month or its day of week does, unless one of them is a star.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from podium.text import durations
from podium.text.quoting import quote

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_STARS = ("*", "?")
_LARGEST = 2**63 - 1
# A schedule such as 30 February never comes; nobody waits longer than this to be sure.
_HORIZON = timedelta(days=5 * 366)


class ScheduleError(ValueError):
    """The schedule cannot be understood."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of five fields, or a period in seconds."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    any_weekday: bool = True
    every: float = 0.0
    zone: tzinfo = UTC

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after a moment; None if there is none in years."""
        if self.every:
            return moment.replace(microsecond=0) + timedelta(seconds=self.every)
        # Minutes are counted in UTC and read in the schedule's zone, so clock changes need no special care.
        minute = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = minute + _HORIZON
        while minute < end:
            local = minute.astimezone(self.zone)
            wrong_day = local.month not in self.months or not self._matches_day(local)
            if wrong_day or local.hour not in self.hours:
                minute += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                minute += timedelta(minutes=1)
            else:
                return minute
        return None

    def _matches_day(self, local: datetime) -> bool:
        of_month = local.day in self.days
        of_week = local.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return of_month and of_week
        return of_month or of_week


def parse(text: str, zone: str | None = None) -> Schedule:
    """The schedule that a text describes, in its own time zone or else in the given one."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        named, space, text = text.partition(" ")
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone, text = named.partition("=")[2], text.strip()
    chosen = _zone(zone) if zone else UTC
    if text.startswith("@every "):
        return Schedule(every=_period(text))
    if text.startswith("@") and text not in _MACROS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = _MACROS.get(text, text).split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, _ = _field(fields[0], 0, 59)
    hours, _ = _field(fields[1], 0, 23)
    days, any_day = _field(fields[2], 1, 31)
    months, _ = _field(fields[3], 1, 12, _MONTHS)
    weekdays, any_weekday = _field(fields[4], 0, 6, _DAYS)
    return Schedule(minutes, hours, days, months, weekdays, any_day, any_weekday, zone=chosen)


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name == "Local":
        return UTC  # servers keep their clocks in UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"provided bad location {name}: unknown time zone {name}") from None


def _period(text: str) -> float:
    try:
        length = durations.nanoseconds(text.removeprefix("@every "))
    except durations.DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None
    return float(max(1, length // 1_000_000_000))


def _field(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> tuple[frozenset[int], bool]:
    """The numbers that a list of ranges names, and whether one of the ranges is a plain star."""
    found: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        chosen = _range(part, low, high, names)
        found.update(chosen)
        star = star or (part[0] in _STARS and chosen.step == 1)
    return frozenset(found), star


def _range(text: str, low: int, high: int, names: tuple[str, ...]) -> range:
    span, *steps = text.split("/")
    bounds = span.split("-")
    if bounds[0] in _STARS:
        start, end = low, high
    else:
        start = end = _number(bounds[0], low, names)
        if len(bounds) == 2:
            end = _number(bounds[1], low, names)
        elif len(bounds) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _number(steps[0])
        if len(bounds) == 1:
            end = high
    if start < low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({low}): {text}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step)


def _number(text: str, low: int = 0, names: tuple[str, ...] = ()) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    what = f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}"
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise ScheduleError(f"{what}: invalid syntax")
    digits = text.lstrip("-+0") or "0"
    # Digits that cannot fit in 64 bits are not even read.
    if len(digits) > 19 or int(digits) > _LARGEST:
        raise ScheduleError(f"{what}: value out of range")
    if text[0] == "-" and digits != "0":
        raise ScheduleError(f"negative number (-{digits}) not allowed: {text}")
    return int(digits)
