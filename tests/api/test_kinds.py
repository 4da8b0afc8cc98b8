from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import GVK, Key


@pytest.mark.parametrize(
    ("api_version", "expected"),
    [
        ("v1", GVK("", "v1", "Thing")),
        ("apps/v1", GVK("apps", "v1", "Thing")),
        ("olm.operatorframework.io/v1", GVK("olm.operatorframework.io", "v1", "Thing")),
    ],
)
def test_an_api_version_is_read_and_written(api_version: str, expected: GVK) -> None:
    assert GVK.parse(api_version, "Thing") == expected
    assert GVK.of({"apiVersion": api_version, "kind": "Thing"}) == expected
    assert expected.api_version == api_version
    assert str(expected) == f"{api_version} Thing"


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"apiVersion": 1, "kind": "Pod"},
        {"apiVersion": "", "kind": "Pod"},
        {"apiVersion": "apps/", "kind": "Pod"},
        {"apiVersion": "/v1", "kind": "Pod"},
        {"apiVersion": "a/b/c", "kind": "Pod"},
        {"apiVersion": "v1", "kind": ""},
    ],
)
def test_an_object_that_does_not_say_its_kind_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="apiVersion and kind"):
        GVK.of(obj)


def test_a_key_names_an_object_among_those_of_its_kind() -> None:
    assert str(Key.of({"metadata": {"name": "web", "namespace": "team"}})) == "team/web"
    assert str(Key.of({"metadata": {"name": "node-1"}})) == "node-1"


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {"namespace": "team"}}])
def test_an_object_without_a_name_has_no_key(obj: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"metadata\.name"):
        Key.of(obj)
