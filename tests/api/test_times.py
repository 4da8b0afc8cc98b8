from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from podium.api.times import micro_timestamp, parse_timestamp, timestamp


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_timestamp_names_the_moment_it_was_made_from(moment: datetime) -> None:
    assert parse_timestamp(micro_timestamp(moment)) == moment
    assert parse_timestamp(timestamp(moment)) == moment.replace(microsecond=0)


def test_timestamps_are_in_utc_and_of_fixed_width() -> None:
    moment = datetime(987, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "0986-12-31T23:30:00Z"
    assert micro_timestamp(moment) == "0986-12-31T23:30:00.000000Z"


def test_a_timestamp_without_a_zone_is_in_utc() -> None:
    assert parse_timestamp("2026-01-01T00:00:00") == parse_timestamp("2026-01-01T02:00:00+02:00")
