from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.access.memory import Roles, account, binding, group, role, rule, user
from podium.apiserver.access import rules
from podium.apiserver.access.authorization import Attributes, check
from podium.apiserver.access.identity import MASTERS, NOBODY, Identity, account_username
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.errors import StatusError

ALICE = Identity("alice", groups=("devs", "system:authenticated"))
BOT = Identity(account_username("ns", "bot"), groups=("system:serviceaccounts", "system:serviceaccounts:ns"))


def pods(who: Identity, verb: str = "list", namespace: str = "", name: str = "") -> Attributes:
    return Attributes(who, verb, resource="pods", namespace=namespace, name=name)


READER = role("reader", rule("get list", "pods"))


@pytest.mark.parametrize(
    ("bound", "who", "namespace", "allowed"),
    [
        (binding("b", "reader", user("alice")), ALICE, "", True),
        (binding("b", "reader", user("alice")), ALICE, "anywhere", True),
        (binding("b", "reader", user("bob")), ALICE, "", False),
        (binding("b", "reader", group("devs")), ALICE, "", True),
        (binding("b", "reader", group("alice")), ALICE, "", False),
        (binding("b", "reader", user("alice"), namespace="ns"), ALICE, "ns", True),
        (binding("b", "reader", user("alice"), namespace="ns"), ALICE, "other", False),
        (binding("b", "reader", user("alice"), namespace="ns"), ALICE, "", False),
        (binding("b", "reader", account("bot", "ns")), BOT, "other", True),
        (binding("b", "reader", account("bot", "other")), BOT, "ns", False),
        (binding("b", "reader", account("bot"), namespace="ns"), BOT, "ns", True),
        (binding("b", "reader", account("bot")), BOT, "ns", False),
        (binding("b", "reader", user("system:serviceaccount:ns:bot")), BOT, "ns", True),
        (binding("b", "reader", group("system:serviceaccounts:ns")), BOT, "ns", True),
        (binding("b", "reader"), ALICE, "", False),
        (binding("b", "reader", user("system:anonymous")), NOBODY, "", True),
    ],
)
def test_a_binding_grants_its_role_to_its_subjects(
    bound: dict[str, object], who: Identity, namespace: str, allowed: bool
) -> None:
    assert Rbac(Roles(READER, bound)).decide(pods(who, namespace=namespace)).allowed is allowed


def test_a_role_counts_only_in_its_own_namespace() -> None:
    store = Roles(
        role("local", rule("list", "pods"), namespace="ns"),
        binding("b", "local", user("alice"), namespace="ns", kind="Role"),
        binding("b", "local", user("alice"), namespace="other", kind="Role"),
    )
    rbac = Rbac(store)
    assert rbac.decide(pods(ALICE, namespace="ns")).allowed
    denied = rbac.decide(pods(ALICE, namespace="other"))
    assert denied.reason == 'RBAC: role.rbac.authorization.k8s.io "local" not found'


def test_an_allowed_request_says_by_which_binding() -> None:
    store = Roles(
        READER,
        binding("all", "reader", group("devs")),
        binding("one", "reader", user("x"), account("bot"), namespace="ns"),
    )
    rbac = Rbac(store)
    assert rbac.decide(pods(ALICE)).reason == (
        'RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "devs"'
    )
    assert rbac.decide(pods(BOT, namespace="ns")).reason == (
        'RBAC: allowed by RoleBinding "one/ns" of ClusterRole "reader" to ServiceAccount "bot/ns"'
    )


def test_a_named_rule_does_not_hide_a_later_one_for_all_names() -> None:
    store = Roles(
        role("one", rule("get", "pods", names="a")),
        READER,
        binding("one", "one", user("alice")),
        binding("reader", "reader", user("alice")),
    )
    rbac = Rbac(store)
    assert 'ClusterRoleBinding "one"' in rbac.decide(pods(ALICE, "get", name="a")).reason
    assert 'ClusterRoleBinding "reader"' in rbac.decide(pods(ALICE, "get", name="b")).reason


def test_members_of_masters_may_do_everything_without_any_role() -> None:
    root = Identity("root", groups=(MASTERS,))
    decision = Rbac(Roles()).decide(pods(root, "anything"))
    assert decision.allowed
    assert decision.reason == ""


def test_missing_roles_are_named_in_the_refusal() -> None:
    store = Roles(
        binding("a", "nope", user("alice")),
        binding("b", "nope", user("alice"), namespace="default", kind="Role"),
    )
    with pytest.raises(StatusError) as refused:
        check(Rbac(store), pods(ALICE, namespace="default"))
    assert refused.value.message == (
        'pods is forbidden: User "alice" cannot list resource "pods" in API group "" '
        'in the namespace "default": RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, '
        'role.rbac.authorization.k8s.io "nope" not found]'
    )


@pytest.mark.parametrize(
    ("request_", "message", "details"),
    [
        (
            Attributes(ALICE, "get", resource="pods", subresource="log", namespace="d", name="x"),
            (
                'pods "x" is forbidden: User "alice" cannot get resource "pods/log" in API group "" '
                'in the namespace "d"'
            ),
            {"name": "x", "kind": "pods"},
        ),
        (
            Attributes(ALICE, "list", group="apps", resource="deployments"),
            (
                'deployments.apps is forbidden: User "alice" cannot list resource "deployments" '
                'in API group "apps" at the cluster scope'
            ),
            {"group": "apps", "kind": "deployments"},
        ),
        (Attributes(ALICE, "get", path="/a<b>"), 'forbidden: User "alice" cannot get path "/a&lt;b&gt;"', {}),
        (
            Attributes(Identity('a"\n'), "get", path="/x"),
            'forbidden: User "a\\"\\n" cannot get path "/x"',
            {},
        ),
    ],
)
def test_a_refusal_is_worded_like_the_real_servers(
    request_: Attributes, message: str, details: dict[str, str]
) -> None:
    with pytest.raises(StatusError) as refused:
        check(Rbac(Roles()), request_)
    assert refused.value.code == 403
    assert refused.value.message == message
    assert refused.value.details == details


def test_a_change_of_roles_or_bindings_counts_at_once() -> None:
    store = Roles()
    rbac = Rbac(store)
    assert not rbac.decide(pods(ALICE)).allowed
    store.add(binding("b", "reader", user("alice")))
    assert "not found" in rbac.decide(pods(ALICE)).reason
    store.add(READER)
    assert rbac.decide(pods(ALICE)).allowed
    store.add(role("reader", rule("get", "pods")))
    assert not rbac.decide(pods(ALICE)).allowed
    store.add(READER)
    store.remove("ClusterRoleBinding", "b")
    assert not rbac.decide(pods(ALICE)).allowed


def test_endless_different_questions_do_not_fill_the_memory() -> None:
    rbac = Rbac(Roles(READER, binding("b", "reader", group("devs"))))
    for number in range(10_000):
        assert not rbac.decide(Attributes(ALICE, "get", path=f"/{number}")).allowed
        who = Identity(f"user-{number}", groups=("devs",))
        assert rbac.decide(pods(who)).allowed
    assert len(rbac._holders) <= 1024
    assert all(len(holder._about) <= 4096 for holder in rbac._holders.values())


WORDS = st.sampled_from(["", "get", "pods", "a", "ns", "*"])
RULES = st.builds(rule, WORDS, WORDS, WORDS, WORDS, st.sampled_from(["", "/a", "/*"]))
RESOURCE_QUESTIONS = st.builds(
    Attributes,
    st.just(ALICE),
    WORDS,
    resource=WORDS,
    subresource=st.sampled_from(["", "a"]),
    name=WORDS,
    namespace=st.just("ns"),
)
PATH_QUESTIONS = st.builds(Attributes, st.just(ALICE), WORDS, path=st.sampled_from(["/a", "/b"]))
QUESTIONS = st.lists(st.one_of(RESOURCE_QUESTIONS, PATH_QUESTIONS), max_size=20)


@given(found=st.lists(RULES, max_size=5), questions=QUESTIONS)
def test_decisions_with_memory_equal_those_rule_by_rule(
    found: list[dict[str, object]], questions: list[Attributes]
) -> None:
    rbac = Rbac(Roles(role("r", *found), binding("b", "r", user("alice"))))
    for question in questions:
        expected = any(rules.allows(rules.parse(one), question) for one in found)
        assert rbac.decide(question).allowed is expected


def test_a_stranger_s_questions_do_not_fill_the_memory() -> None:
    rbac = Rbac(Roles(READER, binding("b", "reader", user("alice"))))
    rbac.decide(pods(NOBODY))
    tracemalloc.start()
    for number in range(5000):
        rbac.decide(pods(NOBODY, namespace=f"n{number}"))
        rbac.decide(pods(ALICE, namespace=f"n{number}" * 1000))
        rbac.decide(Attributes(NOBODY, "get", path=f"/{number}/" + "x" * 10_000))
        rbac.decide(Attributes(NOBODY, f"verb{number}", resource=f"r{number}"))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 2_000_000
