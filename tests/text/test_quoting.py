from __future__ import annotations

import pytest

from podium.text.quoting import quote, quote_all


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('a "b" \\', r'"a \"b\" \\"'),
        ("tab\tnew\nline\x07\x1b\x7f", r'"tab\tnew\nline\a\x1b\x7f"'),
        ("<é世>", '"<é世>"'),
        ("\u200b\U000e0001", r'"\u200b\U000e0001"'),
    ],
)
def test_a_string_is_quoted_as_go_quotes_it(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_a_list_of_strings_is_printed_as_go_prints_it() -> None:
    assert quote_all(["a", "b c"]) == '["a" "b c"]'
    assert quote_all([]) == "[]"
