"""Ingresses, their classes, and NetworkPolicies."""

from __future__ import annotations

import ipaddress
from typing import ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import annotations_of, each, immutable, unsupported
from podium.apiserver.kinds.jobpolicies import domain_prefixed_path
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AN_IP = "must be a DNS name, not an IP address"


class IngressStrategy(KindStrategy):
    generation_fields = ("spec",)
    empty_status: ClassVar[Object | None] = {"loadBalancer": {}}

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        rules, backend, name = (
            spec.get("rules") or [],
            spec.get("defaultBackend"),
            spec.get("ingressClassName"),
        )
        found: list[FieldError] = []
        if not rules and backend is None:
            text = "either `defaultBackend` or `rules` must be specified"
            found.append(errors.invalid("spec", spec.get("rules"), text))
        if backend is not None:
            found += _backend("spec.defaultBackend", backend)
        for i, rule in enumerate(rules):
            found += _rule(f"spec.rules[{i}]", rule)
        for i, tls in enumerate(spec.get("tls") or ()):
            found += _tls(f"spec.tls[{i}]", tls)
        if name is not None:
            found += each("spec.ingressClassName", name, names.dns_subdomain(name))
        annotation = annotations_of(obj).get(_CLASS_ANNOTATION)
        if old is None and annotation is not None and name is not None and annotation != name:
            text = "must match `ingressClassName` when both are specified"
            found.append(errors.invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, text))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        known = [i["ip"] for i in _ingress(old) if i.get("ip")]
        found: list[FieldError] = []
        for i, ingress in enumerate(_ingress(new)):
            here = f"status.loadBalancer.ingress[{i}]"
            if ip := ingress.get("ip"):
                found += addresses.validate_ip(f"{here}.ip", ip, known)
            if host := ingress.get("hostname"):
                found += each(f"{here}.hostname", host, names.dns_subdomain(host))
                if addresses.parse(host) is not None:
                    found.append(errors.invalid(f"{here}.hostname", host, _NOT_AN_IP))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None or _CLASS_ANNOTATION not in annotations_of(obj):
            return []
        return [
            f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        ]


class IngressClassStrategy(KindStrategy):
    namespaced = False
    generation_fields = ("spec",)

    def default(self, obj: Object) -> None:
        parameters = (obj.get("spec") or {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        controller, parameters = spec.get("controller") or "", spec.get("parameters")
        found = [errors.too_long("spec.controller", 250)] if len(controller) > 250 else []
        found += domain_prefixed_path("spec.controller", controller)
        return found + (_parameters("spec.parameters", parameters) if parameters is not None else [])

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        after, before = ((o.get("spec") or {}).get("controller") or "" for o in (new, old))
        return immutable("spec.controller", after, before)


class NetworkPolicyStrategy(KindStrategy):
    generation_fields = ("spec",)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for field in ("ingress", "egress"):
            for rule in spec.get(field) or ():
                for port in (rule or {}).get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        known = _ranges((old or {}).get("spec") or {})
        found = metadata.validate_selector("spec.podSelector", spec.get("podSelector"))
        for field, peers in (("ingress", "from"), ("egress", "to")):
            for i, rule in enumerate(spec.get(field) or ()):
                here = f"spec.{field}[{i}]"
                for j, port in enumerate(rule.get("ports") or ()):
                    found += _policy_port(f"{here}.ports[{j}]", port)
                for j, peer in enumerate(rule.get(peers) or ()):
                    found += _peer(f"{here}.{peers}[{j}]", peer, known)
        types = spec.get("policyTypes") or []
        if len(types) > 2:
            text = "may not specify more than two policyTypes"
            return [*found, errors.invalid("spec.policyTypes", types, text)]
        for i, kind in enumerate(types):
            if kind not in ("Ingress", "Egress"):
                found.append(unsupported(f"spec.policyTypes[{i}]", kind, ("Ingress", "Egress")))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec, found = obj.get("spec") or {}, []
        for field, peers in (("ingress", "from"), ("egress", "to")):
            for i, rule in enumerate(spec.get(field) or ()):
                for j, peer in enumerate(rule.get(peers) or ()):
                    here, block = f"spec.{field}[{i}].{peers}[{j}].ipBlock", peer.get("ipBlock") or {}
                    if cidr := block.get("cidr"):
                        found += addresses.warn_cidr(f"{here}.cidr", cidr)
                    for k, cidr in enumerate(block.get("except") or ()):
                        found += addresses.warn_cidr(f"{here}.except[{k}]", cidr)
        return found


def _ingress(obj: Object) -> list[Object]:
    listed: list[Object] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return listed


def _host(path: str, host: str) -> list[FieldError]:
    if "*" in host:
        return each(path, host, names.wildcard_subdomain(host))
    return each(path, host, names.dns_subdomain(host))


def _rule(path: str, rule: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if host := rule.get("host"):
        if addresses.parse(host) is not None:
            found.append(errors.invalid(f"{path}.host", host, _NOT_AN_IP))
        found += _host(f"{path}.host", host)
    if (http := rule.get("http")) is None:
        return found
    paths = http.get("paths") or []
    if not paths:
        found.append(errors.required(f"{path}.http.paths"))
    return found + [e for i, p in enumerate(paths) for e in _path(f"{path}.http.paths[{i}]", p)]


def _path(path: str, rule: Object) -> list[FieldError]:
    kind, target = rule.get("pathType"), rule.get("path") or ""
    if kind is None:
        return [errors.required(f"{path}.pathType", "pathType must be specified")]
    here = f"{path}.path"
    found: list[FieldError] = []
    absolute = errors.invalid(here, target, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        if not target.startswith("/"):
            found.append(absolute)
        found += each(here, target, [f"must not contain '{bad}'" for bad in _BAD_SEQUENCES if bad in target])
        found += each(
            here, target, [f"cannot end with '{bad}'" for bad in ("/..", "/.") if target.endswith(bad)]
        )
    elif kind == "ImplementationSpecific":
        if target and not target.startswith("/"):
            found.append(absolute)
    else:
        found.append(unsupported(f"{path}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix")))
    return found + _backend(f"{path}.backend", rule.get("backend") or {})


def _backend(path: str, backend: Object) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [errors.invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference(f"{path}.resource", resource)
    if service is None:
        return [errors.invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name") or "", service.get("port") or {}
    here = f"{path}.service"
    found = each(f"{here}.name", name, names.dns_label(name)) if name else [errors.required(f"{here}.name")]
    if port.get("name") and port.get("number"):
        found.append(errors.invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        found += each(f"{here}.port.name", port["name"], names.port_name(port["name"]))
    elif port.get("number"):
        found += each(f"{here}.port.number", port["number"], names.port_number(port["number"]))
    else:
        found.append(errors.required(path, "port name or number is required"))
    return found


def _reference(path: str, ref: Object) -> list[FieldError]:
    found: list[FieldError] = []
    if (group := ref.get("apiGroup")) is not None:
        found += each(f"{path}.apiGroup", group, names.dns_subdomain(group))
    for field in ("kind", "name"):
        value, here = ref.get(field) or "", f"{path}.{field}"
        found += each(here, value, names.path_segment(value)) if value else [errors.required(here)]
    return found


def _tls(path: str, tls: Object) -> list[FieldError]:
    found = [e for i, host in enumerate(tls.get("hosts") or ()) for e in _host(f"{path}.hosts[{i}]", host)]
    secret = tls.get("secretName") or ""
    return found + (each(f"{path}.secretName", secret, names.dns_subdomain(secret)) if secret else [])


def _parameters(path: str, parameters: Object) -> list[FieldError]:
    found = _reference(path, parameters)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        return [*found, errors.required(f"{path}.scope")]
    if scope not in ("Cluster", "Namespace"):
        return [*found, unsupported(f"{path}.scope", scope, ("Cluster", "Namespace"))]
    if scope == "Namespace":
        if namespace is None:
            text = "`parameters.scope` is set to 'Namespace'"
            return [*found, errors.required(f"{path}.namespace", text)]
        return found + each(f"{path}.namespace", namespace, names.dns_label(namespace))
    if namespace is not None:
        found.append(errors.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return found


def _policy_port(path: str, rule: Object) -> list[FieldError]:
    protocol, port, end = rule.get("protocol"), rule.get("port"), rule.get("endPort")
    found: list[FieldError] = []
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        found.append(unsupported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    if port is None:
        if end is not None:
            text = "may not be specified when `port` is not specified"
            found.append(errors.invalid(f"{path}.endPort", end, text))
    elif isinstance(port, str):
        if end is not None:
            text = "may not be specified when `port` is non-numeric"
            found.append(errors.invalid(f"{path}.endPort", end, text))
        found += each(f"{path}.port", port, names.port_name(port))
    else:
        found += each(f"{path}.port", port, names.port_number(port))
        if end is not None:
            if end < port:
                text = "must be greater than or equal to `port`"
                found.append(errors.invalid(f"{path}.endPort", port, text))
            found += each(f"{path}.endPort", end, names.port_number(end))
    return found


def _peer(path: str, peer: Object, known: list[str]) -> list[FieldError]:
    found: list[FieldError] = []
    given = [f for f in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(f) is not None]
    for field in given:
        if field == "ipBlock":
            found += _ip_block(f"{path}.ipBlock", peer["ipBlock"], known)
        else:
            found += metadata.validate_selector(f"{path}.{field}", peer[field])
    if not given:
        found.append(errors.required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        found.append(errors.forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _ip_block(path: str, block: Object, known: list[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [errors.required(f"{path}.cidr")]
    found = addresses.validate_cidr(f"{path}.cidr", cidr, known)
    outer = addresses.parse_network(cidr)
    if outer is None:
        return found
    for i, text in enumerate(block.get("except") or ()):
        here = f"{path}.except[{i}]"
        found += addresses.validate_cidr(here, text, known)
        inner = addresses.parse_network(text)
        if inner is not None and (inner.prefixlen <= outer.prefixlen or not _contains(outer, inner)):
            found.append(errors.invalid(here, text, "must be a strict subset of `cidr`"))
    return found


def _contains(outer: addresses.Network, inner: addresses.Network) -> bool:
    if isinstance(outer, ipaddress.IPv4Network) and isinstance(inner, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, ipaddress.IPv6Network) and isinstance(inner, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def _ranges(spec: Object) -> list[str]:
    found: list[str] = []
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(field) or ():
            for peer in rule.get(peers) or ():
                if block := peer.get("ipBlock"):
                    found += [block.get("cidr") or "", *(block.get("except") or ())]
    return found
