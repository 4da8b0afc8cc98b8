"""RBAC: roles, bindings, aggregation and escalation."""

from __future__ import annotations

from typing import Any

import pytest

from behaviour.scratch import Scratch, named
from behaviour.subjects import (
    RBAC,
    RBAC_V1,
    Actor,
    binding,
    cluster_role,
    grant,
    may,
    review,
    role,
    rule,
    subject,
)
from behaviour.support import causes, eventually, refusal
from harness.kubectl import Kubectl
from harness.plain import Plain

Object = dict[str, Any]
ANN = subject("ann")


@pytest.fixture
def ann(plain: Plain) -> Actor:
    """A user who may do what the test grants."""
    return Actor(plain, "ann")


def allowed(server: Plain, who: Object, namespace: str, wanted: str) -> bool:
    """Whether somebody may do `verb [group/]resource[/subresource] [name]`; an empty namespace means all."""
    verb, resource, name = [*wanted.split(), ""][:3]
    group, _, resource = resource.rpartition(":")
    resource, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name}
    return may(server, who, asked | {"namespace": namespace})


@pytest.mark.parametrize(
    ("given", "yes", "no"),
    [
        (rule("get", "pods"), ["get pods", "get pods p"], ["list pods", "get pods/log", "get secrets"]),
        (rule("get", "pods/log"), ["get pods/log p"], ["get pods p", "create pods/log p"]),
        (rule("*", "pods"), ["get pods", "deletecollection pods", "shout pods"], ["get pods/log"]),
        (rule("get", "*"), ["get pods", "get pods/log", "get anything"], ["get apps:deployments"]),
        (rule("get", "*/scale", "apps"), ["get apps:deployments/scale"], ["get apps:deployments"]),
        (rule("get", "deployments", "*"), ["get apps:deployments", "get deployments"], ["get apps:pods"]),
        (
            rule("get update", "pods", names=["a", "b"]),
            ["get pods a", "update pods b"],
            ["get pods c", "get pods"],
        ),
        (rule("list", "pods", names=["a"]), ["list pods a"], ["list pods"]),
        (rule("get", "Pods"), [], ["get pods"]),
        (rule("get", "deployments", "apps extensions"), ["get extensions:deployments"], ["get deployments"]),
    ],
    ids=lambda value: "".join(value["verbs"] + value["resources"]) if isinstance(value, dict) else "",
)
def test_a_rule_allows_what_it_says_and_no_more(
    scratch: Scratch, given: Object, yes: list[str], no: list[str]
) -> None:
    grant(scratch, ANN, given)
    answers = {wanted: allowed(scratch.plain, ANN, scratch.namespace, wanted) for wanted in yes + no}
    assert answers == {wanted: wanted in yes for wanted in yes + no}


def test_a_request_is_allowed_once_it_is_granted(scratch: Scratch, ann: Actor) -> None:
    pods = f"/api/v1/namespaces/{scratch.namespace}/pods"
    what = f'User "ann" cannot list resource "pods" in API group "" in the namespace "{scratch.namespace}"'
    assert refusal(ann.request("GET", pods)) == (403, "Forbidden", f"pods is forbidden: {what}")
    grant(scratch, ANN, rule("list", "pods"))
    assert ann.request("GET", pods).status == 200
    assert ann.request("GET", f"{pods}?watch=1&timeoutSeconds=1").status == 403
    assert ann.request("GET", "/api/v1/pods").status == 403


def test_a_binding_that_goes_takes_the_permission_along(scratch: Scratch, ann: Actor) -> None:
    scratch.create(role("reader", rule("list", "pods")))
    bound = scratch.create(binding("reader", ("Role", "reader"), ANN))
    pods = f"/api/v1/namespaces/{scratch.namespace}/pods"
    eventually(lambda: ann.request("GET", pods).status == 200)
    scratch.delete(bound)
    eventually(lambda: ann.request("GET", pods).status == 403)


@pytest.mark.parametrize(
    "who",
    [
        subject("ann"),
        subject("red", "Group"),
        subject("system:authenticated", "Group"),
        subject("system:serviceaccounts", "Group"),
        {"kind": "ServiceAccount", "name": "bot", "namespace": "left"},
    ],
    ids=lambda who: f"{who['kind']} {who['name']}",
)
def test_a_binding_is_for_users_groups_or_service_accounts(scratch: Scratch, who: Object) -> None:
    grant(scratch, who, rule("get", "pods"))
    users = [Actor(scratch.plain, "ann", group="red"), Actor(scratch.plain, "system:serviceaccount:left:bot")]
    pod = f"/api/v1/namespaces/{scratch.namespace}/pods/none"
    answers = [user.request("GET", pod).status for user in users]
    expected = {
        "ann": [404, 403],
        "red": [404, 403],
        "system:authenticated": [404, 404],
        "system:serviceaccounts": [403, 404],
        "bot": [403, 404],
    }
    assert answers == expected[who["name"]]


def test_a_cluster_role_bound_in_a_namespace_counts_only_there(scratch: Scratch) -> None:
    name = f"{scratch.namespace}-reader"
    scratch.create(cluster_role(name, rule("get", "pods nodes")))
    scratch.create(binding("reader", ("ClusterRole", name), ANN))
    eventually(lambda: allowed(scratch.plain, ANN, scratch.namespace, "get pods"))
    assert not allowed(scratch.plain, ANN, "default", "get pods")
    assert not allowed(scratch.plain, ANN, "", "get pods")
    assert not allowed(scratch.plain, ANN, "", "get nodes")


def test_a_cluster_role_binding_counts_everywhere(scratch: Scratch) -> None:
    who = subject(f"{scratch.namespace}-pat")
    grant(scratch, who, rule("get", "pods nodes"), cluster_wide=True)
    for namespace in (scratch.namespace, "default", ""):
        assert allowed(scratch.plain, who, namespace, "get pods")
    assert allowed(scratch.plain, who, "", "get nodes")


def test_a_cluster_role_can_open_paths(scratch: Scratch) -> None:
    who = subject(f"{scratch.namespace}-pat")
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}
    grant(scratch, who, paths, cluster_wide=True)

    def asked(verb: str, path: str) -> bool:
        spec = {"user": who["name"], "nonResourceAttributes": {"verb": verb, "path": path}}
        return bool(review(scratch.plain, "SubjectAccessReview", spec)["allowed"])

    assert asked("get", "/metrics")
    assert asked("get", "/logs/a/b")
    assert not asked("get", "/logs")
    assert not asked("get", "/metrics/cadvisor")
    assert not asked("post", "/metrics")


def test_a_binding_to_a_role_that_is_not_there_allows_nothing_and_says_so(
    scratch: Scratch, ann: Actor
) -> None:
    scratch.create(binding("dangling", ("Role", "absent"), ANN))
    pods = f"/api/v1/namespaces/{scratch.namespace}/pods"
    missing = f'RBAC: role.{RBAC} "absent" not found'
    message = eventually(lambda: _message_with(ann, pods, missing))
    what = f'User "ann" cannot list resource "pods" in API group "" in the namespace "{scratch.namespace}"'
    assert message == f"pods is forbidden: {what}: {missing}"


def _message_with(actor: Actor, path: str, text: str) -> str:
    message = refusal(actor.request("GET", path))[2]
    return message if text in message else ""


def test_a_role_made_after_its_binding_counts(scratch: Scratch) -> None:
    scratch.create(binding("early", ("Role", "late"), ANN))
    scratch.create(role("late", rule("get", "pods")))
    assert eventually(lambda: allowed(scratch.plain, ANN, scratch.namespace, "get pods"))


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        (
            "admin",
            [
                "create pods",
                "create rbac.authorization.k8s.io:roles",
                "delete apps:deployments",
                "get secrets",
            ],
            [
                "update resourcequotas",
                "update namespaces",
                "get nodes",
                "create certificates.k8s.io:certificatesigningrequests",
            ],
        ),
        (
            "edit",
            ["create pods", "update apps:deployments/scale", "get secrets", "create serviceaccounts/token"],
            ["get rbac.authorization.k8s.io:roles", "update resourcequotas", "update namespaces/finalize"],
        ),
        (
            "view",
            ["list pods", "watch apps:deployments", "get pods/log", "get resourcequotas"],
            ["get secrets", "create pods", "get rbac.authorization.k8s.io:roles", "create pods/exec"],
        ),
    ],
)
def test_the_roles_for_users_allow_the_usual_in_a_namespace(
    scratch: Scratch, name: str, yes: list[str], no: list[str]
) -> None:
    scratch.create(binding(name, ("ClusterRole", name), ANN))
    eventually(lambda: allowed(scratch.plain, ANN, scratch.namespace, yes[0]))
    answers = {wanted: allowed(scratch.plain, ANN, scratch.namespace, wanted) for wanted in yes + no}
    assert answers == {wanted: wanted in yes for wanted in yes + no}
    assert not allowed(scratch.plain, ANN, "default", yes[0])


def test_a_namespaced_administrator_works_in_the_namespace_and_not_outside(
    scratch: Scratch, ann: Actor
) -> None:
    scratch.create(binding("admin", ("ClusterRole", "admin"), ANN))
    here = f"/api/v1/namespaces/{scratch.namespace}"
    config = named("ConfigMap", "v1", "c")
    eventually(lambda: ann.request("POST", f"{here}/configmaps", config).status == 201)
    shared = binding("view", ("ClusterRole", "view"), subject("ben"))
    assert (
        ann.request("POST", f"/apis/{RBAC_V1}/namespaces/{scratch.namespace}/rolebindings", shared).status
        == 201
    )
    assert ann.request("DELETE", here).status == 403
    assert ann.request("POST", "/api/v1/namespaces/default/configmaps", config).status == 403
    assert ann.request("POST", "/api/v1/namespaces", named("Namespace", "v1", "x")).status == 403


def test_what_is_labelled_so_is_added_to_admin_edit_and_view(scratch: Scratch) -> None:
    labelled = cluster_role(
        f"{scratch.namespace}-extra", rule("get", "things", f"{scratch.namespace}.example")
    )
    labelled["metadata"]["labels"] = {f"{RBAC}/aggregate-to-view": "true"}
    scratch.create(labelled)
    for name in ("view", "edit", "admin"):
        eventually(lambda name=name: labelled["rules"][0] in rules_of(scratch, name))  # type: ignore[misc]
    scratch.delete(labelled)
    for name in ("view", "edit", "admin"):
        eventually(lambda name=name: labelled["rules"][0] not in rules_of(scratch, name))  # type: ignore[misc]


def rules_of(scratch: Scratch, name: str) -> list[Object]:
    found: list[Object] = scratch.read(cluster_role(name)).get("rules") or []
    return found


def test_an_aggregated_role_follows_the_roles_it_selects(scratch: Scratch) -> None:
    prefix, label = scratch.namespace, {"part-of": scratch.namespace}
    whole = cluster_role(f"{prefix}-whole", rule("get", "overwritten"))
    whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": label}]}
    parts = [cluster_role(f"{prefix}-{name}", rule("get", name)) for name in ("a", "b")]
    for part in parts:
        part["metadata"]["labels"] = label
        scratch.create(part)
    scratch.create(whole)
    eventually(lambda: rules_of(scratch, f"{prefix}-whole") == [rule("get", "a"), rule("get", "b")])
    scratch.patch(parts[0], {"rules": [rule("list", "a")]})
    eventually(lambda: rules_of(scratch, f"{prefix}-whole") == [rule("list", "a"), rule("get", "b")])
    scratch.delete(parts[1])
    eventually(lambda: rules_of(scratch, f"{prefix}-whole") == [rule("list", "a")])


def roles_path(namespace: str, kind: str = "roles") -> str:
    return f"/apis/{RBAC_V1}/namespaces/{namespace}/{kind}"


def test_nobody_can_grant_what_they_have_not_got(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("create update", "roles", RBAC), rule("get", "pods"))
    answer = ann.request(
        "POST", roles_path(scratch.namespace), role("more", rule("get list", "pods secrets"))
    )
    lacking = (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "ann" (groups=["system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )
    assert refusal(answer) == (403, "Forbidden", lacking)
    assert ann.request("POST", roles_path(scratch.namespace), role("same", rule("get", "pods"))).status == 201


def test_a_role_cannot_be_made_stronger_than_its_writer(scratch: Scratch, ann: Actor) -> None:
    scratch.create(role("mine", rule("get", "pods")))
    grant(scratch, ANN, rule("get patch update", "roles", RBAC), rule("get", "pods"))
    path, kind = f"{roles_path(scratch.namespace)}/mine", {"Content-Type": "application/merge-patch+json"}
    stronger = {"rules": [rule("get", "pods"), rule("get", "secrets")]}
    assert ann.request("PATCH", path, stronger, headers=kind).status == 403
    assert ann.request("PATCH", path, {"rules": []}, headers=kind).status == 200


def test_the_verb_escalate_lifts_the_limit(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("create escalate", "roles", RBAC))
    answer = ann.request("POST", roles_path(scratch.namespace), role("more", rule("*", "*", "*")))
    assert answer.status == 201


def test_only_a_role_one_holds_can_be_bound(scratch: Scratch, ann: Actor) -> None:
    scratch.create(role("strong", rule("get", "secrets")))
    grant(scratch, ANN, rule("create", "rolebindings", RBAC))
    path = roles_path(scratch.namespace, "rolebindings")
    answer = ann.request("POST", path, binding("mine", ("Role", "strong"), ANN))
    lacking = (
        'rolebindings.rbac.authorization.k8s.io "mine" is forbidden: user "ann" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )
    assert refusal(answer) == (403, "Forbidden", lacking)


def test_the_verb_bind_allows_binding_a_stronger_role(scratch: Scratch, ann: Actor) -> None:
    scratch.create(role("strong", rule("get", "secrets")))
    scratch.create(role("other", rule("get", "secrets")))
    grant(scratch, ANN, rule("create", "rolebindings", RBAC), rule("bind", "roles", RBAC, names=["strong"]))
    path = roles_path(scratch.namespace, "rolebindings")
    assert ann.request("POST", path, binding("mine", ("Role", "strong"), subject("ben"))).status == 201
    assert ann.request("POST", path, binding("second", ("Role", "other"), subject("ben"))).status == 403


def test_a_binding_to_a_role_that_is_not_there_needs_the_verb_bind(scratch: Scratch, ann: Actor) -> None:
    grant(scratch, ANN, rule("create", "rolebindings", RBAC))
    path = roles_path(scratch.namespace, "rolebindings")
    answer = ann.request("POST", path, binding("mine", ("Role", "absent"), ANN))
    assert answer.status == 404


def test_only_a_cluster_administrator_writes_aggregation_rules(scratch: Scratch) -> None:
    who = subject(f"{scratch.namespace}-pat")
    grant(scratch, who, rule("create", "clusterroles", RBAC), cluster_wide=True)
    whole = cluster_role(f"{scratch.namespace}-whole")
    whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    answer = Actor(scratch.plain, who["name"]).request("POST", f"/apis/{RBAC_V1}/clusterroles", whole)
    code, _, message = refusal(answer)
    assert code == 403
    assert message.endswith("must have cluster-admin privileges to use the aggregationRule")


def test_the_role_of_a_binding_cannot_change(scratch: Scratch) -> None:
    bound = scratch.create(binding("b", ("Role", "one"), ANN))
    bound["roleRef"]["name"] = "two"
    answer = scratch.replace(bound)
    shown = '{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"two"}'
    text = f"Invalid value: {shown}: cannot change roleRef"
    assert answer.status == 422
    assert causes(answer) == [("roleRef", "FieldValueInvalid", text)]


def test_the_subjects_of_a_binding_can_change(scratch: Scratch) -> None:
    bound = scratch.create(binding("b", ("Role", "one"), ANN))
    answer = scratch.patch(bound, {"subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]})
    assert answer.json()["subjects"] == [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("ClusterRole", "clusterroles/cluster-admin"),
        ("ClusterRole", "clusterroles/system:discovery"),
        ("ClusterRole", "clusterroles/system:controller:generic-garbage-collector"),
        ("ClusterRoleBinding", "clusterrolebindings/cluster-admin"),
        ("ClusterRoleBinding", "clusterrolebindings/system:basic-user"),
        ("Role", "namespaces/kube-system/roles/extension-apiserver-authentication-reader"),
        ("RoleBinding", "namespaces/kube-public/rolebindings/system:controller:bootstrap-signer"),
    ],
)
def test_a_cluster_starts_with_its_default_roles(plain: Plain, kind: str, path: str) -> None:
    found = plain.request("GET", f"/apis/{RBAC_V1}/{path}").json()
    assert found["kind"] == kind
    assert found["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert found["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "true"


def test_the_administrators_group_is_above_rbac(plain: Plain) -> None:
    decision = review(
        plain,
        "SubjectAccessReview",
        {"user": "x", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "any", "path": "/any"}},
    )
    assert decision["allowed"]


@pytest.mark.kubectl
def test_kubectl_tells_what_somebody_may_do(kubectl: Kubectl) -> None:
    kubectl.run("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps")
    kubectl.run("create", "rolebinding", "reader", "--role=reader", "--user=ann")
    eventually(lambda: kubectl.run("auth", "can-i", "list", "pods", "--as=ann", expect=None).code == 0)
    assert kubectl.run("auth", "can-i", "delete", "pods", "--as=ann", expect=1).stdout == "no\n"
    listed = kubectl.run("auth", "can-i", "--list", "--as=ann").stdout
    assert "deployments.apps" in listed


@pytest.mark.kubectl
def test_kubectl_reconciles_a_role(kubectl: Kubectl, scratch: Scratch) -> None:
    scratch.create(role("reader", rule("get", "pods")))
    wanted = role("reader", rule("get", "pods"), rule("list", "pods"))
    wanted["metadata"]["namespace"] = scratch.namespace
    kubectl.run("auth", "reconcile", "-f", "-", input=wanted)
    assert scratch.read(wanted)["rules"] == [rule("get", "pods"), rule("list", "pods")]


@pytest.mark.kubectl
def test_kubectl_creates_an_aggregated_role(kubectl: Kubectl, scratch: Scratch) -> None:
    name = f"{scratch.namespace}-whole"
    kubectl.run("create", "clusterrole", name, f"--aggregation-rule=part-of={scratch.namespace}")
    part = cluster_role(f"{scratch.namespace}-part", rule("get", "pods"))
    part["metadata"]["labels"] = {"part-of": scratch.namespace}
    scratch.create(part)
    eventually(lambda: rules_of(scratch, name) == part["rules"])
    kubectl.run("delete", "clusterrole", name)
