from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.simulator import nodes
from podium.simulator.nodes import Addresses, Seat
from simulator.objects_for_tests import NOW, at, created, deleted, reported, updated


def test_nodes_are_numbered_from_the_second() -> None:
    assert list(nodes.seats(3)) == ["podium-simulated", "podium-simulated-2", "podium-simulated-3"]


def test_too_many_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        nodes.seats(nodes.MOST_NODES + 1)


def test_pod_networks_do_not_overlap() -> None:
    networks = [Seat(number).pod_network for number in (0, 1, 2, nodes.MOST_NODES - 1)]
    assert not any(a.overlaps(b) for a in networks for b in networks if a is not b)


def test_a_node_is_registered_then_opened_then_left_alone() -> None:
    (made,) = created(nodes.decide(Seat(0), None, NOW))
    made["spec"]["taints"] = [{"key": nodes.NOT_READY_TAINT, "effect": "NoSchedule"}, {"key": "mine"}]
    plan = nodes.decide(Seat(0), made, NOW)
    (opened,) = updated(plan)
    assert opened["spec"]["taints"] == [{"key": "mine"}]
    ready = {**opened, "status": reported(plan)}
    assert not nodes.decide(Seat(0), ready, at(3600))


def test_a_person_may_change_what_a_node_offers() -> None:
    (made,) = created(nodes.decide(Seat(0), None, NOW))
    made["status"] = {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}
    status = reported(nodes.decide(Seat(0), made, NOW))
    assert status["allocatable"] == {"cpu": "1"}


def test_only_simulated_nodes_are_retired() -> None:
    (made,) = created(nodes.decide(Seat(4), None, NOW))
    assert deleted(nodes.retire(made)) == ["podium-simulated-5"]
    assert not nodes.retire({**made, "spec": {"providerID": "aws:///i-1"}})


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=60))
def test_no_two_pods_have_one_address(changes: list[tuple[int, bool]]) -> None:
    addresses, held = Addresses(), dict[str, str]()
    for number, stays in changes:
        uid = f"pod-{number}"
        if stays:
            held[uid] = addresses.address_for(uid, Seat(0))
        else:
            addresses.free(uid)
            held.pop(uid, None)
        assert len(set(held.values())) == len(held)


def test_an_address_that_was_freed_is_not_given_again_at_once() -> None:
    addresses = Addresses()
    first = addresses.address_for("a", Seat(0))
    addresses.free("a")
    assert addresses.address_for("b", Seat(0)) != first
