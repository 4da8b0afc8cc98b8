from __future__ import annotations

from podium.api.fields import value_at


def test_a_field_is_read_through_whatever_is_there() -> None:
    obj = {"spec": {"replicas": 3, "template": None}}
    assert value_at(obj, ("spec", "replicas")) == 3
    assert value_at(obj, ()) is obj
    for missing in (("status",), ("spec", "template", "metadata"), ("spec", "replicas", "odd")):
        assert value_at(obj, missing) is None
