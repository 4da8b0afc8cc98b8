"""Rows of Services, Ingresses and what stands behind them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podium.api.kinds import Object
from podium.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    SELECTOR,
    UNSET,
    Printer,
    age,
    column,
    labels,
    listed,
    selector,
)


def _service_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs")
    return [
        obj["metadata"].get("name", ""),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external_ip(spec, obj.get("status") or {}),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(obj, now),
        labels(spec.get("selector")),
    ]


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _external_ip(spec: Object, status: Object) -> str:
    kind, own = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_balancer_addresses(status), *own]) or "<pending>"
    return spec.get("externalName", "") if kind == "ExternalName" else "<unknown>"


def _balancer_addresses(status: Object) -> list[str]:
    ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
    return sorted({point.get("ip") or point.get("hostname") or "" for point in ingress} - {""})


def _ingress_cells(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"].get("name", ""),
        NONE if spec.get("ingressClassName") is None else spec["ingressClassName"],
        _hosts(spec.get("rules") or []),
        ",".join(_balancer_addresses(obj.get("status") or {})),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[Object]) -> str:
    most = 3
    named = [(index, rule["host"]) for index, rule in enumerate(rules) if rule.get("host")]
    if not named:
        return "*"
    text = ",".join([host for _, host in named[:most]])
    # Whatever rule follows the third named one counts as more, even without a host.
    if len(named) >= most and len(rules) > named[most - 1][0] + 1:
        return f"{text} + {len(rules) - most} more..."
    return text


def _ingress_class_cells(obj: Object, now: datetime) -> list[Any]:
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    default = (metadata.get("annotations") or {}).get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, shown = spec.get("parameters"), NONE
    if parameters is not None:
        group = "" if parameters.get("apiGroup") is None else f".{parameters['apiGroup']}"
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    name = f"{metadata.get('name', '')} (default)" if default else metadata.get("name", "")
    return [name, spec.get("controller", ""), shown, age(obj, now)]


def _endpoints_cells(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), _endpoints(obj.get("subsets") or []), age(obj, now)]


def _endpoints(subsets: list[Object]) -> str:
    if not subsets:
        return NONE
    texts: list[str] = []
    for subset in subsets:
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            texts += addresses
        for port in ports or ():
            texts += [_host_port(address, port["port"]) for address in addresses]
    return listed(texts)


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoint_slice_cells(obj: Object, now: datetime) -> list[Any]:
    ports = [_slice_port(port) for port in obj.get("ports") or ()]
    addresses = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [
        obj["metadata"].get("name", ""),
        obj.get("addressType", ""),
        listed(ports) or UNSET,
        listed(addresses) or UNSET,
        age(obj, now),
    ]


def _slice_port(port: Object) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def _network_policy_cells(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"].get("name", ""),
        selector((obj.get("spec") or {}).get("podSelector")),
        age(obj, now),
    ]


def _service_cidr_cells(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"].get("name", ""),
        ",".join((obj.get("spec") or {}).get("cidrs") or ()),
        age(obj, now),
    ]


def _ip_address_cells(obj: Object, now: datetime) -> list[Any]:
    parent, shown = (obj.get("spec") or {}).get("parentRef"), NONE
    if parent is not None:
        resource, group = parent.get("resource", ""), parent.get("group")
        kind = f"{resource}.{group}" if group else resource
        namespace = f"/{parent['namespace']}" if parent.get("namespace") else ""
        shown = f"{kind.lower()}{namespace}/{parent.get('name', '')}"
    # The real server has no column for the third cell either.
    return [obj["metadata"].get("name", ""), shown, age(obj, now)]


PRINTERS = {
    ("", "services"): Printer(
        (
            NAME,
            column("Type", "How the service is exposed"),
            column("Cluster-IP", "Address within the cluster"),
            column("External-IP", "Addresses from outside the cluster"),
            column("Port(s)", "Ports, with the ports on nodes where there are any"),
            AGE,
            SELECTOR,
        ),
        _service_cells,
    ),
    ("networking.k8s.io", "ingresses"): Printer(
        (
            NAME,
            column("Class", "IngressClass that the ingress belongs to"),
            column("Hosts", "Host names that requests are matched against"),
            column("Address", "Addresses of the load balancer"),
            column("Ports", "Ports that are open"),
            AGE,
        ),
        _ingress_cells,
    ),
    ("networking.k8s.io", "ingressclasses"): Printer(
        (
            NAME,
            column("Controller", "Controller that serves ingresses of the class"),
            column("Parameters", "Object with further settings of the class"),
            AGE,
        ),
        _ingress_class_cells,
    ),
    ("", "endpoints"): Printer((NAME, column("Endpoints", "Addresses and ports"), AGE), _endpoints_cells),
    ("discovery.k8s.io", "endpointslices"): Printer(
        (
            NAME,
            column("AddressType", "Kind of the addresses"),
            column("Ports", "Ports of every endpoint"),
            column("Endpoints", "Addresses of the endpoints"),
            AGE,
        ),
        _endpoint_slice_cells,
    ),
    ("networking.k8s.io", "networkpolicies"): Printer(
        (NAME, column("Pod-Selector", "Pods that the policy is about"), AGE), _network_policy_cells
    ),
    ("networking.k8s.io", "servicecidrs"): Printer(
        (NAME, column("CIDRs", "Ranges that service addresses are taken from"), AGE), _service_cidr_cells
    ),
    ("networking.k8s.io", "ipaddresses"): Printer(
        (NAME, column("ParentRef", "Object that the address belongs to")), _ip_address_cells
    ),
}
