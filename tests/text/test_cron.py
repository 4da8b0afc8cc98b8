from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text import cron


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        ("* * * * *", "2026-03-01 12:00:30", "2026-03-01 12:01:00"),
        ("*/15 * * * *", "2026-03-01 12:00:00", "2026-03-01 12:15:00"),
        ("5/20 * * * *", "2026-03-01 12:30:00", "2026-03-01 12:45:00"),
        ("0 9-17 * * mon-fri", "2026-02-27 17:30:00", "2026-03-02 09:00:00"),
        ("30 4 1,15 * *", "2026-03-01 12:00:00", "2026-03-15 04:30:00"),
        ("0 0 13 * fri", "2026-03-07 00:00:00", "2026-03-13 00:00:00"),
        ("0 0 10 * fri", "2026-03-07 00:00:00", "2026-03-10 00:00:00"),
        ("0 0 29 feb *", "2026-03-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 0 ? * 0", "2026-03-02 00:00:00", "2026-03-08 00:00:00"),
        ("@hourly", "2026-03-01 12:00:00", "2026-03-01 13:00:00"),
        ("@weekly", "2026-03-02 00:00:00", "2026-03-08 00:00:00"),
        ("@every 1h30m", "2026-03-01 12:00:00", "2026-03-01 13:30:00"),
        ("TZ=Asia/Tokyo 0 9 * * *", "2026-03-01 12:00:00", "2026-03-02 00:00:00"),
    ],
)
def test_the_next_time(schedule: str, after: str, following: str) -> None:
    assert cron.parse(schedule).next_after(moment(after)) == moment(following)


def test_a_time_zone_moves_with_its_clock() -> None:
    schedule = cron.parse("0 12 * * *", "Europe/Berlin")
    assert schedule.next_after(moment("2026-03-28 00:00")) == moment("2026-03-28 11:00")
    assert schedule.next_after(moment("2026-03-29 00:00")) == moment("2026-03-29 10:00")


def test_a_day_that_never_comes_is_not_waited_for() -> None:
    assert cron.parse("0 0 30 2 *").next_after(moment("2026-01-01")) is None


NO_INT = 'failed to parse int from {0}: strconv.Atoi: parsing "{0}"'


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        (" @daily", "expected exactly 5 fields, found 1: [@daily]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", NO_INT.format("x") + ": invalid syntax"),
        ("*/" + "9" * 5000 + " * * * *", NO_INT.format("9" * 5000) + ": value out of range"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Mars/Phobos @daily", "provided bad location Mars/Phobos: unknown time zone Mars/Phobos"),
    ],
)
def test_nonsense_is_refused_in_the_words_of_the_go_library(schedule: str, said: str) -> None:
    with pytest.raises(cron.ScheduleError) as refusal:
        cron.parse(schedule)
    assert str(refusal.value) == said


def test_only_a_plain_star_leaves_the_choice_to_the_other_kind_of_day() -> None:
    sunday, monday = moment("2026-03-08"), moment("2026-03-09")
    assert cron.parse("0 0 */2 * mon").next_after(sunday) == monday  # the 9th, and a Monday
    assert cron.parse("0 0 */2 * mon").next_after(monday) == moment("2026-03-11")  # either will do
    assert cron.parse("0 0 */1 * mon").next_after(monday) == moment("2026-03-16")


def test_a_list_of_nothing_never_comes() -> None:
    assert cron.parse(", * * * *").next_after(moment("2026-01-01")) is None


@given(st.integers(1577836800, 1893456000), st.integers(0, 59), st.integers(0, 23))
def test_a_daily_time_comes_within_a_day_and_at_its_minute(second: int, minute: int, hour: int) -> None:
    start = datetime.fromtimestamp(second, UTC)
    following = cron.parse(f"{minute} {hour} * * *").next_after(start)
    assert following is not None
    assert (following.hour, following.minute, following.second) == (hour, minute, 0)
    assert timedelta(0) < following - start <= timedelta(days=1)
