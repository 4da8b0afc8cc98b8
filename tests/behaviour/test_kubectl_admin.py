"""kubectl: who may do what, nodes and certificates"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from behaviour.manifests import widget, widgets
from behaviour.scratch import named
from behaviour.subjects import RBAC_V1, binding, role, rule, subject
from behaviour.support import eventually
from harness.kubectl import Kubectl

pytestmark = pytest.mark.kubectl

Object = dict[str, Any]


# --- access ---------------------------------------------------------------------------------------------


@pytest.fixture
def bob(kubectl: Kubectl, namespace: str) -> str:
    """A user who may get and list Pods in the test's namespace, and nothing else."""
    user = f"bob-{namespace}"
    kubectl.run("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl.run("create", "rolebinding", "reader", "--role=reader", f"--user={user}")
    eventually(lambda: kubectl.run("auth", "can-i", "get", "pods", "--as", user, expect=None).code == 0)
    return user


def test_can_i_answers_for_oneself_and_for_others(kubectl: Kubectl, bob: str) -> None:
    def answer(*args: str, expect: int) -> str:
        return kubectl.run("auth", "can-i", *args, expect=expect).stdout

    assert answer("create", "pods", expect=0) == "yes\n"
    assert answer("*", "*", "--all-namespaces", expect=0) == "yes\n"
    assert answer("list", "pods", "--as", bob, expect=0) == "yes\n"
    assert answer("delete", "pods", "--as", bob, expect=1) == "no\n"
    assert answer("get", "pods", "--as", bob, "-A", expect=1) == "no\n"
    assert answer("get", "pods", "--subresource=log", "--as", bob, expect=1) == "no\n"
    assert answer("get", "/healthz", "--as", bob, expect=0) == "yes\n"
    assert answer("get", "/metrics", "--as", bob, expect=1) == "no\n"


def test_can_i_warns_of_a_resource_that_is_not_there(kubectl: Kubectl) -> None:
    asked = kubectl.run("auth", "can-i", "get", "nosuch")
    assert asked.stdout == "yes\n"
    assert asked.stderr == "Warning: the server doesn't have a resource type 'nosuch'\n\n"


def test_can_i_list_shows_every_rule(kubectl: Kubectl, bob: str) -> None:
    lines = kubectl.run("auth", "can-i", "--list", "--as", bob, "--no-headers").stdout.splitlines()
    rules = [" ".join(line.split()) for line in lines]
    assert "pods [] [] [get list]" in rules
    assert "selfsubjectreviews.authentication.k8s.io [] [] [create]" in rules
    assert "[/api/*] [] [get]" in rules
    assert "*.* [] [] [*]" not in rules
    everything = kubectl.run("auth", "can-i", "--list", "--no-headers").stdout
    assert "*.* [] [] [*]" in [" ".join(line.split()) for line in everything.splitlines()]


def test_whoami_names_the_user_and_groups(kubectl: Kubectl) -> None:
    me = kubectl.json("auth", "whoami")["status"]["userInfo"]
    assert "system:masters" in me["groups"]
    other = kubectl.run("auth", "whoami", "--as=bob", "--as-group=g1", "--as-uid=u1").stdout
    assert [line.split(maxsplit=1) for line in other.splitlines()] == [
        ["ATTRIBUTE", "VALUE"],
        ["Username", "bob"],
        ["UID", "u1"],
        ["Groups", "[g1 system:authenticated]"],
    ]


def test_what_a_user_may_not_do_is_forbidden_with_the_reason(
    kubectl: Kubectl, bob: str, namespace: str
) -> None:
    def refused(*args: str) -> str:
        return kubectl.run(*args, "--as", bob, expect=1).stderr

    assert kubectl.run("get", "pods", "--as", bob).code == 0
    start = "Error from server (Forbidden): "
    assert refused("delete", "pod", "p") == (
        f'{start}pods "p" is forbidden: User "{bob}" cannot delete resource "pods" in API group "" '
        f'in the namespace "{namespace}"\n'
    )
    assert refused("get", "pods", "-A") == (
        f'{start}pods is forbidden: User "{bob}" cannot list resource "pods" in API group "" '
        "at the cluster scope\n"
    )
    assert refused("get", "deployments") == (
        f'{start}deployments.apps is forbidden: User "{bob}" cannot list resource "deployments" in API group '
        f'"apps" in the namespace "{namespace}"\n'
    )


def test_a_user_cannot_grant_what_he_does_not_have(kubectl: Kubectl, bob: str, namespace: str) -> None:
    kubectl.run("create", "role", "granter", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
    kubectl.run("create", "rolebinding", "granter", "--role=granter", f"--user={bob}")
    asked = ("auth", "can-i", "create", "roles", "--as", bob)
    eventually(lambda: kubectl.run(*asked, expect=None).code == 0)
    may = ("--verb=get", "--resource=pods", "--as", bob)
    assert kubectl.run("create", "role", "less", *may).code == 0
    more = ("--verb=get", "--resource=secrets", "--as", bob)
    refused = kubectl.run("create", "role", "more", *more, expect=1).stderr
    assert "is attempting to grant RBAC permissions not currently held" in refused
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in refused


def test_reconcile_adds_what_is_missing_and_keeps_the_rest(kubectl: Kubectl, namespace: str) -> None:
    def reconcile(*objects: Object, flags: tuple[str, ...] = ()) -> list[str]:
        for obj in objects:
            obj["metadata"]["namespace"] = namespace
        manifest = yaml.safe_dump_all(objects)
        return kubectl.run("auth", "reconcile", "-f", "-", *flags, input=manifest).stdout.splitlines()

    done = reconcile(role("r", rule("get", "pods")), binding("rb", ("Role", "r"), subject("bob")))
    assert [line for line in done if "reconciled" in line] == [
        "role.rbac.authorization.k8s.io/r reconciled",
        "rolebinding.rbac.authorization.k8s.io/rb reconciled",
    ]
    reconcile(role("r", rule("list", "services")))
    resources = [r["resources"] for r in kubectl.json("get", "role", "r")["rules"]]
    assert resources == [["pods"], ["services"]]
    reconcile(role("r", rule("list", "services")), flags=("--remove-extra-permissions",))
    assert [r["resources"] for r in kubectl.json("get", "role", "r")["rules"]] == [["services"]]
    assert kubectl.json("get", "role", "r")["apiVersion"] == RBAC_V1


# --- nodes ----------------------------------------------------------------------------------------------


@pytest.fixture
def node(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A Node that nobody looks after."""
    name = f"{namespace}-node"
    kubectl.run("create", "-f", "-", input=named("Node", "v1", name))
    # The real control plane marks a new node as not ready; other taints are the test's own.
    yield name
    kubectl.run("delete", "node", name)


def taints(kubectl: Kubectl, node: str) -> set[tuple[str, str, str]]:
    """The taints of a node with the keys that a test uses."""
    found = kubectl.json("get", "node", node)["spec"].get("taints", [])
    return {(t["key"], t.get("value", ""), t["effect"]) for t in found if t["key"] == "k"}


def test_taint_adds_guards_overwrites_and_removes(kubectl: Kubectl, node: str) -> None:
    assert kubectl.run("taint", "node", node, "k=v:NoSchedule").stdout == f"node/{node} tainted\n"
    refused = kubectl.run("taint", "node", node, "k=v2:NoSchedule", expect=1).stderr
    assert refused == (
        f"error: node {node} already has k taint(s) with same effect(s) and --overwrite is false\n"
    )
    kubectl.run("taint", "node", node, "k=v2:NoSchedule", "--overwrite")
    assert taints(kubectl, node) == {("k", "v2", "NoSchedule")}
    assert kubectl.run("taint", "node", node, "k-").stdout == f"node/{node} untainted\n"
    assert taints(kubectl, node) == set()
    assert kubectl.run("taint", "node", node, "k-", expect=1).stderr == 'error: taint "k" not found\n'


def test_cordon_and_uncordon_close_and_open_a_node(kubectl: Kubectl, node: str) -> None:
    assert kubectl.run("cordon", node).stdout == f"node/{node} cordoned\n"
    assert kubectl.run("cordon", node).stdout == f"node/{node} already cordoned\n"
    assert kubectl.json("get", "node", node)["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in kubectl.run("get", "node", node).stdout
    assert kubectl.run("uncordon", node).stdout == f"node/{node} uncordoned\n"
    assert "unschedulable" not in kubectl.json("get", "node", node)["spec"]


def test_drain_of_an_empty_node_cordons_it(kubectl: Kubectl, node: str) -> None:
    drained = kubectl.run("drain", node, "--timeout=10s").stdout
    assert drained == f"node/{node} cordoned\nnode/{node} drained\n"


# --- certificates ---------------------------------------------------------------------------------------


@pytest.fixture
def signing_request(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A CertificateSigningRequest for a client certificate that waits for approval."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    pem = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "example.com/nobody-signs",
        "usages": ["client auth"],
    }
    request = named("CertificateSigningRequest", "certificates.k8s.io/v1", f"{namespace}-csr", spec=spec)
    kubectl.run("create", "-f", "-", input=request)
    yield f"{namespace}-csr"
    kubectl.run("delete", "csr", f"{namespace}-csr")


def test_certificate_approve_approves_once_and_for_all(kubectl: Kubectl, signing_request: str) -> None:
    me = kubectl.json("auth", "whoami")["status"]["userInfo"]
    waiting = kubectl.json("get", "csr", signing_request)
    assert waiting["spec"]["username"] == me["username"]
    assert set(me["groups"]) == set(waiting["spec"]["groups"])
    assert "Pending" in kubectl.run("get", "csr", signing_request).stdout
    approved = kubectl.run("certificate", "approve", signing_request).stdout
    assert approved == f"certificatesigningrequest.certificates.k8s.io/{signing_request} approved\n"
    (condition,) = kubectl.json("get", "csr", signing_request)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Approved",
        "True",
        "KubectlApprove",
    )
    assert condition["lastTransitionTime"]
    refused = kubectl.run("certificate", "deny", signing_request, expect=1).stderr
    assert refused == f'error: certificate signing request "{signing_request}" is already Approved\n'


def test_certificate_deny_denies(kubectl: Kubectl, signing_request: str) -> None:
    denied = kubectl.run("certificate", "deny", signing_request).stdout
    assert denied == f"certificatesigningrequest.certificates.k8s.io/{signing_request} denied\n"
    assert "Denied" in kubectl.run("get", "csr", signing_request).stdout


# --- a definition from start to end ---------------------------------------------------------------------


def test_a_custom_kind_lives_and_dies_through_kubectl(kubectl: Kubectl, namespace: str) -> None:
    group = f"{namespace[:40]}.example.com"
    definition = f"customresourcedefinition.apiextensions.k8s.io/widgets.{group}"
    applied = kubectl.run("apply", "-f", "-", input=widgets(group)).stdout
    assert applied == f"{definition} created\n"
    kubectl.run("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=20s")
    made = eventually(lambda: attempted(kubectl, widget(group, "w", size=1)))
    assert made == f"widget.{group}/w created\n"
    assert kubectl.run("get", f"widgets.{group}", "-o", "name").stdout == f"widget.{group}/w\n"
    kubectl.run("delete", "crd", f"widgets.{group}")
    gone = kubectl.run("get", f"widgets.{group}", expect=1).stderr
    assert 'the server doesn\'t have a resource type "widgets"' in gone or "could not find" in gone


def attempted(kubectl: Kubectl, obj: Object) -> str:
    """What `create` prints, or nothing if it failed: discovery may lag behind a new definition."""
    return kubectl.run("create", "-f", "-", input=json.dumps(obj), expect=None).stdout
