"""Impersonation: acting as users, groups and service accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from behaviour.scratch import Scratch
from behaviour.subjects import Actor, grant, plain_as, rule, subject, whoami
from behaviour.support import refusal
from behaviour.tokens import token_of
from harness.kubectl import Kubectl
from harness.plain import Plain
from harness.plane import ControlPlane

Object = dict[str, Any]
ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = 'resource "selfsubjectreviews" in API group "authentication.k8s.io"'


def test_an_administrator_may_be_anybody(plain: Plain) -> None:
    user = whoami(Actor(plain, "ann", group="red"))
    assert user == {"username": "ann", "groups": ["red", "system:authenticated"]}


def test_an_impersonated_service_account_is_in_its_groups(plain: Plain) -> None:
    user = whoami(Actor(plain, "system:serviceaccount:left:bot"))
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:left", "system:authenticated"]


def test_impersonated_groups_replace_those_of_a_service_account(plain: Plain) -> None:
    user = whoami(Actor(plain, "system:serviceaccount:left:bot", group="red"))
    assert user["groups"] == ["red", "system:authenticated"]


def test_impersonating_nobody_gives_nobodys_groups(plain: Plain) -> None:
    answer = Actor(plain, "system:anonymous").request("POST", ME, {})
    what = 'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot'
    assert refusal(answer) == (403, "Forbidden", f"{what} create {REVIEWS} at the cluster scope")


def test_uid_and_extra_can_be_impersonated_too(plain: Plain) -> None:
    headers = {
        "Impersonate-Uid": "42",
        "Impersonate-Extra-Team": "red",
        "Impersonate-Extra-a.example%2fb": "c",
    }
    user = whoami(Actor(plain, "ann", headers=headers))
    assert user["uid"] == "42"
    assert user["extra"] == {"team": ["red"], "a.example/b": ["c"]}


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Team"])
def test_impersonating_without_a_username_is_refused(plain: Plain, header: str) -> None:
    answer = plain.request("POST", ME, {}, headers={header: "x"})
    code, reason, message = refusal(answer)
    assert (code, reason) == (400, "BadRequest")
    assert message.endswith("without impersonating a user name")


@pytest.fixture
def bot(control_plane: ControlPlane, scratch: Scratch, tmp_path: Path) -> Plain:
    """The default service account of the test's namespace, by its own token."""
    token = token_of(scratch.plain, scratch.namespace, "default")
    return plain_as(control_plane.kubeconfig, tmp_path, token=token)


def bot_account(scratch: Scratch) -> Object:
    return {"kind": "ServiceAccount", "name": "default", "namespace": scratch.namespace}


def test_somebody_without_the_permission_may_not_impersonate(bot: Plain, namespace: str) -> None:
    answer = bot.request("POST", ME, {}, headers={"Impersonate-User": "ann"})
    me = f"system:serviceaccount:{namespace}:default"
    what = f'selfsubjectreviews.authentication.k8s.io is forbidden: User "{me}" cannot'
    action = f"impersonate-on:user-info:create {REVIEWS} at the cluster scope"
    assert refusal(answer) == (403, "Forbidden", f"{what} {action}")


def test_the_permission_can_be_for_one_user_only(bot: Plain, scratch: Scratch) -> None:
    allowed = rule("impersonate", "users", names=["ann"])
    grant(scratch, bot_account(scratch), allowed, cluster_wide=True)
    assert whoami(Actor(bot, "ann"))["username"] == "ann"
    assert bot.request("POST", ME, {}, headers={"Impersonate-User": "ben"}).status == 403


def test_impersonation_can_be_confined_to_one_action(bot: Plain, scratch: Scratch) -> None:
    who = rule("impersonate:user-info", "users", "authentication.k8s.io", names=["ann"])
    grant(scratch, bot_account(scratch), who, cluster_wide=True)
    grant(scratch, bot_account(scratch), rule("impersonate-on:user-info:list", "configmaps"))
    grant(scratch, subject("ann"), rule("list", "configmaps pods"))
    configmaps, pods = (f"/api/v1/namespaces/{scratch.namespace}/{what}" for what in ("configmaps", "pods"))
    assert Actor(bot, "ann").request("GET", configmaps).status == 200
    assert Actor(bot, "ann").request("GET", pods).status == 403


def test_each_impersonated_group_needs_the_permission(bot: Plain, scratch: Scratch) -> None:
    users, groups = rule("impersonate", "users"), rule("impersonate", "groups", names=["red"])
    grant(scratch, bot_account(scratch), users, groups, cluster_wide=True)
    assert whoami(Actor(bot, "ann", group="red"))["groups"] == ["red", "system:authenticated"]
    code, _, message = refusal(
        bot.request("POST", ME, {}, headers={"Impersonate-User": "ann", "Impersonate-Group": "blue"})
    )
    assert code == 403
    assert message.startswith('groups "blue" is forbidden')


def test_impersonating_a_service_account_is_a_permission_in_its_namespace(
    bot: Plain, scratch: Scratch
) -> None:
    grant(scratch, bot_account(scratch), rule("impersonate", "serviceaccounts"))
    there, elsewhere = (f"system:serviceaccount:{place}:bot" for place in (scratch.namespace, "default"))
    assert whoami(Actor(bot, there))["username"] == there
    code, _, message = refusal(bot.request("POST", ME, {}, headers={"Impersonate-User": elsewhere}))
    assert code == 403
    assert message.startswith('serviceaccounts "bot" is forbidden')


def test_each_impersonated_extra_needs_the_permission(bot: Plain, scratch: Scratch) -> None:
    extra = rule("impersonate", "userextras/team", "authentication.k8s.io", names=["red"])
    grant(scratch, bot_account(scratch), rule("impersonate", "users"), extra, cluster_wide=True)
    headers = {"Impersonate-User": "ann", "Impersonate-Extra-Team": "red"}
    assert bot.request("POST", ME, {}, headers=headers).json()["status"]["userInfo"]["extra"] == {
        "team": ["red"]
    }
    assert bot.request("POST", ME, {}, headers=headers | {"Impersonate-Extra-Team": "blue"}).status == 403


def test_system_masters_cannot_be_impersonated_with_the_permission_for_users_alone(
    bot: Plain, scratch: Scratch
) -> None:
    grant(scratch, bot_account(scratch), rule("impersonate", "users"), cluster_wide=True)
    headers = {"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}
    assert bot.request("GET", "/api/v1/nodes", headers=headers).status == 403


def test_what_an_impersonated_user_may_do_is_decided_for_that_user(plain: Plain, namespace: str) -> None:
    answer = Actor(plain, "ann").request("GET", f"/api/v1/namespaces/{namespace}/pods")
    what = f'cannot list resource "pods" in API group "" in the namespace "{namespace}"'
    assert refusal(answer) == (403, "Forbidden", f'pods is forbidden: User "ann" {what}')


@pytest.mark.kubectl
def test_kubectl_acts_as_somebody_else(kubectl: Kubectl) -> None:
    user = kubectl.json("auth", "whoami", "--as=ann", "--as-group=red", "--as-uid=7")["status"]["userInfo"]
    assert user == {"username": "ann", "uid": "7", "groups": ["red", "system:authenticated"]}
