from __future__ import annotations

from typing import Any

import pytest

from kube_runtime.fake_server import CONFIG_MAP, FakeServer, config_map, error
from podium.api.kinds import GVK, Key, Object
from podium.kube.apply import (
    Action,
    Adoption,
    Applier,
    BeingDeleted,
    ControllerOwnership,
    ForeignObject,
    MarkerOwnership,
    Ownership,
    Ref,
)
from podium.kube.errors import ApplyConflict, Conflict, NoMatch

A = Key("default", "a")
MARKER = MarkerOwnership("podium.dev/owner", "stack-1")


def owner(uid: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"owner-{uid}", "uid": uid}}


CONTROLLER = ControllerOwnership(owner("u1"))


def applier(server: FakeServer, **options: Any) -> Applier:
    return Applier(server, field_manager="podium", **options)


def owned(name: str, ownership: Ownership, **data: str) -> Object:
    obj = config_map(name, **data)
    obj["metadata"] = ownership.stamp(obj["metadata"])
    return obj


@pytest.mark.parametrize("ownership", [MARKER, CONTROLLER])
async def test_an_absent_object_is_created_with_the_mark_of_its_owner(ownership: Ownership) -> None:
    server = FakeServer()
    applied = await applier(server).apply(config_map("a", x="1"), ownership)
    assert applied.action is Action.CREATED
    assert ownership.holds(server.objects[CONFIG_MAP, A]["metadata"])


async def test_nothing_is_written_at_rest_and_drift_is_healed() -> None:
    server = FakeServer()
    apply = applier(server).apply
    await apply(config_map("a", x="1"), MARKER)
    server.requests.clear()
    for _ in range(3):
        assert (await apply(config_map("a", x="1"), MARKER)).action is Action.UNCHANGED
    assert set(server.requests) == {"get ConfigMap a"}
    server.put({**server.objects[CONFIG_MAP, A], "data": {"x": "drifted"}})
    assert (await apply(config_map("a", x="1"), MARKER)).action is Action.UPDATED
    assert server.objects[CONFIG_MAP, A]["data"] == {"x": "1"}


async def test_a_change_of_the_status_is_looked_at_once_and_then_left_alone() -> None:
    server = FakeServer()
    apply = applier(server).apply
    await apply(config_map("a", x="1"), MARKER)
    server.put({**server.objects[CONFIG_MAP, A], "status": {"seen": True}})
    version = server.version
    assert (await apply(config_map("a", x="1"), MARKER)).action is Action.UNCHANGED
    server.requests.clear()
    assert (await apply(config_map("a", x="1"), MARKER)).action is Action.UNCHANGED
    assert server.requests == ["get ConfigMap a"]
    assert server.version == version


async def test_reading_from_a_cache_costs_no_request_at_rest() -> None:
    server = FakeServer()

    async def read(ref: Ref) -> Object | None:
        return server.objects.get((ref.gvk, ref.key))

    apply = applier(server, read=read).apply
    await apply(config_map("a", x="1"), MARKER)
    server.requests.clear()
    await apply(config_map("a", x="1"), MARKER)
    assert server.requests == []


async def test_a_new_wish_is_applied() -> None:
    server = FakeServer()
    apply = applier(server).apply
    await apply(config_map("a", x="1"), MARKER)
    assert (await apply(config_map("a", x="2"), MARKER)).action is Action.UPDATED


async def test_a_dry_run_tells_what_would_happen_and_writes_nothing() -> None:
    server = FakeServer()
    apply = applier(server).apply
    assert (await apply(config_map("a"), MARKER, dry_run=True)).action is Action.CREATED
    assert server.objects == {}
    server.put(owned("a", MARKER, x="1"))
    version = server.version
    assert (await apply(config_map("a", x="2"), MARKER, dry_run=True)).action is Action.UPDATED
    assert (await apply(config_map("a", x="1"), MARKER, dry_run=True)).action is Action.UNCHANGED
    assert server.version == version


NOBODYS = config_map("a", x="0")
OTHER_CONTROLLER = owned("a", ControllerOwnership(owner("u2")), x="0")
OTHER_MARKER = owned("a", MarkerOwnership("podium.dev/owner", "stack-2"), x="0")


@pytest.mark.parametrize(
    ("existing", "ownership", "adoption", "refusal"),
    [
        (NOBODYS, CONTROLLER, Adoption.NEVER, "exists and is not managed by us"),
        (NOBODYS, CONTROLLER, Adoption.IF_UNOWNED, ""),
        (NOBODYS, CONTROLLER, Adoption.ALWAYS, ""),
        (NOBODYS, MARKER, Adoption.NEVER, "exists and is not managed by us"),
        (NOBODYS, MARKER, Adoption.IF_UNOWNED, ""),
        (OTHER_CONTROLLER, CONTROLLER, Adoption.NEVER, "belongs to ConfigMap owner-u2"),
        (OTHER_CONTROLLER, CONTROLLER, Adoption.IF_UNOWNED, "belongs to ConfigMap owner-u2"),
        (OTHER_CONTROLLER, CONTROLLER, Adoption.ALWAYS, ""),
        (OTHER_CONTROLLER, MARKER, Adoption.IF_UNOWNED, "belongs to ConfigMap owner-u2"),
        (OTHER_MARKER, MARKER, Adoption.NEVER, "belongs to podium.dev/owner=stack-2"),
        (OTHER_MARKER, MARKER, Adoption.IF_UNOWNED, "belongs to podium.dev/owner=stack-2"),
        (OTHER_MARKER, MARKER, Adoption.ALWAYS, ""),
    ],
)
async def test_a_foreign_object_is_taken_over_only_as_far_as_adoption_allows(
    existing: Object, ownership: Ownership, adoption: Adoption, refusal: str
) -> None:
    server = FakeServer()
    server.put(existing)
    attempt = applier(server).apply(config_map("a", x="1"), ownership, adoption=adoption)
    if refusal:
        with pytest.raises(ForeignObject, match=refusal):
            await attempt
        assert server.objects[CONFIG_MAP, A]["data"] == {"x": "0"}
    else:
        await attempt
        live = server.objects[CONFIG_MAP, A]
        assert ownership.holds(live["metadata"])
        assert live["data"] == {"x": "1"}


async def test_adopting_a_controlled_object_first_makes_its_controller_an_ordinary_owner() -> None:
    server = FakeServer()
    server.put(OTHER_CONTROLLER)
    await applier(server).apply(config_map("a"), CONTROLLER, adoption=Adoption.ALWAYS)
    patched = server.history[1].new
    assert patched is not None
    assert [(r["uid"], r["controller"]) for r in patched["metadata"]["ownerReferences"]] == [("u2", False)]


async def test_an_object_that_appears_between_reading_and_creating_is_not_overrun() -> None:
    server = FakeServer()

    async def read_too_early(ref: Ref) -> Object | None:
        foreign = config_map("a", x="0")
        foreign["metadata"]["managedFields"] = [{"manager": "kubectl"}]
        server.put(foreign)
        return None

    with pytest.raises(ForeignObject):
        await applier(server, read=read_too_early).apply(config_map("a", x="1"), MARKER)
    assert server.objects[CONFIG_MAP, A]["data"] == {"x": "0"}


async def test_an_object_that_was_replaced_since_it_was_read_is_looked_at_again() -> None:
    server = FakeServer()
    stale = server.put(owned("a", MARKER))
    server.remove(CONFIG_MAP, A)
    server.put(config_map("a", x="somebody else's"))

    async def read(ref: Ref) -> Object | None:
        return stale

    with pytest.raises(ForeignObject):
        await applier(server, read=read).apply(config_map("a", x="1"), MARKER)


async def test_an_object_that_is_being_deleted_is_not_written() -> None:
    server = FakeServer()
    leaving = owned("a", MARKER)
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    server.put(leaving)
    with pytest.raises(BeingDeleted):
        await applier(server).apply(config_map("a", x="1"), MARKER)


async def test_a_conflict_that_does_not_go_away_is_raised() -> None:
    server = FakeServer()
    server.put(owned("a", MARKER))

    async def always_conflict(*_: object, **__: object) -> Object:
        raise error(409, "Conflict")

    server.apply = always_conflict  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        await applier(server).apply(config_map("a", x="1"), MARKER)


async def test_a_conflict_between_field_managers_is_the_callers_to_solve() -> None:
    server = FakeServer()
    server.put(owned("a", MARKER))

    async def refuse(*_: object, **__: object) -> Object:
        raise error(409, "Conflict", causes=[{"reason": "FieldManagerConflict"}])

    server.apply = refuse  # type: ignore[method-assign]
    with pytest.raises(ApplyConflict):
        await applier(server).apply(config_map("a", x="1"), MARKER)


async def test_what_left_the_inventory_is_deleted_in_reverse_order() -> None:
    server = FakeServer()
    names = ["a", "b", "c", "d"]
    for name in names:
        server.put(owned(name, MARKER))
    refs = [Ref(CONFIG_MAP, "default", name) for name in names]
    server.requests.clear()
    pruned = await applier(server).prune(refs, [refs[1]], MARKER)
    assert pruned.deleted == [refs[3], refs[2], refs[0]]
    assert [key.name for _, key in server.objects] == ["b"]


async def test_pruning_spares_what_is_gone_or_no_longer_ours() -> None:
    server = FakeServer()
    server.put(owned("ours", MARKER))
    server.put(config_map("foreign"))
    refs = [Ref(CONFIG_MAP, "default", name) for name in ("absent", "foreign", "ours")]
    pruned = await applier(server).prune(refs, [], MARKER)
    assert (pruned.absent, pruned.left, pruned.deleted) == ([refs[0]], [refs[1]], [refs[2]])


async def test_an_object_that_changes_hands_while_it_is_pruned_is_spared() -> None:
    server = FakeServer()
    server.put(owned("a", MARKER))
    get = server.get

    async def get_then_lose(gvk: GVK, name: str, namespace: str = "") -> Object:
        seen = await get(gvk, name, namespace)
        server.get = get  # type: ignore[method-assign]
        server.put(config_map("a", taken="yes"))
        return seen

    server.get = get_then_lose  # type: ignore[method-assign]
    ref = Ref(CONFIG_MAP, "default", "a")
    assert (await applier(server).prune([ref], [], MARKER)).left == [ref]
    assert (CONFIG_MAP, A) in server.objects


async def test_an_object_kept_under_another_api_version_is_the_same_object() -> None:
    server = FakeServer()
    server.put(owned("a", MARKER))
    old, new = GVK("x.dev", "v1beta1", "Thing"), GVK("x.dev", "v1", "Thing")
    pruned = await applier(server).prune([Ref(old, "ns", "a")], [Ref(new, "ns", "a")], MARKER)
    assert (pruned.deleted, pruned.absent, pruned.left) == ([], [], [])


async def test_objects_of_a_kind_that_is_served_no_longer_count_as_absent() -> None:
    server = FakeServer()
    server.failures = [NoMatch("no kind Thing")]
    ref = Ref(GVK("x.dev", "v1", "Thing"), "ns", "a")
    assert (await applier(server).prune([ref], [], MARKER)).absent == [ref]
