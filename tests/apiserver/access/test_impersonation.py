from __future__ import annotations

from typing import Any

import pytest

from apiserver.access.memory import Roles, binding, role, rule, user
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.identity import MASTERS, Identity
from podium.apiserver.access.impersonation import Impersonation, wanted_identity
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.errors import StatusError

Object = dict[str, Any]
ALICE = Identity("alice")
ROOT = Identity("root", groups=(MASTERS,))
AUTHENTICATION = "authentication.k8s.io"


def listing(who: Identity = ALICE) -> Attributes:
    return Attributes(who, "list", resource="pods", namespace="default")


def may(*rules: Object, who: str = "alice") -> Impersonation:
    return Impersonation(Rbac(Roles(role("r", *rules), binding("b", "r", user(who)))))


def refusal(impersonation: Impersonation, wanted: Identity, request: Attributes | None = None) -> str:
    with pytest.raises(StatusError) as refused:
        impersonation.impersonate(wanted, request or listing())
    assert refused.value.code == 403
    return refused.value.message


def test_the_headers_say_who_is_wanted() -> None:
    headers = [
        ("Accept", "*/*"),
        ("Impersonate-User", "bob"),
        ("impersonate-group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-Example.com%2fScopes", "a"),
        ("Impersonate-Extra-Example.com%2fScopes", "b"),
        ("Impersonate-Uid", "u"),
    ]
    assert wanted_identity(headers) == Identity("bob", "u", ("g1", "g2"), {"example.com/scopes": ("a", "b")})
    assert wanted_identity([("Accept", "*/*")]) is None


def test_groups_without_a_user_are_a_bad_request() -> None:
    with pytest.raises(StatusError) as refused:
        wanted_identity([("Impersonate-Group", "bob"), ("Impersonate-Extra-Foo", "x")])
    assert (refused.value.code, refused.value.message) == (
        400,
        (
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"bob"}, '
            'Extra:map[string][]string{"foo":[]string{"x"}}} without impersonating a user name'
        ),
    )


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        (Identity("bob"), ("system:authenticated",)),
        (Identity("bob", groups=("g",)), ("g", "system:authenticated")),
        (Identity("bob", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
        (Identity("system:anonymous"), ("system:unauthenticated",)),
        (
            Identity("system:serviceaccount:ns:bot"),
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (Identity("system:serviceaccount:ns:bot", groups=("g",)), ("g", "system:authenticated")),
        (Identity("system:node:n1"), ("system:nodes", "system:authenticated")),
    ],
)
def test_the_impersonated_user_has_the_groups_it_would_have(
    wanted: Identity, groups: tuple[str, ...]
) -> None:
    found = Impersonation(Rbac(Roles())).impersonate(wanted, listing(ROOT))
    assert (found.username, found.groups) == (wanted.username, groups)


@pytest.mark.parametrize(
    ("wanted", "lacking"),
    [
        (
            Identity("bob"),
            'impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            Identity("system:serviceaccount:t1:bot"),
            'impersonate-on:serviceaccount:list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            Identity("system:node:n1"),
            'impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "default"',
        ),
    ],
)
def test_without_any_right_the_refusal_is_about_the_constrained_mode(wanted: Identity, lacking: str) -> None:
    assert refusal(may(), wanted) == f'pods is forbidden: User "alice" cannot {lacking}'


def test_the_classic_verb_is_enough_for_what_it_names() -> None:
    impersonation = may(
        rule("impersonate", "users groups"), rule("impersonate", "userextras/foo", AUTHENTICATION)
    )
    wanted = Identity("bob", groups=(MASTERS,), extra={"foo": ("x",)})
    assert impersonation.impersonate(wanted, listing()).groups == (MASTERS, "system:authenticated")
    # From now on the mode that worked is tried first, so its refusal is the one that is told.
    assert refusal(impersonation, Identity("bob", uid="u")) == (
        'uids.authentication.k8s.io "u" is forbidden: User "alice" cannot impersonate resource "uids" '
        'in API group "authentication.k8s.io" at the cluster scope'
    )
    assert refusal(impersonation, Identity("bob", extra={"bar": ("u",)})) == (
        'userextras.authentication.k8s.io "u" is forbidden: User "alice" cannot impersonate resource '
        '"userextras/bar" in API group "authentication.k8s.io" at the cluster scope'
    )


def test_a_service_account_is_impersonated_by_its_namespace_and_name() -> None:
    account = Identity("system:serviceaccount:ns:bot")
    bound = binding("b", "r", user("alice"), namespace="ns")
    impersonation = Impersonation(
        Rbac(Roles(role("r", rule("impersonate", "serviceaccounts", names="bot")), bound))
    )
    assert impersonation.impersonate(account, listing()).username == account.username
    assert "serviceaccounts" in refusal(impersonation, Identity("system:serviceaccount:other:bot"))


def test_the_constrained_mode_needs_the_user_and_the_action() -> None:
    as_bob = rule("impersonate:user-info", "users", AUTHENTICATION, names="bob")
    list_pods = rule("impersonate-on:user-info:list", "pods")
    assert may(as_bob, list_pods).impersonate(Identity("bob"), listing()).username == "bob"
    assert "impersonate-on:user-info:list" in refusal(may(as_bob), Identity("bob"))
    assert refusal(may(list_pods), Identity("bob")) == (
        'users.authentication.k8s.io "bob" is forbidden: User "alice" cannot impersonate:user-info '
        'resource "users" in API group "authentication.k8s.io" at the cluster scope'
    )


def test_the_constrained_mode_never_leads_to_masters() -> None:
    everything = rule("impersonate:user-info impersonate-on:user-info:list", "*", "*")
    assert refusal(may(everything), Identity("bob", groups=(MASTERS,))).endswith(
        "impersonating the system:masters group is not allowed"
    )


def test_a_service_account_may_be_allowed_to_be_the_node_it_runs_on() -> None:
    bot = Identity("system:serviceaccount:ns:bot", extra={"authentication.kubernetes.io/node-name": ("n1",)})
    impersonation = may(
        rule("impersonate:associated-node", "nodes", AUTHENTICATION),
        rule("impersonate-on:associated-node:list", "pods"),
        who=bot.username,
    )
    found = impersonation.impersonate(Identity("system:node:n1"), listing(bot))
    assert found.groups == ("system:nodes", "system:authenticated")
    assert refusal(impersonation, Identity("system:node:n2"), listing(bot))
