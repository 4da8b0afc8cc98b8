"""Endpoints and EndpointSlices: where a Service's traffic goes."""

from __future__ import annotations

from typing import Any

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import each, immutable, one_of, unsupported
from podium.apiserver.kinds.containers import PROTOCOLS
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


class EndpointsStrategy(KindStrategy):
    create_on_update = True

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        subsets = obj.get("subsets") or []
        if old is not None and subsets == (old.get("subsets") or []):
            return []
        return [e for i, subset in enumerate(subsets) for e in _subset(f"subsets[{i}]", subset)]

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        found = ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]
        for i, subset in enumerate(obj.get("subsets") or ()):
            for field in ("addresses", "notReadyAddresses"):
                for j, address in enumerate(subset.get(field) or ()):
                    found += addresses.warn_ip(f"subsets[{i}].{field}[{j}].ip", address.get("ip") or "")
        return found


class EndpointSliceStrategy(KindStrategy):
    generation_fields = ("endpoints", "ports", "addressType", "metadata.labels")

    def default(self, obj: Object) -> None:
        for port in obj.get("ports") or ():
            if port.get("name") is None:
                port["name"] = ""
            if port.get("protocol") is None:
                port["protocol"] = "TCP"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        kind = obj.get("addressType") or ""
        found = one_of("addressType", kind, _ADDRESS_TYPES) + _slice_ports(obj.get("ports") or [])
        endpoints = obj.get("endpoints") or []
        if old is not None and endpoints == (old.get("endpoints") or []):
            return found
        if len(endpoints) > 1000:
            return [*found, errors.too_many("endpoints", len(endpoints), 1000)]
        return found + [e for i, one in enumerate(endpoints) for e in _endpoint(f"endpoints[{i}]", one, kind)]

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("addressType", new.get("addressType"), old.get("addressType"))

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        found: list[str] = []
        if obj.get("addressType") in ("IPv4", "IPv6"):
            for i, endpoint in enumerate(obj.get("endpoints") or ()):
                for j, address in enumerate(endpoint.get("addresses") or ()):
                    found += addresses.warn_ip(f"endpoints[{i}].addresses[{j}]", address)
        if obj.get("addressType") == "FQDN":
            found.append("addressType: FQDN endpoints are deprecated")
        return found


def _subset(path: str, subset: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        found.append(errors.required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in ("addresses", "notReadyAddresses"):
        for i, address in enumerate(subset.get(field) or ()):
            found += _address(f"{path}.{field}[{i}]", address)
    ports = subset.get("ports") or []
    for i, port in enumerate(ports):
        here, name, number = f"{path}.ports[{i}]", port.get("name") or "", port.get("port") or 0
        if name:
            found += each(f"{here}.name", name, names.dns_label(name))
        elif len(ports) > 1:
            found.append(errors.required(f"{here}.name"))
        found += each(f"{here}.port", number, names.port_number(number))
        found += one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        if (protocol := port.get("appProtocol")) is not None:
            found += each(f"{here}.appProtocol", protocol, names.qualified_name(protocol))
    return found


def _address(path: str, address: Object) -> list[FieldError]:
    ip = address.get("ip") or ""
    found = addresses.validate_ip(f"{path}.ip", ip)
    if host := address.get("hostname"):
        found += each(f"{path}.hostname", host, names.dns_label(host))
    if (node := address.get("nodeName")) is not None:
        found += each(f"{path}.nodeName", node, names.dns_subdomain(node))
    return found + addresses.validate_endpoint_ip(f"{path}.ip", ip)


def _endpoint(path: str, endpoint: Object, kind: str) -> list[FieldError]:
    listed = endpoint.get("addresses") or []
    found: list[FieldError] = []
    if not listed:
        found.append(errors.required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(listed) > 100:
        found.append(errors.too_many(f"{path}.addresses", len(listed), 100))
    for i, address in enumerate(listed):
        found += _slice_address(f"{path}.addresses", i, address, kind)
    if (node := endpoint.get("nodeName")) is not None:
        found += each(f"{path}.nodeName", node, names.dns_subdomain(node))
    topology = endpoint.get("deprecatedTopology") or {}
    found += metadata.validate_labels(f"{path}.deprecatedTopology", topology)
    if (host := endpoint.get("hostname")) is not None:
        found += each(f"{path}.hostname", host, names.dns_label(host))
    hints = endpoint.get("hints") or {}
    for field, rule in (("forZones", names.label_value), ("forNodes", names.dns_subdomain)):
        found += _hints(f"{path}.hints.{field}", hints.get(field) or [], rule)
    return found


def _hints(path: str, hints: list[Object], rule: Any) -> list[FieldError]:
    if len(hints) > 8:
        return [errors.too_many(path, len(hints), 8)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, hint in enumerate(hints):
        name, here = hint.get("name") or "", f"{path}[{i}].name"
        if name in seen:
            found.append(errors.duplicate(here, name))
        seen.add(name)
        found += each(here, name, rule(name))
    return found


def _slice_address(path: str, i: int, address: str, kind: str) -> list[FieldError]:
    here = f"{path}[{i}]"
    if kind == "FQDN":
        return _fqdn(here, address)
    if kind not in _ADDRESS_TYPES:
        return []
    if found := addresses.validate_ip(here, address):
        return found
    found = []
    if addresses.is_v6(address) != (kind == "IPv6"):
        found.append(errors.invalid(path, address, f"must be an {kind} address"))
    return found + addresses.validate_endpoint_ip(here, address)


def _fqdn(path: str, name: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    name = name.removesuffix(".")
    if problems := names.dns_subdomain(name):
        return [errors.invalid(path, name, ",".join(problems))]
    if "." not in name:
        return [errors.invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in name.split("."):
        if problems := names.dns_label(label):
            return [errors.invalid(path, label, ",".join(problems))]
    return []


def _slice_ports(ports: list[Object]) -> list[FieldError]:
    if len(ports) > 20000:
        return [errors.too_many("ports", len(ports), 20000)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        here, name = f"ports[{i}]", port.get("name") or ""
        if name:
            found += each(f"{here}.name", name, names.dns_label(name))
        if name in seen:
            found.append(errors.duplicate(f"{here}.name", name))
        seen.add(name)
        protocol = port.get("protocol")
        if protocol is None:
            found.append(errors.required(f"{here}.protocol"))
        elif protocol not in PROTOCOLS:
            found.append(unsupported(f"{here}.protocol", protocol, PROTOCOLS))
        if (application := port.get("appProtocol")) is not None:
            found += each(f"{here}.appProtocol", application, names.qualified_name(application))
    return found
