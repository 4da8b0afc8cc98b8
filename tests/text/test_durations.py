from __future__ import annotations

import pytest

from podium.text import durations

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1h30m", 5400 * SECOND),
        ("-1.5s", -3 * SECOND // 2),
        ("+.5ms", 500_000),
        ("1.s", SECOND),
        ("2us3µs4μs", 9_000),
        ("0.9999999999999999999999s", 999_999_999),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_a_duration_is_read(text: str, length: int) -> None:
    assert durations.nanoseconds(text) == length


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("soon", 'time: invalid duration "soon"'),
        ("1h-1m", 'time: unknown unit "h-" in duration "1h-1m"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1h5", 'time: missing unit in duration "1h5"'),
        ("3 days", 'time: unknown unit " days" in duration "3 days"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
        ("9" * 5000 + "s", 'time: invalid duration "' + "9" * 5000 + 's"'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text: str, said: str) -> None:
    with pytest.raises(durations.DurationError) as refusal:
        durations.nanoseconds(text)
    assert str(refusal.value) == said
