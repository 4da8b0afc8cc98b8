from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.access.memory import Roles
from podium.apiserver.access import bootstrap, rules
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.bootstrap import Action
from podium.apiserver.access.identity import NOBODY, Identity
from podium.apiserver.access.rbac import Rbac

Object = dict[str, Any]
Key = tuple[str, str, str]
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"


def key(found: Object) -> Key:
    return found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]


@pytest.fixture
def cluster() -> dict[Key, Object]:
    """A cluster that has just been started for the first time."""
    return {key(found): found for found in bootstrap.objects()}


def pending(cluster: dict[Key, Object]) -> list[bootstrap.Write]:
    return list(bootstrap.pending(lambda *wanted: cluster.get(wanted)))


def test_the_first_start_makes_everything_and_the_second_nothing(cluster: dict[Key, Object]) -> None:
    writes = pending({})
    assert {write.action for write in writes} == {Action.CREATE}
    assert len(writes) == len(cluster) == 133
    assert pending(cluster) == []


def test_what_was_deleted_comes_back(cluster: dict[Key, Object]) -> None:
    lost = cluster.pop(("ClusterRole", "", "view"))
    assert pending(cluster) == [(Action.CREATE, lost)]


def test_missing_rules_are_added_and_extra_ones_kept(cluster: dict[Key, Object]) -> None:
    role = copy.deepcopy(cluster["ClusterRole", "", "system:basic-user"])
    lost, extra = role["rules"].pop(), {"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}
    role["rules"].append(extra)
    role["metadata"]["labels"]["mine"] = "yes"
    cluster[key(role)] = role
    ((action, written),) = pending(cluster)
    assert action is Action.UPDATE
    assert extra in written["rules"]
    assert not rules.uncovered(rules.parse_all(written), [rules.parse(lost)])
    assert written["metadata"]["labels"]["mine"] == "yes"
    assert pending({**cluster, key(role): written}) == []


def test_missing_subjects_are_added(cluster: dict[Key, Object]) -> None:
    binding = copy.deepcopy(cluster["ClusterRoleBinding", "", "system:discovery"])
    binding["subjects"] = [{"kind": "User", "name": "mine"}]
    cluster[key(binding)] = binding
    ((action, written),) = pending(cluster)
    assert action is Action.UPDATE
    assert [subject["name"] for subject in written["subjects"]] == ["mine", "system:authenticated"]


def test_a_binding_to_another_role_is_replaced(cluster: dict[Key, Object]) -> None:
    wanted = cluster["ClusterRoleBinding", "", "cluster-admin"]
    other = copy.deepcopy(wanted)
    other["roleRef"]["name"] = "view"
    assert pending({**cluster, key(other): other}) == [(Action.REPLACE, wanted)]


def test_what_opted_out_is_left_alone(cluster: dict[Key, Object]) -> None:
    role = copy.deepcopy(cluster["ClusterRole", "", "system:basic-user"])
    role["rules"] = []
    role["metadata"]["annotations"][AUTOUPDATE] = "false"
    assert pending({**cluster, key(role): role}) == []


def test_the_rules_that_aggregation_filled_in_are_not_touched(cluster: dict[Key, Object]) -> None:
    for name, found in rules.aggregate_all(
        [o for o in cluster.values() if o["kind"] == "ClusterRole"]
    ).items():
        cluster["ClusterRole", "", name] = {**cluster["ClusterRole", "", name], "rules": found}
    assert pending(cluster) == []


@pytest.fixture
def rbac(cluster: dict[Key, Object]) -> Rbac:
    store = Roles(*cluster.values())
    for name, found in rules.aggregate_all(
        [o for o in cluster.values() if o["kind"] == "ClusterRole"]
    ).items():
        store.add({**cluster["ClusterRole", "", name], "rules": found})
    reference = {"apiGroup": "rbac.authorization.k8s.io"}
    for name in ("admin", "edit", "view"):
        store.add(
            {
                "kind": "RoleBinding",
                "metadata": {"name": name, "namespace": "ns"},
                "roleRef": {**reference, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "name": name}],
            }
        )
    return Rbac(store)


@pytest.mark.parametrize(
    ("who", "verb", "resource", "allowed"),
    [
        ("view", "list", "pods", True),
        ("view", "get", "pods/log", True),
        ("view", "create", "pods", False),
        ("view", "get", "secrets", False),
        ("edit", "create", "pods", True),
        ("edit", "get", "secrets", True),
        ("edit", "create", "rolebindings.rbac.authorization.k8s.io", False),
        ("admin", "create", "rolebindings.rbac.authorization.k8s.io", True),
        ("admin", "delete", "deployments.apps", True),
        ("admin", "update", "nodes", False),
    ],
)
def test_the_user_facing_roles_mean_what_they_say(
    rbac: Rbac, who: str, verb: str, resource: str, allowed: bool
) -> None:
    plain, _, group = resource.partition(".")
    plain, _, subresource = plain.partition("/")
    question = Attributes(
        Identity(who), verb, group=group, resource=plain, subresource=subresource, namespace="ns"
    )
    assert rbac.decide(question).allowed is allowed


@pytest.mark.parametrize(
    ("path", "anonymous", "authenticated"),
    [
        ("/healthz", True, True),
        ("/livez", True, True),
        ("/readyz", True, True),
        ("/version", True, True),
        ("/api", False, True),
        ("/openapi/v3", False, True),
        ("/metrics", False, False),
    ],
)
def test_what_can_be_read_without_any_role(
    rbac: Rbac, path: str, anonymous: bool, authenticated: bool
) -> None:
    somebody = Identity("somebody", groups=("system:authenticated",))
    assert rbac.decide(Attributes(NOBODY, "get", path=path)).allowed is anonymous
    assert rbac.decide(Attributes(somebody, "get", path=path)).allowed is authenticated
