"""Where a Service leads: EndpointSlices and Endpoints from its Pods, and addresses of load balancers."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence

from podium.api.kinds import Object
from podium.simulator.objects import (
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name,
    namespace,
    owner_reference,
    short_hash,
    spec,
    status,
    uid,
)
from podium.simulator.plan import Create, Delete, Note, Plan, Update, Write, set_status

COMPONENT = "simulated-service-controller"
SERVICE_NAME, HEADLESS = "kubernetes.io/service-name", "service.kubernetes.io/headless"
SLICE_MANAGER = ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io")
ENDPOINTS_MANAGER = ("endpoints.kubernetes.io/managed-by", "endpoint-controller")
_PER_SLICE = 100
# A network for documentation and tests: nobody lives there.
_BALANCERS = ipaddress.IPv4Network("198.18.0.0/16")

_Ports = tuple[tuple[str, int, str, str], ...]  # name, number, protocol, appProtocol


def decide(
    service: Object, pods: Sequence[Object], slices: Sequence[Object], endpoints: Object | None
) -> Plan:
    """Bring the slices and Endpoints of a Service up to date; `pods` are those that it selects."""
    if (
        is_deleting(service)
        or not spec(service).get("selector")
        or spec(service).get("type") == "ExternalName"
    ):
        return Plan([Delete(found) for found in slices])
    reachable = [pod for pod in pods if status(pod).get("podIP") and not is_finished(pod)]
    reachable.sort(key=name)
    wanted = {name(made): made for made in _slices(service, reachable)}
    plan = Plan()
    for found in slices:
        made = wanted.pop(name(found), None)
        if made is None:
            plan.add(Delete(found))
        elif _differs(found, made, ("endpoints", "ports")):
            plan.add(
                Update({**found, **_content(made, ("endpoints", "ports")), "metadata": _merged(found, made)})
            )
    plan.add(*(Create(made) for made in wanted.values()))
    return plan.add(*_endpoints(service, reachable, endpoints))


def orphaned(endpoints: Object) -> Plan:
    """Delete Endpoints that we made and whose Service is gone."""
    key, value = ENDPOINTS_MANAGER
    return Plan([Delete(endpoints)] if labels_of(endpoints).get(key) == value else [])


def balance(service: Object, taken: Collection[str]) -> Plan:
    """Give a Service of type LoadBalancer its outer address, and take it back from one that no longer is."""
    known = status(service).get("loadBalancer") or {}
    wanted = spec(service).get("type") == "LoadBalancer" and not is_deleting(service)
    if spec(service).get("loadBalancerClass"):
        return Plan()
    if not wanted:
        return Plan(
            set_status(service, {**status(service), "loadBalancer": {}}) if known.get("ingress") else []
        )
    if known.get("ingress"):
        return Plan()
    asked = spec(service).get("loadBalancerIP")
    free = (str(address) for address in _BALANCERS.hosts() if str(address) not in taken)
    ingress = [{"ip": asked or next(free), "ipMode": "VIP"}]
    new = {**status(service), "loadBalancer": {"ingress": ingress}}
    told = Note(service, "EnsuredLoadBalancer", "Ensured load balancer (simulated)", COMPONENT)
    return Plan([*set_status(service, new), told])


# --- slices ---------------------------------------------------------------------------------------------


def _slices(service: Object, pods: Sequence[Object]) -> list[Object]:
    grouped: dict[_Ports, list[Object]] = {}
    for pod in pods:
        grouped.setdefault(_ports(service, pod), []).append(_endpoint(service, pod))
    if not grouped:
        # A Service without Pods has a slice too: that it leads nowhere is known, not unknown.
        grouped[()] = []
    parts = [
        (ports, found[start : start + _PER_SLICE])
        for ports, found in sorted(grouped.items())
        for start in range(0, max(1, len(found)), _PER_SLICE)
    ]
    return [_slice(service, ports, found, place) for place, (ports, found) in enumerate(parts)]


def _slice(service: Object, ports: _Ports, found: list[Object], place: int) -> Object:
    labels = {**labels_of(service), SERVICE_NAME: name(service), SLICE_MANAGER[0]: SLICE_MANAGER[1]}
    if spec(service).get("clusterIP") == "None":
        labels[HEADLESS] = ""
    # The name depends on the place alone, so that a slice is changed rather than replaced.
    suffix = short_hash([uid(service), place], 5)
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name(service)}-{suffix}",
            "generateName": f"{name(service)}-",
            "namespace": namespace(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": found,
        "ports": [_port(port) for port in ports],
    }


def _endpoint(service: Object, pod: Object) -> Object:
    serving, terminating = is_ready(pod), is_deleting(pod)
    ready = bool(spec(service).get("publishNotReadyAddresses")) or (serving and not terminating)
    made: Object = {
        "addresses": [status(pod)["podIP"]],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "nodeName": spec(pod).get("nodeName"),
        "targetRef": _reference(pod),
    }
    if _has_hostname(service, pod):
        made["hostname"] = spec(pod)["hostname"]
    return made


def _has_hostname(service: Object, pod: Object) -> bool:
    wanted = spec(pod)
    return bool(wanted.get("hostname")) and wanted.get("subdomain") == name(service)


def _reference(pod: Object) -> Object:
    return {"kind": "Pod", "namespace": namespace(pod), "name": name(pod), "uid": uid(pod)}


def _ports(service: Object, pod: Object) -> _Ports:
    found = []
    for port in spec(service).get("ports") or ():
        number = _target(port, pod)
        if number is not None:
            protocol = port.get("protocol", "TCP")
            found.append((port.get("name", ""), number, protocol, port.get("appProtocol", "")))
    return tuple(found)


def _target(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target or int(port["port"])
    containers = [*(spec(pod).get("containers") or ()), *(spec(pod).get("initContainers") or ())]
    for container in containers:
        for exposed in container.get("ports") or ():
            same_protocol = exposed.get("protocol", "TCP") == port.get("protocol", "TCP")
            if exposed.get("name") == target and same_protocol:
                return int(exposed["containerPort"])
    return None


def _port(port: tuple[str, int, str, str]) -> Object:
    made: Object = {"name": port[0], "port": port[1], "protocol": port[2]}
    if port[3]:
        made["appProtocol"] = port[3]
    return made


# --- Endpoints ------------------------------------------------------------------------------------------


def _endpoints(service: Object, pods: Sequence[Object], known: Object | None) -> list[Write]:
    labels = {**labels_of(service), ENDPOINTS_MANAGER[0]: ENDPOINTS_MANAGER[1]}
    if spec(service).get("clusterIP") == "None":
        labels[HEADLESS] = ""
    made: Object = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": name(service), "namespace": namespace(service), "labels": labels},
    }
    subsets = _subsets(service, pods)
    if subsets:
        made["subsets"] = subsets
    if known is None:
        return [Create(made)]
    if labels_of(known).get(ENDPOINTS_MANAGER[0], ENDPOINTS_MANAGER[1]) != ENDPOINTS_MANAGER[1]:
        return []
    if not _differs(known, made, ("subsets",)):
        return []
    kept = {key: value for key, value in known.items() if key != "subsets"}
    return [Update({**kept, **_content(made, ("subsets",)), "metadata": _merged(known, made)})]


def _subsets(service: Object, pods: Sequence[Object]) -> list[Object]:
    grouped: dict[_Ports, tuple[list[Object], list[Object]]] = {}
    for pod in pods:
        if is_deleting(pod):
            continue
        address: Object = {"ip": status(pod)["podIP"], "nodeName": spec(pod).get("nodeName")}
        if _has_hostname(service, pod):
            address["hostname"] = spec(pod)["hostname"]
        address["targetRef"] = _reference(pod)
        ready = spec(service).get("publishNotReadyAddresses") or is_ready(pod)
        grouped.setdefault(_ports(service, pod), ([], []))[0 if ready else 1].append(address)
    subsets = []
    for ports, (ready_ones, others) in sorted(grouped.items()):
        subset: Object = {}
        if ready_ones:
            subset["addresses"] = sorted(ready_ones, key=lambda a: str(a["ip"]))
        if others:
            subset["notReadyAddresses"] = sorted(others, key=lambda a: str(a["ip"]))
        if ports:
            subset["ports"] = [
                {key: value for key, value in _port(port).items() if value != ""} for port in ports
            ]
        subsets.append(subset)
    return subsets


# --- comparing ------------------------------------------------------------------------------------------


def _content(obj: Object, fields: Sequence[str]) -> Object:
    return {field: obj[field] for field in fields if field in obj}


def _differs(found: Object, made: Object, fields: Sequence[str]) -> bool:
    if any((found.get(field) or None) != (made.get(field) or None) for field in fields):
        return True
    return labels_of(found) != labels_of(made)


def _merged(found: Object, made: Object) -> Object:
    return {**found["metadata"], "labels": labels_of(made)}
