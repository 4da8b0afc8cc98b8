"""Random roles, bindings and questions, answered by our RBAC and by the real server: the same answers.

Also compared: what is refused as an escalation, the default roles that a new cluster has, and, with one
signing key for both, whether each accepts the service-account tokens of the other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from apiserver.access.memory import Core, Roles
from harness.plain import Plain
from harness.real import RealControlPlane
from podium.apiserver.access import bootstrap, certificates, escalation, reviews, rules
from podium.apiserver.access.authentication import Authenticator
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.identity import AUTHENTICATED, Identity, account_groups, split_account
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.access.signing import SigningKey
from podium.apiserver.access.tokens import ServiceAccountTokens
from podium.apiserver.errors import StatusError

pytestmark = pytest.mark.real

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
KINDS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}
VERBS, GROUPS = ["get", "list", "update", "*"], ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*"]
PATHS = ["/metrics", "/logs/*", "/logs/a", "*"]
NAMES, NAMESPACES, USERS, TEAMS = ["a", "b"], ["left", "right"], ["ann", "ben"], ["red", "blue"]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The signing key that our tokens and the real server share."""
    return certificates.ensure(tmp_path_factory.mktemp("keys")).service_account_key


@pytest.fixture(scope="module")
def real(key: Path) -> Iterator[Plain]:
    """A cluster of our own, because the tests fill it with roles for everybody."""
    private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.with_suffix(".pub")
    public.write_bytes(private.public_key().public_bytes(serialization.Encoding.PEM, form))
    flags = [f"--service-account-key-file={public}", f"--service-account-signing-key-file={key}"]
    with RealControlPlane(controller_manager=False, apiserver_flags=flags) as plane:
        server = Plain(plane.kubeconfig)
        for name in NAMESPACES:
            post(server, "/api/v1/namespaces", {"metadata": {"name": name}})
        yield server


def post(server: Plain, path: str, body: Object, **headers: str) -> Object:
    answer: Object = server.request("POST", path, body, headers=headers).json()
    return answer


def path_of(found: Object) -> str:
    namespace = found["metadata"].get("namespace")
    middle = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{RBAC}/v1/{middle}{KINDS[found['kind']]}"


def some(dice: random.Random, words: list[str], most: int = 2) -> list[str]:
    return dice.sample(words, dice.randint(1, most))


def random_rule(dice: random.Random, *, paths: bool) -> Object:
    if paths and dice.random() < 0.2:
        return {"verbs": some(dice, VERBS), "nonResourceURLs": some(dice, PATHS)}
    found: Object = {
        "verbs": some(dice, VERBS),
        "apiGroups": some(dice, GROUPS),
        "resources": some(dice, RESOURCES),
    }
    return found | ({"resourceNames": some(dice, NAMES)} if dice.random() < 0.3 else {})


def random_role(dice: random.Random, number: int) -> Object:
    kind = dice.choice(["ClusterRole", "Role"])
    metadata: Object = {"name": f"role-{number}"}
    if kind == "Role":
        metadata["namespace"] = dice.choice(NAMESPACES)
    found = [random_rule(dice, paths=kind == "ClusterRole") for _ in range(dice.randint(1, 3))]
    return {"kind": kind, "apiVersion": f"{RBAC}/v1", "metadata": metadata, "rules": found}


def random_subject(dice: random.Random) -> Object:
    match dice.choice(["User", "Group", "ServiceAccount"]):
        case "User":
            return {"kind": "User", "apiGroup": RBAC, "name": dice.choice(USERS)}
        case "Group":
            return {"kind": "Group", "apiGroup": RBAC, "name": dice.choice(TEAMS)}
        case _:
            return {"kind": "ServiceAccount", "name": "bot", "namespace": dice.choice(NAMESPACES)}


def random_binding(dice: random.Random, number: int, roles: list[Object]) -> Object:
    role = dice.choice(roles)
    namespace = role["metadata"].get("namespace") or dice.choice([None, *NAMESPACES])
    reference = {"apiGroup": RBAC, "kind": role["kind"], "name": role["metadata"]["name"]}
    if dice.random() < 0.1:
        reference["name"] = "not-there"
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "apiVersion": f"{RBAC}/v1",
        "metadata": {"name": f"binding-{number}"} | ({"namespace": namespace} if namespace else {}),
        "roleRef": reference,
        "subjects": [random_subject(dice) for _ in range(dice.randint(1, 2))],
    }


def random_identity(dice: random.Random) -> Identity:
    if dice.random() < 0.3:
        return Identity(f"system:serviceaccount:{dice.choice(NAMESPACES)}:bot")
    return Identity(dice.choice(USERS), groups=tuple(dice.sample(TEAMS, dice.randint(0, 2))))


def random_question(dice: random.Random) -> Object:
    who = random_identity(dice)
    spec: Object = {"user": who.username, "groups": list(who.groups)}
    if dice.random() < 0.2:
        path = dice.choice(["/metrics", "/logs", "/logs/a", "/logs/b/c", "/x"])
        return spec | {"nonResourceAttributes": {"verb": dice.choice(["get", "delete"]), "path": path}}
    resource, _, subresource = dice.choice([*RESOURCES[:-2], "pods/scale", "jobs"]).partition("/")
    asked = {
        "verb": dice.choice(["get", "list", "update", "delete"]),
        "group": dice.choice(["", "apps", "batch"]),
        "resource": resource,
        "subresource": subresource,
        "namespace": dice.choice(["", *NAMESPACES]),
        "name": dice.choice(["", *NAMES, "c"]),
    }
    return spec | {"resourceAttributes": {key: value for key, value in asked.items() if value}}


@pytest.fixture(scope="module")
def filled(real: Plain) -> Rbac:
    """Sixty random roles and bindings in the real server, and our RBAC with those and the default ones."""
    dice = random.Random(7)
    roles = [random_role(dice, number) for number in range(25)]
    added = [*roles, *(random_binding(dice, number, roles) for number in range(35))]
    for found in added:
        answer = post(real, path_of(found), found)
        assert answer["kind"] == found["kind"], answer
    # Everybody may write roles within what they hold. Added last, so also the sign that all is in.
    rule = {"verbs": ["create"], "apiGroups": [RBAC], "resources": ["roles", "clusterroles"]}
    role = {"kind": "ClusterRole", "metadata": {"name": "writer"}, "rules": [rule]}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "writer"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "writer"},
        "subjects": [{"kind": "Group", "apiGroup": RBAC, "name": AUTHENTICATED}],
    }
    for found in (role, binding):
        post(real, path_of(found), found)
    attributes = {"verb": "create", "group": RBAC, "resource": "roles"}
    question = {"groups": [AUTHENTICATED], "resourceAttributes": attributes}
    # The real authorizer reads a cache that lags a little behind.
    deadline = time.monotonic() + 20
    while not asked(real, question)["allowed"]:
        assert time.monotonic() < deadline
    return Rbac(Roles(*bootstrap.objects(), *added, role, binding))


def asked(server: Plain, spec: Object) -> Object:
    review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
    status: Object = post(server, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]
    return status


def comparable(status: Object) -> Object:
    """Which of several bindings allowed it, and in which order errors come, is chance in the real server."""
    reason = status.pop("reason", "")
    if status["allowed"]:
        return status
    return status | {"missing": sorted(reason.removeprefix("RBAC: ").strip("[]").split(", "))}


def test_random_questions_get_the_same_answers(real: Plain, filled: Rbac) -> None:
    dice = random.Random(11)
    answers = set()
    for _ in range(400):
        spec = random_question(dice)
        ours = comparable(reviews.subject_access({"spec": spec}, filled)["status"])
        assert ours == comparable(asked(real, spec)), spec
        answers.add(ours["allowed"])
    assert answers == {True, False}


def test_random_roles_are_refused_with_the_same_words(real: Plain, filled: Rbac) -> None:
    dice = random.Random(13)
    outcomes = set()
    for number in range(80):
        who = random_identity(dice)
        headers = {"Impersonate-User": who.username}
        if split_account(who.username):
            who = Identity(who.username, groups=account_groups(who.username.split(":")[2]))
        else:
            team = dice.choice(TEAMS)
            who, headers["Impersonate-Group"] = Identity(who.username, groups=(team,)), team
        wanted = random_role(dice, 1000 + number)
        ours = refused(filled, who.with_groups(AUTHENTICATED), wanted)
        answer = post(real, f"{path_of(wanted)}?dryRun=All", wanted, **headers)
        theirs = answer["message"] if answer["kind"] == "Status" else ""
        # In which order roles that are missing are found is chance in the real server.
        assert ours.partition("; resolution")[0] == theirs.partition("; resolution")[0]
        outcomes.add(bool(ours))
    assert outcomes == {True, False}


def refused(rbac: Rbac, who: Identity, wanted: Object) -> str:
    namespace, resource = wanted["metadata"].get("namespace", ""), KINDS[wanted["kind"]]
    request = Attributes(who, "create", group=RBAC, resource=resource, namespace=namespace)
    try:
        escalation.check_role(rbac, request, wanted)
    except StatusError as error:
        return error.message
    return ""


def test_a_new_cluster_has_the_default_roles_of_the_real_one(real: Plain) -> None:
    ours = {(found["kind"], *where(found)): found for found in bootstrap.objects()}
    for kind, resource in KINDS.items():
        listed = real.request("GET", f"/apis/{RBAC}/v1/{resource}").json()["items"]
        for theirs in listed:
            labels = theirs["metadata"].get("labels") or {}
            if labels.get("kubernetes.io/bootstrapping") != "rbac-defaults":
                continue
            found = ours.pop((kind, *where(theirs)))
            assert found["metadata"].get("labels") == labels
            assert rules.parse_all(found) == rules.parse_all(theirs)
            for field in ("roleRef", "subjects", "aggregationRule"):
                assert found.get(field) == theirs.get(field)
    assert ours == {}


def where(found: Object) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def test_tokens_are_good_on_both_servers(real: Plain, key: Path) -> None:
    accounts = "/api/v1/namespaces/left/serviceaccounts"
    account = post(real, accounts, {"metadata": {"name": "holder"}})
    core = Core()
    core.replace("serviceaccounts", account)
    tokens = ServiceAccountTokens(SigningKey(key), core)
    authenticator = Authenticator(tokens, {})
    request = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}
    ours = tokens.request("left", "holder", request)
    theirs = post(real, f"{accounts}/holder/token", request)
    assert ours["spec"] == theirs["spec"]
    for token in (ours["status"]["token"], theirs["status"]["token"]):
        review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        answer = post(real, "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
        assert answer["authenticated"]
        assert reviews.token(review, authenticator)["status"] == answer


def test_the_published_key_is_the_same(real: Plain, key: Path) -> None:
    published = real.request("GET", "/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"}).json()
    (ours,) = SigningKey(key).jwks()["keys"]
    assert ours in published["keys"]
