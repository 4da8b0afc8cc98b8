"""The controllers that stand in for nodes: registration, scheduler, kubelet, volume provisioner.

They serve any control plane; nothing here knows who made the Pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from podium.api.kinds import Key, Object
from podium.kube.controller import Controller, Result
from podium.kube.source import Channel, annotations_changed, for_kind, watches
from podium.kube.store import Change, Held
from podium.simulator import faults, kubelet, nodes, provisioning, scheduling
from podium.simulator.nodes import Addresses, Seat
from podium.simulator.objects import (
    CLAIM,
    NAMESPACE,
    NODE,
    POD,
    STORAGE_CLASS,
    VOLUME,
    name,
    namespace,
    spec,
    uid,
)
from podium.simulator.scheduling import Usage
from podium.simulator.world import World


class _PodSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _PodStatus(msgspec.Struct, rename="camel", frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class _Pod(msgspec.Struct):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


_peek = msgspec.json.Decoder(_Pod).decode


def by_node(held: Held) -> Iterator[str]:
    """An index function: the node of a Pod that has not ended, empty while it has none."""
    pod = _peek(held.raw or b"{}")
    if pod.status.phase not in ("Succeeded", "Failed"):
        yield pod.spec.node_name


class NodeHalf:
    """What the controllers of the node half share."""

    def __init__(self, world: World, seats: Mapping[str, Seat]) -> None:
        self._world = world
        self._seats = seats
        self._addresses = Addresses()
        self._usage: dict[str, Usage] = {}
        self._counted: dict[str, tuple[str, scheduling.Amounts]] = {}
        self._pods = world.follow(POD)
        self._pods.add_index("node", by_node)
        self._pods.on_change(self._account)
        self._namespaces = world.follow(NAMESPACE, metadata_only=True)
        for gvk in (NODE, CLAIM, VOLUME, STORAGE_CLASS):
            world.follow(gvk)

    def controllers(self) -> list[Controller]:
        """Everything that moves Pods along."""
        registered = Channel()
        for seat in self._seats:
            registered.send(Key("", seat))
        make = self._world.controller
        faults_changed = watches(
            NAMESPACE, self._placed_in, metadata_only=True, predicates=[annotations_changed]
        )
        waiting = [watches(POD, self._scheduled), watches(NODE, self._pending), watches(CLAIM, self._pending)]
        claims = [for_kind(CLAIM), watches(STORAGE_CLASS, self._claims_of_class)]
        return [
            make("nodes", self._node, [for_kind(NODE), registered]),
            make("scheduler", self._schedule, waiting),
            make("kubelet", self._run_pod, [watches(POD, self._placed), faults_changed], workers=8),
            make("provisioner", self._provision, claims),
            make("reclaimer", self._reclaim, [for_kind(VOLUME)]),
        ]

    # --- which keys a change concerns ---------------------------------------------------------------------

    def _pending(self, held: Held) -> Iterator[Key]:
        for pod in self._pods.select(held.metadata.namespace, index=("node", "")):
            yield pod.key

    def _scheduled(self, held: Held) -> Iterator[Key]:
        pod = _peek(held.raw or b"{}")
        if not pod.spec.node_name:
            yield held.key
            return
        # Whatever happens to a Pod on a node may have made room for one that waits.
        for waiting in self._pods.select(index=("node", "")):
            yield waiting.key

    def _placed(self, held: Held) -> Iterator[Key]:
        if _peek(held.raw or b"{}").spec.node_name in self._seats:
            yield held.key

    def _placed_in(self, held: Held) -> Iterator[Key]:
        for seat in self._seats:
            for pod in self._pods.select(held.metadata.name, index=("node", seat)):
                yield pod.key

    def _claims_of_class(self, held: Held) -> Iterator[Key]:
        for claim in self._world.list(CLAIM):
            if spec(claim).get("storageClassName") == held.metadata.name:
                yield Key.of(claim)

    # --- accounts -----------------------------------------------------------------------------------------

    def _account(self, change: Change) -> None:
        """Keep the nodes' usage and the Pods' addresses equal to what the cache holds."""
        held = change.subject
        pod, key = _peek(held.raw or b"{}"), held.metadata.uid
        gone = change.new is None
        counts = not gone and pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")
        if counts and key not in self._counted:
            amounts = scheduling.requests(spec(held.object()))
            self._counted[key] = (pod.spec.node_name, amounts)
            usage = self._usage.setdefault(pod.spec.node_name, Usage())
            usage.pods += 1
            usage.amounts.update(amounts)
        elif not counts and key in self._counted:
            node, amounts = self._counted.pop(key)
            self._usage[node].pods -= 1
            self._usage[node].amounts.subtract(amounts)
        if gone:
            self._addresses.free(key)
        elif pod.status.pod_ip:
            self._addresses.hold(pod.status.pod_ip, key)

    # --- decisions ----------------------------------------------------------------------------------------

    async def _node(self, key: Key) -> Result | None:
        seat = self._seats.get(key.name)
        if seat is None:
            return None
        return await self._world.carry_out(nodes.decide(seat, self._world.get(NODE, key), self._world.now()))

    async def _schedule(self, key: Key) -> Result | None:
        world = self._world
        pod = world.get(POD, key)
        if pod is None or not scheduling.is_ours(pod):
            return None
        available = [node for node in world.list(NODE) if not node["metadata"].get("deletionTimestamp")]
        claims = scheduling.Claims()
        if scheduling.claim_names(pod):
            classes = {name(found): found for found in world.list(STORAGE_CLASS)}
            found = {name(claim): claim for claim in world.list(CLAIM, key.namespace)}
            claims = scheduling.claims_of(pod, found, classes)
        return await world.carry_out(scheduling.decide(pod, available, self._usage, claims, world.now()))

    async def _run_pod(self, key: Key) -> Result | None:
        world = self._world
        pod = world.get(POD, key)
        seat = self._seats.get(spec(pod).get("nodeName", "")) if pod is not None else None
        if pod is None or seat is None:
            return None
        place = kubelet.Place(seat.address, self._address(pod, seat))
        return await world.carry_out(kubelet.decide(pod, self._faults(pod), place, world.now()))

    def _address(self, pod: Object, seat: Seat) -> str:
        if spec(pod).get("hostNetwork"):
            return seat.address
        return self._addresses.address_for(uid(pod), seat)

    def _faults(self, pod: Object) -> faults.Faults:
        place = self._namespaces.metadata(Key("", namespace(pod)))
        given = place.annotations if place is not None else {}
        return faults.read(pod["metadata"].get("annotations") or {}, given)

    async def _provision(self, key: Key) -> Result | None:
        world = self._world
        claim = world.get(CLAIM, key)
        if claim is None:
            return None
        storage = world.get(STORAGE_CLASS, Key("", spec(claim).get("storageClassName") or ""))
        made = Key("", provisioning.volume_name(claim))
        return await world.carry_out(
            provisioning.provision(claim, storage, world.get(VOLUME, made) is not None)
        )

    async def _reclaim(self, key: Key) -> Result | None:
        volume = self._world.get(VOLUME, key)
        return None if volume is None else await self._world.carry_out(provisioning.reclaim(volume))
