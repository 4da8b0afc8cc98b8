"""The simulated nodes: what they say about themselves, and which addresses their Pods get.

A node says in many places that it is simulated. Capacity is only set where there is none, so a person may
give a node more, less or other resources and keep them. There are no heartbeats: a simulated node cannot fall
silent.
"""

from __future__ import annotations

import hashlib
import ipaddress
import platform
import uuid
from dataclasses import dataclass
from datetime import datetime

from podium.api.conditions import condition, other_conditions
from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.simulator.objects import is_deleting, spec, status
from podium.simulator.plan import Create, Delete, Note, Plan, Update, set_status

COMPONENT = "simulated-kubelet"
FIRST_NAME = "podium-simulated"
SIMULATED_LABEL = "podium.dev/simulated"
KUBELET_VERSION = "v1.36.4-simulated"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"

CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1024"}
_POD_NETWORK = ipaddress.IPv4Network("10.128.0.0/9")
_POD_PREFIX = 20
_NODE_NETWORK = ipaddress.IPv4Network("172.18.0.0/16")
MOST_NODES = 2 ** (_POD_PREFIX - _POD_NETWORK.prefixlen)

_PROVIDER = "simulated://podium/"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "this node is simulated by Podium and always ready"),
)


@dataclass(frozen=True, slots=True)
class Seat:
    """One simulated node: its place in the row decides its addresses."""

    number: int

    @property
    def name(self) -> str:
        """The first has the plain name, the others count from 2."""
        return FIRST_NAME if self.number == 0 else f"{FIRST_NAME}-{self.number + 1}"

    @property
    def address(self) -> str:
        """The node's own address."""
        return str(_NODE_NETWORK[self.number + 2])

    @property
    def pod_network(self) -> ipaddress.IPv4Network:
        """Where its Pods get their addresses."""
        step = 2 ** (32 - _POD_PREFIX)
        return ipaddress.IPv4Network((int(_POD_NETWORK[0]) + self.number * step, _POD_PREFIX))


def seats(count: int) -> dict[str, Seat]:
    """So many nodes, by name."""
    if not 0 <= count <= MOST_NODES:
        raise ValueError(f"between 0 and {MOST_NODES} nodes can be simulated, not {count}")
    return {seat.name: seat for seat in map(Seat, range(count))}


def decide(seat: Seat, node: Object | None, now: datetime) -> Plan:
    """Register the node, make it ready, and let it be used."""
    if node is None:
        made = _registration(seat)
        told = Note(made, "RegisteredNode", f"Node {seat.name} is simulated by Podium", COMPONENT)
        return Plan([Create(made, told)])
    plan = Plan()
    # Admission marks new nodes; where a node lifecycle controller runs it removes the mark, here we do.
    taints = [taint for taint in spec(node).get("taints") or () if taint.get("key") != NOT_READY_TAINT]
    if len(taints) != len(spec(node).get("taints") or ()):
        kept = {key: value for key, value in spec(node).items() if key != "taints"}
        plan.add(Update({**node, "spec": {**kept, "taints": taints} if taints else kept}))
    return plan.add(*set_status(node, _status(seat, node, now)))


def retire(node: Object) -> Plan:
    """Remove a node that an earlier run simulated and this one does not; real nodes are left alone."""
    ours = str(spec(node).get("providerID") or "").startswith(_PROVIDER)
    return Plan([Delete(node)] if ours and not is_deleting(node) else [])


def _registration(seat: Seat) -> Object:
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    labels = {
        SIMULATED_LABEL: "true",
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": seat.name,
        "kubernetes.io/os": "linux",
    }
    network = str(seat.pod_network)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": seat.name, "labels": labels},
        "spec": {"podCIDR": network, "podCIDRs": [network], "providerID": f"{_PROVIDER}{seat.name}"},
    }


def _status(seat: Seat, node: Object, now: datetime) -> Object:
    current = status(node)
    others = other_conditions(node, *(kind for kind, *_ in _CONDITIONS))
    capacity = current.get("capacity") or CAPACITY
    return {
        **current,
        "capacity": capacity,
        "allocatable": current.get("allocatable") or capacity,
        "conditions": [*others, *(_condition(node, *wanted, now) for wanted in _CONDITIONS)],
        "addresses": [
            {"type": "InternalIP", "address": seat.address},
            {"type": "Hostname", "address": seat.name},
        ],
        "nodeInfo": _node_info(seat),
    }


def _condition(node: Object, kind: str, value: str, reason: str, message: str, now: datetime) -> Object:
    old = condition(node, kind)
    if old is not None and (old.get("status"), old.get("reason")) == (value, reason):
        return old
    fields = {"type": kind, "status": value, "reason": reason, "message": message}
    return {**fields, "lastHeartbeatTime": timestamp(now), "lastTransitionTime": timestamp(now)}


def _node_info(seat: Seat) -> Object:
    # Made from the name, so that a restart does not change it.
    identity = hashlib.sha256(seat.name.encode()).digest()
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "bootID": str(uuid.UUID(bytes=identity[:16])),
        "containerRuntimeVersion": "simulated://1",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": identity[:16].hex(),
        "operatingSystem": "linux",
        "osImage": "Simulated by Podium",
        "systemUUID": str(uuid.UUID(bytes=identity[16:])),
    }


class Addresses:
    """Pod addresses of the simulated nodes, each given to one Pod at a time.

    Freed addresses are not given again before the others had their turn: whoever still talks to an old Pod
    should not reach a new one.
    """

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._given: dict[str, str] = {}
        self._next: dict[str, int] = {}

    def hold(self, address: str, uid: str) -> None:
        """Take note that a Pod has this address."""
        self._holders[address] = uid
        self._given[uid] = address

    def free(self, uid: str) -> None:
        """Take back the address of a Pod that is gone."""
        address = self._given.pop(uid, None)
        if address is not None and self._holders.get(address) == uid:
            del self._holders[address]

    def address_for(self, uid: str, seat: Seat) -> str:
        """The Pod's address on this node; given now if it has none."""
        if uid in self._given:
            return self._given[uid]
        network = seat.pod_network
        # The first belongs to the network, the second to its gateway, the last is for everybody.
        usable = network.num_addresses - 3
        start = self._next.get(seat.name, 0)
        for step in range(usable):
            address = str(network[2 + (start + step) % usable])
            if address not in self._holders:
                self._next[seat.name] = (start + step + 1) % usable
                self.hold(address, uid)
                return address
        raise ValueError(f"no free Pod address on {seat.name}")
