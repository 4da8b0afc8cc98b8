"""Evictions: deleting a Pod only if the disruption budget that counts it has room.

A granted eviction is taken from the budget before the Pod goes, in the budget's own status, so that of two
evictions at the same moment only one gets the last place. Whoever keeps the budgets (the disruption
controller, or the simulator) counts anew afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from podium.api import selectors
from podium.api.conditions import with_condition
from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.objects import DeleteOptions, Objects, Write, check_preconditions
from podium.apiserver.registry import Resource

_SECONDS_TO_PROCESS = 10


class Evictions:
    """Grants and carries out evictions."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def evict(
        self, pods: Resource, namespace: str, name: str, options: DeleteOptions, write: Write
    ) -> None:
        """Delete a Pod and say on it why; refuses if a budget forbids it or a precondition fails."""
        pod = self._objects.stored(pods, namespace, name).object
        check_preconditions(pods, pod, options)
        if not _counts_nowhere(pod):
            await self._take_from_budget(namespace, pod, write)
        uid = pod["metadata"]["uid"]

        def transform(found: Object | None) -> Object:
            if found is None or found["metadata"]["uid"] != uid:
                raise errors.not_found("", "pods", name)  # it went while the budget was written
            return self._marked(found)

        await self._objects.update(
            pods, namespace, name, transform, write, subresource="binding", tracked=True
        )
        # The mark made a new version of what the caller meant.
        options = replace(options, resource_version="", uid=uid)
        await self._objects.delete(pods, namespace, name, options, write)

    async def _take_from_budget(self, namespace: str, pod: Object, write: Write) -> None:
        found = self._budgets(namespace, pod["metadata"].get("labels") or {})
        if len(found) > 1:
            why = "which the eviction subresource does not support."
            raise errors.unclassified(f"This pod has more than one PodDisruptionBudget, {why}")
        budgets = self._objects.registry.find("policy", "v1", "poddisruptionbudgets")
        if not found or budgets is None:
            return
        name = pod["metadata"]["name"]

        def transform(budget: Object | None) -> Object:
            assert budget is not None
            _check_room(budget)
            status = budget["status"]
            status["disruptionsAllowed"] -= 1
            status.setdefault("disruptedPods", {})[name] = self._objects.timestamp()
            return budget

        server = replace(write, manager="kube-apiserver", warnings=[])
        await self._objects.update(budgets, namespace, found[0], transform, server, subresource="status")

    def _budgets(self, namespace: str, labels: dict[str, str]) -> list[str]:
        """The names of the budgets that count a Pod with these labels."""
        table = self._objects.store.table("policy/poddisruptionbudgets")
        return [
            stored.name
            for stored in table.scan(f"{namespace}/")
            if selectors.matches(selectors.from_object(stored.object["spec"].get("selector")), labels)
        ]

    def _marked(self, pod: Object) -> Object:
        why = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        new = pod_condition("DisruptionTarget", self._objects.timestamp()) | why
        pod["status"] = with_condition(pod.get("status"), new)
        return pod


def pod_condition(kind: str, now: str) -> Object:
    """A condition of a Pod that holds from now on."""
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}


def _counts_nowhere(pod: Object) -> bool:
    """A Pod that does not run (yet, or any more) counts in no budget."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _check_room(budget: Object) -> None:
    status, metadata = budget.setdefault("status", {}), budget["metadata"]
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _refused(
            f"The disruption budget {name} is still being processed by the server.", _SECONDS_TO_PROCESS
        )
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        why = f"The disruption budget {name} "
        if healthy <= desired:
            why += f"needs {desired} healthy pods and has {healthy} currently"
        else:
            why += "does not allow evicting pods currently"
        raise _refused(why, 0)


def _refused(why: str, retry_after: int) -> errors.StatusError:
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    failure = errors.too_many_requests(text, retry_after)
    failure.details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after:
        failure.details["retryAfterSeconds"] = retry_after
    return failure
