"""The controllers that stand in for kube-controller-manager: workloads, Services, volumes, budgets.

Each reconcile here only gathers what a decision looks at and carries out the plan that it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podium.api import selectors
from podium.api.kinds import GVK, Key, Object
from podium.kube.controller import Controller, Result
from podium.kube.errors import APIError
from podium.kube.source import Source, Watched, for_kind, owns, watches
from podium.kube.store import Held
from podium.simulator import (
    budgets,
    cronjobs,
    daemonsets,
    deployments,
    endpoints,
    jobs,
    replicas,
    statefulsets,
    volumes,
)
from podium.simulator.objects import (
    BUDGET,
    CLAIM,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINTS,
    JOB,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISION,
    SERVICE,
    SLICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    VOLUME,
    controller,
    is_deleting,
    labels_of,
    name,
    namespace,
    selector,
    spec,
    status,
    uid,
)
from podium.simulator.ownership import claim
from podium.simulator.plan import Create, Delete, Note, Plan, set_status
from podium.simulator.provisioning import STANDARD_CLASS
from podium.simulator.scheduling import claim_names
from podium.simulator.world import World

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class WorkloadHalf:
    """What the controllers of the workload half share: the caches."""

    def __init__(self, world: World) -> None:
        self._world = world
        for gvk in (
            POD, NODE, REPLICA_SET, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REVISION, JOB, CRON_JOB,
            REPLICATION_CONTROLLER, SERVICE, SLICE, ENDPOINTS, CLAIM, VOLUME, STORAGE_CLASS, BUDGET,
        ):  # fmt: skip
            world.follow(gvk)
        world.follow(SLICE).add_index("service", _by_service)

    async def prepare(self) -> None:
        """Offer the simulated storage class, as the default one unless there is another."""
        classes = self._world.list(STORAGE_CLASS)
        if any(name(found) == name(STANDARD_CLASS) for found in classes):
            return
        made = STANDARD_CLASS
        if any(
            (found["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true" for found in classes
        ):
            made = {**made, "metadata": {"name": name(made)}}
        await self._world.carry_out(Plan([Create(made)]))

    def controllers(self) -> list[Controller]:
        """Everything that makes Pods, and what serves them."""
        make = self._world.controller
        selected = [for_kind(SERVICE), watches(POD, self._selecting(SERVICE)), owns(SLICE, SERVICE)]
        claims = [for_kind(CLAIM), watches(VOLUME, self._claims_for_volume), watches(POD, _claims_of_pod)]
        return [
            self._workload_controller("replicasets", REPLICA_SET, workers=4),
            self._workload_controller("replicationcontrollers", REPLICATION_CONTROLLER),
            self._workload_controller("statefulsets", STATEFUL_SET, owns(REVISION, STATEFUL_SET)),
            self._workload_controller(
                "daemonsets",
                DAEMON_SET,
                owns(REVISION, DAEMON_SET),
                watches(NODE, self._everything(DAEMON_SET)),
            ),
            self._workload_controller("jobs", JOB, workers=4),
            make(
                "deployments",
                self._deployment,
                [for_kind(DEPLOYMENT), owns(REPLICA_SET, DEPLOYMENT), watches(POD, self._recreated_by_pod)],
            ),
            make("cronjobs", self._cron_job, [for_kind(CRON_JOB), owns(JOB, CRON_JOB)]),
            make("services", self._service, [*selected, watches(ENDPOINTS, lambda held: (held.key,))]),
            make("claims", self._claim, [*claims, watches(STORAGE_CLASS, self._everything(CLAIM))]),
            make("ephemeral-claims", self._ephemeral_claims, [watches(POD, _with_ephemeral_volumes)]),
            make("volumes", self._volume, [for_kind(VOLUME), watches(CLAIM, _volume_of_claim)]),
            make("budgets", self._budget, [for_kind(BUDGET), watches(POD, self._selecting(BUDGET))]),
            make("stranded-pods", self._stranded, [watches(NODE, self._pods_on_node)]),
        ]

    # --- which keys a change concerns ---------------------------------------------------------------------

    def _workload_controller(self, title: str, gvk: GVK, *sources: Source, workers: int = 1) -> Controller:
        """A controller of objects that claim Pods by selector."""
        given: list[Source] = [for_kind(gvk), owns(POD, gvk), self._orphans(gvk), *sources]

        async def reconcile(key: Key) -> Result | None:
            return await self._workload(gvk, key)

        return self._world.controller(title, reconcile, given, workers=workers)

    def _orphans(self, gvk: GVK) -> Watched:
        """Pods that nobody controls concern every workload that would adopt them."""
        selecting = self._selecting(gvk)

        def owners(held: Held) -> Iterator[Key]:
            if held.metadata.controller is None and held.metadata.label_map:
                yield from selecting(held)

        return watches(POD, owners)

    def _selecting(self, gvk: GVK) -> Callable[[Held], Iterator[Key]]:
        def selecting(held: Held) -> Iterator[Key]:
            for found in self._world.list(gvk, held.metadata.namespace):
                if selectors.matches(selector(found), held.metadata.label_map):
                    yield Key.of(found)

        return selecting

    def _everything(self, gvk: GVK) -> Callable[[Held], Iterator[Key]]:
        return lambda _: self._world.follow(gvk).keys()

    def _claims_for_volume(self, held: Held) -> Iterator[Key]:
        reference = spec(held.object()).get("claimRef")
        if reference:
            yield Key(reference.get("namespace") or "", reference.get("name") or "")
            return
        for found in self._world.list(CLAIM):
            if not spec(found).get("volumeName"):
                yield Key.of(found)

    def _recreated_by_pod(self, held: Held) -> Iterator[Key]:
        """Single Pods matter only to Deployments that wait for their old ones to end."""
        owner = held.metadata.controller
        if owner is None or owner.kind != "ReplicaSet":
            return
        replica_set = self._world.follow(REPLICA_SET).metadata(Key(held.metadata.namespace, owner.name))
        above = replica_set.controller if replica_set else None
        if above is None or above.kind != "Deployment":
            return
        key = Key(held.metadata.namespace, above.name)
        deployment = self._world.get(DEPLOYMENT, key)
        if deployment is not None and deployments.is_recreate(deployment):
            yield key

    def _pods_on_node(self, held: Held) -> Iterator[Key]:
        for pod in self._world.follow(POD).select(index=("node", held.metadata.name)):
            yield pod.key

    # --- workloads ----------------------------------------------------------------------------------------

    async def _workload(self, gvk: GVK, key: Key) -> Result | None:
        """Claim the Pods first, then decide about them."""
        world = self._world
        owner = world.get(gvk, key)
        if owner is None:
            return None
        claimed = claim(owner, world.candidates(POD, owner))
        if claimed.writes:
            return await world.carry_out(Plan(list(claimed.writes)))
        try:
            return await world.carry_out(self._decide(gvk, owner, claimed.objects))
        except APIError as error:
            await self._tell_failure(gvk, key, error)
            raise

    def _decide(self, gvk: GVK, owner: Object, pods: list[Object]) -> Plan:
        world, now = self._world, self._world.now()
        if gvk == JOB:
            return jobs.decide(owner, pods, now)
        if gvk in (REPLICA_SET, REPLICATION_CONTROLLER):
            return replicas.decide(owner, pods, now)
        known = list(world.controlled(REVISION, owner))
        if gvk == DAEMON_SET:
            return daemonsets.decide(owner, pods, world.list(NODE), known, now)
        claims = {held.metadata.name for held in world.follow(CLAIM).select(namespace(owner))}
        return statefulsets.decide(owner, pods, known, claims, now)

    async def _tell_failure(self, gvk: GVK, key: Key, error: APIError) -> None:
        """Show on the owner why its Pods cannot be made."""
        world = self._world
        owner = world.get(gvk, key)
        if owner is None:
            return
        told = f"Error creating: {error}"
        world.tell(Note(owner, "FailedCreate", told, replicas.COMPONENT, warning=True))
        if gvk in (REPLICA_SET, REPLICATION_CONTROLLER):
            pods = list(world.controlled(POD, owner))
            new = replicas.observed(owner, pods, world.now(), failure=str(error))
            await world.carry_out(Plan(set_status(owner, new)))

    async def _deployment(self, key: Key) -> Result | None:
        world = self._world
        deployment = world.get(DEPLOYMENT, key)
        if deployment is None:
            return None
        claimed = claim(deployment, world.candidates(REPLICA_SET, deployment))
        if claimed.writes:
            return await world.carry_out(Plan(list(claimed.writes)))
        pods = [pod for found in claimed.objects for pod in world.controlled(POD, found)]
        return await world.carry_out(deployments.decide(deployment, claimed.objects, pods, world.now()))

    async def _cron_job(self, key: Key) -> Result | None:
        world = self._world
        found = world.get(CRON_JOB, key)
        if found is None:
            return None
        return await world.carry_out(cronjobs.decide(found, list(world.controlled(JOB, found)), world.now()))

    # --- what serves workloads ----------------------------------------------------------------------------

    async def _service(self, key: Key) -> Result | None:
        world = self._world
        service, known = world.get(SERVICE, key), world.get(ENDPOINTS, key)
        if service is None:
            return await world.carry_out(endpoints.orphaned(known)) if known is not None else None
        wanted = selector(service)
        pods = [held.object() for held in world.follow(POD).select(key.namespace, wanted)]
        slices = [
            found
            for held in world.follow(SLICE).select(key.namespace, index=("service", key.name))
            if labels_of(found := held.object()).get(endpoints.SLICE_MANAGER[0]) == endpoints.SLICE_MANAGER[1]
        ]
        plan = endpoints.decide(service, pods, slices, known)
        if spec(service).get("type") == "LoadBalancer" or status(service).get("loadBalancer"):
            plan.join(endpoints.balance(service, self._balancers()))
        return await world.carry_out(plan)

    def _balancers(self) -> set[str]:
        return {
            entry.get("ip") or ""
            for service in self._world.list(SERVICE)
            for entry in (status(service).get("loadBalancer") or {}).get("ingress") or ()
        }

    async def _claim(self, key: Key) -> Result | None:
        world = self._world
        found = world.get(CLAIM, key)
        if found is None:
            return None
        storage = world.get(STORAGE_CLASS, Key("", spec(found).get("storageClassName") or ""))
        in_use = is_deleting(found) and self._is_in_use(found)
        plan = volumes.decide_claim(found, world.list(VOLUME), storage, in_use)
        return await world.carry_out(plan)

    def _is_in_use(self, found: Object) -> bool:
        for pod in self._world.list(POD, namespace(found)):
            if name(found) in claim_names(pod) and spec(pod).get("nodeName"):
                return True
        return False

    async def _ephemeral_claims(self, key: Key) -> Result | None:
        world = self._world
        pod = world.get(POD, key)
        if pod is None:
            return None
        known = {held.metadata.name for held in world.follow(CLAIM).select(key.namespace)}
        return await world.carry_out(volumes.ephemeral_claims(pod, known))

    async def _stranded(self, key: Key) -> Result | None:
        """Remove a Pod whose node is gone: nobody else would."""
        pod = self._world.get(POD, key)
        if pod is None or Key("", spec(pod).get("nodeName") or "") in self._world.follow(NODE):
            return None
        return await self._world.carry_out(Plan([Delete(pod, grace_seconds=0)]))

    async def _volume(self, key: Key) -> Result | None:
        world = self._world
        volume = world.get(VOLUME, key)
        if volume is None:
            return None
        reference = spec(volume).get("claimRef") or {}
        owner = Key(reference.get("namespace") or "", reference.get("name") or "")
        return await world.carry_out(volumes.decide_volume(volume, world.get(CLAIM, owner)))

    async def _budget(self, key: Key) -> Result | None:
        world = self._world
        budget = world.get(BUDGET, key)
        if budget is None:
            return None
        pods = [held.object() for held in world.follow(POD).select(key.namespace, selector(budget))]
        return await world.carry_out(budgets.decide(budget, pods, self._scale(pods), world.now()))

    def _scale(self, pods: list[Object]) -> int:
        """How many Pods the workloads want to which these Pods belong."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = self._top_owner(pod)
            if owner is not None:
                sizes[uid(owner)] = int(spec(owner).get("replicas", 1))
        return sum(sizes.values())

    def _top_owner(self, pod: Object) -> Object | None:
        reference = controller(pod)
        if reference is None:
            return None
        gvk = GVK.parse(reference["apiVersion"], reference["kind"])
        if gvk not in (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER):
            return None
        owner = self._world.get(gvk, Key(namespace(pod), reference["name"]))
        above = controller(owner) if owner is not None else None
        if above is not None and above["kind"] == "Deployment":
            return self._world.get(DEPLOYMENT, Key(namespace(pod), above["name"])) or owner
        return owner


def _by_service(held: Held) -> Iterator[str]:
    service = held.metadata.labels.get(endpoints.SERVICE_NAME)
    if service:
        yield service


def _claims_of_pod(held: Held) -> Iterator[Key]:
    if held.raw is None or (b'"persistentVolumeClaim"' not in held.raw and b'"ephemeral"' not in held.raw):
        return
    pod = held.object()
    for claimed in claim_names(pod):
        yield Key(namespace(pod), claimed)


def _with_ephemeral_volumes(held: Held) -> Iterator[Key]:
    if held.raw is not None and b'"ephemeral"' in held.raw:
        yield held.key


def _volume_of_claim(held: Held) -> Iterator[Key]:
    volume = spec(held.object()).get("volumeName")
    if volume:
        yield Key("", volume)
