"""Addresses and ports for Services: what each one gets, keeps and gives back.

There is no table of allocations: what is taken is what the Services hold, in an index that follows the store.
So nothing can leak, and a Service that is gone has given everything back. A write that is still on its way to
the disk counts as well; what a deletion on its way would free does not count as free yet.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TypeAlias

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.chance import CHANCE
from podium.apiserver.store import Change, Store
from podium.schema.fielderrors import FieldError, invalid

# A cluster address or a port of every node.
Good: TypeAlias = str | int

SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_SERVICES = "/services"
_PORT_TYPES = ("NodePort", "LoadBalancer")
_TAKEN = "provided port is already allocated"
_OUT_OF_RANGE = "provided port is not in the valid range. The range of valid ports is 30000-32767"


class Allocator:
    """Completes Services; the caller stores the result without giving up the event loop in between."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holders: dict[Good, str] | None = None
        store.observe(self._observe)

    def create(self, service: Object) -> None:
        """Give a new Service what it lacks, in place."""
        spec = service["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        if spec.get("type") != "ExternalName":
            _refuse(service, _settle_families(spec, {}))
            self._allocate_address(service)
        if spec.get("type") in _PORT_TYPES:
            self._allocate_ports(service)
        if _needs_health_check(spec):
            self._allocate_health_check(service)

    def update(self, new: Object, old: Object) -> None:
        """Give a changed Service what it now lacks, and what it had and its writer left out, in place."""
        spec, before = new["spec"], old["spec"]
        _carry_over(spec, before)
        _keep_together(spec, before)
        if spec.get("type") != "ExternalName":
            _refuse(new, _settle_families(spec, before))
            if before.get("type") == "ExternalName":
                self._allocate_address(new)
        if spec.get("type") in _PORT_TYPES:
            self._update_ports(new, _node_ports(before))
        if _needs_health_check(spec) and not _needs_health_check(before):
            self._allocate_health_check(new)

    # --- addresses ------------------------------------------------------------------------------------

    def _allocate_address(self, service: Object) -> None:
        spec = service["spec"]
        wanted = (spec.get("clusterIPs") or [""])[0]
        if wanted == "None":
            return
        if wanted:
            problem = ""
            if ipaddress.ip_address(wanted) not in SERVICE_NETWORK:
                problem = "the provided network does not match the current range"
            elif self._is_taken(wanted, service):
                problem = "provided IP is already allocated"
            if problem:
                text = f"failed to allocate IP {wanted}: {problem}"
                _refuse(service, [invalid("spec.clusterIPs", spec["clusterIPs"], text)])
        address = wanted or self._free_address(service)
        spec["clusterIP"], spec["clusterIPs"] = address, [address]

    def _free_address(self, service: Object) -> str:
        # The lower addresses are for those who ask for one.
        for _ in range(64):
            address = str(SERVICE_NETWORK[CHANCE.randrange(256, SERVICE_NETWORK.num_addresses - 1)])
            if not self._is_taken(address, service):
                return address
        for host in SERVICE_NETWORK.hosts():
            if not self._is_taken(str(host), service):
                return str(host)
        name = service["metadata"].get("name", "")
        raise errors.internal(f'failed to allocate a serviceIP for Service "{name}": range is full')

    # --- ports ----------------------------------------------------------------------------------------

    def _allocate_ports(self, service: Object) -> None:
        """Ports for a new Service; those of one port number share one, whatever their protocol."""
        spec = service["spec"]
        ports = spec.get("ports") or []
        chosen: dict[int, int] = {}
        for position, port in enumerate(ports):
            if not port.get("nodePort") and not _wants_ports(spec):
                continue
            number = port["port"]
            if number not in chosen:
                asked = (p["nodePort"] for p in ports if p["port"] == number and p.get("nodePort"))
                wanted = next(asked, 0)
                if wanted:
                    self._claim(service, position, wanted, set(chosen.values()))
                chosen[number] = wanted or self._free_port(service, set(chosen.values()))
                port["nodePort"] = chosen[number]
            elif not port.get("nodePort"):
                port["nodePort"] = chosen[number]
            elif port["nodePort"] != chosen[number]:
                self._claim(service, position, port["nodePort"], set(chosen.values()))

    def _update_ports(self, service: Object, kept: set[int]) -> None:
        spec = service["spec"]
        used = set(kept)
        for position, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort")
            if not wanted and not _wants_ports(spec):
                continue
            if not wanted:
                port["nodePort"] = self._free_port(service, used)
            elif wanted not in used:
                self._claim(service, position, wanted, set())
            used.add(port["nodePort"])

    def _claim(self, service: Object, position: int, wanted: int, own: set[int]) -> None:
        if problem := self._problem(service, wanted, own):
            _refuse(service, [invalid(f"spec.ports[{position}].nodePort", wanted, problem)])

    def _problem(self, service: Object, wanted: int, own: set[int]) -> str:
        if wanted not in NODE_PORTS:
            return _OUT_OF_RANGE
        return _TAKEN if wanted in own or self._is_taken(wanted, service) else ""

    def _allocate_health_check(self, service: Object) -> None:
        spec = service["spec"]
        wanted, own = spec.get("healthCheckNodePort"), _node_ports(spec)
        if not wanted:
            spec["healthCheckNodePort"] = self._free_port(service, own)
            return
        if problem := self._problem(service, wanted, own):
            text = f"failed to allocate requested HealthCheck NodePort {wanted}: {problem}"
            raise errors.internal(text)

    def _free_port(self, service: Object, own: set[int]) -> int:
        for port in CHANCE.sample(NODE_PORTS, len(NODE_PORTS)):
            if port not in own and not self._is_taken(port, service):
                return port
        raise errors.internal("failed to allocate a nodePort: range is full")

    # --- what is taken --------------------------------------------------------------------------------

    def _is_taken(self, good: Good, service: Object) -> bool:
        """Whether another Service has it."""
        metadata = service["metadata"]
        key = f"{metadata['namespace']}/{metadata.get('name', '')}"
        table = self._store.table(_SERVICES)
        if self._holders is None:
            self._holders = {g: k for k, stored in table.objects.items() for g in _held(stored.object)}
        if self._holders.get(good, key) != key:
            return True
        return any(
            good in _held(change.new.object)
            for change in table.staged.values()
            if change.new is not None and change.key != key
        )

    def _observe(self, change: Change) -> None:
        if self._holders is None or change.table.name != _SERVICES:
            return
        for good in _held(change.old.object) if change.old else ():
            self._holders.pop(good, None)
        for good in _held(change.new.object) if change.new else ():
            self._holders[good] = change.key


def _held(service: Object) -> Iterator[Good]:
    """The addresses and ports that a Service has."""
    spec = service["spec"]
    yield from (address for address in spec.get("clusterIPs") or () if address not in ("", "None"))
    yield from _node_ports(spec)
    if spec.get("healthCheckNodePort"):
        yield spec["healthCheckNodePort"]


def _node_ports(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _wants_ports(spec: Object) -> bool:
    return spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False


def _refuse(service: Object, problems: list[FieldError]) -> None:
    if problems:
        raise errors.invalid("", "Service", service["metadata"].get("name", ""), problems)


def _carry_over(spec: Object, before: Object) -> None:
    """What the server once chose stays, if a writer who does not know it left it out."""
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if spec.get("type") in _PORT_TYPES and before.get("type") in _PORT_TYPES:
        used = _node_ports(spec) & _node_ports(before)
        by_name = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            had = by_name.get(port.get("name", ""))
            if not port.get("nodePort") and had and had not in used:
                port["nodePort"] = had
    if _needs_health_check(spec) and _needs_health_check(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


def _keep_together(spec: Object, before: Object) -> None:
    """A writer who knows only one of the two address fields means both."""
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    old_one, old_many = before.get("clusterIP") or "", before.get("clusterIPs") or []
    if old_many and not many and one == old_one:
        spec["clusterIPs"] = list(old_many)
    elif one != old_one and many == old_many:
        if one:
            spec["clusterIPs"] = [one]
        else:
            spec.pop("clusterIPs", None)


def _settle_families(spec: Object, before: Object) -> list[FieldError]:
    """Choose the IP families and their policy, or say why that cannot be: only IPv4 is configured."""
    from podium.apiserver.kinds.services import validate_cluster_ips

    open_ended = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        # Endpoints that somebody else writes for a headless Service may be of either family.
        inferred = "RequireDualStack" if open_ended else "SingleStack"
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or inferred
    if problems := validate_cluster_ips(spec, before) or _reconcile_families(spec, before):
        return problems
    families: list[str] = spec.get("ipFamilies") or ["IPv4"]
    if open_ended:
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families
        return []
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        problems.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text))
    for position, family in enumerate(families):
        if family != "IPv4":
            text = "not configured on this cluster"
            problems.append(invalid(f"spec.ipFamilies[{position}]", family, text))
    spec["ipFamilies"] = families
    return problems


def _reconcile_families(spec: Object, before: Object) -> list[FieldError]:
    """Make policy, families and addresses fit each other where the writer's wish is clear."""
    single = spec["ipFamilyPolicy"] == "SingleStack"
    problems: list[FieldError] = []
    for field, what, which in (
        ("clusterIPs", "cluster IPs", "cluster IP"),
        ("ipFamilies", "IP families", "IP family"),
    ):
        values, earlier = spec.get(field) or [], before.get(field) or []
        if single and len(values) > 1 and values == earlier:
            spec[field] = values = values[:1]
        if not single and len(earlier) == 2 and len(values) == 1 and values == earlier[:1]:
            text = f"must be 'SingleStack' to release the secondary {which}"
            problems.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text))
        if single and len(values) == 2:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            problems.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text))
    families = list(spec.get("ipFamilies") or ())
    for position, address in enumerate(spec.get("clusterIPs") or ()):
        if address == "None" or position < len(families):
            continue
        if ":" in address:
            text = "IPv6 is not configured on this cluster"
            problems.append(invalid(f"spec.clusterIPs[{position}]", spec["clusterIPs"], text))
        else:
            families.append("IPv4")
    if families:
        spec["ipFamilies"] = families
    return problems
