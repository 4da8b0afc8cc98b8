from __future__ import annotations

from typing import Any

import pytest

from apiserver.access.memory import RBAC, Roles, binding, role, rule, user
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.escalation import check_binding, check_role
from podium.apiserver.access.identity import MASTERS, Identity
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.errors import StatusError

Object = dict[str, Any]
ALICE = Identity("alice", groups=("devs", "system:authenticated"))
ROOT = Identity("root", groups=(MASTERS,))
HELD = (role("held", rule("get", "pods")), binding("held", "held", user("alice")))
DANGLING = binding("dangling", "nope", user("alice"))
WHO = (
    'user "alice" (groups=["devs" "system:authenticated"]) is attempting to grant '
    "RBAC permissions not currently held:"
)


def writing(resource: str, who: Identity = ALICE, namespace: str = "") -> Attributes:
    return Attributes(who, "create", group=RBAC, resource=resource, namespace=namespace)


def allowing(*rules: Object) -> tuple[Object, Object]:
    return role("extra", *rules), binding("extra", "extra", user("alice"))


def test_a_role_with_rules_that_its_writer_has_is_accepted() -> None:
    check_role(Rbac(Roles(*HELD)), writing("clusterroles"), role("x", rule("get", "pods", names="a")))


def test_a_role_with_more_is_refused_and_says_what_is_lacking() -> None:
    wanted = role("x", rule("get list", "pods secrets", names="a b"), rule("get", urls="/foo"))
    wanted["rules"][0]["apiGroups"] = ["", "apps"]
    with pytest.raises(StatusError) as refused:
        check_role(Rbac(Roles(*HELD, DANGLING)), writing("clusterroles"), wanted)
    assert refused.value.code == 403
    assert refused.value.message == (
        f'clusterroles.{RBAC} "x" is forbidden: {WHO}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["secrets"], ResourceNames:["b"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/foo"], Verbs:["get"]}; '
        f'resolution errors: [clusterroles.{RBAC} "nope" not found]'
    )


def test_rules_held_in_one_namespace_can_be_given_there_only() -> None:
    store = Roles(role("local", rule("get", "pods")), binding("b", "local", user("alice"), namespace="ns"))
    new = role("x", rule("get", "pods"), namespace="ns")
    check_role(Rbac(store), writing("roles", namespace="ns"), new)
    with pytest.raises(StatusError):
        check_role(Rbac(store), writing("roles", namespace="other"), new)


def test_the_verb_escalate_permits_any_role() -> None:
    store = Roles(*allowing(rule("escalate", "clusterroles", RBAC)))
    check_role(Rbac(store), writing("clusterroles"), role("x", rule("*", "*", "*")))
    with pytest.raises(StatusError):
        check_role(Rbac(store), writing("roles", namespace="ns"), role("x", rule("*", "*", "*")))


def test_aggregation_needs_all_rights_because_it_can_gather_any() -> None:
    selecting = role("x") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        check_role(Rbac(Roles(*HELD)), writing("clusterroles"), selecting)
    with pytest.raises(StatusError, match="must have cluster-admin privileges"):
        check_role(Rbac(Roles(*HELD)), writing("clusterroles"), role("x"), old=selecting)
    admin = Roles(*allowing(rule("*", "*", "*"), rule("*", urls="*")))
    check_role(Rbac(admin), writing("clusterroles"), selecting)


def test_members_of_masters_may_write_anything() -> None:
    check_role(Rbac(Roles()), writing("clusterroles", ROOT), role("x", rule("*", "*", "*")))
    check_binding(Rbac(Roles()), writing("clusterrolebindings", ROOT), binding("x", "not-there"))


def test_removing_a_finalizer_of_a_role_needs_no_rights_on_its_rules() -> None:
    old = role("x", rule("*", "*", "*"), finalizers=["f"], ownerReferences=[{"uid": "u"}])
    new = role("x", rule("*", "*", "*"), finalizers=[])
    check_role(Rbac(Roles()), writing("clusterroles"), new, old)
    with pytest.raises(StatusError):
        check_role(Rbac(Roles()), writing("clusterroles"), {**new, "rules": [rule("get", "*", "*")]}, old)


def test_a_binding_to_a_role_that_its_writer_holds_is_accepted() -> None:
    check_binding(Rbac(Roles(*HELD)), writing("clusterrolebindings"), binding("x", "held", user("bob")))


def test_a_binding_to_more_is_refused() -> None:
    store = Roles(*HELD, role("admin", rule("*", "*", "*")))
    with pytest.raises(StatusError) as refused:
        check_binding(
            Rbac(store), writing("rolebindings", namespace="ns"), binding("x", "admin", namespace="ns")
        )
    assert refused.value.message == (
        f'rolebindings.{RBAC} "x" is forbidden: {WHO}\n{{APIGroups:["*"], Resources:["*"], Verbs:["*"]}}'
    )


def test_a_binding_to_a_role_that_is_not_there_is_not_found_by_the_name_of_the_bindings_resource() -> None:
    with pytest.raises(StatusError) as refused:
        check_binding(Rbac(Roles(*HELD)), writing("clusterrolebindings"), binding("x", "nothere"))
    assert (refused.value.code, refused.value.message) == (
        404,
        f'clusterrolebindings.{RBAC} "nothere" not found',
    )


@pytest.mark.parametrize(
    ("held", "namespace", "allowed"),
    [
        (rule("bind", "clusterroles", RBAC), "", True),
        (rule("bind", "clusterroles", RBAC, names="admin"), "ns", True),
        (rule("bind", "clusterroles", RBAC, names="edit"), "ns", False),
        (rule("bind", "roles", RBAC), "ns", False),
    ],
)
def test_the_verb_bind_permits_bindings_to_that_role(held: Object, namespace: str, allowed: bool) -> None:
    rbac = Rbac(Roles(*allowing(held), role("admin", rule("*", "*", "*"))))
    resource = "rolebindings" if namespace else "clusterrolebindings"
    request = writing(resource, namespace=namespace)
    wanted = binding("x", "admin", user("bob"), namespace=namespace)
    if allowed:
        check_binding(rbac, request, wanted)
    else:
        with pytest.raises(StatusError):
            check_binding(rbac, request, wanted)
