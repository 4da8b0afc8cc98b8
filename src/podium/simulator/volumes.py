"""Claims and volumes: matched, bound to each other, released, and let go when nobody uses them any more.

A binding has four parts in two objects (claimRef, the volume's phase, volumeName, the claim's phase). Each
look writes what is missing, so a binding that was interrupted is completed, never made a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podium.api import selectors
from podium.api.kinds import Object
from podium.schema import quantity
from podium.simulator.objects import (
    annotations_of,
    is_deleting,
    is_finished,
    labels_of,
    name,
    namespace,
    owner_reference,
    spec,
    status,
    uid,
    with_annotations,
    with_metadata,
)
from podium.simulator.plan import Create, Note, Plan, Update, Write, set_status
from podium.simulator.scheduling import SELECTED_NODE

COMPONENT = "simulated-volume-binder"
PVC_PROTECTION, PV_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
# Some drivers still look for the older name.
_BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"


def decide_claim(
    claim: Object, volumes: Sequence[Object], storage_class: Object | None, in_use: bool
) -> Plan:
    """The next step of a claim: let go, bound, grown, lost or waiting."""
    if is_deleting(claim):
        return Plan([] if in_use else _unprotected(claim, PVC_PROTECTION))
    volume = _volume_of(claim, volumes)
    if volume is not None:
        return _bind(claim, volume, storage_class)
    if spec(claim).get("volumeName"):
        lost = BIND_COMPLETED in annotations_of(claim)
        return Plan(set_status(claim, {**status(claim), "phase": "Lost" if lost else "Pending"}))
    return _wait(claim, storage_class)


def decide_volume(volume: Object, claim: Object | None) -> Plan:
    """The next step of a volume; `claim` is the one that its claimRef names, if it still exists."""
    reference = spec(volume).get("claimRef")
    if is_deleting(volume) and (status(volume).get("phase") != "Bound" or claim is None):
        return Plan(_unprotected(volume, PV_PROTECTION))
    if reference is None or not reference.get("uid"):
        phase = "Available"
    elif claim is None or uid(claim) != reference["uid"]:
        phase = "Released"
    else:
        phase = "Bound"
    return Plan(set_status(volume, {**status(volume), "phase": phase}))


def ephemeral_claims(pod: Object, known: Collection[str]) -> Plan:
    """The claims of a Pod's generic ephemeral volumes: they come and go with it."""
    plan = Plan()
    if is_deleting(pod) or is_finished(pod):
        return plan
    for volume in spec(pod).get("volumes") or ():
        wanted = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        made = f"{name(pod)}-{volume['name']}"
        if wanted is None or made in known:
            continue
        given = wanted.get("metadata") or {}
        metadata = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        metadata |= {"name": made, "namespace": namespace(pod), "ownerReferences": [owner_reference(pod)]}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        plan.add(Create({**claim, "spec": wanted.get("spec") or {}}))
    return plan


# --- binding --------------------------------------------------------------------------------------------


def _volume_of(claim: Object, volumes: Sequence[Object]) -> Object | None:
    """The volume that a claim has, asks for, or fits best."""
    named = spec(claim).get("volumeName")
    candidates = [volume for volume in volumes if not is_deleting(volume)]
    if named:
        found = next((volume for volume in volumes if name(volume) == named), None)
        return found if found is not None and _is_free_for(found, claim) else None
    reserved = [volume for volume in candidates if _is_reserved_for(volume, claim)]
    if reserved:
        return reserved[0]
    fitting = [v for v in candidates if spec(v).get("claimRef") is None and _fits(claim, v)]
    return min(fitting, key=lambda volume: (_capacity(volume), name(volume)), default=None)


def _is_free_for(volume: Object, claim: Object) -> bool:
    return spec(volume).get("claimRef") is None or _is_reserved_for(volume, claim)


def _is_reserved_for(volume: Object, claim: Object) -> bool:
    reference = spec(volume).get("claimRef") or {}
    same = (reference.get("namespace"), reference.get("name")) == (namespace(claim), name(claim))
    return same and reference.get("uid") in (None, "", uid(claim))


def _fits(claim: Object, volume: Object) -> bool:
    wanted, offered = spec(claim), spec(volume)
    return (
        (wanted.get("storageClassName") or "") == (offered.get("storageClassName") or "")
        and set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
        and (wanted.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
        and _requested(claim) <= _capacity(volume)
        and (not wanted.get("selector") or _selected(wanted["selector"], volume))
    )


def _selected(selector: Object, volume: Object) -> bool:
    return selectors.matches(selectors.from_object(selector), labels_of(volume))


def _bind(claim: Object, volume: Object, storage_class: Object | None) -> Plan:
    writes: list[Write] = []
    reference = spec(volume).get("claimRef") or {}
    if reference.get("uid") != uid(claim):
        bound = with_annotations(volume, {BOUND_BY_CONTROLLER: "yes"}) if not reference else volume
        writes.append(Update({**bound, "spec": {**spec(volume), "claimRef": _reference(claim)}}))
    writes += set_status(volume, {**status(volume), "phase": "Bound"})
    if not spec(claim).get("volumeName") or BIND_COMPLETED not in annotations_of(claim):
        notes = {BIND_COMPLETED: "yes"}
        if not spec(claim).get("volumeName"):
            notes[BOUND_BY_CONTROLLER] = "yes"
        changed = with_annotations(claim, notes)
        writes.append(Update({**changed, "spec": {**spec(claim), "volumeName": name(volume)}}))
    size = (spec(volume).get("capacity") or {}).get("storage", "0")
    if _grows(claim, volume, storage_class):
        size = spec(claim)["resources"]["requests"]["storage"]
        grown = {**spec(volume), "capacity": {**spec(volume)["capacity"], "storage": size}}
        writes.append(Update({**volume, "spec": grown}))
        told = "Resize volume succeeded (simulated)"
        writes.append(Note(claim, "VolumeResizeSuccessful", told, COMPONENT))
    new = {
        **status(claim),
        "phase": "Bound",
        "accessModes": spec(volume).get("accessModes") or [],
        "capacity": {"storage": size},
    }
    return Plan(writes).add(*set_status(claim, new))


def _grows(claim: Object, volume: Object, storage_class: Object | None) -> bool:
    was_bound = status(claim).get("phase") == "Bound"
    allowed = bool(storage_class and storage_class.get("allowVolumeExpansion"))
    return was_bound and allowed and _requested(claim) > _capacity(volume)


def _wait(claim: Object, storage_class: Object | None) -> Plan:
    plan = Plan(set_status(claim, {**status(claim), "phase": "Pending"}))
    if storage_class is None:
        if plan:
            told = "no persistent volumes available for this claim and no storage class is set"
            plan.add(Note(claim, "FailedBinding", told, COMPONENT))
        return plan
    waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and SELECTED_NODE not in annotations_of(claim):
        if plan:
            told = "waiting for first consumer to be created before binding"
            plan.add(Note(claim, "WaitForFirstConsumer", told, COMPONENT))
        return plan
    provisioner = storage_class.get("provisioner") or ""
    if annotations_of(claim).get(_STORAGE_PROVISIONER) != provisioner:
        notes = dict.fromkeys((_STORAGE_PROVISIONER, _BETA_STORAGE_PROVISIONER), provisioner)
        plan.writes[:0] = [Update(with_annotations(claim, notes))]
        told = f"Waiting for a volume to be created by the external provisioner '{provisioner}'"
        plan.add(Note(claim, "ExternalProvisioning", told, COMPONENT))
    return plan


def _reference(claim: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace(claim),
        "name": name(claim),
        "uid": uid(claim),
        "resourceVersion": claim["metadata"].get("resourceVersion"),
    }


def _requested(claim: Object) -> int:
    asked = ((spec(claim).get("resources") or {}).get("requests") or {}).get("storage", "0")
    return quantity.parse(str(asked)).value


def _capacity(volume: Object) -> int:
    return quantity.parse(str((spec(volume).get("capacity") or {}).get("storage", "0"))).value


def _unprotected(obj: Object, finalizer: str) -> list[Write]:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        return []
    kept = [found for found in finalizers if found != finalizer]
    return [Update(with_metadata(obj, finalizers=kept or None))]
