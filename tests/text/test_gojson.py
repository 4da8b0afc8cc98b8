from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text import gojson


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None], "é": "x", "Z": {}}, '{"Z":{},"a":[true,null],"b":1,"é":"x"}'),
        ("<a & b>", r'"\u003ca \u0026 b\u003e"'),
        ('\x00\x08\x0c\n\r\t\x1f\x7f"\\/', r'"\u0000\b\f\n\r\t\u001f' + "\x7f" + r'\"\\/"'),
        ("\u2028\u2029é😀", r'"\u2028\u2029é😀"'),
        ("a\udcff\ufffd", '"a\\ufffd\ufffd"'),
        ({"\udcff": ["\udcfe", 1.0]}, r'{"\ufffd":["\ufffd",1]}'),
        (1.0, "1"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (-1.5e-9, "-1.5e-9"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (2**53 + 1, "9007199254740993"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "18446744073709552000"),
        ((1, 2.5), "[1,2.5]"),
    ],
)
def test_values_are_written_as_go_writes_them(value: Any, text: str) -> None:
    assert gojson.compact(value).decode() == text
    assert gojson.compact([value]).decode() == f"[{text}]"


def test_numbers_can_be_written_as_after_a_generic_round_trip() -> None:
    values = [1, 1.5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    assert gojson.compact(values, floats=True) == (
        b"[1,1.5,9007199254740992,9007199254740992,9223372036854776000,-9223372036854776000]"
    )


def test_html_is_left_alone_if_asked() -> None:
    assert gojson.compact({"<": "&\u2028"}, html=False) == rb'{"<":"&\u2028"}'
    assert gojson.pretty({"<": "&"}, html=True) == b'{\n    "\\u003c": "\\u0026"\n}'


def test_pretty_json_has_empty_collections_on_one_line() -> None:
    assert gojson.pretty({"a": [], "b": {}, "c": [1, {"d": 2.0}]}, indent=2) == (
        b'{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    {\n      "d": 2\n    }\n  ]\n}'
    )
    assert gojson.pretty({"a": 1}, indent=0) == b'{"a":1}'


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_what_is_no_number_in_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="unsupported value"):
        gojson.compact(value)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=5), below, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans())
def test_what_is_written_reads_again(value: Any, html: bool) -> None:
    written = gojson.compact(value, html=html)
    assert gojson.decode(written) == value
    assert json.loads(gojson.pretty(value, html=html)) == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"{", 1),
        (b'\n{"a":\n\nnope}\n', 4),
        (b'\n{"a":1\n{}\n', 3),
        (b"{} {}", 1),
        (b"{}\n}\n", 2),
        (b'{"a":1,}\n', 1),
        (b'{"a":NaN}\n', 1),
        (b"\n[Infinity]\n", 2),
        (b'{"a":"x\ny"}', 1),
        (b"\xef\xbb\xbf{}", 1),
        (b"[" * 1_000_000, 1),
        (b'{"a":' * 1_000_000, 1),
        (b"\n" + b"[" * 1_000_000, 2),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: bytes, line: int) -> None:
    with pytest.raises(gojson.JSONError, match=f"^line {line}: ") as refused:
        gojson.decode(text)
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\xff\xc3("', "\ufffd\ufffd("),
        (rb'"\ud800x\ud83d\ude00"', "\ufffdx😀"),
        (b' {"a" : 1.0 }\n', {"a": 1.0}),
        (b'\n["\xff"] ', ["\ufffd"]),
        (b"18446744073709551615", 2**64 - 1),
    ],
)
def test_a_value_is_decoded_as_go_decodes_it(text: bytes, value: Any) -> None:
    assert gojson.decode(text) == value


def test_numbers_are_read_as_a_program_without_integers_reads_them() -> None:
    text = '{"a": [1, -0, 1.0, 9007199254740993, 1e2], "b": "\u2028<"}'
    assert msgspec.json.encode(gojson.FLOATS.decode(text)) == (
        '{"a":[1,-0,1,9007199254740992,100],"b":"\u2028<"}'.encode()
    )
    assert gojson.escaped("\u2028<".encode(), html=False) == rb"\u2028<"
    with pytest.raises(ValueError, match="does not fit"):
        gojson.FLOATS.decode("1e400")


def test_integers_that_go_has_no_room_for_become_floats() -> None:
    assert gojson.within({"a": [2**63, 5, True]}, -(2**63), 2**63 - 1) == {"a": [float(2**63), 5, True]}
