"""Garbage collection: what becomes of the objects that a deleted one owns."""

from __future__ import annotations

from behaviour.collection import Collection, Object, config_map, done, owner
from behaviour.support import eventually
from harness.plain import Plain
from harness.plane import create_namespace

HELD = ["podium.dev/held"]
NOBODY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "nobody",
    "uid": "00000000-0000-0000-0000-000000000000",
}


def make(config_maps: Collection, name: str, *owners: Object, finalizers: list[str] | None = None) -> Object:
    made = config_map(name, ownerReferences=list(owners), finalizers=finalizers)
    return done(config_maps.create(made))


def await_absence(collection: Collection, name: str) -> None:
    eventually(lambda: collection.get(name).status == 404, timeout=20)


def await_mark(collection: Collection, name: str) -> Object:
    """The object once it is marked for deletion."""

    def marked() -> Object | None:
        obj = done(collection.get(name))
        return obj if "deletionTimestamp" in obj["metadata"] else None

    return eventually(marked, timeout=20)


def release(config_maps: Collection, name: str) -> None:
    done(config_maps.patch(name, {"metadata": {"finalizers": None}}))


def test_a_background_deletion_takes_the_whole_chain(config_maps: Collection) -> None:
    top = make(config_maps, "top")
    middle = make(config_maps, "middle", owner(top))
    make(config_maps, "bottom", owner(middle))
    answer = config_maps.delete("top", {"propagationPolicy": "Background"})
    assert answer.json()["status"] == "Success"
    assert config_maps.get("top").status == 404
    await_absence(config_maps, "middle")
    await_absence(config_maps, "bottom")


def test_a_foreground_deletion_waits_for_dependents_that_block_it(config_maps: Collection) -> None:
    top = make(config_maps, "top")
    middle = make(config_maps, "middle", owner(top, blockOwnerDeletion=True), finalizers=HELD)
    make(config_maps, "bottom", owner(middle, blockOwnerDeletion=True))
    answer = config_maps.delete("top", {"propagationPolicy": "Foreground"})
    assert answer.status == 200
    assert answer.json()["metadata"]["finalizers"] == ["foregroundDeletion"]
    await_absence(config_maps, "bottom")
    await_mark(config_maps, "middle")
    assert config_maps.get("top").status == 200
    eventually(lambda: done(config_maps.get("middle"))["metadata"]["finalizers"] == HELD)
    release(config_maps, "middle")
    await_absence(config_maps, "middle")
    await_absence(config_maps, "top")


def test_a_foreground_deletion_does_not_wait_for_dependents_that_do_not_block(
    config_maps: Collection,
) -> None:
    top = make(config_maps, "top")
    make(config_maps, "dependent", owner(top), finalizers=HELD)
    done(config_maps.delete("top", {"propagationPolicy": "Foreground"}))
    await_absence(config_maps, "top")
    await_mark(config_maps, "dependent")
    release(config_maps, "dependent")


def test_an_orphaning_deletion_lets_dependents_go(config_maps: Collection) -> None:
    top = make(config_maps, "top")
    made = make(config_maps, "dependent", owner(top))
    answer = config_maps.delete("top", {"propagationPolicy": "Orphan"})
    assert answer.json()["metadata"]["finalizers"] == ["orphan"]
    await_absence(config_maps, "top")
    left = done(config_maps.get("dependent"))
    assert left["metadata"]["uid"] == made["metadata"]["uid"]
    assert "ownerReferences" not in left["metadata"]


def test_the_older_option_orphans_as_well(config_maps: Collection) -> None:
    make(config_maps, "dependent", owner(make(config_maps, "top")))
    done(config_maps.delete("top", query="orphanDependents=true"))
    await_absence(config_maps, "top")
    assert "ownerReferences" not in done(config_maps.get("dependent"))["metadata"]


def test_a_finalizer_asks_for_foreground_deletion_in_advance(config_maps: Collection) -> None:
    top = make(config_maps, "top", finalizers=["foregroundDeletion"])
    make(config_maps, "dependent", owner(top, blockOwnerDeletion=True), finalizers=HELD)
    done(config_maps.delete("top"))
    await_mark(config_maps, "dependent")
    assert config_maps.get("top").status == 200
    release(config_maps, "dependent")
    await_absence(config_maps, "top")


def test_a_dependent_of_an_absent_owner_is_deleted(config_maps: Collection) -> None:
    make(config_maps, "dependent", NOBODY)
    await_absence(config_maps, "dependent")


def test_a_dependent_with_another_owner_only_loses_the_reference(config_maps: Collection) -> None:
    there = owner(make(config_maps, "top"))
    make(config_maps, "dependent", NOBODY, there)
    eventually(
        lambda: done(config_maps.get("dependent"))["metadata"]["ownerReferences"] == [there], timeout=20
    )


def test_an_owner_recreated_under_its_name_is_another_owner(config_maps: Collection) -> None:
    make(config_maps, "top")
    make(config_maps, "dependent", {**NOBODY, "name": "top"})
    await_absence(config_maps, "dependent")
    assert config_maps.get("top").status == 200


def test_an_owner_in_another_namespace_is_none(config_maps: Collection, plain: Plain) -> None:
    elsewhere = create_namespace(plain, "elsewhere")
    far = Collection(plain, f"/api/v1/namespaces/{elsewhere}/configmaps")
    make(config_maps, "dependent", owner(make(far, "top")))
    await_absence(config_maps, "dependent")
    assert far.get("top").status == 200
    plain.request("DELETE", f"/api/v1/namespaces/{elsewhere}")


def test_a_dependent_lives_as_long_as_any_owner(config_maps: Collection) -> None:
    first, second = make(config_maps, "first"), make(config_maps, "second")
    make(config_maps, "dependent", owner(first), owner(second))
    done(config_maps.delete("first"))
    left = [owner(second)]
    eventually(lambda: done(config_maps.get("dependent"))["metadata"]["ownerReferences"] == left, timeout=20)
    done(config_maps.delete("second"))
    await_absence(config_maps, "dependent")


def test_cluster_scoped_owners_have_dependents_in_namespaces(config_maps: Collection, plain: Plain) -> None:
    roles = Collection(plain, "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    role = done(roles.create({"metadata": {"generateName": "podium-garbage-"}}))
    make(config_maps, "dependent", owner(role))
    done(roles.delete(role["metadata"]["name"]))
    await_absence(config_maps, "dependent")
