from __future__ import annotations

from typing import Any

import pytest

from podium.api.kinds import Object
from podium.simulator import endpoints
from simulator.objects_for_tests import created, deleted, obj, pod, reported, stamp, updated


def service(**spec: Any) -> Object:
    given = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}], **spec}
    return obj("Service", "web", spec=given)


def backend(name: str, port: int = 8080, **more: Any) -> Object:
    container = {"name": "main", "ports": [{"name": "web", "containerPort": port}]}
    spec = {"containers": [container], "nodeName": "n1", **more.pop("spec", {})}
    return pod(name, spec=spec, status={"podIP": f"10.0.0.{port % 200}"}, **more)


def slices(given: Object, pods: list[Object]) -> list[Object]:
    return [
        made for made in created(endpoints.decide(given, pods, [], None)) if made["kind"] == "EndpointSlice"
    ]


def test_a_named_port_is_looked_up_in_each_pod() -> None:
    made = slices(service(), [backend("a", 8080), backend("b", 9090)])
    assert sorted(part["ports"][0]["port"] for part in made) == [8080, 9090]


@pytest.mark.parametrize(
    ("given", "there", "conditions"),
    [
        (service(), backend("a"), (True, True, False)),
        (service(), backend("a", ready=False), (False, False, False)),
        (service(publishNotReadyAddresses=True), backend("a", ready=False), (True, False, False)),
        (service(), backend("a", deletionTimestamp=stamp()), (False, True, True)),
    ],
)
def test_what_a_slice_says_about_a_pod(given: Object, there: Object, conditions: tuple[bool, ...]) -> None:
    (made,) = slices(given, [there])
    found = made["endpoints"][0]["conditions"]
    assert (found["ready"], found["serving"], found["terminating"]) == conditions


def test_pods_without_address_and_pods_that_ended_are_left_out() -> None:
    (made,) = slices(service(), [pod("a"), backend("b", phase="Succeeded")])
    assert made["endpoints"] == []


def test_a_headless_service_gives_its_pods_names() -> None:
    named = backend("db-0", spec={"hostname": "db-0", "subdomain": "web"})
    (made,) = slices(service(clusterIP="None"), [named])
    assert made["endpoints"][0]["hostname"] == "db-0"
    assert made["metadata"]["labels"][endpoints.HEADLESS] == ""


def test_many_pods_are_spread_over_slices() -> None:
    pods = [
        {**backend(f"p{n}"), "status": {**backend("x")["status"], "podIP": f"10.0.{n // 250}.{n % 250}"}}
        for n in range(250)
    ]
    made = slices(service(), pods)
    assert sorted(len(part["endpoints"]) for part in made) == [50, 100, 100]
    assert len({part["metadata"]["name"] for part in made}) == 3


def test_what_is_up_to_date_is_not_written_and_what_is_not_is() -> None:
    given, pods = service(), [backend("a")]
    made = created(endpoints.decide(given, pods, [], None))
    (part,), (old,) = ([m for m in made if m["kind"] == kind] for kind in ("EndpointSlice", "Endpoints"))
    assert not endpoints.decide(given, pods, [part], old)
    changed = updated(endpoints.decide(given, [backend("a", ready=False)], [part], old))
    assert {found["kind"] for found in changed} == {"EndpointSlice", "Endpoints"}


def test_a_service_without_selector_is_left_to_its_owner() -> None:
    assert not endpoints.decide(service(selector=None), [], [], None)


def test_endpoints_of_others_are_not_deleted_with_a_service() -> None:
    key, value = endpoints.ENDPOINTS_MANAGER
    assert deleted(endpoints.orphaned(obj("Endpoints", "web", labels={key: value}))) == ["web"]
    assert not endpoints.orphaned(obj("Endpoints", "mine"))


def test_a_load_balancer_gets_a_free_address_and_keeps_it() -> None:
    balanced = service(type="LoadBalancer")
    status = reported(endpoints.balance(balanced, {"198.18.0.1"}))
    assert status["loadBalancer"]["ingress"] == [{"ip": "198.18.0.2", "ipMode": "VIP"}]
    assert not endpoints.balance({**balanced, "status": status}, {"198.18.0.2"})
    assert not endpoints.balance(service(type="LoadBalancer", loadBalancerClass="example.com/lb"), set())
