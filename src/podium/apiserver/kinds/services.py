"""Services. Allocating addresses and ports is admission's work; the rules here hold before and after it."""

from __future__ import annotations

from typing import Any, ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import addresses, metadata
from podium.apiserver.kinds.base import KindStrategy
from podium.apiserver.kinds.checks import annotations_of, each, one_of, port_or_name, unsupported
from podium.apiserver.kinds.containers import PROTOCOLS
from podium.schema import fielderrors as errors
from podium.schema.fielderrors import FieldError

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_ONCE_SET = "may not change once set"
_AFFINITY_NEEDED = "when session affinity type is ClientIP"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"


class ServiceStrategy(KindStrategy):
    create_on_update = True
    empty_status: ClassVar[Object | None] = {"loadBalancer": {}}

    def name_problems(self, name: str, prefix: bool) -> Any:
        return names.dns_label(name, prefix)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        _default_affinity(spec)
        kind = spec["type"] = spec.get("type") or "ClusterIP"
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port") or 0
        if externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if spec.get("internalTrafficPolicy") is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            spec["internalTrafficPolicy"] = "Cluster"
        if kind == "LoadBalancer":
            if spec.get("allocateLoadBalancerNodePorts") is None:
                spec["allocateLoadBalancerNodePorts"] = True
            for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _drop_internal_policy(obj.get("spec") or {})
        # A client that knows only one of the two cluster IP fields means both.
        spec = obj.get("spec") or {}
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        _keep_cluster_ips_together(spec, before)
        _drop_what_the_old_type_left(spec, before)
        _drop_internal_policy(spec)
        if spec.get("type") != "LoadBalancer":
            new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
        found = _topology_annotations(annotations_of(obj))
        found += _type_rules(spec) + _ports("spec.ports", spec)
        found += metadata.validate_labels("spec.selector", spec.get("selector") or {})
        found += _session_affinity(spec) + validate_cluster_ips(spec, before)
        for i, ip in enumerate(spec.get("externalIPs") or ()):
            here = f"spec.externalIPs[{i}]"
            problems = addresses.validate_ip(here, ip, before.get("externalIPs") or ())
            found += problems or addresses.validate_endpoint_ip(here, ip)
        found += one_of("spec.type", spec.get("type"), _TYPES)
        found += _port_clashes(spec) + _source_ranges(obj, old)
        if spec.get("type") != "LoadBalancer":
            if spec.get("allocateLoadBalancerNodePorts") is not None:
                found.append(errors.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER))
            if spec.get("loadBalancerClass") is not None:
                found.append(errors.forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER))
        elif (name := spec.get("loadBalancerClass")) is not None:
            found += each("spec.loadBalancerClass", name, names.qualified_name(name))
        return found + _traffic(spec)

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        found: list[FieldError] = []
        if "ExternalName" not in (spec.get("type"), before.get("type")):
            found += _address_changes(spec, before) + _family_changes(spec, before)
        stays_balancer = spec.get("type") == before.get("type") == "LoadBalancer"
        value, port = spec.get("loadBalancerClass"), spec.get("healthCheckNodePort") or 0
        if stays_balancer and value != before.get("loadBalancerClass"):
            found.append(errors.invalid("spec.loadBalancerClass", value, _ONCE_SET))
        checked = needs_health_check(spec) and needs_health_check(before)
        if checked and port != (before.get("healthCheckNodePort") or 0):
            found.append(errors.forbidden("spec.healthCheckNodePort", "field is immutable"))
        return found

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        path = "status.loadBalancer.ingress"
        listed = _ingress(new)
        if listed and (new.get("spec") or {}).get("type") != "LoadBalancer":
            return [errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
        known = [i["ip"] for i in _ingress(old) if i.get("ip")]
        return [
            e for i, ingress in enumerate(listed) for e in _ingress_problems(f"{path}[{i}]", ingress, known)
        ]

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return _warnings(obj)


def externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def is_headless(spec: Object) -> bool:
    return (spec.get("clusterIPs") or [spec.get("clusterIP")])[:1] == ["None"]


def _default_affinity(spec: Object) -> None:
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _keep_cluster_ips_together(spec: Object, before: Object) -> None:
    """A client that does not know `clusterIPs` may still change `clusterIP`, and the other way round."""
    ip, ips = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    old_ip, old_ips = before.get("clusterIP") or "", before.get("clusterIPs") or []
    if ips == old_ips and ip != old_ip:
        if ip:
            spec["clusterIPs"] = [ip]
        else:
            spec.pop("clusterIPs", None)
    if not ips and ip and ip == old_ip and spec.get("type") != "ExternalName":
        spec["clusterIPs"] = list(old_ips) or [ip]


def _drop_what_the_old_type_left(spec: Object, before: Object) -> None:
    """A change of type sets free what only the old type had, if the writer left it as it was."""

    def drop(field: str, applies: bool) -> None:
        if applies and spec.get(field) == before.get(field):
            spec.pop(field, None)

    kind, old_kind = spec.get("type"), before.get("type")
    to_external = kind == "ExternalName" and old_kind != "ExternalName"
    if to_external and spec.get("clusterIP") == before.get("clusterIP"):
        drop("clusterIPs", True)
        spec.pop("clusterIP", None)
    drop("ipFamilies", to_external)
    drop("ipFamilyPolicy", to_external)
    ports = ("NodePort", "LoadBalancer")
    if old_kind in ports and kind not in ports:
        old = {p.get("nodePort") for p in before.get("ports") or ()}
        if all(p.get("nodePort") in old for p in spec.get("ports") or () if p.get("nodePort")):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    drop("healthCheckNodePort", needs_health_check(before) and not needs_health_check(spec))
    left_balancer = old_kind == "LoadBalancer" and kind != "LoadBalancer"
    drop("allocateLoadBalancerNodePorts", left_balancer)
    drop("loadBalancerClass", left_balancer)
    drop("externalTrafficPolicy", externally_accessible(before) and not externally_accessible(spec))


def _drop_internal_policy(spec: Object) -> None:
    if spec.get("type") == "ExternalName":
        spec.pop("internalTrafficPolicy", None)


def _topology_annotations(annotations: dict[str, str]) -> list[FieldError]:
    mode, hints = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    text = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
    return [errors.invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, text)]


def _type_rules(spec: Object) -> list[FieldError]:
    kind, headless = spec.get("type"), is_headless(spec)
    found: list[FieldError] = []
    if not spec.get("ports") and not headless and kind != "ExternalName":
        found.append(errors.required("spec.ports"))
    if headless and kind in ("LoadBalancer", "NodePort"):
        text = f"may not be set to 'None' for {kind} services"
        found.append(errors.invalid("spec.clusterIPs[0]", "None", text))
    if kind == "ExternalName":
        given = [field for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(field)]
        text = "may not be set for ExternalName services"
        found += [errors.forbidden(f"spec.{field}", text) for field in given]
        name = (spec.get("externalName") or "").removesuffix(".")
        if name:
            found += each("spec.externalName", name, names.dns_subdomain(name))
        else:
            found.append(errors.required("spec.externalName"))
    return found


def _ports(path: str, spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    ports = spec.get("ports") or []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        here, name, number = f"{path}[{i}]", port.get("name") or "", port.get("port") or 0
        if name:
            found += each(f"{here}.name", name, names.dns_label(name))
            if name in seen:
                found.append(errors.duplicate(f"{here}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            found.append(errors.required(f"{here}.name"))
        found += each(f"{here}.port", number, names.port_number(number))
        found += one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        found += port_or_name(f"{here}.targetPort", port.get("targetPort"))
        if (protocol := port.get("appProtocol")) is not None:
            found += each(f"{here}.appProtocol", protocol, names.qualified_name(protocol))
    return found


def _port_clashes(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    ports = spec.get("ports") or []
    if spec.get("type") == "ClusterIP":
        for i, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                found.append(errors.forbidden(f"spec.ports[{i}].nodePort", text))
    seen: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        if not port.get("nodePort"):
            continue
        key = (port.get("protocol") or "", port["nodePort"])
        if key in seen:
            found.append(errors.duplicate(f"spec.ports[{i}].nodePort", port["nodePort"]))
        seen.add(key)
    numbers: set[tuple[str, int]] = set()
    for i, port in enumerate(ports):
        protocol, number = port.get("protocol") or "", port.get("port") or 0
        if (protocol, number) in numbers:
            # Upstream shows its internal struct here.
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number, "TargetPort": 0}
            found.append(errors.duplicate(f"spec.ports[{i}]", {**shown, "NodePort": 0}))
        numbers.add((protocol, number))
    return found


def _session_affinity(spec: Object) -> list[FieldError]:
    found = one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    path, config = "spec.sessionAffinityConfig", spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "None" and config is not None:
        found.append(errors.forbidden(path, "must not be set when session affinity is None"))
    if spec.get("sessionAffinity") == "ClientIP":
        if config is None:
            found.append(errors.required(path, _AFFINITY_NEEDED))
        elif (timeout := (config.get("clientIP") or {}).get("timeoutSeconds")) is None:
            found.append(errors.required(f"{path}.clientIP.timeoutSeconds", _AFFINITY_NEEDED))
        elif not 0 < timeout <= 86400:
            text = "must be greater than 0 and less than 86400"
            found.append(errors.invalid(f"{path}.clientIP.timeoutSeconds", timeout, text))
    return found


def validate_cluster_ips(spec: Object, before: Object) -> list[FieldError]:
    """What is wrong with addresses, families and policy; also asked before addresses are allocated."""
    if spec.get("type") == "ExternalName":
        return []
    path, ip, ips = "spec.clusterIPs", spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    found: list[FieldError] = []
    if ip and not ips:
        found.append(errors.required(path))
    elif ip and ips[0] != ip:
        found.append(errors.invalid(path, ips, "first value must match `clusterIP`"))
    elif ips and not ip:
        found.append(errors.invalid(path, ips, "must be empty when `clusterIP` is not specified"))
    for i, family in enumerate(families):
        if family not in _FAMILIES:
            found.append(unsupported(f"spec.ipFamilies[{i}]", family, _FAMILIES))
        if family in families[:i]:
            found.append(errors.duplicate(f"spec.ipFamilies[{i}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        found.append(unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    problems = _cluster_ip_texts(path, ips, before.get("clusterIPs") or [])
    if len(ips) > 2:
        found.append(errors.invalid(path, ips, "may only hold up to 2 values"))
    if problems:
        return found + problems
    if len(ips) > 1 and len({addresses.is_v6(i) for i in ips}) < 2:
        found.append(errors.invalid(path, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (address, family) in enumerate(zip(ips, families, strict=False)):
            if family in _FAMILIES and (family == "IPv6") != addresses.is_v6(address):
                text = f"expected an {family} value as indicated by `ipFamilies[{i}]`"
                found.append(errors.invalid(f"{path}[{i}]", address, text))
    return found


def _cluster_ip_texts(path: str, ips: list[str], known: list[str]) -> list[FieldError]:
    found: list[FieldError] = []
    for i, ip in enumerate(ips):
        if i == 0 and ip == "None":
            if len(ips) > 1:
                found.append(errors.invalid(path, ips, "'None' must be the first and only value"))
            continue
        found += addresses.validate_ip(f"{path}[{i}]", ip, known)
    return found


def _source_ranges(obj: Object, old: Object | None) -> list[FieldError]:
    spec, path = obj.get("spec") or {}, "spec.LoadBalancerSourceRanges"
    balancer = spec.get("type") == "LoadBalancer"
    found: list[FieldError] = []
    if ranges := spec.get("loadBalancerSourceRanges"):
        if not balancer:
            found.append(errors.forbidden(path, _ONLY_LOAD_BALANCER))
        known = [r.strip() for r in ((old or {}).get("spec") or {}).get("loadBalancerSourceRanges") or ()]
        for i, text in enumerate(ranges):
            found += addresses.validate_cidr(f"{path}[{i}]", text.strip(), known)
    elif (value := annotations_of(obj).get(_SOURCE_RANGES)) is not None:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        if not balancer:
            found.append(errors.forbidden(path, _ONLY_LOAD_BALANCER))
        if value.strip() and (old is None or annotations_of(old).get(_SOURCE_RANGES) != value):
            for text in value.split(","):
                found += addresses.validate_cidr(path, text.strip())
    return found


def _traffic(spec: Object) -> list[FieldError]:
    found: list[FieldError] = []
    external, health = spec.get("externalTrafficPolicy") or "", spec.get("healthCheckNodePort") or 0
    if externally_accessible(spec):
        found += one_of("spec.externalTrafficPolicy", external, ("Cluster", "Local"))
    elif external:
        text = "may only be set for externally-accessible services"
        found.append(errors.invalid("spec.externalTrafficPolicy", external, text))
    if health and not needs_health_check(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        found.append(errors.invalid("spec.healthCheckNodePort", health, text))
    elif health:
        found += each("spec.healthCheckNodePort", health, names.port_number(health))
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in ("Cluster", "Local"):
        found.append(unsupported("spec.internalTrafficPolicy", internal, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        found.append(unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return found


def _address_changes(spec: Object, before: Object) -> list[FieldError]:
    if is_headless(spec) and is_headless(before):
        return []
    ips, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    path = "spec.clusterIPs"
    found: list[FieldError] = []
    if len(ips) == len(old):
        return [
            errors.invalid(f"{path}[{i}]", ips, _ONCE_SET)
            for i, (a, b) in enumerate(zip(ips, old, strict=True))
            if a != b
        ]
    if len(old) > len(ips) and not ips:
        found.append(errors.invalid(f"{path}[0]", ips or None, "primary clusterIP can not be unset"))
    if old and ips and ips[0] != old[0]:
        found.append(errors.invalid(f"{path}[0]", ips, _ONCE_SET))
    if len(old) > len(ips) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        found.append(errors.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return found


def _family_changes(spec: Object, before: Object) -> list[FieldError]:
    if is_headless(spec) or is_headless(before):
        return []
    families, old = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    path = "spec.ipFamilies[0]"
    if len(families) == len(old):
        changed = [a for a, b in zip(families, old, strict=True) if a != b]
        return [errors.invalid(path, families, _ONCE_SET) for _ in changed]
    found: list[FieldError] = []
    if len(old) > len(families) and not spec.get("clusterIPs"):
        found.append(errors.invalid(path, families or None, "primary ipFamily can not be unset"))
    if old and families and families[0] != old[0]:
        found.append(errors.invalid(path, spec.get("clusterIPs"), _ONCE_SET))
    if len(old) > len(families) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        found.append(errors.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return found


def _ingress(obj: Object) -> list[Object]:
    listed: list[Object] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return listed


def _ingress_problems(path: str, ingress: Object, known: list[str]) -> list[FieldError]:
    ip, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
    found = addresses.validate_ip(f"{path}.ip", ip, known) if ip else []
    if mode is None:
        if ip:
            found.append(errors.required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif not ip:
        found.append(errors.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in ("Proxy", "VIP"):
        found.append(unsupported(f"{path}.ipMode", mode, ("Proxy", "VIP")))
    if host:
        found += each(f"{path}.hostname", host, names.dns_subdomain(host))
        if addresses.parse(host) is not None:
            found.append(errors.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return found


def _warnings(obj: Object) -> list[str]:
    spec, found = obj.get("spec") or {}, []
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    external, kind = spec.get("externalIPs") or [], spec.get("type")
    if _TOPOLOGY_HINTS in annotations_of(obj):
        found.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if not headless and spec.get("clusterIP"):
        for i, ip in enumerate(spec.get("clusterIPs") or ()):
            found += addresses.warn_ip(f"spec.clusterIPs[{i}]", ip)
    if headless:
        for name, given in (
            ("loadBalancerIP", spec.get("loadBalancerIP")),
            ("externalIPs", external),
            ("SessionAffinity", spec.get("sessionAffinity") != "None"),
        ):
            if given:
                found.append(f"spec.{name} is ignored for headless services")
    for i, ip in enumerate(external):
        found += addresses.warn_ip(f"spec.externalIPs[{i}]", ip)
    if external and not headless and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if ip := spec.get("loadBalancerIP"):
        found += addresses.warn_ip("spec.loadBalancerIP", ip)
    for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        found += addresses.warn_cidr(f"spec.loadBalancerSourceRanges[{i}]", cidr)
    if kind == "ExternalName" and external:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found
