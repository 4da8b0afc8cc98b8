from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api import selectors
from podium.api.selectors import SelectorError

LABELS = {"app": "web", "tier": "front", "size": "5", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("missing!=x", True),
        ("missing=x", False),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("app in (db, web)", True),
        ("app notin (db,web)", False),
        ("missing notin (a)", True),
        ("size>4", True),
        ("size<5", False),
        ("app>4", False),
        ("empty=", True),
        ("app in (web),tier in (front,back),!gone", True),
        ("example.com/owner=me", False),
    ],
)
def test_label_selectors_match_as_kubernetes_matches_them(text: str, matches: bool) -> None:
    assert selectors.matches(selectors.parse(text), LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        "=a",
        "a=b c",
        "a in b",
        "a in (b",
        "a=b,",
        "a>x",
        "a!",
        "UPPER.com/a=b",
        "a=" + "v" * 64,
        "(",
        "a in (b c)",
    ],
)
def test_a_selector_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(SelectorError):
        selectors.parse(text)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}, False),
        ({"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}, True),
    ],
)
def test_label_selector_objects_match(selector: dict[str, object] | None, matches: bool) -> None:
    assert selectors.matches(selectors.from_object(selector), LABELS) is matches


names = st.from_regex(r"[a-z]([a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)


@given(st.dictionaries(names, names, max_size=4))
def test_a_selector_survives_being_written_and_read(labels: dict[str, str]) -> None:
    selector = selectors.from_labels(labels)
    assert set(selectors.parse(selectors.format_selector(selector))) == set(selector)
    assert selectors.matches(selector, labels)


def test_field_selectors_compare_texts_and_honour_escapes() -> None:
    fields = {"metadata.name": "a,b", "status.phase": "Running"}
    parsed = selectors.parse_fields("metadata.name=a\\,b,status.phase!=Pending")
    assert selectors.matches_fields(parsed, lambda path: fields.get(path, ""))
    assert not selectors.matches_fields(selectors.parse_fields("status.phase=Pending"), lambda _: "Running")
    with pytest.raises(SelectorError, match="can't understand 'name'"):
        selectors.parse_fields("name")
