from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.apiserver.access import rules
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.identity import Identity
from podium.apiserver.access.rules import Rule

NOBODY = Identity("nobody")


def on(verb: str, resource: str, group: str = "", name: str = "") -> Attributes:
    plain, _, subresource = resource.partition("/")
    return Attributes(NOBODY, verb, group=group, resource=plain, subresource=subresource, name=name)


def at(verb: str, path: str) -> Attributes:
    return Attributes(NOBODY, verb, path=path)


PODS = Rule(("get", "list"), ("",), ("pods",))
NAMED = Rule(("get",), ("",), ("configmaps",), ("a", "b"))
SCALE = Rule(("*",), ("*",), ("*/scale",))
PATHS = Rule(("get",), urls=("/healthz", "/api/*"))


@pytest.mark.parametrize(
    ("rule", "request_", "allowed"),
    [
        (PODS, on("get", "pods"), True),
        (PODS, on("get", "pods", name="x"), True),
        (PODS, on("delete", "pods"), False),
        (PODS, on("get", "pods", group="metrics.k8s.io"), False),
        (PODS, on("get", "pods/log"), False),
        (NAMED, on("get", "configmaps", name="a"), True),
        (NAMED, on("get", "configmaps", name="c"), False),
        (NAMED, on("get", "configmaps"), False),
        (SCALE, on("update", "deployments/scale", group="apps"), True),
        (SCALE, on("update", "deployments", group="apps"), False),
        (SCALE, on("update", "deployments/status", group="apps"), False),
        (Rule(("*",), ("*",), ("*",)), on("x", "pods/log"), True),
        (Rule(("*",), ("*",), ("*",)), at("get", "/healthz"), False),
        (PATHS, at("get", "/healthz"), True),
        (PATHS, at("get", "/healthz/etcd"), False),
        (PATHS, at("get", "/api/v1"), True),
        (PATHS, at("get", "/apis"), False),
        (PATHS, at("post", "/healthz"), False),
        (Rule(("*",), urls=("*",)), at("get", "/anything"), True),
    ],
)
def test_a_rule_allows_what_it_names(rule: Rule, request_: Attributes, allowed: bool) -> None:
    assert rules.allows(rule, request_) is allowed


# Besides the words that rules use, the universe has one of each sort that no rule names: whoever may do
# everything may do that too, and whoever lists all known words may not.
VERBS, GROUPS, NAMES = ["get", "list"], ["", "apps"], ["a", "b"]
RESOURCES = ["pods", "pods/log", "pods/scale", "jobs/scale", "*/scale", "*"]
URLS = ["/a", "/a*", "/a/*", "/a/b", "/b*", "*"]
REQUESTS = [
    *(
        on(verb, resource, group, name)
        for verb, group, resource, name in product(
            [*VERBS, "other"],
            [*GROUPS, "other"],
            ["pods", "pods/log", "pods/scale", "jobs/scale", "other", "other/scale", "other/other"],
            [*NAMES, "other", ""],
        )
    ),
    *(
        at(verb, path)
        for verb, path in product([*VERBS, "other"], ["/a", "/a/b", "/aX", "/a/X", "/b", "/bX", "/X"])
    ),
]


def subset(words: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), max_size=2, unique=True).map(tuple)


RULES = st.lists(
    st.one_of(
        st.builds(Rule, subset([*VERBS, "*"]), subset([*GROUPS, "*"]), subset(RESOURCES), subset(NAMES)),
        st.builds(lambda verbs, urls: Rule(verbs, urls=urls), subset([*VERBS, "*"]), subset(URLS)),
    ),
    max_size=4,
)


def permitted(having: list[Rule]) -> set[int]:
    return {i for i, request in enumerate(REQUESTS) if any(rules.allows(rule, request) for rule in having)}


@given(owned=RULES, wanted=RULES)
def test_rules_are_covered_exactly_if_they_allow_nothing_more(owned: list[Rule], wanted: list[Rule]) -> None:
    assert (not rules.uncovered(owned, wanted)) == (permitted(wanted) <= permitted(owned))


@given(owned=RULES, wanted=RULES)
def test_granting_what_was_lacking_is_enough(owned: list[Rule], wanted: list[Rule]) -> None:
    lacking = rules.uncovered(owned, wanted)
    assert permitted(wanted) <= permitted([*owned, *lacking])
    assert permitted(rules.compact(lacking)) == permitted(lacking)


@given(RULES)
def test_the_atoms_of_a_rule_allow_what_it_allows(found: list[Rule]) -> None:
    assert permitted([atom for rule in found for atom in rules.atoms(rule)]) == permitted(found)


@given(RULES)
def test_a_rule_survives_being_written_and_read(found: list[Rule]) -> None:
    assert list(rules.parse_all({"rules": [rules.to_object(rule) for rule in found]})) == found


def test_null_lists_are_empty_lists() -> None:
    assert rules.parse({"verbs": None, "resources": None}) == Rule()
    assert rules.parse_all({"rules": None}) == ()


def test_a_rule_is_shown_like_the_real_server_shows_it() -> None:
    shown = str(Rule(("get", "list"), ("", "apps"), ("pods",), ("a",)))
    assert shown == '{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}'
    assert str(Rule(("get",), urls=("/x",))) == '{NonResourceURLs:["/x"], Verbs:["get"]}'


def labelled(name: str, label: str, *found: dict[str, Any], selects: str = "") -> dict[str, Any]:
    role: dict[str, Any] = {"metadata": {"name": name, "labels": {label: "true"}}, "rules": list(found)}
    if selects:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {selects: "true"}}]}
    return role


READ, WRITE = {"verbs": ["get"]}, {"verbs": ["update"]}


def test_an_aggregated_role_takes_the_rules_of_the_roles_it_selects_in_the_order_of_their_names() -> None:
    parts = [
        labelled("z", "to-admin", WRITE),
        labelled("a", "to-admin", READ),
        labelled("b", "to-admin", READ),
    ]
    admin = labelled("admin", "to-admin", {"verbs": ["old"]}, selects="to-admin")
    assert rules.aggregate(admin, [*parts, admin]) == [READ, WRITE]


def test_aggregated_roles_that_select_each_other_settle() -> None:
    view = labelled("view", "to-edit", selects="to-view")
    edit = labelled("edit", "to-admin", selects="to-edit")
    admin = labelled("admin", "", selects="to-admin")
    source = labelled("source", "to-view", READ)
    settled = rules.aggregate_all([admin, edit, view, source])
    assert settled == {"view": [READ], "edit": [READ], "admin": [READ]}
    done = [{**role, "rules": settled[role["metadata"]["name"]]} for role in (view, edit, admin)]
    assert rules.aggregate_all([*done, source]) == {}


def test_a_role_that_selects_itself_does_not_feed_on_itself() -> None:
    assert rules.aggregate_all([labelled("loop", "l", READ, selects="l")]) == {"loop": []}
