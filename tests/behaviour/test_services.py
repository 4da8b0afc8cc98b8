"""Services: cluster addresses, node ports and changes of type."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from behaviour.scratch import Scratch, named
from behaviour.support import causes, refusal
from harness.kubectl import Kubectl

Object = dict[str, Any]
NETWORK = ipaddress.ip_network("10.96.0.0/16")


def service(name: str = "s", **spec: Any) -> Object:
    return named("Service", "v1", name, spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def test_a_service_gets_an_address_of_the_network(scratch: Scratch) -> None:
    spec = scratch.create(service())["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in NETWORK
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert spec["type"] == "ClusterIP"


def test_a_service_without_a_name_is_refused(scratch: Scratch) -> None:
    nameless = service()
    nameless["metadata"] = {}
    # Without a dry run the real server trips over the IPAddress that it makes first.
    answer = scratch.attempt(nameless, "?dryRun=All")
    text = "Required value: name or generateName is required"
    assert causes(answer) == [("metadata.name", "FieldValueRequired", text)]


def test_each_service_gets_an_address_of_its_own(scratch: Scratch) -> None:
    addresses = {scratch.create(service(f"s{i}"))["spec"]["clusterIP"] for i in range(10)}
    assert len(addresses) == 10


def test_an_address_can_be_asked_for_and_is_free_again_after_deletion(scratch: Scratch) -> None:
    given = scratch.create(service())["spec"]["clusterIP"]
    scratch.delete(service())
    assert scratch.create(service("again", clusterIP=given))["spec"]["clusterIP"] == given


def test_an_address_that_is_taken_is_refused(scratch: Scratch) -> None:
    given = scratch.create(service())["spec"]["clusterIP"]
    answer = scratch.attempt(service("other", clusterIP=given))
    text = f'Invalid value: ["{given}"]: failed to allocate IP {given}: provided IP is already allocated'
    assert refusal(answer)[:2] == (422, "Invalid")
    assert causes(answer) == [("spec.clusterIPs", "FieldValueInvalid", text)]


def test_an_address_outside_the_network_is_refused(scratch: Scratch) -> None:
    answer = scratch.attempt(service(clusterIP="10.200.0.1"))
    [(field, _, text)] = causes(answer)
    assert field == "spec.clusterIPs"
    assert text == (
        'Invalid value: ["10.200.0.1"]: failed to allocate IP 10.200.0.1: '
        "the provided network does not match the current range"
    )


def test_an_address_that_is_none_is_refused(scratch: Scratch) -> None:
    answer = scratch.attempt(service(clusterIP="nonsense"))
    text = 'Invalid value: "nonsense": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    assert causes(answer) == [("spec.clusterIPs[0]", "FieldValueInvalid", text)]


def test_a_headless_service_gets_no_address(scratch: Scratch) -> None:
    spec = scratch.create(service(clusterIP="None"))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


def test_a_replaced_service_keeps_its_address(scratch: Scratch) -> None:
    created = scratch.create(service())
    changed = service(ports=[{"port": 81}])
    changed["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    answer = scratch.replace(changed)
    assert answer.status == 200, answer.body
    assert answer.json()["spec"]["clusterIP"] == created["spec"]["clusterIP"]


@pytest.mark.parametrize("other", ["10.96.255.250", "None"])
def test_the_address_of_a_service_cannot_change(scratch: Scratch, other: str) -> None:
    created = scratch.create(service())
    created["spec"]["clusterIP"] = other
    created["spec"]["clusterIPs"] = [other]
    answer = scratch.replace(created)
    assert answer.status == 422
    assert any("may not change once set" in text for _, _, text in causes(answer))


def test_a_node_port_is_allocated_and_kept(scratch: Scratch) -> None:
    created = scratch.create(service(type="NodePort"))
    [port] = created["spec"]["ports"]
    assert 30000 <= port["nodePort"] <= 32767
    changed = service(type="NodePort")
    assert scratch.replace(changed).json()["spec"]["ports"] == [port]


def test_a_node_port_that_is_taken_is_refused(scratch: Scratch) -> None:
    taken = scratch.create(service(type="NodePort"))["spec"]["ports"][0]["nodePort"]
    answer = scratch.attempt(service("other", type="NodePort", ports=[{"port": 80, "nodePort": taken}]))
    text = f"Invalid value: {taken}: provided port is already allocated"
    assert causes(answer) == [("spec.ports[0].nodePort", "FieldValueInvalid", text)]


def test_a_node_port_outside_the_range_is_refused(scratch: Scratch) -> None:
    answer = scratch.attempt(service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]))
    text = (
        "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
    )
    assert causes(answer) == [("spec.ports[0].nodePort", "FieldValueInvalid", text)]


def test_the_same_node_port_serves_two_protocols(scratch: Scratch) -> None:
    ports = [{"name": "a", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 53, "protocol": "TCP"}]
    one, two = scratch.create(service(type="NodePort", ports=ports))["spec"]["ports"]
    assert one["nodePort"] == two["nodePort"]


def test_a_service_turned_cluster_internal_gives_its_node_ports_back(scratch: Scratch) -> None:
    created = scratch.create(service(type="NodePort"))
    taken = created["spec"]["ports"][0]["nodePort"]
    changed = scratch.patch(created, {"spec": {"type": "ClusterIP"}}).json()
    assert "nodePort" not in changed["spec"]["ports"][0]
    assert changed["spec"]["clusterIP"] == created["spec"]["clusterIP"]
    assert (
        scratch.attempt(service("other", type="NodePort", ports=[{"port": 1, "nodePort": taken}])).status
        == 201
    )


def test_a_load_balancer_gets_node_ports_unless_it_says_otherwise(scratch: Scratch) -> None:
    spec = scratch.create(service(type="LoadBalancer"))["spec"]
    assert spec["allocateLoadBalancerNodePorts"] is True
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert spec["ports"][0]["nodePort"]
    spec = scratch.create(service("lean", type="LoadBalancer", allocateLoadBalancerNodePorts=False))["spec"]
    assert "nodePort" not in spec["ports"][0]


def test_a_local_load_balancer_gets_a_health_check_port(scratch: Scratch) -> None:
    spec = scratch.create(service(type="LoadBalancer", externalTrafficPolicy="Local"))["spec"]
    assert 30000 <= spec["healthCheckNodePort"] <= 32767


def test_an_external_name_has_no_address(scratch: Scratch) -> None:
    external = named("Service", "v1", "s", spec={"type": "ExternalName", "externalName": "a.example"})
    spec = scratch.create(external)["spec"]
    assert spec == {"type": "ExternalName", "externalName": "a.example", "sessionAffinity": "None"}


def test_an_external_name_needs_a_name(scratch: Scratch) -> None:
    answer = scratch.attempt(named("Service", "v1", "s", spec={"type": "ExternalName"}))
    assert [field for field, _, _ in causes(answer)] == ["spec.externalName"]


def test_a_service_turned_external_gives_its_address_back(scratch: Scratch) -> None:
    created = scratch.create(service())
    change = {"spec": {"type": "ExternalName", "externalName": "a.example"}}
    spec = scratch.patch(created, change).json()["spec"]
    assert "clusterIP" not in spec
    assert "clusterIPs" not in spec
    assert scratch.attempt(service("other", clusterIP=created["spec"]["clusterIP"])).status == 201


def test_an_external_service_turned_internal_gets_an_address(scratch: Scratch) -> None:
    external = named("Service", "v1", "s", spec={"type": "ExternalName", "externalName": "a.example"})
    scratch.create(external)
    change = {"spec": {"type": "ClusterIP", "externalName": None, "ports": [{"port": 80}]}}
    spec = scratch.patch(external, change).json()["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in NETWORK


def test_a_dry_run_takes_no_address_and_no_port(scratch: Scratch) -> None:
    spec = scratch.create(service(type="NodePort"))["spec"]
    scratch.delete(service())
    ports = [{"port": 80, "nodePort": spec["ports"][0]["nodePort"]}]
    wanted = service(type="NodePort", clusterIP=spec["clusterIP"], ports=ports)
    assert scratch.attempt(wanted, "?dryRun=All").status == 201
    assert scratch.attempt(wanted).status == 201


def test_a_service_sticks_to_clients_for_three_hours_unless_told(scratch: Scratch) -> None:
    spec = scratch.create(service(sessionAffinity="ClientIP"))["spec"]
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"ports": []}, "spec.ports", "Required value"),
        (
            {"ports": [{"port": 0}]},
            "spec.ports[0].port",
            "Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            {"ports": [{"port": 80, "protocol": "odd"}]},
            "spec.ports[0].protocol",
            'Unsupported value: "odd": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"ports": [{"port": 80, "targetPort": "UP_"}]},
            "spec.ports[0].targetPort",
            'Invalid value: "UP_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30100}]},
            "spec.ports[0].nodePort",
            "Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            {"type": "Odd"},
            "spec.type",
            (
                'Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", '
                '"LoadBalancer", "NodePort"'
            ),
        ),
        (
            {"externalIPs": ["127.0.0.1"]},
            "spec.externalIPs[0]",
            'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        ),
        (
            {"ipFamilies": ["IPv6"]},
            "spec.ipFamilies[0]",
            'Invalid value: "IPv6": not configured on this cluster',
        ),
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            "spec.ipFamilyPolicy",
            'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
        ),
    ],
)
def test_an_invalid_service_is_refused(scratch: Scratch, spec: Object, field: str, text: str) -> None:
    answer = scratch.attempt(service(**spec))
    assert answer.status == 422
    assert text in [message for at, _, message in causes(answer) if at == field]


@pytest.mark.kubectl
def test_kubectl_exposes_a_deployment(kubectl: Kubectl) -> None:
    kubectl.run("create", "deployment", "web", "--image=x", "--port=8080")
    kubectl.run("expose", "deployment", "web", "--port=80", "--type=NodePort")
    spec = kubectl.json("get", "service", "web")["spec"]
    assert spec["selector"] == {"app": "web"}
    assert spec["ports"][0]["targetPort"] == 80
    listed = kubectl.run("get", "service", "web", "--no-headers").stdout.split()
    assert listed[:3] == ["web", "NodePort", spec["clusterIP"]]
