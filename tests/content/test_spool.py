"""Catalogs in order, without memory for all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.catalog import blobs
from podium.catalog.write import ordered
from podium.content.spool import in_order

names = st.sampled_from(["", "a", "b", "a.v1", "ü"])
schemas = st.sampled_from(["olm.package", "olm.channel", "olm.bundle", "olm.deprecations", "x.y", "x.a"])


@given(st.lists(st.tuples(schemas, names, names, st.integers())))
def test_the_order_is_that_of_a_sorted_list(rows: list[tuple[str, str, str, int]]) -> None:
    content = [
        blobs.of({"schema": schema, "package": package, "name": name, "number": number})
        for schema, package, name, number in rows
    ]
    assert [blob.raw for blob in in_order(content)] == [blob.raw for blob in ordered(content)]
