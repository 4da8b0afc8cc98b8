"""Lists in pages: limit, continue, and one consistent state across all pages."""

from __future__ import annotations

import base64
import json

import pytest

from behaviour.collection import Collection, Object, config_map, done
from behaviour.expiry import expire_history
from behaviour.support import refusal
from behaviour.widgets import Widgets
from harness.plane import ControlPlane

ALL = ["five", "four", "kube-root-ca.crt", "one", "three", "two"]


@pytest.fixture
def six(config_maps: Collection) -> Collection:
    """ConfigMaps in a namespace: five of the test, and the one that every namespace has."""
    for name in ("one", "two", "three", "four", "five"):
        done(config_maps.create(config_map(name, labels={"letters": str(len(name))})))
    return config_maps


def page(collection: Collection, limit: int, token: str = "", query: str = "") -> Object:
    """One page of a list."""
    more = (f"&continue={token}" if token else "") + (f"&{query}" if query else "")
    return done(collection.plain.request("GET", f"{collection.path}?limit={limit}{more}"))


def pages(collection: Collection, limit: int, query: str = "") -> list[list[str]]:
    """The names on each page, until there is no other."""
    found, token = [], ""
    while True:
        part = page(collection, limit, token, query)
        found.append([item["metadata"]["name"] for item in part["items"]])
        token = part["metadata"].get("continue", "")
        if not token:
            return found


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6, 7])
def test_pages_hold_every_object_once_in_order(six: Collection, limit: int) -> None:
    expected = [ALL[start : start + limit] for start in range(0, len(ALL), limit)]
    assert pages(six, limit) == expected


def test_a_page_says_how_many_objects_follow(six: Collection) -> None:
    first = page(six, 4)
    assert first["metadata"]["remainingItemCount"] == 2
    last = page(six, 4, first["metadata"]["continue"])
    assert "remainingItemCount" not in last["metadata"]
    assert not last["metadata"].get("continue")


def test_a_page_with_a_selector_does_not_say_how_many_follow(six: Collection) -> None:
    first = page(six, 1, query="labelSelector=letters%3D3")
    assert first["metadata"]["continue"]
    assert "remainingItemCount" not in first["metadata"]


def test_a_selector_applies_to_every_page(six: Collection) -> None:
    assert pages(six, 1, "labelSelector=letters%3D3") == [["one"], ["two"]]


def test_all_pages_show_the_state_of_the_first(six: Collection) -> None:
    first = page(six, 2)
    done(six.delete("one"))
    done(six.create(config_map("new")))
    done(six.patch("two", {"data": {"changed": "yes"}}))
    rest = page(six, 10, first["metadata"]["continue"])
    assert [item["metadata"]["name"] for item in rest["items"]] == ALL[2:]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "data" not in rest["items"][-1]


def test_a_limit_of_zero_or_less_is_no_limit(six: Collection) -> None:
    assert pages(six, 0) == pages(six, -1) == [ALL]


def test_pages_of_custom_resources_are_no_different(widgets: Collection, widget_kind: Widgets) -> None:
    for name in ("a", "b", "c"):
        done(widgets.create(widget_kind.widget(name)))
    assert pages(widgets, 2) == [["a", "b"], ["c"]]


def test_pages_cross_namespaces_in_order(six: Collection) -> None:
    everywhere = Collection(six.plain, "/api/v1/configmaps")
    token = ""
    found: list[tuple[str, str]] = []
    while not found or token:
        part = page(everywhere, 3, token)
        found += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in part["items"]]
        token = part["metadata"].get("continue", "")
    mine = six.path.split("/")[4]
    assert [name for namespace, name in found if namespace == mine] == ALL
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("!!", "illegal base64 data at input byte 0"),
        ("abc", "invalid character 'i' looking for beginning of value"),
        ("e30", "server does not recognize this encoded version "),
    ],
)
def test_a_token_that_the_server_did_not_give_is_refused(six: Collection, token: str, why: str) -> None:
    answer = six.plain.request("GET", f"{six.path}?limit=2&continue={token}")
    message = f"invalid continue token: continue key is not valid: {why}"
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_token_and_a_version_cannot_be_given_together(six: Collection) -> None:
    token = page(six, 2)["metadata"]["continue"]
    answer = six.plain.request("GET", f"{six.path}?limit=2&continue={token}&resourceVersion=5")
    message = "specifying resource version is not allowed when using continue"
    assert refusal(answer) == (400, "BadRequest", message)


def test_version_zero_with_a_token_is_no_version(six: Collection) -> None:
    token = page(six, 4)["metadata"]["continue"]
    assert len(page(six, 4, token, "resourceVersion=0")["items"]) == 2


def test_a_limit_with_an_exact_version_pages_through_that_state(six: Collection) -> None:
    version = page(six, 1)["metadata"]["resourceVersion"]
    done(six.create(config_map("new")))
    exact = f"resourceVersion={version}&resourceVersionMatch=Exact"
    first = page(six, 5, query=exact)
    rest = page(six, 5, first["metadata"]["continue"])
    assert [item["metadata"]["name"] for item in first["items"] + rest["items"]] == ALL


def test_an_expired_token_comes_with_one_that_goes_on_from_now(
    control_plane: ControlPlane, widgets: Collection, widget_kind: Widgets
) -> None:
    for name in ("a", "b", "c"):
        done(widgets.create(widget_kind.widget(name)))
    token = page(widgets, 1)["metadata"]["continue"]
    expire_history(control_plane, widgets.plain)
    done(widgets.delete("b"))
    answer = widgets.plain.request("GET", f"{widgets.path}?limit=1&continue={aged(token)}")
    code, reason, message = refusal(answer)
    assert (code, reason) == (410, "Expired")
    assert message.startswith("The provided continue parameter is too old to display a consistent list")
    rest = page(widgets, 1, answer.json()["metadata"]["continue"])
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


def aged(token: str) -> str:
    """The token as if it had been given at the very beginning."""
    decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    decoded["rv"] = 1
    return base64.urlsafe_b64encode(json.dumps(decoded).encode()).decode().rstrip("=")
