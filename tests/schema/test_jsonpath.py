"""Paths as Kubernetes reads them: what they find, what they refuse, and that they stop somewhere."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import jsonpath
from podium.schema.jsonpath import JSONPathError

DATA: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "tier-1": "front"}},
    "spec": {
        "replicas": 3,
        "ports": [80, 81, 82, 83],
        "containers": [
            {"name": "a", "image": "x:1", "size": 1, "on": True},
            {"name": "b", "image": "y:2", "size": 2, "args": ["-v"]},
            {"name": "it's (c)", "size": 3.5},
        ],
        "nothing": None,
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["web"]),
        ("metadata.name", None),
        ("$.metadata.name", ["web"]),
        ("@.metadata['name']", ["web"]),
        ("", [DATA]),
        ("@", [DATA]),
        (".metadata.labels.tier-1", ["front"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["web"]),
        (".metadata.labels['app.kubernetes.io/name']", []),
        (".metadata.labels.*", ["web", "front"]),
        (".metadata['name','labels'].tier-1", ["front"]),
        (".spec.nothing", [None]),
        (".spec.nothing.deeper", []),
        (".spec.missing.deeper[3].x", []),
        (".spec.replicas.deeper", []),
        (".spec.ports[0]", [80]),
        (".spec.ports[-1]", [83]),
        (".spec.ports[1:3]", [81, 82]),
        (".spec.ports[1:]", [81, 82, 83]),
        (".spec.ports[:-1]", [80, 81, 82]),
        (".spec.ports[::2]", [80, 82]),
        (".spec.ports[*]", [80, 81, 82, 83]),
        (".spec.ports[0,2]", [80, 82]),
        (".spec.ports[2:2]", []),
        (".spec.containers[*].name", ["a", "b", "it's (c)"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Synced')].status", ["False"]),
        ('.status.conditions[?( @.type == "Synced" )].status', ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
        ('.status.conditions[?(@.type=="Lost")].status', []),
        ('.spec.containers[?(@.name=="it\'s (c)")].size', [3.5]),
        (r".spec.containers[?(@.name=='it\'s (c)')].size", [3.5]),
        (r'.spec.containers[?(@.name=="\x61")].size', [1]),
        (".spec.containers[?(@.args)].name", ["b"]),
        (".spec.containers[?(@.on==true)].name", ["a"]),
        (".spec.containers[?(@.args[0])].name", ["b"]),
        (".spec.ports[?(@>=82)]", [82, 83]),
        (".spec.ports[?(@<81)]", [80]),
        (".spec.containers[0:2][?(@.size>1)]", None),
        ("..image", ["x:1", "y:2"]),
        (".spec..name", ["a", "b", "it's (c)"]),
    ],
)
def test_a_path_finds_what_it_says(path: str, found: list[Any] | None) -> None:
    if found is None:
        with pytest.raises(JSONPathError):
            jsonpath.parse(path).find(DATA)
    else:
        assert jsonpath.parse(path).find(DATA) == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ('.a["b"]', 'invalid array index "b"'),
        (".a[b]", "invalid array index b"),
        (".a[", "unterminated array"),
        (".a[?(@.b", "unterminated filter"),
        (".a[?(@.b)", "unclosed array expect ]"),
        (".a[?(@.b=='c)]", "unterminated filter"),
        ("....a", "invalid multiple recursive descent"),
        (".a 'b", "unterminated quoted string"),
        (".a[?(@.b=='\\q')]", "unquote string '\\q' error invalid syntax"),
        (".a[?(@.b==1.2.3)]", "cannot parse number 1.2.3"),
        (".a %", "unrecognized character in action: U+0025 '%'"),
        (".a}", "unrecognized character in action: U+007D '}'"),
        (".a\n", "unclosed action"),
        ("." + "a" * jsonpath.MAX_TEXT, f"path is longer than {jsonpath.MAX_TEXT} characters"),
    ],
)
def test_what_is_no_path_is_refused_when_it_is_read(path: str, message: str) -> None:
    with pytest.raises(JSONPathError) as refused:
        jsonpath.parse(path)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".spec.ports[4]", "array index out of bounds: index 4, length 4"),
        (".spec.ports[-5]", "array index out of bounds: index -1, length 4"),
        (".spec.ports[0:9]", "array index out of bounds: index 8, length 4"),
        (".spec.ports[2:1]", "starting index 2 is greater than ending index 1"),
        (".spec.ports[::0]", "step must be > 0"),
        (".metadata[0]", "dict is not array or slice"),
        (".metadata[?(@.a)]", "dict is not array or slice and cannot be filtered"),
        ('.spec.ports[?(@=="80")]', "incompatible types for comparison"),
        (".spec.ports[?(@==80.0)]", "incompatible types for comparison"),
        (".spec.containers[?(@.on>false)]", "invalid type for comparison"),
        (".spec.containers[?(@.args==1)]", "invalid type for comparison"),
        (".spec.containers[?(@.*==1)]", "can only compare one element at a time"),
        (".spec.ports[?(@=80)]", "unrecognized filter operator ="),
        (".spec range", "unrecognized identifier range"),
    ],
)
def test_a_path_that_does_not_fit_the_data_says_why(path: str, message: str) -> None:
    with pytest.raises(JSONPathError) as refused:
        jsonpath.parse(path).find(DATA)
    assert str(refused.value) == message


def test_a_missing_field_is_nothing_or_an_error_as_the_caller_likes() -> None:
    path = jsonpath.parse(".spec.strategy.type")
    assert path.find(DATA) == []
    with pytest.raises(JSONPathError, match="strategy is not found"):
        path.find(DATA, missing_ok=False)


def test_an_item_whose_filter_cannot_be_answered_is_let_through() -> None:
    # As upstream does: `exists` looks at what is left of the path when it fails.
    assert jsonpath.parse(".spec.containers[?(@.args[7])].name").find(DATA) == ["b"]


def test_a_path_is_parsed_once() -> None:
    assert jsonpath.parse(".spec.replicas") is jsonpath.parse(".spec.replicas")


def test_a_search_ends_when_it_has_seen_too_much() -> None:
    wide = {"rows": [[0] * 500 for _ in range(500)]}
    with pytest.raises(JSONPathError, match="more than 100000 values"):
        jsonpath.parse(".rows[*][*]").find(wide)
    many = {"items": [{"a": 1}] * 60_000}
    with pytest.raises(JSONPathError, match="more than 100000 values"):
        jsonpath.parse("..a").find(many)


def test_data_may_be_nested_deeper_than_python_may_call() -> None:
    deep: dict[str, Any] = {"leaf": 1}
    for _ in range(5000):
        deep = {"d": deep}
    assert jsonpath.parse("..leaf").find(deep) == [1]


def test_a_filter_does_not_hold_another() -> None:
    with pytest.raises(JSONPathError, match="unterminated filter"):
        jsonpath.parse(".a[?(@.b[?(@.c)].d)]")
    with pytest.raises(JSONPathError):
        jsonpath.parse(".a" + "[?(@.a" * 200 + ")]" * 200)


keys = st.text(min_size=1, max_size=8).filter(lambda text: "\\" not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v, max_size=3)
)


@given(st.lists(keys, min_size=1, max_size=4), values)
def test_a_dotted_path_of_escaped_names_leads_to_the_value(names: list[str], value: Any) -> None:
    data = value
    for name in reversed(names):
        data = {name: data}
    path = "".join("." + "".join("\\" + character for character in name) for name in names)
    assert jsonpath.parse(path).find(data) == [value]
    assert jsonpath.parse(path).find(data, missing_ok=False) == [value]


@given(st.text(alphabet=".[]()?@$*'\"=<>!,:-0a\\ {}\n", max_size=30), values)
def test_any_text_is_either_a_path_or_refused(text: str, value: Any) -> None:
    with contextlib.suppress(JSONPathError):
        assert isinstance(jsonpath.parse(text).find({"a": value}), list)
