from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import fieldset
from podium.schema.fieldset import (
    FieldSet,
    FieldSetError,
    difference,
    from_paths,
    intersection,
    key_element,
    leaves,
    parse,
    paths,
    recursive_difference,
    show_path,
    union,
    value_element,
)

scalars = st.text('ab<é "\\', max_size=3) | st.integers(-20, 200) | st.booleans()
elements = (
    st.sampled_from("abc").map(fieldset.field_element)
    | st.dictionaries(st.sampled_from(["name", "port"]), scalars, min_size=1).map(key_element)
    | scalars.map(value_element)
    | st.integers(0, 12).map("i:{}".format)
)
members = st.frozensets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=8)
sets = members.map(from_paths)


def shuffled(fields: Any, rng: random.Random) -> Any:
    items = list(fields.items())
    rng.shuffle(items)
    return {key: shuffled(node, rng) for key, node in items}


def text(fields: FieldSet) -> str:
    return json.dumps(fields)


@given(members)
def test_a_set_has_exactly_the_paths_it_was_made_of(made_of: frozenset[fieldset.Path]) -> None:
    fields = from_paths(made_of)
    assert sorted(paths(fields)) == sorted(made_of)
    assert all(fieldset.has(fields, path) for path in made_of)
    assert not fieldset.has(fields, ())


@given(sets, st.randoms(use_true_random=False))
def test_reading_what_was_written_gives_the_same_bytes_in_any_order(
    fields: FieldSet, rng: random.Random
) -> None:
    assert text(parse(json.loads(text(fields)))) == text(fields)
    assert text(parse(shuffled(fields, rng))) == text(fields)


@given(members, members)
def test_the_algebra_is_that_of_sets_of_paths(left: frozenset[Any], right: frozenset[Any]) -> None:
    a, b = from_paths(left), from_paths(right)
    before = text(a), text(b)
    assert text(union(a, b)) == text(from_paths(left | right))
    assert text(difference(a, b)) == text(from_paths(left - right))
    assert text(intersection(a, b)) == text(from_paths(left & right))
    assert (text(a), text(b)) == before


@given(sets, sets)
def test_union_and_difference_obey_their_laws(a: FieldSet, b: FieldSet) -> None:
    assert union(a, b) == union(b, a)
    assert union(a, a) == a == union(a, {})
    assert difference(a, a) == {}
    assert union(difference(a, b), intersection(a, b)) == a
    assert difference(union(a, b), b) == difference(a, b)


@given(members, members)
def test_the_recursive_difference_takes_all_below_a_member(
    left: frozenset[Any], right: frozenset[Any]
) -> None:
    rest = {path for path in left if not any(path[: len(other)] == other for other in right)}
    assert set(paths(recursive_difference(from_paths(left), from_paths(right)))) == rest


@given(members)
def test_leaves_have_nothing_below_them(made_of: frozenset[Any]) -> None:
    lowest = {path for path in made_of if not any(other[:-1][: len(path)] == path for other in made_of)}
    assert set(paths(leaves(from_paths(made_of)))) == lowest


@pytest.mark.parametrize(
    ("elements", "shown"),
    [
        (["f:spec", "f:replicas"], ".spec.replicas"),
        (["f:list", 'k:{"name":"a","port":80}', "f:x"], '.list[name="a",port=80].x'),
        (["f:set", 'v:"a"'], '.set[="a"]'),
        (["f:set", "v:3"], ".set[=3]"),
        (["f:set", "v:true"], ".set[=true]"),
        (["f:list", "i:2"], ".list[2]"),
        (["f:a.b/c"], ".a.b/c"),
    ],
)
def test_paths_are_shown_as_conflicts_name_them(elements: list[str], shown: str) -> None:
    assert show_path(tuple(elements)) == shown


@pytest.mark.parametrize(
    ("sent", "canonical"),
    [
        ({'k:{ "protocol":"udp","port":443}': {}}, {'k:{"port":443,"protocol":"udp"}': {}}),
        ({"v: 3": {}}, {"v:3": {}}),
        ({"v:3.0": {}}, {"v:3": {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"z:future": {}, "f:a": {}}, {"f:a": {}}),
        ({'v:"a<b"': {}}, {'v:"a\\u003cb"': {}}),
        ({"f:b": {}, "f:a": {}}, {"f:a": {}, "f:b": {}}),
        ({'k:{"port":80}': {}, 'k:{"port":443}': {}}, {'k:{"port":80}': {}, 'k:{"port":443}': {}}),
    ],
)
def test_sets_are_made_canonical(sent: FieldSet, canonical: FieldSet) -> None:
    assert text(parse(sent)) == text(canonical)


@pytest.mark.parametrize(
    "sent", [None, [], {"f": {}}, {"xx": {}}, {"v:{": {}}, {"k:[]": {}}, {"i:x": {}}, {"f:a": 1}]
)
def test_what_is_no_set_is_refused(sent: Any) -> None:
    with pytest.raises(FieldSetError):
        parse(sent)
