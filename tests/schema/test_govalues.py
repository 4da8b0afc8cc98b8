from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.schema import govalues


@pytest.mark.parametrize(
    ("value", "printed", "in_json"),
    [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (1.5, "1.5", "1.5"),
        (100000.0, "100000", "100000"),
        (1e6, "1e+06", "1000000"),
        (1234567.5, "1.2345675e+06", "1234567.5"),
        (123456789012345680000.0, "1.2345678901234568e+20", "123456789012345680000"),
        (1e21, "1e+21", "1e+21"),
        (0.0001, "0.0001", "0.0001"),
        (-0.00001, "-1e-05", "-0.00001"),
        (1e-7, "1e-07", "1e-07"),
        (math.inf, "+Inf", "+Inf"),
    ],
)
def test_floats_are_written_as_go_writes_them(value: float, printed: str, in_json: str) -> None:
    assert govalues.print_float(value) == printed
    assert govalues.json_float(value) == in_json


@given(st.floats(allow_nan=False))
def test_a_written_float_reads_as_itself(value: float) -> None:
    assert float(govalues.print_float(value)) == value
    assert float(govalues.json_float(value)) == value


def test_go_shows_maps_in_the_order_of_their_keys() -> None:
    assert govalues.show({"b": [1, 1e6, None], "a": True}) == "map[a:true b:[1 1e+06 <nil>]]"
