"""The life of a namespace: what it contains from the start, and how it ends."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from behaviour.collection import Collection, Object, config_map, done
from behaviour.support import causes, eventually, refusal
from harness.plain import Plain
from harness.plane import create_namespace

HELD = ["podium.dev/held"]


@pytest.fixture
def namespaces(plain: Plain) -> Collection:
    return Collection(plain, "/api/v1/namespaces")


@pytest.fixture
def ending(plain: Plain) -> Iterator[Collection]:
    """The ConfigMaps of a namespace that cannot end while `held` is there."""
    name = create_namespace(plain, "ending")
    config_maps = Collection(plain, f"/api/v1/namespaces/{name}/configmaps")
    done(config_maps.create(config_map("held", finalizers=HELD)))
    done(config_maps.create(config_map("free")))
    deleted = done(plain.request("DELETE", f"/api/v1/namespaces/{name}"))
    assert deleted["status"]["phase"] == "Terminating"
    yield config_maps
    config_maps.patch("held", {"metadata": {"finalizers": None}})


def name_of(config_maps: Collection) -> str:
    return config_maps.path.split("/")[-2]


def fresh_name() -> str:
    return f"podium-{secrets.token_hex(4)}"


def test_a_namespace_starts_with_an_account_and_the_servers_certificate(plain: Plain, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    account = done(plain.request("GET", f"{base}/serviceaccounts/default"))
    assert account["metadata"]["name"] == "default"
    bundle = done(plain.request("GET", f"{base}/configmaps/kube-root-ca.crt"))
    assert bundle["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


def test_the_default_account_and_the_certificate_come_back_when_deleted(plain: Plain, namespace: str) -> None:
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        whole = f"/api/v1/namespaces/{namespace}/{path}"
        before = done(plain.request("GET", whole))
        done(plain.request("DELETE", whole))
        back = eventually(lambda whole=whole: _found(plain, whole))  # type: ignore[misc]
        assert back["metadata"]["uid"] != before["metadata"]["uid"]


def _found(plain: Plain, path: str) -> Object | None:
    answer = plain.request("GET", path)
    return answer.json() if answer.status == 200 else None


def test_a_new_namespace_is_active_and_knows_its_name(namespaces: Collection) -> None:
    name = fresh_name()
    made = done(namespaces.create({"metadata": {"name": name, "namespace": "default"}}))
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert "namespace" not in made["metadata"]
    done(namespaces.delete(name))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Upper", "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"),
        ("a.b", "must not contain dots"),
        ("a" * 64, "must be no more than 63 characters"),
    ],
)
def test_a_namespaces_name_is_a_dns_label(namespaces: Collection, name: str, problem: str) -> None:
    answer = namespaces.create({"metadata": {"name": name}})
    assert refusal(answer)[:2] == (422, "Invalid")
    assert any(f == "metadata.name" and problem in message for f, _, message in causes(answer))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_namespaces_of_the_system_cannot_be_deleted(namespaces: Collection, name: str) -> None:
    message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert refusal(namespaces.delete(name)) == (403, "Forbidden", message)


def test_the_label_with_the_name_cannot_be_changed(namespaces: Collection, namespace: str) -> None:
    changed = done(
        namespaces.patch(namespace, {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}})
    )
    assert changed["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace


def test_the_phase_follows_the_deletion(namespaces: Collection, namespace: str) -> None:
    answer = namespaces.patch(namespace, {"status": {"phase": "Terminating"}}, sub="status")
    assert refusal(answer)[:2] == (422, "Invalid")
    why = "Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    assert causes(answer) == [("status.Phase", "FieldValueInvalid", why)]


def test_finalizers_of_the_spec_are_set_through_finalize_alone(
    namespaces: Collection, namespace: str
) -> None:
    changed = done(namespaces.update({"metadata": {"name": namespace}, "spec": {"finalizers": []}}))
    assert changed["spec"] == {"finalizers": ["kubernetes"]}
    both: Object = {"metadata": {"name": namespace}, "spec": {"finalizers": ["kubernetes", "podium.dev/x"]}}
    changed = done(namespaces.update(both, sub="finalize"))
    assert changed["spec"] == both["spec"]
    done(namespaces.update({**both, "spec": {"finalizers": ["kubernetes"]}}, sub="finalize"))


def test_nothing_new_is_made_in_a_namespace_that_ends(ending: Collection) -> None:
    answer = ending.create(config_map("late"))
    name = name_of(ending)
    why = f"unable to create new content in namespace {name} because it is being terminated"
    assert refusal(answer) == (403, "Forbidden", f'configmaps "late" is forbidden: {why}')
    cause = ("metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated")
    assert causes(answer) == [cause]


def test_what_is_in_a_namespace_that_ends_can_still_change(ending: Collection) -> None:
    changed = done(ending.patch("held", {"data": {"a": "1"}}))
    assert changed["data"] == {"a": "1"}


def test_a_deleted_namespace_is_emptied_and_goes_unless_a_finalizer_in_it_holds_it(
    ending: Collection, namespaces: Collection
) -> None:
    name = name_of(ending)

    def remaining() -> dict[str, str]:
        found = done(namespaces.get(name))["status"].get("conditions", [])
        return {c["type"]: c["message"] for c in found if c["status"] == "True"}

    conditions = eventually(remaining, timeout=30)
    assert ending.get("free").status == 404
    assert conditions == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: podium.dev/held in 1 resource instances"
        ),
    }
    done(ending.patch("held", {"metadata": {"finalizers": None}}))
    eventually(lambda: namespaces.get(name).status == 404, timeout=30)


def test_deleting_a_namespace_again_changes_nothing(ending: Collection, namespaces: Collection) -> None:
    name = name_of(ending)
    before = done(namespaces.get(name))["metadata"]
    again = done(namespaces.delete(name))["metadata"]
    assert again["deletionTimestamp"] == before["deletionTimestamp"]


def test_a_deletion_of_a_namespace_can_be_tried_out(namespaces: Collection, namespace: str) -> None:
    done(namespaces.delete(namespace, query="dryRun=All"))
    assert done(namespaces.get(namespace))["status"]["phase"] == "Active"
